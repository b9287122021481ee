// Which records may touch where one ends and the other begins? Where both sides are full, those that share a group
// (memory/exact/boundary_groups.hpp). Likely and no more: what is not found among packings with such neighbours may yet
// exist.
#pragma once

#include <neap/memory/exact/boundary_groups.hpp>
#include <neap/memory/exact/search.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

/// The records that begin at a boundary have a bit each; those that end there allow some of them, never none.
/// Where nothing is known they allow all.
struct neighbours {
  static constexpr double most_chance = 0.25;      // a grouping that chance explains better is not known
  static constexpr double certain_chance = 0.002;  // one that it hardly explains

  std::vector<std::uint64_t> allows, bit;  ///< of each record
  std::vector<double> chance;              ///< of each boundary: how likely it is otherwise
  std::uint32_t full = 0, known = 0;       ///< boundaries between full sections, and those of them where all is known

  constexpr explicit neighbours(std::size_t records, std::uint32_t sections = 0)
      : allows(records, ~std::uint64_t{0}),
        bit(records, 1),
        chance(sections + 1, 0) {}

  constexpr bool may_touch(std::uint32_t ending, std::uint32_t beginning) const {
    return (allows[ending] & bit[beginning]) != 0;
  }
};

/// The likely neighbours at each boundary between two sections that are filled to the capacity. For lives without holes.
template <class Unit>
constexpr neighbours likely_neighbours(search_ground<Unit> const& g, std::int64_t capacity) {
  neighbours found(g.count(), g.sections);
  boundary_groups groups_of;
  std::vector<Unit> load(g.sections, 0);
  std::vector<std::vector<std::uint32_t>> ending(g.sections + 1), beginning(g.sections + 1);
  for (std::uint32_t i = 0; i < g.count(); ++i) {
    for (auto s = g.hull[i].begin; s < g.hull[i].end; ++s) load[s] += g.size[i];
    beginning[g.hull[i].begin].push_back(i), ending[g.hull[i].end].push_back(i);
  }
  for (std::uint32_t s = 1; s < g.sections; ++s) {
    if (load[s - 1] != capacity || load[s] != capacity) continue;
    ++found.full;
    auto const handed = groups_of(g.size, Unit{1}, ending[s], beginning[s]);
    if (handed.groups == 0 || handed.chance > neighbours::most_chance) continue;
    ++found.known;
    found.chance[s] = handed.chance;
    for (std::size_t k = 0; k < ending[s].size(); ++k) found.allows[ending[s][k]] = handed.shares[k];
    for (std::size_t k = 0; k < beginning[s].size(); ++k) found.bit[beginning[s][k]] = std::uint64_t{1} << k;
  }
  return found;
}

}  // namespace neap::inline v0::detail
