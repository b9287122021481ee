// From the ops that run, in order and with repeats, to the steps: each value is dropped as early as it can be.
#pragma once

#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// The answer that runs these ops in this order, with time, peak and saved bytes. A value is dropped after the op that
/// reads it last before it is made anew or for good; dead values go at once. The sequence must be one that can
/// run: every input made before. Status feasible, bound 0: the caller has a better one. O(steps).
inline remat_answer answer_of(remat_problem const& p, std::vector<std::uint32_t> const& sequence) {
  using action = remat_step::action;
  auto const made_by = producers(p);
  // Whether what is alive now is read before it is made again, found from the end.
  std::vector<char> needed(p.values.size());
  for (std::size_t v = 0; v < p.values.size(); ++v) needed[v] = p.values[v].kept;
  std::vector<std::vector<std::uint32_t>> dropped(sequence.size());
  for (std::size_t s = sequence.size(); s-- > 0;) {
    auto const& op = p.ops[sequence[s]];
    for (auto v : op.outputs) {
      if (!needed[v]) dropped[s].push_back(v);
      needed[v] = false;
    }
    for (auto v : op.inputs) {
      if (!needed[v]) dropped[s].push_back(v);
      needed[v] = true;
    }
  }
  remat_answer a;
  a.status = remat_status::feasible;
  std::int64_t alive = 0, alive_outside = 0;
  auto const count = [&](std::uint32_t v, std::int64_t sign) {
    alive += sign * p.values[v].bytes;
    if (p.values[v].outside) alive_outside += sign * p.values[v].bytes;
  };
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    if (made_by[v] != no_producer) continue;
    if (needed[v]) count(v, 1);
    else a.steps.push_back({action::drop, v});
  }
  std::size_t next = 0;
  for (std::size_t s = 0; s < sequence.size(); ++s) {
    auto const i = sequence[s];
    a.steps.push_back({action::compute, i});
    a.time += p.ops[i].time;
    for (auto v : p.ops[i].outputs) count(v, 1);
    a.peak_bytes = std::max(a.peak_bytes, alive + p.ops[i].workspace_bytes);
    std::sort(dropped[s].begin(), dropped[s].end());
    for (auto v : dropped[s]) {
      a.steps.push_back({action::drop, v});
      count(v, -1);
    }
    if (i == next && static_cast<std::int64_t>(next++) == p.pause_after) a.saved_bytes = alive - alive_outside;
  }
  return a;
}

}}  // namespace neap::v0
