// Random topological orders of a graph, for tests.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/plan/schedule.hpp>

#include <vector>

namespace neap::testing {

/// An order drawn from all that meet data and order_after.
template <class G>
schedule random_order(G const& g, std::uint64_t seed) {
  random_stream draw(seed, 3);
  auto const n = flow::op_count(g);
  auto const makers = flow::producers(g);
  std::vector<bool> done(n);
  schedule s;
  while (s.size() < n) {
    std::vector<op_id> ready;
    for (auto o : id_range<op_id>(n)) {
      bool ok = !done[index(o)];
      for (auto v : flow::inputs(g, o)) ok = ok && (makers[v] == nothing<op_id> || done[index(makers[v])]);
      for (auto b : flow::order_after(g, o)) ok = ok && done[index(b)];
      if (ok) ready.push_back(o);
    }
    if (ready.empty()) throw error("random_order: the graph has a cycle");
    auto const o = ready[draw.below(static_cast<std::uint32_t>(ready.size()))];
    done[index(o)] = true;
    s.order.push_back(o);
  }
  return s;
}

}  // namespace neap::testing
