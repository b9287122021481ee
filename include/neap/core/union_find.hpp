// Disjoint sets with union by size and path halving: nearly constant time an operation (Tarjan 1975).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

class union_find {
 public:
  explicit union_find(std::size_t n = 0) { grow(n); }
  /// Adds singletons until there are n elements.
  void grow(std::size_t n) {
    while (parent_.size() < n) {
      parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
      size_.push_back(1);
    }
  }
  std::size_t size() const { return parent_.size(); }
  std::uint32_t find(std::uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  /// Joins the sets of a and b; the representative of the result.
  std::uint32_t join(std::uint32_t a, std::uint32_t b) {
    a = find(a), b = find(b);
    if (a == b) return a;
    if (size_[a] < size_[b]) std::swap(a, b);
    parent_[b] = a;
    size_[a] += size_[b];
    return a;
  }
  std::uint32_t size_of(std::uint32_t x) { return size_[find(x)]; }

 private:
  std::vector<std::uint32_t> parent_, size_;
};

}}  // namespace neap::v0
