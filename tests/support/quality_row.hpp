// The rows of bench/results/quality.csv: twelve graphs under six limits of memory, searched for a fixed number of
// iterations. The same row comes out on every machine, so that a change that moves one shows.
#pragma once

#include <neap/blocks/solver_seeds.hpp>
#include <neap/core/digest.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "deep_graph.hpp"
#include "nested_skips.hpp"
#include "random_model.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing {

// Of what the original needs at its peak above what is resident.
inline constexpr std::array quality_limits{0.85, 0.7, 0.55, 0.4, 0.25, 0.1};
inline constexpr std::size_t quality_iterations = 7000;

struct quality_graph {
  std::string name;
  graph program;
  schedule order;
  double link = 16e9;  // bytes per second each way; 0: no swaps
};

/// Two files of the zoo, five deep graphs, two nets of nested skips, three random training steps. `source` is the root of
/// the project. Throws std::runtime_error with the message of a file that cannot be read.
inline std::vector<quality_graph> quality_graphs(std::string const& source) {
  std::vector<quality_graph> all;
  for (auto name : {"cnn-small-b64", "gpt-d256-l4-b8-t128"}) {
    io::graph_file_options how;
    how.neap_graph.for_parts = true;
    auto read = io::read_graph(source + "/examples/graphs/" + name + ".json.gz", how);
    if (!read) throw std::runtime_error(read.message());
    all.push_back({name, std::move(read->program), std::move(read->order)});
  }
  auto const add = [&](std::string name, graph g, double link) {
    auto order = given_order{}(g);
    all.push_back({std::move(name), std::move(g), std::move(order), link});
  };
  // Links that hide the transfers of a part of what is kept.
  add("chain200", deep_graph({.layers = 200}).program, 0);
  add("mixed120", deep_graph({.layers = 120, .mixed = true, .seed = 3}).program, 0);
  add("skips150", deep_graph({.layers = 150, .mixed = true, .skip = 3, .seed = 5}).program, 1e8);
  add("u80", deep_graph({.layers = 80, .long_skip = 30}).program, 1e8);
  add("transformer24", deep_graph({.layers = 24, .transformer = true, .batches = 2}).program, 1e8);
  add("nested3", nested_skips({}), 0);
  add("nested4", nested_skips({.depth = 4, .layers = 4, .seed = 2}), 0);
  for (std::uint64_t seed : {1, 2, 3}) add("random_model" + std::to_string(seed), random_model(seed, 48), 16e9);
  return all;
}

/// What is compared of a plan. Times are written with nine digits: what is left of a difference between two machines'
/// sums is below.
struct quality_row {
  std::string graph;
  double limit = 0;
  bool fits = false;
  bytes_t peak_bytes = 0, arena_bytes = 0;
  std::string latency_ratio, plan;  // the plan's digest: its steps and offsets; equal within one commit
  double seconds = 0;               // of this run: not compared

  [[nodiscard]] std::string text() const {
    char number[32];
    std::snprintf(number, sizeof number, "%.2f", limit);
    return graph + ',' + number + ',' + (fits ? "1," : "0,") + std::to_string(peak_bytes) + ',' +
           std::to_string(arena_bytes) + ',' + latency_ratio + ',' + plan;
  }
  [[nodiscard]] double latency() const { return std::stod(latency_ratio); }
};

/// A row may be so much worse than a recorded one: its latency; where no limit is met, its arena or its latency.
inline constexpr double quality_tolerance = 0.005;

/// Whether a row is a worse answer than a recorded one by more than the tolerance.
inline bool is_worse(quality_row const& now, quality_row const& recorded) {
  if (now.fits != recorded.fits) return recorded.fits;
  auto const above = [](double a, double b) { return a > (1 + quality_tolerance) * b; };
  bool const slower = above(now.latency(), recorded.latency());
  if (now.fits) return slower;
  auto const arena = static_cast<double>(now.arena_bytes), before = static_cast<double>(recorded.arena_bytes);
  return above(arena, before) || (slower && !above(before, arena));
}

/// The geometric mean of the latency of rows whose limit is met, by that of the recorded ones.
inline double mean_latency_change(std::vector<quality_row> const& now, std::vector<quality_row> const& recorded) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i].fits && recorded[i].fits) sum += std::log(now[i].latency() / recorded[i].latency()), ++count;
  return std::exp(sum / std::max(count, 1));
}
inline constexpr char const* quality_heading = "graph,limit,fits,peak_bytes,arena_bytes,latency_ratio,plan";

/// The digest of what the plan executes, and where: names and times left out.
inline digest steps_digest(neap::plan const& p) {
  digest d;
  for (auto const& s : p.steps) {
    d = d.mix(static_cast<std::uint64_t>(s.stream));
    d = d.mix(index(p.graph.origin(s.op))).mix(static_cast<std::uint64_t>(s.workspace_offset));
    for (auto v : p.graph.inputs(s.op)) d = d.mix(index(v));
    for (auto v : p.graph.outputs(s.op)) d = d.mix(index(v));
  }
  for (auto const& w : p.waits) d = d.mix(w.step).mix(w.transfer);
  for (auto const& b : p.buffers)
    d = d.mix(static_cast<std::uint64_t>(b.offset)).mix(static_cast<std::uint64_t>(b.bytes));
  return d;
}

/// The verified plan of `g` under `limit`, as a row, after `iterations` candidates or, where `seconds` is positive, so
/// much time. Throws std::runtime_error if the verifier refuses it.
inline quality_row plan_quality(quality_graph const& g, double limit, std::size_t iterations, double seconds = 0,
                                search_policy const& policy = {}, unsigned threads = 1) {
  search_options options;
  options.threads = threads;
  options.policy = policy;
  auto cost = given_or{roofline::h100_like()};
  cost.other.to_host_bytes_per_second = cost.other.to_device_bytes_per_second = std::max(g.link, 1.0);
  auto const original = simulate(g.program, g.order, cost);
  options.memory_at_most =
      memory_limit(original.resident_bytes +
                   static_cast<bytes_t>(limit * static_cast<double>(original.peak_bytes - original.resident_bytes)));
  options.starts = solver_seeds(all_solvers);
  options.time = time_budget(std::chrono::hours(1000));
  if (seconds > 0) options.time = time_budget(std::chrono::duration<double>(seconds));
  else options.iterations = iterations;
  auto const found = optimize(g.program, default_moves_with_fission(g.link), cost, g.order, options);
  if (auto const verdict = verify_plan(g.program, found.placed, cost); !verdict)
    throw std::runtime_error(g.name + ": " + verdict.message());
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.9f", found.best.result.latency / found.original.latency);
  return {g.name,
          limit,
          found.fits,
          found.placed.peak_bytes,
          found.placed.arena_bytes,
          ratio,
          to_hex(steps_digest(found.placed)),
          found.seconds};
}

/// The rows of a file that bench_quality wrote. Throws std::runtime_error where it is not there or not of that form.
inline std::vector<quality_row> recorded_quality(std::string const& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != quality_heading)
    throw std::runtime_error(path + ": expected the heading " + quality_heading);
  std::vector<quality_row> rows;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::vector<std::string> cell;
    for (std::string c; std::getline(cells, c, ',');) cell.push_back(c);
    if (cell.size() != 7) throw std::runtime_error(path + ": expected seven cells: " + line);
    rows.push_back(
        {cell[0], std::stod(cell[1]), cell[2] == "1", std::stoll(cell[3]), std::stoll(cell[4]), cell[5], cell[6]});
    if (rows.back().text() != line) throw std::runtime_error(path + ": not as bench_quality writes it: " + line);
  }
  return rows;
}

}  // namespace neap::testing
