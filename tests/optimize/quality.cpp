// The search's answers as bench/results/quality.csv has them: a third of its rows, searched again and compared exactly.
// Where a change of the search moves rows on purpose, bench_quality writes the file anew.
#include "../support/quality_row.hpp"

#include <neap/optimize/optimize.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace neap;

TEST_CASE("rows of quality.csv are found again") {
  std::string const source = NEAP_SOURCE_DIR;
  auto const recorded = testing::recorded_quality(source + "/bench/results/quality.csv");
  auto const graphs = testing::quality_graphs(source);
  REQUIRE(recorded.size() == graphs.size() * testing::quality_limits.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    std::size_t const g = i / testing::quality_limits.size(), l = i % testing::quality_limits.size();
    if ((g + l) % 3 != 0) continue;
    CAPTURE(i);
    CHECK(testing::plan_quality(graphs[g], testing::quality_limits[l], testing::quality_iterations).text() ==
          recorded[i]);
  }
}

TEST_CASE("a row differs where the plan does") {
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  auto const row = testing::plan_quality(graphs[3], 0.7, 20);
  CHECK(row.text() == testing::plan_quality(graphs[3], 0.7, 20).text());
  auto const other = testing::plan_quality(graphs[3], 0.4, 20);
  CHECK(row.plan != other.plan);
  auto same_limit = other;
  same_limit.limit = row.limit;
  CHECK(row.text() != same_limit.text());
}
