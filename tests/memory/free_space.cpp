#include <neap/memory/greedy/free_space.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using neap::detail::free_space;
using neap::detail::section_range;

namespace {

constexpr std::int64_t lowest_of_two() {
  free_space space;
  space.reset(4);
  space.take({0, 2}, 0, 8);
  space.take({3, 4}, 8, 16);
  space.need({1, 4}, 0, 4);
  return space.lowest();
}
static_assert(lowest_of_two() == 16);

}  // namespace

TEST_CASE("the lowest free place is that of a table of bytes by sections") {
  std::mt19937_64 rng(3);
  free_space space;  // storage is used again, larger and smaller
  for (int round = 0; round < 400; ++round) {
    auto const sections = static_cast<std::uint32_t>(1 + rng() % 40);
    constexpr std::int64_t bytes = 600;
    std::vector<std::vector<bool>> taken(sections, std::vector<bool>(bytes));
    auto const some_range = [&] {
      auto const begin = static_cast<std::uint32_t>(rng() % sections);
      return section_range{begin, static_cast<std::uint32_t>(begin + 1 + rng() % (sections - begin))};
    };
    space.reset(sections);
    for (int step = 0; step < 40; ++step) {
      struct wanted {
        section_range when;
        std::int64_t begin, end;
      };
      std::vector<wanted> pieces(1 + rng() % 3);
      for (auto& w : pieces) {
        w.when = some_range();
        w.begin = static_cast<std::int64_t>(rng() % 6);
        w.end = w.begin + 1 + static_cast<std::int64_t>(rng() % 6);
        space.need(w.when, w.begin, w.end);
      }
      auto const alignment = static_cast<std::int64_t>(1 + rng() % 5), from = static_cast<std::int64_t>(rng() % 3);
      auto const found = space.lowest(alignment, from);
      std::int64_t expected = from;
      auto const free_at = [&](std::int64_t x) {
        if (x % alignment != 0) return false;
        for (auto const& w : pieces)
          for (auto s = w.when.begin; s < w.when.end; ++s)
            for (auto b = x + w.begin; b < x + w.end; ++b)
              if (b < bytes && taken[s][static_cast<std::size_t>(b)]) return false;
        return true;
      };
      while (!free_at(expected)) ++expected;
      REQUIRE(found == expected);
      // What is taken need not have been free.
      auto const when = some_range();
      auto const begin = rng() % 2 ? found : static_cast<std::int64_t>(rng() % 100);
      auto const end = begin + 1 + static_cast<std::int64_t>(rng() % 9);
      space.take(when, begin, end);
      for (auto s = when.begin; s < when.end; ++s)
        for (auto b = begin; b < end && b < bytes; ++b) taken[s][static_cast<std::size_t>(b)] = true;
    }
  }
}
