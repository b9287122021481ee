// The bodies of <neap/model/initialise.hpp>.
#pragma once

#include <neap/model/initialise.hpp>

#include <neap/backend/strided.hpp>
#include <neap/core/separate_compilation.hpp>

#include <limits>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void draw_four(initialiser const& i, bool fine, std::uint64_t counter, double* out) {
  auto const bits = philox{i.seed}(counter, i.stream);
  double u[4];  // in [0, 1)
  for (std::size_t k = 0; k < 4; ++k) u[k] = static_cast<double>(unit_float(bits[k]));
  if (fine) {
    auto const more = philox{i.seed}(counter, ~i.stream);
    for (std::size_t k = 0; k < 4; ++k) u[k] += static_cast<double>(more[k] >> 3) * 0x1p-53;
  }
  if (i.how == initialiser::kind::uniform) {
    for (int k = 0; k < 4; ++k) out[k] = i.a + (i.b - i.a) * u[k];
    return;
  }
  for (int k = 0; k < 4; k += 2) {  // Box and Muller 1958; 1 - u is in (0, 1]
    double const angle = 2 * 3.14159265358979323846 * u[k + 1];
    double const radius = std::sqrt(-2 * std::log(1 - u[k]));
    out[k] = i.a + i.b * radius * std::cos(angle);
    out[k + 1] = i.a + i.b * radius * std::sin(angle);
  }
}

/// The number of type T above or below.
template <class T>
T neighbour(T x, bool above) {
  if constexpr (sizeof(T) == 2) {  // bits of bf16 and f16 are ordered as the numbers of one sign are
    if ((x.bits & 0x7fff) == 0) x.bits = above ? 1 : 0x8001;
    else x.bits = static_cast<std::uint16_t>(x.bits + ((x.bits >> 15 != 0) == above ? -1 : 1));
    return x;
  } else {
    T const far = std::numeric_limits<T>::infinity();
    return std::nextafter(x, above ? far : -far);
  }
}

/// x, a number of [low, high), rounded to T, but not out of the interval: to a neighbour there instead.
template <class T>
T rounded_within(double x, double low, double high) {
  T const y = convert<T>(x);
  auto const exact = [](T v) { return static_cast<double>(static_cast<compute_t<T>>(v)); };
  if (exact(y) >= high && exact(neighbour(y, false)) >= low) return neighbour(y, false);
  if (exact(y) < low && exact(neighbour(y, true)) < high) return neighbour(y, true);
  return y;
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC initialiser initialiser::fan_in(std::int64_t n) {
  double const bound = 1 / std::sqrt(static_cast<double>(n > 0 ? n : 1));
  return uniform(-bound, bound);
}

NEAP_FUNC initialiser initialiser::he_normal(std::int64_t fan) {
  return normal(0, std::sqrt(2.0 / static_cast<double>(fan > 0 ? fan : 1)));
}

NEAP_FUNC void write_initial(void* at, dtype element, std::int64_t count, initialiser const& i) {
  if (i.how == initialiser::kind::none) return;
  with_type(element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* p = static_cast<T*>(at);
    auto const write = [&](std::int64_t k, double x) { p[k] = detail::convert<T>(x); };
    if (!i.is_random()) {
      for (std::int64_t k = 0; k < count; ++k) write(k, i.a);
      return;
    }
    double four[4];
    for (std::int64_t k = 0; k < count; k += 4) {
      detail::draw_four(i, element == dtype::f64, static_cast<std::uint64_t>(k / 4), four);
      for (std::int64_t j = 0; j < 4 && k + j < count; ++j) {
        write(k + j, four[j]);
        if constexpr (std::is_floating_point_v<compute_t<T>>)
          if (i.how == initialiser::kind::uniform) p[k + j] = detail::rounded_within<T>(four[j], i.a, i.b);
      }
    }
  });
}

}}  // namespace neap::v0
