#include <neap/plan/plan.hpp>

#include <neap/plan/candidate.hpp>
#include <neap/plan/external_plan.hpp>
#include <neap/plan/limits.hpp>
#include <neap/plan/live_range.hpp>

#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/engine_net.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <concepts>
#include <limits>

using namespace neap;

namespace {
template <class T>
concept value = std::regular<T>;
static_assert(value<schedule> && value<live_range> && value<plan_step> && value<plan_buffer> && value<transfer_wait>);
static_assert(value<external_plan> && value<external_step> && value<external_buffer> && value<external_value>);
static_assert(std::copyable<plan> && std::copyable<simulation>);
static_assert(memory_limit(100).resolve(1000) == 100);
static_assert(memory_limit::of_original(0.25).resolve(1000) == 250);
static_assert(memory_limit().resolve(1000) == INT64_MAX);
static_assert(memory_limit::of_original(2).resolve(INT64_MAX) == INT64_MAX);
static_assert(memory_limit::of_original(1).resolve((bytes_t{1} << 59) + 1) == (bytes_t{1} << 59) + 1);
// As it is written: of doubles alone 0.57 of 100 would be 56.
static_assert([] {
  for (int percent = 0; percent <= 300; ++percent)
    for (bytes_t whole : {bytes_t{100}, bytes_t{700}, bytes_t{123'456'700}, bytes_t{4'563'402'752} * 100})
      if (memory_limit::of_original(percent / 100.0).resolve(whole) != whole / 100 * percent) return false;
  return true;
}());
static_assert(memory_limit::of_original(0.57).resolve(101) == 57);
static_assert(memory_limit::of_original(0.999999).resolve(1'000'000) == 999'999);
static_assert(memory_limit::of_original(0.3333).resolve(10'001) == 3333);
static_assert(latency_limit::in_seconds(2).resolve(1) == 2.0);
static_assert(latency_limit::of_original(1.5).resolve(2) == 3.0);
}  // namespace

TEST_CASE("numbers that are no limits are refused, with the number") {
  double const none = std::numeric_limits<double>::quiet_NaN();
  auto const said = [](auto make) -> std::string {
    try {
      (void)make();
    } catch (error const& e) { return e.what(); }
    return {};
  };
  std::pair<std::string, char const*> const all[] = {
      {said([] { return memory_limit{-5}; }), "a memory limit of -5: "},
      {said([] { return memory_limit::of_original(-0.5); }), "memory_limit::of_original of -0.5: "},
      {said([&] { return memory_limit::of_original(none); }), "memory_limit::of_original of "},
      {said([] { return memory_limit::of_original(40); }), "memory_limit::of_original of 40: "},
      {said([] { return latency_limit::in_seconds(-1); }), "latency_limit::in_seconds of -1: "},
      {said([&] { return latency_limit::in_seconds(none); }), "latency_limit::in_seconds of "},
      {said([] { return latency_limit::of_original(-1); }), "latency_limit::of_original of -1: "},
      {said([] { return time_budget{std::chrono::seconds(-1)}; }), "a time budget of -1: "},
      {said([&] { return time_budget{std::chrono::duration<double>(none)}; }), "a time budget of "}};
  for (auto const& [text, part] : all) {
    CAPTURE(text);
    CHECK(text.find(part) != text.npos);
    CHECK(text.starts_with("plan.cpp:"));
  }
  CHECK(said([] { return std::pair{memory_limit{0}, time_budget{std::chrono::seconds(0)}}; }).empty());
}

TEST_CASE("live ranges include both ends; an empty one overlaps nothing") {
  live_range const a{2, 5}, b{5, 5}, c{6, 9}, none;
  CHECK(a.overlaps(b));
  CHECK(b.overlaps(a));
  CHECK(!a.overlaps(c));
  CHECK(none.empty());
  CHECK(!none.overlaps(a));
  CHECK(!a.overlaps(none));
}

TEST_CASE("a plan tells its order and where each storage lies") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto const g = testing::random_graph(seed, {.swaps = 2});
    auto const order = reverse_post_order{}(g);
    auto const p = make_plan(candidate{g, order, simulate(g, order, no_cost{})}, g);
    CHECK(p.order() == order);
    auto const at = positions(order);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(at[order[i]] == i);
    auto const buffer = p.buffer_of();
    CHECK(buffer.size() == g.storage_count());
    std::size_t placed = 0;
    for (auto s : g.storages()) {
      if (buffer[s] == p.no_buffer) continue;
      ++placed;
      CHECK(p.buffers[buffer[s]].storage == s);
      CHECK(p.buffers[buffer[s]].resident == g.is_resident(s));
    }
    CHECK(placed == p.buffers.size());
    CHECK(std::is_sorted(p.buffers.begin(), p.buffers.end(),
                         [](auto const& a, auto const& b) { return index(a.storage) < index(b.storage); }));
  }
}

TEST_CASE("waits: what a load brings, what a store frees, and the end") {
  using testing::toy::unary;
  graph_editor edit(testing::toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {64}});
  auto const a = edit.add(unary{}, {x})[0];             // step 0
  auto const stored = edit.add(op::store{}, {a})[0];    // step 1, ends while step 3 runs
  auto b = edit.add(unary{}, {x})[0];                   // step 2
  b = edit.add(unary{1}, {b})[0];                       // step 3
  b = edit.add(unary{2}, {b})[0];                       // step 4: the first to start after the store
  auto const back = edit.add(op::load{}, {stored})[0];  // step 5
  edit.keep(edit.add(testing::toy::binary{}, {b, back})[0], role::output);  // step 6
  testing::toy_graph const g(std::move(edit).finish());
  schedule order;
  for (auto o : g.ops()) order.order.push_back(o);
  auto const cost = [](op_graph const& graph, op_id o) { return graph.as<op::store>(o) ? 1.5 : 1.0; };
  auto const p = make_plan(candidate{g, order, simulate(g, order, cost)}, g);
  CHECK(p.waits == std::vector<transfer_wait>{{4, 1}, {6, 5}});
}

TEST_CASE("a graph that cannot be copied is placed where it stands, in its own ids") {
  static_assert(!std::copyable<engine::net>);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    engine::truth t;
    auto const g = engine::random_net(seed, t);
    auto const order = reverse_post_order{}(g);
    auto const s = simulate(g, order, given_latencies{});
    auto const p = make_plan(g, order, s);
    CHECK(p.order() == order);
    CHECK(p.peak_bytes == s.peak_bytes);
    CHECK(p.latency == s.latency);
    CHECK(p.lower_bound_bytes <= p.peak_bytes);
    CHECK(p.arena_bytes >= p.peak_bytes);
    for (auto const& b : p.buffers) {
      CHECK(b.offset + b.bytes <= p.arena_bytes);
      CHECK(b.resident == static_cast<bool>(g.resident[index(b.storage)]));
      if (!b.resident) CHECK(live_range{b.first, b.last} == s.live[b.storage]);
      for (auto const& c : p.buffers)
        if (&b != &c && b.offset < c.offset + c.bytes && c.offset < b.offset + b.bytes &&
            live_range{b.first, b.last}.overlaps({c.first, c.last}))
          CHECK((b.takes_over == c.storage || c.takes_over == b.storage));
    }
  }
}

TEST_CASE("an alignment that is none is refused where addresses are given") {
  auto const g = testing::random_graph(1);
  auto const order = given_order{}(g);
  auto const s = simulate(g, order, no_cost{});
  for (bytes_t alignment : {bytes_t{0}, bytes_t{-64}, bytes_t{INT64_MAX}})
    CHECK_THROWS_AS(make_plan(g, order, s, {.alignment = alignment}), error);
}
