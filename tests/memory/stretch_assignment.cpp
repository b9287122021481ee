#include <neap/memory/guess/stretch_assignment.hpp>

#include <neap/memory/guess/stretch_guesses.hpp>

#include "../support/packings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// A planted packing, before the boundary behind its first section.
struct first_boundary {
  explicit first_boundary(std::uint64_t seed, double holes)
      : given(planted({static_cast<pattern>(seed % 4), 40, 10, 2000, holes}, seed)),
        order(given.records.size()) {
    std::iota(order.begin(), order.end(), 0u);
    records = neap::detail::packing_problem_of(given.records, order, 1);
  }
  packing given;
  std::vector<std::uint32_t> order;
  neap::detail::packing_problem records;
};

}  // namespace

TEST_CASE("contents of sets of blocks are the sums over their items") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    first_boundary const b(seed, 0.05);
    neap::detail::planar_problem problem(b.records);
    if (!problem.read(b.given.capacity)) continue;
    neap::detail::planar_orders orders(problem);
    auto const root = orders.all_in(0, 0);
    orders.find_items(problem.boundary(0, 1), root);
    std::vector<std::uint32_t> blocks;
    orders.find_blocks(root, blocks);
    neap::detail::block_contents const contents(orders, blocks);
    for (std::uint32_t set = 1; set < 1u << std::min<std::size_t>(blocks.size(), 11); ++set) {
      std::uint32_t items = 0;
      std::int64_t bytes = 0, free = 0;
      for (std::size_t k = 0; k < blocks.size(); ++k)
        if (set >> k & 1) items |= blocks[k];
      for (std::size_t k = 0; k < orders.items.size(); ++k)
        if (items >> k & 1) {
          bytes += orders.size_of(orders.items[k]);
          if (!orders.is_record(orders.items[k])) free += orders.size_of(orders.items[k]);
        }
      auto const c = contents(set);
      REQUIRE(c.items == items);
      REQUIRE(c.bytes == bytes);
      REQUIRE(c.free == free);
    }
  }
}

TEST_CASE("guesses and complete assignments hand over to the byte, and use everything once") {
  int complete = 0, guessed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    first_boundary const b(seed, seed % 2 == 0 ? 0 : 0.05);
    neap::detail::planar_problem problem(b.records);
    if (!problem.read(b.given.capacity)) continue;
    auto& at = problem.boundary(0, 1);
    neap::detail::planar_orders orders(problem);
    auto const root = orders.all_in(0, 0);
    orders.find_items(at, root);
    std::vector<std::uint32_t> blocks;
    orders.find_blocks(root, blocks);
    std::sort(blocks.begin(), blocks.end());
    neap::detail::stretch_guesses all;
    auto const& guesses = all.at(at, orders, blocks, 1e-4);
    CHECK(&all.at(at, orders, blocks, 1e-4) == &guesses);  // found once
    auto const bytes_of = [&](neap::detail::stretch const& s) {
      std::int64_t ends = 0, begins = s.free;
      for (std::size_t k = 0; k < orders.items.size(); ++k)
        if (s.items >> k & 1) ends += orders.size_of(orders.items[k]);
      for (std::size_t k = 0; k < at.beginning.size(); ++k)
        if (s.beginning >> k & 1) begins += b.records.size[at.beginning[k]];
      REQUIRE(ends == begins);
      return ends;
    };
    for (auto const& g : guesses) {
      bytes_of(g.put);
      REQUIRE(g.put.free <= at.free);
      ++guessed;
    }
    CHECK(std::is_sorted(guesses.begin(), guesses.end()));
    auto const before = orders.leaf_count();
    neap::detail::stretch_assignment assignment;
    std::size_t found = 0;
    assignment.run(at, orders, blocks, guesses, 1e-4, 20, {root, 1},
                   [&](std::uint32_t next, double likelihood, plain_vector<neap::detail::stretch> const& stretches) {
                     std::uint32_t items = 0, beginning = 0;
                     std::int64_t free = 0;
                     for (auto const& s : stretches) {
                       bytes_of(s);
                       REQUIRE((items & s.items) == 0);
                       REQUIRE((beginning & s.beginning) == 0);
                       items |= s.items, beginning |= s.beginning, free += s.free;
                     }
                     REQUIRE(items == static_cast<std::uint32_t>((std::uint64_t{1} << orders.items.size()) - 1));
                     REQUIRE(beginning == static_cast<std::uint32_t>((std::uint64_t{1} << at.beginning.size()) - 1));
                     REQUIRE(free == at.free);
                     REQUIRE(next != neap::detail::planar_orders::none);
                     REQUIRE(likelihood > 0);
                     ++found;
                   });
    CHECK(found <= 20);
    CHECK(orders.leaf_count() == before);  // cut back
    complete += found > 0;
  }
  CHECK(complete > 20);
  CHECK(guessed > 100);
}
