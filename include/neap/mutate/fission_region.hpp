// What of a stretch of an order runs in parts when it is cut along a component of the dimension graph. Nothing is refused:
// ops that cannot be cut, or wait for what is whole only when all parts are done, are left out and run before the parts or
// after them.
//
//   order      a  b  c  d  e  f  g          stretch [b, f], c reads nothing of the stretch, f sums along the cut axis
//   becomes    a  c  b0 d0 e0 b1 d1 e1 g    (f's partial results are combined as parts are made)
//
// After MAGIS's fission (ASPLOS'24), which takes what a dominator dominates and gives up where two inputs depend on each
// other; here any stretch will do.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/dimension_graph.hpp>
#include <neap/mutate/serves_parts.hpp>
#include <neap/plan/schedule.hpp>

#include <algorithm>
#include <cstdint>

namespace neap::inline v0 {

/// How the values and ops of a graph take part in cutting along one component, into a number of parts that divides
/// `grain`. Axes of one component may have several extents (a batch of 4 is joined with its 4 x 512 tokens): ops with an
/// axis that `grain` does not divide are not cut. Parts are cut only where `again` says so, and parts of parts never.
class fission_axes {
 public:
  /// O(values + ops of the component + their links).
  NEAP_ONCE fission_axes(op_graph const& g, dimension_graph const& dims, component_id c, std::int64_t grain,
                         bool again = false)
      : grain_(grain),
        again_(again),
        axis_(g.value_count(), std::int8_t{-1}),
        whole_(g.op_count(), 0),
        role_(g.op_count(), std::uint8_t{0}) {
    for (auto const& a : dims.axes(c)) {
      auto& mine = axis_[a.value];
      mine = mine == -1 ? static_cast<std::int8_t>(a.axis) : two_axes;
    }
    for (auto const& m : dims.members(c)) judge(g, m.op);
  }

  /// Parts may be cut again.
  bool again() const { return again_; }
  /// Along which axis a value is cut; -1: it is whole in every part.
  int axis(value_id v) const { return axis_[v]; }
  /// The op can run on pieces.
  bool can_cut(op_id o) const { return role_[o] != 0; }
  /// An output of an op that runs on pieces is a partial result, as large as the whole, that waits for the others.
  bool is_partial(op_graph const& g, op_id o, value_id out) const {
    return role_[o] > 1 && how(o) != combine::same && axis_[out] < 0 && g.producer(out) == o;
  }
  /// Input number i of an op is cut in a part; otherwise a part reads it whole, which must then be there.
  bool cuts_input(op_graph const& g, op_id o, std::size_t i) const {
    return axis_[g.inputs(o)[i]] >= 0 && (i < 64 ? whole_[o] >> i & 1 : 0) == 0;
  }
  /// Input number i has an axis that is cut, and the op reads it whole.
  bool needs_whole(op_graph const& g, op_id o, std::size_t i) const {
    return axis_[g.inputs(o)[i]] >= 0 && !cuts_input(g, o, i);
  }
  /// How the partial results of an op are combined.
  combine how(op_id o) const { return static_cast<combine>(role_[o] - 1); }

 private:
  static constexpr std::int8_t two_axes = -2;

  /// One loop of the op runs along the component, and every output is a piece or can be combined.
  NEAP_ONCE void judge(op_graph const& g, op_id o) {
    if (!g.may_cut(o) || serves_parts(g, o) || flow::stream(g, o) != op_stream::compute || g.as<op::wait>(o)) return;
    if (auto const p = g.record(o).part; p != nothing<part_id> && (!again_ || g.part(p).of != nothing<part_id>)) return;
    auto const in = g.inputs(o);
    auto const out = g.outputs(o);
    if (auto const* x = g.as<op::opaque>(o); x && (!x->pure || x->placeholder)) return;
    std::size_t views = 0;
    for (auto v : out) {
      auto const& r = g.record(v);
      // What is put together again has its dense size; the op that overwrites it needs the same.
      if (g.overwrites(v) != nothing<value_id> ||
          (g.is_overwritten(r.storage) && g.bytes(r.storage) != g.type(v).bytes()))
        return;
      if (r.alias == alias_kind::update || axis_[v] == two_axes || (r.alias == alias_kind::view && r.of < 0)) return;
      views += r.alias == alias_kind::view;
    }
    if (out.empty() || (views != 0 && views != out.size())) return;
    for (auto v : in)
      if (axis_[v] == two_axes) return;
    auto const links = g.links(o);
    // Ends of links in the component: inputs, outputs, reduced loops. One loop if they all hang together.
    auto const n = static_cast<std::uint32_t>(in.size() + out.size());
    auto const end_of = [&](dim_link const& l) {
      return l.output >= 0 ? static_cast<std::uint32_t>(in.size()) + static_cast<std::uint32_t>(l.output)
                           : n + static_cast<std::uint32_t>(l.out_axis);
    };
    union_find together(n + 64);
    plain_vector<bool> linked(n + 64, false);
    auto how = combine::concat;
    for (auto const& l : links) {
      auto const v = in[static_cast<std::size_t>(l.input)];
      if (axis_[v] != l.in_axis) continue;
      if (l.output < 0) {
        if (l.how == combine::concat || (how != combine::concat && how != l.how) || l.out_axis >= 64) return;
        how = l.how;
      } else if (axis_[out[static_cast<std::size_t>(l.output)]] != l.out_axis) {
        return;
      }
      if (g.type(v).dims[l.in_axis] % grain_ != 0) return;
      if (l.output >= 0 && g.type(out[static_cast<std::size_t>(l.output)]).dims[l.out_axis] % grain_ != 0) return;
      auto const from = static_cast<std::uint32_t>(l.input);
      linked[from] = linked[end_of(l)] = true;
      together.join(from, end_of(l));
    }
    std::uint32_t first = no_id;
    for (std::uint32_t k = 0; k < n + 64; ++k) {
      if (!linked[k]) {
        if (k >= in.size() || axis_[in[k]] < 0) continue;
        if (k >= 64) return;
        whole_[o] |= std::uint64_t{1} << k;  // it has an axis in the component, but the op does not cut it there
        continue;
      }
      if (first == no_id) first = k;
      else if (together.find(k) != together.find(first)) return;
    }
    if (first == no_id) return;
    bool partial = false;
    for (std::size_t j = 0; j < out.size(); ++j) {
      if (linked[in.size() + j]) continue;
      if (axis_[out[j]] >= 0 || how == combine::concat || views != 0) return;
      partial = true;
    }
    role_[o] = partial ? static_cast<std::uint8_t>(1 + static_cast<int>(how)) : std::uint8_t{1};
  }

  std::int64_t grain_;
  bool again_;
  table<value_id, std::int8_t> axis_;
  table<op_id, std::uint64_t> whole_;  // inputs that have an axis in the component and are read whole, as bits
  table<op_id, std::uint8_t> role_;  // 0: cannot be cut; 1: its outputs are pieces; more: 1 + how partial ones combine
};

/// Which ops of a stretch of positions run when.
class fission_region {
 public:
  enum class place : std::uint8_t { before, inside, after };

  /// Positions [first, last] of the order. O(ops and edges there).
  NEAP_ONCE fission_region(op_graph const& g, schedule const& order, table<op_id, std::uint32_t> const& at,
                           fission_axes const& axes, std::uint32_t first, std::uint32_t last)
      : first_(first),
        place_(last - first + 1, place::before) {
    for (auto p = first; p <= last; ++p) {
      auto const o = order[p];
      bool on_pieces = false, waits = false;
      auto const look = [&](op_id x) -> place {
        auto const q = at[x];
        return q < first || q >= p ? place::before : place_[q - first];
      };
      for (std::size_t i = 0; i < g.inputs(o).size(); ++i) {
        auto const v = g.inputs(o)[i];
        auto const x = g.producer(v);
        if (x == nothing<op_id>) continue;
        auto const where = look(x);
        if (where == place::inside)
          (axes.is_partial(g, x, v) || (axes.can_cut(o) && axes.needs_whole(g, o, i)) ? waits : on_pieces) = true;
        waits |= where == place::after;
      }
      for (auto x : g.order_after(o)) waits |= look(x) != place::before;
      auto& mine = place_[p - first];
      if (!waits && axes.can_cut(o)) mine = place::inside, ++inside_;
      else if (waits || on_pieces) mine = place::after;
    }
  }

  std::uint32_t first() const { return first_; }
  std::uint32_t last() const { return first_ + static_cast<std::uint32_t>(place_.size()) - 1; }
  std::size_t inside_count() const { return inside_; }
  /// Of a position of the stretch.
  place at(std::uint32_t position) const { return place_[position - first_]; }
  bool is_inside(std::uint32_t position) const {
    return position >= first_ && position - first_ < place_.size() && at(position) == place::inside;
  }

 private:
  std::uint32_t first_;
  std::size_t inside_ = 0;
  plain_vector<place> place_;
};

}  // namespace neap::inline v0
