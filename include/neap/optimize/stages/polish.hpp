// The last stage of a search: loads and stores of the answer move to where their transfers are hidden best
// (schedule/refine.hpp), if that costs no memory, and nothing is recomputed that a limit of memory leaves room for. Answers
// of epochs that have ended are looked at between epochs, and what was the best before it is surpassed: a search that goes
// on never loses what an earlier end would have come to.
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/stages/placement.hpp>
#include <neap/optimize/stages/undone.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/flow_facts.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

class polish {
 public:
  using node_ptr = search_state::node_ptr;

  polish(search_state& state, placement& placing) : state_(state), placing_(placing) {
    state.on_incumbent_replaced = [this](node_ptr const& n) { look_at_surpassed(n); };
  }
  polish(polish const&) = delete;
  polish& operator=(polish const&) = delete;
  ~polish() { state_.on_incumbent_replaced = nullptr; }

  /// Between epochs: answers that were not looked at yet. What is quickest waits for the end; the search goes on without it.
  void look_at_answers() {
    if (!is_on()) return;
    for (auto const& n : placing_.answers()) look_at(n);
  }

  /// The answer is the quickest of what comes of the last answers, whose arena is within what it is now or what the limit
  /// allows, and of what waits. The answer itself is looked at without time, too.
  void finish() {
    if (!is_on()) return;
    auto const answer = state_.best;
    left_.ops = state_.policy.polish.max_ops, is_finishing_ = true;
    take(polished(answer, answer->state.result.latency));
    if (quickest_ && (!state_.out.fits || quickest_->state.result.latency < quicker_than_best()))
      placing_.replace_answer(std::move(quickest_), std::move(*addresses_));
    // What was slower before may be quicker with its transfers elsewhere.
    auto const& last = placing_.answers();
    for (auto n = last.rbegin(); n != last.rend() && placing_.has_time(); ++n)
      if (*n != placing_.answer()) take(polished(*n, quicker_than_best()));
  }

 private:
  /// The user's scheduler has placed transfers where it orders candidates: then they stay.
  bool is_on() const { return state_.policy.polish.on && !state_.evaluator().reorders(); }
  seconds_t quicker_than_best() const { return state_.best->state.result.latency * (1 - objective::rounding); }

  /// Within an epoch, and no part of its work: the sequence of candidates is the same without it.
  void look_at_surpassed(node_ptr const& n) {
    if (!is_on() || !state_.limits.limits_memory || !state_.limits.fits(n->state.result)) return;
    auto const work = work_meter::now();
    look_at(n);
    work_meter::reset_to(work);
  }
  /// Once each: what was surpassed in a sub-search is surpassed again by its result.
  void look_at(node_ptr const& n) {
    if (std::exchange(n->is_polished, true)) return;
    auto latency = n->state.result.latency;
    if (quickest_) latency = std::min(latency, quickest_->state.result.latency);
    auto c = polished(n, latency);
    if (!c) return;
    auto placed = placing_.addresses(c->state, nodes_);
    if (placed.arena_bytes <= state_.limits.memory) quickest_ = std::move(c), addresses_ = std::move(placed);
  }

  /// What comes of a candidate, if that is quicker than `latency` and has no higher peak than the candidate or a limit.
  node_ptr polished(node_ptr const& n, seconds_t latency) {
    auto c = n->state;
    bool const is_moved = hide_transfers(c);
    auto const limit = state_.limits.limits_memory ? std::max(state_.limits.memory, c.result.peak_bytes) : 0;
    bool const is_less = limit > 0 && state_.allowed.recompute && recompute_less(c, limit);
    if ((!is_moved && !is_less) || c.result.latency >= latency) return nullptr;
    return state_.make_node(n, is_less ? "what there is room for is kept" : "loads and stores where they are hidden",
                            std::move(c.graph), std::move(c.order), std::move(c.result));
  }
  /// Exchanges are for the end: they take longer.
  bool recompute_less(candidate& c, bytes_t limit) {
    bool const is_undone = undo_recomputations(c, limit, left_);
    bool const exchanges =
        is_finishing_ && exchange_recomputations(c, limit, left_, state_.policy.polish.max_exchanges);
    return is_undone || exchanges;
  }
  /// Whether loads and stores have moved: to where the candidate is quicker, with no higher peak.
  bool hide_transfers(candidate& c) {
    flow_facts const facts(c.graph, state_.evaluator().cost(), state_.options.memory);
    if (!facts.has_transfers()) return false;
    auto order = refine{}(facts, c.order);
    simulation result;
    simulator{}(facts, order, result);
    state_.record.note(result);
    if (result.latency >= c.result.latency || result.peak_bytes > c.result.peak_bytes) return false;
    c.order = std::move(order), c.result = std::move(result);
    return true;
  }
  /// A candidate becomes the answer, if its arena allows that.
  void take(node_ptr n) {
    if (!n) return;
    auto placed = placing_.addresses(n->state);
    auto const allowed = state_.active_limits.limits_memory ? state_.out.memory_limit_bytes : 0;
    if (placed.arena_bytes <= std::max(state_.out.placed.arena_bytes, allowed))
      placing_.replace_answer(std::move(n), std::move(placed));
  }

  search_state& state_;
  placement& placing_;
  node_ptr quickest_;              // of what came of the best so far, within the limit
  std::optional<plan> addresses_;  // its
  std::int64_t nodes_ = 0;         // of exact search for addresses so far
  undoing_budget left_{state_, state_.policy.polish.max_ops};
  bool is_finishing_ = false;
};

}}}  // namespace neap::v0::detail
