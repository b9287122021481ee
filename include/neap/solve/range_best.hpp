// Minima or maxima over ranges of a row, in constant time: for each power of two the best of as many from each place on.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap::inline v0 {

enum class best_is : bool { least, most };

template <class T, best_is Which>
class range_best {
 public:
  explicit range_best(std::vector<T> row = {}) : levels_{std::move(row)} {
    for (std::size_t width = 1; 2 * width <= levels_[0].size(); width *= 2) {
      auto const& last = levels_.back();
      std::vector<T> next(last.size() - width);
      for (std::size_t i = 0; i < next.size(); ++i) next[i] = best(last[i], last[i + width]);
      levels_.push_back(std::move(next));
    }
  }
  /// Over [from, to), which is not empty.
  T operator()(std::size_t from, std::size_t to) const {
    auto const level = static_cast<std::size_t>(std::bit_width(to - from)) - 1;
    return best(levels_[level][from], levels_[level][to - (std::size_t{1} << level)]);
  }

 private:
  static T best(T a, T b) { return (Which == best_is::least ? a < b : b < a) ? a : b; }
  std::vector<std::vector<T>> levels_;
};

}  // namespace neap::inline v0
