// Plain checkpointing of a deep model: the inputs of every k layers are kept, what lies between is made again block by
// block, the last block is not. The yardstick of searches with recomputation.
#pragma once

#include <neap/mutate/build_edit.hpp>
#include <neap/mutate/compute_again.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "deep_graph.hpp"

#include <algorithm>
#include <vector>

namespace neap::testing {

struct checkpointed {
  std::size_t every;
  bytes_t peak;
  seconds_t latency;
};

/// For all k up to 16, and then for some.
inline std::vector<checkpointed> plain_checkpointing(deep_model const& m, memory_options memory) {
  auto const& g = m.program;
  auto const& inputs = m.layer_inputs;
  schedule const order = given_order{}(g);
  auto const at = positions(order);
  auto const made_at = [&](value_id v) { return g.producer(v) == nothing<op_id> ? -1 : int(at[g.producer(v)]); };
  auto const turn = static_cast<std::uint32_t>(made_at(inputs.back()) + 1);
  std::vector<checkpointed> found;
  for (std::size_t k = 1; k <= inputs.size(); k += std::max<std::size_t>(1, k / 16)) {
    plain_vector<std::uint32_t> turn_of(g.storage_count(), no_id);
    auto const last_block = made_at(inputs[(inputs.size() - 2) / k * k]);
    for (auto v : g.values())
      if (made_at(v) >= 0 && made_at(v) < last_block) turn_of[index(g.storage(v))] = turn;
    for (std::size_t i = 0; i < inputs.size(); i += k) turn_of[index(g.storage(inputs[i]))] = no_id;
    graph_edit edit;
    if (!neap::detail::again_builder(g, order, turn_of).edit(edit)) continue;
    auto const e = build(g, order, edit);
    auto const s = simulate(e.graph, e.order, given_latencies{}, memory);
    found.push_back({k, s.peak_bytes, s.latency});
  }
  return found;
}

}  // namespace neap::testing
