// One capacity decided: do all records fit below it? memory/exact/skyline_search.hpp beside memory/exact/search.hpp in
// several orders of preference, in slices that double: moments that are full are the first's ground, looser ones the
// second's. Where many records live in one section only, memory/exact/fill_search.hpp beside them. Where little is free
// the first runs also on problems of fewer packings, each of which is one of the given: free bytes as records
// (memory/exact/fillers.hpp), records joined that likely continue one another (memory/exact/continuations.hpp; there the
// third as well), only likely neighbours (memory/exact/neighbours.hpp). With windows in gaps
// memory/exact/window_search.hpp after it.
#pragma once

#include <neap/memory/exact/continuations.hpp>
#include <neap/memory/exact/fill_search.hpp>
#include <neap/memory/exact/fillers.hpp>
#include <neap/memory/exact/neighbours.hpp>
#include <neap/memory/exact/planar_search.hpp>
#include <neap/memory/exact/search.hpp>
#include <neap/memory/exact/skyline_search.hpp>
#include <neap/memory/exact/window_search.hpp>
#include <neap/memory/greedy/plateau.hpp>
#include <neap/memory/greedy/rank.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <thread>
#include <type_traits>
#include <vector>

namespace neap::inline v0 {

namespace detail {

/// A capacity in bytes, and about how many nodes its decision may take.
struct probe {
  std::int64_t capacity = 0, nodes = 0;
  friend constexpr bool operator==(probe const&, probe const&) = default;
};

struct probe_answer {
  ruling said = ruling::spent;
  std::int64_t nodes = 0;
  std::vector<std::int64_t> offsets{};  ///< if found, in bytes
  friend constexpr bool operator==(probe_answer const&, probe_answer const&) = default;
};

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

/// One decision by several searches in turn, each resumed where it stopped, in slices that double: the search in each
/// order, the skyline search, that by gaps, and what finds packings and proves nothing: the planar search, and guesses, the
/// skyline search of likely packings. The first
/// that ends in a round of slices decides. With threads the slices of a round run side by side; searches behind the one
/// that decides are cut off, and their nodes of that round do not count, so answer and count are those of one thread.
template <class Unit, bool Plain>
class portfolio {
 public:
  constexpr portfolio(memory_problem const& p, std::vector<std::vector<std::uint32_t>> const& orders, std::int64_t unit,
                      search_tricks tricks)
      : problem_(p),
        orders_(orders),
        unit_(unit),
        tricks_(tricks) {
    grounds_.reserve(orders.size()), by_order_.reserve(orders.size());
    for (auto const& order : orders) {
      grounds_.push_back(ground_of<Unit>(p, order, unit));
      by_order_.emplace_back(grounds_.back(), tricks);
    }
    if (Plain && tricks.skyline) skyline_.emplace_back(grounds_.front(), tricks);
    if (Plain && tricks.fill && many_fill_gaps(grounds_.front())) by_gaps_.emplace_back(grounds_.front(), tricks);
    // It guesses wrong a few times among the boundaries: if these are many, it finds nothing in time.
    if (Plain && tricks.planar && grounds_.front().sections <= 128) planar_.emplace_back(grounds_.front());
  }

  /// `stop(nodes)` is asked after each node and may end the decision early, with `spent`.
  template <class Stop>
  constexpr probe_answer operator()(probe asked, unsigned threads, Stop&& stop, std::vector<std::int64_t>&& offsets) {
    auto const most = static_cast<std::int64_t>(std::numeric_limits<Unit>::max() / 2);
    auto const capacity = static_cast<Unit>(std::min(asked.capacity / unit_, most));
    probe_answer answer;
    for (std::size_t k = 0; k < guesses_at(); ++k) with(k, [&](auto& search) { search.start(capacity); });
    guess_packings(capacity);
    auto const descent = static_cast<std::int64_t>(orders_.front().size());  // nodes of a search without a failure
    std::int64_t until = 0;
    for (std::int64_t slice = std::max<std::int64_t>(512, descent + descent / 4); answer.nodes < asked.nodes;
         slice *= 2) {
      until += std::min(slice, (asked.nodes - answer.nodes) / weights() + 1);
      bool halted = false;
      bool together = threads > 1;
      if (std::is_constant_evaluated()) together = false;
      auto const deciding =
          together ? side_by_side(until, stop, answer, halted, threads) : in_turn(until, stop, answer, halted);
      if (deciding < count() && answer.said == ruling::found) {
        with(deciding, [&](auto const& search) {
          auto const offset = [&](std::size_t k) { return static_cast<std::int64_t>(search.offsets()[k]) * unit_; };
          if (deciding >= guesses_at()) {
            auto const& holder = guessed_[deciding - guesses_at()];
            for (auto i : orders_.front()) offsets[i] = offset(holder[i]);
          } else {
            auto const& order = orders_[deciding < by_order_.size() ? deciding : 0];
            for (std::size_t k = 0; k < order.size(); ++k) offsets[order[k]] = offset(k);
          }
        });
        answer.offsets = static_cast<std::vector<std::int64_t>&&>(offsets);
      }
      if (deciding < count() || halted) break;
    }
    return answer;
  }

 private:
  // Behind the orders the skyline search, the search by gaps and the planar one, where there are, then guesses.
  constexpr std::size_t gaps_at() const { return by_order_.size() + skyline_.size(); }
  constexpr std::size_t planar_at() const { return gaps_at() + by_gaps_.size(); }
  constexpr std::size_t guesses_at() const { return planar_at() + planar_.size(); }
  constexpr std::size_t count() const { return guesses_at() + guesses_.size() + guesses_by_gaps_.size(); }
  /// In nodes, of a slice.
  constexpr std::int64_t weight(std::size_t k) const {
    if (k < by_order_.size()) return 1;
    if (k >= planar_at() && k < guesses_at()) return 27;
    return k < gaps_at() ? 3 : 9;
  }
  constexpr std::int64_t weights() const {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < count(); ++k) sum += weight(k);
    return sum;
  }
  template <class F>
  constexpr void with(std::size_t k, F&& f) {
    if (k < by_order_.size()) f(by_order_[k]);
    else if (k < gaps_at()) f(skyline_.front());
    else if (k < planar_at()) f(by_gaps_.front());
    else if (k < guesses_at()) f(planar_.front());
    else if (k < guesses_at() + guesses_.size()) f(guesses_[k - guesses_at()]);
    else f(guesses_by_gaps_.front());
  }
  constexpr std::int64_t nodes_of(std::size_t k) {
    std::int64_t nodes = 0;
    with(k, [&](auto const& search) { nodes = search.nodes(); });
    return nodes;
  }
  template <class Stop>
  constexpr ruling run(std::size_t k, Stop&& stop) {
    ruling said = ruling::spent;
    with(k, [&](auto& search) { said = search.run(stop); });
    return k >= guesses_at() && said == ruling::impossible ? ruling::spent : said;
  }

  constexpr void guess_packings(Unit capacity) {
    guesses_.clear(), guesses_by_gaps_.clear(), guessed_.clear(), guess_grounds_.clear();
    if (skyline_.empty() || !tricks_.likely || !problem_.alignment.empty() || !problem_.fixed.empty()) return;
    guesses_.reserve(2), guess_grounds_.reserve(3);  // searches keep references
    auto const fillers = fillers_of(problem_, static_cast<std::int64_t>(capacity) * unit_);
    if (!mostly_full(fillers)) return;
    // Many fillers are likely wrong ones.
    if (6 * fillers.size() <= problem_.count()) guess(capacity, fillers);
    if (!fillers.empty()) guess(capacity, {});
    if (!by_gaps_.empty() && planar_.empty()) guess_by_gaps(capacity);
  }
  constexpr bool mostly_full(std::vector<filler> const& fillers) const {
    double free = 0, used = 0;
    for (auto const& x : fillers) free += static_cast<double>(x.size) * static_cast<double>(x.upper - x.lower);
    for (auto i : orders_.front())
      used += static_cast<double>(problem_.size[i]) * static_cast<double>(problem_.upper[i] - problem_.lower[i]);
    return free < used / 4;
  }
  /// Adds a guess, unless it is little else than the problem itself.
  constexpr void guess(Unit capacity, std::vector<filler> const& fillers) {
    auto const joined = joined_by_size(problem_, fillers, unit_);
    auto holders = ground_to_guess(joined);
    auto const likely = likely_neighbours(guess_grounds_.back(), capacity);
    bool const nothing_new = likely.known == 0 && joined.records.count() == orders_.front().size() + fillers.size();
    if (nothing_new || 2 * likely.known < likely.full) return guess_grounds_.pop_back();
    guessed_.push_back(static_cast<std::vector<std::uint32_t>&&>(holders));
    guesses_.emplace_back(guess_grounds_.back(), tricks_);
    guesses_.back().start(capacity, likely);
  }
  /// The same with the search by gaps, without fillers and for any neighbours.
  constexpr void guess_by_gaps(Unit capacity) {
    auto const joined = joined_by_size(problem_, {}, unit_);
    if (joined.records.count() == orders_.front().size()) return;
    guessed_.push_back(ground_to_guess(joined));
    guesses_by_gaps_.emplace_back(guess_grounds_.back(), tricks_);
    guesses_by_gaps_.back().start(capacity);
  }
  /// Adds the ground of the joined records; of each record the one of it that holds it.
  constexpr std::vector<std::uint32_t> ground_to_guess(joined_problem const& joined) {
    plateau_ground const plateaus(joined.records);
    auto const order = ranked(joined.records, search_orders[0], plateaus.total, plateaus.ranges);
    guess_grounds_.push_back(ground_of<Unit>(joined.records, order, unit_));
    std::vector<std::uint32_t> rank(order.size(), 0), holders;
    for (std::uint32_t k = 0; k < order.size(); ++k) rank[order[k]] = k;
    for (auto holder : joined.holder) holders.push_back(rank[holder]);
    return holders;
  }

  /// A round of slices; gives the search that decided, or the number of searches. Adds to the nodes.
  template <class Stop>
  constexpr std::size_t in_turn(std::int64_t until, Stop& stop, probe_answer& answer, bool& halted) {
    for (std::size_t k = 0; k < count(); ++k) {
      auto const before = nodes_of(k);
      answer.said = run(k, [&](std::int64_t n) { return n >= until * weight(k) || (halted = halted || stop(n)); });
      answer.nodes += nodes_of(k) - before;
      if (answer.said != ruling::spent) return k;
    }
    return count();
  }
  template <class Stop>
  std::size_t side_by_side(std::int64_t until, Stop& stop, probe_answer& answer, bool& halted, unsigned threads) {
    auto const n = count();
    std::vector<ruling> said(n, ruling::spent);
    std::vector<std::int64_t> before;
    for (std::size_t k = 0; k < n; ++k) before.push_back(nodes_of(k));
    std::atomic<std::size_t> next{0}, deciding{n};
    std::atomic<bool> late{false};
    auto const work = [&] {
      for (std::size_t k = next++; k < n && k < deciding; k = next++) {
        said[k] = run(k, [&](std::int64_t nodes) {
          if (nodes >= until * weight(k)) return true;
          if (nodes % 64 == 0 && deciding.load(std::memory_order_relaxed) < k) return true;
          if (!stop(nodes)) return false;
          late = true;
          return true;
        });
        if (said[k] == ruling::spent) continue;
        for (auto least = deciding.load(); k < least && !deciding.compare_exchange_weak(least, k);) {}
      }
    };
    std::vector<std::jthread> team;
    for (unsigned t = 1; t < threads && t < n; ++t) team.emplace_back(work);
    work();
    team.clear();  // joins
    halted = late;
    std::size_t const last = deciding;
    for (std::size_t k = 0; k < n && k <= last; ++k) answer.nodes += nodes_of(k) - before[k];
    answer.said = last < n ? said[last] : ruling::spent;
    return last;
  }

  memory_problem const& problem_;
  std::vector<std::vector<std::uint32_t>> const& orders_;
  std::int64_t unit_;
  search_tricks tricks_;
  std::vector<search_ground<Unit>> grounds_, guess_grounds_;
  std::vector<skyline_search<Unit>> skyline_;  // one, or none
  std::vector<skyline_search<Unit>> guesses_;
  std::vector<fill_search<Unit>> guesses_by_gaps_;  // one, or none
  std::vector<fill_search<Unit>> by_gaps_;          // one, or none
  std::vector<planar_search<Unit>> planar_;         // one, or none
  // By guess, of each record the one of its ground that holds it.
  std::vector<std::vector<std::uint32_t>> guessed_;
  std::vector<decision_search<Unit, Plain>> by_order_;
};

/// Decides one capacity after another for one problem. A copy decides the same, and may do so beside it.
class decider {
 public:
  constexpr decider(memory_problem const& p, search_tricks tricks)
      : problem_(p),
        tricks_(tricks),
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

  /// Decides with about `asked.nodes` nodes at most.
  template <class Stop>
  constexpr probe_answer operator()(probe asked, unsigned threads, Stop&& stop) {
    auto const start = [&] {
      std::vector<std::int64_t> offsets(problem_.count(), 0);
      for (std::size_t i = 0; i < problem_.count(); ++i)
        if (problem_.fixed_of(i) != any_offset) offsets[i] = problem_.fixed_of(i);
      return offsets;
    };
    auto const decide = [&]<class Unit, bool Plain>() {
      portfolio<Unit, Plain> orders(problem_, orders_, unit_, tricks_);
      return orders({asked.capacity, windows_ ? asked.nodes / 4 + 1 : asked.nodes}, threads, stop, start());
    };
    auto answer = small_   ? plain_ ? decide.template operator()<std::int32_t, true>()
                                    : decide.template operator()<std::int32_t, false>()
                    : plain_ ? decide.template operator()<std::int64_t, true>()
                           : decide.template operator()<std::int64_t, false>();
    if (!windows_ || answer.said == ruling::found) return answer;
    // What was kept whole may yet be lent out in part.
    answer.said = ruling::spent;
    if (answer.nodes >= asked.nodes) return answer;
    if (window_search_.empty()) window_search_.emplace_back(problem_);
    answer.offsets = start();
    answer.said =
        window_search_.front()(asked.capacity, asked.nodes - answer.nodes, stop, answer.nodes, answer.offsets);
    return answer;
  }

 private:
  memory_problem const& problem_;
  search_tricks tricks_;
  std::int64_t unit_ = 1;
  bool small_ = true, plain_ = true, windows_ = false;
  std::vector<window_search> window_search_;  // made when it is first needed
  std::vector<std::vector<std::uint32_t>> orders_;
};

}  // namespace detail

}  // namespace neap::inline v0
