#include <neap/memory/exact/boundary_groups.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using neap::detail::boundary_groups;
using neap::detail::grouping;

namespace {

struct sides {
  std::vector<std::int32_t> size;
  std::vector<std::uint32_t> ending, beginning;
};

sides split(std::vector<std::int32_t> const& ending, std::vector<std::int32_t> const& beginning) {
  sides s;
  for (auto x : ending) s.ending.push_back(static_cast<std::uint32_t>(s.size.size())), s.size.push_back(x);
  for (auto x : beginning) s.beginning.push_back(static_cast<std::uint32_t>(s.size.size())), s.size.push_back(x);
  return s;
}
grouping grouped(sides const& s) { return boundary_groups{}(s.size, 1, s.ending, s.beginning); }

/// Every way to give each record one of three labels: those in which every label used has one sum on both sides.
grouping by_hand(sides const& s) {
  grouping best;
  best.shares.assign(s.ending.size(), 0);
  auto const n = s.size.size();
  std::size_t deals = 1;
  for (std::size_t i = 0; i < n; ++i) deals *= 3;
  for (std::size_t deal = 0; deal < deals; ++deal) {
    std::vector<std::size_t> label(n);
    for (std::size_t i = 0, rest = deal; i < n; ++i, rest /= 3) label[i] = rest % 3;
    std::array<std::int32_t, 3> difference{};
    std::array<bool, 3> used{};
    for (auto i : s.ending) difference[label[i]] += s.size[i], used[label[i]] = true;
    for (auto i : s.beginning) difference[label[i]] -= s.size[i], used[label[i]] = true;
    if (std::any_of(difference.begin(), difference.end(), [](auto d) { return d != 0; })) continue;
    auto const groups = static_cast<int>(std::count(used.begin(), used.end(), true));
    if (groups > best.groups) best.groups = groups, best.shares.assign(s.ending.size(), 0);
    if (groups < best.groups) continue;
    for (std::size_t e = 0; e < s.ending.size(); ++e)
      for (std::size_t b = 0; b < s.beginning.size(); ++b)
        if (label[s.ending[e]] == label[s.beginning[b]]) best.shares[e] |= 1u << b;
  }
  return best;
}

}  // namespace

TEST_CASE("the most groups of one sum, and who shares one, are those of all ways to group") {
  std::mt19937_64 rng(5);
  std::array<int, 4> seen{};
  for (int round = 0; round < 400; ++round) {
    auto const draw = [&](std::size_t n) {
      std::vector<std::int32_t> sizes;
      for (std::size_t i = 0; i < n; ++i) sizes.push_back(1 + static_cast<std::int32_t>(rng() % 4));
      return sizes;
    };
    auto ending = draw(1 + rng() % 3), beginning = draw(1 + rng() % 4);
    std::int32_t more = 0;
    for (auto x : ending) more += x;
    for (auto x : beginning) more -= x;
    if (more < 0) ending.back() -= more;
    if (more > 0) beginning.back() += more;
    auto const s = split(ending, beginning);
    auto const found = grouped(s), right = by_hand(s);
    CAPTURE(round);
    REQUIRE(found.groups == right.groups);
    REQUIRE(found.shares == right.shares);
    REQUIRE((found.chance == 0) == (found.groups == 1));
    ++seen[static_cast<std::size_t>(found.groups)];
  }
  CHECK(std::min({seen[1], seen[2], seen[3]}) > 20);
}

TEST_CASE("nothing is known where sums differ or too many records meet") {
  CHECK(grouped(split({3, 4}, {8})).groups == 0);
  CHECK(grouped(split({}, {})).groups == 0);
  CHECK(grouped(split(std::vector<std::int32_t>(13, 1), {13})).groups == 0);
  CHECK(grouped(split(std::vector<std::int32_t>(12, 1), std::vector<std::int32_t>(12, 1))).groups == 0);
  CHECK(grouped(split({5}, {2, 3})).groups == 1);
}

TEST_CASE("what agrees to the byte among a million is no chance, among ten it is") {
  CHECK(grouped(split({700'001, 299'999}, {299'999, 700'001})).chance < 1e-5);
  CHECK(grouped(split({3, 4}, {4, 3})).chance > 0.25);
  CHECK(
      boundary_groups{}(std::vector<std::int64_t>{3000, 4000, 4000, 3000}, std::int64_t{1000}, {0, 1}, {2, 3}).chance ==
      grouped(split({3, 4}, {4, 3})).chance);
}
