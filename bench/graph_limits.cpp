// Training graphs under limits of memory and of latency, as the peers' figures count: takeover off, alignment 1, each
// graph's own latencies. One CSV row a point; every plan is verified.
//
//   bench_graph_limits [--seconds S] [--iterations N] [--swap BYTES_PER_SECOND] [--fission] [--free-joins] [--beam K]
//                      [--takeover] GRAPH...
//
// S: time budget of a point (default 30); N: candidates judged at most, for figures that do not depend on the machine.
// With --fission ops run in parts too, and mean losses are read apart for it; ratios are to the graph as it stands in the
// file all the same. --free-joins: what joins parts takes no time, as MAGIS counts. --beam: K candidates are expanded a
// round, as in MAGIS, in place of dives. --takeover: results may take over the bytes of what their op reads last, and places
// are multiples of 64 bytes, as is the default of plans; limits and ratios are to the graph counted plainly all the same.
// MAGIS's nets have its device, and its limits.
//
// kind "memory": the limit is on memory and latency_ratio is what counts; "latency": the other way round.
#include <neap/import/graph_file.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/beam.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "graph_device.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace neap;
using moves_t = any_mutator;

struct problem {
  io::imported_graph graph;
  given_or<roofline> cost;
  simulation plain;  // of the graph as it stands in the file
};

bool report(problem const& p, char const* kind, double limit, search_options options, moves_t const& moves) {
  auto const& g = p.graph;
  auto const part = [&](double whole) { return limit * whole; };
  if (kind[0] == 'm')
    options.memory_at_most = memory_limit(static_cast<bytes_t>(part(static_cast<double>(p.plain.peak_bytes))));
  else options.latency_at_most = latency_limit::in_seconds(part(p.plain.latency));
  auto const found = optimize(g.program, moves, p.cost, g.order, options);
  double first = -1;
  for (auto const& h : found.history)
    if (h.fits && first < 0) first = h.elapsed;
  auto const verdict = verify_plan(g.program, found.placed, p.cost);
  if (!verdict.ok()) std::fprintf(stderr, "%s: %s\n", g.name.c_str(), verdict.message().c_str());
  auto const ratio = [&](bytes_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(p.plain.peak_bytes);
  };
  std::printf("%s,%zu,%s,%.3f,%d,%.4f,%.4f,%.4f,%.3f,%.2f,%zu\n", g.name.c_str(), g.program.op_count(), kind, limit,
              found.fits, ratio(found.best.result.peak_bytes), found.best.result.latency / p.plain.latency,
              ratio(found.lower_bound_bytes), first, found.seconds, found.candidates);
  std::fflush(stdout);
  return verdict.ok();
}

}  // namespace

int main(int count, char** arguments) {
  double link = 0;
  bool parts = false, free_joins = false;
  search_options options;
  options.time = time_budget(std::chrono::seconds(30));
  options.memory = {.alignment = 1, .takeover = false};
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--seconds" && i + 1 < count)
      options.time = time_budget(std::chrono::duration<double>(std::atof(arguments[++i])));
    else if (a == "--iterations" && i + 1 < count)
      options.iterations = static_cast<std::size_t>(std::atof(arguments[++i]));
    else if (a == "--swap" && i + 1 < count) link = std::atof(arguments[++i]);
    else if (a == "--beam" && i + 1 < count)
      options.strategy = beam{.width = static_cast<std::size_t>(std::atoll(arguments[++i]))};
    else if (a == "--fission") parts = true;
    else if (a == "--free-joins") free_joins = true;
    else if (a == "--takeover") options.memory = {};
    else files.push_back(a);
  }
  if (files.empty())
    return std::fprintf(stderr,
                        "usage: bench_graph_limits [--seconds S] [--iterations N] [--swap RATE] [--fission] "
                        "[--free-joins] [--beam K] [--takeover] GRAPH...\n"),
           2;
  moves_t moves = link > 0 ? moves_t(default_moves_at(link)) : moves_t(rematerialize{} | truncate(32));
  if (parts) moves = moves_t(chain(moves, fission_later));
  std::puts("graph,nodes,kind,limit,fits,peak_ratio,latency_ratio,bound_ratio,first_s,seconds,candidates");
  bool right = true;
  for (auto const& file : files) {
    auto const plain = io::read_graph(file);
    if (!plain) return std::fprintf(stderr, "%s\n", plain.message().c_str()), 2;
    io::graph_file_options how;
    how.neap_graph.for_parts = parts;
    problem p{*io::read_graph(file, how), {bench::device_of(*plain)}, {}};
    if (free_joins)
      for (auto name : {"place", "combine_into", "mul_scalar"}) p.cost.other.free_ops.push_back(name);
    p.plain = simulate(plain->program, plain->order, p.cost, {.alignment = 1, .takeover = false});
    std::vector<double> memory{0.8, 0.6, 0.5, 0.4, 0.3, 0.2}, latency{1.05, 1.10, 1.20};
    if (plain->format == "magis") memory = {0.6, 0.4}, latency = {1.1};
    for (double m : memory) right &= report(p, "memory", m, options, moves);
    for (double l : latency) right &= report(p, "latency", l, options, moves);
  }
  return right ? 0 : 1;
}
