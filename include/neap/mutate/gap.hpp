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

namespace neap { inline namespace v0 {

/// A storage that is alive but untouched at a position.
struct gap {
  storage_id storage = nothing<storage_id>;
  std::uint32_t left = 0;    // the last position before that touches it
  std::uint32_t resume = 0;  // the first position after that does
  friend bool operator==(gap const&, gap const&) = default;
};

/// What a load gives back of a storage, all that it holds: one dense tensor. It is the first value, or of a buffer that is
/// filled in parts a view of the first value of its last part. Nothing: a load can not.
inline value_id value_that_leaves(op_graph const& g, storage_id s) {
  if (!flow::is_swappable(g, s)) return nothing<value_id>;
  auto const is_all = [&](value_id v) {
    return g.layout(v) == tensor_layout::dense(g.type(v)) && g.bytes(s) == g.type(v).bytes();
  };
  value_id const first = g.record(s).first;
  if (is_all(first)) return first;
  if (g.overwrites(first) == nothing<value_id>) return nothing<value_id>;
  for (auto const& u : g.uses(first))
    for (auto v : g.outputs(u.op))
      if (g.storage(v) == s && is_all(v)) return v;
  return nothing<value_id>;
}
/// Whether a load can give back all that a storage holds: its first value.
inline bool can_leave(op_graph const& g, storage_id s) { return value_that_leaves(g, s) == g.record(s).first; }

namespace detail {

/// Which storages may leave memory for a while: those that are never updated and never kept, made by an op, or donated.
enum class movable_kind : std::uint8_t { made, made_or_donated };
std::vector<bool> movable_storages(op_graph const& g, movable_kind which = movable_kind::made);

/// The gaps that span `position`, in the order of their storages. O(ops + edges).
plain_vector<gap> gaps_at(op_graph const& g, schedule const& order, simulation const& result, std::uint32_t position,
                          movable_kind which = movable_kind::made);

/// The position from which on a value can be stored.
inline std::uint32_t stored_from(op_graph const& g, table<op_id, std::uint32_t> const& at, value_id v) {
  auto const o = g.producer(v);
  return o == nothing<op_id> ? 0 : at[o] + 1;
}

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/gap.ipp>
#endif
