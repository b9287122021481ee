#include <neap/memory/lifetimes.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/schedule/memory_greedy.hpp>

#include "../support/message.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;

namespace {
struct some_seconds {
  seconds_t operator()(op_graph const&, op_id o) const { return static_cast<double>(index(o) % 5); }
};
}  // namespace

TEST_CASE("the records' load is the simulated bytes at each position, less the residents") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.copies = 2, .swaps = static_cast<std::uint32_t>(seed % 3)});
    flow_facts const facts(g, some_seconds{}, {.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0});
    auto const order = testing::random_order(g, seed);
    auto const s = simulator{}(facts, order);
    auto const l = lifetimes(facts, order, s);
    std::vector<bytes_t> load(order.size(), facts.resident_bytes());
    for (auto const& r : l.records)
      for (auto p = r.lower; p < r.upper; ++p) load[static_cast<std::size_t>(p)] += r.size;
    CHECK(load == s.bytes_at);
  }
}

TEST_CASE("a plan's arena holds its peak, and its highest byte is the arena's end") {
  double total = 0, arenas = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    memory_options const options{.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0};
    auto const g = testing::random_graph(seed, {.swaps = static_cast<std::uint32_t>(seed % 3)});
    auto const order = memory_greedy{}(g, options);
    auto const result = simulate(g, order, some_seconds{}, options);
    auto const p = make_plan(candidate{g, order, result}, g, options);
    CHECK(p.order() == order);
    CHECK(p.peak_bytes == result.peak_bytes);
    CHECK(p.arena_bytes >= p.peak_bytes);
    CHECK(p.lower_bound_bytes <= p.peak_bytes);
    bytes_t top = p.resident_bytes;
    for (auto const& b : p.buffers) top = std::max(top, b.offset + b.bytes);
    for (auto const& s : p.steps) top = std::max(top, s.workspace_bytes ? s.workspace_offset + s.workspace_bytes : 0);
    CHECK(top == p.arena_bytes);
    CHECK(std::is_sorted(p.waits.begin(), p.waits.end()));
    total += static_cast<double>(p.peak_bytes), arenas += static_cast<double>(p.arena_bytes);
  }
  CHECK(arenas / total < 1.02);
}

TEST_CASE("a planner whose answer is wrong is refused, in one line that says how") {
  auto const g = testing::random_graph(3);
  auto const order = memory_greedy{}(g);
  auto const result = simulate(g, order, some_seconds{});
  auto const refused = [&](auto const& change) {
    return testing::message_of([&] {
      (void)make_plan(candidate{g, order, result}, g, {}, [&](memory_problem const& p) {
        auto placed = default_planner{}(p);
        change(placed);
        return placed;
      });
    });
  };
  CHECK(refused([](memory_plan&) {}) == "no error");
  auto const says = [&](auto const& change, char const* text) {
    auto const told = refused(change);
    CHECK_MESSAGE(told.starts_with("plan: the memory planner's answer is wrong: "), told);
    CHECK_MESSAGE(told.find(text) != std::string::npos, told);
    CHECK(told.find('\n') == std::string::npos);
  };
  says([](memory_plan& p) { p = {}; }, "the plan has 0 offsets for ");
  says([](memory_plan& p) { p.offsets[0] = -64; }, "record 0: its offset -64 is negative");
  says([](memory_plan& p) { p.arena_bytes = 0; }, "the arena of 0 bytes ends before the records");
  says([](memory_plan& p) { p.offsets[0] = INT64_MAX; }, "record 0: its end overflows");
  says([](memory_plan& p) { std::fill(p.offsets.begin(), p.offsets.end(), 0); }, "collide at moment");
  says([](memory_plan& p) { p.lower_bound_bytes = p.arena_bytes + 1; }, "is below the bound it claims");
}
