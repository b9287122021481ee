// Ops that may run at once: AITemplate's simple multi-stream. A wave is every op whose inputs are all made by earlier
// waves; waves are cut into steps of a limited number of ops, and time is counted in steps, so that all that one step
// touches lies apart.
//
//   waves 1: a b c   2: d e   3: f g h i     at most 2 at once:  [a b] [c] [d e] [f g] [h i]
//
//   auto const m = plan_in_waves(facts, order, 4);                       // by the default planner
//   auto const e = plan_in_waves(facts, order, 4, exact{});              // by any other memory_planner
//   if (m) use(m->placed.offsets[m->lifetimes.record_of[storage]]);
#pragma once

#include <neap/core/error.hpp>
#include <neap/memory/lifetimes.hpp>
#include <neap/memory/planner.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct wave_schedule {
  std::vector<std::uint32_t> step_of;  ///< by position of the order
  std::uint32_t steps = 0;
  /// No two ops run at once: each has a step of its own.
  bool is_serial() const { return steps == step_of.size(); }
};

/// The steps of an order's ops; within a wave in the given order, so the answer is repeatable. An op comes after all
/// that it must wait for, in-place updates included. With 1 op at once the steps are the order itself. O(ops + edges).
/// Fails for a limit below 1, and for graphs with transfers, which run beside the computation by rules of their own.
inline result<wave_schedule> waves(flow_facts const& facts, schedule const& order,
                                   std::int64_t max_at_once = std::numeric_limits<std::int64_t>::max()) {
  if (max_at_once < 1) return failure{"waves: at least 1 op must run at once"};
  if (facts.has_transfers()) return failure{"waves: the graph stores or loads, which is not done in waves"};
  auto const n = static_cast<std::uint32_t>(order.size());
  if (max_at_once == 1) {
    wave_schedule serial{std::vector<std::uint32_t>(n), n};
    std::iota(serial.step_of.begin(), serial.step_of.end(), 0u);
    return serial;
  }
  std::vector<std::uint32_t> wave_of(facts.op_count(), 0);
  std::vector<std::uint32_t> size;  // of each wave
  for (auto o : order) {
    std::uint32_t wave = 0;
    for (auto before : facts.after(o)) wave = std::max(wave, wave_of[index(before)] + 1);
    wave_of[index(o)] = wave;
    if (size.size() <= wave) size.resize(wave + 1, 0);
    ++size[wave];
  }
  wave_schedule out;
  std::vector<std::uint32_t> first(size.size(), 0), placed(size.size(), 0);
  for (std::size_t w = 0; w < size.size(); ++w) {
    first[w] = out.steps;
    out.steps += static_cast<std::uint32_t>((size[w] - 1) / max_at_once + 1);
  }
  out.step_of.reserve(n);
  for (auto o : order) {
    auto const w = wave_of[index(o)];
    out.step_of.push_back(first[w] + static_cast<std::uint32_t>(placed[w]++ / max_at_once));
  }
  return out;
}

/// Records of everything but the residents, moments being steps: a storage lives from the step that makes it to the last
/// that touches it, a kept one to the end; a workspace in its op's step. Nothing is taken over, since another reader of
/// the old bytes may run at once; unless each op has a step of its own: then as on a single stream. O(storages + edges).
inline lifetime_records lifetimes(flow_facts const& facts, schedule const& order, wave_schedule const& w) {
  if (w.is_serial()) {
    schedule by_step = order;
    for (std::size_t p = 0; p < order.size(); ++p) by_step.order[w.step_of[p]] = order[p];
    auto l = lifetimes(facts, by_step, simulator{}(facts, by_step));
    auto const workspace = l.workspace_of;
    for (std::size_t p = 0; p < order.size(); ++p) l.workspace_of[p] = workspace[w.step_of[p]];
    return l;
  }
  lifetime_records l;
  auto const alignment = facts.options().alignment;
  l.record_of.assign(facts.storage_count(), lifetime_records::none);
  l.workspace_of.assign(order.size(), lifetime_records::none);
  auto const add = [&](std::int64_t lower, std::int64_t upper, bytes_t bytes) {
    usage_record r;
    r.lower = lower, r.upper = upper, r.size = bytes, r.alignment = alignment;
    l.records.push_back(r);
    return static_cast<std::uint32_t>(l.records.size() - 1);
  };
  auto const touch = [&](storage_id s, std::int64_t step, bool given) {
    if (facts.bytes(s) == 0) return;
    auto const until = facts.is_kept(s) ? std::int64_t{w.steps} : step + (given ? 0 : 1);
    if (l.record_of[s] == lifetime_records::none) l.record_of[s] = add(step, until, facts.bytes(s));
    auto& r = l.records[l.record_of[s]];
    r.lower = std::min(r.lower, step), r.upper = std::max(r.upper, until);
  };
  for (auto s : facts.given_storages()) touch(s, 0, true);
  for (std::size_t p = 0; p < order.size(); ++p) {
    for (auto s : facts.touches(order[p])) touch(s, w.step_of[p], false);
    if (auto const bytes = facts.workspace(order[p]); bytes > 0)
      l.workspace_of[p] = add(w.step_of[p], w.step_of[p] + std::int64_t{1}, bytes);
  }
  return l;
}

/// Ops in steps, what lives in which of them, and where it lies.
struct wave_plan {
  wave_schedule steps;
  lifetime_records lifetimes;
  memory_plan placed;  ///< of the records of `lifetimes`; without the residents
};

/// Addresses for an order in waves of at most so many ops at once, by any planner. With 1 op at once the arena is the one
/// of the order on a single stream. Fails as waves() does. O(ops + edges + storages) beside the planner.
template <memory_planner P = default_planner>
result<wave_plan> plan_in_waves(flow_facts const& facts, schedule const& order, std::int64_t max_at_once,
                                P const& planner = {}) {
  auto steps = waves(facts, order, max_at_once);
  if (!steps) return failure{steps.message()};
  wave_plan out{std::move(*steps), {}, {}};
  out.lifetimes = lifetimes(facts, order, out.steps);
  out.placed = detail::ask(planner, memory_problem(out.lifetimes.records));
  return out;
}

}}  // namespace neap::v0
