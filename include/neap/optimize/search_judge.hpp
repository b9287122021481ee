// What a search looks at mutations with: the candidate that one makes of another, what it comes to, and whether it is new.
// Each thread of a search has one of its own.
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

/// What became of a mutation.
template <class G>
struct looked_at {
  edit_answer told = edit_answer::unknown;
  // Of its outline:
  plan_cost would_be{};
  double excess = 0;  // bytes above the target, summed over positions
  // Of what was built, if it has no outline:
  std::optional<edited<G>> made{};
  std::optional<digest> told_apart{};  // none: no order
  std::optional<simulation> result{};  // none: it was met before, or is no order
};

template <class G>
class search_judge {
 public:
  /// All of it outlives the judge.
  search_judge(cost_model_ref<G> cost, scheduler_ref<G> scheduler, search_options const& options, pin_guard const& pins)
      : cost_(cost),
        scheduler_(scheduler),
        options_(options),
        pins_(pins) {}

  simulation judge(G const& g, schedule const& order) {
    return timed(options_.profile, profile.judging, [&] {
      facts_.assign(g, cost_, options_.memory);
      return simulator_(facts_, order);
    });
  }
  cost_model_ref<G> const& cost() const { return cost_; }
  /// Whether a scheduler orders what mutations make.
  bool reorders() const { return static_cast<bool>(scheduler_); }
  /// Of what was judged last.
  flow_facts const& facts() const { return facts_; }
  std::optional<digest> digest_of(G const& g, schedule const& order) {
    return timed(options_.profile, profile.checking, [&] { return digest_(g, order); });
  }

  /// Looks at a mutation of a candidate: by its outline, else by building it. `replay` is made when it is
  /// first needed.
  template <class M>
  looked_at<G> look(candidate<G> const& from, M const& m, std::optional<replay_facts>& replay, bytes_t target,
                    seen_candidates const& seen) {
    looked_at<G> found;
    if (!reorders()) found = outline(from, m, replay, target);
    if (found.told == edit_answer::unknown) found = build(from, m, seen);
    return found;
  }
  /// The same of what a mutation has made: nothing if that breaks a pin. It is judged even if it was met before, if `again`.
  looked_at<G> look_at(edited<G> e, seen_candidates const& seen, bool again = false) {
    ++profile.built;
    looked_at<G> found;
    if (!pins_.holds(e.graph)) return found;
    if (reorders()) e.order = scheduler_(e.graph);
    found.made = std::move(e);
    auto const& made = *found.made;
    found.told_apart = digest_of(made.graph, made.order);
    if (found.told_apart && (again || !seen.contains(*found.told_apart))) found.result = judge(made.graph, made.order);
    return found;
  }
  template <class M>
  std::optional<edited<G>> apply(candidate<G> const& from, M const& m) {
    return timed(options_.profile, profile.applying, [&] { return apply_mutation(m, from); });
  }
  /// The candidate whose outlines were looked at may be gone, and another one in its place.
  void forget() { outlined_of_ = nullptr; }

  search_profile profile;

 private:
  template <class M>
  looked_at<G> build(candidate<G> const& from, M const& m, seen_candidates const& seen) {
    auto e = apply(from, m);
    return e ? look_at(std::move(*e), seen) : looked_at<G>{};
  }
  template <class M>
  looked_at<G> outline(candidate<G> const& c, M const& m, std::optional<replay_facts>& replay, bytes_t target) {
    looked_at<G> found;
    found.told = timed(options_.profile, profile.drawing, [&] {
      if (!replay) replay.emplace(c.graph, c.order);
      return edit_of(m, c, *replay, outline_);
    });
    if (found.told != edit_answer::known) return found;
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
        found.would_be = {a.peak_bytes, a.latency}, found.excess = a.excess_bytes;
        return true;
      }
      outlined_.apply(c.order, outline_);
      auto const comes_to = simulator_.judge(outlined_, outlined_.order());
      found.would_be = {comes_to.peak_bytes, comes_to.latency};
      found.excess = excess_bytes(simulator_.judged_bytes(), target);
      outlined_.take_back();
      return true;
    });
    ++profile.outlined;
    return found;
  }

  cost_model_ref<G> cost_;
  scheduler_ref<G> scheduler_;
  search_options const& options_;
  pin_guard const& pins_;
  flow_facts facts_;
  outlined_facts<G> outlined_;
  outline_delta<G> delta_;
  candidate<G> const* outlined_of_ = nullptr;
  transfer_costs<G> transfer_costs_;
  graph_edit outline_;
  simulator simulator_;
  candidate_digest digest_;
};

}  // namespace detail

}}  // namespace neap::v0
