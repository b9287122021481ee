// Arithmetic of PTX's number types: encodings of narrow floats, directed rounding, conversions that saturate.
// A result is computed in double, rounded to odd where double is not exact, and rounded once more to its type.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace neap::testing::ptx {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

struct half {
  std::uint16_t bits = 0;
};
struct bfloat {
  std::uint16_t bits = 0;
};

enum class rounding : std::uint8_t { nearest, zero, down, up, nearest_away };

/// 2^k, a normal number. (std::ldexp and std::frexp take a third of the time of products of matrices.)
inline double power_of_two(int k) { return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); }

/// Bits of `x` in a format of 1 + `exponent` + `mantissa` bits, at most 8 of them in the exponent. NaN gives the
/// canonical NaN of PTX.
inline std::uint32_t encode(double x, int mantissa, int exponent, rounding r = rounding::nearest) {
  std::uint32_t const sign = std::signbit(x) ? 1u << (mantissa + exponent) : 0;
  std::uint32_t const infinity = ((1u << exponent) - 1) << mantissa;
  if (std::isnan(x)) return infinity | ((1u << mantissa) - 1);
  if (std::isinf(x)) return sign | infinity;
  if (x == 0) return sign;
  int const bias = (1 << (exponent - 1)) - 1;
  // A subnormal double is below the least exponent, whatever it is.
  int const e = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
  int lsb = std::max(e, 1 - bias) - mantissa;
  double const q = std::fabs(x) * power_of_two(-lsb), whole = std::floor(q), rest = q - whole;
  auto n = static_cast<std::uint64_t>(whole);
  switch (r) {
    case rounding::nearest: n += rest > 0.5 || (rest == 0.5 && (n & 1)); break;
    case rounding::nearest_away: n += rest >= 0.5; break;
    case rounding::zero: break;
    case rounding::down: n += rest > 0 && sign; break;
    case rounding::up: n += rest > 0 && !sign; break;
  }
  if (n >> (mantissa + 1)) n >>= 1, ++lsb;
  if (!(n >> mantissa)) return sign | static_cast<std::uint32_t>(n);
  int const biased = lsb + mantissa + bias;
  if (biased >= (1 << exponent) - 1) {
    bool const to_infinity = r == rounding::nearest || r == rounding::nearest_away || (r == rounding::down && sign) ||
                             (r == rounding::up && !sign);
    return sign | (to_infinity ? infinity : infinity - 1);
  }
  return sign | (static_cast<std::uint32_t>(biased) << mantissa) |
         (static_cast<std::uint32_t>(n) & ((1u << mantissa) - 1));
}

inline double decode(std::uint32_t bits, int mantissa, int exponent) {
  int const bias = (1 << (exponent - 1)) - 1;
  auto const e = static_cast<int>((bits >> mantissa) & ((1u << exponent) - 1));
  std::uint32_t const m = bits & ((1u << mantissa) - 1);
  double x = 0;
  if (e == (1 << exponent) - 1) {
    x = m ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (e == 0) {
    x = m * power_of_two(1 - bias - mantissa);
  } else {
    x = (m | (1u << mantissa)) * power_of_two(e - bias - mantissa);
  }
  return (bits >> (mantissa + exponent)) & 1 ? -x : x;
}

inline double to_double(half x) { return decode(x.bits, 10, 5); }
inline double to_double(bfloat x) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16));
}
inline double to_double(float x) { return x; }
inline double to_double(double x) { return x; }

template <class T>
T from_double(double x, rounding r = rounding::nearest) {
  if constexpr (std::is_same_v<T, half>) {
    return {static_cast<std::uint16_t>(encode(x, 10, 5, r))};
  } else if constexpr (std::is_same_v<T, bfloat>) {
    return {static_cast<std::uint16_t>(encode(x, 7, 8, r))};
  } else if constexpr (std::is_same_v<T, float>) {
    return r == rounding::nearest && !std::isnan(x) ? static_cast<float>(x) : std::bit_cast<float>(encode(x, 23, 8, r));
  } else {
    return x;
  }
}

/// `s`, a result rounded to nearest whose error is `exact - s`, rounded to odd instead.
inline double to_odd(double s, double error) {
  if (error == 0 || !std::isfinite(s) || !std::isfinite(error)) return s;
  if ((error < 0) != (s < 0)) s = std::nextafter(s, 0.0);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(s) | 1);
}
/// The products and sums below are not contracted to fused operations: each is a function of its own.
[[gnu::noinline]] inline double plain_add(double a, double b) { return a + b; }
[[gnu::noinline]] inline double plain_mul(double a, double b) { return a * b; }

inline double add_odd(double a, double b) {
  double const s = plain_add(a, b), t = plain_add(s, -a);
  return to_odd(s, plain_add(plain_add(a, -plain_add(s, -t)), plain_add(b, -t)));
}
/// Exact for factors of at most 26 bits.
inline double fma_odd(double a, double b, double c) { return add_odd(plain_mul(a, b), c); }
inline double div_odd(double a, double b) {
  double const q = a / b;
  if (!std::isfinite(q) || q == 0) return q;
  double const rest = std::fma(-q, b, a);
  return to_odd(q, b < 0 ? -rest : rest);
}
inline double sqrt_odd(double a) {
  double const s = std::sqrt(a);
  return std::isfinite(s) && s != 0 ? to_odd(s, std::fma(-s, s, a)) : s;
}

inline float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

inline double round_to_whole(double x, rounding r) {
  switch (r) {
    case rounding::nearest: return std::nearbyint(x);
    case rounding::zero: return std::trunc(x);
    case rounding::down: return std::floor(x);
    case rounding::up: return std::ceil(x);
    case rounding::nearest_away: return std::round(x);
  }
  return x;
}

/// Float to integer: out of range gives the nearest end; NaN gives 0, in 64 bits the least signed value or 2^63.
template <class I>
I to_integer(double x, rounding r) {
  using limits = std::numeric_limits<I>;
  if (std::isnan(x)) return sizeof(I) == 8 ? static_cast<I>(std::uint64_t{1} << 63) : I{0};
  double const w = round_to_whole(x, r);
  if (w >= std::ldexp(1.0, limits::digits)) return limits::max();
  if (w < static_cast<double>(limits::min())) return limits::min();
  return static_cast<I>(w);
}

/// Integer to float, rounded once.
template <class F, class I>
F from_integer(I x, rounding r) {
  auto const d = static_cast<double>(x);
  auto const error = static_cast<double>(static_cast<int128>(x) - static_cast<int128>(d));
  if constexpr (std::is_same_v<F, double>) {
    if (error == 0 || r == rounding::nearest) return d;
    double const towards = r == rounding::up ? INFINITY : r == rounding::down ? -INFINITY : 0.0;
    bool const beyond = r == rounding::up ? error > 0 : r == rounding::down ? error < 0 : (error < 0) == (d > 0);
    return beyond ? std::nextafter(d, towards) : d;
  } else {
    return from_double<F>(to_odd(d, error), r);
  }
}

/// f32 to tf32: 10 bits of mantissa.
inline float to_tf32(float x, rounding r) { return static_cast<float>(decode(encode(x, 10, 8, r), 10, 8)); }

}  // namespace neap::testing::ptx
