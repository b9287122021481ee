// The bodies of <neap/train/program_places.hpp>.
#pragma once

#include <neap/train/program_places.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC program_places::program_places(op_graph const& g, std::string_view who)
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

}}}  // namespace neap::v0::detail
