#include <neap/schedule/refine.hpp>

#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;
using namespace testing::toy;

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
    auto const g = testing::random_graph(seed, {.most_ops = 40, .copies = 3, .swaps = 3});
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
  auto const a = edit.add(unary{}, {x})[0];                     // 0
  auto const b = edit.add(matmul{}, {a, a})[0];                 // 1
  auto const c = edit.add(matmul{}, {b, b})[0];                 // 2
  auto const again = edit.output(edit.clone(op_id{0}));         // 3
  auto const stored = edit.add(op::store{}, {b})[0];            // 4
  auto const loaded = edit.add(op::load{}, {stored})[0];        // 5
  auto const d = edit.add(matmul{}, {c, again})[0];             // 6
  edit.keep(edit.add(matmul{}, {d, loaded})[0], role::output);  // 7
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
        testing::random_graph(seed, {.most_ops = 50, .copies = 3, .swaps = static_cast<std::uint32_t>(seed % 4)});
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
