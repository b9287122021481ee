// One capacity decided: do all records fit below it? memory/exact/skyline_search.hpp beside memory/exact/search.hpp in
// several orders of preference, in slices that double: moments that are full are the first's ground, looser ones the
// second's. Where many records live in one section only, memory/exact/fill_search.hpp beside them. Where little is free
// the first runs also on problems of fewer packings, each of which is one of the given: free bytes as records
// (memory/exact/fillers.hpp), records joined that likely continue one another (memory/exact/continuations.hpp; there the
// third as well), only likely neighbours (memory/exact/neighbours.hpp). With windows in gaps
// memory/exact/window_search.hpp after it.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
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
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <thread>
#include <type_traits>
#include <vector>

namespace neap::inline v0 {

namespace detail {

/// Nodes of a search of so many records without a failure, and some.
constexpr std::int64_t nodes_of_descent(std::size_t records) {
  return static_cast<std::int64_t>(records + records / 4);
}

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

/// The problem as the search wants it, in the order of preference; `records` are those that ever hold bytes.
constexpr search_ground<std::int64_t> wide_ground_of(memory_problem const& p, std::vector<std::uint32_t> const& records,
                                                     std::int64_t unit) {
  search_ground<std::int64_t> g;
  plain_vector<time_stretch> stretches;  // of all records, a hole between two of one record
  std::vector<std::uint32_t> owner;
  auto const n = static_cast<std::uint32_t>(records.size());
  std::int64_t grain = 0;
  for (auto i : records) grain = std::gcd(grain, p.alignment_of(i));
  if (grain > unit) g.grain = grain / unit;
  for (std::uint32_t k = 0; k < n; ++k) {
    auto const i = records[k];
    auto const own = p.size[i] / unit, rounded = align_up(own, g.grain);
    g.size.push_back(rounded);
    if (g.grain > 1) g.slack.push_back(rounded - own);
    if (!p.alignment.empty()) {
      auto const a = p.alignment[i];
      g.alignment.push_back(a <= 1 ? 1 : a / unit);
    }
    if (!p.fixed.empty()) g.fixed.push_back(p.fixed[i] < 0 ? -1 : p.fixed[i] / unit);
    // A window leaves a part of the record in use; this search keeps the whole of it there.
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t, std::int64_t) {
      if (!owner.empty() && owner.back() == k && stretches.back().upper == lo) stretches.back().upper = hi;
      else stretches.push_back({lo, hi}), owner.push_back(k);
    });
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
  detail::sort_list(sorted, [&](std::uint32_t a, std::uint32_t b) {
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

/// What sizes and offsets in units are counted in where they are small. A program of one file compiles all searches
/// itself: there one type serves for both, and searches take up to a tenth longer.
#if defined(NEAP_ONE_FILE)
using small_unit = std::int64_t;
#else
using small_unit = std::int32_t;
#endif

/// The same with other numbers.
template <class Unit>
constexpr search_ground<Unit> narrowed(search_ground<std::int64_t>&& wide) {
  search_ground<Unit> g;
  auto const narrow = [](std::vector<Unit>& to, std::vector<std::int64_t> const& from) {
    to.assign(from.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<Unit>(from[i]);
  };
  narrow(g.size, wide.size), narrow(g.slack, wide.slack);
  narrow(g.alignment, wide.alignment), narrow(g.fixed, wide.fixed);
  g.grain = static_cast<Unit>(wide.grain), g.sections = wide.sections;
  g.hull.swap(wide.hull), g.twin.swap(wide.twin), g.alive.swap(wide.alive), g.meets.swap(wide.meets);
  return g;
}
template <class Unit>
constexpr search_ground<Unit> ground_of(memory_problem const& p, std::vector<std::uint32_t> const& records,
                                        std::int64_t unit) {
  return narrowed<Unit>(wide_ground_of(p, records, unit));
}

/// One decision by several searches in turn, each resumed where it stopped, in slices that double: the search in each
/// order, the skyline search, that by gaps, and what finds packings and proves nothing: the planar search, and guesses, the
/// skyline search of likely packings. The first
/// that ends in a round of slices decides. With threads the slices of a round run side by side; searches behind the one
/// that decides are cut off, and their nodes of that round do not count, so answer and count are those of one thread.
class portfolio {
 public:
  /// `small`: sums of sizes in units fit into 32 bits.
  constexpr portfolio(memory_problem const& p, std::vector<std::vector<std::uint32_t>> const& orders, std::int64_t unit,
                      bool small, search_tricks tricks, std::int64_t capacity)
      : problem_(p),
        orders_(orders),
        unit_(unit),
        small_(small),
        tricks_(tricks),
        capacity_(capacity / unit) {
    capacity_ = std::min<std::int64_t>(
        capacity_, small ? std::numeric_limits<std::int32_t>::max() / 2 : std::numeric_limits<std::int64_t>::max() / 2);
    bool const plain = p.gap_begin.empty();
    for (std::size_t k = 0; k < orders.size(); ++k) {
      auto wide = wide_ground_of(p, orders[k], unit);
      if (k == 0) {
        by_gaps_ = plain && tricks.fill && many_fill_gaps(wide);
        // Where boundaries are many, the right way falls behind at one of them.
        planar_ = plain && tricks.planar && wide.sections <= 512;
      }
      hold(wide);
      add(plain ? kind::plain : kind::holed, k);
    }
    if (plain && tricks.skyline) add(kind::skyline, 0);
    if (by_gaps_) add(kind::fill, 0);
    if (planar_) add(kind::planar, 0);
    guesses_at_ = members_.size();
    if (plain && tricks.skyline) guess_packings();
  }
  portfolio(portfolio const&) = delete;
  portfolio& operator=(portfolio const&) = delete;
  constexpr ~portfolio() {
    for (auto const& m : members_) delete m.search;
  }

  /// Within about so many nodes. `stop(nodes)` is asked after each node and may end the decision early, with `spent`.
  constexpr probe_answer operator()(std::int64_t most_nodes, unsigned threads, stop_asked& stop,
                                    std::vector<std::int64_t>&& offsets) {
    probe_answer answer;
    auto const descent = nodes_of_descent(orders_.front().size());
    std::int64_t until = 0;
    constexpr auto longest_slice = std::int64_t{1} << 40;
    for (auto slice = std::max<std::int64_t>(512, descent); answer.nodes < most_nodes;
         slice = std::min(2 * slice, longest_slice)) {
      auto const left = most_nodes - answer.nodes;
      std::int64_t weights = 0;
      for (std::size_t k = 0; k < count(); ++k) weights += weight(k);
      if (weights == 0) break;
      // Shares in which no search gets to its end are of no use to any: where there is too little, the first get theirs.
      until += std::max(std::min(slice, left / weights + 1), until ? 0 : descent);
      share_out(until, left);
      bool halted = false;
      bool together = threads > 1;
      if (std::is_constant_evaluated()) together = false;
      auto const deciding = together ? side_by_side(stop, answer, halted, threads) : in_turn(stop, answer, halted);
      if (deciding < count() && answer.said == ruling::found) {
        auto const& search = *members_[deciding].search;
        if (deciding >= guesses_at_) {
          auto const& holder = guessed_[deciding - guesses_at_];
          for (auto i : orders_.front()) offsets[i] = search.offset(holder[i]) * unit_;
        } else {
          auto const& order = orders_[deciding < orders_.size() ? deciding : 0];
          for (std::size_t k = 0; k < order.size(); ++k) offsets[order[k]] = search.offset(k) * unit_;
        }
        answer.offsets = static_cast<std::vector<std::int64_t>&&>(offsets);
      }
      if (deciding < count() || halted) break;
    }
    return answer;
  }

 private:
  static constexpr std::size_t unbroken_orders = 2;  // the search in other orders restarts

  enum class kind : std::uint8_t { plain, holed, skyline, fill, planar };
  struct member {
    record_search* search;
    kind what;
    std::int64_t most = 0;  // nodes, up to the end of a round
    bool over = false;      // it has nothing to search any more
  };
  struct ground {  // one of the two
    search_ground<small_unit> narrow;
    search_ground<std::int64_t> wide;
  };

  // Behind the orders the skyline search, the search by gaps and the planar one, where there are, then guesses.
  constexpr std::size_t count() const { return members_.size(); }
  /// In nodes, of a slice.
  constexpr std::int64_t weight(std::size_t k) const {
    if (members_[k].over) return 0;
    if (k < orders_.size()) return orders_[k].size() <= most_blamed ? 4 : 1;  // they are quick, and learn from failures
    if (k >= guesses_at_) return 9;
    if (members_[k].what != kind::planar) return 3;  // nodes of the search by gaps are dear
    auto const records = static_cast<std::int64_t>(orders_.front().size());
    return std::max<std::int64_t>(100, records * 2 / 3);  // the more records, the dearer are all nodes but these
  }
  constexpr std::int64_t nodes_of(std::size_t k) const { return members_[k].search->nodes(); }
  constexpr ruling run(std::size_t k, stop_asked& stop) {
    auto const before = nodes_of(k);
    auto said = members_[k].search->run(stop);
    if (k >= guesses_at_ && said == ruling::impossible) said = ruling::spent, members_[k].over = true;
    if (said == ruling::spent && nodes_of(k) == before) members_[k].over = true;
    return said;
  }

  constexpr void hold(search_ground<std::int64_t>& wide) {
    auto& at = grounds_[held_++];
    if (small_) at.narrow = narrowed<small_unit>(static_cast<search_ground<std::int64_t>&&>(wide));
    else at.wide = static_cast<search_ground<std::int64_t>&&>(wide);
  }
  /// Adds a search of that ground, begun; where neighbours are given only those touch.
  constexpr void add(kind what, std::size_t at, neighbours const* likely = nullptr) {
    members_.push_back({nullptr, what});  // first, so that what is made has an owner
    members_.back().search = small_ ? begun(what, grounds_[at].narrow, likely) : begun(what, grounds_[at].wide, likely);
  }
  template <class Unit>
  constexpr record_search* begun(kind what, search_ground<Unit> const& of, neighbours const* likely) const {
    record_search* made = nullptr;
    if (what == kind::skyline) {
      auto* const skyline = new skyline_search<Unit>(of, tricks_);
      likely ? skyline->start(capacity_, *likely) : skyline->start(capacity_);
      return skyline;
    }
    if (what == kind::fill) made = new fill_search<Unit>(of, tricks_);
    else if (what == kind::planar) made = new planar_search<Unit>(of);
    else if (what == kind::plain)
      made = new decision_search<Unit, true>(of, tricks_, members_.size() > unbroken_orders);
    else made = new decision_search<Unit, false>(of, tricks_);
    made->start(capacity_);
    return made;
  }

  constexpr void guess_packings() {
    if (!tricks_.likely || !problem_.alignment.empty() || !problem_.fixed.empty()) return;
    auto const fillers = fillers_of(problem_, capacity_ * unit_);
    if (!mostly_full(fillers)) return;
    // Many fillers are likely wrong ones.
    if (6 * fillers.size() <= problem_.count()) guess(fillers);
    if (!fillers.empty()) guess({});
    if (by_gaps_ && !planar_) guess_by_gaps();
  }
  constexpr bool mostly_full(plain_vector<filler> const& fillers) const {
    double free = 0, used = 0;
    for (auto const& x : fillers) free += static_cast<double>(x.size) * static_cast<double>(x.upper - x.lower);
    for (auto i : orders_.front())
      used += static_cast<double>(problem_.size[i]) * static_cast<double>(problem_.upper[i] - problem_.lower[i]);
    return free < used / 4;
  }
  /// Adds a guess, unless it is little else than the problem itself.
  constexpr void guess(plain_vector<filler> const& fillers) {
    auto const joined = joined_by_size(problem_, fillers, unit_);
    auto wide = ground_to_guess(joined);
    auto const likely = likely_neighbours(wide, capacity_);
    bool const nothing_new = likely.known == 0 && joined.records.count() == orders_.front().size() + fillers.size();
    if (nothing_new || 2 * likely.known < likely.full) return guessed_.pop_back();
    hold(wide);
    add(kind::skyline, held_ - 1, &likely);
  }
  /// The same with the search by gaps, without fillers and for any neighbours.
  constexpr void guess_by_gaps() {
    auto const joined = joined_by_size(problem_, {}, unit_);
    if (joined.records.count() == orders_.front().size()) return;
    auto wide = ground_to_guess(joined);
    hold(wide);
    add(kind::fill, held_ - 1);
  }
  /// The ground of the joined records; adds to guessed_.
  constexpr search_ground<std::int64_t> ground_to_guess(joined_problem const& joined) {
    plateau_ground const plateaus(joined.records);
    auto const order = ranked(joined.records, search_orders[0], plateaus.total, plateaus.ranges);
    std::vector<std::uint32_t> rank(order.size(), 0), holders;
    for (std::uint32_t k = 0; k < order.size(); ++k) rank[order[k]] = k;
    for (auto holder : joined.holder) holders.push_back(rank[holder]);
    guessed_.push_back(static_cast<std::vector<std::uint32_t>&&>(holders));
    return wide_ground_of(joined.records, order, unit_);
  }

  /// How far each search may go in a round, within about `left` nodes for all: those in front come first.
  constexpr void share_out(std::int64_t until, std::int64_t left) {
    for (std::size_t k = 0; k < count(); ++k) {
      auto const share = std::clamp<std::int64_t>(until * weight(k) - nodes_of(k), 0, left);
      members_[k].most = nodes_of(k) + share;
      left -= share;
    }
  }
  constexpr bool has_share(std::size_t k) const { return members_[k].most > nodes_of(k); }

  /// A round of slices; gives the search that decided, or the number of searches. Adds to the nodes.
  constexpr std::size_t in_turn(stop_asked& stop, probe_answer& answer, bool& halted) {
    std::int64_t most = 0;
    auto const over = [&](std::int64_t n) { return n >= most || (halted = halted || stop(n)); };
    stop_by asked(over);
    for (std::size_t k = 0; k < count(); ++k) {
      if (!has_share(k)) continue;
      auto const before = nodes_of(k);
      most = members_[k].most;
      answer.said = run(k, asked);
      answer.nodes += nodes_of(k) - before;
      if (answer.said != ruling::spent) return k;
    }
    return count();
  }
  std::size_t side_by_side(stop_asked& stop, probe_answer& answer, bool& halted, unsigned threads) {
    auto const n = count();
    std::vector<ruling> said(n, ruling::spent);
    std::vector<std::int64_t> before;
    for (std::size_t k = 0; k < n; ++k) before.push_back(nodes_of(k));
    std::atomic<std::size_t> next{0}, deciding{n};
    std::atomic<bool> late{false};
    auto const work = [&] {
      for (std::size_t k = next++; k < n && k < deciding; k = next++) {
        if (!has_share(k)) continue;
        auto const over = [&](std::int64_t nodes) {
          if (nodes >= members_[k].most) return true;
          if (nodes % 64 == 0 && deciding.load(std::memory_order_relaxed) < k) return true;
          if (!stop(nodes)) return false;
          late = true;
          return true;
        };
        stop_by asked(over);
        said[k] = run(k, asked);
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
  bool small_, by_gaps_ = false, planar_ = false;
  search_tricks tricks_;
  std::int64_t capacity_;  // in units
  std::array<ground, search_orders.size() + 3> grounds_;
  std::size_t held_ = 0, guesses_at_ = 0;  // grounds; the first member that is a guess
  plain_vector<member> members_;
  // By guess, of each record the one of its ground that holds it.
  std::vector<std::vector<std::uint32_t>> guessed_;
};

/// Decides one capacity after another for one problem. A copy decides the same, and may do so beside it. Records keep
/// their windows to themselves: where a problem has some, `impossible` means without them.
class whole_decider {
 public:
  constexpr whole_decider(memory_problem const& p, search_tricks tricks)
      : problem_(p),
        tricks_(tricks),
        unit_(granularity(p)) {
    plateau_ground const ground(p);
    for (rank_order order : search_orders) {
      auto by_rank = ranked(p, order, ground.total, ground.ranges);
      std::erase_if(by_rank, [&](std::uint32_t i) { return !p.ever_holds(i); });
      bool fresh = true;
      for (auto const& other : orders_) fresh = fresh && other != by_rank;
      if (fresh) orders_.push_back(static_cast<std::vector<std::uint32_t>&&>(by_rank));
    }
    std::int64_t reach = 0;  // no limit in the search passes this
    for (std::size_t i = 0; i < p.count(); ++i)
      reach += p.size[i] + p.alignment_of(i) + std::max<std::int64_t>(p.fixed_of(i), 0);
    small_ = reach / unit_ < std::numeric_limits<std::int32_t>::max() / 4;
  }

  constexpr memory_problem const& problem() const { return problem_; }
  constexpr std::int64_t unit() const { return unit_; }

  /// Decides with about `asked.nodes` nodes at most.
  template <class Stop>
    requires(!std::derived_from<Stop, stop_asked>)
  constexpr probe_answer operator()(probe asked, unsigned threads, Stop const& stop) const {
    stop_by<Stop const> by(stop);
    return (*this)(asked, threads, by);
  }
  constexpr probe_answer operator()(probe asked, unsigned threads, stop_asked& stop) const {
    return portfolio(problem_, orders_, unit_, small_, tricks_, asked.capacity)(asked.nodes, threads, stop, start());
  }
  /// Offsets before anything is placed.
  constexpr std::vector<std::int64_t> start() const {
    std::vector<std::int64_t> offsets(problem_.count(), 0);
    for (std::size_t i = 0; i < problem_.count(); ++i)
      if (problem_.fixed_of(i) != any_offset) offsets[i] = problem_.fixed_of(i);
    return offsets;
  }

 private:
  memory_problem const& problem_;
  search_tricks tricks_;
  std::int64_t unit_ = 1;
  bool small_ = true;
  std::vector<std::vector<std::uint32_t>> orders_;
};

/// The same for problems with windows: what was kept whole may yet be lent out in part.
class decider {
 public:
  constexpr decider(memory_problem const& p, search_tricks tricks) : whole_(p, tricks), windows_(p.has_windows()) {}

  constexpr std::int64_t unit() const { return whole_.unit(); }

  template <class Stop>
    requires(!std::derived_from<Stop, stop_asked>)
  constexpr probe_answer operator()(probe asked, unsigned threads, Stop const& stop) {
    stop_by<Stop const> by(stop);
    return (*this)(asked, threads, by);
  }
  constexpr probe_answer operator()(probe asked, unsigned threads, stop_asked& stop) {
    if (!windows_) return whole_(asked, threads, stop);
    auto answer = whole_({asked.capacity, asked.nodes / 4 + 1}, threads, stop);
    if (answer.said == ruling::found) return answer;
    answer.said = ruling::spent;
    if (answer.nodes >= asked.nodes) return answer;
    if (window_search_.empty()) window_search_.emplace_back(whole_.problem());
    answer.offsets = whole_.start();
    answer.said =
        window_search_.front()(asked.capacity, asked.nodes - answer.nodes, stop, answer.nodes, answer.offsets);
    return answer;
  }

 private:
  whole_decider whole_;
  bool windows_;
  std::vector<window_search> window_search_;  // made when it is first needed
};

}  // namespace detail

}  // namespace neap::inline v0
