// Sorting. std::sort and std::stable_sort make the compiler write a dozen functions for every order that a program sorts
// by; here plain data of one size shares one merge sort, which calls the order, and an order costs one function. Other
// elements are sorted by their places, and moved once.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

/// Whether the first of two elements comes before the second.
using erased_order = bool (*)(void const* order, void const* a, void const* b);

/// Sorts n elements of so many bytes that may be moved as bytes. Short runs by insertion, then merges of two runs, the
/// first of which is put aside; runs that follow one another already are left alone.
template <std::size_t Bytes>
[[gnu::noinline]] inline void sort_elements(unsigned char* const data, std::size_t const n, erased_order const before,
                                            void const* const order) {
  constexpr std::size_t run = 12;
  auto const at = [data](std::size_t i) { return data + i * Bytes; };
  for (std::size_t first = 0; first < n; first += run) {
    std::size_t const last = n - first < run ? n : first + run;
    for (std::size_t i = first + 1; i < last; ++i) {
      if (!before(order, at(i), at(i - 1))) continue;
      alignas(16) unsigned char x[Bytes];
      __builtin_memcpy(x, at(i), Bytes);
      std::size_t to = i;
      do __builtin_memcpy(at(to), at(to - 1), Bytes);
      while (--to > first && before(order, x, at(to - 1)));
      __builtin_memcpy(at(to), x, Bytes);
    }
  }
  if (n <= run) return;
  auto* const aside = static_cast<unsigned char*>(::operator new(n* Bytes));
  for (std::size_t width = run; width < n; width *= 2)
    for (std::size_t first = 0; n - first > width; first += 2 * width) {
      std::size_t const middle = first + width, last = n - middle < width ? n : middle + width;
      if (!before(order, at(middle), at(middle - 1))) {
        if (last == n) break;
        continue;
      }
      __builtin_memcpy(aside, at(first), width * Bytes);
      unsigned char const *left = aside, *const left_end = aside + width * Bytes, *right = at(middle);
      unsigned char const* const right_end = at(last);
      unsigned char* out = at(first);
      for (; left != left_end && right != right_end; out += Bytes)
        if (before(order, right, left)) __builtin_memcpy(out, right, Bytes), right += Bytes;
        else __builtin_memcpy(out, left, Bytes), left += Bytes;
      __builtin_memcpy(out, left, static_cast<std::size_t>(left_end - left));
      if (last == n) break;
    }
  ::operator delete(aside);
}

/// Sorts [first, last) by `before`; equal elements keep their order. O(n log n), n log n calls of `before` at most, which
/// may not throw; room for n elements more.
template <class T, class Before>
constexpr void sort_range(T* first, T* last, Before const& before) {
  static_assert(__is_trivially_copyable(T), "neap: plain data is sorted here, else std::sort");
  if (std::is_constant_evaluated()) {
    for (T* i = first; i != last; ++i)
      for (T* k = i; k != first && before(*k, *(k - 1)); --k) {
        T const x = *k;
        *k = *(k - 1), *(k - 1) = x;
      }
  } else if (last - first > 1) {
    sort_elements<sizeof(T)>(
        reinterpret_cast<unsigned char*>(first), static_cast<std::size_t>(last - first),
        [](void const* order, void const* a, void const* b) {
          return static_cast<bool>(
              (*static_cast<Before const*>(order))(*static_cast<T const*>(a), *static_cast<T const*>(b)));
        },
        static_cast<void const*>(&before));
  }
}
/// By <.
template <class T>
constexpr void sort_range(T* first, T* last) {
  sort_range(first, last, [](T const& a, T const& b) { return a < b; });
}
/// The same of a list of anything that can be moved.
template <class List, class Before>
constexpr void sort_list(List& list, Before const& before) {
  using element = typename List::value_type;
  if constexpr (__is_trivially_copyable(element)) {
    sort_range(list.data(), list.data() + list.size(), before);
  } else {
    plain_vector<element*> places;
    for (element& x : list) places.push_back(&x);
    sort_list(places, [&](element const* a, element const* b) { return before(*a, *b); });
    List sorted;
    sorted.reserve(list.size());
    for (element* x : places) sorted.push_back(static_cast<element&&>(*x));
    list.swap(sorted);
  }
}
template <class List>
constexpr void sort_list(List& list) {
  sort_range(list.data(), list.data() + list.size());
}

}}}  // namespace neap::v0::detail
