// The search behind optimize: best-first with dives, from seeds.
//
// Candidates that somebody else makes (search_starts) come first, with an eighth of the budget at most.
//
// Where the pipeline allows any recomputation, the orders to start from are first checkpointed whole (checkpoint_seeds.hpp),
// with a quarter of the budget at most; what comes near to the limits is where the first dives start.
//
// A dive starts at a candidate, judges the first `width` mutations its pipeline yields, and goes on with the one that
// brings memory towards the target at the lowest price in time; the others wait in a queue, cheapest estimate first.
// When a dive has reached the target or a dead end, the best of the queue starts the next one. A candidate that cannot
// beat the best found is dropped, and so is one that was seen before: the same graph in the same order. Mutations that
// tell what they would do (mutate/mutator.hpp, outline_of) are judged by that, and built only where the search goes on
// from them or may answer with them: the simulator reads the facts of their candidate with a few rows changed, which costs
// a twentieth. Relaxed best-first as in MAGIS (ASPLOS'24), with bytes above the target summed over positions in place of
// the bare peak, so that progress shows before the peak falls.
//
// With a latency limit alone, the target moves: each time it is reached it is lowered by 2 %, as far as the limit allows.
//
// At the end the transfers of the best candidate are placed anew (schedule/refine.hpp), if that makes it quicker, unless
// the user's scheduler has placed them.
//
// Where the seeds do not meet a limit of memory, the search first goes for the smallest peak, as it does with a latency limit
// alone, until that meets the limit: so limits that nobody can meet have one answer, and it is the smallest.
//
// The answer is the same for the same options as long as the iterations, not the clock, end the search.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/replay_facts.hpp>
#include <neap/optimize/checkpoint_seeds.hpp>
#include <neap/optimize/fission_seeds.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/seen_candidates.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/lower_bound.hpp>
#include <neap/simulate/outlined_facts.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/simulate/transfer_costs.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// In place of a scheduler: mutated graphs run in the order that their mutation gives them.
struct as_mutated {};

namespace detail {

template <class G, class Moves, class Cost, class Scheduler>
class best_first {
 public:
  best_first(G const& program, Moves const& moves, Cost const& cost, Scheduler const& scheduler,
             search_options const& options)
      : moves_(moves),
        cost_(cost),
        scheduler_(scheduler),
        options_(options),
        graph_(program),
        begin_(clock::now()) {}

  optimized<G> run(schedule const& original, std::span<schedule const> seeds) {
    auto const before = elapsed();
    out_.original = judge(graph_, original);
    reserve_ = 25 * (elapsed() - before) / static_cast<double>(graph_.op_count() + 1) +
               std::max(options_.seconds_an_op_afterwards, 0.0);
    asked_ = objective::resolve(options_.memory_at_most, options_.latency_at_most, out_.original);
    out_.memory_limit_bytes = asked_.memory;
    out_.latency_limit_seconds = asked_.latency;
    auto bound = peak_lower_bound(graph_, facts_, allowed_by(moves_).cut);
    if (allowed_by(moves_).rewrite) bound.bytes = bound.end_bytes, bound.forcing.clear();
    out_.lower_bound_bytes = bound.bytes;
    for (auto const& f : bound.forcing) out_.forcing.push_back({f.op, name_of_op(f.op), f.bytes});

    // Each order to start from gets a dive: later the queue would forget those that are far from the target.
    seek(asked_);
    offer(make_node(nullptr, graph_, original, out_.original));
    (void)seen_.add(graph_, original);
    for (auto const& s : seeds) {
      if (seen_.add(graph_, s) != seen_candidates::answer::first) continue;
      auto result = judge(graph_, s);
      offer(make_node(step(nullptr, "another order"), graph_, s, std::move(result)));
    }
    auto starts = queue_;
    part_ = asked_.limits_memory ? 0.9 : 1;  // the rest is for addresses that need more than the peak
    given_from_ = starts.front();
    plant_given();
    if (allowed_by(moves_).cut) prepare_parts(starts);
    auto const orders = starts;
    plant_all(starts);
    if (asked_.limits_memory && !is_met()) hunt(orders);
    if (!asked_.limits_memory || is_met()) dive_from_all(starts);
    part_ = 1;
    while (!place() && !out_of_time()) {
      plant_given();
      if (allowed_by(moves_).recompute) plant(starts);
      search();
    }
    for (auto const& n : {placed_, roomy_})
      if (!out_.fits && n) best_ = n, (void)place();
    refine_answer();
    out_.best = std::move(best_->state);
    for (auto const* t = best_->path.get(); t; t = t->before.get()) out_.steps.push_back(t->how);
    std::reverse(out_.steps.begin(), out_.steps.end());
    out_.front = std::move(front_).points();
    out_.seconds = elapsed();
    return std::move(out_);
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr bool reorders = !std::is_same_v<Scheduler, as_mutated>;
  /// The mutations that led to a candidate, last one first; shared by its descendants while the search runs.
  struct trail {
    std::shared_ptr<trail const> before;
    std::string how;
  };
  using move = mutation_of<stream_of<Moves, G>>;
  struct node {
    std::shared_ptr<trail const> path;
    candidate<G> state;
    double excess = 0;  // bytes above the target, summed over positions
    bool expanded = false;
    bool given = false;  // by somebody else
    // Of a candidate that is not built yet: of what and how it is to be. Of its state only peak and latency are there.
    std::shared_ptr<node> from;
    std::optional<move> how;
    double gained = 0;  // of the excess of `from`
  };
  using node_ptr = std::shared_ptr<node>;
  struct planted {
    node_ptr start;
    checkpoint_seeds<G> seeds;  // of the start's state
  };

  /// The search goes for a goal from now on. Where memory is not limited, the target falls with what is reached.
  void seek(objective const& goal) {
    goal_ = goal;
    aim(goal.limits_memory ? within_reach(goal.memory) : out_.original.peak_bytes);
  }
  bool is_met() const { return asked_.fits(best_->state.result); }

  void plant_all(std::vector<node_ptr>& starts) {
    if (fissions_) plant_parts(starts);
    if (allowed_by(moves_).recompute) plant(starts);
  }
  /// Dives from seeds and from the orders to start from, then from whatever promises most.
  void dive_from_all(std::vector<node_ptr> starts) {
    if (allowed_by(moves_).recompute) {
      dive_from_seeds();
      for (int tries = 0; tries < 3 && !hunting_ && !best_->given && !place() && !out_of_time(0.6); ++tries)
        plant(starts);
    }
    std::stable_sort(starts.begin(), starts.end(),
                     [](node_ptr const& a, node_ptr const& b) { return a->excess < b->excess; });
    for (auto const& n : starts)
      if (!n->expanded && !is_free()) dive(n);
    if (given_) dive_from_given();
    do search();
    while (sharpen());
  }

  /// Where seeds do not meet the limit of memory, the smallest peak is searched for, whatever the limit is, until one
  /// meets it: so limits that cannot be met have one answer. Nothing that was found for the limit's sake has a part in it,
  /// and its budget does not depend on how soon it begins.
  void hunt(std::vector<node_ptr> const& orders) {
    auto const best = std::exchange(best_, nullptr);
    auto const queue = std::exchange(queue_, orders);
    for (auto const& n : bases_.empty() ? orders : bases_)
      if (!best_ || beats(n->state.result, best_->state.result)) best_ = n;
    hunting_ = true;
    skipped_candidates_ =
        std::max(before_hunt * static_cast<double>(options_.iterations) - static_cast<double>(out_.candidates), 0.0);
    skipped_seconds_ = std::max(before_hunt * options_.time.limit.count() - elapsed(), 0.0);
    seen_.clear();
    seek({.latency = asked_.latency, .limits_latency = asked_.limits_latency});
    auto starts = orders;
    plant_given();
    plant_all(starts);
    dive_from_all(starts);
    hunting_ = false;
    skipped_candidates_ = skipped_seconds_ = 0;
    if (beats(best->state.result, best_->state.result)) best_ = best;
    if (!is_met()) return;
    queue_ = queue;
    queue_.push_back(best_);
    for (auto const& n : queue_) n->expanded = false;
    seen_.clear();
    seek(asked_);
  }

  static std::shared_ptr<trail const> step(std::shared_ptr<trail const> before, std::string how) {
    return std::make_shared<trail const>(trail{std::move(before), std::move(how)});
  }
  double elapsed() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }
  /// Whether a part of the budget is used up, or a limit is met that was hunted for.
  bool out_of_time() const { return out_of_time(part_); }
  bool out_of_time(double part) const {
    if (hunting_ && is_met()) return true;
    part = share(part);
    return static_cast<double>(out_.candidates) + skipped_candidates_ >=
               part * static_cast<double>(options_.iterations) ||
           options_.stop.stop_requested() ||
           !(elapsed() + kept_back(best_ ? best_->state.graph.op_count() : graph_.op_count()) + skipped_seconds_ <
             part * options_.time.limit.count());
  }
  /// A part of the budget; while it hunts, of what is left for that.
  double share(double part) const { return hunting_ ? before_hunt + (1 - before_hunt) * part : part; }
  /// The time that an answer of so many ops takes when the search is over.
  double kept_back(std::size_t ops) const { return reserve_ * static_cast<double>(ops); }
  std::string name_of_op(op_id o) const {
    std::string s(graph_.facets(o).name);
    if (auto const* x = graph_.template as<op::opaque>(o)) s = std::string(graph_.text(x->target));
    if (auto const n = graph_.name(o); !n.empty()) s += " " + std::string(n);
    return s + " #" + std::to_string(index(o));
  }

  simulation simulated(G const& g, schedule const& order) {
    return timed(options_.profile, out_.profile.judging, [&] {
      facts_.assign(g, cost_, options_.memory);
      return simulator_(facts_, order);
    });
  }
  simulation judge(G const& g, schedule const& order) {
    auto result = simulated(g, order);
    judged({result.peak_bytes, result.latency});
    return result;
  }
  /// Each candidate that was judged, however it was, comes by here.
  void judged(memory_and_time what) {
    ++out_.candidates;
    front_.add(what);
    if (options_.progress && options_.progress_every > 0 && best_ && elapsed() >= tell_at_) tell(standing());
  }
  search_progress standing() const {
    auto const& r = best_->state.result;
    return {r.peak_bytes, r.latency, asked_.fits(r), out_.lower_bound_bytes, out_.candidates, elapsed()};
  }
  void tell(search_progress const& p) {
    tell_at_ = p.elapsed + options_.progress_every;
    if (options_.progress) options_.progress(p);
  }
  node_ptr make_node(std::shared_ptr<trail const> path, G g, schedule order, simulation result) {
    auto n = std::make_shared<node>();
    n->path = std::move(path);
    n->state = {std::move(g), std::move(order), std::move(result)};
    n->excess = excess_bytes(n->state.result.bytes_at, target_);
    return n;
  }

  /// A candidate enters the search: perhaps it is the best so far, and it waits to be expanded.
  void offer(node_ptr const& n) {
    consider(n);
    queue_.push_back(n);
  }
  void consider(node_ptr const& n) {
    auto const& r = n->state.result;
    if (is_roomy(r) && (!roomy_ || r.latency < roomy_->state.result.latency)) roomy_ = n;
    if (best_ && !beats(r, best_->state.result)) return;
    best_ = n;
    out_.history.push_back(standing());
    tell(out_.history.back());
  }

  bool is_roomy(simulation const& r) const {
    return asked_.limits_memory && r.peak_bytes <= asked_.memory - asked_.memory / 64 && r.latency <= asked_.latency;
  }
  /// Whether one would be a better answer than the other: it fits and is better, or, where nothing fits, it is smaller, or
  /// as small and quicker, within the limit of latency.
  bool beats(simulation const& r, simulation const& other) const {
    bool const fits = asked_.fits(r);
    if (asked_.fits(other)) return fits && asked_.better(r, other);
    if (fits || r.latency > asked_.latency) return fits;
    return r.peak_bytes < other.peak_bytes || (r.peak_bytes == other.peak_bytes && r.latency < other.latency);
  }

  /// A mutation by what it tells it would do; nothing if it would do nothing. `told` says whether it has told.
  node_ptr outline(node_ptr const& from, move const& m, std::optional<replay_facts>& replay, bool& told) {
    auto const& c = from->state;
    if (!replay) replay.emplace(c.graph, c.order);
    auto const answer =
        timed(options_.profile, out_.profile.drawing, [&] { return outline_of(m, c, *replay, outline_); });
    told = answer != outline_answer::untold;
    if (answer != outline_answer::told) return nullptr;
    if (outlined_of_ != from.get()) outlined_.assign(c.graph, cost_, options_.memory), outlined_of_ = from.get();
    for (auto& r : outline_.runs)
      if (r.what != edit_outline::kind::again) {
        auto const& takes = transfer_costs_(c.graph, cost_, r.moved);
        r.seconds = r.what == edit_outline::kind::store ? takes.store : takes.load;
      }
    auto const would_be = timed(options_.profile, out_.profile.judging, [&] {
      outlined_.apply(c.order, outline_);
      return simulator_.judge(outlined_, outlined_.order());
    });
    ++out_.profile.outlined;
    judged({would_be.peak_bytes, would_be.latency});
    auto n = std::make_shared<node>();
    n->state.result.peak_bytes = would_be.peak_bytes;
    n->state.result.latency = would_be.latency;
    n->excess = excess_bytes(simulator_.judged_bytes(), target_);
    outlined_.take_back();
    n->from = from, n->how = m, n->gained = from->excess - n->excess;
    return n;
  }
  /// Builds a candidate if it is an outline so far. False if it was met before; then it counts as expanded.
  bool build(node_ptr const& n) {
    if (!n->how) return true;
    auto const from = std::move(n->from);
    auto const m = std::move(*n->how);
    n->how.reset();
    auto e = apply(from, m);
    if (!e || !is_new(from, m, *e)) return n->expanded = true, false;
    auto result = simulated(e->graph, e->order);
    n->path = step(from->path, describe(m, from->state));
    n->state = {std::move(e->graph), std::move(e->order), std::move(result)};
    n->excess = excess_bytes(n->state.result.bytes_at, target_);
    consider(n);
    return true;
  }
  template <class M>
  auto apply(node_ptr const& from, M const& m) {
    return timed(options_.profile, out_.profile.applying, [&] { return apply_mutation(m, from->state); });
  }
  /// Whether an edited candidate is met for the first time. Throws neap::error if its order is wrong.
  template <class M>
  bool is_new(node_ptr const& from, M const& m, edited<G> const& e) {
    auto const met = timed(options_.profile, out_.profile.checking, [&] { return seen_.add(e.graph, e.order); });
    ++out_.profile.built;
    out_.profile.duplicates += met == seen_candidates::answer::again;
    if (met == seen_candidates::answer::no_order) refuse_order(e.graph, e.order, describe(m, from->state));
    return met == seen_candidates::answer::first;
  }

  /// Judges what a mutation has made of a candidate. Nothing if it was met before, unless `again`.
  template <class M>
  node_ptr judge_edit(node_ptr const& from, M const& m, edited<G> e, bool again = false) {
    if constexpr (reorders) e.order = scheduler_(e.graph);
    if (!is_new(from, m, e) && !again) return nullptr;
    auto result = judge(e.graph, e.order);
    auto n = make_node(step(from->path, describe(m, from->state)), std::move(e.graph), std::move(e.order),
                       std::move(result));
    consider(n);
    return n;
  }

  /// Seeds for those orders to start from that have none yet: the first ones have.
  void prepare_seeds(std::vector<node_ptr> const& starts) {
    for (auto k = seeds_.size(); k < starts.size(); ++k)
      seeds_.push_back({starts[k], checkpoint_seeds<G>(starts[k]->state, goal_)});
  }
  /// Recomputation by segments from the orders to start from: what reaches the limits, for each price the best.
  void plant(std::vector<node_ptr> const& starts) {
    seeding_time const measured(options_.profile, out_.profile);
    prepare_seeds(starts);
    node_ptr last;
    for (auto& [n, seeds] : seeds_) {
      auto const try_one = [&, &n = n](checkpoint const& m, edited<G> e) {
        last = judge_edit(n, m, std::move(e), true);
        return verdict{last->state.result.peak_bytes, last->state.result.latency};
      };
      seeds.run(
          target_, try_one, [&] { return out_of_time(0.25 + given_share_); }, [&] { queue_.push_back(last); });
    }
  }

  /// Candidates that somebody else makes, from the original order: with an eighth of the budget at most where the search
  /// recomputes, too, and once more after the limit has moved, with half of what is left.
  void plant_given() {
    if (!options_.starts) return;
    seeding_time const measured(options_.profile, out_.profile);
    auto const& c = given_from_->state;
    if (!given_) {
      may_run_again_.assign(c.graph.op_count(), false);
      for (auto o : c.graph.ops()) may_run_again_[index(o)] = graph_traits<G>::is_recomputable(c.graph, o);
      given_ = options_.starts->begin({c.graph, c.order, c.result, may_run_again_});
    }
    auto const used = [&] {
      return std::max(static_cast<double>(out_.candidates) / static_cast<double>(options_.iterations),
                      elapsed() / options_.time.limit.count());
    };
    auto const before = used();
    struct told {
      std::string how;
      std::string describe(candidate<G> const&) const { return how; }
    };
    struct judging final : start_judge {
      best_first& search;
      node_ptr from, last;
      double part;
      judging(best_first& s, node_ptr const& n, double p) : search(s), from(n), part(p) {}
      verdict judge(op_graph g, schedule order, std::string how) override {
        last = search.judge_edit(from, told{std::move(how)}, {G(std::move(g)), std::move(order)}, true);
        last->given = true;
        return {last->state.result.peak_bytes, last->state.result.latency};
      }
      void keep() override { search.queue_.push_back(last); }
      bool stop() const override { return search.out_of_time(part); }
      double seconds_left() const override {
        return search.share(part) * search.options_.time.limit.count() - search.kept_back(search.graph_.op_count()) -
               search.elapsed();
      }
    } judging{*this, given_from_,
              lowered_ > 0                   ? before + (part_ - before) / 2
              : allowed_by(moves_).recompute ? 0.125
                                             : part_};
    auto goal = goal_;
    if (goal.limits_memory) goal.memory = target_;
    given_->run(goal, judging);
    given_share_ += std::max(0.0, used() - before);
  }

  /// The orders to start from, and what they are recomputed by segments, as grounds of fissions.
  void prepare_parts(std::vector<node_ptr> const& starts) {
    seeding_time const measured(options_.profile, out_.profile);
    bases_ = starts;
    if (allowed_by(moves_).recompute) {
      prepare_seeds(starts);
      for (auto const& [n, seeds] : seeds_) recompute_before_fission(n, seeds.ground());
    }
    fissions_ = std::make_unique<fission_seeds>(goal_);
    for (std::size_t b = 0; b < bases_.size() && !out_of_time(0.2); ++b) fissions_->add(bases_[b]->state);
  }
  /// The orders to start from run in parts, as they are and recomputed by segments; the best of these are orders to start
  /// from as well.
  void plant_parts(std::vector<node_ptr>& starts) {
    seeding_time const measured(options_.profile, out_.profile);
    auto const found = build_fissions(0.3);
    for (std::size_t k = 0; k < found.size() && k < 2; ++k) starts.push_back(found[k]);
    // Those that are quicker and still too large: other mutations may do the rest for less.
    if (!goal_.limits_memory) return;
    auto const quicker = fissions_->quicker(target_, best_->state.result.latency);
    for (auto const& o : quicker) {
      if (out_of_time(0.35)) return;
      if (auto n = build_fission(o)) starts.push_back(n);
    }
  }
  /// Builds and judges a fission; nothing if it cannot be built or was met before.
  node_ptr build_fission(fission_seeds::option const& o) {
    auto const& from = bases_[o.base];
    // Many parts make a large graph, and there may be no time for that.
    auto const& f = o.what.what;
    auto const copies = static_cast<std::size_t>(f.last - f.first) * static_cast<std::size_t>(f.parts - 1);
    if (elapsed() + 2 * kept_back(from->state.graph.op_count() + copies) >= options_.time.limit.count()) return nullptr;
    auto e = fissions_->build(o, from->state);
    auto n = e ? judge_edit(from, o.what.what, std::move(*e)) : nullptr;
    if (n) queue_.push_back(n);
    return n;
  }
  /// The most promising ones, some dozens at most.
  std::vector<node_ptr> build_fissions(double part) {
    std::vector<node_ptr> found;
    for (auto const& o : fissions_->ranked(target_)) {
      if (found.size() == 24 || out_of_time(part) || promises_less(o.what)) break;
      if (auto n = build_fission(o)) found.push_back(std::move(n));
    }
    return found;
  }
  /// When all that was waiting has been tried: fissions nearer to the best ones. Whether there are any.
  bool sharpen() {
    while (fissions_ && !out_of_time() && !is_free() && fissions_->sharpen(target_))
      if (!build_fissions(1).empty()) return true;
    return false;
  }
  /// Nothing is to be gained by what is no better than the best, even if the estimate is somewhat wrong.
  bool promises_less(estimated_fission const& f) const {
    auto const& best = best_->state.result;
    if (!goal_.fits(best)) return false;
    if (goal_.limits_memory) return f.latency > 1.01 * best.latency;
    return static_cast<double>(f.peak) > 1.05 * static_cast<double>(best.peak_bytes);
  }
  /// Candidates that keep less for the backward part, each slower and smaller than the one before.
  void recompute_before_fission(node_ptr const& n, recompute_ground const& ground) {
    if (ground.empty()) return;
    auto const cuts = ground.hull(6);
    std::vector<node_ptr> found;
    for (std::size_t k = 1; k < cuts.size(); ++k)
      for (double part : budgets_before_fission) {
        if (out_of_time(0.1)) break;
        auto const budget = static_cast<bytes_t>(part * static_cast<double>(n->state.result.peak_bytes));
        auto const choice = ground.choose(cuts[k], cuts[0], budget);
        if (n->state.result.latency + 0.92 * choice.seconds > goal_.latency) continue;
        auto e = checkpoint::build(n->state, ground, choice);
        if (!e) continue;
        if (auto made = judge_edit(n, checkpoint{cuts[k].price, cuts[0].price, budget}, std::move(*e)))
          found.push_back(std::move(made));
      }
    std::stable_sort(found.begin(), found.end(), [](node_ptr const& a, node_ptr const& b) {
      return a->state.result.latency < b->state.result.latency;
    });
    bytes_t smallest = n->state.result.peak_bytes;
    for (auto& f : found)
      if (f->state.result.peak_bytes < smallest - smallest / 50 && f->state.result.latency <= goal_.latency) {
        smallest = f->state.result.peak_bytes;
        bases_.push_back(std::move(f));
      }
  }

  /// Single mutations from where segments have led to: down from the best; or from those that nearly fit, first those
  /// that may spend the most on each byte that is still too much, the smallest if nothing fits yet.
  void dive_from_seeds() {
    while (!goal_.limits_memory && !best_->expanded && !out_of_time(0.5)) dive(best_);
    auto seeds = queue_;
    std::erase_if(seeds, [](node_ptr const& n) { return n->given; });
    bool const fits =
        std::any_of(seeds.begin(), seeds.end(), [&](node_ptr const& n) { return goal_.fits(n->state.result); });
    dive_by_promise(std::move(seeds), fits, 0.5);
  }
  /// The same from what was handed in. It comes last: where it fits and is dear, it is not to hide what nearly fits.
  void dive_from_given() {
    auto seeds = queue_;
    std::erase_if(seeds, [](node_ptr const& n) { return !n->given; });
    dive_by_promise(std::move(seeds), goal_.fits(best_->state.result), 1);
  }
  void dive_by_promise(std::vector<node_ptr> seeds, bool fits, double part) {
    auto const promise = [&](node_ptr const& n) {
      if (n->expanded || n->excess <= 0) return 0.0;
      return fits ? (best_->state.result.latency - n->state.result.latency) / n->excess : 1 / n->excess;
    };
    std::stable_sort(seeds.begin(), seeds.end(),
                     [&](node_ptr const& a, node_ptr const& b) { return promise(a) > promise(b); });
    for (auto const& n : seeds)
      if (promise(n) > 0 && !out_of_time(part)) dive(n);
  }

  /// What a candidate may come to cost: its latency, and the price of the bytes that are still above the target.
  double estimate(node const& n) const { return n.state.result.latency + price_ * n.excess; }

  bool hopeless(node const& n) const {
    if (n.state.result.latency > goal_.latency) return true;
    if (goal_.limits_memory && goal_.fits(best_->state.result))
      return n.state.result.latency >= best_->state.result.latency;
    return false;
  }

  void search() {
    while (!out_of_time() && !is_free()) {
      auto next = take_from_queue();
      if (!next) return;
      dive(next);
    }
  }
  /// The best candidate fits and cost nothing: nothing is to be gained.
  bool is_free() const {
    return asked_.limits_memory && best_->state.result.latency <= out_.original.latency && is_met();
  }

  plan<G> addresses(candidate<G> const& c) {
    ++out_.profile.placed;
    return timed(options_.profile, out_.profile.placing, [&] { return make_plan(c, graph_, options_.memory); });
  }
  /// Addresses for the best candidate. Where they need more than the peak and that is over the limit, the search is to go
  /// on with a limit that is lower by as much: false then.
  bool place() {
    if (out_.fits && placed_ == best_) return true;
    out_.placed = addresses(best_->state);
    out_.fits = within_limits();
    if (out_.fits) placed_ = best_;
    if (out_.fits || !is_met() || lowered_ == 4) return true;
    ++lowered_;
    asked_.memory -= out_.placed.arena_bytes - out_.memory_limit_bytes;
    seek(asked_);
    best_->expanded = false;
    best_->excess = excess_bytes(best_->state.result.bytes_at, target_);
    queue_.push_back(best_);
    seen_.clear();
    return false;
  }

  /// Loads and stores of the answer move to where their transfers are hidden best, if that costs no memory: neither the
  /// peak nor the latency rises, and the arena stays within what it is or what is allowed.
  void refine_answer() {
    if (reorders) return;
    auto const& now = best_->state;
    facts_.assign(now.graph, cost_, options_.memory);
    if (!facts_.has_transfers()) return;
    candidate<G> c{now.graph, refine{}(facts_, now.order), {}};
    simulator_(facts_, c.order, c.result);
    front_.add({c.result.peak_bytes, c.result.latency});
    if (c.result.latency >= now.result.latency || c.result.peak_bytes > now.result.peak_bytes) return;
    auto placed = addresses(c);
    if (placed.arena_bytes > std::max(out_.placed.arena_bytes, asked_.limits_memory ? out_.memory_limit_bytes : 0))
      return;
    out_.placed = std::move(placed);
    best_ = make_node(step(best_->path, "loads and stores where they are hidden"), std::move(c.graph),
                      std::move(c.order), std::move(c.result));
    out_.fits = within_limits();
  }
  /// Whether the best, with its addresses, meets what was asked, however far the search's own limit was lowered. (No arena
  /// is smaller than the peak.)
  bool within_limits() const {
    return out_.placed.arena_bytes <= out_.memory_limit_bytes &&
           best_->state.result.latency <= asked_.latency * (1 + 1e-12);
  }

  node_ptr take_from_queue() {
    std::erase_if(queue_, [&](node_ptr const& n) { return n->expanded || hopeless(*n); });
    if (queue_.empty()) return nullptr;
    auto const at = std::min_element(queue_.begin(), queue_.end(),
                                     [&](node_ptr const& a, node_ptr const& b) { return estimate(*a) < estimate(*b); });
    auto n = *at;
    queue_.erase(at);
    return n;
  }

  void dive(node_ptr n) {
    if (!build(n)) return;
    while (n && !out_of_time() && !hopeless(*n)) {
      if (n->excess <= 0) {
        if (goal_.limits_memory || n->state.result.peak_bytes > target_) return;
        lower_target(n->state.result.peak_bytes);
        n->excess = excess_bytes(n->state.result.bytes_at, target_);
      }
      n = expand(n);
    }
  }
  /// What nobody can reach is no target: bytes below the bound would be paid for dearly and in vain.
  bytes_t within_reach(bytes_t limit) const { return std::max(limit, out_.lower_bound_bytes); }
  void lower_target(bytes_t reached) { aim(reached - std::max<bytes_t>(reached / 50, 1)); }
  void aim(bytes_t target) {
    target_ = target;
    node const* last = nullptr;  // siblings stand together
    double of_last = 0;
    for (auto& q : queue_) {
      auto const& known = q->how ? *q->from : *q;
      if (last != &known) of_last = excess_bytes(known.state.result.bytes_at, target_), last = &known;
      q->excess = q->how ? std::max(of_last - q->gained, q->state.result.peak_bytes > target_ ? 1.0 : 0.0) : of_last;
    }
  }

  /// Judges the candidate's mutations; the one that buys memory most cheaply, if any buys some.
  node_ptr expand(node_ptr const& n) {
    n->expanded = true;
    auto const& from = n->state;
    auto stream = moves_(from);
    std::optional<replay_facts> replay;
    outlined_of_ = nullptr;
    std::vector<node_ptr> children;
    std::vector<bargain> bargains;
    node_ptr champion, roomiest;  // of those that are not built: what the search may answer with
    for (std::size_t tries = 0; tries < options_.width && !out_of_time(); ++tries) {
      auto m = timed(options_.profile, out_.profile.drawing, [&] { return stream.next(); });
      if (!m) break;
      ++out_.profile.drawn;
      bool told = false;
      node_ptr child;
      if constexpr (!reorders) child = outline(n, *m, replay, told);
      if (child) {
        auto const& r = child->state.result;
        if (beats(r, best_->state.result) && (!champion || beats(r, champion->state.result))) champion = child;
        if (is_roomy(r) && (!roomy_ || r.latency < roomy_->state.result.latency) &&
            (!roomiest || r.latency < roomiest->state.result.latency))
          roomiest = child;
      } else if (!told) {
        auto e = apply(n, *m);
        if (e) child = judge_edit(n, *m, std::move(*e));
      }
      if (!child) continue;
      double const gained = n->excess - child->excess;
      if (gained <= 0 || hopeless(*child)) continue;
      double const paid = std::max(0.0, child->state.result.latency - from.result.latency);
      bargains.push_back({child, gained / (paid + 1e-5 * out_.original.latency), paid / gained});
      children.push_back(std::move(child));
      if (children.size() >= 2 * most_waiting()) keep_promising(children);
    }
    for (auto const& c : {champion, roomiest})
      if (c && !c->expanded) (void)build(c);
    auto cheapest = take_bargain(bargains);
    for (auto& c : children)
      if (c != cheapest && !c->expanded) queue_.push_back(std::move(c));
    trim_queue();
    return cheapest;
  }
  /// A mutation's excess bytes for a second, and its seconds for a byte.
  struct bargain {
    node_ptr child;
    double ratio, price;
  };
  /// The best of them that was not met before, built.
  node_ptr take_bargain(std::vector<bargain>& bargains) {
    while (!bargains.empty()) {
      auto const best = std::max_element(bargains.begin(), bargains.end(),
                                         [](bargain const& a, bargain const& b) { return a.ratio < b.ratio; });
      if (!best->child->expanded && build(best->child)) {
        price_ = std::max(price_, best->price);
        return best->child;
      }
      bargains.erase(best);
    }
    return nullptr;
  }

  [[noreturn]] static void refuse_order(G const& g, schedule const& order, std::string const& mutation) {
    auto const why = check_order(g, order).message();
    if (reorders) throw error("optimize: the scheduler's order is wrong after \"" + mutation + "\": " + why);
    throw error("optimize: the mutation \"" + mutation + "\" gives a wrong order: " + why);
  }

  /// The queue holds whole candidates: only the most promising ones stay.
  void trim_queue() {
    if (queue_.size() > 2 * most_waiting()) keep_promising(queue_);
  }
  void keep_promising(std::vector<node_ptr>& nodes) const {
    auto const most = static_cast<std::ptrdiff_t>(most_waiting());
    std::nth_element(nodes.begin(), nodes.begin() + most, nodes.end(),
                     [&](node_ptr const& a, node_ptr const& b) { return estimate(*a) < estimate(*b); });
    nodes.resize(most_waiting());
  }
  /// Candidates of large graphs take much memory, some 500 bytes an op.
  std::size_t most_waiting() const { return std::clamp<std::size_t>(200000 / (graph_.op_count() + 1), 2, 64); }

  Moves const& moves_;
  Cost const& cost_;
  Scheduler const& scheduler_;
  search_options const& options_;
  G const& graph_;
  clock::time_point begin_;
  flow_facts facts_;
  outlined_facts<G> outlined_;  // of the candidate being expanded
  void const* outlined_of_ = nullptr;
  transfer_costs<G> transfer_costs_;
  edit_outline outline_;
  simulator simulator_;
  objective asked_;       // what is asked; its memory is lowered where addresses need more than the peak
  objective goal_;        // what the search goes for: what is asked, or while nothing meets that, the smallest peak
  bool hunting_ = false;  // for the smallest peak, until the limit of memory is met
  static constexpr double before_hunt = 0.35;            // of the budget, at most: what seeds may use
  double skipped_candidates_ = 0, skipped_seconds_ = 0;  // of a hunt that begins earlier
  bytes_t target_ = 0;
  double price_ = 0;  // seconds a byte-position above the target, the highest paid so far
  std::vector<node_ptr> queue_;
  std::vector<planted> seeds_;
  node_ptr given_from_;               // the program as it came: what given_ makes candidates of
  plain_vector<bool> may_run_again_;  // by its op
  std::unique_ptr<starting_points> given_;
  double given_share_ = 0;       // of the budget, that these took
  std::vector<node_ptr> bases_;  // what fissions_ are of
  std::unique_ptr<fission_seeds> fissions_;
  node_ptr best_;
  node_ptr placed_;     // the last one whose addresses fit
  node_ptr roomy_;      // the best one with some room left for addresses
  int lowered_ = 0;     // how often the limit was lowered for the sake of addresses
  double part_ = 1;     // of the budget: what the search may use so far
  double reserve_ = 0;  // seconds kept back an op: for addresses, which cost some twenty times what judging costs, and
                        // for what is done with the answer
  seen_candidates seen_;
  pareto_front front_;  // of all that was judged
  double tell_at_ = 0;  // when progress is told next, unless the best changes before
  optimized<G> out_;
};

}  // namespace detail

}  // namespace neap::inline v0
