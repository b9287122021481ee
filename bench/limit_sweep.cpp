// Peak against limit: each graph planned under 20 limits of memory (or others), the largest first. A smaller limit is never
// to give a larger peak, whether it is met or not. One CSV row a point, and one line a graph on standard error.
//
//   bench_limit_sweep [--seconds S] [--iterations N] [--limits N] [--takeover] GRAPH...
//
// Limits are N equal steps from the original's peak down to 1/N of it; ratios are to the original. rise: by how much the
// peak is above the least one under a larger limit, arena_rise the same of arenas, slow: by how much the latency is above
// the least one of a plan that met a smaller limit (plans of smaller limits would do); 0 where they are not.
#include <neap/import/graph_file.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/later.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>

#include "graph_device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace neap;
using moves_t = any_mutator<graph>;

struct point {
  double limit = 0, peak = 0, arena = 0, latency = 0, seconds = 0;
  bool fits = false;
  std::size_t candidates = 0;
};

point plan_at(double limit, io::imported_graph const& g, search_options options) {
  auto const cost = given_or{bench::device_of(g)};
  double const link = cost.other.to_device_bytes_per_second;
  moves_t const moves =
      chain(zip(rematerialize{} | truncate(24), neap::swap{link} | truncate(8)), fission{} | truncate(8) | later);
  options.memory_at_most = memory_limit::of_original(limit);
  auto const found = optimize(g.program, moves, cost, g.order, options);
  auto const ratio = [&](bytes_t b) { return static_cast<double>(b) / static_cast<double>(found.original.peak_bytes); };
  return {limit,
          ratio(found.best.result.peak_bytes),
          ratio(found.placed.arena_bytes),
          found.best.result.latency / found.original.latency,
          found.seconds,
          found.fits,
          found.candidates};
}

}  // namespace

int main(int count, char** arguments) {
  search_options options;
  options.memory = {.alignment = 1, .takeover = false};
  options.time = time_budget(std::chrono::hours(1));
  options.iterations = 1000;
  int limits = 20;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--seconds" && i + 1 < count) {
      options.time = time_budget(std::chrono::duration<double>(std::atof(arguments[++i])));
      options.iterations = SIZE_MAX;
    } else if (a == "--iterations" && i + 1 < count) {
      options.iterations = static_cast<std::size_t>(std::atof(arguments[++i]));
    } else if (a == "--limits" && i + 1 < count) {
      limits = std::max(std::atoi(arguments[++i]), 1);
    } else if (a == "--takeover") {
      options.memory = {};
    } else {
      files.push_back(a);
    }
  }
  if (files.empty())
    return std::fprintf(stderr,
                        "usage: bench_limit_sweep [--seconds S] [--iterations N] [--limits N] [--takeover] GRAPH...\n"),
           2;
  std::puts("graph,nodes,limit,fits,peak_ratio,arena_ratio,latency_ratio,rise,arena_rise,slow,seconds,candidates");
  for (auto const& file : files) {
    io::graph_file_options how;
    how.neap_graph.for_parts = true;
    auto const g = io::read_graph(file, how);
    if (!g) return std::fprintf(stderr, "%s\n", g.message().c_str()), 2;
    std::vector<point> points;
    for (int k = limits; k > 0; --k) points.push_back(plan_at(static_cast<double>(k) / limits, *g, options));
    int met = 0, rises = 0, arena_rises = 0, slow_ones = 0;
    double largest = 0, largest_arena = 0, slowest = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      auto const& p = points[i];
      double rise = 0, arena_rise = 0, slow = 0;
      for (std::size_t k = 0; k < i; ++k) {
        rise = std::max(rise, p.peak - points[k].peak);
        arena_rise = std::max(arena_rise, p.arena - points[k].arena);
      }
      for (std::size_t k = i + 1; k < points.size(); ++k)
        if (p.fits && points[k].fits) slow = std::max(slow, p.latency - points[k].latency);
      met += p.fits, rises += rise > 0, arena_rises += arena_rise > 0, slow_ones += slow > 0;
      largest = std::max(largest, rise);
      largest_arena = std::max(largest_arena, arena_rise);
      slowest = std::max(slowest, slow);
      std::printf("%s,%zu,%.3f,%d,%.5f,%.5f,%.5f,%.5f,%.5f,%.5f,%.2f,%zu\n", g->name.c_str(), g->program.op_count(),
                  p.limit, p.fits, p.peak, p.arena, p.latency, rise, arena_rise, slow, p.seconds, p.candidates);
    }
    std::fflush(stdout);
    std::fprintf(stderr,
                 "%s: %d of %d met; peak rises at %d, by %.5f at most; arena at %d, %.5f; slower than under a smaller "
                 "limit at %d, by %.5f\n",
                 g->name.c_str(), met, limits, rises, largest, arena_rises, largest_arena, slow_ones, slowest);
  }
}
