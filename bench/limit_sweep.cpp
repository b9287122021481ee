// Peak and arena against limit: each graph planned under a row of limits, with the moves and solvers of `neap plan`. A
// smaller limit is never to give a larger peak, whether it is met or not, and an arena is to be no larger than its peak.
// Every plan is verified. One CSV row a plan, and one line a graph on standard error.
//
//   bench_limit_sweep [--seconds S] [--iterations N] [--limits N] [--latency] [--takeover] [--search] GRAPH...
//
// Limits are of memory, N equal steps from the original's peak down to 1/N of it; with --latency of latency, as many, from
// the original's to 1.05, 1.1 ... times as much. Ratios are to the original; peaks and arenas count what is resident.
//
// --takeover: results may take over the bytes of what their op reads last, and places are multiples of 64 bytes, as is
// the default of plans; otherwise memory is counted plainly. --search: without solvers' candidates to start from.
//
// fragmentation: by how much the arena is above the peak, of the peak. rise: by how much the peak is above the least one
// under a larger limit, arena_rise the same of arenas, slow: by how much the latency is above the least one of a plan that
// met a smaller limit (plans of smaller limits would do); 0 where they are not. Of limits of latency a smaller limit is
// the harder one, too: rise is by how much the peak is above the least one under a smaller limit.
#include <neap/blocks/solver_seeds.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "graph_device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace neap;
using moves_t = any_mutator;

struct point {
  double limit = 0, peak = 0, arena = 0, latency = 0, fragmentation = 0, seconds = 0;
  bool fits = false, of_latency = false;
  std::size_t candidates = 0;
};

point plan_at(double limit, bool of_latency, io::imported_graph const& g, search_options options) {
  auto const cost = given_or{bench::device_of(g)};
  double const link = cost.other.to_device_bytes_per_second;
  moves_t const moves = chain(default_moves_with_fission(link), reorder{} | truncate(8));
  if (of_latency) options.latency_at_most = latency_limit::of_original(limit);
  else options.memory_at_most = memory_limit::of_original(limit);
  auto const found = optimize(g.program, moves, cost, g.order, options);
  if (auto const v = verify_plan(g.program, found.placed, cost); !v) {
    std::fprintf(stderr, "%s at %g: %s\n", g.name.c_str(), limit, v.message().c_str());
    std::exit(1);
  }
  auto const ratio = [&](bytes_t b) { return static_cast<double>(b) / static_cast<double>(found.original.peak_bytes); };
  double const peak = static_cast<double>(found.placed.peak_bytes);
  return {limit,
          ratio(found.placed.peak_bytes),
          ratio(found.placed.arena_bytes),
          found.best.result.latency / found.original.latency,
          peak > 0 ? static_cast<double>(found.placed.arena_bytes) / peak - 1 : 0,
          found.seconds,
          found.fits,
          of_latency,
          found.candidates};
}

}  // namespace

int main(int count, char** arguments) {
  search_options options;
  options.memory = {.alignment = 1, .takeover = false};
  options.time = time_budget(std::chrono::hours(1000));
  options.iterations = 1000;
  options.starts = solver_seeds(all_solvers);
  int limits = 20;
  bool of_latency = false;
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
    } else if (a == "--latency") {
      of_latency = true;
    } else if (a == "--takeover") {
      options.memory = {};
    } else if (a == "--search") {
      options.starts = nullptr;
    } else {
      files.push_back(a);
    }
  }
  if (files.empty())
    return std::fprintf(stderr,
                        "usage: bench_limit_sweep [--seconds S] [--iterations N] [--limits N] [--latency] [--takeover] "
                        "[--search] GRAPH...\n"),
           2;
  std::puts(
      "graph,nodes,kind,limit,fits,peak_ratio,arena_ratio,latency_ratio,fragmentation,rise,arena_rise,slow,seconds,"
      "candidates");
  for (auto const& file : files) {
    io::graph_file_options how;
    how.neap_graph.for_parts = true;
    auto const g = io::read_graph(file, how);
    if (!g) return std::fprintf(stderr, "%s\n", g.message().c_str()), 2;
    std::vector<point> points;  // the harder a limit, the later; of latency the other way round: the easier, the later
    for (int k = limits; k > 0; --k)
      points.push_back(
          plan_at(of_latency ? 1 + 0.05 * (limits - k) : static_cast<double>(k) / limits, of_latency, *g, options));
    int met = 0, rises = 0, arena_rises = 0, slow_ones = 0, fragmented = 0;
    double largest = 0, largest_arena = 0, slowest = 0, max_fragmented = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      auto const& p = points[i];
      double rise = 0, arena_rise = 0, slow = 0;
      for (std::size_t k = 0; k < i; ++k) {
        rise = std::max(rise, p.peak - points[k].peak);
        arena_rise = std::max(arena_rise, p.arena - points[k].arena);
      }
      for (std::size_t k = i + 1; k < points.size() && !of_latency; ++k)
        if (p.fits && points[k].fits) slow = std::max(slow, p.latency - points[k].latency);
      met += p.fits, rises += rise > 0, arena_rises += arena_rise > 0, slow_ones += slow > 0;
      fragmented += p.fragmentation > 0.005;
      largest = std::max(largest, rise);
      largest_arena = std::max(largest_arena, arena_rise);
      slowest = std::max(slowest, slow);
      max_fragmented = std::max(max_fragmented, p.fragmentation);
      std::printf("%s,%zu,%s,%.3f,%d,%.5f,%.5f,%.5f,%.6f,%.5f,%.5f,%.5f,%.2f,%zu\n", g->name.c_str(),
                  g->program.op_count(), of_latency ? "latency" : "memory", p.limit, p.fits, p.peak, p.arena, p.latency,
                  p.fragmentation, rise, arena_rise, slow, p.seconds, p.candidates);
    }
    std::fflush(stdout);
    std::fprintf(stderr,
                 "%s: %d of %d met; peak rises at %d, by %.5f at most; arena at %d, %.5f; slower than under a smaller "
                 "limit at %d, by %.5f; more than 0.005 of the peak free at %d, %.6f at most\n",
                 g->name.c_str(), met, limits, rises, largest, arena_rises, largest_arena, slow_ones, slowest,
                 fragmented, max_fragmented);
  }
}
