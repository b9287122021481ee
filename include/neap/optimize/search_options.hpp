// The options of a search, and its answer.
#pragma once

#include <neap/ir/pin_rules.hpp>
#include <neap/optimize/pareto_front.hpp>
#include <neap/optimize/search_policy.hpp>
#include <neap/optimize/search_profile.hpp>
#include <neap/optimize/search_strategy.hpp>
#include <neap/optimize/search_summary.hpp>
#include <neap/optimize/starting_points.hpp>
#include <neap/optimize/warm_start.hpp>
#include <neap/plan/candidate.hpp>
#include <neap/plan/limits.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// The progress of a running search.
struct search_progress {
  bytes_t peak_bytes = 0;         // of the best candidate so far
  seconds_t latency = 0;          // of the best candidate so far
  bool fits = false;              // whether it meets the limits
  bytes_t lower_bound_bytes = 0;  // no order of the same ops, however recomputed, gets below
  std::size_t candidates = 0;     // evaluated so far
  double elapsed = 0;             // seconds since the search began
};

/// Something to call with a search_progress, or nothing. As std::function, but copies call one object; and programs that
/// include this do without <functional>, which is a tenth of a second to compile.
class progress_callback {
 public:
  progress_callback() = default;
  progress_callback(std::nullptr_t) {}
  template <class F>
    requires(!std::same_as<F, progress_callback>) && std::invocable<F&, search_progress const&>
  progress_callback(F f)
      : callable_(std::make_shared<F>(std::move(f))),
        call_([](void* at, search_progress const& p) { static_cast<void>((*static_cast<F*>(at))(p)); }) {}

  explicit operator bool() const { return call_ != nullptr; }
  void operator()(search_progress const& p) const { call_(callable_.get(), p); }

 private:
  std::shared_ptr<void> callable_;
  void (*call_)(void*, search_progress const&) = nullptr;
};

struct search_options {
  memory_limit memory_at_most{};
  latency_limit latency_at_most{};
  time_budget time{};
  memory_options memory{};
  std::size_t iterations =
      SIZE_MAX;            // candidates evaluated at most: a search that ends by it is repeatable to the byte
  std::size_t width = 32;  // mutations evaluated a candidate
  unsigned threads = 1;    // that evaluate mutations; at least 1. The same candidates in the same order for any
                           // number. Moves, cost model and scheduler are called on all of them at once
  std::uint64_t seed = 1;  // of random choices: all else equal, answers of two seeds are about as good
  std::stop_token stop{};
  progress_callback progress{};         // called when the best candidate changes
  double progress_every = 0;            // seconds: progress is reported after so long even if nothing changed; 0: never
  double seconds_an_op_afterwards = 0;  // kept back of the time for what is done with each op of the answer
  bool profile = false;                 // measure where time goes
  std::shared_ptr<search_starts const> starts{};  // candidates to start from beside the orders; may be none
  warm_start warm{};                              // plans of earlier searches to begin with (warm_start.hpp)
  any_search_strategy strategy{};                 // which candidates it goes on with; none: its own dives
  pin_rules pins{};                               // beside those of the graph (ir/pin_rules.hpp)
  search_policy policy{};                         // its stages and numbers, for experts

  search_options& set(memory_limit m) { return memory_at_most = m, *this; }
  search_options& set(latency_limit l) { return latency_at_most = l, *this; }
  search_options& set(time_budget t) { return time = t, *this; }
  search_options& set(memory_options m) { return memory = m, *this; }
  search_options& set(pin_rules p) { return pins = std::move(p), *this; }
  search_options& set(search_policy const& p) { return policy = p, *this; }
  search_options& set(std::stop_token s) { return stop = std::move(s), *this; }
  search_options& set(warm_start w) { return warm.add(std::move(w)), *this; }
  search_options& set(std::shared_ptr<search_starts const> s) { return starts = std::move(s), *this; }
  template <search_strategy S>
  search_options& set(S s) {
    return strategy = std::move(s), *this;
  }
  template <class F>
    requires std::invocable<F, search_progress const&>
  search_options& set(F f) {
    return progress = std::move(f), *this;
  }
};

/// An op that forces the peak: what it reads, writes and needs at once is more than the limit leaves.
struct forcing_op {
  op_id op;
  std::string what;  // "matmul blocks.3.up"
  bytes_t bytes = 0;
};

namespace detail {
/// Two times for a person, in one unit, with as many digits as it takes to tell them apart.
std::pair<std::string, std::string> distinct_times(seconds_t a, seconds_t b);
}  // namespace detail

/// What a search's answer has beside the plan.
struct search_outcome {
  simulation original;  // of the graph as it came, in its own order
  bool fits = false;    // the best meets every limit, with addresses: the arena is within the memory limit
  bytes_t memory_limit_bytes = INT64_MAX;
  seconds_t latency_limit_seconds = 1e300;
  bytes_t lower_bound_bytes = 0;         // proved: no order, recomputation or swapping of these ops gets below
  std::vector<forcing_op> forcing;       // the ops that make the bound
  peak_content at_peak;                  // what the best plan's peak is made of
  std::vector<operator_time> times;      // what its computing is made of, the longest first
  std::vector<std::string> reasons;      // why something may not run again, move or be cut: a line each, with its name
  std::vector<search_progress> history;  // each time the best changed
  std::vector<search_step> steps;        // from the original to the best
  std::vector<plan_cost> front;          // of all evaluated those that none beats but by rounding; of rising peak
  std::size_t candidates = 0;            // evaluated
  std::vector<std::uint64_t>
      trail;           // a hash of all candidates so far, in order, after 1, 2, 4, 8... of them, until the
                       // clock ends the search: that of a shorter search begins that of a longer one
  double seconds = 0;  // taken by the search
  search_profile profile;
  std::vector<stage_record> stages;  // each run of a stage, in the order in which they ended

 protected:
  /// Why the best plan does not fit: it needs `arena`, though but `peak` is in use at once, of which `resident` is there
  /// before and after; and takes `latency`.
  std::string why_not(bytes_t arena, bytes_t peak, bytes_t resident, seconds_t latency) const;
  std::string summary(bytes_t arena, bytes_t peak, bytes_t resident, seconds_t latency) const;
};

/// A search's answer.
struct optimized : search_outcome {
  candidate best;  // the best that fits; if none does, the one nearest to fitting
  plan placed;     // best with addresses

  /// One line for a person where `fits` is false; empty otherwise.
  std::string why_not() const {
    return search_outcome::why_not(placed.arena_bytes, placed.peak_bytes, placed.resident_bytes, best.result.latency);
  }
  /// Whether it fits and by how much, what takes the time, what holds the peak, what a little more would buy, what is
  /// proved: at most ten lines.
  std::string summary() const {
    return search_outcome::summary(placed.arena_bytes, placed.peak_bytes, placed.resident_bytes, best.result.latency);
  }
  template <class Stream>
  friend Stream& operator<<(Stream& to, optimized const& found) {
    to << found.summary();
    return to;
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/search_options.ipp>
#endif
