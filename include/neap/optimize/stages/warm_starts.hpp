// A stage of the search: plans of earlier searches (warm_start.hpp) become candidates, and the best that meets the limits
// with its addresses the first answer.
#pragma once

#include <neap/memory/check/check.hpp>
#include <neap/memory/lifetimes.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/optimize/stages/placement.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The addresses that a plan has for a graph, for the records of a simulation of it. They are wrong for these records where
/// other costs or options of memory make other live ranges: a caller verifies them.
inline memory_plan addresses_in(placed_steps const& p, flow_facts const& facts, lifetime_records const& l) {
  memory_plan m;
  m.offsets.assign(l.records.size(), -1);
  auto const put = [&](std::uint32_t record, bytes_t offset) {
    if (record != lifetime_records::none) m.offsets[record] = offset - facts.resident_bytes();
  };
  for (auto const& b : p.buffers)
    if (index(b.storage) < facts.storage_count()) put(l.record_of[b.storage], b.offset);
  for (std::size_t k = 0; k < p.steps.size(); ++k) put(l.workspace_of[k], p.steps[k].workspace_offset);
  for (std::size_t r = 0; r < l.records.size(); ++r)
    m.arena_bytes = std::max(m.arena_bytes, m.offsets[r] + l.records[r].size);
  return m;
}

/// A candidate with the addresses that a plan of it has, where they meet the limit; otherwise with new ones.
inline auto placed_as_in(search_state& state, placement& placing, placed_steps const& p, candidate const& c) {
  auto const& memory = state.options.memory;
  flow_facts const facts(c.graph, no_cost{}, memory);
  auto const l = lifetimes(facts, c.order, c.result);
  auto kept = addresses_in(p, facts, l);
  if (facts.resident_bytes() + kept.arena_bytes <= state.limits.memory && verify(memory_problem(l.records), kept))
    return make_plan(c, state.graph, memory, [&](memory_problem const&) { return kept; });
  return placing.addresses(c);
}

/// Offers the plans of the warm start to the search; the candidates that they are. Throws neap::error where one is of another
/// graph, no order, or breaks a pin.
inline std::vector<search_state::node_ptr> add_warm_starts(search_state& state, placement& placing) {
  std::vector<search_state::node_ptr> added;
  auto const& plans = state.options.warm.plans();
  if (plans.empty()) return added;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    auto const refuse = [&](std::string const& why) {
      throw_error({"optimize: plan ", i, " of the warm start ", why});
    };
    if (plans[i].original != state.graph.digest()) refuse("was made for another graph");
    auto g = plans[i].graph;
    auto order = plans[i].order();
    if (auto const valid = check_order(g, order); !valid) refuse("has a wrong order: " + valid.message());
    if (!state.keeps_pins(g)) refuse("breaks a pin of this search");
    auto result = state.evaluate_whole(g, order);
    added.push_back(
        state.make_node(nullptr, "a plan of the warm start", std::move(g), std::move(order), std::move(result)));
    state.consider(added.back());
  }
  auto const best = state.best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    auto const& c = added[i]->state;
    if (!state.limits.fits(c.result)) continue;
    auto placed = placed_as_in(state, placing, plans[i], c);
    if (state.limits.fits(plan_cost{placed.arena_bytes, c.result.latency}))
      placing.offer_placed(added[i], std::move(placed));
  }
  if (!placing.answer()) return added;
  // An order of the program may be better.
  if (best != placing.answer()) placing.offer_placed(best, placing.addresses(best->state));
  placing.use_answer();
  return added;
}

}}}  // namespace neap::v0::detail
