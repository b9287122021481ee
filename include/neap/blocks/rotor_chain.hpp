// A chain of blocks as rk-Rotor's table reads it: the loss as its last block, sizes in the largest unit that divides them
// all, and how much memory each choice needs.
#pragma once

#include <neap/blocks/range_best.hpp>
#include <neap/blocks/range_sum.hpp>
#include <neap/plan/chain_profile.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// Which plans a solver takes to fit. `exact`: those that do. `peer`: those that Rockmate's solver takes to fit, which
/// forgets the gradient of a block's output in its backward, so that plans go over their budget by up to 10 %, and asks
/// elsewhere for more than is needed. For comparison only.
enum class chain_limits : std::uint8_t { exact, peer };

namespace detail {

/// Blocks 0 to size, of which the last is the loss. O(n log n).
struct rotor_chain {
  struct option {
    double extra;  // time beyond the fastest option's
    slots_t saved, forward, backward;
    std::uint32_t number;
    friend bool operator==(option const&, option const&) = default;
  };
  struct block_kind {
    double pass_time = 0;
    slots_t pass_temporary = 0;
    std::vector<option> options{};   // none that another one is at least as good as in everything
    bool backward_asks_more = true;  // than the forward, whatever the option
  };

  rotor_chain(chain_profile const& chain, chain_limits limits);

  block_kind const& kind(std::size_t i) const { return kinds[kind_of[i]]; }
  double forward(std::size_t a, std::size_t j) const { return forwards(a, j); }

  /// The least memory for saving block a with an option, at the beginning of [a, b].
  slots_t save_limit(std::size_t a, std::size_t b, option const& o) const;
  /// The least memory for running blocks a to j-1 of [a, b] without saving.
  slots_t pass_limit(std::size_t a, std::size_t b, std::size_t j) const {
    return exact ? passing(a, b, j) : peer_limit(a, b);
  }
  slots_t passing(std::size_t a, std::size_t b, std::size_t j) const {
    slots_t const first = input[a + 1] + kind(a).pass_temporary;
    return gradient[b + 1] + (a + 1 < j ? std::max(first, max_pass(a + 1, j)) : first);
  }
  /// Rockmate requires of every sub-chain that all of it can be run without saving.
  slots_t peer_limit(std::size_t a, std::size_t b) const { return passing(a, b, b); }
  /// The largest j of [a, b]. To run all blocks without saving before the loss is never faster: that the last block
  /// saves costs no more than that it runs again.
  std::size_t last_later(std::size_t b) const { return exact && b == size ? size - 1 : b; }
  /// What bounds pass_limit of [a, b] from below by each block passed, beside its own memory. The peer's limit does not
  /// grow with j.
  slots_t growth(std::size_t b) const { return exact ? gradient[b + 1] : INT64_MIN / 2; }
  /// pass_limit of j, from that of j - 1. The input of block a is outside.
  slots_t next_limit(std::size_t a, std::size_t b, std::size_t j, slots_t limit) const {
    return exact && j > a + 1 ? std::max(limit, gradient[b + 1] + passes[j - 1]) : limit;
  }

  /// Blocks with equal numbers are equal, the sizes before and after them included.
  std::vector<std::uint32_t> surrounded_kinds() const;

  std::size_t size;
  bool exact;
  slots_t unit = 1;
  std::vector<block_kind> kinds;       // of blocks by themselves; the last one is the loss
  std::vector<std::uint32_t> kind_of;  // size + 1
  std::vector<slots_t> input;          // size + 2: nothing comes after the loss
  std::vector<slots_t> gradient;       // y_i and what blocks i and on have left
  std::vector<char> bounds_after;      // O(a, b', m) bounds O(a, b, m) for this b'
  std::vector<slots_t> passes;         // memory of block i's forward amid others: input, output, temporary
  range_sum forwards;                  // times of plain forwards
  range_best<slots_t, best_is::least> least_input, least_gradient;
  range_best<slots_t, best_is::most> max_pass;

 private:
  /// Whether blocks are equal by themselves, whatever is before and after them.
  static bool alike(chain_block const& a, chain_block const& b) {
    return a.pass_time == b.pass_time && a.pass_temporary == b.pass_temporary && a.options == b.options;
  }

  block_kind kind_read(chain_block const& b) const;
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/rotor_chain.ipp>
#endif
