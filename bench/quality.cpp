// What the default search finds: twelve graphs under six limits of memory. One CSV row a plan; every plan is verified.
//
//   bench_quality [--iterations N]        bench/results/quality.csv: the same rows on every machine; N: 7000
//   bench_quality --seconds S [S...]      quality_by_time.csv: the same searches ended by the clock
//
// tests/optimize/quality.cpp refuses a search whose rows are worse than quality.csv. A change that betters some writes the
// file anew and names them. Standard error has what is not as it should be: a peak above that of a larger limit, a latency above that
// of a smaller one that is met, more time with a worse answer; and the geometric means.
#include <neap/import/graph_file.hpp>

#include "../tests/support/quality_row.hpp"

#include <cmath>
#include <cstdlib>
#include <exception>

namespace {

using namespace neap;
using testing::quality_row;

/// The rows of one graph, the largest limit first: where a smaller limit has a better answer than a larger one.
int report_not_monotone(std::vector<quality_row> const& rows) {
  int count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t k = i + 1; k < rows.size(); ++k) {
      auto const &larger = rows[i], &smaller = rows[k];
      bool const peak = !larger.fits && larger.peak_bytes != smaller.peak_bytes;
      bool const misses = !larger.fits && smaller.fits;
      bool const slow = larger.fits && smaller.fits && larger.latency() > smaller.latency();
      bool const slower = !larger.fits && !smaller.fits && larger.peak_bytes == smaller.peak_bytes &&
                          larger.latency_ratio != smaller.latency_ratio;
      if (!peak && !misses && !slow && !slower) continue;
      std::fprintf(stderr, "not monotone: %s\n              %s\n", larger.text().c_str(), smaller.text().c_str());
      ++count;
    }
  return count;
}

/// Whether `b` is a worse answer to the same limit than `a`. To a limit that is not met, what is larger is worse where it is
/// no quicker, or larger by more than counts as equal.
bool worse(quality_row const& b, quality_row const& a) {
  if (a.fits != b.fits) return a.fits;
  double const latency = b.latency(), before = a.latency();
  if (a.fits) return latency > before;
  auto const more = static_cast<double>(b.arena_bytes - a.arena_bytes) / static_cast<double>(a.arena_bytes);
  return more > near_smallest || (more > 0 && latency >= before);
}

void by_iterations(std::vector<testing::quality_graph> const& graphs, std::size_t iterations) {
  std::printf("%s\n", testing::quality_heading);
  int not_monotone = 0;
  double log_latency = 0, seconds = 0;
  int met = 0;
  for (auto const& g : graphs) {
    std::vector<quality_row> rows;
    for (double limit : testing::quality_limits) {
      rows.push_back(testing::plan_quality(g, limit, iterations));
      std::printf("%s\n", rows.back().text().c_str());
      std::fflush(stdout);
      seconds += rows.back().seconds;
      if (rows.back().fits) log_latency += std::log(rows.back().latency()), ++met;
    }
    not_monotone += report_not_monotone(rows);
  }
  std::fprintf(stderr, "%d limits met, at %.5f of the original's latency; not monotone: %d; %.1f s\n", met,
               std::exp(log_latency / std::max(met, 1)), not_monotone, seconds);
}

void by_time(std::vector<testing::quality_graph> const& graphs, std::vector<double> const& budgets) {
  std::printf("seconds,%s,seconds_taken\n", testing::quality_heading);
  int worse_with_time = 0;
  for (auto const& g : graphs)
    for (double limit : testing::quality_limits) {
      std::vector<quality_row> rows;
      for (double seconds : budgets) {
        rows.push_back(testing::plan_quality(g, limit, 0, seconds));
        std::printf("%g,%s,%.3f\n", seconds, rows.back().text().c_str(), rows.back().seconds);
        std::fflush(stdout);
        if (rows.size() < 2 || !worse(rows.back(), rows[rows.size() - 2])) continue;
        ++worse_with_time;
        std::fprintf(stderr, "worse with more time: %s\n", rows.back().text().c_str());
      }
    }
  std::fprintf(stderr, "worse with more time: %d\n", worse_with_time);
}

}  // namespace

int main(int count, char** arguments) try {
  std::size_t iterations = testing::quality_iterations;
  std::vector<double> budgets;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--iterations" && i + 1 < count) {
      iterations = static_cast<std::size_t>(std::atof(arguments[++i]));
    } else if (a == "--seconds" && i + 1 < count) {
      while (i + 1 < count && std::atof(arguments[i + 1]) > 0) budgets.push_back(std::atof(arguments[++i]));
    } else {
      return std::fprintf(stderr, "usage: bench_quality [--iterations N | --seconds S...]\n"), 2;
    }
  }
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  if (budgets.empty()) by_iterations(graphs, iterations);
  else by_time(graphs, budgets);
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
