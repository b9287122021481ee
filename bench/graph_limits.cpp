// Training graphs under limits of memory and of latency, as the peers' figures count: takeover off, alignment 1, each
// graph's own latencies. One CSV row a point; every plan is verified.
//
//   bench_graph_limits [--seconds S] [--iterations N] [--swap BYTES_PER_SECOND] GRAPH...
//
// S: time budget of a point (default 30); N: candidates judged at most, for figures that do not depend on the machine
//
// kind "memory": the limit is on memory and latency_ratio is what counts; "latency": the other way round.
#include <neap/import/graph_file.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace neap;
using moves_t = any_mutator<graph>;

bool report(io::imported_graph const& g, char const* kind, double limit, search_options options, moves_t const& moves) {
  options.memory = {.alignment = 1, .takeover = false};
  if (kind[0] == 'm') options.memory_at_most = memory_limit::of_original(limit);
  else options.latency_at_most = latency_limit::of_original(limit);
  auto const found = optimize(g.program, moves, given_or<roofline>{roofline::host(2)}, g.order, options);
  double first = -1;
  for (auto const& h : found.history)
    if (h.fits && first < 0) first = h.elapsed;
  auto const verdict = verify_plan(g.program, found.placed);
  if (!verdict.ok()) std::fprintf(stderr, "%s: %s\n", g.name.c_str(), verdict.message().c_str());
  auto const ratio = [](double a, double b) { return a / b; };
  std::printf("%s,%zu,%s,%.3f,%d,%.4f,%.4f,%.4f,%.3f,%.2f,%zu\n", g.name.c_str(), g.program.op_count(), kind, limit,
              found.fits,
              ratio(static_cast<double>(found.best.result.peak_bytes), static_cast<double>(found.original.peak_bytes)),
              ratio(found.best.result.latency, found.original.latency),
              ratio(static_cast<double>(found.lower_bound_bytes), static_cast<double>(found.original.peak_bytes)),
              first, found.seconds, found.candidates);
  std::fflush(stdout);
  return verdict.ok();
}

}  // namespace

int main(int count, char** arguments) {
  double link = 0;
  search_options options;
  options.time = time_budget(std::chrono::seconds(30));
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--seconds" && i + 1 < count)
      options.time = time_budget(std::chrono::duration<double>(std::atof(arguments[++i])));
    else if (a == "--iterations" && i + 1 < count)
      options.iterations = static_cast<std::size_t>(std::atof(arguments[++i]));
    else if (a == "--swap" && i + 1 < count) link = std::atof(arguments[++i]);
    else files.push_back(a);
  }
  if (files.empty())
    return std::fprintf(stderr, "usage: bench_graph_limits [--seconds S] [--iterations N] [--swap RATE] GRAPH...\n"), 2;
  moves_t const moves = link > 0 ? moves_t(zip(rematerialize{} | truncate(24), neap::swap{link} | truncate(8)))
                                 : moves_t(rematerialize{} | truncate(32));
  std::puts("graph,nodes,kind,limit,fits,peak_ratio,latency_ratio,bound_ratio,first_s,seconds,candidates");
  bool right = true;
  for (auto const& file : files) {
    auto const g = io::read_graph(file);
    if (!g) return std::fprintf(stderr, "%s\n", g.message().c_str()), 2;
    for (double m : {0.8, 0.6, 0.5, 0.4, 0.3, 0.2}) right &= report(*g, "memory", m, options, moves);
    for (double l : {1.05, 1.10, 1.20}) right &= report(*g, "latency", l, options, moves);
  }
  return right ? 0 : 1;
}
