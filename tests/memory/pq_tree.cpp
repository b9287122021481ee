#include <neap/memory/guess/pq_tree.hpp>

#include <neap/memory/exact/failed_states.hpp>

#include "brute_force.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

using order = std::vector<std::uint32_t>;

/// The orders of the tree among all of its leaves.
std::set<order> orders_of(neap::detail::pq_tree const& tree, std::uint32_t root) {
  order leaves;
  tree.add_leaves(root, leaves);
  std::sort(leaves.begin(), leaves.end());
  std::set<order> out;
  do {
    std::vector<std::uint32_t> rank(16, 0);
    for (std::uint32_t k = 0; k < leaves.size(); ++k) rank[leaves[k]] = k;
    if (tree.arranged(root, rank) == leaves) out.insert(leaves);
  } while (std::next_permutation(leaves.begin(), leaves.end()));
  return out;
}
/// Those in which the marked leaves are contiguous, with others in their place, in any order.
std::set<order> replaced(std::set<order> const& from, std::vector<char> const& marked, order by) {
  std::set<order> out;
  for (auto const& o : from) {
    order rest;
    std::size_t at = o.size(), last = 0, count = 0;
    for (std::size_t k = 0; k < o.size(); ++k) {
      if (!marked[o[k]]) rest.push_back(o[k]);
      else at = std::min(at, k), last = k, ++count;
    }
    if (last - at + 1 != count) continue;
    std::sort(by.begin(), by.end());
    do {
      auto with = rest;
      with.insert(with.begin() + static_cast<std::ptrdiff_t>(at), by.begin(), by.end());
      out.insert(with);
    } while (std::next_permutation(by.begin(), by.end()));
  }
  return out;
}

}  // namespace

TEST_CASE("the orders of a tree are those in which what was replaced is contiguous, one set after the other") {
  std::mt19937_64 rng(5);
  int impossible = 0, deep = 0;
  for (int round = 0; round < testing::cases(rounds / 20); ++round) {
    neap::detail::pq_tree tree;
    std::vector<std::uint32_t> parts;
    std::uint32_t const count = 3 + static_cast<std::uint32_t>(rng() % 4);
    for (std::uint32_t i = 0; i < count; ++i) parts.push_back(tree.leaf(i));
    auto root = tree.in_any_order(parts);
    auto orders = orders_of(tree, root);
    for (std::uint32_t next = count, step = 0; step < 4 && next < 14; ++step) {
      order leaves;
      tree.add_leaves(root, leaves);
      std::vector<char> marked(16, 0);
      for (auto leaf : leaves) marked[leaf] = rng() % 3 == 0;
      if (std::count(marked.begin(), marked.end(), 1) == 0) continue;
      order fresh;
      std::vector<std::uint32_t> put;
      auto const size = tree.size();
      for (std::uint64_t k = 0; k < 1 + rng() % 2 && leaves.size() + k < 8; ++k) {
        fresh.push_back(next), put.push_back(tree.leaf(next));
        ++next;
      }
      auto const by = tree.in_any_order(put);
      tree.label(root, marked);
      // A block holds what is contiguous in all orders, and the blocks hold all that is marked.
      order blocks;
      tree.for_each_block(root, [&](order const& block) {
        for (auto const& o : orders) {
          std::size_t first = o.size(), last = 0;
          for (std::size_t k = 0; k < o.size(); ++k)
            if (std::find(block.begin(), block.end(), o[k]) != block.end()) first = std::min(first, k), last = k;
          REQUIRE(last - first + 1 == block.size());
        }
        blocks.insert(blocks.end(), block.begin(), block.end());
      });
      std::sort(blocks.begin(), blocks.end());
      REQUIRE(static_cast<std::ptrdiff_t>(blocks.size()) == std::count(marked.begin(), marked.end(), 1));
      REQUIRE(std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end());
      auto const expected = replaced(orders, marked, fresh);
      auto const after = tree.replace(root, by);
      if (after == neap::detail::pq_tree::none) {
        ++impossible;
        REQUIRE(expected.empty());
        tree.shrink(size);
        REQUIRE(orders_of(tree, root) == orders);  // as it was
        continue;
      }
      REQUIRE(orders_of(tree, after) == expected);
      root = after, orders = expected, ++deep;
    }
  }
  CHECK((impossible > 0 || testing::sanitized));  // some in a thousand; the next test makes one
  CHECK(deep > testing::cases(rounds / 40));
}

TEST_CASE("sets are gathered just if some order has them contiguous, others left out, and named sets are so in all") {
  using neap::detail::pq_tree;
  std::mt19937_64 rng(6);
  int together = 0, apart = 0;
  for (int round = 0; round < testing::cases(rounds / 50); ++round) {
    pq_tree tree;
    std::vector<std::uint32_t> parts;
    std::uint32_t const count = 4 + static_cast<std::uint32_t>(rng() % 4);
    for (std::uint32_t i = 0; i < count; ++i) parts.push_back(tree.leaf(i));
    auto root = tree.in_any_order(parts);
    for (int step = 0; step < 8; ++step) {  // some leaves contiguous, and named as before
      std::vector<char> marked(16, 0);
      std::vector<std::uint32_t> by;
      for (std::uint32_t i = 0; i < count; ++i)
        if ((marked[i] = rng() % 3 == 0)) by.push_back(tree.leaf(i));
      if (by.empty()) continue;
      auto const put = tree.in_any_order(by);
      tree.label(root, marked);
      if (auto const next = tree.replace(root, put); next != pq_tree::none) root = next;
    }
    auto const orders = orders_of(tree, root);
    auto const contiguous = [&](order const& o, std::vector<pq_tree::membership> const& of, std::uint32_t set) {
      order places;  // of its leaves among those that are not left out
      std::uint32_t place = 0;
      for (auto leaf : o) {
        if (of[leaf].in >> set & 1) places.push_back(place);
        place += (of[leaf].in | of[leaf].out) >> set & 1;
      }
      return places.empty() || places.back() - places.front() + 1 == places.size();
    };
    std::vector<pq_tree::membership> drawn(count);
    for (auto& leaf : drawn)
      for (std::uint32_t set = 0; set < 32; ++set)
        if (auto const r = rng() % 5; r < 4) (r < 2 ? leaf.in : leaf.out) |= std::uint32_t{1} << set;
    auto const never = tree.never_together(root, [&](std::uint32_t leaf) { return drawn[leaf]; });
    for (std::uint32_t set = 0; set < 32; ++set) {
      bool const some =
          std::any_of(orders.begin(), orders.end(), [&](auto const& o) { return contiguous(o, drawn, set); });
      REQUIRE((never >> set & 1) == !some);
      ++(some ? together : apart);
    }
    auto const value = [](std::uint32_t leaf) { return std::uint64_t{1} << leaf; };
    auto const all = tree.for_each_set(root, value, [&](std::uint64_t sum, std::uint32_t node, std::uint32_t beside) {
      order leaves;
      tree.add_leaves(node, leaves);
      if (beside != pq_tree::none) tree.add_leaves(beside, leaves);
      std::vector<pq_tree::membership> only(count, {0, 1});
      std::uint64_t expected = 0;
      for (auto leaf : leaves) only[leaf] = {1, 0}, expected += value(leaf);
      REQUIRE(sum == expected);
      for (auto const& o : orders) REQUIRE(contiguous(o, only, 0));
    });
    REQUIRE(all == (std::uint64_t{1} << count) - 1);
  }
  CHECK(together > testing::cases(rounds / 100));
  CHECK(apart > testing::cases(rounds / 200));
}

TEST_CASE("what others stand between cannot be replaced, and the tree stays as it was") {
  neap::detail::pq_tree tree;
  std::vector<std::uint32_t> const four{tree.leaf(0), tree.leaf(1), tree.leaf(2), tree.leaf(3)};
  auto root = tree.in_any_order(four);
  auto const replace = [&](std::vector<std::uint32_t> const& leaves, std::vector<std::uint32_t> const& by) {
    std::vector<char> marked(16, 0);
    for (auto leaf : leaves) marked[leaf] = 1;
    std::vector<std::uint32_t> put;
    for (auto leaf : by) put.push_back(tree.leaf(leaf));
    auto const any = tree.in_any_order(put);
    tree.label(root, marked);
    return tree.replace(root, any);
  };
  root = replace({0, 1}, {4, 5});
  root = replace({2, 3}, {6, 7});
  root = replace({4, 6}, {8});
  auto const orders = orders_of(tree, root);
  CHECK(orders == std::set<order>{{5, 8, 7}, {7, 8, 5}});
  CHECK(replace({5, 7}, {9}) == neap::detail::pq_tree::none);
  CHECK(orders_of(tree, root) == orders);
}

TEST_CASE("trees of the same orders have one hash") {
  auto const value = [](std::uint32_t leaf) { return neap::detail::hash_of(leaf, 0); };
  std::mt19937_64 rng(6);
  for (int round = 0; round < 50; ++round) {
    // Two sets of neighbours, told in either order, of leaves in any order.
    std::uint64_t seen[2] = {};
    for (int way = 0; way < 2; ++way) {
      neap::detail::pq_tree tree;
      order ids{0, 1, 2, 3, 4, 5};
      std::shuffle(ids.begin(), ids.end(), rng);
      std::vector<std::uint32_t> parts;
      for (auto id : ids) parts.push_back(tree.leaf(id));
      auto root = tree.in_any_order(parts);
      for (int k = 0; k < 2; ++k) {
        std::vector<char> marked(8, 0);
        if ((k == 0) == (way == 0)) marked[0] = marked[1] = 1;
        else marked[3] = marked[4] = 1;
        auto const by = tree.leaf(marked[0] ? 6 : 7);
        tree.label(root, marked);
        root = tree.replace(root, by);
      }
      seen[way] = tree.hash(root, value, neap::detail::hash_of);
    }
    CHECK(seen[0] == seen[1]);
  }
}

TEST_CASE("a copy has the orders of its tree, with the leaves named anew") {
  std::mt19937_64 rng(9);
  for (int round = 0; round < testing::cases(200); ++round) {
    neap::detail::pq_tree tree, other;
    order parts;
    for (std::uint32_t id = 0; id < 6; ++id) parts.push_back(tree.leaf(id));
    auto root = tree.in_any_order(parts);
    for (int step = 0; step < 3; ++step) {  // pairs that must be neighbours, each in the place of itself
      auto const a = static_cast<std::uint32_t>(rng() % 6), b = static_cast<std::uint32_t>(rng() % 6);
      if (a == b) continue;
      std::vector<char> marked(6, 0);
      marked[a] = marked[b] = 1;
      auto const by = tree.in_any_order({tree.leaf(a), tree.leaf(b)});
      tree.label(root, marked);
      if (auto const next = tree.replace(root, by); next != neap::detail::pq_tree::none) root = next;
    }
    other.leaf(0);  // what is there already stays apart
    auto const copy = other.copy(tree, root, [](std::uint32_t id) { return id + 6; });
    auto expected = std::set<order>{};
    for (auto o : orders_of(tree, root)) {
      for (auto& id : o) id += 6;
      expected.insert(o);
    }
    CHECK(orders_of(other, copy) == expected);
  }
}
