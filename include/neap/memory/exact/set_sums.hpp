// Sums of sets of records, to be looked up by their bytes (memory/exact/planar_search.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace neap::inline v0::detail {

template <class Unit>
struct set_sum {
  Unit sum;
  std::uint32_t set;
  friend constexpr bool operator<(set_sum const& a, set_sum const& b) {
    return a.sum != b.sum ? a.sum < b.sum : a.set < b.set;
  }
};

/// Ascending by sum, with the first of each range of bytes known, of as many ranges as sums: a look-up is a few steps.
template <class Unit>
class set_sums {
 public:
  constexpr set_sums() = default;
  constexpr explicit set_sums(plain_vector<set_sum<Unit>> sums)
      : sums_(static_cast<plain_vector<set_sum<Unit>>&&>(sums)) {
    sort_list(sums_);
    if (sums_.empty()) return;
    most_ = sums_.back().sum;
    auto const bits = static_cast<int>(std::bit_width(static_cast<std::make_unsigned_t<Unit>>(most_)));
    shift_ = std::max(0, bits - static_cast<int>(std::bit_width(sums_.size())));
    starts_.resize(range_of(most_) + 2, 0);
    for (auto const& s : sums_) ++starts_[range_of(s.sum) + 1];
    for (std::size_t r = 1; r < starts_.size(); ++r) starts_[r] += starts_[r - 1];
  }

  constexpr bool empty() const { return sums_.empty(); }
  constexpr auto begin() const { return sums_.begin(); }
  constexpr auto end() const { return sums_.end(); }

  /// The first of at least so many bytes.
  constexpr auto from(Unit bytes) const {
    bytes = std::max<Unit>(0, bytes);
    if (bytes > most_) return sums_.end();
    auto const range = range_of(bytes);
    auto const last = sums_.begin() + starts_[range + 1];
    auto at = sums_.begin() + starts_[range];
    while (at != last && at->sum < bytes) ++at;
    return at;
  }

 private:
  constexpr std::size_t range_of(Unit bytes) const { return static_cast<std::size_t>(bytes) >> shift_; }

  plain_vector<set_sum<Unit>> sums_;
  plain_vector<std::int32_t> starts_;
  Unit most_ = -1;
  int shift_ = 0;
};

}  // namespace neap::inline v0::detail
