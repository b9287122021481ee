// Gaps: storages that are alive at a position only because something reads them later. They are what rematerialising
// and swapping work on.
//
//   position   0 . . . . first ~~~ read ~~~~~ [ position ] ~~~~~~~~ resume ~~~ read
//                                        \___________ not accessed ______/
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <vector>

namespace neap::inline v0 {

/// A storage that is alive but untouched at a position.
struct gap {
  storage_id storage = nothing<storage_id>;
  std::uint32_t left = 0;    // the last position before that touches it
  std::uint32_t resume = 0;  // the first position after that does
  friend bool operator==(gap const&, gap const&) = default;
};

/// Whether a load can give back all that a storage holds: one dense tensor.
template <class G>
bool can_leave(G const& g, storage_id s) {
  if (!flow::is_swappable(g, s)) return false;
  value_id const whole = g.record(s).first;
  return g.layout(whole) == tensor_layout::dense(g.type(whole)) && g.bytes(s) == g.type(whole).bytes();
}

namespace detail {

/// Whether a storage may leave memory for a while: made by an op, never updated, never kept.
std::vector<bool> movable_storages(op_graph const& g);

/// The gaps that span `position`, in the order of their storages. O(ops + edges).
plain_vector<gap> gaps_at(op_graph const& g, schedule const& order, simulation const& result, std::uint32_t position);

}  // namespace detail

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/gap.ipp>
#endif
