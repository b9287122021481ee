// A stage of the search: candidates that are made elsewhere (starting_points.hpp).
#pragma once

#include <neap/ir/operators/movement.hpp>
#include <neap/optimize/stages/seed_edits.hpp>
#include <neap/optimize/starting_points.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class external_seeds {
 public:
  using node_ptr = search_state::node_ptr;

  explicit external_seeds(search_state& state) : state_(state), numbers_(state.policy.external_seeds) {}

  bool is_on() const { return state_.options.starts != nullptr && numbers_.on; }

  /// Candidates are made of the original order, which stands first, and of the one with the smallest peak, if that is
  /// smaller.
  void begin(std::vector<node_ptr> const& orders) {
    auto const peak = [](node_ptr const& n) { return n->state.result.peak_bytes; };
    auto const& smallest = *std::min_element(orders.begin(), orders.end(),
                                             [&](node_ptr const& a, node_ptr const& b) { return peak(a) < peak(b); });
    auto const& original = orders.front();
    bases_.push_back({original, nullptr});
    if (peak(smallest) < peak(original) - ratio_of(state_.policy.segments.smaller, peak(original)))
      bases_.push_back({smallest, nullptr});
  }
  void begin_epoch() {
    for (auto& b : bases_) b.points.reset();
    state_.external_share = 0;
  }

  /// With the stage's share of the epoch where the search recomputes, too; once the limit has moved (`again`), with a part
  /// of what is left. `pause()` whenever what comes next of the original takes longer.
  template <class Pause>
  void add_seeds(bool again, Pause&& pause) {
    if (!is_on()) return;
    auto const before = state_.budget.used();
    auto const part = again                      ? before + (state_.part - before) * numbers_.again
                      : state_.allowed.recompute ? numbers_.share
                                                 : state_.part;
    auto goal = state_.goal;
    if (goal.limits_memory) goal.memory = state_.target;
    for (auto& [from, points] : bases_) {
      auto const& c = from->state;
      if (!points)
        points = state_.options.starts->begin(
            {c.graph, c.order, c.result, state_.may_run_again, state_.allowed.swap, !state_.allowed.recompute,
             state_.allowed.filtered && !(state_.allowed.swap > 0), candidates_of_epoch(), state_.policy});
      auto const on_pause = [&] {
        if (from == state_.original) pause();
      };
      seed_judge<decltype(on_pause)> judge(state_, from, part, on_pause);
      points->run(goal, judge);
    }
    state_.external_share += std::max(0.0, state_.budget.used() - before);
  }

 private:
  template <class Pause>
  class seed_judge final : public start_judge {
   public:
    seed_judge(search_state& state, node_ptr const& from, double part, Pause const& pause)
        : state_(state),
          from_(from),
          part_(part),
          pause_(pause) {}
    plan_cost judge(op_graph g, schedule order, std::string how) override {
      edited e{std::move(g), std::move(order)};
      auto const all = e.graph.ops();
      if (std::any_of(all.begin(), all.end(), [&](op_id o) { return e.graph.as<op::load>(o) != nullptr; }))
        place_transfers(state_, e, state_.goal.limits_memory ? state_.target : 0);
      last_ = state_.evaluate_edit(from_, named_edit{std::move(how)}, std::move(e), true);
      if (!last_) return {INT64_MAX, std::numeric_limits<double>::infinity()};
      last_->is_external_seed = true;
      return last_->state.result;
    }
    void keep() override {
      if (last_) state_.queue.push_back(last_);
    }
    void pause() override { pause_(); }
    bool stop() const override { return state_.out_of_time(part_); }
    double seconds_left() const override { return state_.budget.seconds_left(state_.graph.op_count()); }
    double work_left() const override { return state_.budget.work_left(part_); }

   private:
    search_state& state_;
    node_ptr from_, last_;
    double part_;
    Pause const& pause_;
  };

  /// All of them where solvers stand alone.
  std::size_t candidates_of_epoch() const {
    if (state_.is_for_solvers()) return state_.options.iterations;
    return static_cast<std::size_t>(std::clamp(numbers_.candidates_a_second * state_.budget.epoch(), 1.0, 1e9));
  }

  search_state& state_;
  search_policy::external_seed_numbers const& numbers_;
  struct base {
    node_ptr from;
    std::unique_ptr<starting_points> points;  // none before its first use
  };
  std::vector<base> bases_;
};

}}}  // namespace neap::v0::detail
