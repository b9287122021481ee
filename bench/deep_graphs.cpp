// Deep training steps under limits of memory: what a search with recomputation finds, beside plain checkpointing (the
// inputs of every k layers kept, all k tried, the best that fits). One CSV row a case. Every plan is verified.
//
//   bench_deep_graphs [--seconds S] [--nodes N] [--layers L]
//
// S: time budget of one search (default 5); N: largest graph; L: chains of so many layers alone.
//
// ratios are to the plain step; first_s is when the first plan that fits was found; rss_mb the process's peak so far.
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../tests/support/plain_checkpointing.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace neap;

double peak_rss() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}

bool report(std::string const& name, testing::deep_options const& o, double seconds) {
  auto const m = testing::deep_graph(o);
  memory_options const memory{.alignment = 1, .takeover = false};
  auto const plain = testing::plain_checkpointing(m, memory);
  auto const original = simulate(m.program, given_order{}(m.program), given_latencies{}, memory);
  bytes_t least = original.peak_bytes;
  for (auto const& p : plain) least = std::min(least, p.peak);
  auto const ratio = [&](bytes_t b) { return static_cast<double>(b) / static_cast<double>(original.peak_bytes); };
  bool right = true;
  for (double limit : {0.8, 0.6, 0.4, 0.25, 0.15, ratio(least) * 1.02, ratio(least)}) {
    if (limit < ratio(least)) continue;
    double peer = std::numeric_limits<double>::infinity();
    for (auto const& p : plain)
      if (ratio(p.peak) <= limit) peer = std::min(peer, p.latency / original.latency);
    search_options options;
    options.memory = memory;
    options.memory_at_most = memory_limit::of_original(limit);
    options.time = time_budget(std::chrono::duration<double>(seconds));
    auto const found = optimize(m.program, rematerialize{} | truncate(32), options, given_latencies{});
    double first = -1;
    for (auto const& h : found.history)
      if (h.fits && first < 0) first = h.elapsed;
    auto const verdict = verify_plan(m.program, found.placed);
    if (!verdict.ok()) std::fprintf(stderr, "%s: %s\n", name.c_str(), verdict.message().c_str()), right = false;
    std::printf("%s,%zu,%zu,%.4f,%d,%.4f,%.4f,%.4f,%.3f,%.3f,%zu,%.0f\n", name.c_str(), o.layers, m.program.op_count(),
                limit, found.fits, ratio(found.best.result.peak_bytes), found.best.result.latency / original.latency,
                peer, first, found.seconds, found.candidates, peak_rss());
    std::fflush(stdout);
  }
  return right;
}

}  // namespace

int main(int count, char** arguments) {
  double seconds = 5;
  std::size_t nodes = 20000, only = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    std::string const name = arguments[i];
    if (name == "--seconds") seconds = std::atof(arguments[i + 1]);
    else if (name == "--nodes") nodes = static_cast<std::size_t>(std::atof(arguments[i + 1]));
    else if (name == "--layers") only = static_cast<std::size_t>(std::atof(arguments[i + 1]));
    else return std::fprintf(stderr, "usage: bench_deep_graphs [--seconds S] [--nodes N] [--layers L]\n"), 2;
  }
  std::puts(
      "case,layers,nodes,limit,fits,peak_ratio,latency_ratio,plain_latency_ratio,first_s,seconds,candidates,rss_mb");
  bool right = true;
  for (std::size_t layers : {std::size_t{200}, std::size_t{2000}, std::size_t{20000}}) {
    if (only ? layers != only : 5 * layers > nodes) continue;
    right &= report("chain", {.layers = layers}, seconds);
    right &= report("mixed", {.layers = layers, .mixed = true}, seconds);
    right &= report("skips", {.layers = layers, .skip = 3}, seconds);
    right &= report("u", {.layers = layers, .long_skip = 8}, seconds);
  }
  if (!only) right &= report("transformer", {.layers = 96, .transformer = true}, seconds);
  return right ? 0 : 1;
}
