// The bodies of <neap/memory/exact/window_search.hpp>.
#pragma once

#include <neap/memory/exact/window_search.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC window_search::window_search(memory_problem const& p) {
  piece_begin_.push_back(0);
  for (std::uint32_t i = 0; i < p.count(); ++i) {
    if (!p.occupies(i)) continue;
    records_.push_back({i, p.size[i], p.alignment_of(i), p.fixed_of(i)});
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
      pieces_.push_back({lo, hi, a, b});
    });
    piece_begin_.push_back(static_cast<std::uint32_t>(pieces_.size()));
  }
  add_pairs([&](std::uint32_t x,
                std::uint32_t y) { return pieces_[x].lower < pieces_[y].upper && pieces_[y].lower < pieces_[x].upper; },
            true);
  if (pairs_.size() <= exact_policy::max_pairs) find_moments();
}

NEAP_FUNC feasibility window_search::operator()(std::int64_t capacity, std::int64_t budget, stop_condition const& stop,
                                                std::int64_t& nodes, std::vector<std::int64_t>& offsets) {
  if (pairs_.size() > exact_policy::max_pairs) return feasibility::unknown;
  auto const n = records_.size();
  low_.assign(n, 0), high_.assign(n, 0);
  trail_.clear(), decisions_.clear(), work_ = 0;
  for (std::uint32_t r = 0; r < n; ++r) {
    auto const& i = records_[r];
    high_[r] = down(capacity - i.size, r);
    if (i.fixed != any_offset) {
      if (i.fixed > high_[r]) return ++nodes, feasibility::no;
      low_[r] = high_[r] = i.fixed;
    }
    if (low_[r] > high_[r]) return ++nodes, feasibility::no;
  }
  for (auto& x : pairs_) x.first = x.twins ? x.last_option : 0, x.last = x.last_option;
  dirty_.clear(), is_dirty_.assign(n, 0);
  for (std::uint32_t r = 0; r < n; ++r) mark(r);
  auto const spent_before = nodes;
  auto const count = [&] {
    return nodes =
               spent_before + static_cast<std::int64_t>(decisions_made_) + work_ / exact_policy::propagations_a_node;
  };
  decisions_made_ = 1;
  bool good = settle();
  for (;;) {
    if (count() - spent_before >= budget || stop(nodes)) return feasibility::unknown;
    if (good && within_moments()) {
      auto const k = colliding();
      if (k == none) {
        for (std::uint32_t r = 0; r < n; ++r) offsets[records_[r].index] = low_[r];
        return feasibility::yes;
      }
      // The side that raises less is tried first.
      pair const& x = pairs_[k];
      auto const d = low_[x.b] - low_[x.a];
      auto const option = gap_of(x, d);  // the forbidden interval that d lies in
      auto const raise_a = d - (forbidden_[x.begin + option].first - 1);
      auto const raise_b = forbidden_[x.begin + option].second + 1 - d;
      decisions_.push_back({k, option, trail_.size(), raise_b <= raise_a, false});
      good = decide(decisions_.back());
      continue;
    }
    while (!decisions_.empty() && decisions_.back().second) {
      undo(decisions_.back().trail);
      decisions_.pop_back();
    }
    if (decisions_.empty()) return count(), feasibility::no;
    auto& last = decisions_.back();
    undo(last.trail);
    last.second = true, last.above = !last.above;
    good = decide(last);
  }
}

NEAP_FUNC void window_search::find_moments() {
  std::vector<std::int64_t> times;
  for (auto const& x : pieces_) times.push_back(x.lower);
  detail::sort_list(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  moment_begin_.push_back(0);
  for (auto t : times) {
    for (std::uint32_t r = 0; r < records_.size(); ++r)
      for (auto x = piece_begin_[r]; x < piece_begin_[r + 1]; ++x)
        if (pieces_[x].lower <= t && t < pieces_[x].upper) moments_.push_back({r, pieces_[x].begin, pieces_[x].end});
    moment_begin_.push_back(static_cast<std::uint32_t>(moments_.size()));
  }
}

NEAP_FUNC bool window_search::within_moments() const {
  for (std::size_t m = 0; m + 1 < moment_begin_.size(); ++m) {
    std::int64_t bytes = 0, lowest = far, highest = 0;
    for (auto k = moment_begin_[m]; k < moment_begin_[m + 1]; ++k) {
      auto const& x = moments_[k];
      bytes += x.end - x.begin;
      lowest = std::min(lowest, low_[x.record] + x.begin), highest = std::max(highest, high_[x.record] + x.end);
    }
    if (bytes > 0 && lowest + bytes > highest) return false;
  }
  return true;
}

NEAP_FUNC bool window_search::narrow(std::uint32_t k) {
  pair& x = pairs_[k];
  auto const from = low_[x.b] - high_[x.a], to = high_[x.b] - low_[x.a];
  auto first = x.first, last = x.last;
  while (first < last && forbidden_[x.begin + first].first - 1 < from) ++first;
  while (first < last && forbidden_[x.begin + last - 1].second + 1 > to) --last;
  if (first != x.first) trail_.push_back({what::first, k, x.first}), x.first = first;
  if (last != x.last) trail_.push_back({what::last, k, x.last}), x.last = last;
  auto const d0 = least(x), d1 = greatest(x);
  if (d0 > to || d1 < from) return false;
  if (d0 > -far && (!raise(x.b, low_[x.a] + d0) || !sink(x.a, high_[x.b] - d0))) return false;
  return d1 >= far || (raise(x.a, low_[x.b] - d1) && sink(x.b, high_[x.a] + d1));
}

NEAP_FUNC bool window_search::decide(decision const& d) {
  ++decisions_made_;
  pair& x = pairs_[d.pair];
  if (d.above) {
    if (d.interval + 1 > x.first) trail_.push_back({what::first, d.pair, x.first}), x.first = d.interval + 1;
  } else if (d.interval < x.last) {
    trail_.push_back({what::last, d.pair, x.last}), x.last = d.interval;
  }
  if (x.first > x.last) return false;
  mark(x.a), mark(x.b);
  return settle();
}

}}}  // namespace neap::v0::detail
