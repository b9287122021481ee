// Why a search knows that an offset is at least so much: which of the placed records it follows from. A failure then names
// the placements that have part in it, and the search goes back to the last of those at once; what was placed since, far
// off in time as a rule, is not to blame (conflict-directed backjumping: Prosser 1993).
//
//      |bbb|     |ccc|ddd|      c and d do not fit on a: a is to blame, not b, which was placed between
//      |xxx|     |aaaaaaa|
//
// Proofs are about one packing, that of the least sum of offsets, in which every record lies on another or at 0. Each has
// the weaker one before it of the same record, so that of several the weakest that tells enough can be taken: it follows
// from fewer placements.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

/// Of how many records a search keeps proofs: each takes as many bits.
inline constexpr std::size_t most_blamed = 1024;

/// Proofs are numbered, and who adds one says where: a search that goes back writes over those behind.
template <class Unit>
class limit_proofs {
 public:
  /// For so many records; 0: there are no proofs, and every record is to blame.
  constexpr explicit limit_proofs(std::size_t records) : words_((records + 63) / 64), blame_(words_, 0) {}

  constexpr bool kept() const { return words_ > 0; }
  /// Begins anew: proof i is that record i, of `count`, is at least(i) or higher, whatever is placed.
  template <class Least>
  constexpr void start(std::uint32_t count, Least const& least) {
    proofs_.assign(count, proof{});
    for (std::uint32_t i = 0; i < count; ++i) proofs_[i].least = least(i);
    reasons_.assign(count * words_, 0);
  }

  constexpr bool blamed(std::uint32_t record) const {
    return !kept() || (blame_[record / 64] >> (record % 64) & 1) != 0;
  }
  constexpr void clear_blame() {
    for (auto& word : blame_) word = 0;
  }
  constexpr void blame_all() {
    for (auto& word : blame_) word = ~std::uint64_t{0};
  }
  constexpr void blame(std::uint32_t record) { blame_[record / 64] |= bit(record); }
  constexpr void forgive(std::uint32_t record) { blame_[record / 64] &= ~bit(record); }
  /// Blames what the weakest proof follows from, of that one and those before it, that is for `least` or more.
  constexpr void blame_proof(std::uint32_t at, Unit least) {
    for (auto w = proofs_[at].weaker; w != none && proofs_[w].least >= least; w = proofs_[at].weaker) at = w;
    if (proofs_[at].weaker == none) return;
    for (std::size_t w = 0; w < words_; ++w) blame_[w] |= reasons_[at * words_ + w];
  }
  /// Makes `at` the proof of `least` from what is blamed now.
  constexpr void prove(std::uint32_t at, Unit least, std::uint32_t weaker) {
    if (proofs_.size() <= at) {
      proofs_.resize(2 * std::size_t{at} + 64, proof{});
      reasons_.resize(proofs_.size() * words_, 0);
    }
    proofs_[at] = {least, weaker};
    for (std::size_t w = 0; w < words_; ++w) reasons_[at * words_ + w] = blame_[w];
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  struct proof {
    Unit least = 0;
    std::uint32_t weaker = none;
  };
  static constexpr std::uint64_t bit(std::uint32_t record) { return std::uint64_t{1} << (record % 64); }

  std::size_t words_;
  std::vector<std::uint64_t> blame_;
  plain_vector<proof> proofs_;
  std::vector<std::uint64_t> reasons_;  // of each proof, a bit a record
};

}  // namespace neap::inline v0::detail
