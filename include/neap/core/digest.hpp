// 128-bit digests: not cryptographic, but wide enough that a search over 10^9 graphs meets no collision by chance.
// `digest` values of parts are combined in order by `mix` and without order by `+`.
#pragma once

#include <neap/core/split_mix.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 {

__extension__ typedef unsigned __int128 uint128;

struct digest {
  std::uint64_t low = 0x243f6a8885a308d3ull;
  std::uint64_t high = 0x13198a2e03707344ull;

  /// The digest of this, then of x: order matters.
  [[nodiscard]] constexpr digest mix(std::uint64_t x) const {
    auto const a = static_cast<uint128>(low ^ x) * 0x9fb21c651e98df25ull;
    auto const b = static_cast<uint128>(high + x) * 0xd6e8feb86659fd93ull;
    auto const al = static_cast<std::uint64_t>(a), ah = static_cast<std::uint64_t>(a >> 64);
    auto const bl = static_cast<std::uint64_t>(b), bh = static_cast<std::uint64_t>(b >> 64);
    return {(al ^ bh ^ (low >> 29)) + 0x9e3779b97f4a7c15ull, (bl ^ ah ^ (high >> 31)) + 0xc2b2ae3d27d4eb4full};
  }
  [[nodiscard]] constexpr digest mix(digest d) const { return mix(d.low).mix(d.high); }
  [[nodiscard]] constexpr digest mix(std::string_view text) const {
    digest d = mix(text.size());
    for (char c : text) d = d.mix(static_cast<unsigned char>(c));
    return d;
  }
  friend constexpr digest operator+(digest a, digest b) { return {a.low + b.low, a.high + b.high}; }
  friend constexpr digest operator-(digest a, digest b) { return {a.low - b.low, a.high - b.high}; }
  friend constexpr bool operator==(digest, digest) = default;
  friend constexpr auto operator<=>(digest, digest) = default;
};

/// 32 hexadecimal digits, lower case, the high half first.
std::string to_hex(digest d);
/// What to_hex wrote; nothing if it is another text.
std::optional<digest> from_hex(std::string_view text);

/// For hash tables keyed by digests.
struct digest_hash {
  std::size_t operator()(digest d) const { return static_cast<std::size_t>(d.low ^ (d.high * 3)); }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/digest.ipp>
#endif
