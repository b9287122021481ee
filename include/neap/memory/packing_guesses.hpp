// Packings that are guessed, as a component of the exact planner. It pays on problems of little free memory in which sums
// of sizes agree at many moments, as those that are cut from a full rectangle. No measured training step is such a
// problem, so planners do without it by default.
//
//   memory_plan const plan = exact{.capacity = c, .guesser = &planar_packings}(records);
#pragma once

#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/feasibility_search.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/guess/planar_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace neap::inline v0 {

namespace detail {

inline std::unique_ptr<placement_search> make_planar_search(packing_problem const& p) {
  // Where boundaries are many, the right way falls behind at one of them.
  constexpr std::uint32_t most_sections = 512;
  if (p.sections > most_sections) return nullptr;
  return std::make_unique<planar_search>(p);
}
/// Its nodes are cheap beside those of searches, which grow dearer with the records.
inline std::int64_t planar_weight(std::size_t records) {
  return std::max<std::int64_t>(100, static_cast<std::int64_t>(records) * 2 / 3);
}

}  // namespace detail

/// Packings as planar networks (memory/guess/planar_search.hpp), for lives without gaps and free offsets.
inline constexpr packing_guesser planar_packings{detail::make_planar_search, detail::planar_weight};

}  // namespace neap::inline v0
