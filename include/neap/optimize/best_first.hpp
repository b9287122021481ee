// The search behind optimize: best-first with dives, from seeds.
//
// It goes in epochs, each with four times the work of the one before (search_budget.hpp): the same from the beginning, with
// the best so far to improve on. What follows is of one epoch, and its budget is the epoch's work.
//
// Candidates made elsewhere (search_starts) come first, with an eighth of the budget at most. Whenever what comes
// next takes longer and nothing meets a limit of memory yet, the search goes on for a moment from what is near it.
//
// Where the pipeline allows any recomputation, the orders to start from are first checkpointed whole (segment_seeds.hpp),
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
// The last fifth of the budget, or what is left when the queue is empty, goes to large-neighbourhood search: stretches of
// the best are undone and done anew by dives whose choices are disturbed. Random numbers come from the seed.
//
// On several threads the mutations of one candidate are looked at side by side and taken up in their order, so that
// everything is as on one.
//
// At the end the transfers of the best candidate are placed anew (schedule/refine.hpp), if that makes it quicker, unless
// the user's scheduler has placed them.
//
// Where the seeds do not meet a limit of memory, the search first goes for the smallest peak, as it does with a latency limit
// alone, until that meets the limit: so limits that cannot be met have one answer, and it is the smallest.
//
// Where they meet it and what does is dear, it first goes for the smallest peak at a quarter of the price, in the same way:
// a plan that fits comes first, what it need not have cost is looked for then.
//
// A strategy that is given as an option (search_strategy.hpp) takes the place of dives and of large neighbourhoods.
//
// What fits a tighter limit is an answer, too. A short epoch at such a limit comes before each epoch but the first two. It
// searches for what is quicker than the answer; where the peak fits and addresses do not, for anything that fits.
//
// Where nothing fits, the answer is the quickest of all that are about as small as the smallest (near_smallest).
//
// Candidates and their order depend on graph, moves, limits of memory and latency, and seed. Iterations and the clock only
// end the search.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact_placing.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/undo.hpp>
#include <neap/optimize/expansion.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/search_rounds.hpp>
#include <neap/optimize/search_seeds.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/lower_bound.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace neap::inline v0 {

namespace detail {

template <class G, class Moves, class Cost, class Scheduler>
class best_first {
  using state_type = search_state<G, Moves, Cost, Scheduler>;
  using node = typename state_type::node;
  using node_ptr = typename state_type::node_ptr;

 public:
  best_first(G const& program, Moves const& moves, Cost const& cost, Scheduler const& scheduler,
             search_options const& options)
      : moves_(moves),
        cost_(cost),
        policy_(options.policy),
        state_(program, moves, cost, scheduler, options),
        seeds_(state_),
        rounds_(state_, moves) {}

  optimized<G> run(schedule const& original, std::span<schedule const> orders) {
    auto& out = state_.out;
    auto const before = state_.budget.elapsed();
    out.original = state_.judged_whole(state_.graph, original);
    state_.budget.keep_back(policy_.placement.kept_back * (state_.budget.elapsed() - before) /
                                static_cast<double>(state_.graph.op_count() + 1) +
                            std::max(state_.options.seconds_an_op_afterwards, 0.0));
    state_.asked = objective::resolve(state_.options.memory_at_most, state_.options.latency_at_most, out.original);
    state_.limits = state_.asked;
    out.memory_limit_bytes = state_.asked.memory;
    out.latency_limit_seconds = state_.options.latency_at_most.resolve(out.original.latency);
    auto bound = peak_lower_bound(state_.graph, state_.judge().facts(), state_.allowed.cut);
    if (state_.allowed.rewrite) bound.bytes = bound.end_bytes, bound.forcing.clear();
    out.lower_bound_bytes = bound.bytes;
    for (auto const& f : bound.forcing) out.forcing.push_back({f.op, name_of_op(state_.graph, f.op), f.bytes});

    // Each order to start from gets a dive: later the queue would forget those that are far from the target.
    state_.seek(state_.asked);
    offer_order("", original, out.original);
    for (auto const& s : orders) offer_order("another order", s, std::nullopt);
    starts_ = state_.queue;
    seeds_.begin(starts_);
    double work = work_of_first_epoch();
    do {
      run_tighter_epoch(work);
      begin_epoch(state_.limits, work);
      run_epoch();
      work *= policy_.epochs.growth;
    } while (state_.budget.ran_out() && !state_.is_over() && !(state_.is_free() && out.fits));
    state_.asked = state_.limits;
    if (state_.limits.limits_memory && placed_->state.result.peak_bytes > out.memory_limit_bytes) take_quicker();
    take_placed();
    refine_answer();
    out.at_peak = content_of_peak(state_.best->state);
    out.best = std::move(state_.best->state);
    for (auto const* t = state_.best->path.get(); t; t = t->before.get()) out.steps.push_back(t->how);
    std::reverse(out.steps.begin(), out.steps.end());
    state_.end();
    return std::move(out);
  }

 private:
  /// In seconds of the meter: some dozens of candidates, judged whole.
  double work_of_first_epoch() const {
    auto const& e = policy_.epochs;
    if (state_.is_for_solvers()) return e.endless_seconds;
    return std::max(e.first_seconds_an_op * static_cast<double>(state_.graph.op_count()), e.first_seconds);
  }

  /// The search begins anew with more work, from the same orders; what is known by now is to be improved on.
  void begin_epoch(objective const& asked, double work) {
    state_.budget.begin_epoch(work);
    state_.asked = asked;
    if (placed_) state_.best = placed_;
    if (placed_ && !is_within_limits(placed_needs())) addressed_ = nullptr;  // with more work they may be better
    state_.queue = starts_;
    for (auto const& n : starts_) n->expanded = false;
    state_.seen.clear();
    state_.seek(asked);
    seeds_.begin_epoch();
    roots_.clear();
    price_ = 0, lowered_ = 0;
    ++epoch_;
  }
  void run_epoch() {
    auto& out = state_.out;
    auto starts = starts_;
    state_.part = state_.asked.limits_memory ? policy_.epochs.before_addresses : 1;
    // Where an order, or swaps that nothing waits for, meet the limit, nothing else is looked for.
    if (state_.asked.limits_memory && state_.allowed.swap > 0 && policy_.hidden_swaps.on && !state_.is_free())
      seeds_.plant_free_offloads(starts);
    if (!(state_.is_free() && place() && out.fits)) plant_and_explore(starts);
    state_.part = 1;
    for (node_ptr last; !(place() && (out.fits || lowered_ == 0)) && state_.best != last && !state_.out_of_time();) {
      last = state_.best;
      seeds_.plant_given(true, [] {});
      if (state_.allowed.recompute) seeds_.plant(starts, true);
      search();
    }
    place_others();
  }

  /// An epoch with a part of the work at a tighter limit, for what is quicker than the answer; where its peak fits and its
  /// addresses do not, for anything that fits. The limits are of a ladder that does not depend on the given limit.
  void run_tighter_epoch(double work) {
    auto const& numbers = policy_.tighter;
    auto const& limits = state_.limits;
    if (!numbers.on || !limits.limits_memory || epochs_++ < numbers.first_epoch || state_.is_over()) return;
    auto const before = placed_;
    auto const& answer = before->state.result;
    if (answer.peak_bytes > limits.memory) return;
    auto tighter = limits;
    if (is_within_limits(placed_needs())) {
      if (answer.latency <= numbers.cheap * state_.out.original.latency) return;
      tighter.limits_latency = true;
      tighter.latency = std::min(limits.latency, answer.latency * (1 - numbers.gain));
    }
    auto rung = static_cast<double>(state_.out.original.peak_bytes);
    while (rung > numbers.nearest * static_cast<double>(limits.memory)) rung *= numbers.step;
    for (auto k = epochs_ % numbers.rungs; k > 0; --k) rung *= numbers.step;
    tighter.memory = static_cast<bytes_t>(rung);
    if (tighter.memory < std::max<bytes_t>(state_.out.lower_bound_bytes, 1)) return;
    state_.aside = true;
    begin_epoch(tighter, numbers.share * work);
    run_epoch();
    state_.aside = false;
    if (placed_ == before) return;
    state_.asked = limits;
    state_.best = before;
    state_.consider(placed_);
  }
  /// The answer where nothing fits: the quickest of what was found that is as small as the smallest.
  void take_quicker() {
    auto const as_small = state_.as_small_as(placed_so_->arena_bytes);
    auto const late = [&](node_ptr const& n) { return std::max(n->state.result.latency, state_.limits.latency); };
    // The quickest first.
    for (auto n = state_.near.rbegin(); n != state_.near.rend() && has_time_for_addresses(); ++n) {
      auto const& r = (*n)->state.result;
      if (r.latency >= placed_->state.result.latency || late(*n) > late(placed_) || r.peak_bytes > as_small) continue;
      auto placed = addresses((*n)->state);
      if (placed.arena_bytes > as_small) continue;
      placed_ = *n, placed_so_ = std::move(placed);
      return;
    }
  }

  /// Plants all seeds of the orders to start from, to which a quicker program of the rules joins, and goes on from them.
  void plant_and_explore(std::vector<node_ptr>& starts) {
    if (auto quicker = quicken(starts.front(), policy_.rules.share); quicker != starts.front())
      starts.push_back(std::move(quicker));
    seeds_.plant_given(false, [&] { meet_soon(starts); });
    if (policy_.parts.on && state_.allowed.cut) seeds_.prepare_parts(starts);
    auto const given_orders = starts;
    seeds_.plant_all(starts);
    if (state_.asked.limits_memory && !state_.is_met()) hunt(given_orders);
    else if (policy_.cheaper.on && state_.asked.limits_memory && state_.allowed.cut) spend_less(given_orders);
    if (!state_.asked.limits_memory || state_.is_met()) explore(starts);
    if (state_.asked.limits_memory && state_.is_met()) quicken(state_.best, 1);
  }

  /// While nothing meets the limit of memory: recomputation by segments, and dives towards the smallest peak from what is
  /// near the limit, the nearest first, until one does; with a little of the budget. What they come by does not wait.
  void meet_soon(std::vector<node_ptr> const& starts) {
    auto const& numbers = policy_.first_fit;
    if (!numbers.on || !state_.goal.limits_memory || state_.is_met()) return;
    auto const queue = state_.queue;
    if (state_.allowed.recompute) seeds_.plant_one(starts, state_.budget.used() + numbers.segments);
    if (!state_.options.strategy && !state_.is_met()) {
      auto near = state_.queue;
      auto const far = state_.target + state_.target / numbers.far;
      std::erase_if(near, [&](node_ptr const& n) { return n->expanded || n->state.result.peak_bytes > far; });
      detail::sort_list(near, [](node_ptr const& a, node_ptr const& b) { return a->excess < b->excess; });
      state_.budget.begin_short_hunt(numbers.dives);
      state_.seek(smallest_peak());
      for (auto const& n : near)
        if (!state_.out_of_time()) descend(n, state_.part);
      state_.budget.end_hunt();
    }
    let_wait_again(queue);
  }

  /// An order of the program; judged if it was not before. One that is there already counts once.
  void offer_order(char const* how, schedule const& order, std::optional<simulation> result) {
    auto const told_apart = state_.judge().digest_of(state_.graph, order);
    if (!state_.seen.add(*told_apart)) return;
    if (!result) result = state_.judged_whole(state_.graph, order);
    state_.offer(state_.make_node(*how ? step(nullptr, how) : nullptr, state_.graph, order, std::move(*result)));
  }
  static std::string name_of_op(G const& g, op_id o) {
    std::string s(g.facets(o).name);
    if (auto const* x = g.template as<op::opaque>(o)) s = std::string(g.text(x->target));
    if (auto const n = g.name(o); !n.empty()) s += " " + std::string(n);
    return s + " #" + std::to_string(index(o));
  }

  /// What is in use where the peak of a candidate is reached first. O(storages log storages).
  static peak_content content_of_peak(candidate<G> const& c) {
    auto const& r = c.result;
    peak_content out;
    if (c.order.size() == 0) return out;
    out.op = name_of_op(c.graph, c.order[r.peak_position]);
    for (auto s : c.graph.storages()) {
      if (c.graph.is_resident(s) || r.live[s].empty() || r.live[s].first > r.peak_position ||
          r.live[s].last < r.peak_position || c.graph.bytes(s) == 0)
        continue;
      auto const maker = c.graph.producer(c.graph.record(s).first);
      out.holders.push_back({maker == nothing<op_id> ? "input" : name_of_op(c.graph, maker), c.graph.bytes(s)});
    }
    detail::sort_list(out.holders, [](peak_holder const& a, peak_holder const& b) { return a.bytes > b.bytes; });
    constexpr std::size_t most = 3;
    out.others = out.holders.size() - std::min(out.holders.size(), most);
    out.holders.resize(std::min(out.holders.size(), most));
    out.other_bytes = r.peak_bytes - r.resident_bytes;
    for (auto const& h : out.holders) out.other_bytes -= h.bytes;
    out.other_bytes = std::max<bytes_t>(out.other_bytes, 0);
    return out;
  }

  /// Where rules may make a program quicker: what they make of a candidate, one after the other, the one that gains most
  /// first, with no more memory.
  node_ptr quicken(node_ptr n, double part) {
    if (!state_.allowed.rewrite || !policy_.rules.on) return n;
    for (node_ptr next = n; next && !state_.out_of_time(part * state_.part);) {
      auto const from = std::exchange(next, nullptr);
      expand_candidate(state_, moves_, from, [&](node_ptr child) {
        auto const &was = from->state.result, &is = child->state.result;
        if (is.peak_bytes <= was.peak_bytes &&
            is.latency < (next ? next->state.result : was).latency * (1 - policy_.rules.gain))
          next = std::move(child);
      });
      from->expanded = false;
      if (next && !state_.build(next)) next = nullptr;
      if (next) n = next;
    }
    state_.seen.clear();  // what was passed over here may be looked at again
    return n;
  }

  /// Goes on from seeds and from the orders to start from: in rounds where a strategy is given, else by dives.
  void explore(std::vector<node_ptr> starts) {
    if (!state_.options.strategy) return dive_from_all(std::move(starts));
    if (state_.allowed.recompute) plant_until_placed(starts);
    do search();
    while (seeds_.sharpen());
  }
  /// Addresses may need more than the peak: seeds for the limit that has moved then.
  void plant_until_placed(std::vector<node_ptr> const& starts) {
    for (int tries = 0; tries < policy_.placement.replanted && !state_.budget.is_hunting() && !state_.best->given &&
                        !place() && !state_.out_of_time(policy_.placement.replant_share);
         ++tries)
      seeds_.plant(starts);
  }

  /// Dives from seeds and from the orders to start from, then from whatever promises most.
  void dive_from_all(std::vector<node_ptr> starts) {
    // Where latency alone is limited, what is left of it is spent here first; memory is brought down by dives.
    bool const to_spend = state_.goal.spends_latency();
    auto const used = [&] { return state_.budget.used(); };
    auto const& further = policy_.further_parts;
    auto const& dives = policy_.dives;
    seeds_.cut_further(to_spend ? std::max(further.share, used() + further.spending) : further.share);
    if (to_spend && state_.allowed.cut &&
        further.on) {  // single mutations and parts in turn: each goes on from where the other led
      if (!state_.best->expanded) dive(state_.best, used() + further.dive);
      seeds_.cut_further(used() + further.spending);
    }
    if (state_.allowed.recompute)
      dive_from_seeds(to_spend ? std::max(dives.seeds, used() + dives.seeds_spending) : dives.seeds),
          plant_until_placed(starts);
    detail::sort_list(starts, [](node_ptr const& a, node_ptr const& b) { return a->excess < b->excess; });
    // Where no limit of memory ends a dive, each of these has its share of the time.
    auto const share = dives.share;
    for (std::size_t k = 0; k < starts.size(); ++k) {
      if (starts[k]->expanded || state_.is_free()) continue;
      descend(starts[k],
              to_spend ? used() + (share - used()) / static_cast<double>(starts.size() - k + 1) : state_.part);
    }
    if (seeds_.was_given()) dive_from_given();
    do search(share);
    while (seeds_.sharpen());
    if (policy_.neighbourhoods.on) redo();
  }

  /// A dive; where the peak is to fall as far as it goes and the start is not far above the best, one step at a time: what
  /// is cheapest on the long way is not what leads on from each peak to the next.
  void descend(node_ptr const& n, double part) {
    auto const peak = n->state.result.peak_bytes;
    if (state_.goal.limits_memory || peak / policy_.dives.far > state_.best->state.result.peak_bytes)
      return dive(n, part);
    state_.lower_target(peak);
    n->excess = excess_bytes(n->state.result.bytes_at, state_.target);
    dive(n, part);
    state_.lower_target(state_.best->state.result.peak_bytes);
  }

  /// Where seeds do not meet the limit of memory, the smallest peak is searched for, whatever the limit is, until one
  /// meets it: so limits that cannot be met have one answer. Nothing that was found for the limit's sake has a part in it,
  /// and its budget does not depend on how soon it begins.
  void hunt(std::vector<node_ptr> const& orders) {
    auto const best = state_.best;
    auto const queue = state_.queue;
    state_.for_smallest = true;
    for (auto const& n : orders) state_.note_near(n);
    state_.budget.begin_hunt();
    auto const smallest = go_for_smallest(orders);
    while (state_.is_met() && !place()) {  // addresses need more: on to a smaller one
      state_.seek(smallest);
      state_.lower_target(state_.best->state.result.peak_bytes);
      search();
      if (!state_.options.strategy && policy_.neighbourhoods.on) redo();
    }
    state_.budget.end_hunt();
    state_.for_smallest = false;
    if (state_.beats(best->state.result, state_.best->state.result)) state_.best = best;
    if (state_.is_met()) go_back_to(queue);
  }
  /// Where what meets the limit of memory is dear, the smallest peak at a quarter of its price is searched for, until one
  /// meets the limit, then at a quarter of that one's: what seeds pay for the limit's sake may be far more than parts and
  /// swaps need that are looked for one after the other.
  void spend_less(std::vector<node_ptr> const& orders) {
    auto const& numbers = policy_.cheaper;
    auto const asked = state_.asked;
    auto const before = state_.out.original.latency;
    for (bool less = true; less && state_.budget.used() < numbers.last;) {
      auto const best = state_.best;
      auto const latency = best->state.result.latency;
      if (latency <= numbers.cheap * before) return;
      auto const queue = state_.queue;
      state_.aside = true;
      state_.asked.latency = before + (latency - before) * numbers.price, state_.asked.limits_latency = true;
      state_.budget.begin_short_hunt(numbers.share);
      go_for_smallest(orders);
      state_.budget.end_hunt();
      less = state_.is_met();
      state_.asked = asked;
      state_.aside = false;
      if (auto const found = std::exchange(state_.best, best); less) state_.consider(found);
      go_back_to(queue);
    }
  }
  /// The goal without a limit of memory: within the limit of latency.
  objective smallest_peak() const {
    return {.latency = state_.asked.latency, .limits_latency = state_.asked.limits_latency};
  }
  /// From seeds on towards the smallest peak within the limit of latency, until that meets the limit of memory.
  objective go_for_smallest(std::vector<node_ptr> const& orders) {
    state_.best = nullptr;
    state_.queue = orders;
    for (auto const& n : seeds_.bases().empty() ? orders : seeds_.bases())
      if (!state_.best || state_.beats(n->state.result, state_.best->state.result)) state_.best = n;
    state_.seen.clear();
    auto const smallest = smallest_peak();
    state_.seek(smallest);
    auto starts = orders;
    seeds_.plant_given(false, [] {});
    seeds_.plant_all(starts);
    explore(starts);
    return smallest;
  }
  void go_back_to(std::vector<node_ptr> queue) {
    queue.push_back(state_.best);
    let_wait_again(std::move(queue));
  }
  /// These wait, to be gone on from towards the limits.
  void let_wait_again(std::vector<node_ptr> queue) {
    state_.queue = std::move(queue);
    for (auto const& n : state_.queue) n->expanded = false;
    state_.seen.clear();
    state_.seek(state_.asked);
  }

  /// Single mutations from where segments have led to: down from the best; or from those that nearly fit, first those
  /// that may spend the most on each byte that is still too much, the smallest if nothing fits yet.
  void dive_from_seeds(double part) {
    while (!state_.goal.limits_memory && !state_.best->expanded && !state_.hopeless(*state_.best) &&
           !state_.out_of_time(part))
      dive(state_.best, state_.goal.spends_latency() ? part : state_.part);
    auto nodes = state_.queue;
    std::erase_if(nodes, [](node_ptr const& n) { return n->given; });
    bool const fits =
        std::any_of(nodes.begin(), nodes.end(), [&](node_ptr const& n) { return state_.goal.fits(n->state.result); });
    dive_by_promise(std::move(nodes), fits, part);
  }
  /// The same from what was handed in. It comes last: where it fits and is dear, it is not to hide what nearly fits.
  void dive_from_given() {
    auto nodes = state_.queue;
    std::erase_if(nodes, [](node_ptr const& n) { return !n->given; });
    dive_by_promise(std::move(nodes), state_.goal.fits(state_.best->state.result), 1);
  }
  void dive_by_promise(std::vector<node_ptr> nodes, bool fits, double part) {
    auto const promise = [&](node_ptr const& n) {
      if (n->expanded || n->excess <= 0) return 0.0;
      return fits ? (state_.best->state.result.latency - n->state.result.latency) / n->excess : 1 / n->excess;
    };
    detail::sort_list(nodes, [&](node_ptr const& a, node_ptr const& b) { return promise(a) > promise(b); });
    for (auto const& n : nodes)
      if (promise(n) > 0 && !state_.out_of_time(part)) dive(n);
  }

  void search(double part = 1) {
    if (state_.options.strategy) return rounds_.run(part);
    while (!state_.out_of_time(part * state_.part) && !state_.is_free()) {
      auto next = take_from_queue();
      if (!next) return;
      dive(next);
    }
  }
  node_ptr take_from_queue() {
    auto& queue = state_.queue;
    std::erase_if(queue, [&](node_ptr const& n) { return n->expanded || state_.hopeless(*n); });
    if (queue.empty()) return nullptr;
    auto const at = std::min_element(queue.begin(), queue.end(),
                                     [&](node_ptr const& a, node_ptr const& b) { return estimate(*a) < estimate(*b); });
    auto n = *at;
    queue.erase(at);
    return n;
  }
  /// What a candidate may come to cost: its latency, and the price of the bytes that are still above the target.
  double estimate(node const& n) const { return n.state.result.latency + price_ * n.excess; }

  /// What is left of the budget goes to dives whose bargains are disturbed: from the best with a stretch of it undone, if
  /// the pipeline recomputes (large-neighbourhood search: Shaw 1998), and from where dives began before; until many in a row were in vain.
  void redo() {
    random_stream draw(state_.options.seed, 16 + epoch_);
    disturb_ = &draw;
    for (int in_vain = 0; in_vain < policy_.neighbourhoods.most_in_vain && !state_.out_of_time() && !state_.is_free();
         ++in_vain) {
      auto const best = state_.best;
      state_.queue.clear();
      state_.seen.clear();
      std::erase_if(roots_, [&](node_ptr const& n) { return n->excess <= 0 || state_.hopeless(*n); });
      auto start = state_.allowed.recompute && (draw.below(2) == 0 || roots_.empty()) ? undo_some(best, draw) : nullptr;
      if (!start && !roots_.empty()) start = roots_[draw.below(static_cast<std::uint32_t>(roots_.size()))];
      if (!start) continue;
      start->excess = excess_bytes(start->state.result.bytes_at, state_.target);
      ++start->state.visits;
      dive(start);
      if (state_.best != best) in_vain = -1;
    }
    disturb_ = nullptr;
    state_.queue.clear();
  }
  /// A candidate without what a stretch of its order does again; nothing if that is nothing, or not too large.
  node_ptr undo_some(node_ptr const& from, random_stream& draw) {
    auto const n = static_cast<std::uint32_t>(from->state.order.size());
    auto const length = std::max(n >> (1 + draw.below(policy_.neighbourhoods.halvings)), 1u);
    auto const middle = draw.below(n + 1);
    undo_stretch const stretch{middle - std::min(middle, length / 2), middle + (length + 1) / 2};
    auto e = state_.judge().apply(from->state, stretch);
    auto start = e ? state_.judge_edit(from, stretch, std::move(*e), true) : nullptr;
    return start && start->excess > 0 ? start : nullptr;
  }
  void dive(node_ptr n) { dive(std::move(n), state_.part); }
  /// With a part of the budget; what it has come to then waits.
  void dive(node_ptr n, double part) {
    if (!policy_.dives.on) return void(n->expanded = true);
    if (!state_.build(n)) return;
    if (!disturb_ && roots_.size() < state_.most_waiting()) roots_.push_back(n);
    while (n && !state_.hopeless(*n)) {
      if (state_.out_of_time(part)) {
        if (part < state_.part) state_.queue.push_back(std::move(n));
        return;
      }
      if (n->excess <= 0) {
        if (state_.goal.limits_memory || n->state.result.peak_bytes > state_.target) return;
        state_.lower_target(n->state.result.peak_bytes);
        n->excess = excess_bytes(n->state.result.bytes_at, state_.target);
      }
      n = expand(n);
    }
  }

  /// A mutation's excess bytes for a second, and its seconds for a byte.
  struct bargain {
    node_ptr child;
    double ratio, price;
  };
  /// Judges the candidate's mutations; the one that buys memory most cheaply, if any buys some.
  node_ptr expand(node_ptr const& n) {
    auto const latency = n->state.result.latency;
    std::vector<node_ptr> children;
    std::vector<bargain> bargains;
    expand_candidate(state_, moves_, n, [&](node_ptr child) {
      double const gained = n->excess - child->excess;
      if (gained <= 0 || state_.hopeless(*child)) return;
      double const paid = std::max(0.0, child->state.result.latency - latency);
      double const doubt = disturb_ ? std::exp2(policy_.dives.doubt * (disturb_->uniform() - 0.5)) : 1;
      bargains.push_back(
          {child, doubt * gained / (paid + policy_.dives.least_price * state_.out.original.latency), paid / gained});
      children.push_back(std::move(child));
      if (children.size() >= 2 * state_.most_waiting()) keep_promising(children);
    });
    auto cheapest = take_bargain(bargains);
    for (auto& c : children)
      if (c != cheapest && !c->expanded) state_.queue.push_back(std::move(c));
    trim_queue();
    return cheapest;
  }
  /// The best of them that was not met before, built.
  node_ptr take_bargain(std::vector<bargain>& bargains) {
    while (!bargains.empty()) {
      auto const best = std::max_element(bargains.begin(), bargains.end(),
                                         [](bargain const& a, bargain const& b) { return a.ratio < b.ratio; });
      if (!best->child->expanded && state_.build(best->child)) {
        price_ = std::max(price_, best->price);
        return best->child;
      }
      bargains.erase(best);
    }
    return nullptr;
  }

  /// The queue holds whole candidates: only the most promising ones stay.
  void trim_queue() {
    if (state_.queue.size() > 2 * state_.most_waiting()) keep_promising(state_.queue);
  }
  void keep_promising(std::vector<node_ptr>& nodes) const {
    auto const most = static_cast<std::ptrdiff_t>(state_.most_waiting());
    std::nth_element(nodes.begin(), nodes.begin() + most, nodes.end(),
                     [&](node_ptr const& a, node_ptr const& b) { return estimate(*a) < estimate(*b); });
    nodes.resize(state_.most_waiting());
  }

  /// By the default planner; where that leaves much free at the peak, or more than is allowed in use, by search. The work
  /// of all searches is bounded by that of the epoch; seconds only cut it.
  plan<G> addresses(candidate<G> const& c) {
    auto const& numbers = policy_.placement;
    auto& profile = state_.judge().profile;
    ++profile.placed;
    return timed(state_.options.profile, profile.placing, [&] {
      // Placements of the improvement take up to a microsecond each: as many as there is time for, but some.
      default_planner quick;
      double const affordable =
          numbers.placements_a_second * std::max(state_.budget.seconds_left(c.order.size()), numbers.least_seconds);
      if (affordable < static_cast<double>(quick.most_placements))
        quick.most_placements = static_cast<std::int64_t>(affordable);
      auto placed = make_plan(c, state_.graph, state_.options.memory, quick);
      auto const limit = state_.out.memory_limit_bytes;
      bool const large = state_.asked.limits_memory && placed.arena_bytes > limit && placed.peak_bytes <= limit;
      auto const seconds = state_.budget.seconds_left(c.order.size());
      auto const to_begin = numbers.to_begin_an_op * static_cast<double>(c.order.size());
      bool const dense = placed.arena_bytes - placed.peak_bytes <= placed.peak_bytes / numbers.holes;
      if (!numbers.exact || (!large && dense) || seconds <= to_begin) return placed;
      // In all, by an epoch's seconds of work; and for each in any case.
      auto const all = static_cast<std::int64_t>(
          std::clamp(numbers.nodes_a_second * state_.budget.epoch(), numbers.least_nodes, numbers.most_nodes));
      memory_plan used;
      auto const planner = [&](memory_problem const& p) {
        return used = exact_placing{std::max((all - placing_nodes_) / numbers.part_of_nodes, numbers.few_nodes),
                                    seconds}(p);
      };
      auto tighter = make_plan(c, state_.graph, state_.options.memory, planner);
      placing_nodes_ += used.work;
      return tighter.arena_bytes < placed.arena_bytes ? tighter : placed;
    });
  }

  /// Addresses for the best candidate, which is the answer if it is better with them than what was placed before.
  void place_best() {
    auto& out = state_.out;
    auto& best = state_.best;
    if (std::exchange(addressed_, best) != best) out.placed = addresses(best->state);
    out.fits = within_limits();
    if (!is_better_placed()) return;
    placed_ = best, placed_so_ = out.placed;
    if (answers_.size() == policy_.incumbent.most_answers) answers_.erase(answers_.begin());
    if (out.fits && state_.limits.limits_memory) answers_.push_back(placed_);
  }
  /// The same. Where the addresses need more than the peak and that is over the limit, the search is to go on with a limit
  /// that is lower by as much: false then.
  bool place() {
    auto& out = state_.out;
    auto& best = state_.best;
    place_best();
    if (out.fits || !state_.is_met() || lowered_ == policy_.placement.most_lowered) return true;
    state_.asked.memory -= (out.placed.arena_bytes - out.memory_limit_bytes) << lowered_++ / 2;
    state_.seek(state_.asked);
    best->expanded = false;
    best->excess = excess_bytes(best->state.result.bytes_at, state_.target);
    state_.queue.push_back(best);
    state_.seen.clear();
    return false;
  }
  /// What a limit that was lowered for the sake of addresses has led to may be slower than what fits without that; and
  /// where nothing fits, what has a larger peak may need less.
  void place_others() {
    auto others = state_.surpassed;
    std::reverse(others.begin(), others.end());
    others.insert(others.end(), state_.roomy.begin(), state_.roomy.end());
    for (auto const& n : others)
      if (n && (!is_within_limits(placed_needs()) || has_time_for_addresses()) && may_be_better_placed(n->state.result))
        state_.best = n, place_best();
    take_placed();
  }
  bool has_time_for_addresses() const {
    return !state_.options.stop.stop_requested() && state_.budget.has_time_for(2 * state_.graph.op_count());
  }
  /// The best that was placed is the answer.
  void take_placed() {
    state_.best = addressed_ = placed_;
    state_.out.placed = *placed_so_;
    state_.out.fits = within_limits();
  }

  /// Whether the best with its addresses is a better answer than what was placed before. Where neither fits, less memory is.
  bool is_better_placed() const {
    if (!placed_) return true;
    bool const before = is_within_limits(placed_needs());
    if (state_.out.fits != before) return state_.out.fits;
    auto const& now = state_.best->state.result;
    if (before) return state_.limits.better(now, placed_->state.result);
    return state_.limits.beats({state_.out.placed.arena_bytes, now.latency}, placed_needs());
  }
  /// The same before its addresses are known.
  bool may_be_better_placed(simulation const& r) const {
    if (is_within_limits(placed_needs()))
      return r.peak_bytes <= state_.limits.memory && state_.limits.better(r, placed_->state.result);
    return state_.limits.beats({r.peak_bytes, r.latency}, placed_needs());
  }
  verdict placed_needs() const { return {placed_so_->arena_bytes, placed_->state.result.latency}; }

  /// Loads and stores of the answer move to where their transfers are hidden best, if that costs no memory: neither the
  /// peak nor the latency rises, and the arena stays within what it is or what is allowed.
  void refine_answer() {
    if (state_type::reorders || !policy_.polish.on) return;
    refine_from(state_.best, state_.best->state.result.latency);
    // What was slower before may be quicker with its transfers elsewhere.
    auto const last = answers_;
    for (auto n = last.rbegin(); n != last.rend() && has_time_for_addresses(); ++n)
      if (*n != placed_) refine_from(*n, state_.best->state.result.latency * (1 - objective::rounding));
  }
  /// The answer becomes what comes of a candidate, if that is quicker than `latency`.
  void refine_from(node_ptr const n, seconds_t latency) {
    auto& out = state_.out;
    auto const& now = n->state;
    flow_facts const facts(now.graph, cost_, state_.options.memory);
    if (!facts.has_transfers()) return;
    candidate<G> c{now.graph, refine{}(facts, now.order), {}};
    simulator{}(facts, c.order, c.result);
    state_.note(c.result);
    if (c.result.latency >= latency || c.result.peak_bytes > now.result.peak_bytes) return;
    auto placed = addresses(c);
    if (placed.arena_bytes > std::max(out.placed.arena_bytes, state_.asked.limits_memory ? out.memory_limit_bytes : 0))
      return;
    out.placed = std::move(placed);
    state_.best = state_.make_node(step(n->path, "loads and stores where they are hidden"), std::move(c.graph),
                                   std::move(c.order), std::move(c.result));
    out.fits = within_limits();
  }
  /// Whether the best, with its addresses, meets the limits given, however far the search's own limit was lowered. (No arena
  /// is smaller than the peak.)
  bool within_limits() const {
    return is_within_limits({state_.out.placed.arena_bytes, state_.best->state.result.latency});
  }
  bool is_within_limits(verdict const& needed) const { return state_.limits.fits(needed); }

  Moves const& moves_;
  Cost const& cost_;
  search_policy const& policy_;
  state_type state_;
  search_seeds<state_type> seeds_;
  search_rounds<state_type, Moves> rounds_;  // where a strategy is given
  std::vector<node_ptr> starts_;             // the orders to start from
  std::uint32_t epochs_ = 0, epoch_ = 0;     // at these limits; at any, from 1
  std::vector<node_ptr> roots_;              // where dives began
  random_stream* disturb_ = nullptr;         // what bargains are judged by besides
  double price_ = 0;                         // seconds a byte-position above the target, the highest paid so far
  node_ptr addressed_;                       // whose addresses were looked for last
  node_ptr placed_;                          // the best one whose addresses fit; while none do, the smallest
  std::optional<plan<G>> placed_so_;         // with these
  std::vector<node_ptr> answers_;            // of a limit of memory: the last ones that fit
  int lowered_ = 0;                          // how often the limit was lowered for the sake of addresses, by ever more
  std::int64_t placing_nodes_ = 0;           // of exact placing, so far: each answer is given half of what is left
};

/// A search. The pipeline comes erased: drawing a mutation through a pointer costs a hundredth of judging it, and the
/// search is compiled once for all pipelines. (Not inline, so that planned_once.hpp can make it in one file.)
template <class G, class Cost, class Scheduler>
optimized<G> search_best_first(G const& program, any_mutator<G> const& moves, Cost const& cost,
                               Scheduler const& scheduler, search_options const& options, schedule const& original,
                               std::span<schedule const> seeds) {
  return best_first<G, any_mutator<G>, Cost, Scheduler>(program, moves, cost, scheduler, options).run(original, seeds);
}

}  // namespace detail

}  // namespace neap::inline v0
