// Units that names carry: sizes are signed 64-bit bytes, times are seconds, work is floating-point operations. Sizes
// come from users and files, so products and sums that could overflow go through checked_mul and checked_add.
#pragma once

#include <neap/core/error.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

using bytes_t = std::int64_t;  // a size in bytes
using seconds_t = double;      // a duration in seconds
using flops_t = double;        // floating-point operations; a multiply-add counts 2

namespace detail {
[[noreturn]] void refuse_overflow();
}  // namespace detail

/// a * b for sizes; throws neap::error on overflow.
constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r{};
  if (__builtin_mul_overflow(a, b, &r)) detail::refuse_overflow();
  return r;
}

/// a + b for sizes; throws neap::error on overflow.
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r{};
  if (__builtin_add_overflow(a, b, &r)) detail::refuse_overflow();
  return r;
}

/// The smallest multiple of `alignment` (at least 1) that is not below `size`.
constexpr bytes_t align_up(bytes_t size, bytes_t alignment) {
  return checked_add(size, alignment - 1) / alignment * alignment;
}

inline namespace literals {
constexpr bytes_t operator""_KiB(unsigned long long n) { return checked_mul(static_cast<bytes_t>(n), 1LL << 10); }
constexpr bytes_t operator""_MiB(unsigned long long n) { return checked_mul(static_cast<bytes_t>(n), 1LL << 20); }
constexpr bytes_t operator""_GiB(unsigned long long n) { return checked_mul(static_cast<bytes_t>(n), 1LL << 30); }
}  // namespace literals

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/units.ipp>
#endif
