// Which sub-chains of a chain are equal, block for block: a solver solves one of each class. In a chain with a period p
// there are about n p classes instead of n^2 / 2. Equality is exact, never that of hashes: sub-chains of length L are
// distinguished by the class of their first L - 1 blocks and their last block.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/plan/chain_profile.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

class chain_classes {
 public:
  /// Classes of sub-chains of `kinds.size()` blocks, of which those with equal kinds are equal. Takes time and memory
  /// that go with the square of their number.
  explicit chain_classes(std::vector<std::uint32_t> const& kinds) : size_(kinds.size()) {
    std::size_t const n = size_;
    ids_.resize_for_overwrite(n * (n + 1) / 2);
    firsts_.reserve(n), starts_.reserve(n + 1);
    constexpr std::uint32_t none = UINT32_MAX;
    struct branch {  // members of a class that do not go on as its first one does
      std::uint32_t kind, id, next;
    };
    plain_vector<branch> branches;
    // Those of the length before: by place, and of each its branches. The empty sub-chain is one class, of all places.
    plain_vector<std::uint32_t> class_of(n, 0), heads;
    plain_vector<std::uint32_t> first_of(1, 0), next_of, firsts;  // next_of: as what the first one goes on
    for (std::size_t length = 1; length <= n; ++length) {
      auto const base = static_cast<std::uint32_t>(firsts_.size());
      starts_.push_back(base);
      heads.assign(first_of.size(), none);
      next_of.resize_for_overwrite(first_of.size());
      branches.clear();
      firsts.clear();
      std::size_t a = 0, b = length - 1;
      auto* at = ids_.data() + b * (b + 1) / 2;  // of [a, b]
      auto* const of = class_of.data();
      auto const* const kind_at = kinds.data();
      while (b < n) {
        std::uint32_t id = none;
        auto const parent = of[a];
        auto const kind = kind_at[b];
        auto const first = first_of[parent];
        if (a != first) {
          if (kinds[first + length - 1] == kind) id = next_of[parent];
          else
            for (auto k = heads[parent]; k != none && id == none; k = branches[k].next)
              if (branches[k].kind == kind) id = branches[k].id;
        }
        if (id == none) {
          id = static_cast<std::uint32_t>(firsts.size());
          firsts.push_back(static_cast<std::uint32_t>(a));
          if (a == first) {
            next_of[parent] = id;
          } else {
            branches.push_back({kind, id, heads[parent]});
            heads[parent] = static_cast<std::uint32_t>(branches.size() - 1);
          }
        }
        do of[a] = id, *at = base + id, ++a, ++b, at += b + 1;
        while (b < n && of[a] == parent && kind_at[b] == kind);  // runs of equal blocks
      }
      firsts_.append(firsts.data(), firsts.size());
      std::swap(first_of, firsts);
    }
    starts_.push_back(count());
  }

  /// The class of blocks a to b, both included.
  std::uint32_t operator()(std::size_t a, std::size_t b) const { return that_end(b)[a]; }
  /// By their first block, those of all sub-chains that end with block b.
  std::uint32_t const* that_end(std::size_t b) const { return ids_.data() + b * (b + 1) / 2; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(firsts_.size()); }
  /// f(class, a, b) for each class and the first of its sub-chains, shorter ones first.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t length = 1; length <= size_; ++length)
      for (auto id = starts_[length - 1]; id < starts_[length]; ++id) f(id, firsts_[id], firsts_[id] + length - 1);
  }

 private:
  std::size_t size_;
  plain_vector<std::uint32_t> ids_;     // by b, then a: those of one end lie together
  plain_vector<std::uint32_t> firsts_;  // of each class, where the first of its sub-chains begins
  plain_vector<std::uint32_t> starts_;  // the classes of each length
};

}}  // namespace neap::v0
