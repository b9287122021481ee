// Lists as sets.
#pragma once

#include <neap/core/sort.hpp>

#include <algorithm>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

/// Sorts a list and leaves one of each. O(n log n).
template <class List>
void sort_once(List& list) {
  if constexpr (std::is_trivially_copyable_v<std::remove_reference_t<decltype(*list.begin())>>) sort_list(list);
  else std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}}}  // namespace neap::v0::detail
