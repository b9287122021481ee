// Each stage of the search that makes candidates to start from, called by itself.
#include <neap/optimize/search_stages.hpp>

#include "../support/search_stage.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

using namespace neap;
using testing::search_stage;

TEST_CASE("initial orders: the original is the first candidate, an order that was offered counts once") {
  search_stage s("nested3", 0.5);
  REQUIRE(s.orders.size() == 1);
  CHECK(s.state().original == s.orders[0]);
  CHECK(s.state().best == s.orders[0]);
  CHECK(s.state().limits.memory == s.state().out.original.peak_bytes / 2);
  auto const before = s.judged();
  auto const& c = s.orders[0]->state;
  std::array const twice{c.order, c.order};
  CHECK(detail::add_initial_orders(s.state(), c.order, twice).size() ==
        2);  // that of before, and one of three that are equal
  CHECK(s.judged() == before + 1);
}

TEST_CASE(
    "segments reach a limit of memory; the next call with `again` searches once more, without the switch none does") {
  search_stage s("chain200", 0.4);
  detail::segments stage(s.state());
  CHECK_FALSE(s.state().is_met());
  stage.add_seeds(s.orders);
  CHECK(s.state().is_met());
  CHECK(s.best_is_right());
  auto const once = s.judged();
  stage.add_seeds(s.orders, true);
  CHECK(s.judged() > once);

  search_policy off;
  off.segments.on = false;
  search_stage without("chain200", 0.4, 0, off);
  detail::segments none(without.state());
  none.add_seeds(without.orders);
  none.add_until_met(without.orders, 1);
  CHECK(none.prepare(without.orders).empty());
  CHECK(without.judged() == 1);
}

TEST_CASE("segments stop at the first that meets the limit, and go on from there") {
  search_stage s("chain200", 0.4);
  detail::segments stage(s.state());
  stage.add_until_met(s.orders, 1);
  CHECK(s.state().is_met());
  auto const one = s.judged();
  stage.add_seeds(s.orders);
  CHECK(s.judged() > one);
}

TEST_CASE("segments use their share of the epoch, and no candidate more") {
  search_policy little;
  little.segments.share = 1e-4;
  search_stage s("chain200", 0.4, 0, little);
  detail::segments stage(s.state());
  stage.add_seeds(s.orders);
  CHECK(s.state().budget.used() >= 1e-4);
  CHECK(s.judged() <= 1 + 1 + 12);  // what is begun is ended: one candidate after the share
}

TEST_CASE("hidden swaps cost nothing and lower the peak; without a link there are none") {
  search_stage s("transformer24", 0.9);
  detail::add_hidden_swaps(s.state(), s.orders);
  CHECK(s.judged() > 1);
  CHECK(s.best_is_right());
  auto const& r = s.state().best->state.result;
  if (s.state().is_met()) CHECK(r.peak_bytes < s.state().out.original.peak_bytes);
  search_stage none("nested3", 0.9);
  detail::run_stages(none.run(), detail::phase::begin);
  for (auto const& x : none.state().out.stages) CHECK(x.stage != "hidden_swaps");
  CHECK(none.judged() == 1);
}

TEST_CASE("offloads come near a limit of memory, or use a limit of latency") {
  search_stage s("transformer24", 0.7);
  detail::add_offloads(s.state());
  CHECK(s.best_is_right());
  CHECK(s.state().best->state.result.peak_bytes < s.state().out.original.peak_bytes);
  search_stage spends("transformer24", 0, 1.5);
  detail::add_offloads(spends.state());
  CHECK(spends.best_is_right());
  CHECK(spends.state().best->state.result.latency <= spends.state().goal.latency);
  CHECK(spends.state().best->state.result.peak_bytes < spends.state().out.original.peak_bytes);
}

TEST_CASE("partitions start from prepared bases, and bring the peak down") {
  search_stage s("gpt-d256-l4-b8-t128", 0.8);
  detail::segments recomputed(s.state());
  detail::partitions stage(s.state());
  auto starts = s.orders;
  CHECK(stage.prices() == nullptr);  // nothing is prepared
  CHECK_FALSE(stage.refine());
  stage.prepare(starts, recomputed);
  REQUIRE(stage.prices() != nullptr);
  CHECK(stage.bases().front() == s.orders.front());
  stage.add_seeds(starts, recomputed);
  CHECK(starts.size() > 1);
  CHECK(s.state().best->state.result.peak_bytes < s.state().out.original.peak_bytes);
  CHECK(s.best_is_right());
  auto const before = s.judged();
  detail::cut_further(s.state(), *stage.prices(), 0.9);
  CHECK(s.judged() >= before);
  stage.begin_epoch();
  CHECK(stage.bases().empty());
  CHECK(stage.prices() == nullptr);
}

TEST_CASE("candidates to cut are above the target, each once, and no slower than allowed") {
  search_stage s("gpt-d256-l4-b8-t128", 0.5, 1.3);
  detail::segments recomputed(s.state());
  recomputed.add_seeds(s.orders);
  auto const& state = s.state();
  for (seconds_t const latency : {state.out.original.latency * 1.05, state.goal.latency}) {
    auto const cut = detail::candidates_to_cut(state, latency, state.target);
    for (auto const& n : cut) {
      CHECK(n->state.result.latency < latency);
      CHECK(n->state.result.peak_bytes > state.target);
      CHECK(std::count(cut.begin(), cut.end(), n) == 1);
    }
  }
}

namespace {

/// Hands in the program as it came, so many times.
struct same_again : search_starts {
  int times;
  explicit same_again(int n) : times(n) {}
  struct points : starting_points {
    start_from const from;
    int times;
    points(start_from const& f, int n) : from(f), times(n) {}
    void run(objective const& goal, start_judge& judge) override {
      for (int k = 0; k < times && !judge.stop(); ++k) {
        auto const v = judge.judge(from.graph, from.order, "the same");
        CHECK(v.peak_bytes == from.result.peak_bytes);
        CHECK(v.latency == from.result.latency);
        CHECK((v.peak_bytes > goal.memory || !goal.limits_memory));
        judge.keep();
        judge.pause();
      }
    }
  };
  std::unique_ptr<starting_points> begin(start_from const& from) const override {
    return std::make_unique<points>(from, times);
  }
};

}  // namespace

TEST_CASE("external seeds are judged, marked and kept, with pauses between them, in their share of the epoch") {
  auto const plant = [](search_policy const& policy, int& pauses) {
    search_stage s("nested3", 0.5, 0, policy, std::make_shared<same_again const>(7));
    s.run().external.add_seeds(false, [&] { ++pauses; });
    CHECK(s.state().queue.size() == s.judged());
    CHECK_FALSE(s.state().queue.front()->is_external_seed);
    for (std::size_t k = 1; k < s.state().queue.size(); ++k) CHECK(s.state().queue[k]->is_external_seed);
    CHECK((s.state().external_share > 0) == (pauses > 0));
    return s.judged();
  };
  int pauses = 0;
  CHECK(plant({}, pauses) == 8);
  CHECK(pauses == 7);
  search_policy little;
  little.external_seeds.share = 1e-9;
  CHECK(plant(little, pauses = 0) == 2);
  little.external_seeds.on = false;
  CHECK(plant(little, pauses = 0) == 1);
  CHECK(pauses == 0);
}
