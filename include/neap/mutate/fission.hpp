// fission: a stretch of the order runs in parts, each on an equal piece along one axis, so that what lives inside is there
// one piece at a time. What leaves is put together in place: pieces are placed into the whole, partial results combined.
//
// MAGIS (ASPLOS'24) keeps such regions folded, as ops that hold a graph. Here the parts are ops of their own, so that order,
// recomputation, swapping, addresses and verification need to know nothing of them.
#pragma once

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

namespace neap { inline namespace v0 {

namespace detail {

/// A value's layout when it is cut into n pieces along an axis, in a storage that holds one piece. Strides of axes outside
/// the cut one shrink with it. False if they do not divide.
bool cut_layout(tensor_layout& l, int axis, std::int64_t n);

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
  bool build();
  /// After build().
  edited finish() && {
    std::vector<std::uint32_t> renumbered(edit_.graph().op_count());
    std::vector<bool> gone(renumbered.size());
    for (auto p = region_.first(); p <= region_.last(); ++p)
      if (region_.at(p) == fission_region::place::inside) gone[index(order_[p])] = true;
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < renumbered.size(); ++i) renumbered[i] = gone[i] ? no_id : n++;
    for (auto& o : out_.order) o = op_id{renumbered[index(o)]};
    return {op_graph(std::move(edit_).finish()), std::move(out_)};
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

  void find_what_leaves();

  /// What a part reads where the whole op reads its input number i; nothing if it cannot be had.
  value_id part_of(op_id o, std::size_t i);

  bool run_part(op_id o);

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
  bool piece_layout(value_id v, tensor_layout& l) const;
  /// The value that made the storage in which v lies.
  value_id base_of(value_id v) const { return g_.record(g_.storage(v)).first; }

  op_id add_opaque(op_id o);
  /// How a part of an opaque op may be cut again: as the op, but which axes of a reshape go together depends on extents.
  plain_vector<dim_link> links_of_part(op_id o) const {
    auto links = g_.links(o);
    if (op::detail::relates_as_reshape(span_of(links), g_.layout(g_.inputs(o)[0]).type.dims,
                                       g_.type(g_.outputs(o).front()).dims))
      links = op::detail::reshape_links(edit_.layout_of(inputs_[0]).type.dims, rules_[0].layout.type.dims);
    return links;
  }

  op_id add_known(op_id o);
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
  bool join(op_id o, value_id v);

  /// Readers outside read the wholes.
  bool finish_wholes();

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

  std::optional<edited> apply(candidate const& c) const {
    dimension_graph const dims(c.graph);
    return apply(c, positions(c.order), dims);
  }
  /// The same with what is known of the candidate already.
  std::optional<edited> apply(candidate const& c, table<op_id, std::uint32_t> const& at,
                              dimension_graph const& dims) const {
    if (first > last || last >= c.order.size() || parts < 2) return std::nullopt;
    fission_axes const axes(c.graph, dims, dims.component(along.value, along.axis), parts, again);
    fission_region const region(c.graph, c.order, at, axes, first, last);
    if (region.inside_count() == 0) return std::nullopt;
    detail::part_builder build(c.graph, c.order, at, axes, region, parts);
    if (!build.build()) return std::nullopt;
    return std::move(build).finish();
  }

  std::string describe(candidate const& c) const {
    return detail::text_of({"run positions ", first, " to ", last, " in ", parts, " parts along axis ", along.axis,
                            " of ", c.graph.type(along.value)});
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/fission.ipp>
#endif
