// A hash table from 64-bit keys (ids, addresses) to 32-bit numbers (ids, rows of a table that holds the rest). One plain
// type for all of them: each kind of std::unordered_map is five milliseconds of every compilation.
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

class number_map {
 public:
  static constexpr std::uint32_t none = no_id;  // not a number to keep

  std::size_t size() const { return size_; }
  /// Forgets all keys, and keeps the memory.
  void clear() {
    for (std::size_t i = 0; size_ > 0 && i < slots(); ++i) numbers()[i] = none;
    size_ = 0;
  }
  /// The number of a key, or `none`. O(1) expected, like all here.
  std::uint32_t find(std::uint64_t key) const { return size_ == 0 ? none : numbers()[slot_of(key)]; }
  std::uint32_t find(void const* key) const { return find(as_key(key)); }
  bool contains(std::uint64_t key) const { return find(key) != none; }
  bool contains(void const* key) const { return find(key) != none; }
  /// Gives a key a number, if it has none; whether it had none.
  bool add(std::uint64_t key, std::uint32_t number) {
    if (2 * (size_ + 1) > slots() || size_ == 0) make_room();
    auto const at = slot_of(key);
    if (numbers()[at] != none) return false;
    keys()[at] = key;
    numbers()[at] = number;
    ++size_;
    return true;
  }
  bool add(void const* key, std::uint32_t number) { return add(as_key(key), number); }
  /// Gives a key a number, whether it has one or not.
  void set(std::uint64_t key, std::uint32_t number) {
    if (!add(key, number)) numbers()[slot_of(key)] = number;
  }
  void set(void const* key, std::uint32_t number) { set(as_key(key), number); }

 private:
  static constexpr std::size_t few = 16;  // slots that need no allocation

  static std::uint64_t as_key(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }
  std::size_t slots() const { return keys_.empty() ? few : keys_.size(); }
  std::uint64_t const* keys() const { return keys_.empty() ? few_keys_ : keys_.data(); }
  std::uint64_t* keys() { return keys_.empty() ? few_keys_ : keys_.data(); }
  std::uint32_t const* numbers() const { return keys_.empty() ? few_numbers_ : numbers_.data(); }
  std::uint32_t* numbers() { return keys_.empty() ? few_numbers_ : numbers_.data(); }
  /// Where a key is, or the free slot where it belongs. Some slot is free.
  std::size_t slot_of(std::uint64_t key) const {
    std::size_t const last = slots() - 1;
    auto const mixed = key * 0x9e3779b97f4a7c15;
    std::size_t at = (mixed ^ (mixed >> 32)) & last;
    auto const* const taken = numbers();
    auto const* const whose = keys();
    while (taken[at] != none && whose[at] != key) at = (at + 1) & last;
    return at;
  }
  void make_room() {
    if (size_ == 0 && keys_.empty()) {
      for (auto& n : few_numbers_) n = none;
      return;
    }
    if (size_ == 0) return;
    number_map bigger;
    bigger.keys_.resize(2 * slots());
    bigger.numbers_.resize(2 * slots(), none);
    for (std::size_t i = 0; i < slots(); ++i)
      if (numbers()[i] != none) {
        auto const at = bigger.slot_of(keys()[i]);
        bigger.keys_[at] = keys()[i];
        bigger.numbers_[at] = numbers()[i];
      }
    keys_.swap(bigger.keys_), numbers_.swap(bigger.numbers_);
  }

  // A power of two slots, at most half of them taken; `none`: the slot is free. While they are few, in the object.
  plain_vector<std::uint64_t> keys_;
  plain_vector<std::uint32_t> numbers_;
  std::uint64_t few_keys_[few]{};
  std::uint32_t few_numbers_[few]{};  // `none` only once there is a first number
  std::size_t size_ = 0;
};

}}  // namespace neap::v0
