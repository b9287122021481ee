// Minima or maxima over ranges of a row, in constant time: for each power of two the best of as many from each place on.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace neap { inline namespace v0 {

enum class best_is : bool { least, most };

template <class T, best_is Which>
class range_best {
 public:
  explicit range_best(std::vector<T> const& row = {}) : size_(row.size()) {
    rows_.reserve(size_ * static_cast<std::size_t>(std::bit_width(size_)));
    rows_ = row;
    rows_.resize(size_ * static_cast<std::size_t>(std::bit_width(size_)));
    auto* last = rows_.data();
    for (std::size_t width = 1; 2 * width <= size_; width *= 2, last += size_)
      for (std::size_t i = 0; i + 2 * width <= size_; ++i) last[size_ + i] = best(last[i], last[i + width]);
  }
  /// Over [from, to), which is not empty.
  T operator()(std::size_t from, std::size_t to) const {
    auto const level = static_cast<std::size_t>(std::bit_width(to - from)) - 1;
    auto const* const row = rows_.data() + level * size_;
    return best(row[from], row[to - (std::size_t{1} << level)]);
  }

 private:
  static T best(T a, T b) { return (Which == best_is::least ? a < b : b < a) ? a : b; }
  std::size_t size_;
  std::vector<T> rows_;  // level by level
};

}}  // namespace neap::v0
