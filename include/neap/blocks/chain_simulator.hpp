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

namespace detail {

/// What is there between two steps of a chain.
struct chain_memory {
  explicit chain_memory(chain_profile const& c) : chain(c), n(c.size()), kept(n + 1), gradient(n + 1), saved(n) {
    kept[0] = true;
  }

  slots_t in_use() const {
    slots_t sum = left;
    for (std::size_t i = 0; i <= n; ++i) {
      if (kept[i]) sum += chain.input(i);
      if (gradient[i]) sum += chain.input(i);
      if (i < n && saved[i]) sum += chain.blocks[i].options[*saved[i]].saved;
    }
    return sum;
  }
  bool has_input(std::size_t i) const { return kept[i] || (i > 0 && saved[i - 1]); }
  /// Why a step cannot be run, or an empty line.
  std::string fault_of(chain_op const& op) const {
    std::size_t const i = op.block;
    if (op.step == chain_step::loss)
      return lost ? "the loss was run before" : has_input(n) ? "" : "the output of the last block is not there";
    if (i >= n) return "the chain has " + std::to_string(n) + " blocks";
    if (!has_input(i)) return "its input is not there";
    switch (op.step) {
      case chain_step::pass_keep:
      case chain_step::pass_drop:
        if (op.step == chain_step::pass_drop && !kept[i]) return "its input is kept for the backward before it";
        return has_input(i + 1) ? "its output is there already" : "";
      case chain_step::save:
        if (op.option >= chain.blocks[i].options.size()) return "the block has no such option";
        return saved[i] || (kept[i + 1] && i + 1 < n) ? "its output is there already" : "";
      case chain_step::backward:
        if (!saved[i]) return "nothing was saved for it";
        return gradient[i + 1] ? "" : "the gradient of its output is not there";
      case chain_step::loss: break;
    }
    return {};
  }
  /// Runs a step without fault.
  void run(chain_op const& op, chain_simulation& seen) {
    std::size_t const i = op.block;
    slots_t temporary = 0;
    switch (op.step) {
      case chain_step::pass_keep:
      case chain_step::pass_drop:
        kept[i + 1] = true;
        temporary = chain.blocks[i].pass_temporary;
        seen.time += chain.blocks[i].pass_time;
        break;
      case chain_step::save:
        saved[i] = op.option;
        temporary = chain.blocks[i].options[op.option].forward_temporary;
        seen.time += chain.blocks[i].options[op.option].forward_time;
        break;
      case chain_step::backward:
        gradient[i] = true;
        temporary = chain.blocks[i].options[*saved[i]].backward_temporary;
        seen.time += chain.blocks[i].options[*saved[i]].backward_time;
        break;
      case chain_step::loss: lost = gradient[n] = true; break;
    }
    seen.peak = std::max(seen.peak, in_use() + temporary);
    if (op.step == chain_step::pass_drop) kept[i] = false;
    if (op.step == chain_step::backward) {
      kept[i] = false;
      gradient[i + 1] = false;
      saved[i].reset();
      left += chain.blocks[i].left;
    }
  }

  chain_profile const& chain;
  std::size_t n;
  std::vector<bool> kept, gradient;
  std::vector<std::optional<std::uint32_t>> saved;  // the option with which block i saved
  bool lost = false;                                // the loss was run
  slots_t left = 0;                                 // by backwards
};

}  // namespace detail

/// Time and peak of a whole training step of the chain, or the first step that cannot be run, by its number from 0.
inline result<chain_simulation> simulate(chain_profile const& chain, chain_sequence const& sequence) {
  detail::chain_memory memory(chain);
  chain_simulation seen{.peak = memory.in_use()};
  for (std::size_t s = 0; s < sequence.size(); ++s) {
    if (auto const wrong = memory.fault_of(sequence[s]); !wrong.empty())
      return failure{"step " + std::to_string(s) + " (" + to_string(sequence[s]) + "): " + wrong};
    memory.run(sequence[s], seen);
  }
  if (!memory.lost) return failure{"the loss is never run"};
  if (!memory.gradient[0]) return failure{"the gradient of the chain's input is never made"};
  for (std::size_t i = 0; i < memory.n; ++i)
    if (memory.kept[i] || memory.saved[i])
      return failure{"block " + std::to_string(i) + ": something of it is left at the end"};
  return seen;
}

}}  // namespace neap::v0
