#include <neap/memory/forms/aliases.hpp>

#include <neap/memory/exact/exact.hpp>

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace neap;

namespace {

using records = std::vector<alias_record>;

alias_record plain(std::int64_t lower, std::int64_t upper, std::int64_t size) {
  alias_record r;
  r.lower = lower, r.upper = upper, r.size = size;
  return r;
}
alias_record view(std::int64_t lower, std::int64_t upper, std::int64_t size, std::int64_t of, std::int64_t begin) {
  alias_record r = plain(lower, upper, size);
  r.alias_of = of, r.begin = begin;
  return r;
}

std::size_t root_of(records const& all, std::size_t i) {
  while (all[i].alias_of >= 0) i = static_cast<std::size_t>(all[i].alias_of);
  return i;
}

/// Byte by byte: who holds each byte at each moment. A view holds its bytes from the first moment of its root on.
bool right(records const& all, std::vector<std::int64_t> const& at, std::int64_t height) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].alias_of >= 0 && at[i] != at[static_cast<std::size_t>(all[i].alias_of)] + all[i].begin) return false;
  for (std::int64_t t = 0; t < 12; ++t) {
    std::vector<std::size_t> holder(static_cast<std::size_t>(height), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const root = root_of(all, i);
      if (t < all[root].lower || t >= all[i].upper) continue;
      for (auto b = at[i]; b < at[i] + all[i].size; ++b) {
        if (b < 0 || b >= height) return false;
        auto& who = holder[static_cast<std::size_t>(b)];
        if (who != all.size() && who != root) return false;
        who = root;
      }
    }
  }
  return true;
}

/// Whether the roots from the k-th on can be placed below `height`.
bool fits(records const& all, std::size_t k, std::vector<std::int64_t>& at, std::int64_t height) {
  while (k < all.size() && all[k].alias_of >= 0) ++k;
  if (k == all.size()) {
    auto whole = at;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].alias_of >= 0) whole[i] = whole[static_cast<std::size_t>(all[i].alias_of)] + all[i].begin;
    return right(all, whole, height);
  }
  for (at[k] = 0; at[k] + all[k].size <= height; ++at[k])
    if (fits(all, k + 1, at, height)) return true;
  return false;
}

}  // namespace

TEST_CASE("views lie in what they see and keep it: equal to brute force where one range of bytes is kept") {
  std::mt19937_64 rng(7);
  auto const below = [&](std::int64_t n) { return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(n)); };
  int kept_longer = 0, lent = 0;
  for (int round = 0; round < 2000; ++round) {
    records all;
    for (int i = 0; i < 3; ++i) {
      auto const lower = below(6);
      all.push_back(plain(lower, lower + 1 + below(4), 1 + below(5)));
    }
    for (auto n = below(3); n > 0; --n) {
      auto const of = below(static_cast<std::int64_t>(all.size()));
      auto const& seen = all[static_cast<std::size_t>(of)];
      auto const size = 1 + below(seen.size), lower = seen.lower + below(3);
      all.push_back(view(lower, lower + 1 + below(4), size, of, below(seen.size - size + 1)));
    }
    auto const plan = plan_with_aliases(all, exact{});
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE(right(all, plan.offsets, plan.arena_bytes));
    // Two views of one root that keep bytes with a hole between them are planned with the hole.
    bool holes = false;
    for (std::size_t a = 3; a < all.size(); ++a)
      for (std::size_t b = 3; b < a; ++b) holes |= root_of(all, a) == root_of(all, b);
    for (std::size_t i = 3; i < all.size(); ++i) kept_longer += all[i].upper > all[root_of(all, i)].upper;
    if (!holes) {
      std::vector<std::int64_t> at(all.size(), 0);
      CHECK_FALSE(fits(all, 0, at, plan.arena_bytes - 1));
    }
    auto whole = all;  // as if the view kept the whole record
    for (std::size_t i = 3; i < all.size(); ++i) {
      auto& root = whole[root_of(all, i)];
      root.upper = std::max(root.upper, all[i].upper);
    }
    lent += plan_with_aliases(whole, exact{}).arena_bytes > plan.arena_bytes;
  }
  CHECK(kept_longer > 500);
  CHECK(lent > 20);
}

TEST_CASE("alignment and fixed offsets of a view bind what it sees") {
  records all{plain(0, 2, 16), view(1, 4, 8, 0, 8), plain(0, 4, 8)};
  all[1].offset = 24;
  auto plan = plan_with_aliases(all, exact{});
  CHECK(plan.offsets == std::vector<std::int64_t>{16, 24, 0});
  all[1].offset = any_offset, all[1].alignment = 8, all[2].offset = 0;
  plan = plan_with_aliases(all, exact{});
  CHECK(plan.offsets == std::vector<std::int64_t>{8, 16, 0});
}

TEST_CASE("aliases that make no sense are refused, with the record") {
  auto const why = [](records const& all) { return plan_with_aliases(all, default_planner{}).why.message(); };
  CHECK(why({plain(0, 1, 4), view(0, 1, 4, 7, 0)}) == "record 1: it is a view of a record that is not there");
  CHECK(why({plain(0, 1, 4), view(0, 1, 4, -2, 0)}) == "record 1: it is a view of a record that is not there");
  CHECK(why({view(0, 1, 4, 1, 0), view(0, 1, 4, 0, 0)}) == "record 0: its aliases form a cycle");
  CHECK(why({plain(0, 1, 4), view(0, 1, 4, 0, 1)}) == "records 1 and 0: it leaves the record that it sees");
  CHECK(why({plain(2, 3, 4), view(0, 1, 4, 0, 0)}) == "records 1 and 0: it lives before the record that it sees");
  records odd{plain(0, 1, 8), view(0, 1, 4, 0, 2)};
  odd[1].alignment = 4;
  CHECK(why(odd) == "record 1: its alignment contradicts its place in what it sees");
  records fixed{plain(0, 1, 8), view(0, 1, 4, 0, 2)};
  fixed[0].offset = 8, fixed[1].offset = 8;
  CHECK(why(fixed) == "records 1 and 0: its fixed offset contradicts that of what it sees");
}

namespace {

struct seeing {
  int lower, upper, size, alias_of, begin;
};

}  // namespace

TEST_CASE("any type with a life, a size and what it sees is a record here") {
  std::vector<seeing> const three{{0, 3, 8, -1, 0}, {1, 9, 2, 0, 6}, {3, 9, 6, -1, 0}};
  auto const plan = plan_with_aliases(three, exact{});
  CHECK(plan.arena_bytes == 8);
  CHECK(plan.offsets[1] == plan.offsets[0] + 6);
}
