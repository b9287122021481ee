#include <neap/memory/exact/plateau_tiling.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;

TEST_CASE("a tiling of a plateau and what it contains, as all rows of records tell") {
  std::mt19937_64 rng(3);
  int tiled = 0, left_out = 0;
  for (int round = 0; round < 3000; ++round) {
    std::uint32_t const begin = static_cast<std::uint32_t>(rng() % 3);
    std::uint32_t const end = begin + 1 + static_cast<std::uint32_t>(rng() % 6);
    detail::plateau_tiling tiling(end + 2);
    std::vector<char> waste(end, 0);
    for (auto s = begin; s < end; ++s) waste[s] = rng() % 4 == 0, tiling.set_waste(s, waste[s] != 0);
    plain_vector<detail::floor_option> options;
    for (auto n = rng() % 7; n > 0; --n) {
      auto const at = begin + static_cast<std::uint32_t>(rng() % (end - begin));
      auto const to = at + 1 + static_cast<std::uint32_t>(rng() % (end - at));
      options.push_back({static_cast<std::uint32_t>(options.size()), at, to});
    }
    std::stable_sort(options.begin(), options.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    // Every row from the begin: which options those have that come to the end, and where the longest ends.
    std::vector<char> in_row(options.size(), 0);
    std::uint32_t furthest = begin;
    bool any = false;
    std::vector<std::size_t> row;
    auto const go_on = [&](auto const& self, std::uint32_t at) -> void {
      if (at == end) {
        any = true;
        for (auto k : row) in_row[k] = 1;
        return;
      }
      furthest = std::max(furthest, at);
      if (waste[at]) self(self, at + 1);
      for (std::size_t k = 0; k < options.size(); ++k)
        if (options[k].begin == at) {
          row.push_back(k);
          self(self, options[k].end);
          row.pop_back();
        }
    };
    go_on(go_on, begin);
    REQUIRE(tiling.find(options, begin, end) == (any ? end : furthest));
    if (!any) continue;
    ++tiled;
    for (std::size_t k = 0; k < options.size(); ++k) {
      REQUIRE(tiling.contains(options[k]) == (in_row[k] != 0));
      left_out += !in_row[k];
    }
  }
  CHECK(tiled > 500);
  CHECK(left_out > 100);
}
