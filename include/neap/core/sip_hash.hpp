// SipHash-1-3 with 128-bit results (Aumasson and Bernstein 2012), of words in place of bytes, under a secret key. Without
// the key its results look like random numbers: no input can be made whose hash collides with that of another.
// `digest` (core/digest.hpp) is faster and has no key: it is for inputs that are not chosen to mislead.
#pragma once

#include <neap/core/digest.hpp>
#include <neap/core/error.hpp>
#include <neap/core/split_mix.hpp>

#include <sys/random.h>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace neap { inline namespace v0 {

struct hash_key {
  std::uint64_t low = 0, high = 0;

  /// A key from the machine's source of randomness. Throws neap::error where that fails.
  static hash_key drawn() {
    hash_key k;
    if (getentropy(&k, sizeof k) != 0) throw_error({"the machine has no random numbers (getentropy fails)"});
    return k;
  }
  /// The same key for the same seed: for tests that must repeat.
  static constexpr hash_key of(std::uint64_t seed) { return {scramble(seed), scramble(~seed)}; }
};

class sip_hash {
 public:
  explicit constexpr sip_hash(hash_key k)
      : a_(k.low ^ 0x736f6d6570736575),
        b_(k.high ^ 0x646f72616e646f6d ^ 0xee),
        c_(k.low ^ 0x6c7967656e657261),
        d_(k.high ^ 0x7465646279746573) {}

  /// Takes in a word; order matters, and so does how many there are.
  constexpr sip_hash& mix(std::uint64_t word) {
    ++words_;
    d_ ^= word;
    round();
    a_ ^= word;
    return *this;
  }
  constexpr sip_hash& mix(digest d) { return mix(d.low).mix(d.high); }
  sip_hash& mix(std::string_view text) {
    mix(text.size());
    for (; text.size() >= 8; text.remove_prefix(8)) {
      std::uint64_t word;
      std::memcpy(&word, text.data(), 8);
      mix(word);
    }
    if (text.empty()) return *this;
    std::uint64_t rest = 0;
    std::memcpy(&rest, text.data(), text.size());
    return mix(rest);
  }

  /// 64 bits of all words so far.
  constexpr std::uint64_t word() const {
    auto s = *this;
    s.mix(words_);
    s.c_ ^= 0xee;
    s.round(), s.round(), s.round();
    return s.a_ ^ s.b_ ^ s.c_ ^ s.d_;
  }
  /// 128 bits of all words so far.
  constexpr digest finish() const {
    auto s = *this;
    s.mix(words_);
    s.c_ ^= 0xee;
    s.round(), s.round(), s.round();
    auto const low = s.a_ ^ s.b_ ^ s.c_ ^ s.d_;
    s.b_ ^= 0xdd;
    s.round(), s.round(), s.round();
    return {low, s.a_ ^ s.b_ ^ s.c_ ^ s.d_};
  }

 private:
  constexpr void round() {
    a_ += b_, b_ = std::rotl(b_, 13), b_ ^= a_, a_ = std::rotl(a_, 32);
    c_ += d_, d_ = std::rotl(d_, 16), d_ ^= c_;
    a_ += d_, d_ = std::rotl(d_, 21), d_ ^= a_;
    c_ += b_, b_ = std::rotl(b_, 17), b_ ^= c_, c_ = std::rotl(c_, 32);
  }
  std::uint64_t a_, b_, c_, d_, words_ = 0;
};

}}  // namespace neap::v0
