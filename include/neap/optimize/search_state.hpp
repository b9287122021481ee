// What the parts of a search share (best_first.hpp): candidates, their limits, the best so far, the queue.
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/core/worker_team.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/optimize/incumbent.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/open_list.hpp>
#include <neap/optimize/search_budget.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_judge.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/search_problem.hpp>
#include <neap/optimize/search_record.hpp>
#include <neap/optimize/seen_candidates.hpp>

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

/// The mutations that led to a candidate, last one first; shared by its descendants while the search runs.
struct search_trail {
  std::shared_ptr<search_trail const> before;
  std::string how;
};
inline std::shared_ptr<search_trail const> step(std::shared_ptr<search_trail const> before, std::string how) {
  return std::make_shared<search_trail const>(search_trail{std::move(before), std::move(how)});
}

/// A candidate of a search over graphs of type G.
template <class G>
struct search_node {
  std::shared_ptr<search_trail const> path;
  candidate<G> state;
  double excess = 0;  // bytes above the target, summed over positions
  bool expanded = false;
  bool given = false;         // made elsewhere
  bool is_looked_at = false;  // by the last stage (stages/polish.hpp)
  // Of a candidate that is not built yet: of what and how it is to be. Of its state only peak and latency are there.
  std::shared_ptr<search_node> from;
  std::optional<any_mutation<G>> how;
  double gained = 0;  // of the excess of `from`
};

/// What is a search's own and what a sub-search has for itself (search_state::sub_search): its limits, its goal, the
/// candidates that wait and the best one.
template <class Node>
struct search_scope {
  objective
      asked;  // the user's limits; tighter where addresses need more than the peak, and in epochs at tighter limits
  objective goal;      // what the search goes for: the limits, or while nothing meets them, the smallest peak
  bytes_t target = 0;  // of the peak
  std::vector<std::shared_ptr<Node>> queue;
  std::shared_ptr<Node> best;
  bool aside = false;         // progress is not reported
  bool for_smallest = false;  // what is found may be an answer where nothing fits: it may enter `near`

  bool is_met() const { return asked.fits(best->state.result); }
  /// Whether one would be a better answer than the other (objective).
  bool beats(simulation const& r, simulation const& other) const {
    return asked.beats({r.peak_bytes, r.latency}, {other.peak_bytes, other.latency});
  }
  bool hopeless(Node const& n) const {
    if (n.state.result.latency > goal.latency) return true;
    if (goal.limits_memory && goal.fits(best->state.result))
      return n.state.result.latency >= best->state.result.latency;
    return false;
  }
};

/// Throws: what a mutation has made has an order that is none, the scheduler's where one reorders candidates.
template <class G>
[[noreturn]] void refuse_order(G const& g, schedule const& order, std::string const& mutation, bool reorders) {
  auto const why = check_order(g, order).message();
  if (reorders) throw_error({"optimize: the scheduler's order is wrong after \"", mutation, "\": ", why});
  throw_error({"optimize: the mutation \"", mutation, "\" gives a wrong order: ", why});
}

template <class G>
class search_state : public search_problem<G>, public search_scope<search_node<G>> {
 public:
  using move = any_mutation<G>;
  using node = search_node<G>;
  using scope = search_scope<node>;
  using problem = search_problem<G>;
  using problem::graph, problem::options, problem::policy, problem::allowed, problem::limits;
  using scope::aside, scope::asked, scope::best, scope::for_smallest, scope::goal, scope::queue, scope::target;
  using scope::beats, scope::is_met;
  using node_ptr = std::shared_ptr<node>;
  using graph_type = G;
  using judge_type = search_judge<G>;

  search_state(G const& program, any_mutator<G> const& moves, cost_model_ref<G> cost, scheduler_ref<G> scheduler,
               search_options const& asked_for)
      : problem(program, moves, asked_for),
        budget(asked_for),
        beside(policy.incumbent),
        record(options, budget, out),
        pins_(program),
        team_(asked_for.threads) {
    for (unsigned t = 0; t < team_.size(); ++t) judges_.emplace_back(cost, scheduler, options, pins_);
  }

  search_budget budget;
  node_ptr original;          // the program in its own order
  double external_share = 0;  // of the epoch, that external seeds took: shares of segments end later by as much
  double part = 1;            // of the budget: what the search may use so far
  incumbent_alternatives<node_ptr> beside;
  std::function<void(node_ptr const&)> before_surpassed;  // of the best so far
  seen_candidates seen;
  optimized<G> out;
  search_record record;

  // ---- the goal

  /// The search goes for a goal from now on. Where memory is not limited, the target falls with what is reached.
  void seek(objective const& what) {
    goal = what;
    aim(what.limits_memory ? within_reach(what.memory) : out.original.peak_bytes);
  }
  void lower_target(bytes_t reached) { aim(reached - std::max<bytes_t>(reached / policy.incumbent.lowered_by, 1)); }

  /// A sub-search: runs in a copy of this scope, and gives that as it is then; this one is as it was.
  template <class Run>
  scope sub_search(Run&& run) {
    scope outer = *this;
    run();
    scope inner = std::move(static_cast<scope&>(*this));
    enter(std::move(outer));
    return inner;
  }
  void enter(scope s) { static_cast<scope&>(*this) = std::move(s); }
  /// The search goes on from these candidates, towards the limits.
  void resume(std::vector<node_ptr> from) {
    queue = std::move(from);
    for (auto const& n : queue) n->expanded = false;
    seen.clear();
    seek(asked);
  }

  /// The best candidate fits and cost nothing: nothing is to be gained, unless by rules, which may make a program quicker.
  bool is_free() const {
    return asked.limits_memory && !allowed.rewrite && costs_nothing(best->state.result) && is_met();
  }
  bool costs_nothing(simulation const& r) const {
    return r.latency <= out.original.latency * (1 + objective::rounding);
  }
  /// Whether a part of the budget is used up, or a limit is met that was hunted for.
  bool out_of_time() { return out_of_time(part); }
  bool out_of_time(double of) { return (budget.is_hunting() && is_met()) || budget.is_used_up(of) || is_over(); }
  /// Whether a limit of the user's ends the search.
  bool is_over() const { return budget.is_over(out.candidates, (best ? best->state.graph : graph).op_count()); }

  // ---- candidates

  /// Whether a graph keeps the pins of the program.
  bool keeps_pins(G const& g) const { return pins_.holds(g); }
  /// A seed waits in the queue, as a whole candidate.
  void let_wait(node_ptr seed) { add_seed(queue, std::move(seed), policy.open_list, graph.op_count()); }
  std::size_t max_waiting() const { return open_list_room(policy.open_list, graph.op_count()); }

  judge_type& judge() { return judges_.front(); }
  /// As long as the result lives, time counts as that of seeds.
  seeding_time measure_seeding() { return {options.profile, judge().profile}; }
  /// A whole candidate.
  simulation judged_whole(G const& g, schedule const& order) {
    auto result = judge().judge(g, order);
    add_work_of_judging(g);
    record.count({result.peak_bytes, result.latency});
    return result;
  }
  node_ptr make_node(std::shared_ptr<search_trail const> path, G g, schedule order, simulation result) const {
    auto n = std::make_shared<node>();
    n->path = std::move(path);
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
    if (for_smallest) beside.add_near_smallest(n, max_waiting());
  }
  /// It may be the best so far, or one of those that are kept beside it.
  void consider(node_ptr const& n) {
    auto const& r = n->state.result;
    note_near(n);
    beside.add_with_headroom(n, limits);
    if (best && !beats(r, best->state.result)) return;
    if (best && asked.limits_memory) {
      if (before_surpassed) before_surpassed(best);
      beside.add_surpassed(best);
    }
    best = n;
    if (!aside) record.best_is({r.peak_bytes, r.latency}, asked);
  }
  /// Looks at mutations of a candidate, on all threads, and takes up what became of them, in their order: take(k, child).
  /// `work`: what drawing each has taken.
  /// A child that is not built yet is an outline; it is null for what came to nothing or was met before. Ends early where
  /// the time is used up.
  template <class Take>
  void look(node_ptr const& from, std::vector<move> const& moves, std::vector<std::uint64_t> work,
            std::optional<replay_facts>& replay, Take&& take) {
    if (team_.size() == 1 || moves.size() == 1) {
      for (std::size_t k = 0; k < moves.size() && (k == 0 || !out_of_time()); ++k) {
        work_meter::add(work[k]);
        take(k, take_up(from, moves[k], judge().look(from->state, moves[k], replay, target, seen)));
      }
      return;
    }
    if (!judge().reorders() && !replay) replay.emplace(from->state.graph, from->state.order);
    std::vector<std::optional<looked_at<G>>> found(moves.size());
    auto const before = work_meter::now();
    team_.run(moves.size(), [&](unsigned worker, std::size_t k) {
      if (k > 0 && is_over()) return;
      auto const begin = work_meter::now();
      found[k] = judges_[worker].look(from->state, moves[k], replay, target, seen);
      work[k] += work_meter::now() - begin;
    });
    work_meter::reset_to(before);  // what is taken up counts, as on one thread
    for (std::size_t k = 0; k < moves.size() && found[k] && (k == 0 || !out_of_time()); ++k) {
      work_meter::add(work[k]);
      take(k, take_up(from, moves[k], std::move(*found[k])));
    }
  }
  /// How many mutations one call of look() is best given: enough for all threads, as long as what they build finds room.
  std::size_t looked_at_once() const {
    if (team_.size() == 1) return 1;
    return std::max<std::size_t>(policy.open_list.max_ops / (graph.op_count() + 1), team_.size());
  }
  /// Other candidates are looked at from now on.
  void forget() {
    for (auto& j : judges_) j.forget();
  }

  /// Judges what a mutation has made of a candidate. Nothing if it breaks a pin, or was met before, unless `again`.
  template <class M>
  node_ptr judge_edit(node_ptr const& from, M const& m, edited<G> e, bool again = false) {
    return take_up(from, m, judge().look_at(std::move(e), seen, again), again);
  }
  /// Builds a candidate if it is an outline so far. False if it was met before; then it counts as expanded.
  bool build(node_ptr const& n) {
    if (!n->how) return true;
    auto const from = std::move(n->from);
    auto const m = std::move(*n->how);
    n->how.reset();
    auto e = judge().apply(from->state, m);
    if (!e || !pins_.holds(e->graph)) return n->expanded = true, false;
    ++out.profile.built;
    auto const told_apart = judge().digest_of(e->graph, e->order);
    if (!told_apart) refuse_order(e->graph, e->order, describe(m, from->state), judge().reorders());
    if (!seen.add(*told_apart)) return ++out.profile.duplicates, n->expanded = true, false;
    auto result = judge().judge(e->graph, e->order);
    add_work_of_judging(e->graph);
    *n = std::move(*make_node(step(from->path, describe(m, from->state)), std::move(e->graph), std::move(e->order),
                              std::move(result)));
    consider(n);
    return true;
  }
  /// The search is over: what the judges have counted, and the record.
  void end() {
    for (auto const& j : judges_) out.profile += j.profile;
    record.end();
  }

 private:
  /// What cannot be reached is no target: bytes below the bound would be paid for dearly and in vain.
  bytes_t within_reach(bytes_t limit) const { return std::max(limit, out.lower_bound_bytes); }
  void aim(bytes_t at) {
    target = at;
    aim_open_list(queue, target);
  }

  /// Of a candidate that is judged whole.
  void add_work_of_judging(G const& g) const { work_meter::add(policy.epochs.judging_an_op * g.op_count()); }

  /// What a judge has found of a mutation becomes a candidate of the search.
  template <class M>
  node_ptr take_up(node_ptr const& from, M const& m, looked_at<G> found, bool again = false) {
    if (found.told == edit_answer::known) {
      if constexpr (std::is_same_v<M, move>) {
        record.count(found.would_be);
        auto n = std::make_shared<node>();
        n->state.result.peak_bytes = found.would_be.peak_bytes, n->state.result.latency = found.would_be.latency;
        n->excess = found.excess;
        n->from = from, n->how = m, n->gained = from->excess - n->excess;
        return n;
      }
    }
    if (!found.made) return nullptr;
    auto& e = *found.made;
    if (!found.told_apart) refuse_order(e.graph, e.order, describe(m, from->state), judge().reorders());
    bool const first = seen.add(*found.told_apart);
    out.profile.duplicates += !first;
    if ((!first && !again) || !found.result) return nullptr;
    add_work_of_judging(e.graph);  // here, for threads also judge what is met before, by another mutation
    record.count({found.result->peak_bytes, found.result->latency});
    auto n = make_node(step(from->path, describe(m, from->state)), std::move(e.graph), std::move(e.order),
                       std::move(*found.result));
    consider(n);
    return n;
  }

  pin_guard const pins_;
  worker_team team_;
  std::vector<judge_type> judges_;  // one a thread
};

}}}  // namespace neap::v0::detail
