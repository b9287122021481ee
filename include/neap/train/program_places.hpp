// What passes share that move ops within a program: an order, and how far an op may wait in it.
#pragma once

#include <neap/core/error.hpp>
#include <neap/ir/traversal.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

struct program_places {
  std::vector<op_id> order;
  table<op_id, std::size_t> place;  // in the order
  table<op_id, std::size_t>
      next_writer;  // the place of the first op that must run after this one; the number of ops: none

  /// Throws neap::error, beginning with `who`, for a graph with parts or a cycle.
  program_places(op_graph const& g, std::string_view who);
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/program_places.ipp>
#endif
