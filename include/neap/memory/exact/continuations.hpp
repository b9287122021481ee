// Records that likely continue others: one ends, another of its size begins, and nothing else at that moment explains it
// as well. Where they are one record each, far fewer are left to be placed. Buffers that are handed on from layer to
// layer are such records, and packings that leave nothing free have many.
//
//    |aaa|bbbbb|cc|       |aaaaaaaaaaa|      A packing of the right is one of the left; the other way round only where
//      |ddd|eeee|           |dddddddd|       what likely lies at one offset does.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/boundary_groups.hpp>
#include <neap/memory/exact/fillers.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

struct joined_problem {
  memory_problem records;
  std::vector<std::uint32_t> holder;  ///< of each given record that occupies memory, the record that holds it
};

/// The records with the fillers, those joined that likely continue one another. Lives without holes, no alignment and no
/// fixed offsets; sizes are multiples of `unit`.
constexpr joined_problem joined_by_size(memory_problem const& p, plain_vector<filler> const& fillers,
                                        std::int64_t unit) {
  // Chances above which nothing is joined: that groups (memory/exact/boundary_groups.hpp) have one sum, and that of all
  // that ends and begins some two have one size.
  constexpr double most_of_groups = 0.005, most_of_sizes = 0.2;
  std::vector<std::int64_t> lower = p.lower, upper = p.upper, size = p.size;
  for (auto const& x : fillers) lower.push_back(x.lower), upper.push_back(x.upper), size.push_back(x.size);
  auto const n = static_cast<std::uint32_t>(size.size());
  std::vector<std::uint32_t> by_lower, by_upper;
  for (std::uint32_t i = 0; i < n; ++i)
    if (size[i] > 0 && upper[i] > lower[i]) by_lower.push_back(i), by_upper.push_back(i);
  detail::sort_list(
      by_lower, [&](std::uint32_t a, std::uint32_t b) { return lower[a] != lower[b] ? lower[a] < lower[b] : a < b; });
  detail::sort_list(
      by_upper, [&](std::uint32_t a, std::uint32_t b) { return upper[a] != upper[b] ? upper[a] < upper[b] : a < b; });

  std::vector<std::uint32_t> before(n, n);  // the record that this one continues
  std::vector<std::uint32_t> ending, beginning;
  boundary_groups groups_of;
  auto const join_equals = [&] {
    std::int64_t largest = 0;
    for (auto b : beginning) largest = std::max(largest, size[b]);
    auto const pairs = static_cast<double>(ending.size()) * static_cast<double>(beginning.size());
    if (pairs * static_cast<double>(unit) > most_of_sizes * static_cast<double>(largest)) return;
    auto const alone = [&](std::vector<std::uint32_t> const& in, std::uint32_t i) {
      return std::count_if(in.begin(), in.end(), [&](std::uint32_t j) { return size[j] == size[i]; }) == 1;
    };
    for (auto e : ending)
      for (auto b : beginning)
        if (size[b] == size[e] && alone(ending, e) && alone(beginning, b)) before[b] = e;
  };
  auto const join_groups = [&](grouping const& handed) {
    if (handed.chance > most_of_groups) return;
    for (std::size_t k = 0; k < ending.size(); ++k) {
      auto const with = handed.shares[k];
      bool alone = std::popcount(with) == 1;
      for (std::size_t m = 0; m < ending.size(); ++m) alone &= m == k || (handed.shares[m] & with) == 0;
      if (alone) before[beginning[static_cast<std::size_t>(std::countr_zero(with))]] = ending[k];
    }
  };
  for (std::size_t i = 0, j = 0; i < by_lower.size();) {
    auto const now = lower[by_lower[i]];
    ending.clear(), beginning.clear();
    for (; i < by_lower.size() && lower[by_lower[i]] == now; ++i) beginning.push_back(by_lower[i]);
    for (; j < by_upper.size() && upper[by_upper[j]] <= now; ++j)
      if (upper[by_upper[j]] == now) ending.push_back(by_upper[j]);
    auto const handed = groups_of(size, unit, ending, beginning);
    if (handed.groups == 0) join_equals();
    else join_groups(handed);
  }

  joined_problem out;
  out.holder.assign(n, 0);
  for (auto i : by_lower) {
    if (before[i] < n) {
      out.holder[i] = out.holder[before[i]];
      out.records.upper[out.holder[i]] = upper[i];
      continue;
    }
    out.holder[i] = static_cast<std::uint32_t>(out.records.count());
    out.records.lower.push_back(lower[i]), out.records.upper.push_back(upper[i]);
    out.records.size.push_back(size[i]);
  }
  out.holder.resize(p.count());
  return out;
}

}  // namespace neap::inline v0::detail
