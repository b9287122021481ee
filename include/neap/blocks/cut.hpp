// Where a program is cut into blocks. A cut is a list of ends: block k holds the nodes [ends[k - 1], ends[k]) of the
// simplified program, which stand in an order in which they can run, so that whatever the cut, values go forward from
// block to block only.
//
//   cut_at_separators   behind each node that all of the gradient's way leads through: a chain (Rockmate's cut)
//   cut_at_repeats      around the instances of the longest repeated pattern of nodes, then of the next in what is left
//   cut_bottom_up       neighbours are joined where most bytes cross, until there are few blocks (HiRemate's idea)
//   cut_blocks          separators; what is too long between two of them by repeats; what is still too long bottom up
//
// Values that depend on no weight (masks, positions) do not count: they need no gradient, and a block that reads them in
// several blocks finds them made before the first. What a decoder reads of its encoder crosses every end between its
// layers, so it has no separators; but it has repeats.
#pragma once

#include <neap/blocks/simplified_program.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

using block_ends = std::vector<std::uint32_t>;

/// Nodes that are trained and that everything weighted which later nodes read comes from, ascending; the last node is
/// always one. O(nodes + edges).
std::vector<std::uint32_t> separators(simplified_program const& p);

block_ends cut_at_separators(simplified_program const& p);

struct cut_options {
  std::uint32_t max_nodes = 40;    // of a block between two separators that is left as it is
  std::uint32_t max_period = 256;  // nodes of a repeated pattern
  std::uint32_t max_blocks = 20;   // that a program is cut into bottom up
};

/// O(nodes * options.max_period).
block_ends cut_at_repeats(op_graph const& g, simplified_program const& p, cut_options const& options = {});

/// At most options.max_blocks blocks. O(nodes log nodes).
block_ends cut_bottom_up(op_graph const& g, simplified_program const& p, cut_options const& options = {});

block_ends cut_blocks(op_graph const& g, simplified_program const& p, cut_options const& options = {});

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/cut.ipp>
#endif
