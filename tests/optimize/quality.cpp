// The search's answers are no worse than bench/results/quality.csv: a third of its rows, searched again. Rows that became
// better are reported; bench_quality then writes the file anew.
#include "../support/quality_row.hpp"

#include <neap/optimize/optimize.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

using namespace neap;
using testing::quality_row;

TEST_CASE("no row of quality.csv becomes worse by half a percent, and their mean does not rise") {
  std::string const source = NEAP_SOURCE_DIR;
  auto const recorded = testing::recorded_quality(source + "/bench/results/quality.csv");
  auto const graphs = testing::quality_graphs(source);
  REQUIRE(recorded.size() == graphs.size() * testing::quality_limits.size());
  std::vector<quality_row> now, before;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    std::size_t const g = i / testing::quality_limits.size(), l = i % testing::quality_limits.size();
    if ((g + l) % 3 != 0) continue;
    before.push_back(recorded[i]);
    now.push_back(testing::plan_quality(graphs[g], testing::quality_limits[l], testing::quality_iterations));
    CHECK(now.back().graph == recorded[i].graph);
    CHECK_MESSAGE(!testing::is_worse(now.back(), recorded[i]), now.back().text(), " recorded: ", recorded[i].text());
    if (testing::is_worse(recorded[i], now.back()))
      MESSAGE("better: ", now.back().text(), " recorded: ", recorded[i].text());
  }
  REQUIRE(now.size() == recorded.size() / 3);
  CHECK(testing::mean_latency_change(now, before) <= 1 + 1e-9);
}

TEST_CASE("a row does not depend on the number of threads, and differs where the plan does") {
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  for (std::size_t const g : {std::size_t{3}, std::size_t{9}})
    for (double const limit : {0.7, 0.25}) {
      auto const one = testing::plan_quality(graphs[g], limit, 1000);
      CHECK(one.text() == testing::plan_quality(graphs[g], limit, 1000, 0, {}, 2).text());
    }
  auto const row = testing::plan_quality(graphs[3], 0.7, 20), other = testing::plan_quality(graphs[3], 0.4, 20);
  CHECK(row.plan != other.plan);
  auto same_limit = other;
  same_limit.limit = row.limit;
  CHECK(row.text() != same_limit.text());
}

TEST_CASE("a lost limit, a slower plan and a larger arena are worse; better rows are not") {
  quality_row const met{"g", 0.5, true, 100, 100, "1.200000000", ""},
      unmet{"g", 0.1, false, 100, 1000, "2.000000000", ""};
  auto const with = [](quality_row r, bytes_t arena, std::string latency) {
    r.arena_bytes = arena, r.latency_ratio = std::move(latency);
    return r;
  };
  CHECK(testing::is_worse(unmet, met));
  CHECK_FALSE(testing::is_worse(met, unmet));
  CHECK(testing::is_worse(with(met, 50, "1.207000000"), met));
  CHECK_FALSE(testing::is_worse(with(met, 500, "1.205000000"), met));
  CHECK_FALSE(testing::is_worse(with(met, 500, "1.1"), met));
  CHECK(testing::is_worse(with(unmet, 1006, "1.5"), unmet));
  CHECK(testing::is_worse(with(unmet, 1000, "2.02"), unmet));
  CHECK_FALSE(testing::is_worse(with(unmet, 990, "2.5"), unmet));
  CHECK_FALSE(testing::is_worse(unmet, unmet));
  CHECK(testing::mean_latency_change({with(met, 1, "1.3"), unmet}, {met, unmet}) > 1);
  CHECK(testing::mean_latency_change({met, with(unmet, 1, "9")}, {met, unmet}) == doctest::Approx(1));
}
