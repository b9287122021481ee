// The bodies of <neap/verify/plan_verifier.hpp>.
#pragma once

#include <neap/verify/plan_verifier.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/verify/equivalence.hpp>
#include <neap/verify/execution.hpp>
#include <neap/verify/pins.hpp>

#include <string>

namespace neap { inline namespace v0 { namespace detail::plan_check {

NEAP_FUNC verification verify_plan(op_graph const& original, op_graph const& planned, digest made_for,
                                   placed_steps const& p, std::span<seconds_t const> seconds, bytes_t limit,
                                   hash_key secret) {
  verification out;
  if (made_for != original.digest())
    out.add({violation_kind::other_original, no_id, nothing<op_id>, nothing<storage_id>,
             "the plan was made for another graph"});
  bool const rewritten = check_what_is_computed(original, planned, secret, out);
  check_pins(original, planned, out);
  plan_parts const parts{planned,   original,     p.steps,          p.buffers,     p.waits,
                         p.options, p.peak_bytes, p.resident_bytes, p.arena_bytes, p.lower_bound_bytes,
                         p.latency, rewritten,    seconds};
  check_execution(parts, out);
  if (p.arena_bytes > limit)
    out.add({violation_kind::over_budget, no_id, nothing<op_id>, nothing<storage_id>,
             "the arena takes " + std::to_string(p.arena_bytes) + " bytes, the limit is " + std::to_string(limit)});
  return out;
}

}}}  // namespace neap::v0::detail::plan_check
