// Use intervals: how long a value is held after one use and from when on for the next (MOCCASIN's retention intervals), and
// the moves and the cooling that searches over them share (use_gap.hpp, option_gaps.hpp).
//
//   phases      3   4   5   6   7   8   9        a value made in phase 3, read in phase 9
//   held        3===4           7===8===9        `until` 4, `since` 7: phase 7 makes it again
#pragma once

#include <neap/core/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// Between two consecutive uses of a value, in phases `from` and `to`; or after the last one.
struct use_interval {
  std::uint32_t value = 0, from = 0, to = 0;
  bool last = false;  // then nothing is held for `to`, and `since` means nothing
};
struct interval_ends {
  std::uint32_t until = 0, since = 0;
  bool away = false;  // between them moved out, and loaded in phase `since`
  friend bool operator==(interval_ends const&, interval_ends const&) = default;
};
/// Whether the value is held into phase t, from < t <= to.
inline bool holds(use_interval const& i, interval_ends const& e, std::uint32_t t) {
  return t <= e.until || (!i.last && t > e.since);
}

/// A random move: ends near by, anywhere, or none at all; only `until` of one after the last use. Keeps `away` where the
/// value is still made or loaded in the same phase.
inline interval_ends moved(use_interval const& g, interval_ends e, random_stream& draw) {
  auto const anywhere = [&] { return g.from + draw.below(g.to - g.from + 1); };
  auto const near = [&](std::uint32_t x) {
    auto const by = 1 + draw.below(3);
    if (draw.below(2) == 0) return std::min(x + by, g.to);
    return x >= g.from + by ? x - by : g.from;
  };
  if (g.last) return {draw.below(3) == 0 ? g.from : draw.below(2) ? anywhere() : near(e.until), e.since};
  bool const whole = e.until >= e.since;
  switch (draw.below(whole ? 4 : 6)) {
    case 0: return {g.from, whole ? g.to : g.from};  // made again at its use, or held throughout
    case 1: return {g.from, anywhere()};
    case 2: return {g.from, near(whole ? g.to : e.since)};
    case 3: {
      auto const a = anywhere(), b = anywhere();
      return {std::min(a, b), std::max(a, b)};
    }
    case 4: return {std::min(near(e.until), e.since), e.since, e.away};
    default: return {g.from, g.from};
  }
}

/// Simulated annealing: the heat falls by the same factor with each move, from `hot` to `hot * coldest`.
class cooling {
 public:
  cooling(double hot, double coldest, std::int64_t moves)
      : heat_(hot),
        factor_(std::pow(hot * coldest / hot, 1.0 / static_cast<double>(moves))) {}
  void step() { heat_ *= factor_; }
  /// Whether to go from a score to another one, by Metropolis; draws where it is worse.
  bool accepts(double now, double then, random_stream& draw) const {
    return then <= now || static_cast<double>(draw.uniform()) < std::exp((now - then) / heat_);
  }

 private:
  double heat_, factor_;
};

}}}  // namespace neap::v0::detail
