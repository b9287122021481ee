// The plan verifier: whether a plan is right, judged by nothing but the original graph, the plan, and the semantics of
// plan/simulation.hpp, re-stated here. It shares no code with the simulator, the schedulers and the memory planners, so
// that their mistakes are not its own.
//
//   if (auto v = verify_plan(original, p, cost); !v) std::puts(v.message().c_str());
//
// What it establishes: the planned graph computes every kept value from the same sources by the same operators with
// the same random keys, every in-place update exactly once (equivalence.hpp), and breaks no pin of the original
// (pins.hpp); no step reads what is not there yet,
// overwritten, in flight or freed, no two living buffers share a byte, and peak, arena and resident bytes are those of
// its steps and buffers; every time follows from how long ops take, streams and waits (execution.hpp); the lower bound is
// that of the original (bound.hpp). How long an op takes is judged too if the caller says what it should: a cost model
// is the maker's choice, and plan files tell theirs (durations.hpp). Otherwise it is the plan's word.
//
// Chance of error. Right plans of the library's own moves and rules are accepted. A wrong plan is accepted with a
// small chance over a secret that each call draws anew, for every author of a plan, this code at hand, if the secret is
// not known to them: n^2 / 2^129 that two of n values share a number (value_numbers.hpp), and 2^-35 for each argument
// that is computed otherwise than in the original and compared by evaluation (rewritten.hpp; the arguments of
// functions that are met on the way count too). A plan without rewritten ops has none of these: its chance is below
// 2^-90 for 10^5 ops. No place of a tensor is left out. Assumed is that SipHash under a secret key is a random
// function without the key.
//
// Floating point. A rewritten value has the same sums of products as the original's, with no term added that is
// subtracted later, and no intermediate result 1024 times (of type f16: 16 times) above or below the original's where
// all given values are 1. So are all results of rules of sums and products. It differs by rounding alone. What holds
// over the reals only, as (y + m) - m for y or factors of 2^1000 and 2^-1000, is refused. Signs of zeros are checked where
// values are only added, subtracted and negated: with all given values 0, and with all -0. Where products are taken apart
// or factors out, c (a + b) for c a + c b, the sign of a 0 may be another than in the original.
#pragma once

#include <neap/core/sip_hash.hpp>
#include <neap/plan/plan.hpp>
#include <neap/verify/durations.hpp>
#include <neap/verify/violation.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail::plan_check {
/// The verdict on steps of a planned graph that were made for a graph with the digest `made_for`. `seconds`: of each op of
/// that graph; empty: as long as the steps take.
verification verify_plan(op_graph const& original, op_graph const& planned, digest made_for, placed_steps const& p,
                         std::span<seconds_t const> seconds, bytes_t limit, hash_key secret);
}  // namespace detail::plan_check

/// All that is wrong with a plan for `original`, and with its fitting into `limit` bytes. Works for any plan, however
/// broken, whose graph's own tables are sound. `secret` is drawn anew for each call; a given one makes the call
/// repeatable, and the chances above hold if the plan was made without it. O((ops + edges) log ops), and what
/// evaluating rewritten pieces takes: one element of each cell of a compared value (ir/index_cells.hpp), sums term by
/// term.
inline verification verify_plan(op_graph const& original, plan const& p, bytes_t limit = INT64_MAX,
                                hash_key secret = hash_key::drawn()) {
  return detail::plan_check::verify_plan(original, p.graph, p.original, p, {}, limit, secret);
}
/// The same, with `seconds_of(graph, op)` saying how long each op of the plan takes.
template <class Durations>
  requires std::invocable<Durations const&, op_graph const&, op_id>
verification verify_plan(op_graph const& original, plan const& p, Durations const& seconds_of,
                         bytes_t limit = INT64_MAX, hash_key secret = hash_key::drawn()) {
  std::vector<seconds_t> seconds;
  seconds.reserve(p.graph.op_count());
  for (auto o : p.graph.ops()) seconds.push_back(seconds_of(p.graph, o));
  return detail::plan_check::verify_plan(original, p.graph, p.original, p, seconds, limit, secret);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/verify/impl/plan_verifier.ipp>
#endif
