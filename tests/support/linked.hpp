// A device for programs that come with their latencies: they keep them, and values move by a link.
#pragma once

#include <neap/ir/operators/transfer.hpp>
#include <neap/simulate/cost_model.hpp>

namespace neap::testing {

/// Latencies that came with a graph, and a link of so many bytes a second each way.
struct linked {
  double link;
  seconds_t operator()(op_graph const& g, op_id o) const {
    if (g.as<op::store>(o)) return static_cast<double>(g.type(g.inputs(o)[0]).bytes()) / link;
    if (g.as<op::load>(o)) return static_cast<double>(g.type(g.output(o)).bytes()) / link;
    return given_latencies{}(g, o);
  }
};

}  // namespace neap::testing
