// The bodies of <neap/blocks/grouped_remat.hpp>.
#pragma once

#include <neap/blocks/grouped_remat.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/sort_once.hpp>

#include <algorithm>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// The group of each op; `ends` as grouped_remat has them.
NEAP_FUNC std::vector<std::uint32_t> find_groups(remat_problem const& p, std::uint32_t size,
                                                 std::vector<std::uint32_t>& ends) {
  auto const n = static_cast<std::uint32_t>(p.ops.size());
  auto const alone = [&](std::uint32_t i) { return !p.ops[i].again || static_cast<std::int64_t>(i) == p.pause_after; };
  std::vector<std::uint32_t> group_of(n);
  std::uint32_t from = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i > from && (i - from == size || alone(i) || alone(i - 1))) ends.push_back(i), from = i;
    group_of[i] = static_cast<std::uint32_t>(ends.size());
  }
  if (n > 0) ends.push_back(n);
  return group_of;
}

/// The number of each value that crosses groups, in `joined`: those that the same groups touch are one value there.
NEAP_FUNC std::vector<std::uint32_t> join_values(remat_problem const& p, std::vector<std::uint32_t> const& group_of,
                                                 std::vector<std::uint32_t> const& made_in,
                                                 std::vector<unsigned char> const& crosses,
                                                 std::vector<remat_value>& joined) {
  struct entry {
    std::vector<std::uint32_t> groups;  // of the op that makes it, then of those that read it
    std::uint32_t value;
  };
  std::vector<entry> all;
  std::vector<std::uint32_t> at(p.values.size(), no_producer), number(p.values.size(), no_producer);
  for (std::uint32_t v = 0; v < p.values.size(); ++v)
    if (crosses[v]) {
      at[v] = static_cast<std::uint32_t>(all.size());
      all.push_back({{(p.values[v].kept ? 1u : 0u) + (p.values[v].outside ? 2u : 0u), made_in[v]}, v});
    }
  for (std::uint32_t i = 0; i < p.ops.size(); ++i)
    for (auto v : p.ops[i].inputs)
      if (at[v] != no_producer && all[at[v]].groups.back() != group_of[i]) all[at[v]].groups.push_back(group_of[i]);
  std::stable_sort(all.begin(), all.end(), [](entry const& x, entry const& y) { return x.groups < y.groups; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& value = p.values[all[i].value];
    if (i == 0 || all[i].groups != all[i - 1].groups) joined.push_back(value);
    else joined.back().bytes += value.bytes;
    number[all[i].value] = static_cast<std::uint32_t>(joined.size() - 1);
  }
  return number;
}

}  // namespace detail

NEAP_FUNC grouped_remat group_ops(remat_problem const& p, std::uint32_t size) {
  grouped_remat out;
  auto const group_of = detail::find_groups(p, size, out.ends);
  // Values that more than one group touches, or that are there before or behind.
  auto made_in = producers(p);  // groups
  std::vector<std::uint32_t> last(p.values.size(), 0);
  std::vector<unsigned char> crosses(p.values.size(), 0);
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    crosses[v] = made_in[v] == no_producer || p.values[v].kept || p.values[v].outside;
    if (made_in[v] != no_producer) made_in[v] = group_of[made_in[v]];
  }
  for (std::uint32_t i = 0; i < p.ops.size(); ++i) {
    for (auto v : p.ops[i].inputs)
      if (group_of[i] != made_in[v]) crosses[v] = 1;
    for (auto const* list : {&p.ops[i].inputs, &p.ops[i].outputs})
      for (auto v : *list) last[v] = i;
  }
  auto const number = detail::join_values(p, group_of, made_in, crosses, out.problem.values);
  std::uint32_t from = 0;
  for (auto to : out.ends) {
    remat_op g;
    std::int64_t inside = 0;
    for (auto i = from; i < to; ++i) {
      auto const& o = p.ops[i];
      g.time += o.time, g.again = g.again && o.again;
      for (auto v : o.inputs)
        if (crosses[v] && made_in[v] != group_of[i]) g.inputs.push_back(number[v]);
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

NEAP_FUNC remat_answer ungrouped(remat_problem const& p, grouped_remat const& g, remat_answer const& a) {
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

}}  // namespace neap::v0
