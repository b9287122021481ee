// Several pools of memory, fastest first, each with a capacity: what does not fit into one spills into the next. A pool
// whose memory comes in pieces of limited size (the largest buffer of a device) is several allocations; a record lies in
// one of them.
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

namespace neap { inline namespace v0 {

struct memory_pool {
  std::int64_t capacity = std::numeric_limits<std::int64_t>::max();  ///< bytes
  double bytes_per_second = 1;
  std::int64_t largest_piece = std::numeric_limits<std::int64_t>::max();  ///< bytes of one allocation at most
};

struct pooled_plan {
  std::vector<std::int32_t> pool_of;             ///< of each record; empty without a plan
  std::vector<std::int64_t> offsets;             ///< within its piece of the pool, bytes
  std::vector<std::int64_t> arena_bytes;         ///< of each pool, all pieces
  double seconds = 0;                            ///< to touch every record once
  plan_status status = plan_status::infeasible;  ///< optimal: no assignment costs less
  std::int64_t work = 0;                         ///< assignments looked at
  plan_fault why{};
  std::vector<std::int32_t> piece_of{};                  ///< of each record, its piece of its pool, from 0
  std::vector<std::vector<std::int64_t>> piece_bytes{};  ///< of each pool, the bytes of each piece in use
};

/// A record's wish for a pool and a piece of it; -1: any.
struct pool_wish {
  std::int32_t pool = -1, piece = -1;
};

namespace detail {

/// The pieces of pools, each a pool of its own. A pool has no more of them than records could be in.
struct pool_pieces {
  std::vector<memory_pool> pieces;
  std::vector<std::int32_t> pool_of, number;  // of each piece: its pool, and which of its pieces it is

  pool_pieces(std::span<memory_pool const> pools, std::size_t records, std::span<pool_wish const> wishes) {
    for (std::size_t j = 0; j < pools.size(); ++j) {
      std::size_t most = records;
      for (auto const& w : wishes)
        if (w.pool == static_cast<std::int32_t>(j) && w.piece >= 0)
          most = std::max(most, static_cast<std::size_t>(w.piece) + 1);
      auto left = pools[j].capacity;
      for (std::int32_t k = 0; k == 0 || (left > 0 && static_cast<std::size_t>(k) < most); ++k) {
        auto piece = pools[j];
        piece.capacity = std::min(left, pools[j].largest_piece);
        left -= piece.capacity;
        pieces.push_back(piece), pool_of.push_back(static_cast<std::int32_t>(j)), number.push_back(k);
      }
    }
  }
  /// Whether piece x is like the one before it.
  bool repeats(std::size_t x) const {
    return x > 0 && pool_of[x] == pool_of[x - 1] && pieces[x].capacity == pieces[x - 1].capacity;
  }
};

/// Records of one clock, as pool planning reads them. (Those of several streams: memory/streams/stream_pools.hpp.)
struct interval_pooling {
  memory_problem const& p;
  std::vector<pool_wish> wishes;  // empty: any

  std::size_t count() const { return p.count(); }
  std::int64_t size(std::uint32_t i) const { return p.size[i]; }
  pool_wish wish(std::uint32_t i) const { return wishes.empty() ? pool_wish{} : wishes[i]; }
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

/// Whether a record of that wish may lie in piece x.
inline bool may_lie(pool_wish w, pool_pieces const& all, std::size_t x) {
  return w.pool < 0 || (w.pool == all.pool_of[x] && (w.piece < 0 || w.piece == all.number[x]));
}

template <class Pooling>
class pool_search {
 public:
  pool_search(Pooling const& records, pool_pieces const& all)
      : records_(records),
        all_(all),
        pools_(all.pieces),
        members_(pools_.size()),
        at_(records.count(), 0) {
    order_.resize(records.count());
    for (std::uint32_t i = 0; i < records.count(); ++i) any_piece_wish_ |= records.wish(i).piece >= 0;
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](auto a, auto b) {
      return records.size(a) != records.size(b) ? records.size(a) > records.size(b) : a < b;
    });
    least_.assign(records.count() + 1, 0.0);  // the least that the records from the k-th on can cost
    for (std::size_t k = order_.size(); k-- > 0;) {
      double cheapest = std::numeric_limits<double>::infinity();
      for (std::size_t j = 0; j < pools_.size(); ++j)
        if (allowed(order_[k], j)) cheapest = std::min(cheapest, cost(order_[k], j));
      least_[k] = least_[k + 1] + cheapest;
    }
  }
  bool allowed(std::uint32_t i, std::size_t j) const { return may_lie(records_.wish(i), all_, j); }
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
      // An empty piece is like an empty one before it.
      if (!any_piece_wish_ && all_.repeats(j) && members_[j].empty() && members_[j - 1].empty()) continue;
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
  pool_pieces const& all_;
  std::span<memory_pool const> pools_;
  bool any_piece_wish_ = false;
  std::vector<std::vector<std::uint32_t>> members_;
  std::vector<std::int32_t> at_;
  std::vector<std::uint32_t> order_;
  std::vector<double> least_;
  bool undecided_ = false;
};

/// Fills the pieces from the fastest on, each with what fits there; what is most in the way moves on to the next.
template <class Pooling>
class pool_filling {
 public:
  pool_filling(Pooling const& records, pool_pieces const& all, std::vector<pool_wish> const& wishes)
      : records_(records),
        all_(all),
        wishes_(wishes) {}

  bool fits_alone(std::uint32_t i, std::size_t x) const {
    auto const capacity = all_.pieces[x].capacity;
    return records_.size(i) <= capacity || has_offsets(records_.within({i}, capacity, 100));
  }
  /// The first record that no piece can hold, in `out.why`; whether there is none.
  bool check_each(pooled_plan& out) const {
    for (std::uint32_t i = 0; i < count(); ++i) {
      bool any = false, fits = false;
      for (std::size_t x = 0; x < all_.pieces.size() && !fits; ++x)
        if (may_lie(wishes_[i], all_, x)) any = true, fits = fits_alone(i, x);
      if (!any) return out.why = {"there is no piece of that number", i}, false;
      if (!fits) return out.why = {"it is larger than any piece of memory that it may lie in", i}, false;
    }
    return true;
  }
  /// Fills `out.pool_of` with pieces; whether all records found room, else `out` has status and reason.
  bool fill(pooled_plan& out) {
    auto const& pieces = all_.pieces;
    std::vector<std::size_t> fastest(pieces.size());
    std::iota(fastest.begin(), fastest.end(), std::size_t{0});
    std::stable_sort(fastest.begin(), fastest.end(),
                     [&](auto a, auto b) { return pieces[a].bytes_per_second > pieces[b].bytes_per_second; });
    out.pool_of.assign(count(), -1);
    waiting_.resize(count());
    std::iota(waiting_.begin(), waiting_.end(), 0u);
    for (auto j : fastest)
      if (!fill_piece(j, out)) return false;
    if (!waiting_.empty()) {
      out.pool_of.clear();
      out.status = plan_status::budget_spent;
      return out.why = {"the pools were filled and this record was left", waiting_.front()}, false;
    }
    out.status = plan_status::feasible;
    return true;
  }

 private:
  bool fill_piece(std::size_t j, pooled_plan& out) {
    auto const capacity = all_.pieces[j].capacity;
    std::vector<std::uint32_t> in, rest;
    for (auto i : waiting_) (may_lie(wishes_[i], all_, j) && fits_alone(i, j) ? in : rest).push_back(i);
    // A record that must be in this pool may leave for another piece of it.
    bool const last = j + 1 == all_.pieces.size() || all_.pool_of[j + 1] != all_.pool_of[j];
    while (!in.empty()) {
      ++out.work;
      auto const bound = records_.crowd(in, crowded_);
      if (bound <= capacity && has_offsets(records_.within(in, capacity, 20000))) break;
      auto const worst = most_in_the_way(in, last);
      if (worst == count()) {
        out.pool_of.clear();
        bool const one = all_.number[j] == 0 && last;  // what has left other pieces proves nothing
        out.status = one && bound > capacity ? plan_status::infeasible : plan_status::budget_spent;
        return out.why = {"the records that must be in one pool do not fit there"}, false;
      }
      rest.push_back(worst);
      in.erase(std::find(in.begin(), in.end(), worst));
    }
    for (auto i : in) out.pool_of[i] = static_cast<std::int32_t>(j);
    waiting_ = std::move(rest);
    std::sort(waiting_.begin(), waiting_.end());
    return true;
  }
  /// Of the records that may leave: of those at the moment of most bytes the one of the longest life, else the largest.
  std::uint32_t most_in_the_way(std::vector<std::uint32_t> const& in, bool last) const {
    auto const may_leave = [&](std::uint32_t i) { return wishes_[i].pool < 0 || (wishes_[i].piece < 0 && !last); };
    std::uint32_t worst = count();
    double most = -1;
    for (auto const& [i, lives] : crowded_)
      if (may_leave(i) && lives > most) most = lives, worst = i;
    if (worst == count())
      for (auto i : in)
        if (may_leave(i) && (worst == count() || records_.size(i) > records_.size(worst))) worst = i;
    return worst;
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(wishes_.size()); }

  Pooling const& records_;
  pool_pieces const& all_;
  std::vector<pool_wish> const& wishes_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::pair<std::uint32_t, double>> crowded_;
};

/// Lays out each piece, now that `out.pool_of` has the piece of each record; it has the pool afterwards.
template <class Pooling>
void lay_out_pieces(Pooling const& records, pool_pieces const& all, std::size_t pools, pooled_plan& out) {
  auto const n = static_cast<std::uint32_t>(out.pool_of.size());
  out.offsets.assign(n, 0);
  out.arena_bytes.assign(pools, 0);
  out.piece_of.assign(n, 0);
  out.piece_bytes.resize(pools);
  out.seconds = 0;
  for (std::size_t x = 0; x < all.pieces.size(); ++x) {
    std::vector<std::uint32_t> in;
    for (std::uint32_t i = 0; i < n; ++i)
      if (out.pool_of[i] == static_cast<std::int32_t>(x)) in.push_back(i);
    if (in.empty()) continue;
    auto const plan = records.within(in, all.pieces[x].capacity, 100000);
    for (std::size_t k = 0; k < in.size(); ++k) {
      out.offsets[in[k]] = plan.offsets[k];
      out.piece_of[in[k]] = all.number[x];
      out.seconds += static_cast<double>(records.size(in[k])) / all.pieces[x].bytes_per_second;
    }
    auto const pool = static_cast<std::size_t>(all.pool_of[x]);
    out.arena_bytes[pool] += plan.arena_bytes;
    out.piece_bytes[pool].resize(static_cast<std::size_t>(all.number[x]) + 1, 0);
    out.piece_bytes[pool].back() = plan.arena_bytes;
  }
  for (auto& x : out.pool_of) x = all.pool_of[static_cast<std::size_t>(x)];
}

/// plan_pools() for records however their lives are given.
template <class Pooling>
pooled_plan fill_pools(Pooling const& records, std::span<memory_pool const> pools, std::size_t exact_limit) {
  pooled_plan out;
  auto const n = static_cast<std::uint32_t>(records.count());
  if (pools.empty()) return out.why = {"no pools"}, out;
  for (auto const& pool : pools)
    if (pool.capacity < 0 || !(pool.bytes_per_second > 0) || pool.largest_piece < 1)
      return out.why = {"a pool's capacity is negative, or its speed or its largest piece not positive"}, out;
  std::vector<pool_wish> wishes;
  for (std::uint32_t i = 0; i < n; ++i) {
    auto const w = wishes.emplace_back(records.wish(i));
    if (w.pool < -1 || w.pool >= static_cast<std::int32_t>(pools.size()))
      return out.why = {"there is no pool of that number", i}, out;
    if (w.piece >= (1 << 20)) return out.why = {"there is no piece of that number", i}, out;
  }
  pool_pieces const all(pools, n, wishes);
  pool_filling filling(records, all, wishes);
  if (!filling.check_each(out)) return out;
  if (n <= exact_limit) {
    pool_search search(records, all);
    search.assign(0, 0.0, out);
    bool const complete = search.complete(out);
    out.status = out.pool_of.empty() && n > 0 ? complete ? plan_status::infeasible : plan_status::budget_spent
                 : complete                   ? plan_status::optimal
                                              : plan_status::feasible;
    if (out.pool_of.empty() && n > 0) return out.why = {"no assignment to the pools fits"}, out;
  } else if (!filling.fill(out)) {
    return out;
  }
  lay_out_pieces(records, all, pools.size(), out);
  return out;
}

/// The wishes of records that ask for a pool, and of `pieces` for a piece of it; each empty: any.
inline std::vector<pool_wish> pool_wishes(std::vector<std::int32_t> const& pools,
                                          std::span<std::int32_t const> pieces) {
  std::vector<pool_wish> wishes;
  for (std::size_t i = 0; i < pools.size(); ++i) wishes.push_back({pools[i], i < pieces.size() ? pieces[i] : -1});
  return wishes;
}

}  // namespace detail

/// Assigns every record to a pool (its own `pool`, or any where that is -1 or its type has none) and a piece of it (its own
/// of `pieces`, or any where that is -1 or the list is empty) and places it there. Up to `exact_limit` records the answer is
/// exact: optimal, or infeasible and proved. Beyond, feasible; or budget_spent where the filling found no room, which proves
/// nothing. A record larger than any piece that it may lie in is infeasible, and named.
template <usage_range Range>
pooled_plan plan_pools(Range const& records, std::span<memory_pool const> pools, std::size_t exact_limit = 12,
                       std::span<std::int32_t const> pieces = {}) {
  memory_problem const p(records);
  if (auto const wrong = fault_of(p); !wrong.empty()) {
    pooled_plan out;
    out.why = wrong;
    return out;
  }
  return detail::fill_pools(detail::interval_pooling{p, detail::pool_wishes(detail::pools_of(records), pieces)}, pools,
                            exact_limit);
}

}}  // namespace neap::v0
