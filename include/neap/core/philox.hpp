// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A draw is a function of (key, counter), so a
// recomputed operator that keeps its key draws the same numbers again, in any order and on any number of threads.
#pragma once

#include <neap/core/config.hpp>

#include <array>
#include <cstdint>

namespace neap { inline namespace v0 {

struct philox {
  std::uint64_t key = 0;

  /// Four independent 32-bit numbers for a 128-bit counter (high, low).
  NEAP_HD constexpr std::array<std::uint32_t, 4> operator()(std::uint64_t low, std::uint64_t high = 0) const {
    std::uint32_t c0 = static_cast<std::uint32_t>(low), c1 = static_cast<std::uint32_t>(low >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(high), c3 = static_cast<std::uint32_t>(high >> 32);
    std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      std::uint64_t const p0 = std::uint64_t{0xD2511F53u} * c0;
      std::uint64_t const p1 = std::uint64_t{0xCD9E8D57u} * c2;
      std::uint32_t const n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
      std::uint32_t const n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<std::uint32_t>(p1);
      c3 = static_cast<std::uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
  }
};

/// A number in [0, 1) with 24 random bits.
NEAP_HD constexpr float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// A sequential generator on philox, for tests, initialisation and sampling; models UniformRandomBitGenerator.
class random_stream {
 public:
  using result_type = std::uint32_t;
  explicit constexpr random_stream(std::uint64_t seed = 0, std::uint64_t stream = 0) : draw_{seed}, stream_(stream) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xffffffffu; }
  constexpr result_type operator()() {
    if (at_ == 4) {
      four_ = draw_(counter_++, stream_);
      at_ = 0;
    }
    return four_[at_++];
  }
  /// Uniform in [0, n), n > 0 (multiply-shift; the bias is below 2^-32 * n).
  constexpr std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((std::uint64_t{(*this)()} * n) >> 32);
  }
  constexpr float uniform() { return unit_float((*this)()); }

 private:
  philox draw_;
  std::uint64_t stream_ = 0, counter_ = 0;
  std::array<std::uint32_t, 4> four_{};
  unsigned at_ = 4;
};

}}  // namespace neap::v0
