// The plan verifier: whether a plan is right, judged by nothing but the original graph, the plan, and the semantics of
// plan/simulation.hpp, re-stated here. It shares no code with the simulator, the schedulers and the memory planners, so
// that their mistakes are not its own.
//
//   if (auto v = verify_plan(original, p); !v) std::puts(v.message().c_str());
//
// What it establishes: the planned graph computes every kept value from the same sources by the same operators with the
// same random keys, every in-place update exactly once (computes.hpp); no step reads what is not there yet, overwritten,
// in flight or freed, no two living buffers share a byte, and peak, arena, resident bytes and latency are those of its
// steps and buffers (runs.hpp). How long an op takes is the plan's word, for a cost model is its maker's choice; of the
// lower bound it is asked only that it is not above the peak.
#pragma once

#include <neap/verify/computes.hpp>
#include <neap/verify/runs.hpp>
#include <neap/verify/violation.hpp>

#include <concepts>
#include <cstdint>
#include <string>

namespace neap::inline v0 {

/// All that is wrong with a plan for `original`, and with its fitting into `limit` bytes. Works for any plan, however
/// broken, whose graph's own tables are sound. O((ops + edges) log ops).
template <class G>
  requires std::derived_from<G, op_graph>
verification verify_plan(G const& original, plan<G> const& p, bytes_t limit = INT64_MAX) {
  verification out;
  if (p.original != original.digest())
    out.add({violation_kind::other_original, no_id, nothing<op_id>, nothing<storage_id>,
             "the plan was made for another graph"});
  detail::verifying::check_what_is_computed(original, p.graph, out);
  detail::verifying::plan_parts const parts{
      p.graph,          p.steps,       p.buffers,           p.waits,  p.options, p.peak_bytes,
      p.resident_bytes, p.arena_bytes, p.lower_bound_bytes, p.latency};
  detail::verifying::run_check(parts, out)();
  if (p.arena_bytes > limit)
    out.add({violation_kind::over_budget, no_id, nothing<op_id>, nothing<storage_id>,
             "the arena takes " + std::to_string(p.arena_bytes) + " bytes, the limit is " + std::to_string(limit)});
  return out;
}

}  // namespace neap::inline v0
