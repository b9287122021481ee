#include <neap/mutate/reschedule.hpp>

#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>

#include "../support/deep_graph.hpp"
#include "../support/exhaustive_order.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;

namespace {

struct some_seconds {
  template <class G>
  seconds_t operator()(G const& g, op_id o) const {
    return flow::is_view(g, o) ? 0 : 1e-5 * (1 + static_cast<double>(index(o) % 4));
  }
};

/// An order without some of its ops, as if they were new.
schedule without(schedule const& whole, plain_vector<op_id> const& gone) {
  schedule s;
  for (auto o : whole)
    if (std::find(gone.begin(), gone.end(), o) == gone.end()) s.order.push_back(o);
  return s;
}

}  // namespace

TEST_CASE("a random edit's order is valid, no worse than the old one repaired, and the old one far from the edit") {
  int lower = 0, as_they_were = 0;
  simulator sim;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.least_ops = 20,
                                                .max_ops = 160,
                                                .copies = static_cast<std::uint32_t>(seed % 4),
                                                .swaps = static_cast<std::uint32_t>(seed % 3)});
    flow_facts const facts(g, some_seconds{}, {.alignment = 16, .takeover = seed % 2 == 0});
    auto const whole = testing::random_order(g, seed);
    random_stream draw(seed, 4);
    plain_vector<op_id> fresh;
    for (auto k = draw.below(4); k > 0; --k)
      fresh.push_back(whole[draw.below(static_cast<std::uint32_t>(whole.size()))]);
    auto const old = without(whole, fresh);
    auto const repaired = complete_order(facts, old);
    reschedule<> const near{.margin = 3, .reach = 8};
    auto const s = near(facts, old);
    CHECK(check_order(facts, s).message() == "");
    auto const before = sim.peak(facts, repaired), after = sim.peak(facts, s);
    CHECK(after <= before);
    CHECK(near(facts, old) == s);
    CHECK(near(facts, repaired, span_of(fresh)) == s);
    lower += after < before;
    // Without a window at the peak, what stands further from all that is new than a window reaches stays where it was.
    reschedule<> const edit_only{.margin = 3, .reach = 8, .anywhere = false};
    auto const t = edit_only(facts, old);
    auto const at = positions(repaired);
    for (std::uint32_t p = 0; p < t.size(); ++p)
      if (std::all_of(fresh.begin(), fresh.end(), [&](op_id o) { return at[o] + 8 < p || p + 8 < at[o]; }))
        CHECK(t[p] == repaired[p]);
    as_they_were += t == repaired;
    if (fresh.empty()) CHECK(t == repaired);
  }
  CHECK(lower > 100);
  CHECK(as_they_were > 30);
}

TEST_CASE("a window over all is what its scheduler makes of all, where that is better") {
  simulator sim;
  int better = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.least_ops = 3, .max_ops = 10});
    flow_facts const facts(g, no_cost{}, {.alignment = 1});
    if (facts.op_count() < 3 || facts.op_count() > 13) continue;
    auto const order = testing::random_order(g, seed);
    op_id const changed[] = {order[order.size() / 2]};
    auto const s = reschedule<testing::exhaustive_order>{.margin = 64, .reach = 64}(facts, order, changed);
    CHECK(sim.peak(facts, s) == sim.peak(facts, testing::exhaustive_order{}(facts)));
    better += sim.peak(facts, s) < sim.peak(facts, order);
    // One that changes nothing changes nothing.
    CHECK(reschedule<given_order>{}(facts, order, changed) == order);
  }
  CHECK(better > 30);
  auto const g = testing::random_graph(1);
  CHECK(reschedule<>{}(g, schedule{}) == reschedule<>{}(flow_facts(g, no_cost{}), schedule{}));
}

TEST_CASE("after recomputation and swaps: the peak of the scheduler's own order of all, nearly always") {
  memory_options const plainly{.alignment = 1, .takeover = false};
  simulator sim;
  int rewrites = 0, at_most = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    auto const program =
        testing::deep_graph(
            {.layers = 12 + 3 * seed, .mixed = seed % 2 == 0, .skip = seed % 4, .long_skip = seed % 3, .seed = seed})
            .program;
    random_stream draw(seed, 6);
    flow_facts facts(program, some_seconds{}, plainly);
    auto order = memory_greedy{}(facts);
    candidate now{program, order, sim(facts, order)};
    for (int k = 0; k < 8; ++k) {
      auto const at = k % 2 ? now.result.peak_position : draw.below(static_cast<std::uint32_t>(now.order.size()));
      auto const gaps = neap::detail::gaps_at(now.graph, now.order, now.result, at);
      if (gaps.empty()) continue;
      auto const g = gaps[draw.below(static_cast<std::uint32_t>(gaps.size()))];
      auto e = draw.below(2) ? apply_mutation(recompute{g.storage, g.resume}, now)
                             : apply_mutation(swap_out{g.storage, g.left, g.resume, 1e9}, now);
      if (!e) continue;
      facts.assign(e->graph, some_seconds{}, plainly);
      plain_vector<op_id> fresh;  // the last ids
      for (auto o = now.graph.op_count(); o < e->graph.op_count(); ++o) fresh.push_back(id_at<op_id>(o));
      order = reschedule<>{}(facts, without(e->order, fresh));
      REQUIRE(check_order(facts, order).message() == "");
      auto result = sim(facts, order);
      at_most += result.peak_bytes <= sim.peak(facts, memory_greedy{}(facts));
      ++rewrites;
      now = {std::move(e->graph), order, std::move(result)};
    }
  }
  MESSAGE(at_most, " of ", rewrites);
  CHECK(rewrites > 100);
  CHECK(100 * at_most >= 94 * rewrites);
}
