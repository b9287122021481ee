// Sums of sets of records, to be looked up by their bytes (memory/guess/planar_search.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace neap::inline v0::detail {

struct set_sum {
  std::int64_t sum;
  std::uint32_t set;
  friend bool operator<(set_sum const& a, set_sum const& b) { return a.sum != b.sum ? a.sum < b.sum : a.set < b.set; }
};

/// Ascending by sum, with the first of each range of bytes known, of as many ranges as sums: a look-up is a few steps.
class set_sums {
 public:
  set_sums() = default;
  explicit set_sums(plain_vector<set_sum> sums) : sums_(static_cast<plain_vector<set_sum>&&>(sums)) {
    sort_list(sums_);
    if (sums_.empty()) return;
    most_ = sums_.back().sum;
    auto const bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most_)));
    shift_ = std::max(0, bits - static_cast<int>(std::bit_width(sums_.size())));
    starts_.resize(range_of(most_) + 2, 0);
    for (auto const& s : sums_) ++starts_[range_of(s.sum) + 1];
    for (std::size_t r = 1; r < starts_.size(); ++r) starts_[r] += starts_[r - 1];
  }

  bool empty() const { return sums_.empty(); }
  auto begin() const { return sums_.begin(); }
  auto end() const { return sums_.end(); }

  /// The first of at least so many bytes.
  auto from(std::int64_t bytes) const {
    bytes = std::max<std::int64_t>(0, bytes);
    if (bytes > most_) return sums_.end();
    auto const range = range_of(bytes);
    auto const last = sums_.begin() + starts_[range + 1];
    auto at = sums_.begin() + starts_[range];
    while (at != last && at->sum < bytes) ++at;
    return at;
  }

 private:
  std::size_t range_of(std::int64_t bytes) const { return static_cast<std::size_t>(bytes) >> shift_; }

  plain_vector<set_sum> sums_;
  plain_vector<std::int32_t> starts_;
  std::int64_t most_ = -1;
  int shift_ = 0;
};

}  // namespace neap::inline v0::detail
