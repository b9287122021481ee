// Which blocks are equal, so that each kind is measured and solved once. A block is written down with everything that
// names itself (ops, values, memories, keys of random draws) replaced by numbers in the order of first appearance, as in
// rkgb's anonymisation; blocks are equal if what is written is equal, word by word. A hash finds candidates, and is never
// believed alone.
//
// What counts: operators with their attributes, targets and details; types, layouts, bytes; which argument is which value;
// aliases and versions; roles; what comes from where (inside, an input, the prologue, a source, a gradient) and what is
// used outside or kept. What does not: names, and which one of several equal weights it is. Two blocks whose ops stand in
// another order are different classes: programs repeat their layers in one order.
#pragma once

#include <neap/blocks/block_chain.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

struct block_class {
  std::uint32_t representative;       // the first block of the class
  std::vector<std::uint32_t> blocks;  // all of them, ascending
  friend bool operator==(block_class const&, block_class const&) = default;
};

/// Ops and values of a block in the order in which it is written down: equal blocks have equals at equal places.
struct block_names {
  std::vector<op_id> ops;
  std::vector<value_id> values;  // all that the ops read or make
};

/// A block's ops (forward, backward, updates) and values, in the order that blocks of one class share.
block_names names_of(op_graph const& g, block_chain const& c, std::uint32_t block);

/// A block written down: equal for equal blocks, and for no others.
std::vector<std::uint64_t> written_block(op_graph const& g, block_chain const& c, std::uint32_t block);

/// The classes in the order of their first blocks; each block gets its class. O(ops + edges) and what is compared.
std::vector<block_class> classify(op_graph const& g, block_chain& c);

/// What of the class's representative is called what in another block of the class. Ids of ops and values that are not
/// of the representative stay nothing.
struct block_renaming {
  table<op_id, op_id> op;
  table<value_id, value_id> value;
};

/// Throws neap::error if the blocks are not of one class.
block_renaming renaming(op_graph const& g, block_chain const& c, std::uint32_t from, std::uint32_t to);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/block_classes.ipp>
#endif
