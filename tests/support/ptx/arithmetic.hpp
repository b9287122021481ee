// Instructions that compute in registers: integers, logic, floats of 16 to 64 bits, comparisons, conversions.
#pragma once

#include "execution.hpp"
#include "numbers.hpp"
#include "program.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace neap::testing::ptx::arithmetic {

template <class T>
T get(std::uint64_t v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(v);
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(v));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(v);
  } else {
    return {static_cast<std::uint16_t>(v)};
  }
}
template <class T>
std::uint64_t put(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(x);
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(x);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(x);
  } else {
    return x.bits;
  }
}

template <class T>
inline constexpr bool is_float = !std::is_integral_v<T>;

// Bits of instruction::mode of float arithmetic.
inline constexpr std::uint8_t mode_rounding = 7, mode_relu = 8, mode_nan = 16, mode_absolute = 32;

inline rounding rounding_of(instruction const& i) { return static_cast<rounding>(i.mode & mode_rounding); }

template <class T>
T flushed(T x, instruction const& i) {
  if (!(i.flags & flag_ftz)) return x;
  if constexpr (std::is_same_v<T, float>) return flush(x);
  if constexpr (std::is_same_v<T, half>)
    if (!(x.bits & 0x7c00)) return {static_cast<std::uint16_t>(x.bits & 0x8000)};
  return x;
}
template <class T>
T finished(double x, instruction const& i) {
  if (i.flags & flag_sat) x = std::isnan(x) ? 0 : std::clamp(x, 0.0, 1.0);
  if ((i.mode & mode_relu) && x < 0) x = 0;
  return flushed(from_double<T>(x, rounding_of(i)), i);
}

template <class T, class F>
void unary(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  for_lanes(m, [&](int l) { d[l] = put(F{}(i, get<T>(a[l]))); });
}
template <class T, class F>
void binary(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  auto const* const b = w.operand(i, 2);
  for_lanes(m, [&](int l) { d[l] = put(F{}(i, get<T>(a[l]), get<T>(b[l]))); });
}
template <class T, class F>
void ternary(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  auto const* const b = w.operand(i, 2);
  auto const* const c = w.operand(i, 3);
  for_lanes(m, [&](int l) { d[l] = put(F{}(i, get<T>(a[l]), get<T>(b[l]), get<T>(c[l]))); });
}
/// The same for both halves of a register.
template <class F, class T, class... Rows>
void both(warp& w, instruction const& i, lanes m, Rows... rows) {
  auto* const d = w.operand(i, 0);
  for_lanes(m, [&](int l) {
    std::uint64_t const low = put<T>(F{}(i, get<T>(rows[l])...)), high = put<T>(F{}(i, get<T>(rows[l] >> 16)...));
    d[l] = low | high << 16;
  });
}
template <class T, class F>
void packed_unary(warp& w, instruction const& i, lanes m) {
  both<F, T>(w, i, m, w.operand(i, 1));
}
template <class T, class F>
void packed_binary(warp& w, instruction const& i, lanes m) {
  both<F, T>(w, i, m, w.operand(i, 1), w.operand(i, 2));
}
template <class T, class F>
void packed_ternary(warp& w, instruction const& i, lanes m) {
  both<F, T>(w, i, m, w.operand(i, 1), w.operand(i, 2), w.operand(i, 3));
}

template <class T>
using wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, int128, uint128>>>;
template <class T>
using bits_of = std::make_unsigned_t<T>;

/// A double that was rounded to nearest, rounded as the instruction says; `error`: exact - s.
inline double nudged(instruction const& i, double s, double error) {
  switch (rounding_of(i)) {
    case rounding::down: return error < 0 ? std::nextafter(s, -INFINITY) : s;
    case rounding::up: return error > 0 ? std::nextafter(s, INFINITY) : s;
    case rounding::zero: return error != 0 && (error < 0) == (s > 0) ? std::nextafter(s, 0) : s;
    default: return s;
  }
}

// ---- add, sub, mul, fma, div, min, max  -----------------------------------------------------------------------------
struct add {
  template <class T>
  T operator()(instruction const& i, T a, T b) const {
    if constexpr (is_float<T>) {
      if constexpr (std::is_same_v<T, double>) {
        return directed(i, a, b);
      } else {
        return finished<T>(add_odd(to_double(flushed(a, i)), to_double(flushed(b, i))), i);
      }
    } else {
      if (i.flags & flag_sat) {
        T r{};
        if (__builtin_add_overflow(a, b, &r)) r = a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
        return r;
      }
      return static_cast<T>(static_cast<bits_of<T>>(a) + static_cast<bits_of<T>>(b));
    }
  }
  static double directed(instruction const& i, double a, double b) {
    double const s = plain_add(a, b), t = plain_add(s, -a);
    double const error = plain_add(plain_add(a, -plain_add(s, -t)), plain_add(b, -t));
    return nudged(i, s, error);
  }
};
struct negate {
  template <class T>
  T operator()(instruction const& i, T a) const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - static_cast<bits_of<T>>(a));
    else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) return flushed(-a, i);
    else return flushed(T{static_cast<std::uint16_t>(a.bits ^ 0x8000)}, i);
  }
};
struct subtract {
  template <class T>
  T operator()(instruction const& i, T a, T b) const {
    if constexpr (is_float<T>) {
      instruction none;
      return add{}(i, a, negate{}(none, b));
    } else {
      if (i.flags & flag_sat) {
        T r{};
        if (__builtin_sub_overflow(a, b, &r)) r = a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
        return r;
      }
      return static_cast<T>(static_cast<bits_of<T>>(a) - static_cast<bits_of<T>>(b));
    }
  }
};
struct multiply {
  template <class T>
  T operator()(instruction const& i, T a, T b) const {
    if constexpr (std::is_same_v<T, double>) {
      double const p = plain_mul(a, b);
      if (rounding_of(i) == rounding::nearest) return p;
      return nudged(i, p, std::fma(a, b, -p));
    } else if constexpr (is_float<T>) {
      return finished<T>(plain_mul(to_double(flushed(a, i)), to_double(flushed(b, i))), i);
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
  }
};
struct fuse {
  template <class T>
  T operator()(instruction const& i, T a, T b, T c) const {
    if constexpr (std::is_same_v<T, double>) {
      return std::fma(a, b, c);
    } else {
      return finished<T>(fma_odd(to_double(flushed(a, i)), to_double(flushed(b, i)), to_double(flushed(c, i))), i);
    }
  }
};
// Without flags and rounding to nearest the machine's own instructions do.
struct plain {
  struct add {
    template <class T>
    T operator()(instruction const&, T a, T b) const {
      return a + b;
    }
  };
  struct subtract {
    template <class T>
    T operator()(instruction const&, T a, T b) const {
      return a - b;
    }
  };
  struct multiply {
    template <class T>
    T operator()(instruction const&, T a, T b) const {
      return a * b;
    }
  };
  struct fuse {
    template <class T>
    T operator()(instruction const&, T a, T b, T c) const {
      return std::fma(a, b, c);
    }
  };
};
struct divide {
  template <class T>
  T operator()(instruction const& i, T a, T b) const {
    if constexpr (std::is_same_v<T, double>) {
      return a / b;
    } else if constexpr (is_float<T>) {
      return finished<T>(div_odd(to_double(flushed(a, i)), to_double(flushed(b, i))), i);
    } else {
      if (b == 0) return static_cast<T>(-1);
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return static_cast<T>(0 - static_cast<bits_of<T>>(a));
      return static_cast<T>(a / b);
    }
  }
};
struct remainder {
  template <class T>
  T operator()(instruction const&, T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};
template <bool Max>
struct extreme {
  template <class T>
  T operator()(instruction const& i, T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      T r = Max ? std::max(a, b) : std::min(a, b);
      if constexpr (std::is_signed_v<T>)
        if (i.mode & mode_relu) r = std::max(r, T{0});
      return r;
    } else {
      double const x = to_double(flushed(a, i)), y = to_double(flushed(b, i));
      double r = 0;
      if (std::isnan(x) || std::isnan(y)) {
        r = (i.mode & mode_nan) || (std::isnan(x) && std::isnan(y)) ? NAN : std::isnan(x) ? y : x;
      } else if (i.mode & mode_absolute) {
        r = Max ? std::max(std::fabs(x), std::fabs(y)) : std::min(std::fabs(x), std::fabs(y));
        if (std::signbit(x) != std::signbit(y)) r = -r;
      } else if (x == y) {
        r = (std::signbit(x) == Max) ? y : x;  // -0 is less than +0
      } else {
        r = (x < y) == Max ? y : x;
      }
      return finished<T>(r, i);
    }
  }
};
struct absolute {
  template <class T>
  T operator()(instruction const& i, T a) const {
    if constexpr (std::is_integral_v<T>) return a < 0 ? static_cast<T>(0 - static_cast<bits_of<T>>(a)) : a;
    else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) return flushed(std::fabs(a), i);
    else return flushed(T{static_cast<std::uint16_t>(a.bits & 0x7fff)}, i);
  }
};
struct copy_sign {  // of the first to the second
  template <class T>
  T operator()(instruction const&, T a, T b) const {
    return std::copysign(b, a);
  }
};

template <class T, bool Add>
void multiply_wide(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2), *const c = w.operand(i, Add ? 3 : 1);
  for_lanes(m, [&](int l) {
    auto const p = static_cast<std::make_unsigned_t<wide<T>>>(static_cast<wide<T>>(get<T>(a[l])) * get<T>(b[l]));
    d[l] = static_cast<std::make_unsigned_t<wide<T>>>(p + (Add ? static_cast<std::make_unsigned_t<wide<T>>>(c[l]) : 0));
  });
}
struct high {
  template <class T>
  T operator()(instruction const&, T a, T b) const {
    return static_cast<T>((static_cast<wide<T>>(a) * b) >> (sizeof(T) * 8));
  }
};
struct add_high {
  template <class T>
  T operator()(instruction const& i, T a, T b, T c) const {
    return add{}(i, high{}(i, a, b), c);
  }
};
struct add_low {
  template <class T>
  T operator()(instruction const&, T a, T b, T c) const {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) +
                          static_cast<std::uint64_t>(c));
  }
};
template <class T>
T low24(T x) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << 8) >> 8);
  else return x & 0xffffff;
}
struct multiply24 {
  template <class T>
  T operator()(instruction const&, T a, T b) const {
    return static_cast<T>(static_cast<std::uint64_t>(low24(a)) * static_cast<std::uint64_t>(low24(b)));
  }
};
struct add24 {
  template <class T>
  T operator()(instruction const&, T a, T b, T c) const {
    return static_cast<T>(static_cast<std::uint64_t>(low24(a)) * static_cast<std::uint64_t>(low24(b)) +
                          static_cast<std::uint64_t>(c));
  }
};
struct distance {
  template <class T>
  T operator()(instruction const&, T a, T b, T c) const {
    return static_cast<T>(static_cast<bits_of<T>>(c) + (a < b
                                                            ? static_cast<bits_of<T>>(b) - static_cast<bits_of<T>>(a)
                                                            : static_cast<bits_of<T>>(a) - static_cast<bits_of<T>>(b)));
  }
};

/// add.cc, addc, sub.cc, subc, mad.lo.cc, madc...: carry in and out in a row of their own (the last operand).
/// mode: 1 reads the carry, 2 writes it, 4 subtracts, 8 multiplies (low), 16 (high).
template <class T>
void with_carry(warp& w, instruction const& i, lanes m) {
  using u = bits_of<T>;
  bool const product = i.mode & 24;
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2), *const c = w.operand(i, product ? 3 : 2);
  auto* const carry = w.operand(i, product ? 4 : 3);
  for_lanes(m, [&](int l) {
    u x = static_cast<u>(a[l]);
    if (product) {
      auto const p = static_cast<wide<T>>(get<T>(a[l])) * static_cast<wide<T>>(get<T>(b[l]));
      x = static_cast<u>(i.mode & 16 ? p >> (sizeof(T) * 8) : p);
    }
    u const y = static_cast<u>(c[l]);
    bool const in = (i.mode & 1) && carry[l];
    u r{}, s{};
    bool const one = i.mode & 4 ? __builtin_sub_overflow(x, y, &r) : __builtin_add_overflow(x, y, &r);
    bool const two = i.mode & 4 ? __builtin_sub_overflow(r, u{in}, &s) : __builtin_add_overflow(r, u{in}, &s);
    d[l] = s;
    if (i.mode & 2) carry[l] = one || two;
  });
}

// ---- logic, shifts, bits  -------------------------------------------------------------------------------------------
struct bit_and {
  template <class T>
  T operator()(instruction const&, T a, T b) const {
    return a & b;
  }
};
struct bit_or {
  template <class T>
  T operator()(instruction const&, T a, T b) const {
    return a | b;
  }
};
struct bit_xor {
  template <class T>
  T operator()(instruction const&, T a, T b) const {
    return a ^ b;
  }
};
struct bit_not {
  template <class T>
  T operator()(instruction const&, T a) const {
    return static_cast<T>(~a);
  }
};
struct logical_not {
  template <class T>
  T operator()(instruction const&, T a) const {
    return !a;
  }
};
template <class T, bool Left>
void shift(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2);
  constexpr std::uint32_t size = sizeof(T) * 8;
  for_lanes(m, [&](int l) {
    auto const n = static_cast<std::uint32_t>(b[l]);
    T const x = get<T>(a[l]);
    if constexpr (Left) d[l] = n >= size ? 0 : put<T>(static_cast<T>(static_cast<bits_of<T>>(x) << n));
    else
      d[l] = put<T>(static_cast<T>(x >> (n >= size ? (std::is_signed_v<T> ? size - 1 : 0) : n)) &
                    (n >= size && std::is_unsigned_v<T> ? T{0} : static_cast<T>(~T{0})));
  });
}
template <bool Left>
struct funnel {  // mode 1: clamp
  template <class T>
  T operator()(instruction const& i, T a, T b, T c) const {
    std::uint32_t const n = i.mode ? std::min<std::uint32_t>(c, 32) : c & 31;
    std::uint64_t const both = static_cast<std::uint64_t>(b) << 32 | a;
    return static_cast<T>(Left ? both << n >> 32 : both >> n);
  }
};
struct permute {
  template <class T>
  T operator()(instruction const& i, T a, T b, T c) const {
    std::uint64_t const bytes = static_cast<std::uint64_t>(b) << 32 | a;
    std::uint32_t r = 0;
    for (unsigned k = 0; k < 4; ++k) {
      unsigned selector = c >> (4 * k) & 15;
      unsigned const s = c & 3;
      switch (i.mode) {
        case 1: selector = (s + k) & 7; break;            // f4e
        case 2: selector = (s + 8 - k) & 7; break;        // b4e
        case 3: selector = s; break;                      // rc8
        case 4: selector = std::max(k, s); break;         // ecl
        case 5: selector = std::min(k, s); break;         // ecr
        case 6: selector = (s & 1) * 2 + (k & 1); break;  // rc16
        default: break;
      }
      auto byte = static_cast<std::uint8_t>(bytes >> (8 * (selector & 7)));
      if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
      r |= static_cast<std::uint32_t>(byte) << (8 * k);
    }
    return r;
  }
};
struct lookup3 {
  template <class T>
  T operator()(instruction const& i, T a, T b, T c) const {
    T r = 0;
    for (unsigned k = 0; k < 8; ++k)
      if (i.immediate >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
  }
};
template <class T>
void extract_field(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2), *const c = w.operand(i, 3);
  constexpr unsigned size = sizeof(T) * 8;
  for_lanes(m, [&](int l) {
    unsigned const from = b[l] & 255, n = c[l] & 255;
    auto const x = static_cast<bits_of<T>>(a[l]);
    bool const sign = std::is_signed_v<T> && n && (x >> std::min(from + n - 1, size - 1) & 1);
    bits_of<T> r = 0;
    for (unsigned k = 0; k < size; ++k) {
      bool const bit = k < n && from + k < size ? x >> (from + k) & 1 : sign;
      r |= static_cast<bits_of<T>>(bit) << k;
    }
    d[l] = r;
  });
}
template <class T>
void insert_field(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2), *const c = w.operand(i, 3),
                    *const e = w.operand(i, 4);
  constexpr unsigned size = sizeof(T) * 8;
  for_lanes(m, [&](int l) {
    unsigned const from = c[l] & 255, n = e[l] & 255;
    T r = static_cast<T>(b[l]);
    for (unsigned k = 0; k < n && from + k < size; ++k)
      r = static_cast<T>((r & ~(T{1} << (from + k))) | (static_cast<T>(a[l] >> k & 1) << (from + k)));
    d[l] = r;
  });
}
template <class T>
void find_bit(warp& w, instruction const& i, lanes m) {  // mode 1: as a shift
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  for_lanes(m, [&](int l) {
    T x = get<T>(a[l]);
    if constexpr (std::is_signed_v<T>)
      if (x < 0) x = static_cast<T>(~x);
    int const n = static_cast<int>(sizeof(T) * 8) - 1 - std::countl_zero(static_cast<bits_of<T>>(x));
    d[l] = n < 0 ? 0xffffffffu : static_cast<std::uint32_t>(i.mode ? static_cast<int>(sizeof(T) * 8) - 1 - n : n);
  });
}
struct reverse_bits {
  template <class T>
  T operator()(instruction const&, T a) const {
    T r = 0;
    for (unsigned k = 0; k < sizeof(T) * 8; ++k) r |= static_cast<T>(a >> k & 1) << (sizeof(T) * 8 - 1 - k);
    return r;
  }
};
struct count_ones {
  template <class T>
  std::uint32_t operator()(instruction const&, T a) const {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct count_zeros {
  template <class T>
  std::uint32_t operator()(instruction const&, T a) const {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct mask_bits {  // mode 1: clamp
  template <class T>
  T operator()(instruction const& i, T a, T b) const {
    std::uint32_t const from = i.mode ? std::min<std::uint32_t>(a, 32) : a & 31,
                        n = i.mode ? std::min<std::uint32_t>(b, 32) : b & 31;
    std::uint64_t const ones = (std::uint64_t{1} << n) - 1;
    return static_cast<T>(ones << from);
  }
};
template <bool SignedA, bool SignedB>
struct dot4 {
  template <class T>
  T operator()(instruction const&, T a, T b, T c) const {
    for (unsigned k = 0; k < 4; ++k) {
      auto const x = static_cast<std::uint8_t>(a >> 8 * k), y = static_cast<std::uint8_t>(b >> 8 * k);
      c += static_cast<std::uint32_t>((SignedA ? static_cast<std::int8_t>(x) : static_cast<int>(x)) *
                                      (SignedB ? static_cast<std::int8_t>(y) : static_cast<int>(y)));
    }
    return c;
  }
};

// ---- moves and choices  ---------------------------------------------------------------------------------------------
inline void move(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  for_lanes(m, [&](int l) { d[l] = a[l]; });
}
/// One register into several, or several into one; width: bytes of each part.
inline void unpack(warp& w, instruction const& i, lanes m) {
  auto const* const a = w.operand(i, i.vector);
  std::uint64_t const mask = i.width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * i.width)) - 1;
  for_lanes(m, [&](int l) {
    std::uint64_t const x = a[l];
    for (int k = 0; k < i.vector; ++k) w.operand(i, k)[l] = x >> (8 * i.width * k) & mask;
  });
}
inline void pack(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  std::uint64_t const mask = (std::uint64_t{1} << (8 * i.width)) - 1;
  for_lanes(m, [&](int l) {
    std::uint64_t x = 0;
    for (int k = 0; k < i.vector; ++k) x |= (w.operand(i, 1 + k)[l] & mask) << (8 * i.width * k);
    d[l] = x;
  });
}
inline void select(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2), *const p = w.operand(i, 3);
  for_lanes(m, [&](int l) { d[l] = p[l] ? a[l] : b[l]; });
}
template <class T>
void select_by_sign(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2), *const c = w.operand(i, 3);
  for_lanes(m, [&](int l) { d[l] = get<T>(c[l]) >= T{0} ? a[l] : b[l]; });
}

// ---- comparisons  ---------------------------------------------------------------------------------------------------
enum class relation : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <relation R, class T>
bool holds(instruction const& i, T x, T y) {
  auto const compare = [](auto a, auto b) {
    if constexpr (R == relation::eq || R == relation::equ) return a == b;
    else if constexpr (R == relation::ne || R == relation::neu) return a != b;
    else if constexpr (R == relation::lt || R == relation::ltu) return a < b;
    else if constexpr (R == relation::le || R == relation::leu) return a <= b;
    else if constexpr (R == relation::gt || R == relation::gtu) return a > b;
    else return a >= b;
  };
  if constexpr (is_float<T>) {
    double const a = to_double(flushed(x, i)), b = to_double(flushed(y, i));
    bool const unordered = std::isnan(a) || std::isnan(b);
    if constexpr (R == relation::num) return !unordered;
    else if constexpr (R == relation::nan) return unordered;
    else return unordered ? R >= relation::equ : compare(a, b);
  } else {
    return compare(x, y);
  }
}
/// operands: d, second d (the complement) or the same, a, b, predicate or the same as a.
/// mode: 0 alone, 1 and, 2 or, 3 xor with the predicate; flag_no_result: there is no second d.
inline bool combined(int mode, bool c, bool p) {
  return mode == 1 ? c && p : mode == 2 ? c || p : mode == 3 ? c != p : c;
}
template <class T, relation R>
void compare(warp& w, instruction const& i, lanes m) {
  auto *const d = w.operand(i, 0), *const q = w.operand(i, 1);
  auto const *const a = w.operand(i, 2), *const b = w.operand(i, 3), *const p = w.operand(i, 4);
  for_lanes(m, [&](int l) {
    bool const c = holds<R, T>(i, get<T>(a[l]), get<T>(b[l]));
    bool const with = p[l];
    if (!(i.flags & flag_no_result)) q[l] = combined(i.mode, !c, with);
    d[l] = combined(i.mode, c, with);
  });
}
/// setp of two halves: one predicate for each.
template <class T, relation R>
void compare_packed(warp& w, instruction const& i, lanes m) {
  auto *const d = w.operand(i, 0), *const q = w.operand(i, 1);
  auto const *const a = w.operand(i, 2), *const b = w.operand(i, 3), *const p = w.operand(i, 4);
  for_lanes(m, [&](int l) {
    bool const low = holds<R, T>(i, get<T>(a[l]), get<T>(b[l])),
               high = holds<R, T>(i, get<T>(a[l] >> 16), get<T>(b[l] >> 16));
    bool const with = p[l];
    d[l] = combined(i.mode, low, with);
    if (!(i.flags & flag_no_result)) q[l] = combined(i.mode, high, with);
  });
}
/// set: immediate is what a lane that holds gets (all ones or 1.0), width 16 if both halves are compared.
template <class T, relation R>
void set(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 2), *const b = w.operand(i, 3), *const p = w.operand(i, 4);
  for_lanes(m, [&](int l) {
    bool const with = p[l];
    auto const yes = static_cast<std::uint64_t>(i.immediate);
    if (i.width == 2) {
      bool const low = holds<R, T>(i, get<T>(a[l]), get<T>(b[l])),
                 high = holds<R, T>(i, get<T>(a[l] >> 16), get<T>(b[l] >> 16));
      d[l] = (combined(i.mode, low, with) ? yes : 0) | (combined(i.mode, high, with) ? yes << 16 : 0);
    } else {
      d[l] = combined(i.mode, holds<R, T>(i, get<T>(a[l]), get<T>(b[l])), with) ? yes : 0;
    }
  });
}
struct test_property {  // mode: 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal
  template <class T>
  std::uint32_t operator()(instruction const& i, T a) const {
    switch (i.mode) {
      case 0: return std::isfinite(a);
      case 1: return std::isinf(a);
      case 2: return !std::isnan(a);
      case 3: return std::isnan(a);
      case 4: return std::isnormal(a);
      default: return std::fpclassify(a) == FP_SUBNORMAL;
    }
  }
};

// ---- functions: computed in double, rounded once  -------------------------------------------------------------------
template <double (*F)(double)>
struct function {
  template <class T>
  T operator()(instruction const& i, T a) const {
    return finished<T>(F(to_double(flushed(a, i))), i);
  }
};
inline double f_sin(double x) { return std::sin(x); }
inline double f_cos(double x) { return std::cos(x); }
inline double f_ex2(double x) { return std::exp2(x); }
inline double f_lg2(double x) { return std::log2(x); }
inline double f_tanh(double x) { return std::tanh(x); }
inline double f_rsqrt(double x) { return 1 / std::sqrt(x); }
inline double f_sqrt(double x) { return sqrt_odd(x); }
inline double f_rcp(double x) { return div_odd(1, x); }
/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 keep the upper 32 bits of their argument and result.
template <double (*F)(double)>
struct coarse {
  double operator()(instruction const&, double a) const {
    auto const upper = [](double x) {
      return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0xffffffff00000000u);
    };
    double const r = F(upper(a));
    return upper(std::fpclassify(r) == FP_SUBNORMAL ? std::copysign(0.0, r) : r);
  }
};

// ---- conversions  ---------------------------------------------------------------------------------------------------
/// mode: rounding, mode_nan: round to a whole number in the same format, mode_relu.
template <class D, class S>
void convert(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  auto const r = rounding_of(i);
  for_lanes(m, [&](int l) {
    if constexpr (is_float<S>) {
      S const s = flushed(get<S>(a[l]), i);
      double const x = to_double(s);
      if constexpr (is_float<D>) {
        double const y = i.mode & mode_nan ? round_to_whole(x, r) : x;
        if (i.mode & mode_nan) {
          instruction nearest = i;
          nearest.mode = 0;
          d[l] = put(finished<D>(y, nearest));
        } else {
          d[l] = put(finished<D>(y, i));
        }
      } else {
        d[l] = put(to_integer<D>(x, r));
      }
    } else {
      S const x = get<S>(a[l]);
      if constexpr (is_float<D>) {
        D v = from_integer<D>(x, r);
        if (i.flags & flag_sat) v = finished<D>(to_double(v), i);
        d[l] = put(v);
      } else if (i.flags & flag_sat) {
        using limits = std::numeric_limits<D>;
        auto const v = static_cast<int128>(x);
        d[l] = put(v < limits::min() ? limits::min() : v > limits::max() ? limits::max() : static_cast<D>(x));
      } else {
        // The destination register may be wider than its type: extended by the sign of the type.
        d[l] = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<D>(x)));
        if constexpr (std::is_unsigned_v<D>) d[l] = static_cast<D>(x);
      }
    }
  });
}
/// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
template <class D>
void convert_two(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const *const a = w.operand(i, 1), *const b = w.operand(i, 2);
  for_lanes(m, [&](int l) {
    auto const one = [&](std::uint64_t v) { return put(finished<D>(to_double(get<float>(v)), i)); };
    d[l] = one(b[l]) | one(a[l]) << 16;
  });
}
inline void convert_tf32(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  for_lanes(m, [&](int l) {
    float x = to_tf32(get<float>(a[l]), rounding_of(i));
    if ((i.mode & mode_relu) && x < 0) x = 0;
    d[l] = put(x);
  });
}

}  // namespace neap::testing::ptx::arithmetic
