// What is written down while a search runs, and stands in its outcome: how many candidates were evaluated and a digest of them,
// each best answer with its time, the Pareto front. Progress is reported from here.
#pragma once

#include <neap/core/split_mix.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/pareto_front.hpp>
#include <neap/optimize/search_budget.hpp>
#include <neap/optimize/search_options.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

class search_record {
 public:
  /// All three outlive it. The outcome has its lower bound before the first call.
  search_record(search_options const& options, search_budget const& budget, search_outcome& out)
      : options_(options),
        budget_(budget),
        out_(out) {}

  /// A candidate was evaluated as part of the search.
  void count(plan_cost what) {
    trail_ = scramble(
        trail_ ^ scramble(static_cast<std::uint64_t>(what.peak_bytes) ^ std::bit_cast<std::uint64_t>(what.latency)));
    if (std::has_single_bit(++out_.candidates) && !budget_.is_cut()) out_.trail.push_back(trail_);
    front_.add(what);
    if (options_.progress && options_.progress_every > 0 && !out_.history.empty() && budget_.elapsed() >= report_at_)
      report(standing(last_best(), out_.history.back().fits));
  }
  /// One was evaluated beside the search: a point of the front, and no candidate.
  void note(plan_cost what) { front_.add(what); }
  /// The search has a new best candidate. A sub-search that begins with less than what is known records nothing.
  void best_is(plan_cost const& v, objective const& limits) {
    if (!out_.history.empty() && !limits.beats(v, last_best())) return;
    out_.history.push_back(standing(v, limits.fits(v)));
    report(out_.history.back());
  }
  /// The search is over: its front, without points that are quicker by rounding alone, and its time.
  void end() {
    out_.front = std::move(front_).points();
    auto const no_quicker = [](plan_cost const& smaller, plan_cost const& p) {
      return p.latency >= smaller.latency * (1 - objective::rounding);
    };
    out_.front.erase(std::unique(out_.front.begin(), out_.front.end(), no_quicker), out_.front.end());
    out_.seconds = budget_.elapsed();
  }

 private:
  plan_cost last_best() const { return {out_.history.back().peak_bytes, out_.history.back().latency}; }
  search_progress standing(plan_cost const& v, bool fits) const {
    return {v.peak_bytes, v.latency, fits, out_.lower_bound_bytes, out_.candidates, budget_.elapsed()};
  }
  void report(search_progress const& p) {
    report_at_ = p.elapsed + options_.progress_every;
    if (options_.progress) options_.progress(p);
  }

  search_options const& options_;
  search_budget const& budget_;
  search_outcome& out_;
  pareto_front front_;       // of all that was evaluated
  std::uint64_t trail_ = 0;  // of out.trail
  double report_at_ = 0;     // seconds: when progress is reported next, unless the best changes before
};

}}}  // namespace neap::v0::detail
