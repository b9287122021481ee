// A span over a vector or an array. std::span's own constructor takes any range and first proves that it is one: some
// ten milliseconds of every compilation for each type of elements, where a pointer and a count say as much.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace neap::inline v0 {

/// n elements from `first` on.
template <class T>
constexpr std::span<T const> span_of(T const* first, std::size_t n) {
  return std::span<T const>(first, n);
}
/// All elements of v.
template <class T>
constexpr std::span<T const> span_of(std::vector<T> const& v) {
  return std::span<T const>(v.data(), v.size());
}
template <class T>
constexpr std::span<T const> span_of(plain_vector<T> const& v) {
  return std::span<T const>(v.data(), v.size());
}

}  // namespace neap::inline v0
