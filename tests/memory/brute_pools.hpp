// Assignments of a few records to a few pools, all of them tried, for the tests of pool planners.
#pragma once

#include "brute_force.hpp"

#include <neap/memory/forms/pools.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap_memory_test {

inline constexpr int max_pools = 3;

/// The least cost of an assignment in which every pool takes its records, or -1. `takes(pool, mask of records)`.
template <class Record, class Takes>
double cheapest(std::vector<Record> const& records, std::vector<neap::memory_pool> const& pools, Takes&& takes) {
  double best = -1;
  for (std::size_t j = 0; j < pools.size(); ++j)
    if (!takes(j, 0)) return -1;
  std::array<unsigned, max_pools> in{};
  auto const assign = [&](auto const& self, std::size_t i, double cost) -> void {
    if (i == records.size()) {
      best = cost;
      return;
    }
    for (std::size_t j = 0; j < pools.size(); ++j) {
      if (records[i].pool >= 0 && records[i].pool != static_cast<std::int32_t>(j)) continue;
      double const now = cost + static_cast<double>(records[i].size) / pools[j].bytes_per_second;
      if (best >= 0 && now >= best) continue;
      in[j] |= 1u << i;
      if (takes(j, in[j])) self(self, i + 1, now);
      in[j] &= ~(1u << i);
    }
  };
  assign(assign, 0, 0);
  return best;
}

/// The answers of `ask(pool, mask)`, each asked once.
template <class Ask>
auto remembered(Ask ask) {
  return [ask, known = std::array<std::array<signed char, 64>, max_pools>{}](std::size_t pool, unsigned mask) mutable {
    auto& answer = known[pool][mask];
    if (answer == 0) answer = ask(pool, mask) ? 1 : -1;
    return answer > 0;
  };
}

}  // namespace neap_memory_test
