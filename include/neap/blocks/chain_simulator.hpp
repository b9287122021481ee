// What a sequence for a chain of blocks does, played step by step: its time, its peak, or the first step that cannot be
// run. Slow and plain on purpose, and without a line in common with the solver: it is what solvers are judged by.
//
// In memory are inputs x_i that are kept, what options saved of blocks (their outputs included), and gradients y_i.
//   C i  reads x_i, makes x_{i+1}
//   N i  the same, then drops x_i; an x_i that is only a part of what block i-1 saved is needed there, and cannot be
//   E i  reads x_i, leaves what the option saves
//   L    reads x_n, makes y_n
//   B i  reads x_i, what block i saved, and y_{i+1}; makes y_i; drops y_{i+1}, what was saved, and x_i where it is kept;
//        leaves what the block leaves to the end
// The chain's input x_0 is there at the beginning and counts. x_n, made by N or C, stays to the end.
#pragma once

#include <neap/plan/chain_profile.hpp>
#include <neap/plan/chain_sequence.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

struct chain_simulation {
  double time = 0;
  slots_t peak = 0;  ///< x_0 included
};

/// Time and peak of a whole training step of the chain, or the first step that cannot be run, by its number from 0.
inline result<chain_simulation> simulate(chain_profile const& chain, chain_sequence const& sequence) {
  std::size_t const n = chain.size();
  std::vector<bool> kept(n + 1, false), gradient(n + 1, false);
  std::vector<std::optional<std::uint32_t>> saved(n);  // the option with which block i saved
  kept[0] = true;
  bool lost = false;  // the loss was run
  slots_t left = 0;   // by backwards

  chain_simulation seen;
  auto const in_use = [&] {
    slots_t sum = left;
    for (std::size_t i = 0; i <= n; ++i) {
      if (kept[i]) sum += chain.input(i);
      if (gradient[i]) sum += chain.input(i);
      if (i < n && saved[i]) sum += chain.blocks[i].options[*saved[i]].saved;
    }
    return sum;
  };
  auto const has_input = [&](std::size_t i) { return kept[i] || (i > 0 && saved[i - 1]); };
  seen.peak = in_use();

  for (std::size_t s = 0; s < sequence.size(); ++s) {
    auto const& op = sequence[s];
    std::size_t const i = op.block;
    auto const wrong = [&](std::string const& what) {
      return failure{"step " + std::to_string(s) + " (" + to_string(op) + "): " + what};
    };
    if (op.step == chain_step::loss) {
      if (lost) return wrong("the loss was run before");
      if (!has_input(n)) return wrong("the output of the last block is not there");
      lost = true;
      gradient[n] = true;
      seen.peak = std::max(seen.peak, in_use());
      continue;
    }
    if (i >= n) return wrong("the chain has " + std::to_string(n) + " blocks");
    auto const& block = chain.blocks[i];
    if (!has_input(i)) return wrong("its input is not there");
    slots_t temporary = 0;
    switch (op.step) {
      case chain_step::pass_keep:
      case chain_step::pass_drop:
        if (op.step == chain_step::pass_drop && !kept[i]) return wrong("its input is kept for the backward before it");
        if (has_input(i + 1)) return wrong("its output is there already");
        kept[i + 1] = true;
        temporary = block.pass_temporary;
        seen.time += block.pass_time;
        break;
      case chain_step::save:
        if (op.option >= block.options.size()) return wrong("the block has no such option");
        if (saved[i] || (kept[i + 1] && i + 1 < n)) return wrong("its output is there already");
        saved[i] = op.option;
        temporary = block.options[op.option].forward_temporary;
        seen.time += block.options[op.option].forward_time;
        break;
      case chain_step::backward:
        if (!saved[i]) return wrong("nothing was saved for it");
        if (!gradient[i + 1]) return wrong("the gradient of its output is not there");
        gradient[i] = true;
        temporary = block.options[*saved[i]].backward_temporary;
        seen.time += block.options[*saved[i]].backward_time;
        break;
      case chain_step::loss: break;
    }
    seen.peak = std::max(seen.peak, in_use() + temporary);
    if (op.step == chain_step::pass_drop) kept[i] = false;
    if (op.step == chain_step::backward) {
      kept[i] = false;
      gradient[i + 1] = false;
      saved[i].reset();
      left += block.left;
    }
  }
  if (!lost) return failure{"the loss is never run"};
  if (!gradient[0]) return failure{"the gradient of the chain's input is never made"};
  for (std::size_t i = 0; i < n; ++i)
    if (kept[i] || saved[i]) return failure{"block " + std::to_string(i) + ": something of it is left at the end"};
  return seen;
}

}}  // namespace neap::v0
