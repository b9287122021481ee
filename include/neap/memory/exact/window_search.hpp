// The decision problem with windows: do records fit below a capacity, if some keep only a part of themselves in use for
// a while? memory/exact/canonical_search.hpp puts records on top of one another; with windows two records may lie above and below one
// another in turn, so this search decides distances instead.
//
//   a  |####|____|####|       In the middle a uses its upper half and b its lower: b may lie on a, below a, or at the
//      |####|####|####|       same offset, where each holds what the other has left. The distances between the two that
//   b       |____|            collide are a union of intervals; between two of those lies one that does not.
//           |####|
//
// Every record has a least and a greatest offset still possible, every pair the intervals of distances still open to it.
// What one rules out of the other is worked out to the end after each decision (arc consistency on bounds). If the least
// offsets collide nowhere, they are a plan; else a colliding pair is decided: its distance lies below the interval that
// they are in, or above. This loses no solution, since the least offsets that keep all decisions made are the only ones
// looked at, and a pair has finitely many decisions. Undone by a trail; no recursion.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/policy.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class window_search {
 public:
  struct record {
    std::uint32_t index;  // in the problem
    std::int64_t size, alignment, fixed;
  };
  /// The bytes [begin, end) of a record, in use from `lower` to `upper` where one clock tells.
  struct piece {
    std::int64_t lower, upper, begin, end;
  };

  explicit window_search(memory_problem const& p);
  /// Pieces of record r: [piece_begin[r], piece_begin[r + 1]). `meet(x, y)`: whether pieces may be alive at once;
  /// `moments`: sets of pieces that are, every piece in one.
  template <class Meet>
  window_search(plain_vector<record> records, plain_vector<piece> pieces, std::vector<std::uint32_t> piece_begin,
                Meet&& meet, std::vector<std::vector<std::uint32_t>> const& moments)
      : records_(std::move(records)),
        pieces_(std::move(pieces)),
        piece_begin_(std::move(piece_begin)) {
    add_pairs(meet, false);
    moment_begin_.push_back(0);
    std::vector<std::uint32_t> owner(pieces_.size(), 0);
    for (std::uint32_t r = 0; r < records_.size(); ++r)
      for (auto x = piece_begin_[r]; x < piece_begin_[r + 1]; ++x) owner[x] = r;
    for (auto const& together : moments) {
      for (auto x : together) moments_.push_back({owner[x], pieces_[x].begin, pieces_[x].end});
      moment_begin_.push_back(static_cast<std::uint32_t>(moments_.size()));
    }
  }

  /// Decides `capacity` with at most `budget` nodes; `stop` may end it earlier. Adds its nodes to `nodes`; after
  /// `yes`, `offsets` of the records that occupy memory are written.
  feasibility operator()(std::int64_t capacity, std::int64_t budget, stop_condition const& stop, std::int64_t& nodes,
                         std::vector<std::int64_t>& offsets);

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  static constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max() / 4;

  /// Distances offset(b) - offset(a) inside the closed intervals forbidden_[begin .. begin + last_option) collide.
  /// Option k lies before interval k and after interval k - 1; those from `first` to `last` are still open.
  struct pair {
    std::uint32_t a, b, begin, last_option;
    bool twins;  // alike: a lies below b
    std::uint32_t first = 0, last = 0;
  };
  struct decision {
    std::uint32_t pair, interval;
    std::size_t trail;
    bool above, second;
  };
  enum class what : std::uint8_t { low, high, first, last };
  struct change {
    what kind;
    std::uint32_t at;
    std::int64_t old;
  };
  struct part_of_moment {
    std::uint32_t record;
    std::int64_t begin, end;
  };

  std::int64_t alignment(std::uint32_t r) const { return records_[r].alignment; }
  std::int64_t up(std::int64_t x, std::uint32_t r) const { return align_up(x, alignment(r)); }
  std::int64_t down(std::int64_t x, std::uint32_t r) const { return x < 0 ? -1 : x - x % alignment(r); }

  template <class Meet>
  void add_pairs(Meet&& meet, bool one_clock) {
    auto const n = static_cast<std::uint32_t>(records_.size());
    pairs_of_.assign(n, {});
    for (std::uint32_t a = 0; a < n && pairs_.size() <= exact_policy::max_pairs; ++a)
      for (std::uint32_t b = a + 1; b < n; ++b)
        if (!one_clock || lives_meet(a, b)) add_pair(a, b, meet, one_clock);
    for (std::uint32_t k = 0; k < pairs_.size(); ++k)
      pairs_of_[pairs_[k].a].push_back(k), pairs_of_[pairs_[k].b].push_back(k);
  }
  bool lives_meet(std::uint32_t a, std::uint32_t b) const {
    if (piece_begin_[a] == piece_begin_[a + 1] || piece_begin_[b] == piece_begin_[b + 1]) return false;
    return pieces_[piece_begin_[a]].lower < pieces_[piece_begin_[b + 1] - 1].upper &&
           pieces_[piece_begin_[b]].lower < pieces_[piece_begin_[a + 1] - 1].upper;
  }
  template <class Meet>
  void add_pair(std::uint32_t a, std::uint32_t b, Meet& meet, bool one_clock) {
    auto const begin = static_cast<std::uint32_t>(forbidden_.size());
    for (auto x = piece_begin_[a]; x < piece_begin_[a + 1]; ++x)
      for (auto y = piece_begin_[b]; y < piece_begin_[b + 1]; ++y) {
        piece const &s = pieces_[x], &t = pieces_[y];
        if (meet(x, y)) forbidden_.emplace_back(s.begin - t.end + 1, s.end - t.begin - 1);
      }
    auto const from = forbidden_.begin() + begin;
    std::sort(from, forbidden_.end());
    std::size_t kept = begin;
    for (std::size_t k = begin; k < forbidden_.size(); ++k)
      if (kept > begin && forbidden_[k].first <= forbidden_[kept - 1].second + 1)
        forbidden_[kept - 1].second = std::max(forbidden_[kept - 1].second, forbidden_[k].second);
      else forbidden_[kept++] = forbidden_[k];
    forbidden_.resize(kept);
    if (kept == begin) return;
    pairs_.push_back({a, b, begin, static_cast<std::uint32_t>(kept - begin), one_clock && alike(a, b)});
  }
  bool alike(std::uint32_t a, std::uint32_t b) const {
    record const &i = records_[a], &j = records_[b];
    if (i.fixed != any_offset || j.fixed != any_offset || i.alignment != j.alignment) return false;
    if (i.size != j.size) return false;
    auto const n = piece_begin_[a + 1] - piece_begin_[a];
    if (n != 1 || n != piece_begin_[b + 1] - piece_begin_[b]) return false;
    piece const &s = pieces_[piece_begin_[a]], &t = pieces_[piece_begin_[b]];
    return s.lower == t.lower && s.upper == t.upper && s.begin == t.begin && s.end == t.end;
  }
  /// Moments at which a piece begins: only there can something new collide.
  void find_moments();
  /// At each moment, what is in use finds room between the lowest byte possible and the highest.
  bool within_moments() const;

  std::int64_t least(pair const& x) const { return x.first == 0 ? -far : forbidden_[x.begin + x.first - 1].second + 1; }
  std::int64_t greatest(pair const& x) const {
    return x.last == x.last_option ? far : forbidden_[x.begin + x.last].first - 1;
  }
  /// The forbidden interval that holds d, or last_option if none does.
  std::uint32_t gap_of(pair const& x, std::int64_t d) const {
    for (std::uint32_t k = 0; k < x.last_option; ++k)
      if (forbidden_[x.begin + k].first <= d && d <= forbidden_[x.begin + k].second) return k;
    return x.last_option;
  }
  /// Of the pairs that the least offsets make collide, the lowest, and of those the largest.
  std::uint32_t colliding() const {
    std::uint32_t best = none;
    std::int64_t height = 0, bytes = 0;
    for (std::uint32_t k = 0; k < pairs_.size(); ++k) {
      pair const& x = pairs_[k];
      if (x.first == x.last || gap_of(x, low_[x.b] - low_[x.a]) == x.last_option) continue;
      auto const at = std::max(low_[x.a], low_[x.b]), size = records_[x.a].size + records_[x.b].size;
      if (best == none || at < height || (at == height && size > bytes)) best = k, height = at, bytes = size;
    }
    return best;
  }

  void mark(std::uint32_t r) {
    if (is_dirty_[r]) return;
    is_dirty_[r] = 1;
    dirty_.push_back(r);
  }
  bool raise(std::uint32_t r, std::int64_t least_offset) {
    auto const x = least_offset <= low_[r] ? low_[r] : up(least_offset, r);
    if (x > high_[r]) return false;
    if (x == low_[r]) return true;
    trail_.push_back({what::low, r, low_[r]});
    low_[r] = x;
    mark(r);
    return true;
  }
  bool sink(std::uint32_t r, std::int64_t greatest_offset) {
    auto const x = greatest_offset >= high_[r] ? high_[r] : down(greatest_offset, r);
    if (x < low_[r]) return false;
    if (x == high_[r]) return true;
    trail_.push_back({what::high, r, high_[r]});
    high_[r] = x;
    mark(r);
    return true;
  }
  /// What bounds of offsets and open distances of one pair rule out of one another.
  bool narrow(std::uint32_t k);
  bool settle() {
    bool good = true;
    while (!dirty_.empty()) {
      auto const r = dirty_.back();
      dirty_.pop_back();
      is_dirty_[r] = 0;
      for (std::size_t j = 0; good && j < pairs_of_[r].size(); ++j, ++work_) good = narrow(pairs_of_[r][j]);
    }
    return good;
  }
  bool decide(decision const& d);
  void undo(std::size_t to) {
    for (; trail_.size() > to; trail_.pop_back()) {
      auto const& c = trail_.back();
      switch (c.kind) {
        case what::low: low_[c.at] = c.old; break;
        case what::high: high_[c.at] = c.old; break;
        case what::first: pairs_[c.at].first = static_cast<std::uint32_t>(c.old); break;
        case what::last: pairs_[c.at].last = static_cast<std::uint32_t>(c.old); break;
      }
    }
  }

  plain_vector<record> records_;
  plain_vector<piece> pieces_;
  std::vector<std::uint32_t> piece_begin_;
  plain_vector<pair> pairs_;
  std::vector<std::pair<std::int64_t, std::int64_t>> forbidden_;
  std::vector<std::vector<std::uint32_t>> pairs_of_;
  plain_vector<part_of_moment> moments_;
  std::vector<std::uint32_t> moment_begin_;
  std::vector<std::int64_t> low_, high_;
  plain_vector<change> trail_;
  plain_vector<decision> decisions_;
  std::vector<std::uint32_t> dirty_;
  std::vector<char> is_dirty_;
  std::int64_t work_ = 0, decisions_made_ = 0;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/window_search.ipp>
#endif
