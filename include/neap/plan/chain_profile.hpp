// A chain of blocks as a rematerialization solver sees it: what each block takes of memory and time, in each of the ways
// (options) in which it can be run forward and backward. Memory is in slots, whatever a slot is (a byte, a MiB), times in
// whatever unit: answers come in the same.
//
//     x_0 -> block 0 -> x_1 -> block 1 -> ... -> x_n -> loss, and back: y_n -> ... -> y_0, y_i the gradient of x_i,
//                                                                                     as large as x_i
#pragma once

#include <neap/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

using slots_t = std::int64_t;  // an amount of memory in a chain's own unit

/// One way to run a block so that its backward can follow.
struct block_option {
  double forward_time = 0;
  double backward_time = 0;
  slots_t saved = 0;               ///< what the forward leaves for the backward, the block's output included; the last
                                   ///< block's output, which is the chain's result, is not counted
  slots_t forward_temporary = 0;   ///< beyond input and what is saved, while the forward runs
  slots_t backward_temporary = 0;  ///< beyond input, saved, both gradients, and what later blocks left, while the
                                   ///< backward runs
  friend bool operator==(block_option const&, block_option const&) = default;
};

struct chain_block {
  slots_t input = 0;           ///< x_i
  double pass_time = 0;        ///< of the forward that saves nothing
  slots_t pass_temporary = 0;  ///< beyond input and output, while that runs
  std::vector<block_option> options{};
  slots_t left = 0;  ///< what the backward leaves to the end of the step: gradients of weights
  friend bool operator==(chain_block const&, chain_block const&) = default;
};

/// The loss follows the last block; it takes no time, and leaves the gradient of the output.
struct chain_profile {
  std::vector<chain_block> blocks{};
  slots_t output = 0;  ///< x_n, the last block's output
  friend bool operator==(chain_profile const&, chain_profile const&) = default;

  std::size_t size() const { return blocks.size(); }
  /// x_i for i from 0 to n.
  slots_t input(std::size_t i) const { return i < blocks.size() ? blocks[i].input : output; }
};

/// The largest size that a chain may name; sums over a chain stay far from overflow.
inline constexpr slots_t max_slots = slots_t{1} << 40;
/// The longest time of one run of one block.
inline constexpr double max_block_time = 1e30;

/// One line that says what is wrong with a chain and where, or success.
inline status check(chain_profile const& chain) {
  auto const at = [](std::size_t i) { return "block " + std::to_string(i) + ": "; };
  auto const size = [](slots_t s) { return s >= 0 && s <= max_slots; };
  auto const time = [](double t) { return t >= 0 && t <= max_block_time; };  // false for NaN
  if (chain.blocks.empty()) return failure{"the chain has no blocks"};
  if (!size(chain.output)) return failure{"the output's size must be from 0 to 2^40 slots"};
  for (std::size_t i = 0; i < chain.size(); ++i) {
    auto const& b = chain.blocks[i];
    if (!size(b.input)) return failure{at(i) + "the input's size must be from 0 to 2^40 slots"};
    if (!size(b.pass_temporary))
      return failure{at(i) + "temporary memory of the plain forward must be from 0 to 2^40 slots"};
    if (!time(b.pass_time)) return failure{at(i) + "the time of the plain forward must be from 0 to 1e30"};
    if (!size(b.left)) return failure{at(i) + "what its backward leaves must be from 0 to 2^40 slots"};
    if (b.options.empty()) return failure{at(i) + "has no options"};
    for (std::size_t k = 0; k < b.options.size(); ++k) {
      auto const& o = b.options[k];
      auto const option = [&] { return at(i) + "option " + std::to_string(k) + ": "; };
      if (!size(o.saved)) return failure{option() + "what is saved must be from 0 to 2^40 slots"};
      if (!size(o.forward_temporary) || !size(o.backward_temporary))
        return failure{option() + "temporary memory must be from 0 to 2^40 slots"};
      if (!time(o.forward_time) || !time(o.backward_time)) return failure{option() + "times must be from 0 to 1e30"};
    }
  }
  return {};
}

/// The time of a chain in which every block takes its fastest option and nothing is recomputed: no plan takes less
/// unless a plain forward is free.
inline double least_time(chain_profile const& chain) {
  double sum = 0;
  for (auto const& b : chain.blocks) {
    double best = HUGE_VAL;
    for (auto const& o : b.options) best = std::min(best, o.forward_time + o.backward_time);
    sum += best;
  }
  return sum;
}

/// The chain in larger slots, each of so many of its own, every size rounded up: a plan that fits `limit / slot` of them
/// fits `limit` of the chain's own.
inline chain_profile in_slots(chain_profile chain, slots_t slot) {
  auto const round = [&](slots_t& s) { s = s / slot + (s % slot != 0); };
  round(chain.output);
  for (auto& b : chain.blocks) {
    round(b.input);
    round(b.pass_temporary);
    round(b.left);
    for (auto& o : b.options) round(o.saved), round(o.forward_temporary), round(o.backward_temporary);
  }
  return chain;
}

}}  // namespace neap::v0
