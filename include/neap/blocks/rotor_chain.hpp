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
#include <numeric>
#include <utility>
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

  rotor_chain(chain_profile const& chain, chain_limits limits)
      : size(chain.size()),
        exact(limits == chain_limits::exact) {
    auto const room = size + 2;
    input.reserve(room), passes.reserve(room), kind_of.reserve(room);
    std::vector<double> pass_times;
    pass_times.reserve(size + 1);
    // Equal blocks are read once.
    std::vector<chain_block const*> seen;
    for (auto const& b : chain.blocks) {
      std::size_t k = 0;
      while (k < seen.size() && !alike(*seen[k], b)) ++k;
      if (k == seen.size()) seen.push_back(&b);
      kind_of.push_back(static_cast<std::uint32_t>(k));
    }
    slots_t common = chain.output;
    for (auto const& b : chain.blocks) common = std::gcd(std::gcd(common, b.input), b.left);
    for (auto const* b : seen) {
      common = std::gcd(common, b->pass_temporary);
      for (auto const& o : b->options)
        common = std::gcd(std::gcd(common, o.saved), std::gcd(o.forward_temporary, o.backward_temporary));
    }
    unit = std::max<slots_t>(common, 1);
    kinds.reserve(seen.size() + 1);
    for (auto const* b : seen) kinds.push_back(kind_read(*b));
    kinds.push_back({0, 0, {{0, 0, 0, 0, 0}}});  // the loss
    kind_of.push_back(static_cast<std::uint32_t>(seen.size()));
    for (std::size_t i = 0; i < size; ++i) {
      auto const& b = chain.blocks[i];
      input.push_back(b.input / unit);
      passes.push_back((b.input + chain.input(i + 1) + b.pass_temporary) / unit);
      pass_times.push_back(b.pass_time);
      // Rockmate requires x_i + forward of a block alone, x_{i+1} + forward of one that others follow.
      bounds_after.push_back(exact || b.input <= chain.input(i + 1) || kind(i).backward_asks_more);
    }
    input.push_back(chain.output / unit);
    input.push_back(0);
    pass_times.push_back(0);
    forwards = range_sum(std::move(pass_times));
    passes.push_back(input[size]);
    gradient = input;
    slots_t left = 0;
    for (std::size_t i = size; i-- > 0;) gradient[i] += left += chain.blocks[i].left / unit;
    least_input = range_best<slots_t, best_is::least>(input);
    least_gradient = range_best<slots_t, best_is::least>(gradient);
    max_pass = range_best<slots_t, best_is::most>(passes);
  }

  block_kind const& kind(std::size_t i) const { return kinds[kind_of[i]]; }
  double forward(std::size_t a, std::size_t j) const { return forwards(a, j); }

  /// The least memory for saving block a with an option, at the beginning of [a, b].
  slots_t save_limit(std::size_t a, std::size_t b, option const& o) const {
    if (exact) return std::max(gradient[b + 1] + o.forward, input[a] + gradient[a + 1] + o.backward);
    if (a == b) return input[a] + std::max(o.forward, o.backward);
    return std::max({peer_limit(a, b), o.saved, input[a + 1] + o.forward, input[a] + o.backward});
  }
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
  std::vector<std::uint32_t> surrounded_kinds() const {
    std::vector<std::uint32_t> number(size + 1), first;
    for (std::uint32_t i = 0; i <= size; ++i) {
      std::uint32_t k = 0;
      for (; k < first.size(); ++k)
        if (auto const f = first[k]; kind_of[f] == kind_of[i] && input[f] == input[i] && input[f + 1] == input[i + 1] &&
                                     gradient[f + 1] == gradient[i + 1])
          break;
      if (k == first.size()) first.push_back(i);
      number[i] = k;
    }
    return number;
  }

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

  block_kind kind_read(chain_block const& b) const {
    double fastest = HUGE_VAL;
    for (auto const& o : b.options) fastest = std::min(fastest, o.forward_time + o.backward_time);
    block_kind read{b.pass_time, b.pass_temporary / unit, {}};
    for (std::size_t k = 0; k < b.options.size(); ++k) {
      auto const& o = b.options[k];
      option const one{o.forward_time + o.backward_time - fastest, o.saved / unit,
                       (o.saved + o.forward_temporary) / unit, (o.saved + o.backward_temporary) / unit,
                       static_cast<std::uint32_t>(k)};
      auto const as_good = [](option const& x, option const& y) {
        return x.extra <= y.extra && x.saved <= y.saved && x.forward <= y.forward && x.backward <= y.backward;
      };
      if (std::ranges::any_of(read.options, [&](auto const& x) { return as_good(x, one); })) continue;
      std::erase_if(read.options, [&](auto const& x) { return as_good(one, x); });
      read.options.push_back(one);
    }
    read.backward_asks_more = std::ranges::all_of(read.options, [](auto const& o) { return o.forward <= o.backward; });
    return read;
  }
};

}  // namespace detail

}}  // namespace neap::v0
