#include <neap/memory/exact/gap_sums.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

using neap::detail::gap_sums;
using neap::testing::cases;

namespace {

constexpr bool counts_to_the_byte() {
  gap_sums<int> in;
  in.start({4, 3, 2}, 0);
  auto const at = in.behind(0, 4);  // {4}, for neither of the others is that large
  return in.largest(0) == 9 && in.next_gap(0, 1) == 2 && in.next_gap(0, 8) == 9 && in.next_gap(at, 4) == 5 &&
         in.next_gap(at, 6) == -1;
}
static_assert(counts_to_the_byte());

/// Whether records can be dealt to gaps and the room above them, with no more bytes wasted in gaps than `slack`: all ways.
bool can_deal(std::vector<int> const& sizes, std::vector<int> const& gaps, int slack) {
  auto const rooms = gaps.size() + 1;
  std::vector<std::size_t> room(sizes.size(), 0);
  for (;;) {
    auto left = gaps;
    bool fits = true;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (room[i] < gaps.size()) fits = (left[room[i]] -= sizes[i]) >= 0 && fits;
    if (fits && std::accumulate(left.begin(), left.end(), 0) <= slack) return true;
    std::size_t i = 0;
    while (i < room.size() && ++room[i] == rooms) room[i++] = 0;
    if (i == room.size()) return false;
  }
}

}  // namespace

TEST_CASE("a gap may come next exactly where some way to deal the records to the gaps allows it") {
  std::mt19937_64 rng(41);
  int refused = 0, gaps_told = 0;
  for (int round = 0; round < cases(1500); ++round) {
    std::vector<int> sizes;
    for (auto n = rng() % 6; n > 0; --n) sizes.push_back(1 + static_cast<int>(rng() % 9));
    std::sort(sizes.rbegin(), sizes.rend());
    int const slack = static_cast<int>(rng() % 3) * static_cast<int>(rng() % 3);
    gap_sums<int> in;
    in.start(sizes, slack);
    std::vector<int> gaps;
    std::uint32_t state = 0;
    for (int k = 0; k < 3; ++k) {
      std::vector<int> possible;
      int const all = std::accumulate(sizes.begin(), sizes.end(), 0) + slack + 2;
      for (int gap = 0; gap <= all; ++gap) {
        gaps.push_back(gap);
        bool const can = can_deal(sizes, gaps, slack);
        gaps.pop_back();
        REQUIRE((in.next_gap(state, gap) == gap) == can);
        if (can) possible.push_back(gap);
        else ++refused;
      }
      REQUIRE(in.largest(state) == possible.back());
      for (int gap = in.next_filled(state, 0); gap >= 0; gap = in.next_filled(state, gap + 1))
        REQUIRE(in.next_gap(state, gap) == gap);
      gaps.push_back(possible[rng() % possible.size()]);
      state = in.behind(state, gaps.back());
      ++gaps_told;
      auto const held = in.deal(gaps);
      REQUIRE(held.size() == gaps.size());
      std::uint32_t used = 0;
      int wasted = 0;
      for (std::size_t g = 0; g < gaps.size(); ++g) {
        int bytes = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i)
          if (held[g] >> i & 1) bytes += sizes[i];
        REQUIRE((held[g] & used) == 0);
        REQUIRE(bytes <= gaps[g]);
        used |= held[g], wasted += gaps[g] - bytes;
      }
      REQUIRE(wasted <= slack);
    }
  }
  CHECK(refused > gaps_told);
}

TEST_CASE("states are told apart by what they allow; forgotten ones come back as they were") {
  gap_sums<std::int64_t> in;
  in.start({5, 5, 3}, 2);
  auto const five = in.behind(0, 5);
  CHECK(in.behind(0, 5) == five);
  CHECK(in.behind(0, 7) != five);
  CHECK(in.next_gap(five, 11) == -1);  // 5, 3 and the slack are left
  auto const many = in.state_count();
  in.clear();
  CHECK(in.state_count() == 1);
  CHECK(in.next_gap(in.behind(0, 5), 6) == 6);
  CHECK(in.state_count() < many + 1);
}
