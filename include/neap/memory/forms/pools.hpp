// Several pools of memory, fastest first, each with a capacity: what does not fit into one spills into the next.
//
// The cost of an assignment is the time to touch every record once: bytes over the speed of its pool. Small problems
// are solved exactly (every assignment that could still be better, each pool decided by the exact planner); larger ones
// by filling the pools in turn and giving up, at the fullest moment, the record that frees most there for the least cost.
#pragma once

#include <neap/memory/bounds.hpp>
#include <neap/memory/combine.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace neap::inline v0 {

struct memory_pool {
  std::int64_t capacity = std::numeric_limits<std::int64_t>::max();  ///< bytes
  double bytes_per_second = 1;
};

struct pooled_plan {
  std::vector<std::int32_t> pool_of;             ///< of each record; empty without a plan
  std::vector<std::int64_t> offsets;             ///< within its pool, bytes
  std::vector<std::int64_t> arena_bytes;         ///< of each pool
  double seconds = 0;                            ///< to touch every record once
  plan_status status = plan_status::infeasible;  ///< optimal: no assignment costs less
  std::int64_t work = 0;                         ///< assignments looked at
  plan_fault why{};
};

namespace detail {

/// Records of one clock, as pool planning asks about them. (Those of several streams: memory/streams/stream_pools.hpp.)
struct interval_pooling {
  memory_problem const& p;
  std::vector<std::int32_t> pools;  // empty: any

  std::size_t count() const { return p.count(); }
  std::int64_t size(std::uint32_t i) const { return p.size[i]; }
  std::int32_t pool(std::uint32_t i) const { return pools.empty() ? -1 : pools[i]; }
  /// A plan of those records within the capacity, or one without offsets.
  memory_plan within(std::vector<std::uint32_t> const& in, std::int64_t capacity, std::int64_t nodes) const {
    return exact{.capacity = capacity, .budget = {.nodes = nodes}}(subset(p, in));
  }
  /// Bytes that those records need at least; `members`: who needs them at once, each with how much it is in the way of
  /// others. Here: the fullest moment, and lives.
  std::int64_t crowd(std::vector<std::uint32_t> const& in,
                     std::vector<std::pair<std::uint32_t, double>>& members) const {
    auto const bound = load_lower_bound(subset(p, in));
    members.clear();
    for (auto i : in)
      if (p.lower[i] <= bound.moment && bound.moment < p.upper[i])
        members.emplace_back(i, static_cast<double>(p.upper[i] - p.lower[i]));
    return bound.bytes;
  }
};

template <class Pooling>
class pool_search {
 public:
  pool_search(Pooling const& records, std::span<memory_pool const> pools)
      : records_(records),
        pools_(pools),
        members_(pools.size()),
        at_(records.count(), 0) {
    order_.resize(records.count());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](auto a, auto b) {
      return records.size(a) != records.size(b) ? records.size(a) > records.size(b) : a < b;
    });
    least_.assign(records.count() + 1, 0.0);  // the least that the records from the k-th on can cost
    for (std::size_t k = order_.size(); k-- > 0;) {
      double cheapest = std::numeric_limits<double>::infinity();
      for (std::size_t j = 0; j < pools.size(); ++j)
        if (allowed(order_[k], j)) cheapest = std::min(cheapest, cost(order_[k], j));
      least_[k] = least_[k + 1] + cheapest;
    }
  }
  bool allowed(std::uint32_t i, std::size_t j) const {
    return records_.pool(i) < 0 || static_cast<std::size_t>(records_.pool(i)) == j;
  }
  double cost(std::uint32_t i, std::size_t j) const {
    return static_cast<double>(records_.size(i)) / pools_[j].bytes_per_second;
  }

  /// All assignments, cheapest pools first; a branch ends where it cannot cost less than the best, or a pool overflows.
  void assign(std::size_t k, double spent, pooled_plan& best) {
    ++best.work;
    if (best.work > most_) return;
    if (!best.pool_of.empty() && spent + least_[k] >= best.seconds) return;
    if (k == order_.size()) {
      best.pool_of = at_, best.seconds = spent;
      return;
    }
    auto const i = order_[k];
    for (std::size_t j = 0; j < pools_.size(); ++j) {
      if (!allowed(i, j)) continue;
      members_[j].push_back(i);
      auto part = members_[j];
      std::sort(part.begin(), part.end());
      auto const plan = records_.within(part, pools_[j].capacity, 100000);
      undecided_ |= plan.status == plan_status::budget_spent;
      if (has_offsets(plan)) {
        at_[i] = static_cast<std::int32_t>(j);
        assign(k + 1, spent + cost(i, j), best);
      }
      members_[j].pop_back();
    }
  }
  bool complete(pooled_plan const& best) const { return best.work <= most_ && !undecided_; }

 private:
  static constexpr std::int64_t most_ = 20000;
  Pooling const& records_;
  std::span<memory_pool const> pools_;
  std::vector<std::vector<std::uint32_t>> members_;
  std::vector<std::int32_t> at_;
  std::vector<std::uint32_t> order_;
  std::vector<double> least_;
  bool undecided_ = false;
};

/// plan_pools() for records however their lives are given.
template <class Pooling>
pooled_plan fill_pools(Pooling const& records, std::span<memory_pool const> pools, std::size_t exact_limit) {
  pooled_plan out;
  auto const n = static_cast<std::uint32_t>(records.count());
  if (pools.empty()) return out.why = {"no pools"}, out;
  for (auto const& pool : pools)
    if (pool.capacity < 0 || !(pool.bytes_per_second > 0))
      return out.why = {"a pool's capacity is negative or its speed not positive"}, out;
  for (std::uint32_t i = 0; i < n; ++i)
    if (records.pool(i) < -1 || records.pool(i) >= static_cast<std::int32_t>(pools.size()))
      return out.why = {"there is no pool of that number", i}, out;

  if (n <= exact_limit) {
    pool_search search(records, pools);
    search.assign(0, 0.0, out);
    bool const complete = search.complete(out);
    out.status = out.pool_of.empty() && n > 0 ? complete ? plan_status::infeasible : plan_status::budget_spent
                 : complete                   ? plan_status::optimal
                                              : plan_status::feasible;
    if (out.pool_of.empty() && n > 0) return out.why = {"no assignment to the pools fits"}, out;
  } else {
    std::vector<std::size_t> fastest(pools.size());
    std::iota(fastest.begin(), fastest.end(), std::size_t{0});
    std::stable_sort(fastest.begin(), fastest.end(),
                     [&](auto a, auto b) { return pools[a].bytes_per_second > pools[b].bytes_per_second; });
    out.pool_of.assign(n, -1);
    std::vector<std::uint32_t> waiting(n);
    std::iota(waiting.begin(), waiting.end(), 0u);
    std::vector<std::pair<std::uint32_t, double>> crowded;
    for (auto j : fastest) {
      std::vector<std::uint32_t> in, rest;
      for (auto i : waiting)
        (records.pool(i) < 0 || records.pool(i) == static_cast<std::int32_t>(j) ? in : rest).push_back(i);
      while (!in.empty()) {
        ++out.work;
        auto const bound = records.crowd(in, crowded);
        if (bound <= pools[j].capacity && has_offsets(records.within(in, pools[j].capacity, 20000))) break;
        // Spill where most is needed at once: the record that is there in the way of most.
        std::uint32_t worst = n;
        double most = -1;
        for (auto const& [i, lives] : crowded)
          if (records.pool(i) < 0 && lives > most) most = lives, worst = i;
        if (worst == n)  // nobody there may leave: take any that may
          for (auto i : in)
            if (records.pool(i) < 0 && (worst == n || records.size(i) > records.size(worst))) worst = i;
        if (worst == n) {
          out.pool_of.clear();
          out.status = bound > pools[j].capacity ? plan_status::infeasible : plan_status::budget_spent;
          return out.why = {"the records that must be in one pool do not fit there"}, out;
        }
        rest.push_back(worst);
        in.erase(std::find(in.begin(), in.end(), worst));
      }
      for (auto i : in) out.pool_of[i] = static_cast<std::int32_t>(j);
      waiting = std::move(rest);
      std::sort(waiting.begin(), waiting.end());
    }
    if (!waiting.empty()) {
      out.pool_of.clear();
      out.status = plan_status::budget_spent;
      return out.why = {"the pools were filled and this record was left", waiting.front()}, out;
    }
    out.status = plan_status::feasible;
  }
  // Lay out each pool once more, now that its records are known.
  out.offsets.assign(n, 0);
  out.arena_bytes.assign(pools.size(), 0);
  out.seconds = 0;
  for (std::size_t j = 0; j < pools.size(); ++j) {
    std::vector<std::uint32_t> in;
    for (std::uint32_t i = 0; i < n; ++i)
      if (out.pool_of[i] == static_cast<std::int32_t>(j)) in.push_back(i);
    auto const plan = records.within(in, pools[j].capacity, 100000);
    for (std::size_t k = 0; k < in.size(); ++k) {
      out.offsets[in[k]] = plan.offsets[k];
      out.seconds += static_cast<double>(records.size(in[k])) / pools[j].bytes_per_second;
    }
    out.arena_bytes[j] = plan.arena_bytes;
  }
  return out;
}

}  // namespace detail

/// Assigns every record to a pool (its own `pool`, or any where that is -1 or its type has none) and places it there. Up to `exact_limit`
/// records the answer is exact: optimal, or infeasible and proved. Beyond, feasible; or budget_spent where the filling
/// found no room, which proves nothing.
template <usage_range Range>
pooled_plan plan_pools(Range const& records, std::span<memory_pool const> pools, std::size_t exact_limit = 12) {
  memory_problem const p(records);
  if (auto const wrong = fault_of(p); !wrong.empty()) {
    pooled_plan out;
    out.why = wrong;
    return out;
  }
  return detail::fill_pools(detail::interval_pooling{p, detail::pools_of(records)}, pools, exact_limit);
}

}  // namespace neap::inline v0
