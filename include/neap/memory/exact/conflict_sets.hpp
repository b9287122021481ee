// Conflict sets: which placements a failure follows from. A search that fails returns to the last placement in the set at
// once; what was placed since, mostly far off in time, has no part in it (conflict-directed backjumping: Prosser 1993).
//
//      |bbb|     |ccc|ddd|      c and d do not fit on a: the conflict is {a}, without b, which was placed between
//      |xxx|     |aaaaaaa|
//
// Every raised limit of an offset has a reason, the placements that it follows from. Reasons are about one packing, that
// of the least sum of offsets, in which every record lies on another or at 0. Each refers to the weaker one before it of
// the same record: of several, the weakest that suffices follows from the fewest placements.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// One conflict set at work, and reasons by number: a search that goes back writes over those behind.
class conflict_sets {
 public:
  /// For so many records; 0: no reasons are kept, and every record is in conflict.
  explicit conflict_sets(std::size_t records) : words_((records + 63) / 64), conflict_(words_, 0) {}

  bool kept() const { return words_ > 0; }
  /// Begins anew: reason i is that record i, of `count`, is at least(i) or higher, whatever is placed.
  template <class Least>
  void start(std::uint32_t count, Least const& least) {
    reasons_.assign(count, reason{});
    for (std::uint32_t i = 0; i < count; ++i) reasons_[i].least = least(i);
    placements_.assign(count * words_, 0);
  }

  bool contains(std::uint32_t record) const { return !kept() || (conflict_[record / 64] >> (record % 64) & 1) != 0; }
  void clear() {
    for (auto& word : conflict_) word = 0;
  }
  void add_all() {
    for (auto& word : conflict_) word = ~std::uint64_t{0};
  }
  void add(std::uint32_t record) { conflict_[record / 64] |= bit(record); }
  void remove(std::uint32_t record) { conflict_[record / 64] &= ~bit(record); }
  /// Adds the placements of the weakest reason, of that one and those before it, that is for `least` or more.
  void add_reason(std::uint32_t at, std::int64_t least) {
    for (auto w = reasons_[at].weaker; w != none && reasons_[w].least >= least; w = reasons_[at].weaker) at = w;
    if (reasons_[at].weaker == none) return;
    for (std::size_t w = 0; w < words_; ++w) conflict_[w] |= placements_[at * words_ + w];
  }
  /// Makes the set at work reason `at` of the limit `least`.
  void set_reason(std::uint32_t at, std::int64_t least, std::uint32_t weaker) {
    if (reasons_.size() <= at) {
      reasons_.resize(2 * std::size_t{at} + 64, reason{});
      placements_.resize(reasons_.size() * words_, 0);
    }
    reasons_[at] = {least, weaker};
    for (std::size_t w = 0; w < words_; ++w) placements_[at * words_ + w] = conflict_[w];
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  struct reason {
    std::int64_t least = 0;
    std::uint32_t weaker = none;
  };
  static constexpr std::uint64_t bit(std::uint32_t record) { return std::uint64_t{1} << (record % 64); }

  std::size_t words_;
  std::vector<std::uint64_t> conflict_;
  plain_vector<reason> reasons_;
  std::vector<std::uint64_t> placements_;  // of each reason, a bit a record
};

}}}  // namespace neap::v0::detail
