// The table of rk-Rotor: O(a, b, m), the least time to train blocks a to b with m slots beyond that of their fastest
// options. x_a is kept outside m; y_{b+1} and what the backwards of blocks b + 1 and on have left are inside. It is the
// smaller of
//
//   now    save block a with option k, train [a+1, b], then block a's backward:
//            extra(k) + O(a+1, b, m - saved(k))
//   later  run blocks a to j-1 without saving, keep x_j, train [j, b], then train [a, j-1]:
//            forward(a..j-1) + O(j, b, m - x_j) + O(a, j-1, m)
//
// How it is fast:
// - One cell for each class of equal sub-chains, sizes in the largest unit that divides them all.
// - A cell is a row of times by m, up to where nothing need be recomputed, worked on in chunks of vectors. Chunks are
//   worked out when they are first needed, by several candidates at once: a time is read and written once for all.
// - A j, or a range of them, is left out where a bound shows for each m of the chunk that it is no better than what is
//   known. So most of [a, j-1] is never needed. Both bounds follow by induction over the length, candidate by
//   candidate; what is required of b' makes the limits of [a, b'] no stricter than those of [a, b]:
//     O(a, b, m) >= O(a+1, b, m)
//     O(a, b, m) >= O(a, b', m)  for b' < b, if y_{b'+1}, with what is left by then, is no larger than any of those from
//                                b' + 2 to b + 1; under the peer's limits only if they ask no more of block b' alone
//                                than of block b' and others
#pragma once

#include <neap/blocks/chain_classes.hpp>
#include <neap/blocks/rotor_chain.hpp>
#include <neap/blocks/rotor_sequence.hpp>
#include <neap/blocks/row_minima.hpp>
#include <neap/blocks/time_rows.hpp>
#include <neap/plan/chain_profile.hpp>
#include <neap/plan/chain_sequence.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

namespace neap { inline namespace v0 {

struct rotor_options {
  chain_limits limits = chain_limits::exact;
  std::int64_t max_table_bytes = std::int64_t{4} << 30;  ///< no table larger than this
  bool bounds = true;  ///< false: every j is tried for every m, to see what bounds are worth
};

namespace detail {

class rotor_table {
 public:
  static constexpr double never = HUGE_VAL;
  // Bounds leave out sub-chains, which then are needed by others inside others. From so deep on nothing is left out:
  // in ascending order all that a sub-chain needs is known before, or needs nothing that is not.
  static constexpr std::size_t deepest = 64;
  using too_large = time_rows::too_large;
  struct too_long {};  // too large whatever the limit

  rotor_table(chain_profile const& chain, slots_t largest, rotor_options options);

  /// The least time beyond that of the fastest options; `never` where no plan fits.
  double overhead(slots_t budget) const {
    return budget < 0 ? never
                      : *known(0, chain_.size, std::min(budget / chain_.unit, cells_[id(0, chain_.size)].saturated));
  }

  slots_t unit() const { return chain_.unit; }
  slots_t largest() const { return largest_; }

  chain_sequence sequence(slots_t budget) const {
    auto const m = std::min(budget / chain_.unit, cells_[id(0, chain_.size)].saturated);
    return sequence_of(chain_, m, [this](std::size_t a, std::size_t b, slots_t left) { return known(a, b, left); });
  }

 private:
  rotor_chain read(chain_profile const& chain, chain_limits limits);
  std::uint32_t id(std::size_t a, std::size_t b) const { return classes_(a, b); }
  double const* known(std::size_t a, std::size_t b, slots_t m) const { return rows_.known(cells_[id(a, b)], m); }

  /// From how much memory on nothing need be recomputed, of each class.
  void find_saturation();

  /// Chunks 0 to `chunk` of [a, b] are known afterwards, and of all [j, b] with j > a.
  void demand(std::size_t a, std::size_t b, slots_t chunk, std::size_t depth);

  /// `limit`: what it needs; `kept`: what it leaves to the row `tail`, which may begin after the chunk does.
  row_sum candidate_of(slots_t begin, slots_t limit, slots_t kept, double extra, time_row const* tail,
                       double const* head) const;

  /// Works out the next chunk of [a, b]; all of [j, b], j > a, is known as far.
  void solve(std::size_t a, std::size_t b, time_row& c, std::size_t depth);

  static constexpr std::size_t few = 4;         // j that are judged together
  static constexpr std::size_t max_tried = 64;  // j that are tried before others are judged
  static constexpr std::size_t max_waiting = 16;
  struct alignas(64) work {
    chunk_times times;
    std::array<row_sum, max_waiting> waiting;
    std::array<std::uint32_t, max_waiting> from;  // the j, from a, of those that are of one
    std::vector<std::size_t> solved;  // j of which [a, j-1] is known, each with a smaller y_j than those after it
  };

  /// The chunk at work: of [a, b], from `begin` on, `end` elements.
  struct part {
    std::size_t a, b;
    time_row& c;
    work& w;
    std::size_t depth;
    slots_t chunk, begin;
    int end;
    std::uint32_t const* column;  // classes of [j, b]
    std::size_t noted;            // up to which j `solved` is about
    std::size_t waiting = 0;
    time_row const& tail(rotor_table const& t, std::size_t j) const { return t.cells_[column[j]]; }
  };

  /// Candidates wait for others and are tried together.
  static void put(part& p, row_sum const& c);
  static void flush(part& p);

  /// Tries j, whose limit is met in the chunk's elements from `limit` on, before long. Afterwards [a, j-1] is known, if it
  /// was needed.
  bool try_later(part& p, std::size_t j, slots_t limit);

  /// Puts j, if [a, j-1] is known as far; false if it is not.
  bool put_known(part& p, std::size_t j, slots_t limit);

  /// What waits is tried. From j on nothing is better than to run up to j and to train what is row_run with all there is: behind
  /// the elements that are larger than that, which are the first ones, those j are done with. `head`: the class of [a, j-1];
  /// it counts if it is known, and no more is required of a shorter one.
  void narrow(part& p, std::size_t j, std::size_t last, time_row const& head) const;

  /// Tries every j, where each row is one chunk: it is there as soon as it is known, and may be read from before its first
  /// element. To find the rows takes as long as to read them, and a row that is left out is worth more than either.
  void later_in_one_chunk(part& p);
  /// u = min(u, j) for each j of [first, last), from element `from` on.
  void lower_by(part& p, std::size_t first, std::size_t last, int from) const;
  /// In so many vectors from element `at` on: what is read of a j serves them all.
  template <int Vectors>
  void lower_by(part& p, std::size_t first, std::size_t last, double const* passed, int at) const {
    auto* const u = p.w.times.data() + at;
    auto const* const column = p.column;
    auto const* const cells = cells_.data();
    auto const* const inputs = chain_.input.data();
    auto const* head_id = classes_.that_end(first - 1) + p.a;
    row_vector least[Vectors];
    for (int k = 0; k < Vectors; ++k) least[k] = load(u + k * row_run);
    for (auto j = first; j < last; head_id += j, ++j, ++passed) {
      row_sum const c{*passed, cells[column[j]].times + at - inputs[j], cells[*head_id].times + at, 0};
      for (int k = 0; k < Vectors; ++k) {
        auto const t = c.at(k * row_run);
        least[k] = t < least[k] ? t : least[k];
      }
    }
    for (int k = 0; k < Vectors; ++k) store(u + k * row_run, least[k]);
  }

  /// Tries every j. What the loop reads stays in registers: on short rows it takes as long as the rows themselves.
  void later_by_all(part& p);

  /// Whether some j of [from, to) could be better at some m; `limit` is that of `from`.
  bool hopeful(part& p, std::size_t from, std::size_t to, slots_t limit) const;

  /// Notes of which j before `end` [a, j-1] is known.
  void note(part& p, std::size_t end) const;

  void later_by_bounds(part& p);

  bool bounds_;
  slots_t largest_ = -1;
  int width_ = 64;  // of a chunk
  time_rows rows_;
  rotor_chain chain_;
  chain_classes classes_;
  std::vector<time_row> cells_;
  std::vector<std::unique_ptr<work>> works_;  // by depth
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/rotor_table.ipp>
#endif
