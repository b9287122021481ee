// Every other element of a row side by side: what strides of two need before lanes can work on it. g++ 12 does not
// vectorise such loads.
#pragma once

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// to[i] = from[2 * i] for i < n; no element beyond from[2 * n - 2] is read.
template <class T>
inline void every_other(T const* from, std::int64_t n, T* to) {
  std::int64_t i = 0;
#if !defined(__CUDACC__)
  typedef T four __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
  for (; i + 4 < n; i += 4) {
    four const x = *reinterpret_cast<four const*>(from + 2 * i), y = *reinterpret_cast<four const*>(from + 2 * i + 4);
    *reinterpret_cast<four*>(to + i) = __builtin_shufflevector(x, y, 0, 2, 4, 6);
  }
#endif
  for (; i < n; ++i) to[i] = from[2 * i];
}

}}}  // namespace neap::v0::detail
