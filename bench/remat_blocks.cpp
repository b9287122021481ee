// Solvers of recomputation inside a block beside each other, on chains with skips (tests/blocks/remat_blocks.hpp: as in
// Checkmate's setting, a chain, every third op reads a value three back, then the backward). One CSV row a case; every
// answer is checked first, and contradicting proofs end the program.
//   remat_blocks [--seconds S] [--gap-work N] [--seeds N] [--first N] [--highs-seconds S] [--most-ops N] [--long S]
//     --seconds        for the exact search and for the default solver: of processor time, as nearly as the share of the
//                      processor that the case before was given allows (what was used is told)
//     --first          seeds from this one on
//     --highs-seconds  for HiGHS, where it was built in; 0: leave it out
//     --long           also the best that is known: the default solver for that long, with another seed
//   remat_blocks --write FOLDER [--seeds N] [--first N] [--most-ops N]
//     writes the blocks as JSON instead, for bench/remat_blocks_peers.py
#include <neap/blocks/default_remat_solver.hpp>
#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/remat_solver.hpp>
#ifdef NEAP_HAS_HIGHS
#include <neap/blocks/checkmate_milp.hpp>
#include <neap/blocks/highs.hpp>
#include <neap/blocks/use_gap.hpp>
#endif

#include "../tests/blocks/remat_blocks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>

namespace {

struct options {
  double seconds = 1, highs_seconds = 20, long_seconds = 0;
  std::int64_t gap_work = 200'000;
  std::uint64_t seeds = 3, first = 0;
  std::uint32_t max_ops = 100;
  std::string folder;
};

/// What all answers to one question prove together.
struct proofs {
  double least = std::numeric_limits<double>::infinity(), bound = 0;
};

/// Gives what part of the wall's time the processor worked for it.
template <class Solver>
double ask(Solver const& solver, neap::remat_problem const& p, neap::remat_limits const& limits, proofs& all) {
  auto const begin = std::chrono::steady_clock::now();
  auto const cpu = std::clock();
  auto const a = solver(p, limits);
  double const spent = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  double const wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (auto const right = verify(p, limits, a); !right) {
    std::fprintf(stderr, "a wrong answer: %s\n", right.message().c_str());
    std::exit(1);
  }
  all.bound = std::max(all.bound, a.lower_bound);
  if (has_steps(a)) all.least = std::min(all.least, a.time);
  if (all.bound > all.least * (1 + 1e-6)) {
    std::fprintf(stderr, "contradicting proofs: %g is possible, and %g a bound\n", all.least, all.bound);
    std::exit(1);
  }
  std::printf(",%s,%.10g,%.10g,%.3f,%.3f", name_of(a.status), has_steps(a) ? a.time : 0, a.lower_bound, wall, spent);
  std::fflush(stdout);
  return wall > 0 ? std::min(1.0, spent / wall) : 1;
}

/// For solvers of elsewhere: op i makes value i.
void write(std::string const& path, neap::remat_problem const& p, std::int64_t limit) {
  std::ofstream out(path);
  out << "{\"limit\": " << limit << ", \"bytes\": [";
  for (std::size_t v = 0; v < p.values.size(); ++v) out << (v ? ", " : "") << p.values[v].bytes;
  out << "], \"ops\": [";
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    out << (i ? ", " : "") << "{\"time\": " << p.ops[i].time << ", \"inputs\": [";
    for (std::size_t k = 0; k < p.ops[i].inputs.size(); ++k) out << (k ? ", " : "") << p.ops[i].inputs[k];
    out << "]}";
  }
  out << "]}\n";
}

void columns(char const* solver) {
  for (char const* what : {"status", "time", "bound", "seconds", "cpu_seconds"}) std::printf(",%s_%s", solver, what);
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string const name = argv[i];
    double const value = std::atof(argv[i + 1]);
    if (name == "--write") o.folder = argv[i + 1];
    else if (name == "--seconds") o.seconds = value;
    else if (name == "--highs-seconds") o.highs_seconds = value;
    else if (name == "--long") o.long_seconds = value;
    else if (name == "--gap-work") o.gap_work = static_cast<std::int64_t>(value);
    else if (name == "--seeds") o.seeds = static_cast<std::uint64_t>(value);
    else if (name == "--first") o.first = static_cast<std::uint64_t>(value);
    else if (name == "--most-ops") o.max_ops = static_cast<std::uint32_t>(value);
    else {
      std::fprintf(stderr, "no such option: %s\n", argv[i]);
      return 2;
    }
  }
  if (o.folder.empty()) {
    std::printf("case,ops,values,limit_bytes,peak_once_bytes,time_once");
    columns("exact"), columns("gap"), columns("default");
    if (o.long_seconds > 0) columns("long");
#ifdef NEAP_HAS_HIGHS
    if (o.highs_seconds > 0) columns("highs");
#endif
    std::printf("\n");
  }

  double share = 1;  // of the processor, on a machine with others at work
  auto const asked = [&](auto const& solver, neap::remat_problem const& p, neap::remat_limits const& l, proofs& all) {
    double const got = ask(solver, p, l, all);
    share = std::max(0.05, (share + got) / 2);
  };
  struct kind {
    std::uint32_t length, skip;
    int percent;
  };
  // The specification's table, and more of the tight ones.
  for (auto const [length, skip, percent] : {kind{15, 0, 60},
                                             {15, 3, 60},
                                             {15, 3, 50},
                                             {20, 0, 60},
                                             {20, 3, 60},
                                             {20, 3, 45},
                                             {25, 3, 60},
                                             {25, 3, 45},
                                             {30, 3, 60},
                                             {30, 3, 45},
                                             {50, 3, 60},
                                             {50, 3, 40}})
    for (std::uint64_t seed = o.first; seed < o.first + o.seeds; ++seed) {
      if (2 * length > o.max_ops) continue;
      auto const p = neap::testing::skip_chain(length, skip, seed);
      auto const once = neap::testing::peak_once(p);
      neap::remat_limits const limits{once * percent / 100};
      char name[64];
      std::snprintf(name, sizeof name, "g_%u_%u_%.2f_%llu", length, skip, percent / 100.0,
                    static_cast<unsigned long long>(seed));
      if (!o.folder.empty()) {
        write(o.folder + "/" + name + ".json", p, limits.peak_bytes);
        continue;
      }
      std::printf("%s,%zu,%zu,%lld,%lld,%g", name, p.ops.size(), p.values.size(),
                  static_cast<long long>(limits.peak_bytes), static_cast<long long>(once), time_once(p));
      auto const clock = [&](double seconds) { return neap::remat_budget{.seconds = seconds / share}; };
      proofs all;
      asked(neap::remat_branch_and_bound{.budget = clock(o.seconds)}, p, limits, all);
      asked(neap::use_gap{.budget = {.work = o.gap_work}}, p, limits, all);
      asked(neap::default_remat_solver{.budget = clock(o.seconds)}, p, limits, all);
      if (o.long_seconds > 0)
        asked(first_optimal(neap::default_remat_solver{.budget = clock(o.long_seconds), .seed = 2},
                            neap::use_gap{.budget = clock(o.long_seconds / 2), .seed = 3}),
              p, limits, all);
#ifdef NEAP_HAS_HIGHS
      if (o.highs_seconds > 0) ask(neap::checkmate<neap::highs>{{o.highs_seconds}}, p, limits, all);
#endif
      std::printf("\n");
      std::fflush(stdout);
    }
}
