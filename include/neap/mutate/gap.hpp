// Gaps: storages that are alive at a position only because something reads them later. They are what rematerialising
// and swapping work on.
//
//   position   0 . . . . first ~~~ read ~~~~~ [ position ] ~~~~~~~~ resume ~~~ read
//                                        \___________ not accessed ______/
#pragma once

#include <neap/core/compiled_once.hpp>
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
NEAP_ONCE std::vector<bool> movable_storages(op_graph const& g) {
  std::vector<bool> movable(g.storage_count());
  for (auto s : g.storages()) movable[index(s)] = !g.is_source(s) && g.bytes(s) > 0;
  for (auto v : g.values())
    if (g.record(v).alias == alias_kind::update) movable[index(g.storage(v))] = false;
  for (auto v : g.kept()) movable[index(g.storage(v))] = false;
  return movable;
}

/// The gaps that span `position`, in the order of their storages. O(ops + edges).
NEAP_ONCE plain_vector<gap> gaps_at(op_graph const& g, schedule const& order, simulation const& result,
                                    std::uint32_t position) {
  auto const movable = movable_storages(g);
  std::vector<std::uint32_t> left(g.storage_count(), no_id), resume(g.storage_count(), no_id);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    auto const see = [&](value_id v) {
      auto const s = index(g.storage(v));
      if (!movable[s]) return;
      if (i <= position) left[s] = i;
      else if (resume[s] == no_id) resume[s] = i;
    };
    for (auto v : g.inputs(order[i])) see(v);
    for (auto v : g.outputs(order[i])) see(v);
  }
  plain_vector<gap> gaps;
  for (auto s : g.storages()) {
    auto const k = index(s);
    if (left[k] == no_id || left[k] == position || resume[k] == no_id) continue;
    if (result.takes_over[s] != nothing<storage_id> && result.live[s].first > position) continue;
    gaps.push_back({s, left[k], resume[k]});
  }
  return gaps;
}

}  // namespace detail

}  // namespace neap::inline v0
