// Parts of ops, for the verifier: what a value of a planned graph is where it is no value of the original but a piece of
// one, a partial result of one, or one that is being put together.
//
//   piece(v, axis, k, n)     the k-th of n equal pieces of the original's value v: a slice of v, or an output of part k of
//                            the op that makes v
//   partial(v, how, k, n)    what part k of v's maker makes where the cut axis is reduced
//   joint(v, ..., m, n)      pieces 0 to m - 1 placed, or partial results 0 to m - 1 combined; v itself once m is n
//
// That an op is a part of an original one is shown by the original's dimension relations alone: its inputs are the
// original's arguments, whole or the k-th of n pieces, and whatever hangs on the loop that is cut is cut.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/verify/rewritten.hpp>
#include <neap/verify/value_numbers.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace neap::inline v0::detail::verifying {

struct meaning {
  enum kind_type : std::uint8_t { piece, partial, blank, filled, combined, sum_of_means };
  kind_type kind = piece;
  digest of{};             // the number of the original's value
  std::int32_t axis = -1;  // of pieces
  combine how = combine::concat;
  std::int64_t number = 0, count = 1;   // which piece of how many; of joints: how many are there, of how many
  value_id sliced = nothing<value_id>;  // of a slice: the planned value

  digest number_of_it() const {
    return of.mix(0x7069656365ull + kind)
        .mix(static_cast<std::uint64_t>(axis) << 8 | static_cast<std::uint64_t>(how))
        .mix(static_cast<std::uint64_t>(number))
        .mix(static_cast<std::uint64_t>(count));
  }
};

class pieces {
 public:
  pieces(op_graph const& original, numbers const& was, op_graph const& g, numbers& now, rewritten& rewrites)
      : original_(original),
        was_(was),
        g_(g),
        now_(now),
        rewrites_(rewrites) {}

  /// An op that the original has not: a slice into pieces, a copy, or what puts wholes together. Sets the numbers of its
  /// outputs; false if it is none of these, or not right.
  bool add_helper(op_id o) {
    auto const in = g_.inputs(o);
    if (g_.outputs(o).size() != 1) return false;
    auto const out = g_.output(o);
    if (g_.as<op::blank>(o)) {
      // Which blank it is does not matter: nobody but a first piece may read it.
      return set(out, {meaning::blank, digest{}.mix(index(o)), -1, combine::concat, 0, 0});
    }
    if (in.empty()) return false;
    auto const* a = find(now_.value[in[0]]);
    if (auto const* x = g_.as<op::slice>(o)) {
      if (a || (!is_original(now_.value[in[0]]) && !rewrites_.makes(in[0]))) return false;
      auto const& dims = g_.type(in[0]).dims;
      auto const axis = static_cast<std::int32_t>(x->axis < 0 ? x->axis + dims.rank() : x->axis);
      auto const n = x->stop - x->start;
      if (n <= 0 || dims[axis] % n != 0 || x->start % n != 0) return false;
      return set(out, {meaning::piece, now_.value[in[0]], axis, combine::concat, x->start / n, dims[axis] / n, in[0]});
    }
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
    if (auto const* x = g_.as<op::place>(o)) {
      if (b->kind != meaning::piece) return false;
      auto const& whole = g_.type(in[0]).dims;
      auto const axis = static_cast<std::int32_t>(x->axis < 0 ? x->axis + whole.rank() : x->axis);
      auto const n = g_.type(in[1]).dims[axis];
      if (axis != b->axis || x->start != b->number * n || whole[axis] != b->count * n) return false;
      if (a->kind == meaning::blank ? b->number != 0
                                    : a->kind != meaning::filled || a->of != b->of || a->axis != b->axis ||
                                          a->count != b->count || a->number != b->number)
        return false;
      meaning joint{meaning::filled, b->of, axis, combine::concat, b->number + 1, b->count};
      return joint.number == joint.count ? complete(o, joint) : set(out, joint);
    }
    if (auto const* x = g_.as<op::combine_into>(o)) {
      if (b->kind != meaning::partial || (a->kind != meaning::combined && a->kind != meaning::partial)) return false;
      auto const there = a->kind == meaning::partial ? a->number + 1 : a->number;
      if ((a->kind == meaning::partial && a->number != 0) || a->of != b->of || a->how != b->how ||
          a->count != b->count || b->number != there)
        return false;
      if (x->how != (b->how == combine::mean ? combine::sum : b->how)) return false;
      meaning joint{meaning::combined, b->of, -1, b->how, there + 1, b->count};
      if (joint.number < joint.count) return set(out, joint);
      if (joint.how != combine::mean) return complete(o, joint);
      joint.kind = meaning::sum_of_means;
      return set(out, joint);
    }
    return false;
  }

  /// Whether op o is a part of op x of the original; sets the numbers of its outputs if it is. Otherwise `why` says one
  /// reason.
  bool add_part(op_id x, op_id o, std::string& why) {
    auto const no = [&](std::string text) {
      why = std::move(text);
      return false;
    };
    auto const &g = g_, &w = original_;
    auto const in = g.inputs(o), of = w.inputs(x);
    if (&g.facets(o) != &w.facets(x) || in.size() != of.size() || g.outputs(o).size() != w.outputs(x).size())
      return no("another operator, or another number of arguments");
    if (runs_at_most_once(w, x)) return no("an op that runs once cannot run in parts");
    // Inputs: whole, or the same piece of as many.
    std::int64_t number = -1, count = 1;
    in_axis_.assign(in.size(), -1);
    for (std::size_t i = 0; i < in.size(); ++i) {
      auto const is = now_.value[in[i]];
      auto const should = was_.value[of[i]];
      if (is == should || rewrites_.same(in[i], of[i])) continue;
      auto const* m = find(is);
      bool const of_it = m && m->kind == meaning::piece &&
                         (m->of == should || (m->sliced != nothing<value_id> && rewrites_.same(m->sliced, of[i])));
      if (!of_it) return no("argument " + std::to_string(i) + " is neither the original's value nor a piece of it");
      if (number >= 0 && (m->number != number || m->count != count))
        return no("argument " + std::to_string(i) + " is another piece than the arguments before it");
      number = m->number, count = m->count;
      in_axis_[i] = m->axis;
    }
    if (number < 0) return no("no argument is a piece");
    if (auto const p = g.record(o).part; p != nothing<part_id>) {
      auto const& row = g.part(p);
      if (row.number != number || row.count != count || row.of != nothing<part_id>)
        return no("it says that it is another part");
    } else {
      return no("it does not say which part it is");
    }
    if (!follow_links(x)) return no("what hangs on the axis that is cut is not cut");
    if (!same_attributes(x, o, number, count)) return no("another attribute than such a part has");
    for (std::size_t j = 0; j < of_outputs(x).size(); ++j) {
      auto const v = g.outputs(o)[j], whole = w.outputs(x)[j];
      if (!same_output(v, whole, out_axis_[j], number, count))
        return no("output " + std::to_string(j) + " is not its part's");
      if (out_axis_[j] < 0 && how_ == combine::same) {  // every part makes the whole
        now_.value[v] = was_.value[whole];
        continue;
      }
      meaning m{
          out_axis_[j] >= 0 ? meaning::piece : meaning::partial, was_.value[whole], out_axis_[j], how_, number, count};
      if (m.kind == meaning::piece) m.how = combine::concat;
      set(v, m);
    }
    now_.op[o] = was_.op[x].mix(static_cast<std::uint64_t>(number)).mix(static_cast<std::uint64_t>(count));
    return true;
  }

 private:
  id_range<value_id> of_outputs(op_id x) const { return original_.outputs(x); }
  meaning const* find(digest d) const {
    auto const at = known_.find(d);
    return at == known_.end() ? nullptr : &at->second;
  }
  bool set(value_id v, meaning const& m) {
    auto const d = m.number_of_it();
    known_.emplace(d, m);
    now_.value[v] = d;
    now_.op[g_.producer(v)] = d.mix(1);
    return true;
  }
  bool is_original(digest d) { return find_original(d) != nothing<value_id>; }
  value_id find_original(digest d) {
    if (originals_.empty()) {
      for (auto v : original_.values()) originals_.emplace_back(was_.value[v], v);
      std::sort(originals_.begin(), originals_.end());
    }
    auto const at = std::lower_bound(originals_.begin(), originals_.end(), std::pair(d, value_id{0}));
    return at == originals_.end() || at->first != d ? nothing<value_id> : at->second;
  }
  /// The whole is there: it must be what the original has, byte for byte.
  bool complete(op_id o, meaning const& m) {
    auto const v = g_.output(o), whole = find_original(m.of);
    if (whole == nothing<value_id> || !(g_.layout(v) == original_.layout(whole)) ||
        original_.record(whole).alias != alias_kind::fresh ||
        g_.bytes(g_.storage(v)) != original_.bytes(original_.storage(whole)))
      return false;
    now_.value[v] = m.of;
    now_.op[o] = m.of.mix(2);
    return true;
  }

  /// From the axes along which inputs are cut to those of the outputs. False if the relations do not carry it.
  bool follow_links(op_id x) {
    auto const in = original_.inputs(x);
    auto const links = original_.links(x);
    out_axis_.assign(original_.outputs(x).size(), -1);
    how_ = combine::concat;
    plain_vector<std::int16_t> reduced;
    plain_vector<bool> carried(in.size(), false);
    for (auto const& l : links) {
      auto const i = static_cast<std::size_t>(l.input);
      if (in_axis_[i] != l.in_axis) continue;
      carried[i] = true;
      if (l.output >= 0) {
        auto& axis = out_axis_[static_cast<std::size_t>(l.output)];
        if (axis >= 0 && axis != l.out_axis) return false;
        axis = l.out_axis;
      } else {
        if (l.how == combine::concat || (how_ != combine::concat && how_ != l.how)) return false;
        how_ = l.how;
        if (std::find(reduced.begin(), reduced.end(), l.out_axis) == reduced.end()) reduced.push_back(l.out_axis);
      }
    }
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in_axis_[i] >= 0 && !carried[i]) return false;
    for (auto const& l : links) {
      bool const hangs = l.output >= 0 ? out_axis_[static_cast<std::size_t>(l.output)] == l.out_axis
                                       : std::find(reduced.begin(), reduced.end(), l.out_axis) != reduced.end();
      if (hangs && in_axis_[static_cast<std::size_t>(l.input)] != l.in_axis) return false;
    }
    if (reduced.size() > 1) return false;
    for (auto axis : out_axis_)
      if (axis < 0 && reduced.empty()) return false;
    return true;
  }

  bool same_attributes(op_id x, op_id o, std::int64_t number, std::int64_t count) {
    auto const *a = original_.as<op::opaque>(x), *b = g_.as<op::opaque>(o);
    if (a) {
      double in_whole = 0, in_part = 0, out_whole = 0, out_part = 0;
      for (std::size_t i = 0; i < g_.inputs(o).size(); ++i)
        in_whole += touched_bytes(original_.layout(original_.inputs(x)[i])),
            in_part += touched_bytes(g_.layout(g_.inputs(o)[i]));
      for (std::size_t j = 0; j < g_.outputs(o).size(); ++j)
        out_whole += touched_bytes(original_.layout(original_.outputs(x)[j])),
            out_part += touched_bytes(g_.layout(g_.outputs(o)[j]));
      auto const share = [](double whole, double part, double all) { return all > 0 ? whole * (part / all) : whole; };
      auto const near = [](double p, double q) { return std::abs(p - q) <= 1e-9 * std::max(std::abs(p), std::abs(q)); };
      return original_.target(x) == g_.target(o) && original_.details(x) == g_.details(o) &&
             a->pointwise == b->pointwise && a->rng == b->rng && a->pure == b->pure &&
             a->placeholder == b->placeholder && a->key == b->key && a->seconds == b->seconds && !a->is_part() &&
             b->whole_flops == a->flops && b->whole_bytes == a->read + a->written &&
             near(b->flops, a->flops / static_cast<double>(count)) &&
             near(b->read, share(std::min(a->read, in_whole), in_part, in_whole) +
                               std::max(a->read - in_whole, 0.0) / static_cast<double>(count)) &&
             near(b->written, share(a->written, out_part, out_whole));
    }
    auto const& f = original_.facets(x);
    std::vector<std::max_align_t> room(f.size / sizeof(std::max_align_t) + 1);
    if (f.size) std::memcpy(static_cast<void*>(room.data()), original_.attributes(x), f.size);
    if (f.cut) {
      std::vector<tensor_layout> in, out;
      for (auto v : original_.inputs(x)) in.push_back(original_.layout(v));
      for (auto v : original_.outputs(x)) out.push_back(original_.layout(v));
      f.cut(room.data(), {in, out, in_axis_, out_axis_, number, count});
    }
    return neap::detail::same_operator({&f, f.size ? room.data() : original_.attributes(x)}, g_.view(o));
  }

  /// Type, aliasing, bytes and layout of a part's output. Of operators of neap's, verify() of the graph has inferred the
  /// layout from the inputs' already.
  bool same_output(value_id v, value_id whole, std::int32_t axis, std::int64_t number, std::int64_t count) const {
    auto const &r = g_.record(v), &w = original_.record(whole);
    auto const &l = g_.layout(v), &a = original_.layout(whole);
    if (r.alias != w.alias || r.of != w.of || r.alias == alias_kind::update || l.type.element != a.type.element)
      return false;
    auto dims = a.type.dims;
    if (axis >= 0) {
      if (dims[axis] % count != 0) return false;
      dims[axis] /= count;
    }
    if (!(l.type.dims == dims)) return false;
    if (!original_.as<op::opaque>(original_.producer(whole))) return true;
    auto const bytes = original_.bytes(w.storage);
    if (r.alias == alias_kind::fresh && g_.bytes(r.storage) != (axis < 0 ? bytes : (bytes + count - 1) / count))
      return false;
    if (axis < 0) return l == a;
    // In a storage that is whole, the piece begins further on; one of a piece's size is the whole's drawn together.
    auto const base = g_.record(r.storage).first;
    auto const* m = find(now_.value[base]);
    bool const whole_storage = r.alias == alias_kind::view && !(m && m->kind == meaning::piece);
    if (whole_storage) return l.strides == a.strides && l.offset == a.offset + number * dims[axis] * a.strides[axis];
    auto const reach =
        a.strides[axis] * a.type.dims[axis];  // in the whole, from one index of the next outer axis to the next
    auto const drawn_together = [&](std::int64_t stride) {
      return reach != 0 && stride >= reach ? stride / count : stride;
    };
    for (int k = 0; k < a.type.rank(); ++k) {
      if (l.strides[k] != (k == axis ? a.strides[k] : drawn_together(a.strides[k]))) return false;
      if (k != axis && reach != 0 && a.strides[k] >= reach && a.strides[k] % count != 0) return false;
    }
    return l.offset == (reach == 0 ? a.offset : a.offset % reach + a.offset / reach * (reach / count));
  }

  struct digest_key {
    std::size_t operator()(digest const& d) const { return static_cast<std::size_t>(d.low); }
  };
  op_graph const& original_;
  numbers const& was_;
  op_graph const& g_;
  numbers& now_;
  rewritten& rewrites_;
  std::unordered_map<digest, meaning, digest_key> known_;
  std::vector<std::pair<digest, value_id>> originals_;  // by number
  // of the op at hand
  std::vector<std::int32_t> in_axis_, out_axis_;
  combine how_ = combine::concat;
};

}  // namespace neap::inline v0::detail::verifying
