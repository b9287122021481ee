// The independent judge of an answer to a remat_problem: it runs the steps and trusts no figure of the answer.
// Slow on purpose: memory is counted from nothing at each step.
#pragma once

#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

/// Whether the steps compute the block within the limits: ops run for the first time in their order, each with its inputs
/// alive, only ops that may run again do, nothing is dropped that is not there, kept values are alive at the end, and
/// time, peak and saved bytes are those of the answer. Where an answer has no steps, there must be none.
/// Recomputations may come in any order: in_phases() checks whether they keep to the model.
inline status verify(remat_problem const& p, remat_limits const& limits, remat_answer const& a) {
  if (auto ok = check(p); !ok) return ok;
  if (std::isnan(a.lower_bound)) return failure{"the answer's lower bound is no number"};
  auto const at = [&](std::size_t s, std::string what) {
    return failure{"step " + std::to_string(s) + ": " + std::move(what)};
  };
  if (!has_steps(a)) {
    if (!a.steps.empty()) return failure{std::string("an answer that is ") + name_of(a.status) + " has steps"};
    return {};
  }
  auto const made_by = producers(p);
  std::vector<bool> alive(p.values.size()), ran(p.ops.size());
  for (std::size_t v = 0; v < p.values.size(); ++v) alive[v] = made_by[v] == no_producer;
  std::size_t next = 0;
  double time = 0;
  std::int64_t peak = 0, saved = 0;
  auto const bytes_now = [&](bool in_pause) {
    std::int64_t sum = 0;
    for (std::size_t v = 0; v < p.values.size(); ++v)
      if (alive[v] && !(in_pause && p.values[v].outside)) sum += p.values[v].bytes;
    return sum;
  };
  auto const pause = [&] { saved = bytes_now(true); };
  bool pausing = false;
  for (std::size_t s = 0; s < a.steps.size(); ++s) {
    auto const index = a.steps[s].index;
    if (a.steps[s].what == remat_step::action::drop) {
      if (index >= p.values.size()) return at(s, "it drops a value that is not of this block");
      auto const name = "value " + std::to_string(index);
      if (!alive[index]) return at(s, name + " is dropped, but is not alive");
      if (p.values[index].kept && made_by[index] == no_producer) return at(s, name + " is kept, but dropped");
      alive[index] = false;
      continue;
    }
    if (index >= p.ops.size()) return at(s, "it computes an op that is not of this block");
    if (pausing) pause(), pausing = false;
    auto const name = "op " + std::to_string(index);
    if (ran[index] && !p.ops[index].again) return at(s, name + " runs again, and may not");
    if (!ran[index] && index != next) return at(s, name + " runs before op " + std::to_string(next));
    if (!ran[index]) ++next, pausing = static_cast<std::int64_t>(index) == p.pause_after;
    ran[index] = true;
    for (auto v : p.ops[index].inputs)
      if (!alive[v]) return at(s, name + " reads value " + std::to_string(v) + ", which is not alive");
    for (auto v : p.ops[index].outputs) alive[v] = true;
    time += p.ops[index].time;
    peak = std::max(peak, bytes_now(false) + p.ops[index].workspace_bytes);
    if (peak > limits.peak_bytes)
      return at(s, std::to_string(peak) + " bytes while " + name + " runs; the limit is " +
                       std::to_string(limits.peak_bytes));
  }
  if (pausing) pause();
  if (next < p.ops.size()) return failure{"op " + std::to_string(next) + " never runs"};
  for (std::size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].kept && !alive[v]) return failure{"value " + std::to_string(v) + " is kept, but gone at the end"};
  if (saved > limits.saved_bytes)
    return failure{std::to_string(saved) + " bytes saved in the pause; the limit is " +
                   std::to_string(limits.saved_bytes)};
  if (a.peak_bytes != peak) return failure{"the answer has another peak than " + std::to_string(peak)};
  if (a.saved_bytes != saved) return failure{"the answer has other saved bytes than " + std::to_string(saved)};
  double const slack = 1e-9 * std::max(1.0, time);
  if (!(std::abs(a.time - time) <= slack)) return failure{"the answer has another time than " + std::to_string(time)};
  if (a.lower_bound > time + slack) return failure{"the answer takes less time than its lower bound"};
  if (a.status == remat_status::optimal && a.lower_bound < time - slack)
    return failure{"the answer is called optimal, but takes more time than its lower bound"};
  return {};
}

/// Throws neap::error, in one line, if an answer to a problem without faults is wrong; `who` gave it. O(steps x values).
inline void require_right(remat_problem const& p, remat_limits const& limits, remat_answer const& a,
                          std::string_view who) {
  if (!check(p)) return;
  if (auto const right = verify(p, limits, a); !right)
    throw_error({who, " gave a wrong answer for a block of ", p.ops.size(), " ops: ", right.message()});
}

/// Whether recomputations between two first runs come in ascending order, each op at most once: what bounds and the word
/// "optimal" speak of.
inline bool in_phases(remat_problem const& p, std::vector<remat_step> const& steps) {
  std::size_t next = 0;
  std::int64_t last = -1;
  for (auto const& s : steps) {
    if (s.what != remat_step::action::compute) continue;
    if (s.index >= p.ops.size() || static_cast<std::int64_t>(s.index) <= last) return false;
    last = s.index;
    if (s.index == next) ++next, last = -1;
  }
  return true;
}

}}  // namespace neap::v0
