#include <neap/schedule/order.hpp>

#include <neap/schedule/memory_greedy.hpp>

#include "../support/exhaustive_order.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;

namespace {
struct gives_a_list {
  std::vector<op_id> operator()(op_graph const&) const { return {}; }
};
static_assert(scheduler_for<reverse_post_order, op_graph> && scheduler_for<given_order, testing::toy_graph>);
static_assert(scheduler_for<memory_greedy, op_graph> && scheduler_for<greedy_forward, op_graph>);
static_assert(scheduler_for<greedy_backward, op_graph> && scheduler_for<testing::exhaustive_order, op_graph>);
static_assert(!scheduler_for<gives_a_list, op_graph>);

/// Ops that only wait for each other.
struct waits {
  std::vector<std::vector<op_id>> after;
};

/// Reverse post-order as textbooks have it.
schedule by_recursion(flow_facts const& facts) {
  std::vector<std::vector<op_id>> next(facts.op_count());
  for (auto o : id_range<op_id>(facts.op_count()))
    for (auto before : facts.after(o)) next[index(before)].push_back(o);
  std::vector<bool> seen(facts.op_count());
  schedule s;
  auto const walk = [&](auto const& self, op_id o) -> void {
    if (seen[index(o)]) return;
    seen[index(o)] = true;
    for (std::size_t i = next[index(o)].size(); i-- > 0;) self(self, next[index(o)][i]);
    s.order.push_back(o);
  };
  for (std::size_t i = facts.op_count(); i-- > 0;)
    if (facts.after(id_at<op_id>(i)).empty()) walk(walk, id_at<op_id>(i));
  std::reverse(s.order.begin(), s.order.end());
  return s;
}

/// The least peak over every topological order, one by one.
bytes_t least_peak(flow_facts const& facts, schedule& path, std::vector<bool>& done, simulator& sim) {
  if (path.size() == facts.op_count()) return sim.peak(facts, path);
  bytes_t best = INT64_MAX;
  for (auto o : id_range<op_id>(facts.op_count())) {
    bool ready = !done[index(o)];
    for (auto b : facts.after(o)) ready = ready && done[index(b)];
    if (!ready) continue;
    done[index(o)] = true;
    path.order.push_back(o);
    best = std::min(best, least_peak(facts, path, done, sim));
    path.order.pop_back();
    done[index(o)] = false;
  }
  return best;
}
}  // namespace

template <>
struct neap::graph_traits<waits> {
  static std::size_t op_count(waits const& g) { return g.after.size(); }
  static std::size_t value_count(waits const&) { return 0; }
  static std::size_t storage_count(waits const&) { return 0; }
  static std::vector<value_id> inputs(waits const&, op_id) { return {}; }
  static std::vector<value_id> outputs(waits const&, op_id) { return {}; }
  static storage_id storage(waits const&, value_id) { return storage_id{0}; }
  static bytes_t bytes(waits const&, storage_id) { return 0; }
  static std::vector<op_id> const& order_after(waits const& g, op_id o) { return g.after[index(o)]; }
};

TEST_CASE("every scheduler gives a valid order of every random graph, and the same one twice") {
  for (std::uint64_t seed = 0; seed < testing::cases(800u); ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(
        seed,
        {.max_ops = 80, .copies = static_cast<std::uint32_t>(seed % 3), .swaps = static_cast<std::uint32_t>(seed % 4)});
    flow_facts const facts(g, no_cost{});
    auto const check = [&](auto const& scheduler) {
      auto const s = scheduler(facts);
      CHECK(check_order(facts, s).message() == "");
      CHECK(scheduler(g) == s);
    };
    check(reverse_post_order{});
    CHECK(reverse_post_order{}(facts) == by_recursion(facts));
    check(given_order{});
    check(greedy_forward{});
    check(greedy_backward{});
    CHECK(check_order(g, testing::random_order(g, seed)).ok());
    simulator sim;
    auto const s = memory_greedy{}(facts);
    CHECK(check_order(facts, s).message() == "");
    CHECK(sim.peak(facts, s) <= sim.peak(facts, reverse_post_order{}(facts)));
    CHECK(sim.peak(facts, s) <= sim.peak(facts, greedy_backward{}(facts)));
  }
}

TEST_CASE("constraints that form a cycle have no order") {
  auto const o = [](std::uint32_t i) { return op_id{i}; };
  CHECK(reverse_post_order{}(waits{{{}, {o(0)}, {o(1), o(1), o(0)}}}).order == std::vector{o(0), o(1), o(2)});
  CHECK_THROWS_AS(reverse_post_order{}(waits{{{}, {o(0), o(2)}, {o(1)}}}), error);  // a walk runs into it
  CHECK_THROWS_AS(reverse_post_order{}(waits{{{}, {o(2)}, {o(1)}}}), error);        // no walk gets there
  CHECK_THROWS_AS(reverse_post_order{}(waits{{{o(0)}}}), error);
  CHECK(reverse_post_order{}(waits{}).size() == 0);
}

TEST_CASE("sliding keeps orders valid, and lowers many peaks") {
  int sunk = 0, hoisted = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(400u); ++seed) {
    CAPTURE(seed);
    auto const g =
        testing::random_graph(seed, {.max_ops = 60, .copies = 2, .swaps = static_cast<std::uint32_t>(seed % 3)});
    flow_facts const facts(g, no_cost{});
    auto const s = testing::random_order(g, seed);
    auto const a = sink(facts, s), b = hoist(facts, s);
    CHECK(check_order(facts, a).message() == "");
    CHECK(check_order(facts, b).message() == "");
    simulator sim;
    sunk += sim.peak(facts, a) < sim.peak(facts, s);
    hoisted += sim.peak(facts, b) < sim.peak(facts, s);
  }
  CHECK(sunk > testing::cases(100));
  CHECK(hoisted > testing::cases(50));
}

TEST_CASE("faulty orders are told") {
  auto const g = testing::random_graph(5);
  auto const good = reverse_post_order{}(g);
  auto s = good;
  s.order.pop_back();
  CHECK(check_order(g, s).message().find("positions for") != std::string::npos);
  s = good;
  s.order.back() = s.order.front();
  CHECK(check_order(g, s).message().find("appears twice") != std::string::npos);
  s = good;
  std::reverse(s.order.begin(), s.order.end());
  CHECK(check_order(g, s).message().find("which it needs") != std::string::npos);
  s.order.front() = op_id{100000};
  CHECK(check_order(g, s).message().find("not in the graph") != std::string::npos);
}

TEST_CASE("the exhaustive order has the least peak of all orders; the greedy one comes near") {
  double ratio = 0, worst = 1;
  int cases = 0, optimal = 0;
  simulator sim;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.least_ops = 3, .max_ops = 8, .copies = 1});
    if (g.op_count() > 9) continue;
    flow_facts const facts(g, no_cost{}, {.alignment = 1, .takeover = seed % 2 == 0});
    schedule path;
    std::vector<bool> done(g.op_count());
    auto const least = least_peak(facts, path, done, sim);
    auto const best = testing::exhaustive_order{}(facts);
    CHECK(check_order(facts, best).message() == "");
    CHECK(sim.peak(facts, best) == least);
    auto const greedy = sim.peak(facts, memory_greedy{}(facts));
    CHECK(greedy >= least);
  }
  for (std::uint64_t seed = 0; seed < testing::cases(200u); ++seed) {
    auto const g = testing::random_graph(seed, {.least_ops = 8, .max_ops = 13});
    if (g.op_count() > 16) continue;
    flow_facts const facts(g, no_cost{}, {.alignment = 1});
    auto const least = sim.peak(facts, testing::exhaustive_order{}(facts));
    auto const r = static_cast<double>(sim.peak(facts, memory_greedy{}(facts))) / static_cast<double>(least);
    ratio += r, worst = std::max(worst, r), ++cases, optimal += r == 1;
  }
  MESSAGE("memory_greedy / optimum: mean " << ratio / cases << ", worst " << worst << ", optimal " << optimal << " of "
                                           << cases);
  CHECK(ratio / cases < 1.05);
  CHECK_THROWS_AS(testing::exhaustive_order{}(testing::random_graph(1, {.least_ops = 30, .max_ops = 40})), error);
}

TEST_CASE("weights are updated as soon as their gradients are complete") {
  // a chain of layers forward, then backward; gradients and updates listed last, as a file might have them
  using namespace testing::toy;
  graph_editor edit(testing::toy_operators::facets);
  tensor_type const t{dtype::f32, {32, 32}};
  std::vector<value_id> w, x{edit.add_source(role::input, {dtype::f32, {4, 32}})}, dw;
  for (int i = 0; i < 8; ++i) {
    w.push_back(edit.add_source(role::weight, t));
    x.push_back(edit.add(matmul{}, {x.back(), w.back()})[0]);
  }
  auto dy = edit.add(unary{}, {x.back()})[0];
  for (int i = 8; i-- > 0;) {
    dw.push_back(edit.add(matmul{}, {edit.add(transpose{}, {x[static_cast<std::size_t>(i)]})[0], dy})[0]);
    if (i > 0) dy = edit.add(matmul{}, {dy, w[static_cast<std::size_t>(i)]})[0];
  }
  for (std::size_t i = 0; i < 8; ++i) edit.keep(edit.add(descend{}, {w[7 - i], dw[i]})[0], role::output);
  auto const g = std::move(edit).finish();
  flow_facts const facts(g, no_cost{}, {.alignment = 1});
  simulator sim;
  bytes_t const one = 32 * 32 * 4;
  auto const given = sim.peak(facts, given_order{}(facts));
  auto const greedy = sim.peak(facts, memory_greedy{}(facts));
  CHECK(given > facts.resident_bytes() + 8 * one);
  // one gradient with its workspace, and the activations, each an eighth of it
  CHECK(greedy <= facts.resident_bytes() + one + one / 4 + 9 * one / 8);
}
