// From a candidate (a graph, an order, what a simulator finds of both) to a plan with addresses.
//
//   plan p = make_plan(found.best, original);
//   verify_plan(original, p);                              // neap/verify/plan_verifier.hpp
//
// A graph that stays where it is, also an external one, is not copied:
//
//   placed_steps p = make_plan(engine_graph, order, simulate(engine_graph, order, cost));
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/check/check.hpp>
#include <neap/memory/lifetimes.hpp>
#include <neap/memory/planner.hpp>
#include <neap/plan/candidate.hpp>
#include <neap/plan/plan.hpp>
#include <neap/simulate/lower_bound.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Which steps have to wait for which transfer: those that need its result or overwrite what it reads, and those that may get
/// the bytes that it holds. A wait that an earlier compute step has already had is left out.
std::vector<transfer_wait> transfer_waits(flow_facts const& facts, schedule const& order, simulation const& s);

}  // namespace detail

/// Places everything that lives during a schedule of a graph; `s` is its simulation, `options` are those that
/// it was simulated with. The graph is only read. Throws neap::error if the planner finds no place (the standard planners
/// always do, but for sizes that overflow), or its answer is wrong. O(n log n) of ops and edges beside the planner.
template <dataflow_graph G, class P = default_planner>
placed_steps make_plan(G const& g, schedule const& order, simulation const& s, memory_options options = {},
                       P const& planner = {}) {
  static_assert(detail::check_planner<P>());
  placed_steps out;
  flow_facts const facts(g, no_cost{}, options);
  auto const n = static_cast<std::uint32_t>(order.size());
  auto const l = lifetimes(facts, order, s);
  memory_problem const problem(l.records);
  memory_plan const placed = planner(problem);
  if (!has_offsets(placed)) throw_error({"plan: the memory planner found no place: ", placed.why.message()});
  if (auto const right = verify(problem, placed); !right)
    throw_error({"plan: the memory planner's answer is wrong: ", right.message()});

  out.options = options;
  out.resident_bytes = facts.resident_bytes();
  out.arena_bytes = checked_add(facts.resident_bytes(), placed.arena_bytes);
  out.peak_bytes = s.peak_bytes;
  out.latency = s.latency;
  out.lower_bound_bytes = peak_lower_bound(g, options).bytes;

  out.steps.reserve(n);
  for (std::uint32_t p = 0; p < n; ++p) {
    plan_step step;
    step.op = order[p];
    step.stream = facts.stream(order[p]);
    step.start = s.start[p];
    step.end = s.end[p];
    if (auto const w = l.workspace_of[p]; w != lifetime_records::none) {
      step.workspace_bytes = l.records[w].size;
      step.workspace_offset = facts.resident_bytes() + placed.offsets[w];
    }
    out.steps.push_back(step);
  }
  bytes_t resident_end = 0;
  for (auto t : id_range<storage_id>(facts.storage_count())) {
    plan_buffer b;
    b.storage = t;
    b.bytes = facts.bytes(t);
    b.resident = facts.is_resident(t);
    if (b.resident) {
      b.offset = resident_end;
      resident_end += b.bytes;
      b.last = n ? n - 1 : 0;
    } else if (auto const r = l.record_of[t]; r != lifetime_records::none) {
      b.offset = facts.resident_bytes() + placed.offsets[r];
      b.takes_over = s.takes_over[t];
      b.first = s.live[t].first;
      b.last = s.live[t].last;
    }
    if (b.bytes > 0 && (b.resident || l.record_of[t] != lifetime_records::none)) out.buffers.push_back(b);
  }
  out.waits = detail::transfer_waits(facts, order, s);
  return out;
}

/// The same for a candidate, whose graph the plan keeps. `original` is the graph that the user gave: the plan carries its
/// digest and a lower bound proved on it.
template <class P = default_planner>
plan make_plan(candidate c, op_graph const& original, memory_options options = {}, P const& planner = {}) {
  static_assert(detail::check_planner<P>());
  plan out;
  static_cast<placed_steps&>(out) = make_plan(c.graph, c.order, c.result, options, planner);
  auto const bound = peak_lower_bound(original, options, c.graph.runs_in_parts());
  out.lower_bound_bytes = bound.bytes <= out.peak_bytes ? bound.bytes : bound.end_bytes;  // rewritten ops got below it
  out.original = original.digest();
  out.graph = std::move(c.graph);
  return out;
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/impl/make_plan.ipp>
#endif
