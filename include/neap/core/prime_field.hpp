// Arithmetic in a prime field whose prime is drawn. Numbers are kept in Montgomery's form (1985): a product costs two
// multiplications and no division.
#pragma once

#include <neap/core/sip_hash.hpp>

#include <array>
#include <cmath>
#include <cstdint>

namespace neap { inline namespace v0 {

/// An element of a prime_field, which alone knows what it stands for.
struct field_number {
  std::uint64_t n = 0;
  friend constexpr bool operator==(field_number, field_number) = default;
};

/// The integers modulo a prime between 2^60 and 2^61, of which there are 2.7e16. A number that is not 0 and has b bits
/// is 0 modulo at most b / 60 of them.
class prime_field {
 public:
  /// A prime drawn with a key.
  explicit prime_field(hash_key key) : p_(drawn(key)) {
    inverse_ = p_;  // Newton: 5 bits of the inverse modulo 2^64 are right, then 10, 20, ...
    for (int i = 0; i < 5; ++i) inverse_ *= 2 - p_ * inverse_;
    square_ = 1;  // 2^128 modulo p
    for (int i = 0; i < 128; ++i) square_ = square_ * 2 % p_;
    one_ = reduced(square_);
    auto x = of(std::uint64_t{2}), y = inverse(x);
    for (std::size_t k = 0; k < powers; ++k, x = mul(x, x), y = mul(y, y)) two_[k] = x, half_[k] = y;
  }
  std::uint64_t prime() const { return p_; }

  field_number zero() const { return {}; }
  field_number one() const { return {one_}; }
  field_number of(std::uint64_t x) const { return {reduced(static_cast<uint128>(x % p_) * square_)}; }
  /// The number that a finite floating-point number is exactly.
  field_number of(double x) const {
    int e = 0;
    auto const m = static_cast<std::int64_t>(std::ldexp(std::frexp(std::abs(x), &e), 53));
    e -= 53;
    auto r = of(static_cast<std::uint64_t>(m));
    auto const& power = e < 0 ? half_ : two_;
    auto bits = static_cast<std::uint64_t>(e < 0 ? -e : e);
    for (std::size_t k = 0; bits != 0; ++k, bits >>= 1)
      if (bits & 1) r = mul(r, power[k]);
    return x < 0 ? neg(r) : r;
  }
  /// Of 64 random bits a random number.
  field_number from_bits(std::uint64_t bits) const {
    return {static_cast<std::uint64_t>(static_cast<uint128>(bits) * p_ >> 64)};
  }

  field_number add(field_number a, field_number b) const {
    auto const s = a.n + b.n;
    return {s >= p_ ? s - p_ : s};
  }
  field_number sub(field_number a, field_number b) const { return {a.n >= b.n ? a.n - b.n : a.n + p_ - b.n}; }
  field_number neg(field_number a) const { return {a.n == 0 ? 0 : p_ - a.n}; }
  field_number mul(field_number a, field_number b) const { return {reduced(static_cast<uint128>(a.n) * b.n)}; }
  /// 1 / x; of 0 it is 0.
  field_number inverse(field_number x) const {
    field_number y = one();
    for (auto e = p_ - 2; e; e >>= 1, x = mul(x, x))
      if (e & 1) y = mul(y, x);
    return y;
  }

 private:
  static constexpr std::size_t powers = 11;  // 2^(2^10) is the largest power of two that a double needs

  std::uint64_t reduced(uint128 x) const {
    auto const m = static_cast<std::uint64_t>(x) * inverse_;
    auto const high = static_cast<std::uint64_t>(x >> 64),
               less = static_cast<std::uint64_t>((static_cast<uint128>(m) * p_) >> 64);
    return high >= less ? high - less : high + p_ - less;
  }
  static std::uint64_t times(std::uint64_t a, std::uint64_t b, std::uint64_t p) {
    return static_cast<std::uint64_t>(static_cast<uint128>(a) * b % p);
  }
  /// Miller and Rabin, with bases that decide every number below 2^64 (Sorenson and Webster 2017).
  static bool is_prime(std::uint64_t p) {
    constexpr std::array<std::uint64_t, 12> bases{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    for (auto b : bases)
      if (p % b == 0) return p == b;
    int const twos = std::countr_zero(p - 1);
    for (auto b : bases) {
      std::uint64_t x = 1;
      for (auto e = (p - 1) >> twos; e; e >>= 1, b = times(b, b, p))
        if (e & 1) x = times(x, b, p);
      if (x == 1 || x == p - 1) continue;
      bool witness = true;
      for (int k = 1; k < twos && witness; ++k) {
        x = times(x, x, p);
        witness = x != p - 1;
      }
      if (witness) return false;
    }
    return true;
  }
  static std::uint64_t drawn(hash_key key) {
    constexpr auto low = std::uint64_t{1} << 60;
    for (std::uint64_t k = 0;; ++k)
      if (auto const p = low | (sip_hash(key).mix(0x7072696d65).mix(k).word() & (low - 1)) | 1; is_prime(p)) return p;
  }

  std::uint64_t p_, inverse_ = 0, square_ = 0, one_ = 0;
  std::array<field_number, powers> two_{}, half_{};  // 2^(2^k) and its inverse
};

}}  // namespace neap::v0
