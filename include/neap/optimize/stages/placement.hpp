// A stage of the search: addresses for its best candidates, and which of these is the answer. Longer than other stages: what
// counts as the better answer depends on the addresses found.
#pragma once

#include <neap/memory/exact_placing.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_policy.hpp>
#include <neap/optimize/search_profile.hpp>
#include <neap/optimize/search_state.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Improvement of a plan ends at a request, or after so many seconds.
class improvement_end {
 public:
  improvement_end(std::stop_token const& stop, double seconds) : stop_(stop), seconds_(seconds) {}
  /// This outlives it.
  early_end as_function() const {
    return {[](void const* p) { return static_cast<improvement_end const*>(p)->is_over(); }, this};
  }

 private:
  using clock = std::chrono::steady_clock;
  bool is_over() const {
    return stop_.stop_requested() || std::chrono::duration<double>(clock::now() - begin_).count() >= seconds_;
  }
  std::stop_token const& stop_;
  double seconds_;
  clock::time_point begin_ = clock::now();
};

class placement {
 public:
  using node_ptr = search_state::node_ptr;

  explicit placement(search_state& state) : state_(state), numbers_(state.policy.placement) {}

  /// The best one whose addresses fit; while none do, the smallest. Nothing before the first was placed.
  node_ptr const& answer() const { return answer_; }
  bool answer_fits() const { return state_.limits.fits(needs()); }
  /// Under a limit of memory the last answers that fitted.
  std::vector<node_ptr> const& answers() const { return answers_; }

  /// The search goes on from the answer; with more work its addresses may be better.
  void begin_epoch() {
    lowered_ = 0;
    if (!answer_) return;
    state_.best = answer_;
    if (!answer_fits()) addressed_ = nullptr;
  }

  /// Addresses for the best candidate. Where they need more than the peak, and that is over the limit, the search is to go
  /// on with a limit that is lower by as much: false then.
  bool place() {
    auto& out = state_.out;
    auto& best = state_.best;
    place_best();
    if (out.fits || !state_.is_met() || lowered_ == numbers_.max_lowered) return true;
    state_.active_limits.memory -= (out.placed.arena_bytes - out.memory_limit_bytes) << lowered_++ / 2;
    state_.seek(state_.active_limits);
    best->expanded = false;
    best->excess = excess_bytes(best->state.result.bytes_at, state_.target);
    state_.queue.push_back(best);
    state_.seen.clear();
    return false;
  }
  /// The same; whether the search is to end: what was found fits, or could not be placed, without a lower limit.
  bool place_and_end() { return place() && (state_.out.fits || lowered_ == 0); }

  /// A candidate whose addresses are known may be the answer.
  void offer_placed(node_ptr n, plan placed) {
    addressed_ = state_.best = std::move(n);
    state_.out.placed = std::move(placed);
    answer_if_better();
  }

  /// What a limit that was lowered for the sake of addresses has led to may be slower than what fits without that; and
  /// where nothing fits, what has a larger peak may need less: the first of these is placed without time, too.
  void place_alternatives() {
    bool late = false;
    for (auto const& n : state_.alternatives.all()) {
      bool const in_time = has_time();
      if (!in_time && (late || answer_fits())) break;
      if (!may_be_better(n->state.result)) continue;
      late = !in_time;
      state_.best = n, place_best();
    }
    use_answer();
  }
  /// Where nothing fits: the quickest of what was found that is as small as the smallest becomes the answer. The first
  /// that may be it is placed without time, too: the end of a budget is no reason for a slow answer.
  void prefer_quicker_if_unmet() {
    auto const as_small = state_.alternatives.as_small_as(plan_->arena_bytes);
    auto const late = [&](node_ptr const& n) { return std::max(n->state.result.latency, state_.limits.latency); };
    // The quickest first.
    auto const& near = state_.alternatives.near_smallest_peak();
    bool first = true;
    for (auto n = near.rbegin(); n != near.rend() && (first || has_time()); ++n) {
      auto const& r = (*n)->state.result;
      if (r.latency >= answer_->state.result.latency || late(*n) > late(answer_) || r.peak_bytes > as_small) continue;
      first = false;
      auto placed = addresses((*n)->state);
      if (placed.arena_bytes > as_small) continue;
      answer_ = *n, plan_ = std::move(placed);
      return;
    }
  }
  /// The answer is the search's best.
  void use_answer() {
    state_.best = addressed_ = answer_;
    state_.out.placed = *plan_;
    state_.out.fits = within_limits();
  }
  /// The search's best, with addresses that were found elsewhere.
  void replace_answer(node_ptr n, plan placed) {
    state_.best = std::move(n);
    state_.out.placed = std::move(placed);
    state_.out.fits = within_limits();
  }

  bool has_time() const {
    return !state_.options.stop.stop_requested() && state_.budget.has_time_for(2 * state_.graph.op_count());
  }
  plan addresses(candidate const& c) { return addresses(c, nodes_); }
  /// By the default planner; where that leaves much free at the peak, or needs more than the limit, by search. The work
  /// of all searches that count their nodes together is bounded by that of the epoch; seconds only cut it.
  plan addresses(candidate const& c, std::int64_t& nodes_used) {
    auto& profile = state_.evaluator().profile;
    ++profile.placed;
    return timed(state_.options.profile, profile.placing, [&] {
      auto const& memory = state_.options.memory;
      auto const seconds_left = [&] { return state_.budget.seconds_left(c.order.size()); };
      auto const& stop = state_.options.stop;
      default_planner quick;
      improvement_end const end(stop, std::max(seconds_left(), numbers_.least_seconds));
      quick.ended = end.as_function();
      auto placed = make_plan(c, state_.graph, memory, quick);
      auto const limit = state_.out.memory_limit_bytes;
      bool const large = state_.active_limits.limits_memory && placed.arena_bytes > limit && placed.peak_bytes <= limit;
      bool const dense = placed.arena_bytes - placed.peak_bytes <= ratio_of(numbers_.holes, placed.peak_bytes);
      auto const seconds = seconds_left();
      auto const to_begin = numbers_.to_begin_an_op * static_cast<double>(c.order.size());
      if (!numbers_.exact || (!large && dense) || seconds <= to_begin || stop.stop_requested()) return placed;
      auto const all = static_cast<std::int64_t>(
          std::clamp(numbers_.nodes_a_second * state_.budget.epoch(), numbers_.least_nodes, numbers_.max_nodes));
      auto const nodes = std::max(ratio_of(numbers_.node_share, all - nodes_used), numbers_.few_nodes);
      memory_plan used;
      auto const planner = [&](memory_problem const& p) { return used = exact_placing{nodes, seconds}(p); };
      auto tighter = make_plan(c, state_.graph, memory, planner);
      nodes_used += used.work;
      return tighter.arena_bytes < placed.arena_bytes ? tighter : placed;
    });
  }

 private:
  /// The best candidate with addresses is the answer, if it is better than the last one.
  void place_best() {
    auto& best = state_.best;
    if (std::exchange(addressed_, best) != best) state_.out.placed = addresses(best->state);
    answer_if_better();
  }
  void answer_if_better() {
    auto& out = state_.out;
    out.fits = within_limits();
    if (!is_better()) return;
    answer_ = state_.best, plan_ = out.placed;
    if (answers_.size() == state_.policy.incumbent.max_answers) answers_.erase(answers_.begin());
    if (out.fits && state_.limits.limits_memory) answers_.push_back(answer_);
  }
  /// Whether the best, with its addresses, meets the user's limits, however far the search's own limit was lowered. (No
  /// arena is smaller than the peak.)
  bool within_limits() const {
    return state_.limits.fits(plan_cost{state_.out.placed.arena_bytes, state_.best->state.result.latency});
  }
  /// Whether the best with its addresses is a better answer. Where neither fits, less memory is.
  bool is_better() const {
    if (!answer_) return true;
    bool const before = answer_fits();
    if (state_.out.fits != before) return state_.out.fits;
    auto const& now = state_.best->state.result;
    if (before) return state_.limits.better(now, answer_->state.result);
    return state_.limits.beats({state_.out.placed.arena_bytes, now.latency}, needs());
  }
  /// The same before its addresses are known.
  bool may_be_better(simulation const& r) const {
    if (answer_fits()) return r.peak_bytes <= state_.limits.memory && state_.limits.better(r, answer_->state.result);
    return state_.limits.beats(r, needs());
  }
  plan_cost needs() const { return {plan_->arena_bytes, answer_->state.result.latency}; }

  search_state& state_;
  search_policy::placement_numbers const& numbers_;
  node_ptr addressed_;  // whose addresses were looked for last
  node_ptr answer_;
  std::optional<plan> plan_;  // of the answer
  std::vector<node_ptr> answers_;
  int lowered_ = 0;         // how often the limit was lowered in this epoch, by ever more
  std::int64_t nodes_ = 0;  // of exact search so far
};

}}}  // namespace neap::v0::detail
