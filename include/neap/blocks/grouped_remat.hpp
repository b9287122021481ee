// Large blocks through small ones: consecutive ops of a block are joined into groups, a group is an op of a smaller
// problem, and a solver's answer to that is written out as ops again. One level more of a hierarchy: a solver that takes
// some hundred values serves blocks of thousands.
//
//   neap::in_groups solve{neap::use_gap{}};        // what use_gap takes on goes to it as it is
//   auto const options = solve.front(problem, limits);
//
// Values that only one group touches are inside it: they count as its workspace, at their highest. Those of one group that
// the same other groups read are one value: what a stretch of the forward leaves to its backward is held or dropped as a
// whole. So what keeps the limits in groups keeps them in ops; the way back frees more. HiRemate (ICML 2025) builds its
// clusters so.
#pragma once

#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/core/sort_once.hpp>
#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A problem whose ops are groups of another one's.
struct grouped_remat {
  remat_problem problem;
  std::vector<std::uint32_t> ends;  // of each group: its ops are [ends[g - 1], ends[g]) of the original's
};

/// Groups of at most `size` ops. What may not run again, and the op behind which the block pauses, are groups of their
/// own. O(ops + edges).
inline grouped_remat group_ops(remat_problem const& p, std::uint32_t size) {
  grouped_remat out;
  auto const n = static_cast<std::uint32_t>(p.ops.size());
  auto const alone = [&](std::uint32_t i) { return !p.ops[i].again || static_cast<std::int64_t>(i) == p.pause_after; };
  std::vector<std::uint32_t> group_of(n);
  std::uint32_t from = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i > from && (i - from == size || alone(i) || alone(i - 1))) out.ends.push_back(i), from = i;
    group_of[i] = static_cast<std::uint32_t>(out.ends.size());
  }
  if (n > 0) out.ends.push_back(n);
  // Values that more than one group touches, or that are there before or behind.
  auto const made_by = producers(p);
  std::vector<std::uint32_t> seen(p.values.size(), no_producer);
  std::vector<unsigned char> crosses(p.values.size(), 0);
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    crosses[v] = made_by[v] == no_producer || p.values[v].kept || p.values[v].outside;
    if (made_by[v] != no_producer) seen[v] = group_of[made_by[v]];
  }
  for (std::uint32_t i = 0; i < n; ++i)
    for (auto v : p.ops[i].inputs)
      if (group_of[i] != seen[v]) crosses[v] = 1;
  // Who touches each: equal ones are one value.
  struct entry {
    std::vector<std::uint32_t> groups;  // of the op that makes it, then of those that read it
    std::uint32_t value;
  };
  std::vector<entry> all;
  std::vector<std::uint32_t> at(p.values.size(), no_producer), number(p.values.size(), no_producer),
      last(p.values.size(), 0);
  for (std::uint32_t v = 0; v < p.values.size(); ++v)
    if (crosses[v]) {
      at[v] = static_cast<std::uint32_t>(all.size());
      auto const flags = (p.values[v].kept ? 1u : 0u) + (p.values[v].outside ? 2u : 0u);
      all.push_back({{flags, made_by[v] == no_producer ? no_producer : group_of[made_by[v]]}, v});
    }
  for (std::uint32_t i = 0; i < n; ++i)
    for (auto v : p.ops[i].inputs)
      if (at[v] != no_producer && all[at[v]].groups.back() != group_of[i]) all[at[v]].groups.push_back(group_of[i]);
  std::stable_sort(all.begin(), all.end(), [](entry const& x, entry const& y) { return x.groups < y.groups; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& value = p.values[all[i].value];
    if (i == 0 || all[i].groups != all[i - 1].groups) out.problem.values.push_back(value);
    else out.problem.values.back().bytes += value.bytes;
    number[all[i].value] = static_cast<std::uint32_t>(out.problem.values.size() - 1);
  }
  for (std::uint32_t i = 0; i < n; ++i)
    for (auto const* list : {&p.ops[i].inputs, &p.ops[i].outputs})
      for (auto v : *list) last[v] = i;
  from = 0;
  for (auto to : out.ends) {
    remat_op g;
    std::int64_t inside = 0;
    for (auto i = from; i < to; ++i) {
      auto const& o = p.ops[i];
      g.time += o.time, g.again = g.again && o.again;
      for (auto v : o.inputs)
        if (crosses[v] && (made_by[v] == no_producer || group_of[made_by[v]] != group_of[i]))
          g.inputs.push_back(number[v]);
      for (auto v : o.outputs) {
        if (crosses[v]) g.outputs.push_back(number[v]);
        else inside += p.values[v].bytes;
      }
      g.workspace_bytes = std::max(g.workspace_bytes, inside + o.workspace_bytes);
      for (auto const* list : {&o.inputs, &o.outputs})
        for (auto v : *list)
          if (!crosses[v] && last[v] == i) inside -= p.values[v].bytes;
    }
    if (static_cast<std::int64_t>(to) - 1 == p.pause_after)
      out.problem.pause_after = static_cast<std::int64_t>(out.problem.ops.size());
    detail::sort_once(g.inputs), detail::sort_once(g.outputs);
    out.problem.ops.push_back(std::move(g));
    from = to;
  }
  return out;
}

/// An answer for groups as one for ops. Law: time is the same, peak and saved bytes are no higher.
inline remat_answer ungrouped(remat_problem const& p, grouped_remat const& g, remat_answer const& a) {
  if (!has_steps(a)) {
    remat_answer none;
    none.work = a.work;
    return none;
  }
  std::vector<std::uint32_t> runs;
  for (auto const& s : a.steps)
    if (s.what == remat_step::action::compute)
      for (auto i = s.index > 0 ? g.ends[s.index - 1] : 0; i < g.ends[s.index]; ++i) runs.push_back(i);
  auto out = answer_of(p, runs);
  out.work = a.work;
  return out;
}

/// A solver for blocks that have too many values for it: in groups, as small as they can be.
template <class Solver>
struct in_groups {
  Solver solver;
  std::size_t max_values = max_remat_values;

  std::vector<remat_answer> front(remat_problem const& p, std::span<remat_limits const> limits) const {
    if (p.values.size() <= max_values || !check(p).ok()) return solver.front(p, limits);
    std::vector<remat_answer> out;
    grouped_remat g;
    for (std::uint32_t size = 2; size < 2 * p.ops.size(); size += 1 + size / 2) {
      g = group_ops(p, size);
      if (g.problem.values.size() <= max_values) break;
    }
    auto const answers = solver.front(g.problem, limits);
    if (answers.size() > limits.size())
      throw_error({"in_groups: the solver gave ", answers.size(), " answers to ", limits.size(), " limits"});
    for (std::size_t k = 0; k < answers.size(); ++k) {
      require_right(g.problem, limits[k], answers[k], "in_groups: the solver");
      out.push_back(ungrouped(p, g, answers[k]));
    }
    return out;
  }
};
template <class Solver>
in_groups(Solver) -> in_groups<Solver>;

}}  // namespace neap::v0
