// Which sub-chains of a chain are equal, block for block: a solver solves one of each class. In a chain with a period p
// there are about n p classes instead of n^2 / 2. Equality is exact, never that of hashes: sub-chains of length L are
// told apart by the class of their first L - 1 blocks and their last block.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/plan/chain_profile.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace neap::inline v0 {

class chain_classes {
 public:
  /// Classes of sub-chains of `kinds.size()` blocks, of which those with equal kinds are equal. Takes time and memory
  /// that go with the square of their number.
  explicit chain_classes(std::vector<std::uint32_t> const& kinds) : ids_(kinds.size() * (kinds.size() + 1) / 2) {
    std::size_t const n = kinds.size();
    struct next_kind {  // what may follow a class: a list
      std::uint32_t kind, id, next;
    };
    std::vector<next_kind> lists;
    constexpr std::uint32_t none = UINT32_MAX;
    // The empty sub-chain is one class, whose members are all places.
    plain_vector<std::uint32_t> class_of(n, 0), size_of(1, static_cast<std::uint32_t>(n)), sizes, heads;
    std::uint32_t first_id = 0;  // classes of one length are numbered from here
    for (std::size_t length = 1; length <= n; ++length) {
      sizes.clear();
      heads.assign(size_of.size(), none);
      lists.clear();
      for (std::size_t a = 0; a + length <= n; ++a) {
        std::size_t const b = a + length - 1;
        std::uint32_t id = none;
        auto const parent = class_of[a];
        if (size_of[parent] == 1) {
          id = static_cast<std::uint32_t>(sizes.size());
          sizes.push_back(0);
        } else {
          for (auto at = heads[parent]; at != none && id == none; at = lists[at].next)
            if (lists[at].kind == kinds[b]) id = lists[at].id;
          if (id == none) {
            id = static_cast<std::uint32_t>(sizes.size());
            sizes.push_back(0);
            lists.push_back({kinds[b], id, heads[parent]});
            heads[parent] = static_cast<std::uint32_t>(lists.size() - 1);
          }
        }
        ++sizes[id];
        class_of[a] = id;
        ids_[b * (b + 1) / 2 + a] = first_id + id;
      }
      first_id += static_cast<std::uint32_t>(sizes.size());
      std::swap(size_of, sizes);
    }
    count_ = first_id;
  }

  /// The class of blocks a to b, both included.
  std::uint32_t operator()(std::size_t a, std::size_t b) const { return that_end(b)[a]; }
  /// By their first block, those of all sub-chains that end with block b.
  std::uint32_t const* that_end(std::size_t b) const { return ids_.data() + b * (b + 1) / 2; }
  std::uint32_t count() const { return count_; }

 private:
  std::vector<std::uint32_t> ids_;  // by b, then a: those of one end lie together
  std::uint32_t count_ = 0;
};

}  // namespace neap::inline v0
