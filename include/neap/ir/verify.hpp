// The invariants of a graph, all in one place. Tests call verify() everywhere, readers of files before they give a
// graph away; hot loops do not: it costs a few times what building the graph did.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/external.hpp>
#include <neap/ir/traversal.hpp>

namespace neap { inline namespace v0 {

/// Every invariant of a graph holds, or one line that names the op, value or storage and what is wrong with it.
/// O(ops + edges), and a sort of the values where storages are updated.
status verify(op_graph const& g);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/verify.ipp>
#endif
