// The bodies of <neap/blocks/checkmate_milp.hpp>.
#pragma once

#include <neap/blocks/checkmate_milp.hpp>

#include <neap/core/separate_compilation.hpp>

#include <cstddef>
#include <utility>

namespace neap { inline namespace v0 {

NEAP_FUNC std::vector<std::uint32_t> checkmate_program::sequence(std::vector<double> const& values) const {
  std::vector<std::uint32_t> out;
  for (std::size_t t = 0, at = 0; at < runs.size(); ++t)
    for (std::uint32_t i = 0; i <= t; ++i, ++at)
      if (values[runs[at]] > 0.5) out.push_back(i);
  return out;
}

NEAP_FUNC checkmate_program make_checkmate_program(remat_problem const& p, remat_limits const& limits, bool whole) {
  constexpr double much = linear_problem::unbounded;
  std::size_t const n = p.ops.size();
  auto const made_by = producers(p);
  std::vector<std::vector<std::uint32_t>> readers(p.values.size());
  for (std::uint32_t i = 0; i < n; ++i)
    for (auto v : p.ops[i].inputs) readers[v].push_back(i);

  checkmate_program out;
  linear_problem& m = out.program;
  for (std::uint32_t t = 0; t < n; ++t)
    for (std::uint32_t i = 0; i <= t; ++i)
      out.runs.push_back(m.add_column(i == t ? 1 : 0, i == t || p.ops[i].again ? 1 : 0, p.ops[i].time, whole));
  auto const run = [&](std::size_t t, std::size_t i) { return out.runs[t * (t + 1) / 2 + i]; };

  // alive[t][v]: S, where v can be alive at the start of phase t. Phase n stands for the end.
  constexpr std::uint32_t none = 0xffffffffu;
  auto const from_start = [&](std::size_t v) { return made_by[v] == no_producer; };
  std::vector<std::vector<std::uint32_t>> alive(n + 1, std::vector<std::uint32_t>(p.values.size(), none));
  for (std::size_t t = 0; t <= n; ++t)
    for (std::size_t v = 0; v < p.values.size(); ++v) {
      if (!from_start(v) && made_by[v] >= t) continue;
      bool const always = from_start(v) && (t == 0 || p.values[v].kept), end = t == n;
      double const least = always || (end && p.values[v].kept) ? 1 : 0;
      alive[t][v] = m.add_column(least, end ? least : 1, 0, whole);
    }

  for (std::size_t t = 0; t < n; ++t) {
    // What runs finds its inputs; what is alive later is alive now or made.
    for (std::size_t i = 0; i <= t; ++i)
      for (auto v : p.ops[i].inputs) {
        m.add_entry(run(t, i), 1);
        if (alive[t][v] != none) m.add_entry(alive[t][v], -1);
        if (!from_start(v)) m.add_entry(run(t, made_by[v]), -1);
        m.end_row(-much, 0);
      }
    for (std::size_t v = 0; v < p.values.size(); ++v) {
      if (alive[t + 1][v] == none) continue;
      m.add_entry(alive[t + 1][v], 1);
      if (alive[t][v] != none) m.add_entry(alive[t][v], -1);
      if (!from_start(v)) m.add_entry(run(t, made_by[v]), -1);
      m.end_row(-much, 0);
    }
  }

  if (limits.peak_bytes != remat_limits::none) {
    double const unit = std::max<double>(1, static_cast<double>(limits.peak_bytes));
    for (std::size_t t = 0; t < n; ++t) {
      // needed[v]: first the column for the maker, then one for each reader in this phase.
      std::vector<std::vector<std::uint32_t>> needed(p.values.size());
      for (std::size_t v = 0; v < p.values.size(); ++v) {
        if (!from_start(v) && made_by[v] > t) continue;
        std::vector<std::uint32_t> ops;
        if (!from_start(v)) ops.push_back(made_by[v]);
        for (auto r : readers[v])
          if (r <= t) ops.push_back(r);
        std::uint32_t next = alive[t + 1][v];
        needed[v].resize(ops.size());
        for (std::size_t k = ops.size(); k-- > 0;) {
          auto const now = m.add_column(0, 1, 0, false);
          m.add_row(0, {{now, 1}, {run(t, ops[k]), -1}}, much);
          if (next != none) m.add_row(0, {{now, 1}, {next, -1}}, much);
          needed[v][k] = next = now;
        }
      }
      for (std::size_t k = 0; k <= t; ++k) {
        auto const add = [&](std::uint32_t at, std::int64_t bytes) {
          if (at != none && bytes > 0) m.add_entry(at, static_cast<double>(bytes) / unit);
        };
        add(run(t, k), p.ops[k].workspace_bytes);
        for (std::size_t v = 0; v < p.values.size(); ++v) {
          if (!from_start(v) && made_by[v] > t) continue;
          bool const made = from_start(v) || made_by[v] <= k;
          if (!made) {
            add(alive[t][v], p.values[v].bytes);
            continue;
          }
          // The first reader at or after k; the maker's own column where k is the maker.
          std::size_t j = 0, skip = from_start(v) ? 0 : 1;
          if (!from_start(v) && made_by[v] == k) skip = 0;
          else
            while (j < readers[v].size() && readers[v][j] < k) ++j;
          j += skip;
          add(j < needed[v].size() ? needed[v][j] : alive[t + 1][v], p.values[v].bytes);
        }
        m.end_row(-much, static_cast<double>(limits.peak_bytes) / unit);
      }
    }
  }
  if (limits.saved_bytes != remat_limits::none && p.pause_after >= 0) {
    double const unit = std::max<double>(1, static_cast<double>(limits.saved_bytes));
    for (std::size_t v = 0; v < p.values.size(); ++v) {
      auto const at = alive[static_cast<std::size_t>(p.pause_after) + 1][v];
      if (at != none && !p.values[v].outside && p.values[v].bytes > 0)
        m.add_entry(at, static_cast<double>(p.values[v].bytes) / unit);
    }
    m.end_row(-much, static_cast<double>(limits.saved_bytes) / unit);
  }
  return out;
}

}}  // namespace neap::v0
