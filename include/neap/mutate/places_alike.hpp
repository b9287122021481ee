// Where fission has cut a program into parts, all parts are alike: what gains in one of them gains only if the others do
// the same. Here the places are found that stand in the other parts where a given one stands in its own.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/mutate/replay_facts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// A storage, and the first of its readers' positions that is meant.
struct late_place {
  storage_id storage = nothing<storage_id>;
  std::uint32_t resume = 0;
};

/// The places of all parts that are alike, by position: the same result of the same op, counted among its copies in each
/// part, and the reader of the same number. The given one is among them; alone, if its op is no part. What an op of another
/// part makes is left out where it is updated, kept, of another size, or read at more or fewer positions.
/// O(parts x copies of the op, and their readers).
plain_vector<late_place> places_alike(op_graph const& g, replay_facts const& facts, late_place const& given);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/places_alike.ipp>
#endif
