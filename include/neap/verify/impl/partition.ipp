// The bodies of <neap/verify/partition.hpp>.
#pragma once

#include <neap/verify/partition.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/ir/part_axes.hpp>
#include <neap/verify/views.hpp>

#include <algorithm>
#include <cmath>

namespace neap { inline namespace v0 { namespace detail { namespace plan_check {

NEAP_FUNC digest meaning::number_of_it() const {
  return of.mix(0x7069656365ull + kind)
      .mix(static_cast<std::uint64_t>(axis) << 8 | static_cast<std::uint64_t>(how))
      .mix(static_cast<std::uint64_t>(number))
      .mix(static_cast<std::uint64_t>(count));
}

NEAP_FUNC bool pieces::add_helper(op_id o) {
  auto const in = g_.inputs(o);
  if (g_.outputs(o).size() != 1) return false;
  auto const out = g_.output(o);
  if (g_.as<op::blank>(o)) {
    // Which blank it is does not matter: a first piece alone may read it.
    return set(out, {meaning::blank, digest{}.mix(index(o)), -1, combine::concat, 0, 0});
  }
  if (in.empty()) return false;
  auto const* a = find(now_.value[in[0]]);
  if (auto const* x = g_.as<op::slice>(o)) return add_slice(o, *x, a);
  if (g_.as<op::copy>(o)) {
    if (a && a->kind != meaning::piece && a->kind != meaning::partial) return false;
    if (!a && !is_original(now_.value[in[0]])) return false;
    now_.value[out] = now_.value[in[0]];
    now_.op[o] = now_.value[out].mix(~std::uint64_t{0});
    return true;
  }
  if (auto const* x = g_.as<op::mul_scalar>(o)) {
    if (!a || a->kind != meaning::sum_of_means || x->value != 1 / static_cast<double>(a->count)) return false;
    return complete(o, *a);
  }
  if (in.size() != 2 || !a) return false;
  auto const* b = find(now_.value[in[1]]);
  if (!b) return false;
  if (auto const* x = g_.as<op::place>(o)) return add_place(o, *x, *a, *b);
  if (auto const* x = g_.as<op::combine_into>(o)) return add_combination(o, *x, *a, *b);
  return false;
}

NEAP_FUNC bool pieces::add_slice(op_id o, op::slice const& x, meaning const* a) {
  auto const in = g_.inputs(o)[0];
  bool const again = a && a->kind == meaning::piece && a->depth == 1;
  if (!again && (a || (!is_original(now_.value[in]) && !rewrites_.makes(in)))) return false;
  auto const& dims = g_.type(in).dims;
  auto const axis = static_cast<std::int32_t>(x.axis < 0 ? x.axis + dims.rank() : x.axis);
  auto const n = x.stop - x.start;
  if (n <= 0 || dims[axis] % n != 0 || x.start % n != 0) return false;
  return set(g_.output(o),
             {meaning::piece, now_.value[in], axis, combine::concat, x.start / n, dims[axis] / n, in, again ? 2 : 1});
}

NEAP_FUNC bool pieces::add_place(op_id o, op::place const& x, meaning const& a, meaning const& b) {
  if (b.kind != meaning::piece) return false;
  auto const& whole = g_.type(g_.inputs(o)[0]).dims;
  auto const axis = static_cast<std::int32_t>(x.axis < 0 ? x.axis + whole.rank() : x.axis);
  auto const n = g_.type(g_.inputs(o)[1]).dims[axis];
  if (axis != b.axis || x.start != b.number * n || whole[axis] != b.count * n) return false;
  if (a.kind == meaning::blank
          ? b.number != 0
          : a.kind != meaning::filled || a.of != b.of || a.axis != b.axis || a.count != b.count || a.number != b.number)
    return false;
  meaning joint{meaning::filled, b.of, axis, combine::concat, b.number + 1, b.count, nothing<value_id>, b.depth};
  return joint.number == joint.count ? complete(o, joint) : set(g_.output(o), joint);
}

NEAP_FUNC bool pieces::add_combination(op_id o, op::combine_into const& x, meaning const& a, meaning const& b) {
  if (b.kind != meaning::partial || (a.kind != meaning::combined && a.kind != meaning::partial)) return false;
  auto const there = a.kind == meaning::partial ? a.number + 1 : a.number;
  if ((a.kind == meaning::partial && a.number != 0) || a.of != b.of || a.how != b.how || a.count != b.count ||
      b.number != there)
    return false;
  if (x.how != (b.how == combine::mean ? combine::sum : b.how)) return false;
  meaning joint{meaning::combined, b.of, -1, b.how, there + 1, b.count, nothing<value_id>, b.depth};
  if (joint.number < joint.count) return set(g_.output(o), joint);
  if (joint.how != combine::mean) return complete(o, joint);
  joint.kind = meaning::sum_of_means;
  return set(g_.output(o), joint);
}

NEAP_FUNC bool pieces::add_part(op_id x, op_id o, std::string& why) {
  part_claim c{x, o, why};
  if (&g_.facets(o) != &original_.facets(x) || g_.inputs(o).size() != original_.inputs(x).size() ||
      g_.outputs(o).size() != original_.outputs(x).size())
    return c.no("another operator, or another number of arguments");
  if (runs_at_most_once(original_, x)) return c.no("an op that runs once cannot run in parts");
  auto const p = g_.record(o).part;
  if (p == nothing<part_id>) return c.no("it does not say which part it is");
  c.row = &g_.part(p);
  if (c.row->of != nothing<part_id>) c.outer = &g_.part(c.row->of);
  if (c.outer && (c.outer->of != nothing<part_id> || c.outer->count == c.row->count))
    return c.no("parts are cut once more at most, and into another number");
  c.whole = original_op(x);
  if (!find_cut_inputs(c) || !find_cut_outputs(c)) return false;
  if (!same_attributes(c.whole, o, *c.row)) return c.no("another attribute than such a part has");
  if (auto const named = axes_of_part(g_, o); !named.empty()) {
    std::vector<part_axes> cuts{part_axes{in_axis_, out_axis_}};
    if (c.outer) cuts.insert(cuts.begin(), part_axes{again_axis_, outer_axis_});
    if (named != cuts) return c.no("it is cut along other axes than it says");
  }
  for (std::size_t j = 0; j < original_.outputs(x).size(); ++j)
    if (!set_output(c, j)) return false;
  auto const bits = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  now_.op[o] = was_.op[x].mix(bits(c.row->number)).mix(bits(c.row->count));
  if (c.outer) now_.op[o] = now_.op[o].mix(bits(c.outer->number) << 32 | 1u);
  return true;
}

NEAP_FUNC bool pieces::find_cut_inputs(part_claim& c) {
  auto const count = g_.inputs(c.o).size();
  in_axis_.assign(count, -1), again_axis_.assign(count, -1);
  for (std::size_t i = 0; i < count; ++i)
    if (!find_cut_input(c, i)) return false;
  return (c.cut && (!c.outer || c.cut_again)) || c.no("no argument is a piece");
}

NEAP_FUNC bool pieces::find_cut_input(part_claim& c, std::size_t i) {
  auto const v = g_.inputs(c.o)[i], of = original_.inputs(c.x)[i];
  auto is = now_.value[v];
  auto const should = was_.value[of];
  auto& in_of_part = c.whole.in_of_part[i];
  in_of_part = g_.layout(v);
  if (is == should || rewrites_.same(v, of)) return true;
  auto const* m = find(is);
  auto const other = [&] { return c.no("argument " + std::to_string(i) + " is another piece than this part reads"); };
  if (c.outer && m && m->kind == meaning::piece && m->depth == 2) {
    if (!m->has_number_of(*c.row)) return other();
    again_axis_[i] = m->axis, c.cut_again = true;
    if (m->sliced != nothing<value_id>) in_of_part = g_.layout(m->sliced);
    else if (auto const at = shapes_.find(m->of); at != shapes_.end()) in_of_part = at->second.layout;
    is = m->of;
    if (is == should) return true;
    m = find(is);
  }
  if (!m || m->kind != meaning::piece || m->depth != 1 ||
      (m->of != should && (m->sliced == nothing<value_id> || !rewrites_.same(m->sliced, of))))
    return c.no("argument " + std::to_string(i) + " is neither the original's value nor a piece of it");
  if (c.outer && again_axis_[i] < 0 && m->has_number_of(*c.row)) {
    again_axis_[i] = m->axis, c.cut_again = true;  // of what every part that is cut once more would read whole
    in_of_part = c.whole.in[i];
    return true;
  }
  if (!m->has_number_of(c.first_cut())) return other();
  in_axis_[i] = m->axis, c.cut = true;
  return true;
}

NEAP_FUNC bool pieces::find_cut_outputs(part_claim& c) {
  if (!follow_links(c.whole.links, in_axis_, out_axis_, how_, c.whole.out.size()))
    return c.no("what hangs on the axis that is cut is not cut");
  outer_axis_ = out_axis_, outer_how_ = how_;
  if (!c.outer) return true;
  c.whole = part_of(c.whole, *c.outer, c.o);
  if (!c.whole.can_be) return c.no("there is no such part to be cut once more");
  if (!follow_links(c.whole.links, again_axis_, out_axis_, how_, c.whole.out.size()))
    return c.no("what hangs on the axis that is cut once more is not cut");
  in_axis_.swap(again_axis_);
  return true;
}

NEAP_FUNC bool pieces::set_output(part_claim const& c, std::size_t j) {
  auto const v = g_.outputs(c.o)[j], value = original_.outputs(c.x)[j];
  if (!same_output(c.whole, j, v, out_axis_[j], *c.row))
    return c.no("output " + std::to_string(j) + " is not its part's");
  if (!shows_its_piece(c, j)) return c.no("output " + std::to_string(j) + " shows other elements than its part's");
  auto of_part = was_.value[value];
  int depth = 1;
  auto const made_by = [&](op_part const& part, std::int32_t axis, combine how) {
    meaning m{meaning::piece, of_part, axis, combine::concat, part.number, part.count, nothing<value_id>, depth};
    if (axis < 0) m.kind = meaning::partial, m.how = how;
    return m;
  };
  if (c.outer && !(outer_axis_[j] < 0 && outer_how_ == combine::same)) {  // what would be the outer part's
    auto const m = made_by(*c.outer, outer_axis_[j], outer_how_);
    of_part = m.number_of_it(), depth = 2;
    known_.emplace(of_part, m);
    shapes_.emplace(of_part,
                    shape{c.whole.out[j], c.whole.bytes[j], original_.record(value).alias == alias_kind::fresh});
  }
  if (out_axis_[j] >= 0 || how_ != combine::same) return set(v, made_by(*c.row, out_axis_[j], how_));
  now_.value[v] = of_part;  // every part makes the whole
  return true;
}

NEAP_FUNC bool pieces::set(value_id v, meaning const& m) {
  auto const d = m.number_of_it();
  known_.emplace(d, m);
  now_.value[v] = d;
  now_.op[g_.producer(v)] = d.mix(1);
  return true;
}

NEAP_FUNC value_id pieces::find_original(digest d) {
  if (originals_.empty()) {
    for (auto v : original_.values()) originals_.emplace_back(was_.value[v], v);
    std::sort(originals_.begin(), originals_.end());
  }
  auto const at = std::lower_bound(originals_.begin(), originals_.end(), std::pair(d, value_id{0}));
  return at == originals_.end() || at->first != d ? nothing<value_id> : at->second;
}

NEAP_FUNC bool pieces::complete(op_id o, meaning const& m) {
  auto const v = g_.output(o);
  if (m.depth == 2) {
    auto const at = shapes_.find(m.of);
    if (at == shapes_.end() || !at->second.fresh || !(g_.layout(v) == at->second.layout) ||
        g_.bytes(g_.storage(v)) != at->second.bytes)
      return false;
    now_.value[v] = m.of;
    now_.op[o] = m.of.mix(2);
    holds_.insert_or_assign(g_.storage(v), m.of);
    return true;
  }
  auto const whole = find_original(m.of);
  if (whole == nothing<value_id> || !(g_.layout(v) == original_.layout(whole)) ||
      original_.record(whole).alias != alias_kind::fresh ||
      g_.bytes(g_.storage(v)) != original_.bytes(original_.storage(whole)))
    return false;
  now_.value[v] = m.of;
  now_.op[o] = m.of.mix(2);
  return true;
}

NEAP_FUNC pieces::cut_op pieces::original_op(op_id x) const {
  cut_op c;
  c.original = x, c.facets = &original_.facets(x);
  c.attributes.resize(c.facets->size / sizeof(std::max_align_t) + 1);
  if (c.facets->size) std::memcpy(static_cast<void*>(c.attributes.data()), original_.attributes(x), c.facets->size);
  for (auto v : original_.inputs(x)) c.in.push_back(original_.layout(v));
  for (auto v : original_.outputs(x))
    c.out.push_back(original_.layout(v)), c.bytes.push_back(original_.bytes(original_.storage(v)));
  c.in_of_part.resize(c.in.size());
  c.links = original_.links(x);
  return c;
}

NEAP_FUNC pieces::cut_op pieces::part_of(cut_op const& whole, op_part const& which, op_id o) const {
  cut_op c = whole;
  c.in = whole.in_of_part;
  for (std::size_t j = 0; j < c.out.size(); ++j) {
    c.can_be &= layout_of_part(whole.out[j], out_axis_[j], which, lies_in_whole(o, j), c.out[j]);
    if (out_axis_[j] >= 0) c.bytes[j] = (whole.bytes[j] + which.count - 1) / which.count;
  }
  if (auto* x = c.as_opaque()) {
    if (!x->is_part()) x->whole_flops = x->flops, x->whole_bytes = x->read + x->written;
    share_of_work(whole, c.in, c.out, which.count, *x);
    if (neap::op::detail::relates_as_reshape(span_of(whole.links), whole.in[0].type.dims, whole.out[0].type.dims))
      c.links = neap::op::detail::reshape_links(c.in[0].type.dims, c.out[0].type.dims);
  } else {
    if (c.facets->cut)
      c.facets->cut(c.attributes.data(),
                    {whole.in, whole.out, in_axis_, out_axis_, which.number, which.number + 1, which.count});
    dim_context relations(c.in, c.out);
    c.facets->relate(c.attributes.data(), relations);
    c.links = std::move(relations).take();
  }
  return c;
}

NEAP_FUNC void pieces::share_of_work(cut_op const& whole, std::vector<tensor_layout> const& in,
                                     std::vector<tensor_layout> const& out, std::int64_t count, op::opaque& x) {
  double in_whole = 0, in_part = 0, out_whole = 0, out_part = 0;
  for (auto const& l : whole.in) in_whole += touched_bytes(l);
  for (auto const& l : in) in_part += touched_bytes(l);
  for (auto const& l : whole.out) out_whole += touched_bytes(l);
  for (auto const& l : out) out_part += touched_bytes(l);
  auto const share = [](double of, double part, double all) { return all > 0 ? of * (part / all) : of; };
  auto const& a = *whole.as_opaque();
  x.flops = a.flops / static_cast<double>(count);
  x.read = share(std::min(a.read, in_whole), in_part, in_whole) +
           std::max(a.read - in_whole, 0.0) / static_cast<double>(count);
  x.written = share(a.written, out_part, out_whole);
}

NEAP_FUNC bool pieces::follow_links(plain_vector<dim_link> const& links, std::vector<std::int32_t> const& in_axis,
                                    std::vector<std::int32_t>& out_axis, combine& how, std::size_t outputs) {
  out_axis.assign(outputs, -1);
  how = combine::concat;
  plain_vector<std::int16_t> reduced;
  plain_vector<bool> carried(in_axis.size(), false);
  for (auto const& l : links) {
    auto const i = static_cast<std::size_t>(l.input);
    if (in_axis[i] != l.in_axis) continue;
    carried[i] = true;
    if (l.output >= 0) {
      auto& axis = out_axis[static_cast<std::size_t>(l.output)];
      if (axis >= 0 && axis != l.out_axis) return false;
      axis = l.out_axis;
    } else {
      if (l.how == combine::concat || (how != combine::concat && how != l.how)) return false;
      how = l.how;
      if (std::find(reduced.begin(), reduced.end(), l.out_axis) == reduced.end()) reduced.push_back(l.out_axis);
    }
  }
  for (std::size_t i = 0; i < in_axis.size(); ++i)
    if (in_axis[i] >= 0 && !carried[i]) return false;
  for (auto const& l : links) {
    bool const hangs = l.output >= 0 ? out_axis[static_cast<std::size_t>(l.output)] == l.out_axis
                                     : std::find(reduced.begin(), reduced.end(), l.out_axis) != reduced.end();
    if (hangs && in_axis[static_cast<std::size_t>(l.input)] != l.in_axis) return false;
  }
  if (reduced.size() > 1) return false;
  for (auto axis : out_axis)
    if (axis < 0 && reduced.empty()) return false;
  return true;
}

NEAP_FUNC bool pieces::same_attributes(cut_op const& whole, op_id o, op_part const& which) const {
  if (auto const* a = whole.as_opaque()) {
    auto const* b = g_.as<op::opaque>(o);
    auto const near = [](double p, double q) { return std::abs(p - q) <= 1e-9 * std::max(std::abs(p), std::abs(q)); };
    std::vector<tensor_layout> in, out;
    for (auto v : g_.inputs(o)) in.push_back(g_.layout(v));
    for (auto v : g_.outputs(o)) out.push_back(g_.layout(v));
    op::opaque part = *a;
    share_of_work(whole, in, out, which.count, part);
    bool const first = !a->is_part();
    return original_.target(whole.original) == g_.target(o) && original_.details(whole.original) == g_.details(o) &&
           a->pointwise == b->pointwise && a->rng == b->rng && a->pure == b->pure && a->placeholder == b->placeholder &&
           a->key == b->key && a->seconds == b->seconds && b->whole_flops == (first ? a->flops : a->whole_flops) &&
           b->whole_bytes == (first ? a->read + a->written : a->whole_bytes) && near(b->flops, part.flops) &&
           near(b->read, part.read) && near(b->written, part.written);
  }
  auto room = whole.attributes;
  if (whole.facets->cut)
    whole.facets->cut(room.data(),
                      {whole.in, whole.out, in_axis_, out_axis_, which.number, which.number + 1, which.count});
  void const* const as_it_is = original_.attributes(whole.original);  // of an operator that has none
  return neap::detail::same_operator({whole.facets, whole.facets->size ? room.data() : as_it_is}, g_.view(o));
}

NEAP_FUNC bool pieces::same_output(cut_op const& whole, std::size_t j, value_id v, std::int32_t axis,
                                   op_part const& which) const {
  auto const &r = g_.record(v), &w = original_.record(original_.outputs(whole.original)[j]);
  auto const &l = g_.layout(v), &a = whole.out[j];
  if (r.alias != w.alias || r.of != w.of || r.alias == alias_kind::update || l.type.element != a.type.element)
    return false;
  auto dims = a.type.dims;
  if (axis >= 0) {
    if (dims[axis] % which.count != 0) return false;
    dims[axis] /= which.count;
  }
  if (!(l.type.dims == dims)) return false;
  if (!whole.as_opaque() || r.alias == alias_kind::view) return true;
  if (g_.bytes(r.storage) != (axis < 0 ? whole.bytes[j] : (whole.bytes[j] + which.count - 1) / which.count))
    return false;
  tensor_layout should;
  return layout_of_part(a, axis, which, false, should) && l == should;
}

NEAP_FUNC bool pieces::shows_its_piece(part_claim const& c, std::size_t j) const {
  auto const& r = g_.record(g_.outputs(c.o)[j]);
  if (r.alias != alias_kind::view || !looks_at_addresses(g_, c.o)) return true;
  auto const of = lies_in_storage_of(g_, c.o, j), was = lies_in_storage_of(original_, c.x, j);
  if (of == nothing<value_id> || was == nothing<value_id>) return false;
  auto const start = [&](tensor_layout const& whole, std::int32_t first, std::int32_t second) {
    auto at = extents::filled(whole.type.rank(), 0), dims = whole.type.dims;
    if (c.outer && first >= 0) dims[first] /= c.outer->count, at[first] += c.outer->number * dims[first];
    if (second >= 0) at[second] += c.row->number * (dims[second] / c.row->count);
    return at;
  };
  auto const in = [&](std::vector<std::int32_t> const& axes) {
    return r.of >= 0 ? axes[static_cast<std::size_t>(r.of)] : -1;
  };
  auto const out = [&](std::vector<std::int32_t> const& axes) {
    return axes[r.of >= 0 ? j : static_cast<std::size_t>(-2 - r.of)];
  };
  auto const &a = original_.layout(was), &b = original_.layout(original_.outputs(c.x)[j]);
  auto const of_start =
      r.of >= 0 ? start(a, in(again_axis_), in(in_axis_)) : start(a, out(outer_axis_), out(out_axis_));
  return view_comparison(
             {a, b, {}, {}},
             {g_.layout(of), g_.layout(g_.outputs(c.o)[j]), of_start, start(b, outer_axis_[j], out_axis_[j])}, now_.key)
      .same();
}

NEAP_FUNC bool pieces::lies_in_whole(op_id o, std::size_t j) const {
  auto const v = g_.outputs(o)[j];
  if (g_.record(v).alias != alias_kind::view) return false;
  auto const& row = g_.part(g_.record(o).part);
  auto const s = g_.record(v).storage;
  auto const put_together = holds_.find(s);
  auto const* m = find(put_together != holds_.end() ? put_together->second : now_.value[g_.record(s).first]);
  auto const is_piece = [](meaning const* x) { return x && x->kind == meaning::piece; };
  bool const inner = is_piece(m) && (m->depth == 2 || m->has_number_of(row));
  return !is_piece(inner ? (m->depth == 2 ? find(m->of) : nullptr) : m);
}

NEAP_FUNC bool pieces::layout_of_part(tensor_layout const& a, std::int32_t axis, op_part const& which, bool in_whole,
                                      tensor_layout& l) {
  l = a;
  if (axis < 0) return true;
  if (a.type.dims[axis] % which.count != 0) return false;
  l.type.dims[axis] /= which.count;
  if (in_whole) {
    l.offset = a.offset + which.number * l.type.dims[axis] * a.strides[axis];
    return true;
  }
  auto const reach =
      a.strides[axis] * a.type.dims[axis];  // in the whole, from one index of the next outer axis to the next
  if (reach == 0) return true;
  for (int k = 0; k < a.type.rank(); ++k) {
    if (k == axis || a.strides[k] < reach) continue;
    if (a.strides[k] % which.count != 0) return false;
    l.strides[k] = a.strides[k] / which.count;
  }
  l.offset = a.offset % reach + a.offset / reach * (reach / which.count);
  return true;
}

}}}}  // namespace neap::v0::detail::plan_check
