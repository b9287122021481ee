// A generator of random numbers on the host that a model keeps: its draws are tracked scalars, so that a compiled function
// draws anew in each call, and depends on a draw only where it decides.
//
//   struct model { neap::tracked_generator random{7}; ... };
//   if (m.random.uniform() < 0.5) x = block(x);     // stochastic depth: two graphs
//   x = x + m.random.normal();                      // one
#pragma once

#include <neap/capture/state.hpp>
#include <neap/core/philox.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <tuple>

namespace neap { inline namespace v0 {

namespace detail {
struct draw_bits {
  std::uint64_t operator()(std::uint64_t seed, std::uint64_t number) const {
    auto const four = philox{seed}(number, 5);
    return four[0] | std::uint64_t{four[1]} << 32;
  }
};
struct unit_interval {
  double operator()(std::uint64_t bits, std::uint64_t) const { return static_cast<double>(bits >> 11) * 0x1p-53; }
};
struct standard_normal {  // Box and Muller, of two halves of the bits
  double operator()(std::uint64_t bits, std::uint64_t) const {
    double const u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
    double const v = static_cast<double>(bits & 0xffffffffu) * 0x1p-32;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }
};
struct below_bound {
  template <class T>
  T operator()(std::uint64_t bits, T bound) const {
    return static_cast<T>(static_cast<std::uint64_t>((bits >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }
};
}  // namespace detail

/// Counter-based: the n-th draw after a seed is the same number everywhere. A copy goes on by itself.
class tracked_generator {
 public:
  using result_type = std::uint64_t;
  tracked_generator() = default;
  explicit tracked_generator(std::uint64_t seed) : seed_(seed) {}
  void seed(std::uint64_t s) { seed_ = s, draws_ = std::uint64_t{0}; }

  /// 64 random bits.
  sym<std::uint64_t> bits() { return detail::combine_scalars<detail::draw_bits>(sym<std::uint64_t>(seed_), draws_++); }
  /// Uniform in [0, 1).
  sym<double> uniform() { return of_bits<detail::unit_interval>(); }
  /// Uniform in [low, high).
  template <class A, class B>
  sym<double> uniform(A const& low, B const& high) {
    auto const u = uniform();
    return u * (high - low) + low;
  }
  /// Of mean 0 and deviation 1.
  sym<double> normal() { return of_bits<detail::standard_normal>(); }
  /// A whole number in [0, n) for 0 < n <= 2^32; the bias is below 2^-32 * n.
  template <class N>
  auto below(N const& n) {
    return detail::combine_scalars<detail::below_bound>(bits(), detail::as_sym(n));
  }
  /// Whether something of probability p happens.
  template <class P>
  sym<bool> chance(P const& p) {
    return uniform() < p;
  }

  /// For the standard library's distributions and algorithms. A compiled function depends on each number: one graph for
  /// each.
  result_type operator()() { return bits().value(); }
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  friend auto neap_fields(tracked_generator& self) { return std::tie(self.seed_, self.draws_); }

 private:
  template <class F>
  sym<double> of_bits() {
    auto const b = bits();
    return detail::combine_scalars<F>(b, b);
  }
  state<std::uint64_t> seed_{0}, draws_{0};
};

}}  // namespace neap::v0
