// Which capacities the exact planner asks about, and several of them at once.
//
// The walk closes in on the smallest arena from both sides: the load bound first, then the middle between what has been
// tried and the best plan. A decision that runs out of nodes moves a soft bound only, so large gaps are crossed quickly
// and come back to with more nodes.
//
//   proved        soft                 best
//     |-- tried --|----------x----------|      x: asked next. Fits: best moves down. Else soft moves up.
//                 |          |----y-----|      y: asked after x, if x does not fit
//                 |          |     |-z--|      z: asked after y, if y does not fit either
//
// With threads, x, y and z are decided at once: on hard problems most questions run out of nodes, so what follows if they
// do is worth a try. Answers are taken in the order in which one thread asks; those that no longer lie on that way (x
// fits, so y was asked for nothing) are dropped, with their nodes. So plan, bound, status and the count of nodes are
// those of one thread.
#pragma once

#include <neap/core/worker_team.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/feasibility_search.hpp>
#include <neap/memory/exact/policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A value: a copy can learn supposed answers, to see what would be asked then.
class capacity_walk {
 public:
  /// Between a lower bound and the arena of a plan; capacities are multiples of `unit`. `nodes`: of the first probes.
  /// `most`: nodes of any probe.
  capacity_walk(std::int64_t bound, std::int64_t best, std::int64_t unit,
                std::int64_t nodes = exact_policy::first_probe_nodes,
                std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : unit_(unit),
        nodes_(nodes),
        most_(most),
        best_(best),
        proved_((bound + unit - 1) / unit * unit),
        soft_(proved_ - unit) {}

  bool done() const { return proved_ >= best_; }
  /// Proved: no arena is smaller.
  std::int64_t bound() const { return std::min(proved_, best_); }

  /// The next question. Every question is to be answered by learn() before the next is asked.
  probe next() {
    if (best_ - soft_ <= unit_) {  // every step up to the best plan was tried: again, with more
      nodes_ *= exact_policy::probe_growth, window_ *= exact_policy::probe_growth;
      soft_ = std::max(proved_ - unit_, best_ - window_ * unit_);
    }
    if (first_) return {proved_, std::min(exact_policy::bound_probe_factor * nodes_, most_)};
    auto const steps = (best_ - soft_) / unit_;  // at least 2, or the bound itself is the next
    return {soft_ + std::max<std::int64_t>(1, steps / 2) * unit_, std::min(nodes_, most_)};
  }
  /// `arena`: of the plan found.
  void learn(probe asked, feasibility fits, std::int64_t arena) {
    first_ = false;
    if (fits == feasibility::yes) best_ = arena;
    else soft_ = std::max(soft_, asked.capacity);
    if (fits == feasibility::no) proved_ = asked.capacity + unit_;
  }
  /// A plan that was found by other means.
  void learn_of(std::int64_t arena) { best_ = std::min(best_, arena); }

 private:
  std::int64_t unit_;
  std::int64_t nodes_;  // of a probe
  std::int64_t most_;   // of any
  std::int64_t best_;
  std::int64_t proved_;      // nothing below fits
  std::int64_t soft_;        // up to here probes have ended without a plan
  std::int64_t window_ = 1;  // steps below the best plan that a later round looks at
  bool first_ = true;
};

/// Decides with a team the capacity asked about and those that follow it while answers are `unknown`.
class probes_ahead {
 public:
  probes_ahead(feasibility_search const& decide, worker_team& team) : searches_(team.size(), decide), team_(team) {}

  /// The answer to what `walk` asks, of whose nodes `left` may be spent.
  probe_answer operator()(capacity_walk const& walk, probe asked, std::int64_t left, stop_condition const& stop) {
    if (next_ == asked_.size() || !(asked_[next_] == asked)) look_ahead(walk, asked, left, stop);
    return std::move(answers_[next_++]);
  }

 private:
  void look_ahead(capacity_walk walk, probe asked, std::int64_t left, stop_condition const& stop);

  std::vector<feasibility_search> searches_;  // one for each capacity of a list
  worker_team& team_;
  std::vector<probe> asked_;
  std::vector<probe_answer> answers_;
  std::size_t next_ = 0;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/probes.ipp>
#endif
