// Lists as sets.
#pragma once

#include <algorithm>

namespace neap::inline v0::detail {

/// Sorts a list and leaves one of each. O(n log n).
template <class List>
void sort_once(List& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace neap::inline v0::detail
