// One capacity decided: do all records fit below it? Searches in several orders of preference, which suit loose moments,
// and a search on a skyline, which suits full ones, take turns in slices that double. With windows in gaps
// memory/exact/window_search.hpp follows. A program may add a search that only finds packings.
#pragma once

#include <neap/core/worker_team.hpp>
#include <neap/memory/exact/canonical_search.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/exact/policy.hpp>
#include <neap/memory/exact/skyline_search.hpp>
#include <neap/memory/exact/window_search.hpp>
#include <neap/memory/greedy/plateau.hpp>
#include <neap/memory/greedy/rank.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Nodes of a search of so many records without a failure, and some.
constexpr std::int64_t nodes_of_descent(std::size_t records) {
  return static_cast<std::int64_t>(records + records / 4);
}

/// A capacity in bytes, and about how many nodes its decision may take.
struct probe {
  std::int64_t capacity = 0, nodes = 0;
  friend bool operator==(probe const&, probe const&) = default;
};
struct probe_answer {
  feasibility fits = feasibility::unknown;
  std::int64_t nodes = 0;
  std::vector<std::int64_t> offsets{};  ///< after `yes`, in bytes
  friend bool operator==(probe_answer const&, probe_answer const&) = default;
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

/// Calls decide(k, stop) for k below `count`, in turn or side by side, until one of them gives true; gives the least such
/// k, or `count`. Those behind it are stopped, and their answers mean nothing.
template <class Decide>
std::size_t first_decided(worker_team* team, std::size_t count, stop_condition const& stop, Decide const& decide) {
  if (team == nullptr) {
    for (std::size_t k = 0; k < count; ++k)
      if (decide(k, stop)) return k;
    return count;
  }
  std::atomic<std::size_t> first{count};
  std::vector<std::atomic<bool>> raised(count);
  team->run(count, [&](unsigned, std::size_t k) {
    auto const endless = std::numeric_limits<std::int64_t>::max();
    if (first.load() < k || !decide(k, stop_condition::after_nodes(endless, &stop, &raised[k]))) return;
    for (auto least = first.load(); k < least && !first.compare_exchange_weak(least, k);) {}
    for (auto later = k + 1; later < count; ++later) raised[later] = true;
  });
  return first;
}

/// The searches that decide one capacity, each resumed where it stopped. The first that ends in a round of slices decides.
/// With threads the slices of a round run side by side; searches behind the one that decides are stopped, and their nodes
/// of that round do not count, so answer and count are those of one thread.
class portfolio {
 public:
  portfolio(memory_problem const& p, std::vector<std::vector<std::uint32_t>> const& orders, std::int64_t unit,
            search_tricks tricks, std::int64_t capacity);

  /// Within about so many nodes. `offsets` are written after `yes`.
  probe_answer operator()(std::int64_t max_nodes, worker_team* team, stop_condition const& stop,
                          std::vector<std::int64_t>&& offsets);

 private:
  struct member {
    std::unique_ptr<placement_search> search;
    std::int64_t weight;      // nodes of a slice
    std::int64_t most = 0;    // nodes, up to the end of a round
    bool over = false;        // it has nothing to search any more
    std::int64_t before = 0;  // nodes before the round
    feasibility fits = feasibility::unknown;
  };

  void add(std::unique_ptr<placement_search> search, std::int64_t weight) {
    members_.push_back({std::move(search), weight});
  }
  /// How far each search may go in a round, within about `left` nodes for all: those in front come first.
  void share_out(std::int64_t until, std::int64_t left) {
    for (auto& m : members_) {
      m.before = m.search->nodes();
      auto const share = std::clamp<std::int64_t>(m.over ? 0 : until * m.weight - m.before, 0, left);
      m.most = m.before + share;
      left -= share;
    }
  }
  /// A round of slices; gives the search that decided, or the number of searches. Adds to the nodes.
  std::size_t run_slices(worker_team* team, stop_condition const& stop, probe_answer& answer);

  std::vector<std::vector<std::uint32_t>> const& orders_;
  std::int64_t unit_;
  std::vector<packing_problem> problems_;  // one an order
  std::vector<member> members_;            // the orders, then the skyline search
};

/// Decides one capacity after another for one problem; a copy may do so beside it. Records keep their windows to
/// themselves: where a problem has some, `no` means without them.
class feasibility_without_windows {
 public:
  feasibility_without_windows(memory_problem const& p, search_tricks tricks);

  memory_problem const& problem() const { return problem_; }
  std::int64_t unit() const { return unit_; }

  /// With about `asked.nodes` nodes at most, and with a team's threads if there is one.
  probe_answer operator()(probe asked, worker_team* team, stop_condition const& stop) const {
    return portfolio(problem_, orders_, unit_, tricks_, asked.capacity)(asked.nodes, team, stop, start());
  }
  /// Offsets before anything is placed.
  std::vector<std::int64_t> start() const {
    std::vector<std::int64_t> offsets(problem_.count(), 0);
    for (std::size_t i = 0; i < problem_.count(); ++i)
      if (problem_.fixed_of(i) != any_offset) offsets[i] = problem_.fixed_of(i);
    return offsets;
  }

 private:
  memory_problem const& problem_;
  search_tricks tricks_;
  std::int64_t unit_;
  std::vector<std::vector<std::uint32_t>> orders_;
};

/// The same for problems with windows: what was kept whole may yet be lent out in part.
class feasibility_search {
 public:
  feasibility_search(memory_problem const& p, search_tricks tricks)
      : whole_(p, tricks),
        has_windows_(p.has_windows()) {}

  std::int64_t unit() const { return whole_.unit(); }

  probe_answer operator()(probe asked, worker_team* team, stop_condition const& stop) {
    if (!has_windows_) return whole_(asked, team, stop);
    auto answer = whole_({asked.capacity, asked.nodes / exact_policy::whole_share + 1}, team, stop);
    if (answer.fits == feasibility::yes) return answer;
    answer.fits = feasibility::unknown;
    if (answer.nodes >= asked.nodes) return answer;
    if (!windows_) windows_.emplace(whole_.problem());
    answer.offsets = whole_.start();
    answer.fits = (*windows_)(asked.capacity, asked.nodes - answer.nodes, stop, answer.nodes, answer.offsets);
    return answer;
  }

 private:
  feasibility_without_windows whole_;
  bool has_windows_;
  std::optional<window_search> windows_;  // made when it is first needed
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/feasibility_search.ipp>
#endif
