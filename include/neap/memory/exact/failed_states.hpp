// States of a search that are known to lead nowhere, by a hash of 128 bits: two states that are not the same are taken for
// one with a chance of about n^2 / 2^129 after n of them. When the table is full it is emptied: it only saves work.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/split_mix.hpp>
#include <neap/memory/exact/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Of a pair of values.
constexpr std::uint64_t hash_of(std::uint64_t a, std::uint64_t b) {
  return finalised(a * golden_ratio_64 + b * 0xd1b54a32d192ed03u);
}

/// A set of (value, value) pairs, hashed as a sum: the order in which they are added is no matter.
class state_hash {
 public:
  void add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t const z = hash_of(a, b);
    low_ += z;
    high_ += finalised(z ^ 0xff51afd7ed558ccdu);
  }
  std::uint64_t low() const { return low_; }
  std::uint64_t high() const { return high_ | 1; }  // never 0
  friend constexpr bool operator==(state_hash const&, state_hash const&) = default;

 private:
  std::uint64_t low_ = 0, high_ = 0;
};

class failed_states {
 public:
  void clear() {
    slots_.assign(least_slots, slot{});
    count_ = 0;
  }
  bool contains(state_hash const& s) const { return slots_[place_of(slots_, s)].high != 0; }
  void insert(state_hash const& s) {
    if (2 * count_ >= slots_.size()) make_room();
    slot& at = slots_[place_of(slots_, s)];
    count_ += at.high == 0;
    at = {s.low(), s.high()};
  }

 private:
  static constexpr std::size_t least_slots = 64, max_slots = 2 * exact_policy::max_failed_states;
  struct slot {
    std::uint64_t low = 0, high = 0;  // high 0: empty
  };
  /// Where the state is, or would be put.
  static std::size_t place_of(plain_vector<slot> const& slots, state_hash const& s) {
    std::size_t at = s.low() & (slots.size() - 1);
    while (slots[at].high != 0 && (slots[at].low != s.low() || slots[at].high != s.high()))
      at = (at + 1) & (slots.size() - 1);
    return at;
  }
  void make_room() {
    if (slots_.size() >= max_slots) return clear();
    plain_vector<slot> larger(2 * slots_.size(), slot{});
    for (auto const& s : slots_) {
      std::size_t at = s.low & (larger.size() - 1);
      while (s.high != 0 && larger[at].high != 0) at = (at + 1) & (larger.size() - 1);
      if (s.high != 0) larger[at] = s;
    }
    slots_ = static_cast<plain_vector<slot>&&>(larger);
  }

  plain_vector<slot> slots_ = plain_vector<slot>(least_slots);
  std::size_t count_ = 0;
};

}}}  // namespace neap::v0::detail
