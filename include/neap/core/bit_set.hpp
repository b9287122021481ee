// A set of small integers as packed words, sized at run time.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

class bit_set {
 public:
  explicit bit_set(std::size_t n = 0) : size_(n), words_((n + 63) / 64) {}
  std::size_t size() const { return size_; }
  bool test(std::size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  /// Sets i; true if it was not set before.
  bool insert(std::size_t i) {
    bool const fresh = !test(i);
    set(i);
    return fresh;
  }
  void clear() { words_.assign(words_.size(), 0); }
  std::size_t count() const {
    std::size_t n = 0;
    for (auto w : words_) n += static_cast<std::size_t>(std::popcount(w));
    return n;
  }
  bit_set& operator|=(bit_set const& o) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= o.words_[i];
    return *this;
  }
  bit_set& operator&=(bit_set const& o) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= o.words_[i];
    return *this;
  }
  /// Calls f with each element, ascending.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (auto bits = words_[w]; bits; bits &= bits - 1) f(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }
  friend bool operator==(bit_set const&, bit_set const&) = default;

 private:
  std::size_t size_;
  plain_vector<std::uint64_t> words_;
};

}}  // namespace neap::v0
