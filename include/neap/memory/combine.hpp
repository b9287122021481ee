// Planners out of planners. Each is a memory_planner itself, a value, and usable at compile time if its parts are.
//
//   constexpr auto planner = partitioned(first_optimal(lowest_plateaus{}, within({.nodes = 100'000}, exact{})));
#pragma once

#include <neap/memory/greedy/improve.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>
#include <neap/plan/best_of.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Keeps the better of two plans of one problem, and what both proved.
constexpr void keep_better(memory_plan& best, memory_plan other) {
  auto const bound =
      std::max(has_offsets(best) ? best.lower_bound_bytes : 0, has_offsets(other) ? other.lower_bound_bytes : 0);
  auto const work = best.work + other.work;
  bool const better = has_offsets(other) ? !has_offsets(best) || other.arena_bytes < best.arena_bytes
                                         : !has_offsets(best) && other.status == plan_status::infeasible;
  if (better) best = static_cast<memory_plan&&>(other);
  best.work = work;
  if (!has_offsets(best)) return;
  best.lower_bound_bytes = std::max(best.lower_bound_bytes, bound);
  if (best.lower_bound_bytes == best.arena_bytes) best.status = plan_status::optimal;
}

template <bool StopAtOptimal, class... Planners>
struct several {
  std::tuple<Planners...> planners;
  constexpr memory_plan operator()(memory_problem const& p) const {
    memory_plan best;
    bool first = true;
    auto const run = [&](auto const& planner) {
      if (first) best = planner(p);
      else keep_better(best, planner(p));
      first = false;
      return StopAtOptimal && best.status == plan_status::optimal;
    };
    std::apply([&](auto const&... each) { static_cast<void>((run(each) || ...)); }, planners);
    return best;
  }
};

/// The records `indices` of a problem as a problem of their own.
constexpr memory_problem subset(memory_problem const& p, std::vector<std::uint32_t> const& indices) {
  memory_problem out;
  if (!p.gap_begin.empty()) out.gap_begin.push_back(0);
  for (auto i : indices) {
    out.lower.push_back(p.lower[i]), out.upper.push_back(p.upper[i]), out.size.push_back(p.size[i]);
    if (!p.alignment.empty()) out.alignment.push_back(p.alignment[i]);
    if (!p.fixed.empty()) out.fixed.push_back(p.fixed[i]);
    if (p.gap_begin.empty()) continue;
    for (auto k = p.gap_begin[i]; k < p.gap_begin[i + 1]; ++k) out.gaps.push_back(p.gaps[k]);
    out.gap_begin.push_back(static_cast<std::uint32_t>(out.gaps.size()));
  }
  return out;
}

}  // namespace detail

/// The smallest arena of all. Law: best_of(a) gives a's plans.
template <memory_planner... Planners>
  requires(sizeof...(Planners) > 0)
constexpr auto best_of(Planners... planners) {
  return detail::several<false, Planners...>{{planners...}};
}

/// One after the other until a plan is optimal, else the best of all.
template <memory_planner... Planners>
  requires(sizeof...(Planners) > 0)
constexpr auto first_optimal(Planners... planners) {
  return detail::several<true, Planners...>{{planners...}};
}

/// The planner with that budget, for planners that have one (exact, improved).
template <memory_planner Planner>
  requires requires(Planner p) { p.budget; }
constexpr Planner within(decltype(Planner::budget) budget, Planner planner) {
  planner.budget = budget;
  return planner;
}

/// The planner's plan, made better where it is worst (memory/greedy/improve.hpp), until it is optimal or the budget is spent.
/// Law: the arena is never larger than the planner's. The plan does not depend on anything but records and budget.
template <class Planner>
struct improved {
  static_assert(detail::check_planner<Planner>());
  Planner planner;
  improve_budget budget = {};

  constexpr memory_plan operator()(memory_problem const& p) const {
    memory_plan plan = detail::ask(planner, p);
    detail::improve_plan(p, plan, budget);
    return plan;
  }
};

template <class Planner>
constexpr auto improve(Planner planner, improve_budget budget = {}) {
  return improved<Planner>{planner, budget};
}

/// Each stretch of time that no record crosses is planned apart; the arena is the largest of theirs. The parts of a
/// large problem are small, which is what searches need. A fault of one part carries the index in the whole.
template <class Planner>
struct partitioned {
  static_assert(detail::check_planner<Planner>());
  Planner planner;
  constexpr explicit partitioned(Planner p) : planner(p) {}

  constexpr memory_plan operator()(memory_problem const& p) const {
    if (auto const wrong = fault_of(p); !wrong.empty()) return detail::refused(wrong);
    std::vector<std::uint32_t> order(p.count(), 0);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return p.lower[a] != p.lower[b] ? p.lower[a] < p.lower[b] : a < b; });
    memory_plan whole;
    whole.offsets.assign(p.count(), 0);
    whole.status = plan_status::optimal;
    std::vector<std::uint32_t> part;
    std::int64_t end = 0;
    for (std::size_t k = 0; k <= order.size(); ++k) {
      if (!part.empty() && (k == order.size() || p.lower[order[k]] >= end)) {
        std::sort(part.begin(), part.end());
        memory_plan plan = detail::ask(planner, detail::subset(p, part));
        whole.work += plan.work;
        if (!has_offsets(plan)) {
          detail::renumber_faults(plan, part);
          plan.work = whole.work;
          return plan;
        }
        for (std::size_t i = 0; i < part.size(); ++i) whole.offsets[part[i]] = plan.offsets[i];
        whole.arena_bytes = std::max(whole.arena_bytes, plan.arena_bytes);
        if (plan.lower_bound_bytes > whole.lower_bound_bytes)
          whole.lower_bound_bytes = plan.lower_bound_bytes, whole.moment = plan.moment;
        part.clear();
      }
      if (k == order.size()) break;
      end = part.empty() ? p.upper[order[k]] : std::max(end, p.upper[order[k]]);
      part.push_back(order[k]);
    }
    if (whole.lower_bound_bytes < whole.arena_bytes) whole.status = plan_status::feasible;
    return whole;
  }
};

namespace detail {

template <std::int64_t Alignment, class Planner>
struct aligning {
  Planner planner;
  constexpr memory_plan operator()(memory_problem const& p) const {
    memory_problem stricter = p;
    if (stricter.alignment.empty()) stricter.alignment.assign(p.count(), 1);
    for (auto& a : stricter.alignment)
      if (a >= 1) a = std::lcm(a, Alignment);
    return planner(stricter);
  }
};

}  // namespace detail

/// Every offset a multiple of `Alignment` bytes, besides what the records ask for.
template <std::int64_t Alignment, class Planner>
  requires(Alignment >= 1)
constexpr auto aligned(Planner planner) {
  static_assert(detail::check_planner<Planner>());
  return detail::aligning<Alignment, Planner>{planner};
}

}}  // namespace neap::v0
