// Evaluates mutations for a search: the candidate that one makes of another, its peak and latency, and whether it is new.
// Each thread of a search has its own evaluator.
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/replay_facts.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/pin_guard.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/search_profile.hpp>
#include <neap/optimize/seen_candidates.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/outline_delta.hpp>
#include <neap/simulate/outlined_facts.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/simulate/transfer_costs.hpp>

#include <optional>
#include <string>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// What a mutation comes to: by its edit alone (`preview`), or built and simulated.
struct candidate_evaluation {
  edit_answer preview = edit_answer::unknown;
  // Of its edit, where that is known:
  plan_cost cost{};
  double excess = 0;  // bytes above the target, summed over positions
  // Of what was built, if it has no outline:
  std::optional<edited> made{};
  std::optional<digest> identity{};    // none: no order
  std::optional<simulation> result{};  // none: a duplicate, or no order
};

class candidate_evaluator {
 public:
  /// All of it outlives the evaluator.
  candidate_evaluator(cost_model_ref cost, scheduler_ref scheduler, search_options const& options,
                      pin_guard const& pins)
      : cost_(cost),
        scheduler_(scheduler),
        options_(options),
        pins_(pins) {}

  simulation evaluate(op_graph const& g, schedule const& order) {
    return timed(options_.profile, profile.judging, [&] {
      facts_.assign(g, cost_, options_.memory);
      return simulator_(facts_, order);
    });
  }
  cost_model_ref const& cost() const { return cost_; }
  /// Whether a scheduler orders what mutations make.
  bool reorders() const { return static_cast<bool>(scheduler_); }
  /// Of what was simulated last.
  flow_facts const& facts() const { return facts_; }
  std::optional<digest> digest_of(op_graph const& g, schedule const& order) {
    return timed(options_.profile, profile.checking, [&] { return digest_(g, order); });
  }

  /// Evaluates a mutation of a candidate: by its edit, else by building it. `replay` is made at its first use.
  template <class M>
  candidate_evaluation evaluate(candidate const& from, M const& m, std::optional<replay_facts>& replay, bytes_t target,
                                seen_candidates const& seen) {
    candidate_evaluation found;
    if (!reorders()) found = outline(from, m, replay, target);
    if (found.preview == edit_answer::unknown) found = build(from, m, seen);
    return found;
  }
  /// The same of what a mutation has made: nothing if that breaks a pin. Duplicates are simulated too if `even_if_seen`.
  candidate_evaluation evaluate_edit(edited e, seen_candidates const& seen, bool even_if_seen = false) {
    ++profile.built;
    candidate_evaluation found;
    if (!pins_.holds(e.graph)) return found;
    if (reorders()) e.order = scheduler_(e.graph);
    found.made = std::move(e);
    auto const& made = *found.made;
    found.identity = digest_of(made.graph, made.order);
    if (found.identity && (even_if_seen || !seen.contains(*found.identity)))
      found.result = evaluate(made.graph, made.order);
    return found;
  }
  template <class M>
  std::optional<edited> apply(candidate const& from, M const& m) {
    return timed(options_.profile, profile.applying, [&] { return apply_mutation(m, from); });
  }
  /// The candidate that was evaluated last may be gone, and another one at its address.
  void forget() { outlined_of_ = nullptr; }

  search_profile profile;

 private:
  template <class M>
  candidate_evaluation build(candidate const& from, M const& m, seen_candidates const& seen) {
    auto e = apply(from, m);
    return e ? evaluate_edit(std::move(*e), seen) : candidate_evaluation{};
  }
  template <class M>
  candidate_evaluation outline(candidate const& c, M const& m, std::optional<replay_facts>& replay, bytes_t target) {
    candidate_evaluation found;
    found.preview = timed(options_.profile, profile.drawing, [&] {
      if (!replay) replay.emplace(c.graph, c.order);
      return edit_of(m, c, *replay, outline_);
    });
    if (found.preview != edit_answer::known) return found;
    work_meter::add(options_.policy.epochs.outline);
    timed(options_.profile, profile.judging, [&] {
      if (outlined_of_ != &c) {
        outlined_.assign(c.graph, cost_, options_.memory), outlined_of_ = &c;
        delta_.assign(c, outlined_);
      }
      transfer_costs_.tell(c.graph, cost_, outline_);
      if (delta_.can_judge(outlined_, outline_)) {
        outlined_.add_rows(outline_);
        auto const a = delta_.judge(outlined_, replay->at, replay->values, outline_, target);
        outlined_.take_back();
        found.cost = {a.peak_bytes, a.latency}, found.excess = a.excess_bytes;
        return true;
      }
      outlined_.apply(c.order, outline_);
      found.cost = simulator_.judge(outlined_, outlined_.order());
      found.excess = excess_bytes(simulator_.judged_bytes(), target);
      outlined_.take_back();
      return true;
    });
    ++profile.outlined;
    return found;
  }

  cost_model_ref cost_;
  scheduler_ref scheduler_;
  search_options const& options_;
  pin_guard const& pins_;
  flow_facts facts_;
  outlined_facts outlined_;
  outline_delta delta_;
  candidate const* outlined_of_ = nullptr;
  transfer_costs transfer_costs_;
  graph_edit outline_;
  simulator simulator_;
  candidate_digest digest_;
};

}  // namespace detail

}}  // namespace neap::v0
