// What each stage of the search is worth: the rows of quality.csv searched with the stage switched off (search_policy.hpp).
// One CSV row a stage: limits that are met; of those met with all stages, the geometric mean of the latency without the
// stage by that with it, and the largest such ratio; the same of the arenas of limits that neither meets.
//
//   bench_stage_worth [--iterations N] [--stage NAME]    bench/results/stage_worth.csv; N: 7000
//
// The same rows on every machine. Every plan is verified.
#include <neap/import/graph_file.hpp>
#include <neap/optimize/policy_text.hpp>

#include "../tests/support/quality_row.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace neap;
using testing::quality_row;

struct sum {
  double log = 0, largest = 0;
  int count = 0;
  void add(double ratio) { log += std::log(ratio), largest = std::max(largest, ratio), ++count; }
  double mean() const { return count ? std::exp(log / count) : 1; }
};

std::vector<quality_row> all_rows(std::vector<testing::quality_graph> const& graphs, search_policy const& policy,
                                  std::size_t iterations) {
  std::vector<quality_row> rows;
  for (auto const& g : graphs)
    for (double const limit : testing::quality_limits)
      rows.push_back(testing::plan_quality(g, limit, iterations, 0, policy));
  return rows;
}

void print(std::string const& stage, std::vector<quality_row> const& with, std::vector<quality_row> const& without) {
  sum latency, arena;
  int met = 0, lost = 0, other = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    auto const &a = with[i], &b = without[i];
    met += b.fits, lost += a.fits && !b.fits, other += a.plan != b.plan;
    if (a.fits && b.fits) latency.add(b.latency() / a.latency());
    if (!a.fits && !b.fits) arena.add(static_cast<double>(b.arena_bytes) / static_cast<double>(a.arena_bytes));
  }
  std::printf("%s,%zu,%d,%d,%d,%.5f,%.4f,%.5f,%.4f\n", stage.c_str(), with.size(), other, met, lost, latency.mean(),
              latency.largest, arena.mean(), arena.largest);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) try {
  std::size_t iterations = testing::quality_iterations;
  std::string only;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--iterations" && i + 1 < count) iterations = static_cast<std::size_t>(std::atof(arguments[++i]));
    else if (a == "--stage" && i + 1 < count) only = arguments[++i];
    else return std::fprintf(stderr, "usage: bench_stage_worth [--iterations N] [--stage NAME]\n"), 2;
  }
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  auto const with = all_rows(graphs, {}, iterations);
  std::printf("without,rows,other_plans,met,lost,latency_mean,latency_largest,unmet_arena_mean,unmet_arena_largest\n");
  if (only.empty()) print("nothing", with, with);
  for (auto const& n : numbers_of({})) {
    bool const is_switch = n.name.ends_with(".on") || n.name == "placement.exact";
    auto const stage = n.name.ends_with(".on") ? n.name.substr(0, n.name.rfind('.')) : n.name;
    if (!is_switch || (!only.empty() && stage != only)) continue;
    search_policy policy;
    set_number(policy, n.name, 0);
    print(stage, with, all_rows(graphs, policy, iterations));
  }
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
