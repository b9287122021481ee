// offload: wherever an order's bytes pass a target, what is needed last leaves memory until then (Belady 1966, with a link
// that takes time): all swaps of an order at once, where `swap` makes one. Stores are issued right after what makes the
// value, so that they hide behind what follows; where bytes are needed before a store has ended, computations wait for it.
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/sort.hpp>
#include <neap/mutate/swap.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// A mutation. Loads stand right before their readers: schedule/refine.hpp advances them as memory allows.
struct offload {
  bytes_t target = 0;              // of the peak
  double bytes_per_second = 16e9;  // of the link
  double lead = 0;                 // what is loaded counts as back so many times its transfer before it is read

  friend bool operator==(offload const&, offload const&) = default;

  static constexpr bool judged_when_built = true;
  /// False if nothing need leave. O((ops + edges) log ops), and the edit.
  bool edit(candidate const& c, replay_facts const& facts, graph_edit& out) const;
  std::string describe(candidate const&) const {
    return detail::text_of({"move out what is needed last, down to ", target, " bytes"});
  }
};

namespace detail {

/// A value's absence from memory.
struct absence {
  storage_id storage;
  std::uint32_t left, from, resume;  // last read before; first position without it; first position that reads it again
};

/// What leaves memory, by resume. The storages in `may_leave` are considered.
plain_vector<absence> absences(op_graph const& g, schedule const& order, simulation const& result,
                               std::vector<bool> const& may_leave, offload const& how);

/// What a value can be loaded from already, and the position of the store; of a value that was loaded, before it was.
struct known_store {
  value_id handle = nothing<value_id>;
  std::uint32_t at = 0;
};
known_store first_store(op_graph const& g, replay_facts const& facts, value_id whole);

}  // namespace detail
}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/offload.ipp>
#endif
