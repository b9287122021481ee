#include <neap/schedule/refine.hpp>

#include <neap/schedule/memory_greedy.hpp>

#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;
using namespace testing::toy;
namespace toy = testing::toy;

namespace {
struct some_seconds {
  seconds_t operator()(op_graph const& g, op_id o) const {
    return flow::is_view(g, o) ? 0 : 1 + static_cast<double>(index(o) % 4);
  }
};
}  // namespace

TEST_CASE("complete_order keeps the order of old ops and gives valid orders, whatever is missing") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.max_ops = 40, .copies = 3, .swaps = 3});
    auto const whole = testing::random_order(g, seed);
    random_stream draw(seed, 9);
    schedule partial;
    for (auto o : whole)
      if (draw.below(4)) partial.order.push_back(o);
    auto const s = complete_order(g, partial);
    CHECK(check_order(g, s).message() == "");
    schedule kept;
    std::vector<bool> was(g.op_count());
    for (auto o : partial) was[index(o)] = true;
    for (auto o : s)
      if (was[index(o)]) kept.order.push_back(o);
    CHECK(kept == partial);  // the whole order is valid, so no repair is needed
    CHECK(complete_order(g, whole) == whole);
  }
}

TEST_CASE("complete_order repairs an order that new constraints forbid") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto const g = testing::random_graph(seed);
    auto partial = testing::random_order(g, seed);
    std::reverse(partial.order.begin(), partial.order.end());
    CHECK(check_order(g, complete_order(g, partial)).message() == "");
    partial.order.resize(partial.size() / 2);
    CHECK(check_order(g, complete_order(g, partial)).message() == "");
  }
}

TEST_CASE("copies go before their first reader, stores after their producer") {
  graph_editor edit(testing::toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {16, 16}});
  auto const a = edit.add(unary{}, {x})[0];                          // 0
  auto const b = edit.add(toy::matmul{}, {a, a})[0];                 // 1
  auto const c = edit.add(toy::matmul{}, {b, b})[0];                 // 2
  auto const again = edit.output(edit.clone(op_id{0}));              // 3
  auto const stored = edit.add(op::store{}, {b})[0];                 // 4
  auto const loaded = edit.add(op::load{}, {stored})[0];             // 5
  auto const d = edit.add(toy::matmul{}, {c, again})[0];             // 6
  edit.keep(edit.add(toy::matmul{}, {d, loaded})[0], role::output);  // 7
  auto const g = std::move(edit).finish();
  schedule old;
  for (std::uint32_t o : {0, 1, 2, 6, 7}) old.order.push_back(op_id{o});
  schedule expected;
  for (std::uint32_t o : {0, 1, 4, 2, 3, 6, 5, 7}) expected.order.push_back(op_id{o});
  CHECK(complete_order(g, old) == expected);
}

TEST_CASE("refining never makes an order invalid, higher or, at equal peaks, slower") {
  int lower = 0, faster = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    auto const g =
        testing::random_graph(seed, {.max_ops = 50, .copies = 3, .swaps = static_cast<std::uint32_t>(seed % 4)});
    flow_facts const facts(g, some_seconds{});
    auto const s = testing::random_order(g, seed);
    auto const r = refine{}(facts, s);
    CHECK(check_order(facts, r).message() == "");
    simulator sim;
    auto const before = sim.judge(facts, s), after = sim.judge(facts, r);
    CHECK(after.peak_bytes <= before.peak_bytes);
    lower += after.peak_bytes < before.peak_bytes;
    faster += after.latency < before.latency;
    auto const loose = sim.judge(facts, refine{.limit = before.peak_bytes * 2}(facts, s));
    CHECK(loose.peak_bytes <= before.peak_bytes * 2);
  }
  CHECK(lower > 100);
  CHECK(faster > 30);
  auto wrong = testing::random_order(testing::random_graph(7), 1);
  std::reverse(wrong.order.begin(), wrong.order.end());
  CHECK_THROWS_AS(refine{}(flow_facts(testing::random_graph(7), no_cost{}), wrong), error);
}

TEST_CASE("a load is advanced just far enough to hide its transfer") {
  graph_editor edit(testing::toy_operators::facets);
  tensor_type const t{dtype::f32, {16, 16}};
  auto const x = edit.add_source(role::input, t);
  auto const a = edit.add(unary{}, {x})[0];           // op 0
  auto const stored = edit.add(op::store{}, {a})[0];  // op 1
  auto b = edit.add(unary{}, {x})[0];
  for (int i = 0; i < 9; ++i) b = edit.add(unary{i}, {b})[0];  // ops 2 to 11
  auto const back = edit.add(op::load{}, {stored})[0];         // op 12
  edit.keep(edit.add(binary{}, {b, back})[0], role::output);   // op 13
  auto const g = std::move(edit).finish();
  auto const cost = [](op_graph const& graph, op_id o) { return graph.as<op::load>(o) ? 2.5 : 1.0; };
  schedule s;
  for (auto o : g.ops()) s.order.push_back(o);
  flow_facts const facts(g, cost, {.alignment = 1});
  simulator sim;
  CHECK(sim.judge(facts, s).latency == 14.5);  // 11 ops, then 2.5 s of waiting, then one op
  auto const early = refine{.limit = 1 << 20}(facts, s);
  CHECK(sim.judge(facts, early).latency == 12);
  auto const at = positions(early);
  CHECK(at[op_id{12}] + 1 == at[op_id{9}]);  // ops 9, 10 and 11 hide it, a fourth is not needed
}

TEST_CASE(
    "of loads that may go where they like, hardly one would be better elsewhere: neither earlier, nor later at no price") {
  int loads = 0, better_earlier = 0, as_good_later = 0;
  simulator sim;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(
        seed, {.least_ops = 20, .max_ops = 60, .copies = 1, .swaps = 1 + static_cast<std::uint32_t>(seed % 5)});
    auto const cost = [&](op_graph const& x, op_id o) {
      if (flow::stream(x, o) != op_stream::compute) return 1 + static_cast<double>(seed % 7);
      return some_seconds{}(x, o);
    };
    flow_facts const facts(g, cost, {.alignment = 1});
    auto const s = refine{.limit = bytes_t{1} << 40}(facts, memory_greedy{}(facts));
    auto const latency = sim.judge(facts, s).latency;
    for (std::uint32_t p = 0; p < s.size(); ++p) {
      if (facts.stream(s[p]) != op_stream::to_device) continue;
      ++loads;
      bool later = false, earlier = false;
      auto t = s;
      for (auto q = p; q + 1 < s.size(); ++q) {
        std::swap(t.order[q], t.order[q + 1]);
        if (!check_order(facts, t)) break;
        bool const hides = facts.stream(s[q + 1]) == op_stream::compute && facts.seconds(s[q + 1]) > 0;
        later = later || (hides && sim.judge(facts, t).latency <= latency);
      }
      t = s;
      for (auto q = p; q > 0; --q) {
        std::swap(t.order[q], t.order[q - 1]);
        if (!check_order(facts, t)) break;
        earlier = earlier || sim.judge(facts, t).latency < latency;
      }
      better_earlier += earlier, as_good_later += later;
    }
  }
  MESSAGE("of ", loads, " loads: ", better_earlier, " better earlier, ", as_good_later, " as good later");
  CHECK(loads > 200);
  CHECK(better_earlier * 100 <= loads);
  CHECK(as_good_later * 100 <= 3 * loads);
}

TEST_CASE("a load is issued before the op in the midst of which its store ends") {
  graph_editor edit(testing::toy_operators::facets);
  tensor_type const t{dtype::f32, {16, 16}};
  auto const x = edit.add_source(role::input, t);
  auto const a = edit.add(unary{}, {x})[0];                   // op 0, 1 s
  auto const stored = edit.add(op::store{}, {a})[0];          // op 1, up to 2.5 s
  auto const b = edit.add(unary{1}, {x})[0];                  // op 2, from 1 s to 4 s
  auto const c = edit.add(unary{2}, {b})[0];                  // op 3, up to 7 s
  auto const back = edit.add(op::load{}, {stored})[0];        // op 4, 4 s: from 2.5 s, or from 4 s
  edit.keep(edit.add(binary{}, {c, back})[0], role::output);  // op 5, from 7 s, or from 8 s
  auto const g = std::move(edit).finish();
  auto const cost = [](op_graph const& graph, op_id o) {
    if (graph.as<op::load>(o)) return 4.0;
    if (graph.as<op::store>(o)) return 1.5;
    return index(o) == 2 || index(o) == 3 ? 3.0 : 1.0;
  };
  schedule s;
  for (auto o : g.ops()) s.order.push_back(o);
  flow_facts const facts(g, cost, {.alignment = 1});
  auto const early = refine{.limit = 1 << 20}(facts, s);
  CHECK(positions(early)[op_id{4}] < positions(early)[op_id{2}]);
  CHECK(simulator{}.judge(facts, early).latency == 8);
}
