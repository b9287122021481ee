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

#include <neap/core/plain_vector.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/dimension_graph.hpp>
#include <neap/mutate/serves_parts.hpp>
#include <neap/plan/schedule.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

/// How the values and ops of a graph take part in cutting along one component, into a number of parts that divides
/// `grain`. Axes of one component may have several extents (a batch of 4 is joined with its 4 x 512 tokens): ops with an
/// axis that `grain` does not divide are not cut. Parts are cut only where `again` says so, and parts of parts never.
class fission_axes {
 public:
  /// O(values + ops of the component + their links).
  fission_axes(op_graph const& g, dimension_graph const& dims, component_id c, std::int64_t grain, bool again = false);

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
  void judge(op_graph const& g, op_id o);

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
  fission_region(op_graph const& g, schedule const& order, table<op_id, std::uint32_t> const& at,
                 fission_axes const& axes, std::uint32_t first, std::uint32_t last);

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

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/fission_region.ipp>
#endif
