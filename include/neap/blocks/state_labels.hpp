// Labels of the states of a phase, and places within a phase that were reached before (remat_branch_and_bound.hpp).
#pragma once

#include <neap/blocks/remat_facts.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <std::size_t Words>
std::size_t hash_of_state(value_set<Words> const& alive, std::uint64_t h) {
  for (auto w : alive.words) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  return static_cast<std::size_t>(h);
}

/// A state, what is alive when a phase begins, and the least time that reaches it.
template <std::size_t Words>
struct state_label {
  value_set<Words> alive, ahead;  ///< ahead: made before they were needed, and not read yet
  value_set<Words> idle, doomed;  ///< see value_partners.hpp
  double time = 0, bound = 0;
  std::uint32_t parent = 0, ops_at = 0, ops_count = 0;
  bool raised = false;  ///< prices were found for it

  static bool better(state_label const& a, state_label const& b) {
    if (a.bound != b.bound) return a.bound < b.bound;
    if (a.time != b.time) return a.time < b.time;
    return a.alive.words < b.alive.words;
  }
};
template <std::size_t Words>
using state_labels = std::vector<state_label<Words>>;

/// Whether one of the first n, of which the best are compared, has as much alive in no more time.
template <std::size_t Words>
bool beaten(state_labels<Words> const& labels, std::size_t n, state_label<Words> const& l) {
  constexpr std::size_t max_compared = 256;
  for (std::size_t i = 0; i < std::min(n, max_compared); ++i)
    if (labels[i].time <= l.time && labels[i].alive.holds(l.alive)) return true;
  return false;
}
/// Whether another label, one of the best, began this phase with as much alive in no more time. One that had made more
/// ahead than `ahead` does not count where it is no quicker: it could have waited for this.
template <std::size_t Words>
bool begun_better(state_labels<Words> const& labels, value_set<Words> const& alive, value_set<Words> const& ahead,
                  double time) {
  constexpr std::size_t max_compared = 64;
  for (std::size_t i = 0; i < std::min(labels.size(), max_compared); ++i) {
    auto const& l = labels[i];
    if (l.time <= time && l.alive.holds(alive) && (l.time < time || ahead.holds(l.ahead))) return true;
  }
  return false;
}

/// Open addressing: alive set -> number of its label + 1.
class label_index {
 public:
  void clear(std::size_t at_least) {
    std::size_t size = 1024;
    while (size < at_least) size *= 2;
    index_.assign(size, 0);
  }
  std::size_t size() const { return index_.size(); }
  template <std::size_t Words>
  std::uint32_t& find(state_labels<Words> const& labels, value_set<Words> const& alive) {
    for (std::size_t at = hash_of_state(alive, 0) & (index_.size() - 1);; at = (at + 1) & (index_.size() - 1))
      if (index_[at] == 0 || labels[index_[at] - 1].alive == alive) return index_[at];
  }

 private:
  std::vector<std::uint32_t> index_;
};

/// Places of a phase's walk that were reached, of which some are forgotten.
template <std::size_t Words>
class reached_places {
 public:
  using set = value_set<Words>;
  struct place {
    set alive, ahead, asleep;
    double time = 0;
    std::uint32_t pass = 0, phase = 0, op = 0;
  };

  /// A power of two: more for larger blocks, fewer than there will be nodes.
  reached_places(std::size_t ops, std::int64_t work) {
    auto const nodes =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max(work, std::int64_t{1}))));
    places_.resize(std::size_t{1} << std::min({std::size_t{16}, 6 + ops / 2, nodes}));
  }
  /// Whether this place was reached before, as quickly; remembers it if not.
  bool seen(place const& now) {
    place& here = places_[hash_of_state(now.alive, now.op) & (places_.size() - 1)];
    bool const same = here.pass == now.pass && here.phase == now.phase && here.op == now.op && here.alive == now.alive;
    if (same && here.time <= now.time && now.ahead.holds(here.ahead) && now.asleep.holds(here.asleep)) return true;
    if (!same || now.time <= here.time) here = now;
    return false;
  }

 private:
  std::vector<place> places_;
};

}}}  // namespace neap::v0::detail
