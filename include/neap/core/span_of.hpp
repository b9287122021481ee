// A span over a vector or an array. std::span's own constructors first prove that what they take is a range, and that
// its pointers are iterators: some ten milliseconds of every compilation for each type of elements, where a pointer and
// a count say as much. So libstdc++'s span is made of its two members; where the library is another one, by its
// constructor.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {
/// libstdc++'s std::span, of a number of elements that is known when running.
template <class T>
struct span_members {
  T* first;
  std::size_t count;
};
}  // namespace detail

/// n elements from `first` on.
template <class T>
std::span<T> mutable_span_of(T* first, std::size_t n) {
#if defined(__GLIBCXX__) && !defined(__CUDACC__)
  static_assert(sizeof(std::span<T>) == sizeof(detail::span_members<T>));
  return __builtin_bit_cast(std::span<T>, detail::span_members<T>{first, n});
#else
  return std::span<T>(first, n);
#endif
}
/// n elements from `first` on, to be read.
template <class T>
std::span<T const> span_of(T const* first, std::size_t n) {
  return mutable_span_of<T const>(first, n);
}
/// All elements of v.
template <class T>
std::span<T const> span_of(std::vector<T> const& v) {
  return mutable_span_of<T const>(v.data(), v.size());
}
template <class T>
std::span<T const> span_of(plain_vector<T> const& v) {
  return mutable_span_of<T const>(v.data(), v.size());
}

}}  // namespace neap::v0
