// What stages that make candidates share.
#pragma once

#include <neap/ir/operators/movement.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/plan/candidate.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <cstddef>
#include <string>

namespace neap { inline namespace v0 { namespace detail {

/// A mutation that is known by its description alone.
struct named_edit {
  std::string how;
  std::string describe(candidate const&) const { return how; }
};

/// Moves loads and stores to where they are hidden, as far as a limit of the peak allows; 0: as far as the order's own does.
inline void place_transfers(search_state& state, edited& e, bytes_t limit) {
  flow_facts const facts(e.graph, state.evaluator().cost(), state.options.memory);
  e.order = refine{.limit = limit, .sink = false}(facts, e.order);
}

template <class NodePtr>
bool is_quicker(NodePtr const& a, NodePtr const& b) {
  return a->state.result.latency < b->state.result.latency;
}

}}}  // namespace neap::v0::detail
