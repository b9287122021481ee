// The bodies of <neap/model/initialise.hpp>.
#pragma once

#include <neap/model/initialise.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC void draw_four(initialiser const& i, std::uint64_t counter, double* out) {
  auto const bits = philox{i.seed}(counter, i.stream);
  if (i.how == initialiser::kind::uniform) {
    for (int k = 0; k < 4; ++k)
      out[k] = i.a + (i.b - i.a) * static_cast<double>(unit_float(bits[static_cast<std::size_t>(k)]));
    return;
  }
  for (int k = 0; k < 4; k += 2) {  // Box and Muller 1958; 1 - u is in (0, 1]
    double const u = 1 - static_cast<double>(unit_float(bits[static_cast<std::size_t>(k)]));
    double const angle =
        2 * 3.14159265358979323846 * static_cast<double>(unit_float(bits[static_cast<std::size_t>(k) + 1]));
    double const radius = std::sqrt(-2 * std::log(u));
    out[k] = i.a + i.b * radius * std::cos(angle);
    out[k + 1] = i.a + i.b * radius * std::sin(angle);
  }
}

}  // namespace detail
}  // namespace neap::inline v0

namespace neap::inline v0 {

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
    auto const write = [&](std::int64_t k, double x) {
      if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) p[k] = T(static_cast<float>(x));
      else p[k] = static_cast<T>(x);
    };
    if (!i.is_random()) {
      for (std::int64_t k = 0; k < count; ++k) write(k, i.a);
      return;
    }
    double four[4];
    for (std::int64_t k = 0; k < count; k += 4) {
      detail::draw_four(i, static_cast<std::uint64_t>(k / 4), four);
      for (std::int64_t j = 0; j < 4 && k + j < count; ++j) write(k + j, four[j]);
    }
  });
}

}  // namespace neap::inline v0
