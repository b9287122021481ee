// SplitMix64 (Steele, Lea, Flood 2014): a stream of random numbers from a seed, and its last step as a hash.
#pragma once

#include <cstdint>

namespace neap { inline namespace v0 {

/// The last step: every bit of z changes about half of the result's. Bijective.
constexpr std::uint64_t finalised(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
inline constexpr std::uint64_t golden_ratio_64 = 0x9e3779b97f4a7c15u;
/// A bijective 64-bit finaliser that does not keep 0.
constexpr std::uint64_t scramble(std::uint64_t x) { return finalised(x + golden_ratio_64); }

class split_mix {
 public:
  explicit constexpr split_mix(std::uint64_t seed) : state_(seed) {}
  /// 64 random bits.
  constexpr std::uint64_t operator()() { return finalised(state_ += golden_ratio_64); }
  /// In [0, 1).
  constexpr double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}}  // namespace neap::v0
