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
