// The exact planner: the least arena, or the best found within a budget and a proved bound.
//
// The load bound is tried first (on most problems it is the answer), then the search closes in from both sides: a
// capacity between the proved bound and the best plan is decided by memory/search.hpp, several orders of preference in
// turn, with budgets that double. A decision that runs out of budget moves a soft bound only, so large gaps are crossed
// quickly and come back to with more budget.
#pragma once

#include <neap/memory/bounds.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/rank.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/search.hpp>
#include <neap/memory/sections.hpp>
#include <neap/memory/window_search.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <thread>
#include <type_traits>
#include <vector>

namespace neap::inline v0 {

/// What a search may spend: whichever ends first. Nodes are deterministic, seconds are not.
struct search_budget {
  std::int64_t nodes = 10'000'000;
  double seconds = std::numeric_limits<double>::infinity();
};

namespace detail {

/// The orders tried in turn: MiniMalloc's three, with widths in time and in sections.
inline constexpr std::array<rank_order, 6> search_orders{{
    {rank_key::total, rank_key::width, rank_key::area, false},
    {rank_key::total, rank_key::area, rank_key::width, true},
    {rank_key::width, rank_key::area, rank_key::total, false},
    {rank_key::total, rank_key::width, rank_key::area, true},
    {rank_key::total, rank_key::area, rank_key::width, false},
    {rank_key::width, rank_key::area, rank_key::total, true},
}};

/// Greatest common divisor of all bytes: offsets of canonical placements are multiples of it.
constexpr std::int64_t granularity(memory_problem const& p) {
  std::int64_t g = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (!p.occupies(i)) continue;
    g = std::gcd(g, p.size[i]);
    if (p.alignment_of(i) > 1) g = std::gcd(g, p.alignment_of(i));
    if (p.fixed_of(i) > 0) g = std::gcd(g, p.fixed_of(i));
  }
  for (auto const& w : p.gaps) g = std::gcd(std::gcd(g, w.window_lower), w.window_upper);
  return g == 0 ? 1 : g;
}

/// The problem as the search wants it, in the order of preference; `records` are those that occupy memory.
template <class Unit>
constexpr search_ground<Unit> ground_of(memory_problem const& p, std::vector<std::uint32_t> const& records,
                                        std::int64_t unit) {
  search_ground<Unit> g;
  std::vector<time_stretch> stretches;  // of all records, a hole between two of one record
  std::vector<std::uint32_t> owner;
  auto const n = static_cast<std::uint32_t>(records.size());
  std::int64_t grain = 0;
  for (auto i : records) grain = std::gcd(grain, p.alignment_of(i));
  if (grain > unit) g.grain = static_cast<Unit>(grain / unit);
  for (std::uint32_t k = 0; k < n; ++k) {
    auto const i = records[k];
    auto const own = p.size[i] / unit, rounded = align_up(own, g.grain);
    g.size.push_back(static_cast<Unit>(rounded));
    if (g.grain > 1) g.slack.push_back(static_cast<Unit>(rounded - own));
    if (!p.alignment.empty()) {
      auto const a = p.alignment[i];
      g.alignment.push_back(static_cast<Unit>(a <= 1 ? 1 : a / unit));
    }
    if (!p.fixed.empty()) g.fixed.push_back(static_cast<Unit>(p.fixed[i] < 0 ? -1 : p.fixed[i] / unit));
    // A window leaves a part of the record in use; this search keeps the whole of it there.
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t, std::int64_t) {
      if (!owner.empty() && owner.back() == k && stretches.back().upper == lo) stretches.back().upper = hi;
      else stretches.push_back({lo, hi}), owner.push_back(k);
    });
    if (owner.empty() || owner.back() != k) stretches.push_back({p.lower[i], p.upper[i]}), owner.push_back(k);
  }
  sectioned const cut = cut_into_sections(stretches);
  g.sections = cut.count;
  g.hull.assign(n, section_range{});
  for (std::size_t s = 0; s < stretches.size(); ++s) {
    auto& hull = g.hull[owner[s]];
    if (hull.begin == hull.end) hull = cut.ranges[s];
    else hull.end = cut.ranges[s].end;
  }
  if (!p.gap_begin.empty()) {
    g.alive.assign(n * g.section_words(), 0);
    for (std::size_t s = 0; s < stretches.size(); ++s)
      for (auto at = cut.ranges[s].begin; at < cut.ranges[s].end; ++at)
        g.alive[owner[s] * g.section_words() + at / 64] |= std::uint64_t{1} << (at % 64);
    g.meets.assign(n * g.record_words(), 0);
    for (std::uint32_t a = 0; a < n; ++a)
      for (std::uint32_t b = 0; b < n; ++b) {
        bool together = false;
        for (std::size_t w = 0; w < g.section_words(); ++w)
          together |= (g.alive[a * g.section_words() + w] & g.alive[b * g.section_words() + w]) != 0;
        if (a != b && together) g.meets[a * g.record_words() + b / 64] |= std::uint64_t{1} << (b % 64);
      }
  }
  // Twins: same life, size and alignment, not fixed.
  g.twin.assign(n, 0);
  std::vector<std::uint32_t> sorted(n, 0);
  std::iota(sorted.begin(), sorted.end(), 0u);
  auto const alike = [&](std::uint32_t a, std::uint32_t b) {
    if (g.hull[a] != g.hull[b] || g.size[a] != g.size[b]) return false;
    if (!g.slack.empty() && g.slack[a] != g.slack[b]) return false;
    if (!g.alignment.empty() && g.alignment[a] != g.alignment[b]) return false;
    if (!g.fixed.empty() && (g.fixed[a] >= 0 || g.fixed[b] >= 0)) return false;
    if (!g.alive.empty())
      for (std::size_t w = 0; w < g.section_words(); ++w)
        if (g.alive[a * g.section_words() + w] != g.alive[b * g.section_words() + w]) return false;
    return true;
  };
  std::sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (g.hull[a].begin != g.hull[b].begin) return g.hull[a].begin < g.hull[b].begin;
    if (g.hull[a].end != g.hull[b].end) return g.hull[a].end < g.hull[b].end;
    if (g.size[a] != g.size[b]) return g.size[a] < g.size[b];
    return a < b;
  });
  for (std::uint32_t k = 0; k < n; ++k) {
    g.twin[sorted[k]] = sorted[k];
    for (std::uint32_t j = k;
         j > 0 && g.hull[sorted[j - 1]] == g.hull[sorted[k]] && g.size[sorted[j - 1]] == g.size[sorted[k]]; --j)
      if (alike(sorted[j - 1], sorted[k])) {
        g.twin[sorted[k]] = g.twin[sorted[j - 1]];
        break;
      }
  }
  return g;
}

/// One decision by all orders in turn, each resumed where it stopped, in slices that double. With threads the slices of
/// a round run side by side; the first order that ends in a round decides, so the answer is the same.
template <class Unit, bool Plain>
class portfolio {
 public:
  constexpr portfolio(memory_problem const& p, std::vector<std::vector<std::uint32_t>> const& orders, std::int64_t unit,
                      search_tricks tricks)
      : orders_(orders),
        unit_(unit) {
    grounds_.reserve(orders.size()), searches_.reserve(orders.size());
    for (auto const& order : orders) {
      grounds_.push_back(ground_of<Unit>(p, order, unit));
      searches_.emplace_back(grounds_.back(), tricks);
    }
  }

  template <class Stop>
  constexpr verdict operator()(std::int64_t capacity, std::int64_t budget, unsigned threads, Stop&& stop,
                               std::int64_t& nodes, std::vector<std::int64_t>& offsets) {
    auto const most = static_cast<std::int64_t>(std::numeric_limits<Unit>::max() / 2);
    std::int64_t until = 0, spent = 0;
    for (auto& search : searches_) search.start(static_cast<Unit>(std::min(capacity / unit_, most)));
    auto const descent = static_cast<std::int64_t>(orders_.front().size());  // nodes of a search without a failure
    for (std::int64_t slice = std::max<std::int64_t>(512, descent + descent / 4); spent < budget; slice *= 2) {
      until += std::min(slice, (budget - spent) / static_cast<std::int64_t>(orders_.size()) + 1);
      std::vector<verdict> verdicts(searches_.size(), verdict::spent);
      std::vector<char> halted(searches_.size(), 0);
      auto const go_on = [&](std::size_t k) {
        auto const before = nodes + spent - searches_[k].nodes();
        verdicts[k] = searches_[k].run([&](std::int64_t n) { return n >= until || (halted[k] = stop(before + n)); });
      };
      if (!std::is_constant_evaluated() && threads > 1) {
        std::vector<std::thread> team;
        for (unsigned t = 0; t < threads; ++t)
          team.emplace_back([&, t] {
            for (std::size_t k = t; k < searches_.size(); k += threads) go_on(k);
          });
        for (auto& member : team) member.join();
      }
      for (std::size_t k = 0; k < searches_.size(); ++k) {
        if (std::is_constant_evaluated() || threads <= 1) go_on(k);
        if (verdicts[k] == verdict::spent) continue;
        for (std::size_t j = 0; j < searches_.size(); ++j) nodes += searches_[j].nodes();
        if (verdicts[k] == verdict::found)
          for (std::size_t i = 0; i < orders_[k].size(); ++i)
            offsets[orders_[k][i]] = static_cast<std::int64_t>(searches_[k].offsets()[i]) * unit_;
        return verdicts[k];
      }
      spent = 0;
      for (auto const& search : searches_) spent += search.nodes();
      if (stop(nodes + spent) || std::find(halted.begin(), halted.end(), 1) != halted.end()) break;
    }
    nodes += spent;
    return verdict::spent;
  }

 private:
  std::vector<std::vector<std::uint32_t>> const& orders_;
  std::int64_t unit_;
  std::vector<search_ground<Unit>> grounds_;
  std::vector<decision_search<Unit, Plain>> searches_;
};

/// Decides one capacity after another for one problem.
class decider {
 public:
  constexpr decider(memory_problem const& p, search_tricks tricks, unsigned threads)
      : problem_(p),
        tricks_(tricks),
        threads_(threads),
        unit_(granularity(p)) {
    plateau_ground const ground(p);
    for (rank_order order : search_orders) {
      auto by_rank = ranked(p, order, ground.total, ground.ranges);
      std::erase_if(by_rank, [&](std::uint32_t i) { return !p.occupies(i); });
      bool fresh = true;
      for (auto const& other : orders_) fresh = fresh && other != by_rank;
      if (fresh) orders_.push_back(static_cast<std::vector<std::uint32_t>&&>(by_rank));
    }
    std::int64_t reach = 0;  // no limit in the search passes this
    for (std::size_t i = 0; i < p.count(); ++i)
      reach += p.size[i] + p.alignment_of(i) + std::max<std::int64_t>(p.fixed_of(i), 0);
    small_ = reach / unit_ < std::numeric_limits<std::int32_t>::max() / 4;
    plain_ = p.gap_begin.empty();
    windows_ = p.has_windows();
  }

  constexpr std::int64_t unit() const { return unit_; }
  constexpr std::int64_t nodes() const { return nodes_; }

  /// Decides `capacity` in bytes with about `budget` nodes at most; if found, `offsets` are in bytes.
  template <class Stop>
  constexpr verdict operator()(std::int64_t capacity, std::int64_t budget, Stop&& stop,
                               std::vector<std::int64_t>& offsets) {
    std::vector<std::int64_t> found(problem_.count(), 0);
    for (std::size_t i = 0; i < problem_.count(); ++i)
      if (problem_.fixed_of(i) != any_offset) found[i] = problem_.fixed_of(i);
    auto const decide = [&]<class Unit, bool Plain>() {
      portfolio<Unit, Plain> orders(problem_, orders_, unit_, tricks_);
      return orders(capacity, windows_ ? budget / 4 + 1 : budget, threads_, stop, nodes_, found);
    };
    auto const before = nodes_;
    auto answer = small_   ? plain_ ? decide.template operator()<std::int32_t, true>()
                                    : decide.template operator()<std::int32_t, false>()
                    : plain_ ? decide.template operator()<std::int64_t, true>()
                           : decide.template operator()<std::int64_t, false>();
    if (answer != verdict::found && windows_) {  // what was kept whole may yet be lent out in part
      if (window_search_.empty()) window_search_.emplace_back(problem_);
      auto const spent = nodes_ - before;
      answer = spent < budget ? window_search_.front()(capacity, budget - spent, stop, nodes_, found) : verdict::spent;
    }
    if (answer == verdict::found) offsets = static_cast<std::vector<std::int64_t>&&>(found);
    return answer;
  }

 private:
  memory_problem const& problem_;
  search_tricks tricks_;
  unsigned threads_;
  std::int64_t unit_ = 1;
  bool small_ = true, plain_ = true, windows_ = false;
  std::vector<window_search> window_search_;  // made when it is first needed
  std::vector<std::vector<std::uint32_t>> orders_;
  std::int64_t nodes_ = 0;
};

/// True once the budget is spent; the clock is read at one call in 256, and never at compile time.
class budget_watch {
 public:
  constexpr explicit budget_watch(search_budget budget) : budget_(budget) {
    if (timed()) end_ = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(budget.seconds, 1e8));
  }
  constexpr bool operator()(std::int64_t nodes) const {
    if (nodes >= budget_.nodes) return true;
    return timed() && nodes % 256 == 0 && late();
  }
  constexpr bool late() const { return timed() && std::chrono::steady_clock::now() >= end_; }

 private:
  constexpr bool timed() const {
    return !std::is_constant_evaluated() && budget_.seconds < std::numeric_limits<double>::infinity();
  }
  search_budget budget_;
  std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_{};
};

}  // namespace detail

/// The exact planner. Alignment, fixed offsets, gaps and windows in gaps are searched in full: with windows first as if
/// the records were whole there, which is quick, then by memory/window_search.hpp.
/// Gives optimal or feasible (budget spent, with the best plan and the proved bound); with a capacity also infeasible
/// (proved) and budget_spent. O(n) memory a level of the search: meant for up to some thousands of records.
struct exact {
  std::int64_t capacity = -1;  ///< bytes; -1: find the smallest arena, else any plan within the capacity
  search_budget budget{};
  search_tricks tricks{};
  unsigned threads = 1;  ///< the plan and the count of nodes do not depend on it (with a budget in nodes)

  constexpr memory_plan operator()(memory_problem const& p) const {
    memory_plan plan = default_planner{.greedy_limit = 4000, .most_placements = 0}(p);
    if (!has_offsets(plan) || plan.status == plan_status::optimal) return limited(plan);
    if (capacity >= 0 && (plan.arena_bytes <= capacity || plan.lower_bound_bytes > capacity)) return limited(plan);
    detail::decider decide(p, tricks, threads);
    detail::budget_watch const stop(budget);
    load_bound const bound{plan.lower_bound_bytes, plan.moment};
    std::vector<std::int64_t> offsets;
    if (capacity >= 0) {
      auto const answer = decide(capacity, budget.nodes, stop, offsets);
      if (answer == detail::verdict::found)
        plan = detail::finished(p, static_cast<std::vector<std::int64_t>&&>(offsets), bound);
      plan.work = decide.nodes();
      return limited(plan, answer == detail::verdict::impossible);
    }
    std::int64_t const unit = decide.unit();
    std::int64_t proved = (bound.bytes + unit - 1) / unit * unit;  // nothing below fits
    std::int64_t soft = proved - unit;                             // up to here probes have ended without a plan
    std::int64_t probe = 16384, window = 1;  // nodes of a probe; steps below the best plan that a later round looks at
    bool first = true;
    while (proved < plan.arena_bytes && decide.nodes() < budget.nodes && !stop.late()) {
      if (plan.arena_bytes - soft <= unit) {  // every step up to the best plan was tried: again, with more
        probe *= 4, window *= 4;
        soft = std::max(proved - unit, plan.arena_bytes - window * unit);
      }
      std::int64_t const steps = (plan.arena_bytes - soft) / unit;  // at least 2, or the bound itself is the next
      std::int64_t const target = first ? proved : soft + std::max<std::int64_t>(1, steps / 2) * unit;
      std::int64_t const nodes = first ? 3 * probe : probe;  // the bound is the likeliest answer: more for it
      first = false;
      switch (decide(target, std::min(nodes, budget.nodes - decide.nodes()), stop, offsets)) {
        case detail::verdict::found:
          plan = detail::finished(p, static_cast<std::vector<std::int64_t>&&>(offsets), bound);
          break;
        case detail::verdict::impossible:
          proved = target + unit;
          soft = std::max(soft, target);
          break;
        case detail::verdict::spent: soft = std::max(soft, target); break;
      }
    }
    plan.lower_bound_bytes = std::min(proved, plan.arena_bytes);
    if (proved >= plan.arena_bytes) plan.status = plan_status::optimal;
    plan.work = decide.nodes();
    return plan;
  }

 private:
  /// The plan, if it is within the capacity; else what is known about the capacity.
  constexpr memory_plan limited(memory_plan plan, bool impossible = false) const {
    if (capacity < 0 || !has_offsets(plan) || plan.arena_bytes <= capacity) return plan;
    plan.offsets.clear();
    plan.arena_bytes = 0;
    if (plan.lower_bound_bytes > capacity) {
      plan.status = plan_status::infeasible;
      plan.why = {"the records alive at one moment alone pass the capacity"};
    } else if (impossible) {
      plan.status = plan_status::infeasible;
      plan.why = {"no placement stays within the capacity (proved by search)"};
      plan.lower_bound_bytes = capacity + 1;
    } else {
      plan.status = plan_status::budget_spent;
      plan.why = {"no placement within the capacity was found in the budget"};
    }
    return plan;
  }
};

}  // namespace neap::inline v0
