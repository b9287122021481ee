// Sums over ranges of a row of numbers that are at least 0, in constant time and none of it by subtraction: one huge number
// takes nothing from the precision of ranges that it is not in. For each power of two the sums from the middle of each
// block of as many, to either side.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

class range_sum {
 public:
  explicit range_sum(std::vector<double> row = {}) : size_(row.size()), rows_(std::move(row)) {
    rows_.resize(size_ * levels(size_));
    auto const* const row_of = rows_.data();
    for (std::size_t half = 1, level = 1; half < size_; half *= 2, ++level) {
      auto* const sums = rows_.data() + level * size_;
      for (std::size_t middle = half; middle < size_; middle += 2 * half) {
        double sum = 0;
        for (std::size_t i = middle; i-- > middle - half;) sums[i] = sum += row_of[i];
        sum = 0;
        for (std::size_t i = middle; i < size_ && i < middle + half; ++i) sums[i] = sum += row_of[i];
      }
    }
  }
  /// Over [from, to), which is not empty.
  double operator()(std::size_t from, std::size_t to) const {
    auto const* const sums = rows_.data() + static_cast<std::size_t>(std::bit_width(from ^ (to - 1))) * size_;
    return to - from == 1 ? sums[from] : sums[from] + sums[to - 1];
  }
  double operator[](std::size_t i) const { return rows_[i]; }

  static std::size_t bytes(std::size_t size) { return size * levels(size) * sizeof(double); }

 private:
  static std::size_t levels(std::size_t size) {
    return size < 2 ? 1 : static_cast<std::size_t>(std::bit_width(size - 1)) + 1;
  }
  std::size_t size_;
  std::vector<double> rows_;  // the row itself, then level by level
};

}}  // namespace neap::v0
