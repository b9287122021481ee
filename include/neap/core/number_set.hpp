// A hash table of 32-bit numbers that stand for things kept elsewhere (places in a table, offsets in a text), so that
// equal things are kept once. Open addressing, linear probing; the hashes are stored, so growing computes none.
//
//   auto const at = set.find_or_add(hash(x), [&](std::uint32_t n) { return things[n] == x; },
//                                   [&] { things.push_back(x); return things.size() - 1; });
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

class number_set {
 public:
  std::size_t size() const { return size_; }

  /// The number with this hash for which is_same(number) holds; if there is none, the one that make() gives, which is
  /// kept. O(1) expected; make() is called at most once and must not use this set.
  template <class IsSame, class Make>
  std::uint32_t find_or_add(std::uint64_t hash, IsSame&& is_same, Make&& make) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    auto const h = folded(hash);
    auto at = h & (slots_.size() - 1);
    for (; slots_[at].taken; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == h && is_same(slots_[at].number)) return slots_[at].number;
    auto const number = static_cast<std::uint32_t>(make());
    slots_[at] = {number, h, true};
    ++size_;
    return number;
  }
  /// Whether there is a number with this hash for which is_same(number) holds. O(1) expected.
  template <class IsSame>
  bool contains(std::uint64_t hash, IsSame&& is_same) const {
    if (slots_.empty()) return false;
    auto const h = folded(hash);
    for (auto at = h & (slots_.size() - 1); slots_[at].taken; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == h && is_same(slots_[at].number)) return true;
    return false;
  }

 private:
  static std::uint32_t folded(std::uint64_t hash) { return static_cast<std::uint32_t>(hash ^ (hash >> 32)); }
  struct slot {
    std::uint32_t number = 0, hash = 0;
    bool taken = false;
  };
  void grow();
  plain_vector<slot> slots_;  // a power of two, at most half of them taken
  std::size_t size_ = 0;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/number_set.ipp>
#endif
