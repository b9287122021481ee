// The fourth graph of rkgb: a program cut into blocks. A block has what its nodes compute forward, the backward ops that
// belong to these nodes, and the updates of weights that it can make on its own; and which values cross its
// border.
//
//      prologue           made once, read by all: positions, masks, views of weights
//         |
//     +---v----+  output    +--------+            +--------+
//     | block 0|----------->| block 1|-- ... ---->| block n|     forward, left to right
//     |        |<-----------|        |<- ... -----| (loss) |     backward, right to left
//     +---+----+  gradient  +---+----+            +---+----+
//         |                     |                     |
//         +---------------------+---------------------+-----> epilogue: what joins gradients of several blocks (clipping,
//                                                              sums for tied weights) and the updates that wait for it
//
// In a chain, each block reads one memory of the block before it and hands one gradient back. Where several values cross,
// or reach further than the next block (a decoder reads its encoder), the blocks still run in this order; see is_chain.
#pragma once

#include <neap/blocks/backward_of.hpp>
#include <neap/blocks/cut.hpp>

#include <vector>

namespace neap { inline namespace v0 {

/// All lists of ops are in the order of the program, all lists of values in the order in which the block's ops, forward,
/// backward and updates, first name them: blocks of one class have them in the same order.
struct program_block {
  std::vector<std::uint32_t> nodes;  // of the simplified program
  std::vector<op_id> forward, backward, updates;
  std::vector<value_id> inputs;            // made forward in other blocks, read here
  std::vector<value_id> globals;           // made in the prologue, read here
  std::vector<value_id> sources;           // weights, states, inputs of the program... that it reads
  std::vector<value_id> outputs;           // made here forward, read by other blocks, or kept to the end of the step
  std::vector<value_id> gradient_inputs;   // made backward in other blocks, read here
  std::vector<value_id> gradient_outputs;  // made here backward, read elsewhere, or kept
  std::vector<value_id> saved;             // forward values, inputs and globals among them, that its backward reads
  std::uint32_t block_class = 0;           // equal blocks have the same (block_classes.hpp)
  friend bool operator==(program_block const&, program_block const&) = default;
};

struct block_chain {
  static constexpr std::uint32_t prologue_block = no_id - 1, epilogue_block = no_id;

  std::vector<program_block> blocks;  // in the order of the forward part
  std::vector<op_id> prologue;        // before the blocks: depends on none of them
  std::vector<op_id> epilogue;        // after them: none of them depends on it
  table<op_id, std::uint32_t> block_of;
  table<op_id, step_part> part;
  bool is_chain = true;  // blocks hand one memory to the next one and one gradient back, and nothing else
  friend bool operator==(block_chain const&, block_chain const&) = default;
};

/// The blocks of a cut, each a class of its own as yet. Throws neap::error for ends that do not ascend to the number of
/// nodes. O(ops + edges).
block_chain make_chain(op_graph const& g, basic_program const& b, simplified_program const& p,
                       backward_nodes const& back, block_ends const& ends);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/block_chain.ipp>
#endif
