// What a tensor holds before its first write, as a small value: a kind, two numbers, a seed and a stream. Weights keep
// it, so that a model can be built, traced and planned before a byte of it exists. Numbers come from Philox: element i is
// a function of (seed, stream, i), the same on every machine of equal float arithmetic.
#pragma once

#include <neap/backend/types.hpp>
#include <neap/core/philox.hpp>
#include <neap/core/tensor_type.hpp>

#include <cmath>

namespace neap::inline v0 {

struct initialiser {
  enum class kind : std::uint8_t { none, constant, uniform, normal };
  kind how = kind::none;
  double a = 0, b = 0;  // constant: a. uniform: in [a, b). normal: mean a, standard deviation b
  std::uint64_t seed = 0, stream = 0;
  friend bool operator==(initialiser const&, initialiser const&) = default;

  static constexpr initialiser uninitialised() { return {}; }
  static constexpr initialiser constant(double x) { return {kind::constant, x}; }
  static constexpr initialiser uniform(double low, double high) { return {kind::uniform, low, high}; }
  static constexpr initialiser normal(double mean, double deviation) { return {kind::normal, mean, deviation}; }
  /// Uniform in +-1/sqrt(fan_in): what PyTorch gives linear and convolution layers (Kaiming uniform with a = sqrt(5)).
  static initialiser fan_in(std::int64_t n) {
    double const bound = 1 / std::sqrt(static_cast<double>(n > 0 ? n : 1));
    return uniform(-bound, bound);
  }
  /// Normal with deviation sqrt(2 / fan): He et al. 2015, for layers under a relu.
  static initialiser he_normal(std::int64_t fan) {
    return normal(0, std::sqrt(2.0 / static_cast<double>(fan > 0 ? fan : 1)));
  }

  constexpr bool is_random() const { return how == kind::uniform || how == kind::normal; }
  constexpr initialiser with_seed(std::uint64_t new_seed, std::uint64_t new_stream) const {
    initialiser i = *this;
    i.seed = new_seed, i.stream = new_stream;
    return i;
  }
};

namespace detail {

/// Four random numbers of a distribution.
void draw_four(initialiser const& i, std::uint64_t counter, double* out);

}  // namespace detail

/// Writes `count` elements. O(count).
inline void write_initial(void* at, dtype element, std::int64_t count, initialiser const& i) {
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

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/initialise.ipp>
#endif
