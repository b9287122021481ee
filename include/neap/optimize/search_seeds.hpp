// Where a search starts, beside the orders it is given: recomputation by segments (segment_seeds.hpp), fissions
// (fission_seeds.hpp), what is moved out (mutate/offload.hpp), candidates made elsewhere (starting_points.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/mutate/offload.hpp>
#include <neap/mutate/recompute_segments.hpp>
#include <neap/optimize/fission_seeds.hpp>
#include <neap/optimize/live_sets.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/optimize/segment_seeds.hpp>
#include <neap/optimize/starting_points.hpp>
#include <neap/schedule/refine.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// Plants candidates into the queue of a search.
template <class State>
class search_seeds {
 public:
  using node_ptr = typename State::node_ptr;

  explicit search_seeds(State& state) : state_(state), policy_(state.policy) {}

  /// The orders to start from, once; the first is the program's own.
  void begin(std::vector<node_ptr> const& orders) {
    original_ = orders.front();
    auto const peak = [](node_ptr const& n) { return n->state.result.peak_bytes; };
    auto const smallest = *std::min_element(orders.begin(), orders.end(),
                                            [&](node_ptr const& a, node_ptr const& b) { return peak(a) < peak(b); });
    given_.push_back({original_, nullptr});
    if (peak(smallest) < peak(original_) - peak(original_) / policy_.segments.smaller)
      given_.push_back({smallest, nullptr});
  }
  /// What fissions are of; empty before prepare_parts().
  std::vector<node_ptr> const& bases() const { return bases_; }
  bool was_given() const { return state_.options.starts != nullptr && policy_.external_seeds.on; }

  /// A new epoch begins: what shares of the last one have ended is made anew.
  void begin_epoch() {
    by_segments_.clear();
    first_with_room_ = SIZE_MAX;
    for (auto& g : given_) g.points.reset();
    given_share_ = 0;
    bases_.clear();
    fissions_.reset();
  }

  /// From the orders to start from, to which the best fissions are added.
  void plant_all(std::vector<node_ptr>& starts) {
    if (policy_.exact.on && state_.allowed.recompute && !State::reorders) plant_exact();
    if (fissions_) plant_parts(starts);
    if (state_.allowed.recompute) plant(starts);
    if (policy_.offloads.on && state_.allowed.swap > 0) plant_offloads();
  }
  /// Of small programs the best there is by order and recomputation (live_sets.hpp).
  void plant_exact() {
    auto const& c = original_->state;
    if (c.graph.op_count() > live_sets::most_ops) return;
    flow_facts const facts(c.graph, state_.judge().cost(), state_.options.memory);
    live_sets all(c.graph, facts, may_run_again(), policy_.exact.most_states);
    if (!all.is_small() || state_.out_of_time()) return;
    auto const found = state_.goal.limits_memory ? all.quickest(state_.target) : all.smallest(state_.goal.latency);
    replay_builder replay(c.graph, c.order, may_run_again());
    if (!found || !all.tell(*found, replay)) return;
    if (auto e = std::move(replay).template finish<graph_type>())
      state_.judge_edit(original_, told{"the best of all orders and recomputations"}, std::move(*e), true);
  }
  /// Recomputation by segments: what reaches the limits, for each price the best.
  void plant(std::vector<node_ptr> const& starts, bool again = false) {
    if (!policy_.segments.on) return;
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    prepare(starts);
    // A quarter of the budget; once the limit has moved (`again`), half of what is left. Fissions that leave room come last:
    // what is left, but a tenth of the budget at least, is theirs.
    for (auto& s : by_segments_) s.seeds.restart();
    auto const first = std::min(first_with_room_, by_segments_.size());
    auto const used = state_.budget.used();
    double const most =
        again ? used + (state_.part - used) * policy_.segments.again : policy_.segments.share + given_share_;
    best_segments best;
    auto const never = [] { return false; };
    plant_in_turn(0, first, most, best, never);
    plant_in_turn(first, by_segments_.size(), std::max(most, state_.budget.used() + policy_.segments.with_room), best,
                  never);
  }
  /// The same until one meets the limits, with a part of the budget; the next call goes on where this one has ended.
  void plant_one(std::vector<node_ptr> const& starts, double part) {
    if (!policy_.segments.on) return;
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    prepare(starts);
    best_segments best;
    plant_in_turn(0, by_segments_.size(), part, best, [&] { return state_.is_met(); });
  }

  /// Candidates made elsewhere, from the original order, and then from the one with the smallest peak, if that is
  /// smaller: with an eighth of the budget at most where the search recomputes, too, and with half of what is left once
  /// the limit has moved (`again`). `pause()` whenever what comes next of the original takes longer.
  template <class Pause>
  void plant_given(bool again, Pause&& pause) {
    if (!was_given()) return;
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    auto const used = [&] { return state_.budget.used(); };
    auto const before = used();
    auto const part = again                      ? before + (state_.part - before) * policy_.external_seeds.again
                      : state_.allowed.recompute ? policy_.external_seeds.share
                                                 : state_.part;
    auto goal = state_.goal;
    if (goal.limits_memory) goal.memory = state_.target;
    for (auto& [from, points] : given_) {
      auto const& c = from->state;
      if (!points)
        points = state_.options.starts->begin(
            {c.graph, c.order, c.result, may_run_again(), state_.allowed.swap, !state_.allowed.recompute,
             state_.allowed.filtered && !(state_.allowed.swap > 0), candidates_of_epoch(), policy_});
      auto const on_pause = [&] {
        if (from == original_) pause();
      };
      judge_of_given<decltype(on_pause)> judge(state_, from, part, on_pause);
      points->run(goal, judge);
    }
    given_share_ += std::max(0.0, used() - before);
  }

  /// The orders to start from, and what they are recomputed by segments, as grounds of fissions.
  void prepare_parts(std::vector<node_ptr> const& starts) {
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    bases_ = starts;
    if (policy_.segments.on && state_.allowed.recompute) {
      prepare(starts);
      for (auto const& [n, seeds] : by_segments_) recompute_before_fission(n, seeds.ground());
    }
    priced_ = priced_for(state_.graph, state_.judge().cost());
    fissions_ = std::make_unique<fission_seeds>(state_.goal, priced_, policy_.parts);
    for (std::size_t b = 0; b < bases_.size() && !state_.out_of_time(policy_.parts.preparing); ++b)
      fissions_->add(bases_[b]->state);
  }
  /// What recomputation has led to runs in parts at its peaks besides: parts are cut once more there, too. Of a limit of
  /// memory, those above it that are quicker than the best; otherwise the smallest. With a part of the budget.
  void cut_further(double part) {
    auto const& numbers = policy_.further_parts;
    if (!fissions_ || !numbers.on) return;
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    bool const limited = state_.goal.limits_memory;
    auto const latency = [&] {
      return limited && state_.is_met() ? state_.best->state.result.latency : state_.goal.latency;
    };
    auto nodes = state_.queue;
    std::erase_if(nodes, [&](node_ptr const& n) {
      return n->how || n->state.result.latency >= latency() || (limited && n->state.result.peak_bytes <= state_.target);
    });
    detail::sort_list(nodes, [](node_ptr const& a, node_ptr const& b) {
      return a->state.result.peak_bytes < b->state.result.peak_bytes;
    });
    nodes.erase(std::unique(nodes.begin(), nodes.end(), is_as_good), nodes.end());
    auto const target_at = [&](int per_mille) {
      return limited ? state_.target : state_.best->state.result.peak_bytes / 1000 * per_mille;
    };
    // A larger one that has left more than half of what may be spent can still go far.
    auto const half = (state_.out.original.latency + latency()) / 2;
    std::erase_if(nodes, [&](node_ptr const& n) {
      auto const& r = n->state.result;
      return (state_.goal.spends_latency() && r.latency <= half
                  ? r.peak_bytes / numbers.near_with_latency
                  : r.peak_bytes / numbers.near * (numbers.near - 1)) > target_at(numbers.targets[0]);
    });
    // In turn the smallest, and the quickest of those that no smaller one is about as quick as: they have latency to spend.
    std::vector<node_ptr> front;
    for (auto const& n : nodes)
      if (front.empty() || n->state.result.latency < numbers.quicker * front.back()->state.result.latency)
        front.push_back(n);
    std::vector<node_ptr> in_turn;
    auto const take = [&](node_ptr const& n) {
      if (std::find(in_turn.begin(), in_turn.end(), n) == in_turn.end()) in_turn.push_back(n);
    };
    for (std::size_t k = 0; k < std::min(nodes.size(), numbers.most); ++k) {
      take(nodes[k]);
      if (k < front.size()) take(front[front.size() - 1 - k]);
    }
    auto again = priced_;
    again.again = true;
    // Graphs in parts are large, and those that wait are whole.
    auto const hold_much = [&] {
      std::size_t ops = 0;
      for (auto const& n : state_.queue) ops += n->state.graph.op_count();
      return ops > numbers.most_ops;
    };
    // Parts for a target; for the next one where that was reached, and is not yet the limit.
    auto const cut = [&](node_ptr const& from, int per_mille) {
      for (bool reached = true; reached && !state_.out_of_time(part) && !hold_much();) {
        auto const target = target_at(per_mille);
        auto n = chain(from, target, latency(), part, again);
        if (n == from) return;
        reached = n->state.result.peak_bytes <= target && !limited;
        state_.queue.push_back(std::move(n));
      }
    };
    auto const& targets = numbers.targets;
    if (limited) {
      for (auto const& from : in_turn) cut(from, targets[0]);
    } else if (state_.goal.spends_latency()) {  // any of them may lead far: each is tried before one is tried again
      for (int const t : targets)
        for (auto const& from : in_turn) cut(from, t);
    } else {
      for (auto const& from : in_turn)
        for (int const t : targets) cut(from, t);
    }
  }
  /// How far the peak of the orders to start from falls by swaps that nothing waits for, by halving between ends that no
  /// limit has a say in: every limit above it has one answer.
  void plant_free_offloads(std::vector<node_ptr> const& orders) {
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    auto high = state_.out.original.peak_bytes, low = std::min(state_.out.lower_bound_bytes, high);
    // Swaps are placed for the target: with another one the same order may have time for them.
    auto const lowers = [&](bytes_t target) {
      for (auto const& from : orders)
        for (double const lead : policy_.hidden_swaps.leads) {
          if (state_.is_over()) return false;
          auto const n = offload_from(from, target, lead);
          if (n && state_.costs_nothing(n->state.result)) high = std::min(high, n->state.result.peak_bytes);
          if (high <= target) return true;
        }
      return false;
    };
    for (int k = 0; k < policy_.hidden_swaps.halvings && low < high && !state_.out_of_time(policy_.hidden_swaps.share);
         ++k)
      if (auto const target = low + (high - low) / 2; !lowers(target)) low = target;
  }
  /// What is needed last moves out, of the original order and of candidates that are still too large, or have time left:
  /// of each the quickest that reaches the limit of memory, or the smallest within that of latency.
  void plant_offloads() {
    auto const& numbers = policy_.offloads;
    auto const part = numbers.share;
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    bool const limited = state_.goal.limits_memory;
    for (auto const& from : grounds_of_offloads()) {
      node_ptr best;
      std::vector<node_ptr> quick;  // within the limit of latency
      auto const aim_at = [&](bytes_t target) {
        for (double const lead : numbers.leads) {
          if (state_.out_of_time(part)) break;
          auto n = offload_from(from, target, lead);
          if (!n || n->state.result.latency > state_.goal.latency) continue;
          if (state_.goal.spends_latency()) quick.push_back(n);
          if (!best || (limited ? state_.beats(n->state.result, best->state.result)
                                : n->state.result.peak_bytes < best->state.result.peak_bytes))
            best = std::move(n);
        }
      };
      if (limited) {
        auto const limit = state_.target, with_room = limit - limit / numbers.room;  // for loads to begin early
        aim_at(limit);
        if (with_room != limit) aim_at(with_room);
      } else {
        auto const peak = from->state.result.peak_bytes;
        auto missed = std::min(state_.out.lower_bound_bytes, peak);
        for (auto target = peak / numbers.first_of * (numbers.first_of - 1); !state_.out_of_time(part);) {
          aim_at(target);
          auto const reached = best ? best->state.result.peak_bytes : peak;
          if (reached > target) missed = std::max(missed, target);
          if (reached - missed <= std::max<bytes_t>(peak / numbers.close, 1)) break;
          target = missed + (reached - missed) / 2;
        }
      }
      if (best && best == state_.best) state_.queue.push_back(best);  // others would only be in the way
      // But those that are smaller than all that is as quick: what they leave of the limit may do more elsewhere.
      detail::sort_list(quick, is_quicker);
      for (auto const& n : quick)
        if (n != best && !is_beaten(*n)) state_.queue.push_back(n);
    }
  }
  /// When all that was waiting has been tried: the fissions that are next in line, then those nearer to the best ones.
  /// Whether there are any.
  bool sharpen() {
    while (fissions_ && !state_.out_of_time() && !state_.is_free())
      if (!build_fissions(1).empty()) return true;
      else if (!fissions_->sharpen(state_.target)) return false;
    return false;
  }

 private:
  /// As many as the epoch's work would judge if each were a millisecond; all of them where solvers stand alone.
  std::size_t candidates_of_epoch() const {
    if (state_.is_for_solvers()) return state_.options.iterations;
    return static_cast<std::size_t>(
        std::clamp(policy_.external_seeds.candidates_a_second * state_.budget.epoch(), 1.0, 1e9));
  }

  using graph_type = std::remove_cvref_t<decltype(std::declval<State>().graph)>;

  /// Of the original's ops. A pipeline that recomputes what passes a filter leaves nothing to seeds, which know nothing of
  /// the filter.
  plain_vector<bool> const& may_run_again() {
    auto const& g = original_->state.graph;
    if (may_run_again_.size() != g.op_count()) {
      may_run_again_.assign(g.op_count(), false);
      if (state_.allowed.recompute || !state_.allowed.filtered)
        for (auto o : g.ops()) may_run_again_[index(o)] = graph_traits<graph_type>::is_recomputable(g, o);
    }
    return may_run_again_;
  }

  /// The original order, and candidates between it and the limits that no other one beats, some at even distances.
  std::vector<node_ptr> grounds_of_offloads() const {
    auto all = state_.queue;
    std::erase_if(all, [&](node_ptr const& n) {
      auto const& r = n->state.result;
      return n->how || r.latency > state_.goal.latency || (state_.goal.limits_memory && r.peak_bytes <= state_.target);
    });
    detail::sort_list(all, is_quicker);
    std::vector<node_ptr> front;
    auto smallest = original_->state.result.peak_bytes;
    for (auto const& n : all)
      if (auto const peak = n->state.result.peak_bytes; peak < smallest) smallest = peak, front.push_back(n);
    std::vector<node_ptr> found{original_};
    auto const most = policy_.offloads.most_bases;
    for (std::size_t k = 0; k < most && k < front.size(); ++k)
      found.push_back(front[front.size() <= most ? k : k * (front.size() - 1) / std::max<std::size_t>(most - 1, 1)]);
    return found;
  }
  /// Whether something in the queue is no larger and hardly slower.
  bool is_beaten(typename State::node const& n) const {
    auto const& r = n.state.result;
    return std::any_of(state_.queue.begin(), state_.queue.end(), [&](node_ptr const& q) {
      auto const& x = q->state.result;
      return x.peak_bytes <= r.peak_bytes && x.latency <= policy_.offloads.beaten * r.latency;
    });
  }
  node_ptr offload_from(node_ptr const& from, bytes_t target, double lead) {
    if (!state_.budget.has_time_for(2 * from->state.graph.op_count())) return nullptr;
    work_meter::add(policy_.epochs.offloading_an_op * from->state.order.size());
    offload const m{target, state_.allowed.swap, lead};
    auto e = m.apply(from->state);
    if (!e) return nullptr;
    place_transfers(state_, *e, target);
    return state_.judge_edit(from, m, std::move(*e), true);
  }
  /// Where loads and stores are hidden, as far as a limit of the peak lets them; 0: as far as the order's own does.
  static void place_transfers(State& state, edited<graph_type>& e, bytes_t limit) {
    flow_facts const facts(e.graph, state.judge().cost(), state.options.memory);
    e.order = refine{.limit = limit, .sink = false}(facts, e.order);
  }

  struct told {
    std::string how;
    std::string describe(candidate<graph_type> const&) const { return how; }
  };
  template <class Pause>
  class judge_of_given final : public start_judge {
   public:
    judge_of_given(State& state, node_ptr const& from, double part, Pause const& pause)
        : state_(state),
          from_(from),
          part_(part),
          pause_(pause) {}
    verdict judge(op_graph g, schedule order, std::string how) override {
      edited<graph_type> e{graph_type(std::move(g)), std::move(order)};
      auto const all = e.graph.ops();
      if (std::any_of(all.begin(), all.end(), [&](op_id o) { return e.graph.template as<op::load>(o) != nullptr; }))
        place_transfers(state_, e, state_.goal.limits_memory ? state_.target : 0);
      last_ = state_.judge_edit(from_, told{std::move(how)}, std::move(e), true);
      if (!last_) return {INT64_MAX, std::numeric_limits<double>::infinity()};
      last_->given = true;
      return {last_->state.result.peak_bytes, last_->state.result.latency};
    }
    void keep() override {
      if (last_) state_.queue.push_back(last_);
    }
    void pause() override { pause_(); }
    bool stop() const override { return state_.out_of_time(part_); }
    double seconds_left() const override { return state_.budget.seconds_left(state_.graph.op_count()); }
    double work_left() const override { return state_.budget.work_left(part_); }

   private:
    State& state_;
    node_ptr from_, last_;
    double part_;
    Pause const& pause_;
  };
  /// What is made elsewhere of an order of the program; none before its first use.
  struct given {
    node_ptr from;
    std::unique_ptr<starting_points> points;
  };
  struct segments {
    node_ptr start;
    segment_seeds<graph_type> seeds;  // of the start's state
  };

  /// From some of the orders to start from, a pair of prices of each in turn, with a part of the budget.
  template <class Enough>
  void plant_in_turn(std::size_t begin, std::size_t end, double part, best_segments& best, Enough&& enough) {
    auto const stop = [&] { return state_.out_of_time(part) || enough(); };
    for (bool any = true; any && !stop();) {
      any = false;
      for (auto k = begin; k < end; ++k) {
        auto& [n, seeds] = by_segments_[k];
        node_ptr last;
        auto const try_one = [&, &n = n](recompute_segments const& m, edited<graph_type> e) {
          last = state_.judge_edit(n, m, std::move(e), true);
          return verdict{last->state.result.peak_bytes, last->state.result.latency};
        };
        any |= seeds.next(state_.target, best, try_one, stop, [&] { state_.let_wait(last); });
      }
    }
  }

  /// Seeds for those orders to start from that have none yet, while there is time: the first ones have.
  void prepare(std::vector<node_ptr> const& starts) {
    auto const late = [&] { return state_.out_of_time(policy_.segments.preparing + given_share_); };
    for (auto k = by_segments_.size(); k < starts.size() && !(k > 0 && late()); ++k)
      by_segments_.push_back(
          {starts[k], segment_seeds<graph_type>(starts[k]->state, state_.goal, late, policy_.segments)});
  }

  /// The orders to start from run in parts, as they are and recomputed by segments; the best of these are orders to start
  /// from as well.
  void plant_parts(std::vector<node_ptr>& starts) {
    seeding_time const measured(state_.options.profile, state_.judge().profile);
    auto const first = preludes();
    plant_chains(starts);
    auto const found = build_fissions(policy_.parts.share);
    for (std::size_t k = 0; k < found.size() && k < policy_.parts.most_starts; ++k) starts.push_back(found[k]);
    if (!state_.goal.limits_memory) add_larger(found, starts);
    // Those that are quicker and still too large: other mutations may do the rest for less.
    if (!state_.goal.limits_memory && !state_.goal.limits_latency) return;
    first_with_room_ = starts.size();
    starts.insert(starts.end(), first.begin(), first.end());
    auto const quicker = state_.goal.limits_memory
                             ? fissions_->quicker(state_.target, state_.best->state.result.latency)
                             : fissions_->quicker(0, state_.goal.latency);
    for (auto const& o : quicker) {
      if (state_.out_of_time(policy_.parts.quicker_share)) return;
      if (o.tried) continue;
      if (auto n = build_fission(o)) starts.push_back(n);
    }
  }
  /// Of candidates within the limit of latency, beside the first two, those that are smaller than all that are as quick: what
  /// they leave of that limit may do more elsewhere.
  void add_larger(std::vector<node_ptr> found, std::vector<node_ptr>& starts) const {
    detail::sort_list(found, is_quicker);
    auto smallest = std::numeric_limits<bytes_t>::max();
    for (auto const& n : found)
      if (auto const peak = n->state.result.peak_bytes;
          peak < smallest && n->state.result.latency <= state_.goal.latency) {
        smallest = peak;
        if (std::find(starts.begin(), starts.end(), n) == starts.end()) starts.push_back(n);
      }
  }
  /// Several stretches in parts, one after the other: where one fission has brought down the peak, the next peak is
  /// elsewhere. Of a limit of memory, the quickest; otherwise the smallest, by halving between what is reached and what
  /// is not.
  void plant_chains(std::vector<node_ptr>& starts) {
    auto const& numbers = policy_.parts;
    auto const share = numbers.chains_share;
    if (state_.goal.limits_memory) {
      for (auto const& c : chains_to(state_.target, share, numbers.most_chains)) starts.push_back(c);
      return;
    }
    auto reached = static_cast<double>(state_.best->state.result.peak_bytes);
    auto missed = static_cast<double>(std::max<bytes_t>(state_.out.lower_bound_bytes, 1));
    node_ptr smallest;
    for (int tries = 0;
         tries < numbers.chain_tries && reached > numbers.chain_close * missed && !state_.out_of_time(share); ++tries) {
      auto const target = std::sqrt(reached * std::max(missed, reached / numbers.chain_fall));
      auto const found = chains_to(static_cast<bytes_t>(target), share, 1);
      if (found.empty()) missed = target;
      else smallest = found[0], reached = static_cast<double>(smallest->state.result.peak_bytes);
    }
    if (smallest) starts.push_back(smallest);
  }
  /// Fissions that bring a base's peak down to a target, the quickest first: at most so many.
  std::vector<node_ptr> chains_to(bytes_t target, double share, std::size_t most) {
    std::vector<std::size_t> by_latency(fissions_->bases());
    std::iota(by_latency.begin(), by_latency.end(), std::size_t{0});
    auto const latency = [](node_ptr const& n) { return n->state.result.latency; };
    detail::sort_list(by_latency, [&](std::size_t a, std::size_t b) { return is_quicker(bases_[a], bases_[b]); });
    std::vector<node_ptr> found;
    for (auto const b : by_latency) {
      if (state_.out_of_time(share) || (found.size() == most && latency(bases_[b]) >= latency(found.back()))) break;
      auto const limit = found.size() == most ? latency(found.back()) : state_.goal.latency;
      auto n = chain(b, target, limit, share);
      if (n == bases_[b] || n->state.result.peak_bytes > target) continue;
      found.push_back(n);
      detail::sort_list(found, is_quicker);
      if (found.size() > most) found.pop_back();
    }
    for (auto const& n : found) state_.queue.push_back(n);
    return found;
  }
  /// What fissions make of a base, one at the peak after the other, until the peak is no higher than the target or there
  /// is none that helps within the latency.
  node_ptr chain(std::size_t base, bytes_t target, seconds_t latency, double share) {
    return chain(bases_[base], target, latency, share, priced_, &fissions_->sweep(base));
  }
  /// `known`: the candidate's own sweep, if there is one.
  node_ptr chain(node_ptr const& from, bytes_t target, seconds_t latency, double share,
                 fission_sweep_options const& how, fission_sweep* known = nullptr) {
    auto n = from;
    for (int k = 0; k < policy_.parts.chain_length && n->state.result.peak_bytes > target && !state_.out_of_time(share);
         ++k) {
      auto const& c = n->state;
      auto const peak = c.result.peak_bytes;
      std::optional<fission_sweep> own;
      auto& sweep = n == from && known ? *known : own.emplace(c.graph, c.order, c.result, how);
      node_ptr next;
      for (auto const& f : sweep.at_the_peak(target, latency, policy_.parts.chain_width)) {
        if (f.inside > std::max(target, peak - (peak - c.graph.resident_bytes()) / policy_.parts.chain_gain) ||
            !has_time_for(f.what, n))
          continue;
        auto e = sweep.apply(f.what, c);
        next = e ? state_.judge_edit(n, f.what, std::move(*e), true) : nullptr;
        if (next && next->state.result.latency <= latency && next->state.result.peak_bytes <= peak) break;
        next = nullptr;
      }
      if (!next) break;
      n = next;
    }
    return n;
  }
  /// The program with its peaks cut down as far as a little time goes, for recomputation to go on from: what makes the
  /// loss often needs parts, whatever else is done.
  std::vector<node_ptr> preludes() {
    std::vector<node_ptr> found;
    if (fissions_->bases() == 0) return found;
    for (double const more : policy_.parts.preludes) {
      auto n = chain(0, 0, std::min((1 + more) * bases_[0]->state.result.latency, state_.goal.latency),
                     policy_.parts.preludes_share);
      auto const same = [&](node_ptr const& x) { return x->state.result.peak_bytes == n->state.result.peak_bytes; };
      if (n == bases_[0] || std::any_of(found.begin(), found.end(), same)) continue;
      found.push_back(n);
      state_.queue.push_back(n);
    }
    return found;
  }
  static bool is_as_good(node_ptr const& a, node_ptr const& b) {
    auto const &x = a->state.result, &y = b->state.result;
    return x.peak_bytes == y.peak_bytes && x.latency == y.latency;
  }
  static bool is_quicker(node_ptr const& a, node_ptr const& b) {
    return a->state.result.latency < b->state.result.latency;
  }
  /// Many parts make a large graph, and there may be no time for that.
  bool has_time_for(fission_of const& f, node_ptr const& from) const {
    auto const copies = static_cast<std::size_t>(f.last - f.first) * static_cast<std::size_t>(f.parts - 1);
    return state_.budget.has_time_for(2 * (from->state.graph.op_count() + copies));
  }
  /// Builds and judges a fission; nothing if it cannot be built or was met before.
  node_ptr build_fission(fission_seeds::option const& o) {
    auto const& from = bases_[o.base];
    if (!has_time_for(o.what.what, from)) return nullptr;
    fissions_->note_tried(o);
    auto e = fissions_->build(o, from->state);
    auto n = e ? state_.judge_edit(from, o.what.what, std::move(*e)) : nullptr;
    if (n) state_.queue.push_back(n);
    return n;
  }
  /// The most promising ones, some dozens at most.
  std::vector<node_ptr> build_fissions(double part) {
    std::vector<node_ptr> found;
    for (auto const& o : fissions_->ranked(state_.target)) {
      if (found.size() == policy_.parts.most_built || state_.out_of_time(part)) break;
      if (promises_less(o.what)) continue;
      if (auto n = build_fission(o)) found.push_back(std::move(n));
    }
    return found;
  }
  /// Nothing is to be gained by what is no better than the best, even if the estimate is somewhat wrong.
  bool promises_less(estimated_fission const& f) const {
    auto const& best = state_.best->state.result;
    if (!state_.goal.fits(best)) return false;
    if (state_.goal.limits_memory) return f.latency > policy_.parts.slower * best.latency;
    // Where a quarter of what may be spent is left, other mutations may do the rest.
    auto const before = state_.out.original.latency;
    bool const has_room = f.latency < before + policy_.parts.room * (state_.goal.latency - before);
    return static_cast<double>(f.peak) >
           (has_room ? policy_.parts.larger_with_room : policy_.parts.larger) * static_cast<double>(best.peak_bytes);
  }
  /// Candidates that keep less for the backward part, each slower and smaller than the one before.
  void recompute_before_fission(node_ptr const& n, recompute_ground const& ground) {
    if (ground.empty()) return;
    auto const& numbers = policy_.parts;
    auto const late = [&] { return state_.out_of_time(numbers.recomputing); };
    auto const cuts = ground.hull(numbers.prices, late);
    std::vector<node_ptr> found;
    for (std::size_t k = 1; k < cuts.size(); ++k)
      for (double of_peak : numbers.budgets) {
        if (late()) break;
        auto const budget = static_cast<bytes_t>(of_peak * static_cast<double>(n->state.result.peak_bytes));
        auto const choice = ground.choose(cuts[k], cuts[0], budget);
        if (n->state.result.latency + policy_.segments.needed * choice.seconds > state_.goal.latency) continue;
        auto e = recompute_segments::build(n->state, choice);
        if (!e) continue;
        if (auto made = state_.judge_edit(n, recompute_segments{cuts[k].price, cuts[0].price, budget}, std::move(*e)))
          found.push_back(std::move(made));
      }
    detail::sort_list(found, is_quicker);
    // What keeps less is worth having where the peak is the same: parts may bring that down.
    auto const kept = [](node_ptr const& x) {
      double sum = 0;
      for (auto const bytes : x->state.result.bytes_at) sum += static_cast<double>(bytes);
      return sum / static_cast<double>(x->state.order.size());
    };
    auto smallest = static_cast<double>(n->state.result.peak_bytes), least = kept(n);
    for (auto& f : found) {
      auto const peak = static_cast<double>(f->state.result.peak_bytes), mine = kept(f);
      if (f->state.result.latency > state_.goal.latency ||
          (peak >= numbers.keeps_less * smallest && mine >= numbers.keeps_less * least))
        continue;
      smallest = std::min(smallest, peak), least = std::min(least, mine);
      bases_.push_back(std::move(f));
    }
  }

  State& state_;
  search_policy const& policy_;
  std::vector<segments> by_segments_;
  std::size_t first_with_room_ = SIZE_MAX;  // of these: fissions that other mutations are to go on from
  node_ptr original_;                       // the program as it came
  plain_vector<bool> may_run_again_;        // by its op
  std::vector<given> given_;
  double given_share_ = 0;       // of the budget, that these took
  std::vector<node_ptr> bases_;  // what fissions_ are of
  fission_sweep_options priced_;
  std::unique_ptr<fission_seeds> fissions_;
};

}  // namespace neap::inline v0::detail
