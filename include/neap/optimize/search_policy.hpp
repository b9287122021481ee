// The numbers of the search: the stages that run, and each share, factor and cap that they use.
//
//   search_policy policy;
//   policy.segments.on = false;                        // a search without recomputation by segments
//   policy.neighbourhoods.max_failures = 50;
//   auto found = neap::optimize(step, moves, neap::memory_limit{2_GiB}, policy);
//
// An option for experts: answers stay valid plans for any numbers, and the defaults suit most graphs. policy_text.hpp writes
// a policy as text and sets its numbers by name.
//
// A share is a deadline, as a ratio of an epoch's work (search_budget.hpp), not a quota. Latencies and bytes are compared as
// ratios unless a unit is named.
//
// bench_quality compares searches, bench_stage_worth each stage's switch (bench/results/stage_worth.csv). Where a group
// names no bench, its numbers were chosen by hand and were not measured apart.
#pragma once

#include <neap/core/units.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace neap { inline namespace v0 {

/// A ratio of some bytes, rounded down: 0.001 of 3000 bytes is 3, although 0.001 is no binary number.
constexpr bytes_t ratio_of(double ratio, bytes_t bytes) {
  return static_cast<bytes_t>(std::min(ratio * static_cast<double>(bytes) * (1 + 1e-15), 4e18));
}

struct search_policy {
  /// Epochs (best_first.hpp), and what counts as work besides what algorithms count themselves (core/work_meter.hpp).
  struct epoch_numbers {
    double growth = 4;                     // times the work of the epoch before
    double first_seconds_an_op = 1e-5;     // work of the first epoch: some dozens of candidates, simulated whole
    double first_seconds = 1e-3;           // at least
    double endless_seconds = 1e9;          // the one epoch of solvers alone: iterations end it
    double before_addresses = 0.9;         // share, under a limit of memory: the rest is for addresses above the peak
    double before_smallest_peak = 0.35;    // share that seeds may use before the smallest peak is searched for
    std::uint64_t judging_an_op = 100;     // nanoseconds of work: a candidate that is simulated whole
    std::uint64_t expanding_an_op = 60;    // nanoseconds of work: facts that all mutations of a candidate share
    std::uint64_t outline = 4000;          // nanoseconds of work: a mutation that is evaluated by its edit
    std::uint64_t offloading_an_op = 300;  // nanoseconds of work: refinement included
    bool operator==(epoch_numbers const&) const = default;
  } epochs;

  /// Short epochs at a tighter limit of memory, of a ladder of limits that does not depend on the user's.
  /// In quality.csv they are worth nothing by the geometric mean: latencies are 0.3 % shorter without them. But three rows
  /// become longer: random_model3 at 0.55 by 15 % (3 % if all epochs give dives 0.7), nested3 at 0.40 by 1.8 %, the gpt at
  /// 0.70 by 1.6 %. Nothing cheaper is known that keeps these rows.
  struct tighter_numbers {
    bool on = true;
    double share = 0.1;             // of the next epoch's work
    double step = 15.0 / 16;        // from one rung of the ladder to the next
    double nearest = 63.0 / 64;     // of the limit: no rung is nearer
    double cheap = 1.01;            // times the original's latency: an answer that is no slower is not improved on
    double gain = 1e-9;             // of the answer's latency, that a better one has to save
    std::uint32_t first_epoch = 2;  // epochs without one, at the beginning
    std::uint32_t rungs = 2;        // that take turns
    bool operator==(tighter_numbers const&) const = default;
  } tighter;

  /// Candidates that wait.
  struct open_list_numbers {
    std::size_t max_ops = 200'000;         // of all that wait together: an op takes some 250 bytes
    std::size_t least = 2, most = 64;      // candidates that may wait, whatever their size
    std::size_t max_seed_ops = 1'500'000;  // the same of seeds, which wait as whole candidates
    std::size_t few_seeds = 8;             // seeds that may wait, whatever their size
    bool operator==(open_list_numbers const&) const = default;
  } open_list;

  /// The best candidate, and what is kept beside it.
  struct incumbent_numbers {
    std::array<double, 4> headroom{0, 1.0 / 64, 0.05, 0.125};  // ratios of the limit, left for addresses
    std::size_t max_surpassed = 6;  // the last ones that were the best: their addresses may need less
    std::size_t max_near = 8;       // candidates that are nearly as small as the smallest
    std::size_t max_answers = 4;    // the last ones that fitted: with their transfers placed anew one may be quicker
    double target_step = 0.02;      // ratio by which a target that is met falls, without a limit of memory
    bool operator==(incumbent_numbers const&) const = default;
  } incumbent;

  /// Addresses of the best candidates.
  struct placement_numbers {
    bool exact = true;               // where the default planner leaves holes, exact search follows
    double kept_back = 25;           // times the seconds that judging the original took, for each answer's addresses
    double least_seconds = 0.01;     // that the default planner's improvement may take in any case
    double holes = 0.005;            // ratio of the peak that may be free where the plan fits
    double to_begin_an_op = 1e-5;    // seconds before exact search can be ended
    double nodes_a_second = 50'000;  // of exact search, by the seconds of an epoch's work
    double least_nodes = 100'000, max_nodes = 400'000;  // in all
    std::int64_t few_nodes = 2'000;                     // for each answer in any case
    double node_share = 0.5;                            // ratio of the nodes that are left, for each answer
    int max_lowered = 6;        // how often the limit is lowered because addresses need more than the peak
    int max_reseeded = 3;       // how often segments are added again for such a limit, before dives
    double reseed_share = 0.6;  // share, until then
    bool operator==(placement_numbers const&) const = default;
  } placement;

  /// Transfers of the answer, moved to where they are hidden (schedule/refine.hpp), and less recomputation.
  struct polish_numbers {
    bool on = true;
    std::size_t max_ops = 1'000'000;  // of all graphs that are built to recompute less, before the end and at it
    std::size_t max_exchanges = 200;  // recomputations tried at the end in place of others
    double overrun = 0.02;            // ratio of the time that this and new addresses may take beyond its end
    bool operator==(polish_numbers const&) const = default;
  } polish;

  /// Swaps that nothing waits for, before anything else.
  struct hidden_swap_numbers {
    bool on = true;
    double share = 0.1;
    int halvings = 6;                            // between the original's peak and the lower bound
    std::array<double, 3> leads{0.0, 1.0, 3.0};  // of loads, in times that they take (mutate/offload.hpp)
    bool operator==(hidden_swap_numbers const&) const = default;
  } hidden_swaps;

  /// Values that are needed last leave memory (mutate/offload.hpp).
  struct offload_numbers {
    bool on = true;
    double share = 0.4;
    std::array<double, 3> leads{0.0, 1.0, 3.0};
    double headroom = 1.0 / 16;   // ratio of the limit: targets are the limit, and less by this: loads can begin early
    double first_fall = 0.25;     // ratio of the peak, without a limit: the first target is lower by this
    double tolerance = 1.0 / 64;  // ratio of the peak: halving ends at this distance of its ends
    std::size_t max_bases = 4;    // candidates beside the original that offloads are of
    double beaten = 1.002;        // times a latency: no quicker than a smaller candidate
    bool operator==(offload_numbers const&) const = default;
  } offloads;

  /// Recomputation by segments (segment_seeds.hpp).
  struct segment_numbers {
    bool on = true;
    double share = 0.25;
    double again = 0.5;                             // of what is left of the epoch, once the limit has moved
    double with_room = 0.1;                         // share for fissions that leave latency, at least
    double preparing = 0.2;                         // share, until which further orders are prepared
    std::size_t large = 20'000;                     // ops: fewer prices from here on
    std::size_t prices = 32, prices_of_large = 12;  // corners of the hull of cuts
    int max_tries = 12;                             // candidates at one pair of prices
    double needed = 0.92;               // of a choice's recomputation at least: not all that may run again is needed
    double tolerance = 0.001;           // ratio of the target: budgets end at this distance
    double latency_tolerance = 0.0005;  // the same, of the peak, under a limit of latency
    double step = 0.1;                  // ratio by which a budget without result is raised
    double near_ratio = 0.125;          // of the target: what exceeds it by less is worth a dive
    double smaller = 0.01;              // another order is recomputed, too, where its peak is lower by this ratio
    bool operator==(segment_numbers const&) const = default;
  } segments;

  /// Candidates made elsewhere (starting_points.hpp).
  struct external_seed_numbers {
    bool on = true;
    double share = 0.125;              // where the pipeline recomputes, too
    double again = 0.5;                // of what is left of the epoch, once the limit has moved
    double candidates_a_second = 1e3;  // of an epoch's work: a candidate is worth a millisecond
    bool operator==(external_seed_numbers const&) const = default;
  } external_seeds;

  /// The answers of solver_seeds(). bench_solver_seeds compares searches with and without them.
  struct solver_numbers {
    // Points of a chain's front.
    std::size_t around = 4;                      // points from the best one on that are evaluated for dives
    std::size_t more = 12, more_with_swaps = 6;  // points around it where solvers stand alone
    double larger = 0.1;                         // of these, budgets that are larger by less than this ratio
    int lowest_tries = 8;                        // for the lowest peak of a front
    double near_ratio = 0.125;                   // of the limit: what exceeds it by less is worth a dive
    // Limits of a graph of blocks.
    int graph_tries = 8;
    std::int64_t changes_a_choice = 400;             // of a try at most
    double change_share = 0.25;                      // ratio of the changes that are left, for each try
    double seconds_a_change = 2e-6;                  // of work, about
    double slower = 1.01, quicker = 0.999;           // times the best latency: in vain; worth another try
    double price_growth = 4, max_price_factor = 64;  // factor of bytes over the limit, for each try while nothing fits
    double tolerance = 0.002;                        // ratio: limits end at this distance
    double latency_tolerance = 0.005;                // the same under a limit of latency
    std::int64_t coarse = 6, deep = 2, fine = 12, beyond = 5,
                 near_smallest = 4;  // limits of a solver that stands alone
    double equal_ratio = 1.0 / 64;   // answers whose peaks differ by less are one
    bool operator==(solver_numbers const&) const = default;
  } solvers;
  /// The blocks that those answers are of.
  struct block_numbers {
    std::int64_t evaluations_a_value = 300, evaluations_a_value_of_graphs = 60;  // of use-gaps, at most
    double seconds_an_evaluation = 1e-6;                                         // of work, about
    double share_of_block = 0.25;                                                // of the work that is left
    std::int64_t work_a_candidate = 1000;  // evaluations for each candidate that the search evaluates
    std::size_t max_candidates = 1'000'000;
    std::int64_t changes = 4;                           // of a graph of blocks, times the evaluations of gaps
    std::int64_t least_blocks = 4, likely_blocks = 16;  // that the evaluations are shared by: known; not known yet
    std::int64_t slots = 3000, slots_beside_options = 500, slots_of_whole = 4000;  // that bytes are counted in
    int levels_of_whole = 24, levels_of_program = 6;            // limits of peak that one block is solved for
    std::array<double, 4> prices_of_link{0.2, 0.1, 0.05, 0.4};  // parts of the transfers' time
    bool operator==(block_numbers const&) const = default;
  } blocks;

  /// Fissions of the orders to start from and of what recomputation makes of them (fission_seeds.hpp).
  struct part_numbers {
    bool on = true;
    double preparing = 0.2;                                                       // share
    double recomputing = 0.1;                                                     // share: recomputation before fission
    std::size_t prices = 6;                                                       // of that
    std::array<double, 8> budgets{0.8, 0.62, 0.47, 0.35, 0.26, 0.19, 0.14, 0.1};  // of that, of the peak
    double keeps_less = 0.98;          // of the smallest peak, or of the bytes kept on average: worth cutting
    double initial_cuts_share = 0.15;  // chains for little time, which recomputation goes on from
    std::array<double, 4> initial_cuts{0.003, 0.01, 0.03, 0.1};  // of the latency, that they may add
    double chains_share = 0.2;                                   // several stretches in parts
    std::size_t max_chains = 2;                                  // under a limit of memory
    int chain_tries = 10;                                        // without one: halvings
    double chain_close = 1.02;                                   // times what is missed: halving ends
    double chain_fall = 0.25;                                    // ratio of the peak: no try aims lower
    double share = 0.3;                                          // single stretches
    std::size_t max_built = 24;                                  // of them
    std::size_t max_starts = 2;                                  // of these, orders to start from
    double quicker_share = 0.35;                                 // those that are quicker than the best and too large
    int chain_length = 200;                                      // fissions
    int chain_width = 3;                                         // fissions of one peak that are tried
    double chain_gain = 0.02;             // a fission that saves less than this ratio of the peak is skipped
    double slower = 1.01, larger = 1.05;  // times the best: what is expected to be above is not built
    double larger_with_room = 1.5;        // the same where latency is left to spend
    double room = 0.75;                   // of the latency that may be spent: less is expected to be used
    std::size_t refined = 8;              // best fissions whose surroundings are swept
    std::uint32_t refinement = 3;         // each sweep is as many times nearer
    std::size_t max_quicker = 12;         // that are quicker and too large; the first half of them in small steps
    double quicker_step = 7.0 / 6, quicker_large_step = 4.0 / 3;  // times the peak of the one before
    double late = 1.05;  // times the limit of latency: estimates are wrong by some percent
    bool operator==(part_numbers const&) const = default;
  } parts;
  /// The candidates in the open list are cut once more at their peaks.
  struct further_part_numbers {
    bool on = true;
    double share = 0.45;
    double spending = 0.15;                           // share besides what is used, under a limit of latency alone
    double dive = 0.1;                                // share besides what is used, of a dive between two such stages
    std::array<double, 3> targets{0.94, 0.97, 0.99};  // ratios of the best peak
    double near_ratio = 0.8;                          // of a candidate's peak: no more than the first target
    double near_with_latency = 0.25;                  // the same where a candidate leaves more than half of the latency
    double quicker = 0.99;                            // times the latency of a smaller one
    std::size_t most = 12;                            // candidates that are cut, by size; as many by latency
    std::size_t max_ops = 1'000'000;                  // in the open list: no more is cut then
    bool operator==(further_part_numbers const&) const = default;
  } further_parts;

  /// Rules that make a program quicker and no larger, one after the other (mutate/rewrite.hpp).
  struct rule_numbers {
    bool on = true;
    double share = 0.1;  // at the beginning; at the end what is left
    double gain = 1e-9;  // of a latency, that a rule has to save
    bool operator==(rule_numbers const&) const = default;
  } rules;

  /// Single mutations, from the cheapest to the next.
  struct dive_numbers {
    bool on = true;
    double seeds = 0.5;           // share: from what segments led to
    double seeds_spending = 0.1;  // share besides what is used, under a limit of latency alone
    // Of all dives, in odd and in even epochs; the first alone where latency is limited. Epochs at tighter limits count:
    // where one comes before each of the others, these are even from the third on. quality.csv with 0.8 for both: 1.1827 of
    // the original's latency by the geometric mean, with these 1.1798.
    std::array<double, 2> share{0.8, 0.7};
    double perturbation_octaves = 2;  // octaves by which bargains are disturbed in neighbourhoods
    double least_price = 1e-5;        // of the original's latency: added to what a mutation costs
    double far = 2;                   // times the best peak: a start above aims at the smallest peak at once
    bool operator==(dive_numbers const&) const = default;
  } dives;
  /// While seeds take time and nothing fits, a moment for what is near the limit.
  struct first_fit_numbers {
    bool on = true;
    double segments = 0.01, dives = 0.02;  // shares besides what is used
    double far_ratio = 0.125;              // of the target: what exceeds it by more is left out
    bool operator==(first_fit_numbers const&) const = default;
  } first_fit;
  /// Where a plan that fits is expensive: the smallest peak at a part of its price (stages/smallest_peak.hpp).
  struct price_reduction_numbers {
    bool on = true;
    double cheap = 1.01;  // times the original's latency: no longer expensive
    double share = 0.3;   // of what is left of the epoch, for each
    double last = 0.7;    // share, after which none begins
    double price = 0.25;  // of the latency that the plan adds
    bool operator==(price_reduction_numbers const&) const = default;
  } price_reduction;
  /// Large-neighbourhood search (Shaw 1998): stretches of the best are undone and searched again.
  struct neighbourhood_numbers {
    bool on = true;
    int max_failures = 200;      // in a row
    std::uint32_t halvings = 5;  // a stretch is a half of the order, a fourth... down to this
    bool operator==(neighbourhood_numbers const&) const = default;
  } neighbourhoods;

  bool operator==(search_policy const&) const = default;
};

/// The first number that no search can run with, and why: "epochs.growth: at least 1"; empty if there is none. The others
/// may be any that are finite and not negative.
std::string wrong_number(search_policy const& p);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/search_policy.ipp>
#endif
