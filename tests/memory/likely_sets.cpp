#include <neap/memory/guess/likely_sets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using neap::detail::likely_sets;
using neap::detail::pq_tree;

namespace {

struct way {
  std::uint32_t root;
  double likelihood;
};

/// Leaves in that order or its reverse.
std::uint32_t row(pq_tree& tree, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  constexpr std::uint32_t left = 14, right = 15;
  auto const parts = tree.in_any_order(
      {tree.in_any_order({tree.leaf(a), tree.leaf(left)}), tree.in_any_order({tree.leaf(right), tree.leaf(c)})});
  std::vector<char> marked(16, 0);
  marked[left] = marked[right] = 1;
  auto const by = tree.leaf(b);
  tree.label(parts, marked);
  return tree.replace(parts, by);
}
std::uint32_t pair(pq_tree& tree, std::uint32_t a, std::uint32_t b) {
  return tree.in_any_order({tree.leaf(a), tree.leaf(b)});
}

}  // namespace

TEST_CASE("orders agree with sets that can lie together in them, and the less the likelier are those that cannot") {
  pq_tree tree;
  std::vector<way> const ways{
      {tree.in_any_order({pair(tree, 0, 1), tree.leaf(2), tree.leaf(3), tree.leaf(4), tree.leaf(5)}), 3},
      {tree.in_any_order({tree.leaf(0), tree.leaf(1), pair(tree, 2, 3), tree.leaf(4), tree.leaf(5)}), 1}};
  likely_sets sets;
  CHECK(sets.empty());
  sets.learn(tree, ways, 6);
  CHECK(!sets.empty());
  auto const agreement = [&](std::uint32_t a, std::uint32_t b) {
    return sets.agreement(tree, tree.in_any_order({a, b}));
  };
  CHECK(sets.agreement(tree, ways[0].root) == 1);
  CHECK(sets.agreement(tree, ways[1].root) == 1);
  // {0, 1} is in three quarters of what the ways weigh, {2, 3} in one.
  double const one_quarter = agreement(row(tree, 2, 5, 3), tree.in_any_order({pair(tree, 0, 1), tree.leaf(4)}));
  double const three_quarters = agreement(row(tree, 0, 5, 1), tree.in_any_order({pair(tree, 2, 3), tree.leaf(4)}));
  double const both = agreement(row(tree, 0, 5, 1), row(tree, 2, 4, 3));
  CHECK(one_quarter < 1);
  CHECK(three_quarters < one_quarter);
  CHECK(both == doctest::Approx(three_quarters * one_quarter));
  CHECK(both > 0);
  sets.clear();
  CHECK(agreement(row(tree, 0, 5, 1), row(tree, 2, 4, 3)) == 1);
}

TEST_CASE("leaves that are no records neither count in a set nor keep records from lying together") {
  pq_tree tree;
  // {0, 1} with leaf 3 in between, which is free bytes.
  auto const inner = tree.in_any_order({tree.leaf(0), tree.leaf(3), tree.leaf(1)});
  auto const root = tree.in_any_order({inner, tree.leaf(2), tree.in_any_order({tree.leaf(4), tree.leaf(5)})});
  likely_sets sets;
  sets.learn(tree, std::vector<way>{{root, 1}}, 3);
  auto const there = tree.in_any_order({inner, tree.leaf(2)});
  CHECK(sets.agreement(tree, there) == 1);
  auto const apart = tree.in_any_order({tree.in_any_order({tree.leaf(0), tree.leaf(2)}), tree.leaf(1)});
  CHECK(sets.agreement(tree, apart) == 1);  // 2, 0, 1
  auto const wide = tree.in_any_order({tree.in_any_order({tree.leaf(0), tree.leaf(2)}), tree.leaf(4), tree.leaf(1)});
  CHECK(sets.agreement(tree, wide) == 1);  // 4 is left out
}
