// What a tensor holds before its first write, as a small value: a kind, two numbers, a seed and a stream. Weights keep
// it, so that a model can be built, traced and planned before a byte of it exists. Numbers come from Philox: element i is
// a function of (seed, stream, i), the same on every machine of equal float arithmetic. Uniform numbers stay in their
// interval when they are rounded to an element type: in [0, 1), none is 1. Those of f64 have 53 random bits.
#pragma once

#include <neap/core/element.hpp>
#include <neap/core/philox.hpp>
#include <neap/core/tensor_type.hpp>

#include <cmath>

namespace neap { inline namespace v0 {

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
  static initialiser fan_in(std::int64_t n);
  /// Normal with deviation sqrt(2 / fan): He et al. 2015, for layers under a relu.
  static initialiser he_normal(std::int64_t fan);

  constexpr bool is_random() const { return how == kind::uniform || how == kind::normal; }
  constexpr initialiser with_seed(std::uint64_t new_seed, std::uint64_t new_stream) const {
    initialiser i = *this;
    i.seed = new_seed, i.stream = new_stream;
    return i;
  }
};

namespace detail {

/// Four random numbers of a distribution, of 24 random bits each, or 53 (the same first ones) if `fine`.
void draw_four(initialiser const& i, bool fine, std::uint64_t counter, double* out);

}  // namespace detail

/// Writes `count` elements. O(count).
void write_initial(void* at, dtype element, std::int64_t count, initialiser const& i);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/initialise.ipp>
#endif
