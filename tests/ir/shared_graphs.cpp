// Copies of a graph share its tables: by several threads they are read, edited and dropped as if each had its own.
#include <neap/ir/editor.hpp>
#include <neap/ir/verify.hpp>

#include <doctest/doctest.h>

#include "../support/random_graph.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::random_graph;
namespace toy = neap::testing::toy;

namespace {

op_graph with_one_more(op_graph g) {
  graph_editor edit(std::move(g));
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 4}});
  edit.keep(edit.add(toy::unary{}, {x})[0], role::output);
  return std::move(edit).finish();
}

std::size_t all_inputs(op_graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops())
    for (auto v : g.inputs(o)) n += index(v) + index(g.storage(v));
  return n;
}

}  // namespace

TEST_CASE("the last copy but one is read and dropped while the last one is edited") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const fresh = with_one_more(random_graph(seed, {.max_ops = 30}));
    auto const expected = with_one_more(fresh).digest();
    auto const inputs = all_inputs(fresh);
    op_graph mine = with_one_more(random_graph(seed, {.max_ops = 30})), theirs = mine;
    std::size_t met = 0;
    std::atomic<bool> dropped = false;  // relaxed: it orders nothing
    std::jthread reader([&met, &dropped, copy = std::make_unique<op_graph>(std::move(theirs))]() mutable {
      met = all_inputs(*copy);
      copy.reset();
      dropped.store(true, std::memory_order_relaxed);
    });
    while (seed % 2 && !dropped.load(std::memory_order_relaxed)) std::this_thread::yield();
    mine = with_one_more(std::move(mine));
    reader.join();
    CHECK(met == inputs);
    CHECK(mine.digest() == expected);
    CHECK(verify(mine).ok());
  }
}

TEST_CASE("threads edit copies of one graph apart") {
  auto const g = random_graph(3, {.least_ops = 20});
  auto const digest = g.digest(), expected = with_one_more(g).digest();
  std::vector<int> equal(4);
  {
    std::vector<std::jthread> threads;
    for (auto& n : equal)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) n += with_one_more(g).digest() == expected;
      });
  }
  for (int n : equal) CHECK(n == 50);
  CHECK(g.digest() == digest);
}
