// What solvers' plans are worth to the search: training graphs under limits of memory, planned by the search alone, by the
// search that starts from solvers' plans, and by the solver alone, one after the other with the same time budget. Memory
// counts as the peers' figures do (takeover off, alignment 1, each graph's own latencies). One CSV row a point; every plan
// is verified.
//
//   bench_solver_seeds [--seconds S] [--limits L,L,...] [--link R] GRAPH...
//       S: time budget of a point (default 10); R: values may be stored and loaded, too, at R bytes a second each way
//   bench_solver_seeds --gpt
//       a GPT of 12 layers, twenty budgets, one after another
//
// half: "tuned" marks the graphs that the seeds' numbers (levels, work, shares) were chosen by, "other" the rest.
#include <neap/blocks/solver_seeds.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/mutate/no_moves.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../tests/support/linked.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace neap;

constexpr char const* tuned[] = {
    "gpt2-medium-b8-s1024", "resnet50-b64",        "bert-base-b32-s512", "cnn-small-b64",
    "whisper-tiny-b16",     "gpt-d256-l4-b8-t128", "vgg16-b64",          "mixtral-tiny-b4-s512"};

struct told {
  bool fits = false;
  double latency = 0, first = -1, seconds = 0;
};

template <class Moves>
told run(graph const& g, schedule const& order, Moves const& moves, search_options options,
         std::optional<solver_choice> const& seeds, double link, simulation const& plain, bool& right) {
  if (seeds) options.set(solver_seeds(*seeds));
  auto const found = optimize(g, moves, testing::linked(link), order, options);
  told t{found.fits, found.best.result.latency / plain.latency, -1, found.seconds};
  for (auto const& h : found.history)
    if (h.fits && t.first < 0) t.first = h.elapsed;
  auto const verdict = verify_plan(g, found.placed, testing::linked(link));
  if (!verdict.ok()) right = false, std::fprintf(stderr, "%s\n", verdict.message().c_str());
  return t;
}

int plan_gpt() {
  zoo::gpt_config c;
  zoo::gpt model(c);
  auto const ids = tensor::lazy({dtype::i64, {8, 512}});
  auto const step = training_step(model, std::pair{ids, ids}, cross_entropy{}, adamw{});
  auto const began = std::chrono::steady_clock::now();
  std::printf("model,nodes,budget,fits,peak_ratio,latency_ratio,seconds\n");
  for (int k = 0; k < 20; ++k) {
    double const ratio = 1 - 0.04 * k;
    auto const found = optimize(step, no_moves{}, memory_limit::of_original(ratio), solver_seeds({.hierarchy = true}));
    std::printf("gpt-12,%zu,%.2f,%d,%.4f,%.4f,%.3f\n", step.program.op_count(), ratio, found.fits,
                static_cast<double>(found.placed.arena_bytes) / static_cast<double>(found.original.peak_bytes),
                found.best.result.latency / found.original.latency, found.seconds);
  }
  std::chrono::duration<double> const all = std::chrono::steady_clock::now() - began;
  std::printf("gpt-12,%zu,all,,,,%.3f\n", step.program.op_count(), all.count());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  search_options options;
  options.time = time_budget(std::chrono::seconds(10));
  options.memory = {.alignment = 1, .takeover = false};
  std::vector<double> limits{0.8, 0.6, 0.5, 0.4, 0.3, 0.2};
  std::vector<std::string> files;
  double link = 0;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--gpt") return plan_gpt();
    if (a == "--seconds" && i + 1 < count) {
      options.time = time_budget(std::chrono::duration<double>(std::atof(arguments[++i])));
    } else if (a == "--link" && i + 1 < count) {
      link = std::atof(arguments[++i]);
    } else if (a == "--limits" && i + 1 < count) {
      limits.clear();
      for (char const* at = arguments[++i]; *at != '\0';) {
        char* end = nullptr;
        limits.push_back(std::strtod(at, &end));
        at = *end == ',' ? end + 1 : end + std::string(end).size();
      }
    } else {
      files.push_back(a);
    }
  }
  if (files.empty())
    return std::fprintf(stderr, "usage: bench_solver_seeds [--seconds S] [--limits L,L] [--link R] GRAPH... | --gpt\n"),
           2;
  std::puts(
      "graph,nodes,half,limit,budget_s,link,search_fits,search_latency,search_first_s,seeds_fits,seeds_latency,"
      "seeds_first_s,solver_fits,solver_latency,solver_s");
  bool right = true;
  for (auto const& file : files) {
    auto const read = io::read_graph(file);
    if (!read) return std::fprintf(stderr, "%s\n", read.message().c_str()), 2;
    auto const& g = read->program;
    auto const plain = simulate(g, read->order, given_latencies{}, options.memory);
    bool const half = std::any_of(std::begin(tuned), std::end(tuned), [&](auto name) { return read->name == name; });
    for (double limit : limits) {
      options.memory_at_most = memory_limit(static_cast<bytes_t>(limit * static_cast<double>(plain.peak_bytes)));
      auto const compare = [&](auto const& moves) {
        auto solvers = all_solvers;
        auto const a = run(g, read->order, moves, options, std::nullopt, link, plain, right);
        auto const b = run(g, read->order, moves, options, solvers, link, plain, right);
        solvers.link = link;
        auto const c = run(g, read->order, no_moves{}, options, solvers, link, plain, right);
        std::printf("%s,%zu,%s,%.3f,%g,%g,%d,%.4f,%.3f,%d,%.4f,%.3f,%d,%.4f,%.3f\n", read->name.c_str(), g.op_count(),
                    half ? "tuned" : "other", limit, options.time.limit.count(), link, a.fits, a.latency, a.first,
                    b.fits, b.latency, b.first, c.fits, c.latency, c.seconds);
      };
      if (link > 0) compare(zip(rematerialize{} | truncate(32), swap{link} | truncate(8)));
      else compare(rematerialize{} | truncate(32));
      std::fflush(stdout);
    }
  }
  return right ? 0 : 1;
}
