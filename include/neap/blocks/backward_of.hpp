// Which forward node each op behind the forward part belongs to. A training graph is one list of ops: it does not say whose
// gradient an op computes, least of all in graphs that come from elsewhere. What the graph does say:
//
//   - Gradients flow against the forward part: what depends on the backward of a node belongs to that node or to earlier
//     ones.
//   - The backward of a node reads what the node reads and makes. An op that reads a forward result, a weight or an input
//     belongs to one of the nodes that touch it (the maker or a reader).
//
// These give each op a first and a last node. Between them the bytes decide: nodes are cut off one after the other, from
// the last to the first, and at each cut the ops still free are divided so that the fewest bytes of gradients cross
// (a least cut). So a sum of two contributions belongs to the reader that completes it. Of equal divisions the one counts
// that gives the node what reads gradients of its readers, and leaves all else to earlier nodes: what reads the complete
// gradient of a value belongs to the node that made the value. What reads no such thing and leads to no further gradient (a
// sum for a bias) joins the node that made what the gradient is of, or the last of the others that read that gradient:
// it keeps no gradient longer than they do. Nodes that are not trained have no backward.
//
// The result is monotone: an op never belongs to a later node than an op that it reads a result of. Constants, which
// depend on no gradient and have no place, belong to the last of the nodes that read them, or, where these are several and
// the constant needs nothing of any node, to none.
#pragma once

#include <neap/blocks/simplified_program.hpp>

namespace neap { inline namespace v0 {

struct backward_nodes {
  table<op_id, std::uint32_t> node;    // no_id: forward, or of no node (counters of steps...)
  table<op_id, unsigned char> placed;  // it reads forward results, weights or inputs, which place it among nodes
  table<op_id, unsigned char> leads;   // gradients of other nodes depend on its results; else it ends in gradients of
                                       // weights and their updates
};

/// O(ops + edges) and a small flow problem a node.
backward_nodes find_backward(op_graph const& g, basic_program const& b, simplified_program const& p);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/backward_of.ipp>
#endif
