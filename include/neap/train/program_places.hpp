// What passes share that move ops within a program: an order, and how far an op may wait in it.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/error.hpp>
#include <neap/ir/traversal.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace neap::inline v0::detail {

struct program_places {
  std::vector<op_id> order;
  table<op_id, std::size_t> place;  // in the order
  table<op_id, std::size_t>
      next_writer;  // the place of the first op that must run after this one; the number of ops: none

  /// Throws neap::error, beginning with `who`, for a graph with parts or a cycle.
  NEAP_ONCE program_places(op_graph const& g, std::string_view who)
      : order(topological_order(g)),
        place(g.op_count(), 0),
        next_writer(g.op_count(), g.op_count()) {
    if (!g.parts().empty()) throw_error({who, ": the graph has parts"});
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (auto o : order)
      for (auto v : g.inputs(o))
        if (auto const p = g.producer(v); p != nothing<op_id> && place[p] > place[o])
          throw_error({who, ": the graph has a cycle at op ", index(o)});
    for (auto o : order)
      for (auto before : g.order_after(o)) next_writer[before] = std::min(next_writer[before], place[o]);
  }
};

}  // namespace neap::inline v0::detail
