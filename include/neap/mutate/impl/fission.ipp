// The bodies of <neap/mutate/fission.hpp>.
#pragma once

#include <neap/mutate/fission.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool cut_layout(tensor_layout& l, int axis, std::int64_t n) {
  auto const stride = l.strides[axis], span = stride * l.type.dims[axis];
  if (l.type.dims[axis] % n != 0) return false;
  l.type.dims[axis] /= n;
  if (stride == 0) return true;
  for (int k = 0; k < l.type.rank(); ++k) {
    if (k == axis || l.strides[k] < span) continue;
    if (l.strides[k] % n != 0) return false;
    l.strides[k] /= n;
  }
  l.offset = l.offset / span * (span / n) + l.offset % span;
  return true;
}

NEAP_FUNC bool part_builder::build() {
  find_what_leaves();
  auto const count = static_cast<std::uint32_t>(order_.size());
  out_.order.reserve(count + region_.inside_count() * static_cast<std::size_t>(2 * parts_));
  for (std::uint32_t p = 0; p < region_.first(); ++p) out_.order.push_back(order_[p]);
  append(fission_region::place::before);
  for (part_ = 0; part_ < parts_; ++part_) {
    rows_.clear();
    for (auto v : sliced_) slice_[v] = nothing<value_id>;
    sliced_.clear();
    for (auto p = region_.first(); p <= region_.last(); ++p)
      if (region_.at(p) == fission_region::place::inside && !is_for_others_[order_[p]] && !run_part(order_[p]))
        return false;
  }
  if (rows_.empty()) return false;
  if (!finish_wholes()) return false;
  append(fission_region::place::after);
  for (auto p = region_.last() + 1; p < count; ++p) out_.order.push_back(order_[p]);
  for (auto p = region_.first(); p <= region_.last(); ++p)
    if (region_.at(p) == fission_region::place::inside) edit_.remove(order_[p]);
  return true;
}

NEAP_FUNC void part_builder::find_what_leaves() {
  leaves_.assign(g_.value_count(), false);
  for (auto p = region_.first(); p <= region_.last(); ++p) {
    if (region_.at(p) != fission_region::place::inside) continue;
    for (auto v : g_.outputs(order_[p])) {
      bool out = g_.is_kept(v);
      for (auto const& u : g_.uses(v)) out = out || !is_inside(u.op);
      if (out) leaves_[index(v)] = true;
    }
  }
  // A view that leaves is made again of what it is a view of, which then leaves. Where no part reads it, none makes it.
  needed_ = leaves_;
  for (auto p = region_.last() + 1; p-- > region_.first();) {
    auto const o = order_[p];
    if (region_.at(p) != fission_region::place::inside || !flow::is_view(g_, o)) continue;
    bool any = false, read = false;
    for (auto v : g_.outputs(o)) {
      any = any || needed_[index(v)];
      for (auto const& u : g_.uses(v)) read = read || (is_inside(u.op) && !is_for_others_[u.op]);
    }
    is_for_others_[o] = any && !read;
    if (any)
      for (auto v : g_.inputs(o))
        if (is_inside(g_.producer(v))) needed_[index(v)] = true;
  }
}

NEAP_FUNC value_id part_builder::part_of(op_id o, std::size_t i) {
  auto const v = g_.inputs(o)[i];
  if (is_inside(g_.producer(v))) return piece_[v];
  if (!axes_.cuts_input(g_, o, i)) return v;
  auto const axis = axes_.axis(v);
  if (slice_[v] != nothing<value_id>) return slice_[v];
  auto const extent = g_.type(v).dims[axis];
  if (extent % parts_ != 0) return nothing<value_id>;
  auto const n = extent / parts_;
  slice_[v] = edit_.add(op::slice{axis, part_ * n, (part_ + 1) * n}, {v}).front();
  sliced_.push_back(v);
  return slice_[v];
}

NEAP_FUNC bool part_builder::run_part(op_id o) {
  auto const before = edit_.graph().op_count();
  inputs_.clear();
  for (std::size_t i = 0; i < g_.inputs(o).size(); ++i) {
    auto const piece = part_of(o, i);
    if (piece == nothing<value_id>) return false;
    inputs_.push_back(piece);
  }
  op_id made = nothing<op_id>;
  if (!can_be_cut_again(o)) return false;
  if (g_.as<op::opaque>(o)) made = add_opaque(o);
  else made = add_known(o);
  if (made == nothing<op_id>) return false;
  edit_.set_origin(made, g_.origin(o));
  edit_.set_part(made, row_of(o));
  if (g_.record(o).rewritten) edit_.set_rewritten(made);
  if (remembered_[o] == no_id) remembered_[o] = edit_.remember_whole(o, fission_);
  edit_.set_whole(made, remembered_[o]);
  edit_.set_name_of(made, o);
  if (!g_.pins(o).empty()) edit_.add_pins(made, g_.pins(o).of_op());
  std::size_t j = 0;
  for (auto v : g_.outputs(o)) {
    piece_[v] = edit_.output(made, static_cast<int>(j++));
    pin_as(v, piece_[v]);
    if (!needed_[index(v)] || flow::is_view(g_, o)) continue;
    if (!join(o, v)) return false;
  }
  append_new(before);
  return true;
}

NEAP_FUNC bool part_builder::piece_layout(value_id v, tensor_layout& l) const {
  l = g_.layout(v);
  auto const axis = axes_.axis(v);
  if (axis < 0) return true;  // a partial result
  auto const& r = g_.record(v);
  if (r.alias == alias_kind::view && !is_inside(g_.producer(base_of(v)))) {  // in a storage that is whole
    if (l.type.dims[axis] % parts_ != 0) return false;
    l.type.dims[axis] /= parts_;
    l.offset += part_ * l.type.dims[axis] * l.strides[axis];
    return true;
  }
  return cut_layout(l, axis, parts_);
}

NEAP_FUNC op_id part_builder::add_opaque(op_id o) {
  auto what = *g_.as<op::opaque>(o);
  rules_.clear();
  double in_whole = 0, in_part = 0, out_whole = 0, out_part = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    in_whole += touched_bytes(g_.layout(g_.inputs(o)[i]));
    in_part += touched_bytes(edit_.layout_of(inputs_[i]));
  }
  for (auto v : g_.outputs(o)) {
    auto const& r = g_.record(v);
    output_rule rule{{}, r.alias, r.of, -1};
    if (!piece_layout(v, rule.layout)) return nothing<op_id>;
    if (r.alias == alias_kind::fresh) {
      auto const bytes = g_.bytes(r.storage);
      rule.bytes = axes_.axis(v) < 0 ? bytes : (bytes + parts_ - 1) / parts_;
    }
    out_whole += touched_bytes(g_.layout(v)), out_part += touched_bytes(rule.layout);
    rules_.push_back(rule);
  }
  if (!what.is_part()) what.whole_flops = what.flops, what.whole_bytes = what.read + what.written;
  what.flops /= static_cast<double>(parts_);
  // Inputs are read in part, or whole by each part; what is read more than once (gathered rows), as much as is made of it.
  auto const again = std::max(what.read - in_whole, 0.0);
  if (in_whole > 0) what.read = (what.read - again) * (in_part / in_whole) + again / static_cast<double>(parts_);
  if (out_whole > 0) what.written *= out_part / out_whole;
  return edit_.add_opaque_alike(what, span_of(inputs_), span_of(rules_), span_of(links_of_part(o)));
}

NEAP_FUNC op_id part_builder::add_known(op_id o) {
  auto const& f = g_.facets(o);
  plain_vector<std::max_align_t> room(f.size / sizeof(std::max_align_t) + 1);
  if (f.size) std::memcpy(static_cast<void*>(room.data()), g_.attributes(o), f.size);
  if (f.cut) {
    in_layouts_.clear(), out_layouts_.clear(), in_axes_.clear(), out_axes_.clear();
    for (std::size_t i = 0; i < g_.inputs(o).size(); ++i) {
      auto const v = g_.inputs(o)[i];
      in_layouts_.push_back(g_.layout(v)), in_axes_.push_back(axes_.cuts_input(g_, o, i) ? axes_.axis(v) : -1);
    }
    for (auto v : g_.outputs(o)) out_layouts_.push_back(g_.layout(v)), out_axes_.push_back(axes_.axis(v));
    f.cut(room.data(), {span_of(in_layouts_), span_of(out_layouts_), span_of(in_axes_), span_of(out_axes_), part_,
                        part_ + 1, parts_});
  }
  for (bool const dense : {false, true}) {
    if (dense && !make_dense()) return nothing<op_id>;
    try {
      edit_.emit({&f, f.size ? room.data() : g_.attributes(o)}, span_of(inputs_));
    } catch (error const&) { continue; }  // perhaps it wants its pieces dense
    op_id const made = id_at<op_id>(edit_.graph().op_count() - 1);
    if (edit_.graph().outputs(made).size() != g_.outputs(o).size()) return nothing<op_id>;
    std::size_t j = 0;
    for (auto v : g_.outputs(o)) {
      auto expected = g_.type(v);
      if (auto const axis = axes_.axis(v); axis >= 0) expected.dims[axis] /= parts_;
      if (edit_.graph().type(edit_.output(made, static_cast<int>(j++))) != expected) return nothing<op_id>;
    }
    return made;
  }
  return nothing<op_id>;
}

NEAP_FUNC bool part_builder::join(op_id o, value_id v) {
  auto& whole = whole_[v];
  auto const axis = axes_.axis(v);
  if (axis < 0) {
    auto const how = axes_.how(o);
    if (whole == nothing<value_id>) whole = piece_[v];
    else if (how != combine::same)
      whole = edit_.add(op::combine_into{how == combine::mean ? combine::sum : how}, {whole, piece_[v]}).front();
    if (how == combine::mean && part_ + 1 == parts_)
      whole = edit_.add(op::mul_scalar{1 / static_cast<double>(parts_)}, {whole}).front();
    pin_as(v, whole);
    return true;
  }
  auto const& l = g_.layout(v);
  if (whole == nothing<value_id>) {
    op::blank room{l.type.dims, l.strides, l.type.element, g_.bytes(g_.storage(v))};
    if (l.offset != 0) return false;
    whole = edit_.add(room, {}).front();
  }
  whole = edit_.add(op::place{axis, part_ * (l.type.dims[axis] / parts_)}, {whole, piece_[v]}).front();
  pin_as(v, whole);
  return true;
}

NEAP_FUNC bool part_builder::finish_wholes() {
  auto const before = edit_.graph().op_count();
  for (auto p = region_.first(); p <= region_.last(); ++p) {
    auto const o = order_[p];
    if (region_.at(p) != fission_region::place::inside) continue;
    bool const view = flow::is_view(g_, o);
    bool any = false;
    for (auto v : g_.outputs(o)) any = any || needed_[index(v)];
    if (!any) continue;
    op_id again = nothing<op_id>;
    if (view) {
      again = edit_.clone(o);
      for (std::size_t i = 0; i < g_.inputs(o).size(); ++i)
        if (auto const v = g_.inputs(o)[i]; is_inside(g_.producer(v))) edit_.set_input(again, i, whole_[v]);
    }
    std::size_t j = 0;
    for (auto v : g_.outputs(o)) {
      auto const k = static_cast<int>(j++);
      if (view) whole_[v] = edit_.output(again, k);
      if (leaves_[index(v)]) edit_.replace_uses(v, whole_[v]);
    }
  }
  append_new(before);
  return true;
}

}  // namespace detail
}}  // namespace neap::v0
