// What the parts of a search share (best_first.hpp): candidates, their limits, the best so far, the queue.
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/core/worker_team.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/optimize/candidate_evaluator.hpp>
#include <neap/optimize/incumbent.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/open_list.hpp>
#include <neap/optimize/search_budget.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/search_problem.hpp>
#include <neap/optimize/search_record.hpp>
#include <neap/optimize/seen_candidates.hpp>
#include <neap/optimize/stage_scope.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The steps that led to a candidate, last one first; shared by its descendants while the search runs.
struct search_path {
  std::shared_ptr<search_path const> before;
  search_step last;
};

/// A candidate of a search.
struct search_node {
  std::shared_ptr<search_path const> path;  // none of the original
  candidate state;
  double excess = 0;  // bytes above the target, summed over positions
  bool expanded = false;
  bool is_external_seed = false;  // made elsewhere
  bool is_polished = false;       // by the last stage (stages/polish.hpp)
  // Of a candidate that is not built yet: of what and how it is to be. Of its state only peak and latency are there.
  std::shared_ptr<search_node> from;
  std::optional<any_mutation> how;
  double gained = 0;  // of the excess of `from`
};

/// What is a search's own and what a sub-search has for itself (search_state::sub_search): its limits, its goal, the
/// candidates that wait and the best one.
template <class Node>
struct search_scope {
  objective active_limits;  // the user's limits; tighter where addresses need more than the peak
  objective goal;           // what the search goes for: the limits, or while nothing meets them, the smallest peak
  bytes_t target = 0;       // of the peak
  std::vector<std::shared_ptr<Node>> queue;
  std::shared_ptr<Node> best;
  bool is_exploratory = false;         // progress is not reported
  bool records_near_smallest = false;  // what is found may be an answer where nothing fits: it may enter `near`

  bool is_met() const { return active_limits.fits(best->state.result); }
  /// Whether one would be a better answer than the other (objective).
  bool beats(simulation const& r, simulation const& other) const { return active_limits.beats(r, other); }
  bool hopeless(Node const& n) const {
    if (n.state.result.latency > goal.latency) return true;
    if (goal.limits_memory && goal.fits(best->state.result))
      return n.state.result.latency >= best->state.result.latency;
    return false;
  }
};

/// Throws: what a mutation has made has an order that is none, the scheduler's where one reorders candidates.
[[noreturn]] inline void refuse_order(op_graph const& g, schedule const& order, std::string const& mutation,
                                      bool reorders) {
  auto const why = check_order(g, order).message();
  if (reorders) throw_error({"optimize: the scheduler's order is wrong after \"", mutation, "\": ", why});
  throw_error({"optimize: the mutation \"", mutation, "\" gives a wrong order: ", why});
}

class search_state : public search_problem, public search_scope<search_node> {
 public:
  using move = any_mutation;
  using node = search_node;
  using scope = search_scope<node>;
  using problem = search_problem;
  using problem::graph, problem::options, problem::policy, problem::allowed, problem::limits;
  using scope::beats, scope::is_met;
  using scope::is_exploratory, scope::active_limits, scope::best, scope::records_near_smallest, scope::goal,
      scope::queue, scope::target;
  using node_ptr = std::shared_ptr<node>;
  using evaluator_type = candidate_evaluator;

  search_state(op_graph const& program, any_mutator const& moves, cost_model_ref cost, scheduler_ref scheduler,
               search_options const& asked_for)
      : problem(program, moves, asked_for),
        budget(asked_for),
        alternatives(policy.incumbent),
        record(options, budget, out),
        pins_(program),
        team_(asked_for.threads) {
    for (unsigned t = 0; t < team_.size(); ++t) evaluators_.emplace_back(cost, scheduler, options, pins_);
  }

  search_budget budget;
  node_ptr original;          // the program in its own order
  double external_share = 0;  // of the epoch, that external seeds took: shares of segments end later by as much
  double part = 1;            // of the budget: what the search may use so far
  std::uint32_t epoch = 0;    // that runs, from 1 on, those at tighter limits included
  stage_scope<search_state>* stage = nullptr;  // that runs
  incumbent_alternatives<node_ptr> alternatives;
  std::function<void(node_ptr const&)> on_incumbent_replaced;  // of the best so far
  seen_candidates seen;
  optimized out;
  search_record record;

  // ---- the goal

  /// The search goes for a goal from now on. Where memory is not limited, the target falls with what is reached.
  void seek(objective const& what) {
    goal = what;
    aim(what.limits_memory ? within_reach(what.memory) : out.original.peak_bytes);
  }
  void lower_target(bytes_t reached) {
    aim(reached - std::max<bytes_t>(ratio_of(policy.incumbent.target_step, reached), 1));
  }

  /// A sub-search: runs in a copy of this scope, and gives that as it is then; this one is as it was.
  template <class Run>
  scope sub_search(Run&& run) {
    scope outer = *this;
    run();
    scope inner = std::move(static_cast<scope&>(*this));
    restore_scope(std::move(outer));
    return inner;
  }
  void restore_scope(scope s) { static_cast<scope&>(*this) = std::move(s); }
  /// The search goes on from these candidates, towards the limits.
  void restart_from(std::vector<node_ptr> from) {
    queue = std::move(from);
    for (auto const& n : queue) n->expanded = false;
    seen.clear();
    seek(active_limits);
  }

  /// The best candidate fits and cost nothing: nothing is to be gained, unless by rules, which may make a program quicker.
  bool is_free() const {
    return active_limits.limits_memory && !allowed.rewrite && costs_nothing(best->state.result) && is_met();
  }
  bool costs_nothing(simulation const& r) const {
    return r.latency <= out.original.latency * (1 + objective::rounding);
  }
  /// What external seeds took beyond their share: solvers cannot always be cut. Shares of parts end later by as much.
  double external_overrun() const { return std::max(0.0, external_share - policy.external_seeds.share); }
  /// Whether a part of the budget is used up, or a limit is met of the sub-budget's search.
  bool out_of_time() { return out_of_time(part); }
  bool out_of_time(double of) { return (budget.has_sub_budget() && is_met()) || budget.is_used_up(of) || is_over(); }
  /// Whether a limit of the user's ends the search.
  bool is_over() const { return budget.is_over(out.candidates, (best ? best->state.graph : graph).op_count()); }

  // ---- candidates

  /// Whether a graph keeps the pins of the program.
  bool keeps_pins(op_graph const& g) const { return pins_.holds(g); }
  /// A seed waits in the queue, as a whole candidate.
  void enqueue_seed(node_ptr seed) { add_seed(queue, std::move(seed), policy.open_list, graph.op_count()); }
  std::size_t max_waiting() const { return open_list_room(policy.open_list, graph.op_count()); }

  evaluator_type& evaluator() { return evaluators_.front(); }
  /// A whole candidate.
  simulation evaluate_whole(op_graph const& g, schedule const& order) {
    auto result = evaluator().evaluate(g, order);
    add_work_of_judging(g);
    record.count(result);
    return result;
  }
  /// A candidate that a step makes of another one, which may be none; no step without words.
  node_ptr make_node(node_ptr const& from, std::string how, op_graph g, schedule order, simulation result) const {
    auto n = std::make_shared<node>();
    if (from) n->path = from->path;
    if (!how.empty())
      n->path = std::make_shared<search_path const>(
          search_path{std::move(n->path), {std::move(how), stage ? stage->name() : "", result}});
    n->state = {std::move(g), std::move(order), std::move(result)};
    n->excess = excess_bytes(n->state.result.bytes_at, target);
    return n;
  }
  /// A candidate enters the search: perhaps it is the best so far, and it waits to be expanded.
  void offer(node_ptr const& n) {
    consider(n);
    queue.push_back(n);
  }
  void note_near(node_ptr const& n) {
    if (records_near_smallest) alternatives.add_near_smallest(n, max_waiting());
  }
  /// It may be the best so far, or one of those that are kept beside it.
  void consider(node_ptr const& n) {
    auto const& r = n->state.result;
    note_near(n);
    alternatives.add_with_headroom(n, limits);
    if (best && !beats(r, best->state.result)) return;
    if (best && active_limits.limits_memory) {
      if (on_incumbent_replaced) on_incumbent_replaced(best);
      alternatives.add_surpassed(best);
    }
    best = n;
    if (!is_exploratory) record.best_is(r, active_limits);
  }
  /// Evaluates mutations of a candidate on all threads and admits them in their order: take(k, child). `work`: of drawing
  /// each. A child without graph is known by its edit; it is null for impossible mutations and duplicates. Ends early where
  /// the time is used up.
  template <class Take>
  void evaluate(node_ptr const& from, std::vector<move> const& moves, std::vector<std::uint64_t> work,
                std::optional<replay_facts>& replay, Take&& take) {
    if (team_.size() == 1 || moves.size() == 1) {
      for (std::size_t k = 0; k < moves.size() && (k == 0 || !out_of_time()); ++k) {
        work_meter::add(work[k]);
        take(k, admit(from, moves[k], evaluator().evaluate(from->state, moves[k], replay, target, seen)));
      }
      return;
    }
    if (!evaluator().reorders() && !replay) replay.emplace(from->state.graph, from->state.order);
    std::vector<std::optional<candidate_evaluation>> found(moves.size());
    auto const before = work_meter::now();
    team_.run(moves.size(), [&](unsigned worker, std::size_t k) {
      if (k > 0 && is_over()) return;
      auto const begin = work_meter::now();
      found[k] = evaluators_[worker].evaluate(from->state, moves[k], replay, target, seen);
      work[k] += work_meter::now() - begin;
    });
    work_meter::reset_to(before);  // what is taken up counts, as on one thread
    for (std::size_t k = 0; k < moves.size() && found[k] && (k == 0 || !out_of_time()); ++k) {
      work_meter::add(work[k]);
      take(k, admit(from, moves[k], std::move(*found[k])));
    }
  }
  /// Mutations for one call of evaluate(): enough for all threads, as long as there is room for the graphs they make.
  std::size_t batch_size() const {
    if (team_.size() == 1) return 1;
    return std::max<std::size_t>(policy.open_list.max_ops / (graph.op_count() + 1), team_.size());
  }
  /// Other candidates are evaluated from now on.
  void forget() {
    for (auto& e : evaluators_) e.forget();
  }

  /// Evaluates and admits what a mutation has made of a candidate. Nothing if it breaks a pin, or is a duplicate, unless
  /// `even_if_seen`.
  template <class M>
  node_ptr evaluate_edit(node_ptr const& from, M const& m, edited e, bool even_if_seen = false) {
    return admit(from, m, evaluator().evaluate_edit(std::move(e), seen, even_if_seen), even_if_seen);
  }
  /// Builds a candidate that is known by its edit alone. False if it is a duplicate; then it counts as expanded.
  bool build(node_ptr const& n) {
    if (!n->how) return true;
    auto const from = std::move(n->from);
    auto const m = std::move(*n->how);
    n->how.reset();
    auto e = evaluator().apply(from->state, m);
    if (!e || !pins_.holds(e->graph)) return n->expanded = true, false;
    ++out.profile.built;
    auto const identity = evaluator().digest_of(e->graph, e->order);
    if (!identity) refuse_order(e->graph, e->order, describe(m, from->state), evaluator().reorders());
    if (!seen.add(*identity)) return ++out.profile.duplicates, n->expanded = true, false;
    auto result = evaluator().evaluate(e->graph, e->order);
    add_work_of_judging(e->graph);
    *n = std::move(
        *make_node(from, describe(m, from->state), std::move(e->graph), std::move(e->order), std::move(result)));
    consider(n);
    return true;
  }
  /// The search is over: what the evaluators have counted, and the record.
  void end() {
    for (auto const& e : evaluators_) out.profile += e.profile;
    record.end();
  }

 private:
  /// What cannot be reached is no target: bytes below the bound would be paid for dearly and in vain.
  bytes_t within_reach(bytes_t limit) const { return std::max(limit, out.lower_bound_bytes); }
  void aim(bytes_t at) {
    target = at;
    aim_open_list(queue, target);
  }

  /// Of a candidate that is simulated whole.
  void add_work_of_judging(op_graph const& g) const { work_meter::add(policy.epochs.judging_an_op * g.op_count()); }

  /// An evaluated mutation becomes a candidate of the search.
  template <class M>
  node_ptr admit(node_ptr const& from, M const& m, candidate_evaluation found, bool even_if_seen = false) {
    if (found.preview == edit_answer::known) {
      if constexpr (std::is_same_v<M, move>) {
        record.count(found.cost);
        auto n = std::make_shared<node>();
        n->state.result.peak_bytes = found.cost.peak_bytes, n->state.result.latency = found.cost.latency;
        n->excess = found.excess;
        n->from = from, n->how = m, n->gained = from->excess - n->excess;
        return n;
      }
    }
    if (!found.made) return nullptr;
    auto& e = *found.made;
    if (!found.identity) refuse_order(e.graph, e.order, describe(m, from->state), evaluator().reorders());
    bool const first = seen.add(*found.identity);
    out.profile.duplicates += !first;
    if ((!first && !even_if_seen) || !found.result) return nullptr;
    add_work_of_judging(e.graph);  // here, for threads also evaluate duplicates
    record.count(*found.result);
    auto n =
        make_node(from, describe(m, from->state), std::move(e.graph), std::move(e.order), std::move(*found.result));
    consider(n);
    return n;
  }

  pin_guard const pins_;
  worker_team team_;
  std::vector<evaluator_type> evaluators_;  // one a thread
};

}}}  // namespace neap::v0::detail
