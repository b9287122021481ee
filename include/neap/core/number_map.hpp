// A hash table from 64-bit keys (ids, addresses) to 32-bit numbers (ids, rows of a table that holds the rest). One plain
// type for all of them: each kind of std::unordered_map is five milliseconds of every compilation.
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>

namespace neap::inline v0 {

class number_map {
 public:
  static constexpr std::uint32_t none = no_id;  // not a number to keep

  std::size_t size() const { return size_; }
  /// The number of a key, or `none`. O(1) expected, like all here.
  std::uint32_t find(std::uint64_t key) const { return keys_.empty() ? none : numbers_[slot_of(key)]; }
  std::uint32_t find(void const* key) const { return find(as_key(key)); }
  bool contains(std::uint64_t key) const { return find(key) != none; }
  bool contains(void const* key) const { return find(key) != none; }
  /// Gives a key a number, if it has none; whether it had none.
  bool add(std::uint64_t key, std::uint32_t number) {
    if (2 * (size_ + 1) > keys_.size()) grow();
    auto const at = slot_of(key);
    if (numbers_[at] != none) return false;
    keys_[at] = key;
    numbers_[at] = number;
    ++size_;
    return true;
  }
  bool add(void const* key, std::uint32_t number) { return add(as_key(key), number); }
  /// Gives a key a number, whether it has one or not.
  void set(std::uint64_t key, std::uint32_t number) {
    if (!add(key, number)) numbers_[slot_of(key)] = number;
  }
  void set(void const* key, std::uint32_t number) { set(as_key(key), number); }

 private:
  static std::uint64_t as_key(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }
  /// Where a key is, or the free slot where it belongs. Some slot is free.
  std::size_t slot_of(std::uint64_t key) const {
    std::size_t const last = keys_.size() - 1;
    auto const mixed = key * 0x9e3779b97f4a7c15;
    std::size_t at = (mixed ^ (mixed >> 32)) & last;
    while (numbers_[at] != none && keys_[at] != key) at = (at + 1) & last;
    return at;
  }
  void grow() {
    std::size_t const n = keys_.empty() ? 16 : 2 * keys_.size();
    plain_vector<std::uint64_t> keys(n);
    plain_vector<std::uint32_t> numbers(n, none);
    keys.swap(keys_), numbers.swap(numbers_);
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (numbers[i] != none) {
        auto const at = slot_of(keys[i]);
        keys_[at] = keys[i];
        numbers_[at] = numbers[i];
      }
  }

  plain_vector<std::uint64_t> keys_;     // a power of two slots, at most half of them taken
  plain_vector<std::uint32_t> numbers_;  // `none`: the slot is free
  std::size_t size_ = 0;
};

}  // namespace neap::inline v0
