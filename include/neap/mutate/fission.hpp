// fission: a stretch of the order runs in parts, each on an equal piece along one axis, so that what lives inside is there
// one piece at a time. What leaves is put together in place: pieces are placed into the whole, partial results combined.
//
// MAGIS (ASPLOS'24) keeps such regions folded, as ops that hold a graph. Here the parts are ops of their own, so that order,
// recomputation, swapping, addresses and verification need to know nothing of them.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/mutate/fission_region.hpp>
#include <neap/mutate/late_readers.hpp>
#include <neap/mutate/mutator.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace neap::inline v0 {

namespace detail {

/// A value's layout when it is cut into n pieces along an axis, in a storage that holds one piece. Strides of axes outside
/// the cut one shrink with it. False if they do not divide.
NEAP_ONCE bool cut_layout(tensor_layout& l, int axis, std::int64_t n) {
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

/// Builds the graph and the order in which a region runs in parts.
class part_builder {
 public:
  part_builder(op_graph const& g, schedule const& order, table<op_id, std::uint32_t> const& at,
               fission_axes const& axes, fission_region const& region, std::int64_t parts)
      : g_(g),
        order_(order),
        at_(at),
        axes_(axes),
        region_(region),
        parts_(parts),
        fission_(g.fission_count()),
        edit_(g),
        remembered_(g.op_count(), no_id),
        piece_(g.value_count(), nothing<value_id>),
        slice_(g.value_count(), nothing<value_id>),
        whole_(g.value_count(), nothing<value_id>),
        is_for_others_(g.op_count(), 0) {}

  /// False if the region turns out not to be cuttable: an operator refuses the pieces.
  NEAP_ONCE bool build() {
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
  /// After build().
  template <class G>
  edited<G> finish() && {
    std::vector<std::uint32_t> renumbered(edit_.graph().op_count());
    std::vector<bool> gone(renumbered.size());
    for (auto p = region_.first(); p <= region_.last(); ++p)
      if (region_.at(p) == fission_region::place::inside) gone[index(order_[p])] = true;
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < renumbered.size(); ++i) renumbered[i] = gone[i] ? no_id : n++;
    for (auto& o : out_.order) o = op_id{renumbered[index(o)]};
    return {G(std::move(edit_).finish()), std::move(out_)};
  }

 private:
  bool is_inside(op_id o) const { return o != nothing<op_id> && region_.is_inside(at_[o]); }
  void append(fission_region::place where) {
    for (auto p = region_.first(); p <= region_.last(); ++p)
      if (region_.at(p) == where) out_.order.push_back(order_[p]);
  }
  /// Ops added since `from` come next in the order.
  void append_new(std::size_t from) {
    for (auto i = from; i < edit_.graph().op_count(); ++i) out_.order.push_back(id_at<op_id>(i));
  }

  NEAP_ONCE void find_what_leaves() {
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

  /// What a part reads where the whole op reads its input number i; nothing if it cannot be had.
  NEAP_ONCE value_id part_of(op_id o, std::size_t i) {
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

  NEAP_ONCE bool run_part(op_id o) {
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

  /// A part is cut into another number of parts than it is one of: so it is plain which pieces are whose.
  bool can_be_cut_again(op_id o) const {
    auto const p = g_.record(o).part;
    return p == nothing<part_id> || g_.part(p).count != parts_;
  }
  /// Which part of o runs.
  part_id row_of(op_id o) {
    auto const of = g_.record(o).part;
    for (auto const& r : rows_)
      if (r.of == of) return r.row;
    rows_.push_back({of, edit_.part_row({part_, parts_, of})});
    return rows_.back().row;
  }

  /// The type that output v of a part has.
  NEAP_ONCE bool piece_layout(value_id v, tensor_layout& l) const {
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
  /// The value that made the storage in which v lies.
  value_id base_of(value_id v) const { return g_.record(g_.storage(v)).first; }

  NEAP_ONCE op_id add_opaque(op_id o) {
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
  /// How a part of an opaque op may be cut again: as the op, but which axes of a reshape go together depends on extents.
  plain_vector<dim_link> links_of_part(op_id o) const {
    auto links = g_.links(o);
    if (op::detail::relates_as_reshape(span_of(links), g_.layout(g_.inputs(o)[0]).type.dims,
                                       g_.type(g_.outputs(o).front()).dims))
      links = op::detail::reshape_links(edit_.layout_of(inputs_[0]).type.dims, rules_[0].layout.type.dims);
    return links;
  }

  NEAP_ONCE op_id add_known(op_id o) {
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
      f.cut(room.data(),
            {span_of(in_layouts_), span_of(out_layouts_), span_of(in_axes_), span_of(out_axes_), part_, parts_});
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
  /// Copies of those inputs whose elements do not follow one another. False if there are none.
  bool make_dense() {
    bool any = false;
    for (auto& v : inputs_)
      if (!edit_.layout_of(v).is_dense()) {
        auto const pins = edit_.graph().pins(v);
        v = edit_.add(op::copy{}, {v}).front(), any = true;
        if (!pins.empty()) edit_.add_pins(v, pins);
      }
    return any;
  }

  /// A piece of v, or the whole in the making, has v's pins.
  void pin_as(value_id v, value_id piece) {
    if (!g_.pins(v).empty()) edit_.add_pins(piece, g_.pins(v));
  }

  /// Puts the piece of v just made to what there is of the whole.
  NEAP_ONCE bool join(op_id o, value_id v) {
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

  /// Readers outside read the wholes.
  NEAP_ONCE bool finish_wholes() {
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

  op_graph const& g_;
  schedule const& order_;
  table<op_id, std::uint32_t> const& at_;
  fission_axes const& axes_;
  fission_region const& region_;
  std::int64_t parts_, part_ = 0;
  struct row_of_part {
    part_id of, row;
  };
  plain_vector<row_of_part> rows_;  // of the part at hand
  std::uint32_t fission_;           // its number
  graph_editor edit_;
  schedule out_;
  table<op_id, std::uint32_t> remembered_;  // rows of those that have been cut
  table<value_id, value_id> piece_;         // of the part at hand: what stands for a value made inside
  table<value_id, value_id> slice_;         // and for one made outside that is cut
  table<value_id, value_id> whole_;         // what leaves, as far as it has been put together
  plain_vector<bool> leaves_, needed_;
  table<op_id, std::uint8_t> is_for_others_;  // views that readers outside alone read
  // scratch
  plain_vector<value_id> inputs_, sliced_;
  plain_vector<output_rule> rules_;
  plain_vector<tensor_layout> in_layouts_, out_layouts_;
  plain_vector<std::int32_t> in_axes_, out_axes_;
};

}  // namespace detail

/// Run the ops at positions [first, last] in equal parts along the component that an axis of a value lies in. What is a part
/// of another fission already runs as it is, or, `again`, in parts of its own.
struct fission_of {
  value_axis along{};
  std::uint32_t first = 0, last = 0;
  std::int64_t parts = 2;
  bool again = false;

  friend bool operator==(fission_of const&, fission_of const&) = default;

  template <class G>
  std::optional<edited<G>> apply(candidate<G> const& c) const {
    dimension_graph const dims(c.graph);
    return apply(c, positions(c.order), dims);
  }
  /// The same with what is known of the candidate already.
  template <class G>
  std::optional<edited<G>> apply(candidate<G> const& c, table<op_id, std::uint32_t> const& at,
                                 dimension_graph const& dims) const {
    if (first > last || last >= c.order.size() || parts < 2) return std::nullopt;
    fission_axes const axes(c.graph, dims, dims.component(along.value, along.axis), parts, again);
    fission_region const region(c.graph, c.order, at, axes, first, last);
    if (region.inside_count() == 0) return std::nullopt;
    detail::part_builder build(c.graph, c.order, at, axes, region, parts);
    if (!build.build()) return std::nullopt;
    return std::move(build).template finish<G>();
  }

  template <class G>
  std::string describe(candidate<G> const& c) const {
    return detail::text_of({"run positions ", first, " to ", last, " in ", parts, " parts along axis ", along.axis,
                            " of ", c.graph.type(along.value)});
  }
};

}  // namespace neap::inline v0
