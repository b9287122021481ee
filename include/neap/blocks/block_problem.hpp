// A block of a program as a problem of recomputation.
//
//   ops of the problem   forward ops | the rest of the chain | backward ops, each update behind what it waits for
//
// The rest of the chain is an op that takes no time, reads what the block hands on, and makes the gradients that come
// back; in it the block pauses. What an answer holds there is saved; what the block was given and hands on is paid for by
// the chain. Memory that is never given back (what is kept, what other blocks read, too, what cannot be made again)
// counts nothing: it is there whatever a solver decides.
#pragma once

#include <neap/blocks/block_facts.hpp>
#include <neap/plan/remat_problem.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// A block as a solver sees it. `rest` is the op that stands for the rest of the chain.
struct block_problem {
  remat_problem problem;
  std::vector<std::uint32_t> op_of;  // by op of the problem: the block's op (block_facts::ops), or no_id for the rest
  std::vector<std::uint32_t> datum_of;  // by value of the problem: the block's datum (block_facts::data)
  std::uint32_t rest = 0;
  bytes_t handed_on = 0;                   // what the block hands on to the next one
  bool reads_handed_on = false;            // some op of the block reads that itself
  std::vector<unsigned char> reads_input;  // by op of the problem: it reads what the block before hands on
  std::vector<unsigned char> passes;  // by op of the problem, up to the rest: it runs in the forward that saves nothing
  friend bool operator==(block_problem const&, block_problem const&) = default;
};

/// `held` by datum: it is never given back, once it is there. `updates_last`: no op of the block runs again behind an
/// update, which it could not if it reads what that overwrites. O(ops + data).
block_problem problem_of(block_facts const& f, std::vector<unsigned char> const& held, bool updates_last = false);

/// Everything once: nothing is computed again.
remat_answer save_everything(block_problem const& b);

/// Nothing is saved that can be made again: all of the forward that is needed runs once more before the backward.
remat_answer save_input(block_problem const& b);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/block_problem.ipp>
#endif
