// Answers for a block some of whose saved values are not in memory while the block pauses: each is stored when it is
// made, and loaded again for the backward. What is made first has the longest way there and back, and leaves first.
//
//   forward   a ---- b ---- c ----|  pause, the rest of the chain runs  |---- C ---- B ---- A   backward
//   out         [store a][store b]                               [load b][load a]      in
//
// Options of their own to rk-Rotor, as Beaumont, Eyraud-Dubois and Shilova join recomputation and offloading (Efficient
// combination of rematerialization and offloading for training DNNs, NeurIPS 2021), with more values than one a block.
#pragma once

#include <neap/blocks/block_problem.hpp>
#include <neap/blocks/block_walk.hpp>

#include <vector>

namespace neap { inline namespace v0 {

/// The answer with values away, of those that are `movable` (by datum of the block), and of `input` bytes that the block
/// before hands on, 0 if they stay: so many parts of all that can leave, by bytes, the last of them all. Nothing where nothing
/// can. O(levels * steps).
std::vector<std::vector<block_step>> swaps_of(block_facts const& f, block_problem const& b, remat_answer const& a,
                                              std::vector<unsigned char> const& movable, bytes_t input, int levels);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/block_swaps.ipp>
#endif
