// neap checkpoint: the fastest way to train a chain of blocks within a memory limit (rk-Rotor).
#include "common.hpp"

#include <neap/blocks/chain_simulator.hpp>
#include <neap/blocks/rotor.hpp>
#include <neap/import/chain.hpp>
#include <neap/plan/limits.hpp>
#include <neap/report/text_file.hpp>

#include <algorithm>
#include <chrono>
#include <memory>

namespace cli {
namespace {

struct checkpoint_options {
  std::string chain, limit, limits = "exact", front, out;
  neap::slots_t slot = 1;
  bool json = false;
};

/// Every block with its fastest option, nothing computed again.
neap::chain_sequence without_recomputation(neap::chain_profile const& chain) {
  neap::chain_sequence sequence;
  auto const blocks = static_cast<std::uint32_t>(chain.size());
  for (std::uint32_t i = 0; i < blocks; ++i) {
    auto const& options = chain.blocks[i].options;
    auto const fastest = std::ranges::min_element(
        options, {}, [](neap::block_option const& o) { return o.forward_time + o.backward_time; });
    sequence.push_back({neap::chain_step::save, i, static_cast<std::uint32_t>(fastest - options.begin())});
  }
  sequence.push_back({});
  for (std::uint32_t i = blocks; i-- > 0;) sequence.push_back({neap::chain_step::backward, i, 0});
  return sequence;
}

/// Slots beside the chain's input, or with a point or a per cent sign a ratio of the peak without recomputation: both peaks
/// count the input.
neap::slots_t slots_of(std::string const& text, neap::slots_t peak, neap::slots_t input) {
  auto const q = parse_quantity(text);
  if (auto const r = q ? ratio_of(*q, text) : std::nullopt)
    return neap::memory_limit::of_original(*r).resolve(peak) - input;
  if (q && q->unit.empty() && q->number == std::floor(q->number)) return static_cast<neap::slots_t>(q->number);
  if (q && bytes_of(*q))
    throw refused{"--memory-limit: \"" + text +
                  "\" is in bytes, and a chain's sizes are in slots: a number of slots "
                  "(377) or a ratio (0.4, 40%)"};
  throw refused{"--memory-limit: \"" + text + "\" is neither a number of slots (377) nor a ratio (0.4, 40%)"};
}

/// The chain in larger slots, solved for every budget that is of use under a limit. Sizes are rounded up there, so plans
/// for more than the limit may fit it, up to those that save all; only if the table of all of them is not too large.
neap::result<neap::rotor> solve_in_slots(neap::chain_profile const& coarse, neap::slots_t limit,
                                         neap::rotor_options how) {
  auto const all_saved = value_or_refuse(neap::simulate(coarse, without_recomputation(coarse))).peak;
  if (all_saved > limit)
    if (auto solved = neap::rotor::solve(coarse, all_saved, how)) return solved;
  return neap::rotor::solve(coarse, limit, how);
}

/// The largest budget whose plan fits a limit in the chain's own slots; `otherwise` if none is larger than that.
neap::slots_t largest_that_fits(neap::rotor const& solved, neap::chain_profile const& chain, neap::slots_t limit,
                                neap::slots_t otherwise) {
  auto const front = solved.front();
  for (auto p = front.size(); p-- > 0 && front[p].budget > otherwise;)
    if (auto const seen = neap::simulate(chain, solved.sequence(front[p].budget));
        seen && seen.value().peak <= limit + chain.input(0))
      return front[p].budget;
  return otherwise;
}

/// The least limit under which a plan fits; -1 if the table for that would be too large.
neap::slots_t least_limit(neap::chain_profile const& chain, neap::slots_t not_enough, neap::rotor_options how) {
  auto const enough = value_or_refuse(neap::simulate(chain, without_recomputation(chain))).peak;
  while (not_enough < enough) {
    auto const next = std::min(enough, std::max<neap::slots_t>(64, not_enough * 2));
    auto const solved = neap::rotor::solve(chain, next, how);
    if (!solved) return -1;
    if (auto const front = solved->front(); !front.empty()) return front[0].budget;
    not_enough = next;
  }
  return -1;
}

std::string front_csv(std::vector<neap::chain_front_point> const& front, neap::slots_t slot, neap::slots_t limit) {
  std::string text = "limit,time\n";
  for (auto const& p : front) {
    if (p.budget > limit) break;
    char line[64];
    std::snprintf(line, sizeof line, "%lld,%.17g\n", static_cast<long long>(p.budget * slot), p.time);
    text += line;
  }
  return text;
}

int run(checkpoint_options const& o) {
  auto const given = value_or_refuse(neap::io::read_chain(o.chain));
  auto const& chain = given.profile;
  auto const plain = value_or_refuse(neap::simulate(chain, without_recomputation(chain)));
  auto const limit = slots_of(o.limit, plain.peak, chain.input(0));
  check_outputs({{"CHAIN", o.chain}}, {{"--out", o.out}, {"--front", o.front}});
  neap::rotor_options how;
  how.limits = o.limits == "exact" ? neap::chain_limits::exact : neap::chain_limits::peer;

  auto const begin = std::chrono::steady_clock::now();
  auto const coarse = neap::in_slots(chain, o.slot);
  auto const coarse_limit = limit < 0 ? -1 : limit / o.slot;
  bool const rounded = o.slot > 1 && how.limits == neap::chain_limits::exact;
  auto const solved =
      rounded ? solve_in_slots(coarse, coarse_limit, how) : neap::rotor::solve(coarse, coarse_limit, how);
  if (!solved)
    throw refused{o.chain + ": " + solved.message() + (solved.message().ends_with("slots") ? " (--slot)" : "")};
  auto const budget = rounded ? largest_that_fits(*solved, chain, limit, coarse_limit) : coarse_limit;
  auto const sequence = solved->sequence(budget);
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  bool const feasible = solved->feasible(budget);
  double const time = solved->time(budget);
  neap::chain_simulation seen;
  if (feasible) {  // nothing is told that a simulation without a line of the solver's does not say too
    seen = value_or_refuse(neap::simulate(chain, sequence));
    bool const same_time = std::abs(seen.time - time) <= 1e-9 * std::max(1.0, seen.time);
    bool const within = how.limits == neap::chain_limits::peer || seen.peak <= limit + chain.input(0);
    if (!same_time || !within) throw refused{o.chain + ": the solver's plan fails its check"};
  }
  if (!o.front.empty()) or_refuse(neap::write_file(o.front, front_csv(solved->front(), o.slot, coarse_limit)));
  if (!o.out.empty() && feasible) or_refuse(neap::write_file(o.out, to_string(sequence) + "\n"));
  auto const least = feasible ? -1 : least_limit(coarse, coarse_limit, how) * o.slot;
  if (o.json) {
    nlohmann::ordered_json j;
    j["name"] = given.name.empty() ? o.chain : given.name;
    j["blocks"] = chain.size();
    j["limits"] = o.limits;
    j["memory_limit"] = limit;
    j["input"] = chain.input(0);
    j["feasible"] = feasible;
    if (feasible) {
      j["time"] = time;
      j["peak"] = seen.peak;
      j["sequence"] = to_string(sequence);
    } else {
      for (auto const* key : {"time", "peak", "sequence"}) j[key] = nullptr;
      if (least >= 0) j["least_limit"] = least;
    }
    j["norecompute_time"] = plain.time;
    j["norecompute_peak"] = plain.peak;
    j["seconds"] = seconds;
    print_json(j);
  } else if (feasible) {
    auto const forwards = std::ranges::count_if(sequence, [](neap::chain_op const& op) {
      return op.step == neap::chain_step::save || op.step == neap::chain_step::pass_keep ||
             op.step == neap::chain_step::pass_drop;
    });
    auto const blocks = static_cast<double>(chain.size());
    std::printf("%s: %zu blocks, limit %lld slots beside the input's %lld, %.4f s\n", printable(o.chain).c_str(),
                chain.size(), static_cast<long long>(limit), static_cast<long long>(chain.input(0)), seconds);
    std::printf("%22s %14s %10s\n", "", "planned", "all saved");
    std::printf("%22s %14.6g %10.6g\n", "time", seen.time, plain.time);
    std::printf("%22s %14lld %10lld\n", "peak, with the input", static_cast<long long>(seen.peak),
                static_cast<long long>(plain.peak));
    std::printf("%22s %14.3f %10.3f\n", "forwards a block", static_cast<double>(forwards) / blocks, 1.0);
    if (sequence.size() <= 300) std::printf("%s\n", to_string(sequence).c_str());
  }
  if (!feasible)
    complain(o.chain + ": no plan " + (o.slot > 1 ? "in slots of " + std::to_string(o.slot) + " " : std::string()) +
             "fits: the limit is " +
             (limit < 0 ? "below the chain's input" : std::to_string(limit) + (limit == 1 ? " slot" : " slots")) +
             (least >= 0 ? ", the least that suffices is " + std::to_string(least) : ""));
  return feasible ? fine : no_plan_fits;
}

}  // namespace

void add_checkpoint(CLI::App& app, int& exit) {
  auto* command = app.add_subcommand("checkpoint", "what a chain of blocks saves and computes again (rk-Rotor)");
  auto o = std::make_shared<checkpoint_options>();
  command->add_option("CHAIN", o->chain, "JSON: blocks with options, as Rockmate's chains")->required();
  command
      ->add_option("--memory-limit", o->limit,
                   "in the file's slots (377; 1 is one slot), the chain's input not counted; or a ratio of the peak "
                   "without recomputation (0.4, 40%, 1.0), the input counted in both")
      ->required();
  command
      ->add_option("--limits", o->limits,
                   "exact: plans that fit; peer: those that Rockmate takes to fit, some of which do not")
      ->check(CLI::IsMember({"exact", "peer"}))
      ->capture_default_str();
  command
      ->add_option("--slot", o->slot,
                   "solve in slots of so many of the file's, sizes rounded up: quicker, and the plan still fits")
      ->check(CLI::Range(neap::slots_t{1}, neap::max_slots))
      ->capture_default_str();
  command->add_option("--front", o->front, "CSV: every limit up to the one given at which the time falls");
  command->add_option("--out", o->out, "the sequence, as text");
  command->add_flag("--json", o->json, "one JSON object");
  command->callback([o, &exit] { exit = run(*o); });
}

}  // namespace cli
