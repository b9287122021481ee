// rk-Rotor on chains of blocks: one CSV row per chain, limits and budget. Arguments: chain files; those with answers of
// Rockmate's solver (peer_results, exact_results) are solved under the budgets they name and compared with those answers,
// others under the budgets in `budgets`. --limits exact|peer for one of them only; --generate FOLDER writes the larger
// chains there instead, periodic and random. bench/rotor_peers.py runs it beside Rockmate's solver.
//
// cpu_s is processor time of one run that answers every budget up to the one named, the least of several where it is
// short; peak_kb the most memory of the process so far. Every sequence is simulated before its row is printed.
#include "process.hpp"

#include <neap/blocks/chain_simulator.hpp>
#include <neap/blocks/rotor.hpp>
#include <neap/core/philox.hpp>
#include <neap/import/chain.hpp>
#include <neap/import/file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

namespace {

struct asked {
  neap::slots_t budget;
  double time = -1;  // what is known of the answer, or nothing
  double peer_seconds = -1;
};

bool report(std::string const& name, neap::chain_profile const& chain, bool exact, asked const& a) {
  neap::rotor_options how;
  how.limits = exact ? neap::chain_limits::exact : neap::chain_limits::peer;
  double least = HUGE_VAL;
  for (double begin = cpu_seconds(), spent = 0; spent < 0.1;) {
    double const before = cpu_seconds();
    auto const once = neap::rotor::solve(chain, a.budget, how);
    spent = cpu_seconds() - begin;
    if (!once) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), once.message().c_str());
      return false;
    }
    least = std::min(least, cpu_seconds() - before);
  }
  auto const solved = neap::rotor::solve(chain, a.budget, how);
  double const before = cpu_seconds();
  auto const sequence = solved->sequence(a.budget);
  double const sequence_seconds = cpu_seconds() - before;
  auto const seen = neap::simulate(chain, sequence);
  double const time = solved->time(a.budget);
  auto const close = [&](double t) { return std::abs(t - time) <= 1e-9 * time; };
  bool const right =
      seen && close(seen->time) && (a.time < 0 || close(a.time)) && (!exact || seen->peak <= a.budget + chain.input(0));
  if (!right) {
    std::fprintf(stderr, "%s, budget %lld: a wrong answer (%s)\n", name.c_str(), static_cast<long long>(a.budget),
                 seen.message().c_str());
    return false;
  }
  std::size_t options = 0;
  for (auto const& b : chain.blocks) options = std::max(options, b.options.size());
  std::printf("%s,%zu,%zu,%s,%lld,%.6f,%.6f,%lld,%.6f,%.6f,%ld,", name.c_str(), chain.size(), options,
              exact ? "exact" : "peer", static_cast<long long>(a.budget), time, neap::least_time(chain),
              static_cast<long long>(seen->peak - chain.input(0) - a.budget), least, sequence_seconds, peak_kb());
  if (a.peer_seconds >= 0) std::printf("%.4f,%.0f", a.peer_seconds, a.peer_seconds / least);
  else std::printf(",");
  std::puts("");
  std::fflush(stdout);
  return true;
}

/// A chain of `blocks` blocks of so many kinds in turn, sizes and times as in the random chains of the data that came
/// from Rockmate's side: inputs of 1 to 12 slots, an option saves 7 to 45 of them or less, backward twice the forward.
nlohmann::json generated(std::string const& name, std::uint32_t blocks, std::uint32_t kinds, std::uint32_t options,
                         std::vector<int> const& budgets) {
  neap::random_stream draw(blocks + kinds + options);
  auto const slots = [&](std::uint32_t least, std::uint32_t most) { return least + draw.below(most - least + 1); };
  struct kind {
    std::uint32_t input, temporary, saved;
    double time;
  };
  std::vector<kind> of(kinds);
  for (auto& k : of)
    k = {slots(1, 12), slots(0, 12), slots(7, 45),
         std::round(1e4 * (0.1 + 9.9 * static_cast<double>(draw.uniform()))) / 1e4};
  nlohmann::json j{{"name", name}, {"ln", blocks}, {"budgets", budgets}, {"cbw", {nlohmann::json::array()}}};
  for (std::uint32_t i = 0; i <= blocks; ++i) {
    bool const loss = i == blocks;
    auto const& k = of[i % kinds];
    auto const count = loss ? 1 : options;
    j["nb_sol"].push_back(count);
    j["cw"].push_back(k.input);
    j["ff_fw"].push_back(loss ? 0 : k.time);
    j["ff_fwd_tmp"].push_back(loss ? 0 : k.temporary);
    nlohmann::json fw = nlohmann::json::array(), bw = fw, cbw = fw, fwd_tmp = fw, bwd_tmp = fw;
    for (std::uint32_t o = 0; o < count; ++o) {
      auto const next = i + 1 < blocks ? of[(i + 1) % kinds].input : 0;
      fw.push_back(loss ? 0 : k.time);
      bw.push_back(loss ? 0 : std::round(1e4 * k.time * (2 + 0.15 * o)) / 1e4);
      cbw.push_back(loss ? 0 : next + k.saved * (options - o) / options);
      fwd_tmp.push_back(loss ? 0 : k.saved / 6);
      bwd_tmp.push_back(loss ? 0 : k.saved / 4 + o);
    }
    j["fw"].push_back(fw), j["bw"].push_back(bw), j["cbw"].push_back(cbw);
    j["fwd_tmp"].push_back(fwd_tmp), j["bwd_tmp"].push_back(bwd_tmp);
  }
  j["cw"].push_back(0);
  return j;
}

int generate(std::string const& folder) {
  for (auto const& [name, blocks, kinds, options] : {std::tuple{"periodic100", 100u, 2u, 8u},
                                                     {"periodic200", 200u, 2u, 8u},
                                                     {"periodic1000", 1000u, 2u, 8u},
                                                     {"random100", 100u, 100u, 1u},
                                                     {"random200", 200u, 200u, 4u},
                                                     {"random500", 500u, 500u, 1u},
                                                     {"random1000", 1000u, 1000u, 1u},
                                                     {"random1000_o4", 1000u, 1000u, 4u}}) {
    std::ofstream out(folder + "/" + name + ".json");
    out << generated(name, blocks, kinds, options, blocks < 1000 ? std::vector{500, 2000} : std::vector{2000}) << "\n";
    if (!out.flush()) return std::fprintf(stderr, "%s: cannot be written\n", folder.c_str()), 2;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::string only;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--generate" && i + 1 < count) return generate(arguments[i + 1]);
    if (a == "--limits" && i + 1 < count) only = arguments[++i];
    else files.push_back(a);
  }
  std::puts("chain,blocks,options,limits,budget,time,least_time,over_budget,cpu_s,sequence_s,peak_kb,peer_cpu_s,ratio");
  bool right = true;
  for (auto const& path : files) {
    auto const chain = neap::io::read_chain(path);
    if (!chain) return std::fprintf(stderr, "%s\n", chain.message().c_str()), 2;
    auto const document = nlohmann::json::parse(*neap::io::read_file(path));
    for (bool const exact : {true, false}) {
      if (!only.empty() && only != (exact ? "exact" : "peer")) continue;
      std::vector<asked> budgets;
      auto const key = exact ? "exact_results" : "peer_results";
      if (document.contains(key))
        for (std::size_t i = 0; i < document[key].size(); ++i)
          budgets.push_back({document[key][i]["budget"], document[key][i][exact ? "opt_exact" : "opt"],
                             document["peer_results"][i]["solve_cpu_s"]});
      else
        for (auto const& b : document["budgets"]) budgets.push_back({b});
      for (auto const& b : budgets) right &= report(chain->name, chain->profile, exact, b);
    }
  }
  return right ? 0 : 1;
}
