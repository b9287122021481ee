// Elementary functions that vectorise: no branches, no tables, no errno, so that a loop of constant length around them
// becomes vector code with any compiler and any options. Float results are within 3 units in the last place of the exact
// value (most within 1), double ones within 4; infinities, NaN, signed zeros and subnormals come out as in <cmath>. On a
// GPU they are the GPU's own. Reductions of the argument follow Cody and Waite; polynomials are those of the public
// Cephes and FreeBSD libraries.
#pragma once

#include <neap/core/config.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

namespace neap { inline namespace v0 {

namespace detail {

template <class T>
struct float_bits;
template <>
struct float_bits<float> {
  using type = std::int32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float round_magic = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
};
template <>
struct float_bits<double> {
  using type = std::int64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double round_magic = 0x1.8p52;
};
template <>
struct float_bits<std::int64_t> {  // so that pick() takes integers too
  using type = std::int64_t;
};
template <class T>
using bits_t = typename float_bits<T>::type;

// Limits as constants: device code may read these, but not call std::numeric_limits' functions.
template <class T>
inline constexpr T infinity_of = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T quiet_nan_of = std::numeric_limits<T>::quiet_NaN();
template <class T>
inline constexpr T smallest_normal_of = std::numeric_limits<T>::min();
template <class T>
inline constexpr bits_t<T> all_but_sign = std::numeric_limits<bits_t<T>>::max();
/// What every number is not below: -infinity, or the least integer.
template <class T>
inline constexpr T lowest_of =
    std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();

template <class T>
NEAP_HD NEAP_INLINE bits_t<T> to_bits(T x) {
  return __builtin_bit_cast(bits_t<T>, x);
}
template <class T>
NEAP_HD NEAP_INLINE T from_bits(bits_t<T> u) {
  return __builtin_bit_cast(T, u);
}

/// c ? a : b by masks. A conditional expression lets compilers move the computation of a or b into a branch, which they
/// then cannot vectorise.
template <class T>
NEAP_HD NEAP_INLINE T pick(bool c, T a, T b) {
  auto const mask = -static_cast<bits_t<T>>(c);
  return from_bits<T>((to_bits(a) & mask) | (to_bits(b) & ~mask));
}
template <class T>
NEAP_HD NEAP_INLINE T magnitude(T x) {
  return from_bits<T>(to_bits(x) & all_but_sign<T>);
}
/// The magnitude of a with the sign of b.
template <class T>
NEAP_HD NEAP_INLINE T with_sign(T a, T b) {
  return from_bits<T>((to_bits(a) & all_but_sign<T>) | (to_bits(b) & ~all_but_sign<T>));
}

/// (e^r - 1 - r) / r^2 for |r| <= 0.5.
NEAP_HD NEAP_INLINE float exp_tail(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  return p * r + 5.0000001201e-1f;
}
NEAP_HD NEAP_INLINE double exp_tail(double r) {
  double p = 1.0 / 87178291200.0;  // 1/14!
  p = p * r + 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  return p * r + 0.5;
}

template <class T>
struct exp_range;
template <>
struct exp_range<float> {  // outside, the result is 0 or infinite; ln 2 in two parts, the first exact times an integer
  static constexpr float low = -104.f, high = 89.f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
};
template <>
struct exp_range<double> {
  static constexpr double low = -746., high = 710., ln2_high = 6.93147180369123816490e-01,
                          ln2_low = 1.90821492927058770002e-10;
};

template <class T>
NEAP_HD NEAP_INLINE T exp_lanes(T x) {
  using range = exp_range<T>;
  using bits = float_bits<T>;
  T const c = pick(x > range::high, range::high, pick(x < range::low, range::low, x));
  T const shifted = c * T(1.44269504088896340736) + bits::round_magic;
  T const n = shifted - bits::round_magic;
  T const r = (c - n * range::ln2_high) - n * range::ln2_low;
  T const y = (exp_tail(r) * (r * r) + r) + T(1);
  // 2^n in two factors, as n may lie outside the exponents of normal numbers.
  auto const k = to_bits(shifted) - to_bits(bits::round_magic);
  auto const half = k >> 1;
  T const a = from_bits<T>((half + bits::bias) << bits::mantissa);
  T const b = from_bits<T>((k - half + bits::bias) << bits::mantissa);
  return y * a * b;  // a NaN went through r
}

template <class T>
NEAP_HD NEAP_INLINE T expm1_lanes(T x) {
  T const tiny = pick(magnitude(x) < T(0.5), x, T(0));
  return pick(magnitude(x) < T(0.5), exp_tail(tiny) * (tiny * tiny) + tiny, exp_lanes(x) - T(1));
}

/// The series of log((1 + s) / (1 - s)) / s - 2, in z = s^2.
NEAP_HD NEAP_INLINE float log_series(float z) {
  return z * (0xaaaaaa.0p-24f + z * (0xccce13.0p-25f + z * (0x91e9ee.0p-25f + z * 0xf89e26.0p-26f)));
}
NEAP_HD NEAP_INLINE double log_series(double z) {
  double p = 1.479819860511658591e-01;
  p = p * z + 1.531383769920937332e-01;
  p = p * z + 1.818357216161805012e-01;
  p = p * z + 2.222219843214978396e-01;
  p = p * z + 2.857142874366239149e-01;
  p = p * z + 3.999999999940941908e-01;
  return z * (p * z + 6.666666666666735130e-01);
}

template <class T>
NEAP_HD NEAP_INLINE T log_lanes(T x) {
  using bits = float_bits<T>;
  constexpr auto one = bits_t<T>{bits::bias} << bits::mantissa;
  constexpr auto fraction = (bits_t<T>{1} << bits::mantissa) - 1;
  T const lift = T(bits_t<T>{1} << (bits::mantissa + 2));
  bool const subnormal = x < smallest_normal_of<T>;
  T const normal = pick(subnormal, x * lift, x);
  // x = m * 2^k with m in [sqrt(1/2), sqrt(2)).
  auto const u = to_bits(normal);
  bits_t<T> const up = (u & fraction) >= (to_bits(T(1.41421356237309504880)) & fraction);
  T const m = from_bits<T>((u & fraction) | (one - (up << bits::mantissa)));
  auto const exponent = ((u >> bits::mantissa) & (2 * bits::bias + 1)) - bits::bias + up;
  T const k = from_bits<T>(exponent + to_bits(bits::round_magic)) - bits::round_magic -
              pick(subnormal, T(bits::mantissa + 2), T(0));
  T const f = m - T(1);
  T const s = f / (T(2) + f);
  T const half_square = T(0.5) * f * f;
  // k * ln2_high is exact: the parts of exp_range would do, but these have the smaller remainder.
  T const high = sizeof(T) == 4 ? T(6.9313812256e-01) : T(6.93147180369123816490e-01);
  T const low = sizeof(T) == 4 ? T(9.0580006145e-06) : T(1.90821492927058770002e-10);
  T const y = (s * (half_square + log_series(s * s)) + k * low - half_square) + f + k * high;
  T const bad = pick(x == T(0), -infinity_of<T>, quiet_nan_of<T>);
  T const big = pick(x == infinity_of<T>, infinity_of<T>, y);
  return pick(x > T(0), big, bad);
}

/// log(1 + x), for x > -1.
template <class T>
NEAP_HD NEAP_INLINE T log1p_lanes(T x) {
  T const u = T(1) + x;
  T const lost = x - (u - T(1));
  return pick(u == infinity_of<T>, u, log_lanes(u) + lost / u);
}

/// tanh for |x| < 0.625.
NEAP_HD NEAP_INLINE float tanh_small(float x) {
  float const z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  return p * z * x + x;
}
NEAP_HD NEAP_INLINE double tanh_small(double x) {
  double const z = x * x;
  double const p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
  double const q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3;
  return x * z * (p / q) + x;
}

template <class T>
NEAP_HD NEAP_INLINE T tanh_lanes(T x) {
  T const a = magnitude(x);
  bool const small = a < T(0.625);
  T const far = T(1) - T(2) / (exp_lanes(a + a) + T(1));
  return with_sign(pick(small, tanh_small(pick(small, a, T(0))), far), x);
}

/// erf in float: |x| < 0.93 by a polynomial, else 1 - e^p(|x|).
NEAP_HD NEAP_INLINE float erf_lanes(float x) {
  float const a = magnitude(x), square = x * x;
  bool const far = a > 0.927734375f;
  float const t = pick(a > 4.f, 4.f, a);
  float const s = t * t;
  float r = -1.72853470e-5f * t + 3.83197126e-4f;
  float const u = -3.88396438e-3f * t + 2.42546219e-2f;
  r = r * s + u;
  r = r * t - 1.06777877e-1f;
  r = r * t - 6.34846687e-1f;
  r = r * t - 1.28717512e-1f;
  r = r * t - t;
  float const outer = 1.f - exp_lanes(r);
  float const w = pick(far, 0.f, square);
  float q = -5.96761703e-4f;
  q = q * w + 4.99119423e-3f;
  q = q * w - 2.67681349e-2f;
  q = q * w + 1.12819925e-1f;
  q = q * w - 3.76125336e-1f;
  q = q * w + 1.28379166e-1f;
  return with_sign(pick(far, outer, q * a + a), x);
}

/// 1 / sqrt(x) to a few units in the last place, x normal and positive.
NEAP_HD NEAP_INLINE float rsqrt_estimate(float x) {
  float y = from_bits<float>(static_cast<std::int32_t>(0x5f375a86u - static_cast<std::uint32_t>(to_bits(x) >> 1)));
  for (int i = 0; i < 3; ++i) y = y * (1.5f - (0.5f * x * y) * y);
  return y;
}
NEAP_HD NEAP_INLINE double rsqrt_estimate(double x) {
  double y =
      from_bits<double>(static_cast<std::int64_t>(0x5fe6eb50c7b537a9u - static_cast<std::uint64_t>(to_bits(x) >> 1)));
  for (int i = 0; i < 4; ++i) y = y * (1.5 - (0.5 * x * y) * y);
  return y;
}

/// std::sqrt may set errno, which keeps compilers from vectorising it.
template <class T>
NEAP_HD NEAP_INLINE T sqrt_lanes(T x) {
  bool const tiny = x < T(0x1p-64);
  bool const huge = x > T(0x1p64);
  T const up = T(sizeof(T) == 4 ? 0x1p64 : 0x1p512), down = T(sizeof(T) == 4 ? 0x1p-64 : 0x1p-512);
  T const up_root = T(sizeof(T) == 4 ? 0x1p32 : 0x1p256), down_root = T(sizeof(T) == 4 ? 0x1p-32 : 0x1p-256);
  T const c = x * pick(tiny, up, pick(huge, down, T(1)));
  T const y = rsqrt_estimate(c);
  T const s = c * y;
  T const root = (s + T(0.5) * y * (c - s * s)) * pick(tiny, down_root, pick(huge, up_root, T(1)));
  bool const itself = (x == T(0)) | (x == infinity_of<T>);
  return pick(x < T(0), quiet_nan_of<T>, pick(itself, x, root));
}

/// The nearest whole number, the even one of two.
template <class T>
NEAP_HD NEAP_INLINE T round_lanes(T x) {
  T const all_whole = T(bits_t<T>{1} << float_bits<T>::mantissa), a = magnitude(x);
  return pick(a < all_whole, with_sign((a + all_whole) - all_whole, x), x);
}
template <class T>
NEAP_HD NEAP_INLINE T floor_lanes(T x) {
  T const nearest = round_lanes(x);
  return nearest - pick(nearest > x, T(1), T(0));
}

}  // namespace detail

/// The functions for kernels: float and double alike, as in <cmath> but for the name. Call them qualified.
namespace math {

#if defined(__CUDA_ARCH__)
#define NEAP_MATH(name, device, host)                              \
  NEAP_HD NEAP_INLINE float name(float x) { return device##f(x); } \
  NEAP_HD NEAP_INLINE double name(double x) { return device(x); }
#else
#define NEAP_MATH(name, device, host)                         \
  NEAP_HD NEAP_INLINE float name(float x) { return host(x); } \
  NEAP_HD NEAP_INLINE double name(double x) { return host(x); }
#endif
NEAP_MATH(exp, ::exp, detail::exp_lanes)
NEAP_MATH(expm1, ::expm1, detail::expm1_lanes)
NEAP_MATH(log, ::log, detail::log_lanes)
NEAP_MATH(log1p, ::log1p, detail::log1p_lanes)
NEAP_MATH(tanh, ::tanh, detail::tanh_lanes)
NEAP_MATH(sqrt, ::sqrt, detail::sqrt_lanes)
NEAP_MATH(round, ::rint, detail::round_lanes)
NEAP_MATH(floor, ::floor, detail::floor_lanes)
// Not vectorised, but right for all arguments.
NEAP_MATH(sin, ::sin, std::sin)
NEAP_MATH(cos, ::cos, std::cos)
#undef NEAP_MATH

NEAP_HD NEAP_INLINE float erf(float x) {
#if defined(__CUDA_ARCH__)
  return ::erff(x);
#else
  return detail::erf_lanes(x);
#endif
}
/// Not vectorised.
NEAP_HD NEAP_INLINE double erf(double x) { return ::erf(x); }

template <class T>
NEAP_HD NEAP_INLINE T abs(T x) {
  return detail::magnitude(x);
}
/// The larger; a NaN wins.
template <class T>
NEAP_HD NEAP_INLINE T max(T a, T b) {
  auto const larger = b > a;
  auto const nan = b != b;
  return (larger | nan) ? b : a;
}
/// The smaller; a NaN wins.
template <class T>
NEAP_HD NEAP_INLINE T min(T a, T b) {
  auto const smaller = b < a;
  auto const nan = b != b;
  return (smaller | nan) ? b : a;
}
/// 1 / sqrt(x).
template <class T>
NEAP_HD NEAP_INLINE T rsqrt(T x) {
#if defined(__CUDA_ARCH__)
  return ::rsqrt(x);
#else
  return T(1) / math::sqrt(x);
#endif
}
/// 1 / (1 + e^-x).
template <class T>
NEAP_HD NEAP_INLINE T sigmoid(T x) {
  T const e = math::exp(-detail::magnitude(x));
  return detail::pick(x < T(0), e, T(1)) / (T(1) + e);
}
/// log(1 + e^x).
template <class T>
NEAP_HD NEAP_INLINE T softplus(T x) {
  return detail::pick(x < T(0), T(0), x) + math::log1p(math::exp(-detail::magnitude(x)));
}
/// x * sigmoid(x), and its slope.
template <class T>
NEAP_HD NEAP_INLINE T silu(T x) {
  return x * math::sigmoid(x);
}
template <class T>
NEAP_HD NEAP_INLINE T silu_slope(T x) {
  T const s = math::sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}
/// x * Phi(x) with the normal distribution's Phi, and its slope.
template <class T>
NEAP_HD NEAP_INLINE T gelu(T x) {
  return T(0.5) * x * (T(1) + math::erf(x * T(0.70710678118654752440)));
}
template <class T>
NEAP_HD NEAP_INLINE T gelu_slope(T x) {
  T const phi = math::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
  return T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440))) + x * phi;
}
/// The approximation of gelu by tanh that GPT-2 uses, and its slope.
template <class T>
NEAP_HD NEAP_INLINE T gelu_tanh(T x) {
  T const inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + math::tanh(inner));
}
template <class T>
NEAP_HD NEAP_INLINE T gelu_tanh_slope(T x) {
  T const inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  T const t = math::tanh(inner);
  T const inner_slope = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner_slope;
}

}  // namespace math

}}  // namespace neap::v0
