// Checkmate's integer program (Jain et al., MLSys'20) of recomputation inside a block, for any linear_solver.
//
// R[t, i]: op i runs in phase t. S[t, v]: value v is alive when phase t begins. Instead of Checkmate's products for what is
// freed, continuous columns say what is still needed: N[t, v, j] for the j-th reader of v, at least R of that reader, at
// least N of the next one, the last at least S[t + 1, v]. Between two readers a value takes its bytes times the next N.
// That is fewer columns and rows, and the same plans: where R and S are whole, what N allows is what phases do.
#pragma once

#include <neap/blocks/linear_solver.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// The program, and where the answer stands in it.
struct checkmate_program {
  linear_problem program;
  std::vector<std::uint32_t> runs;  ///< the column of R[t, i] at t * (t + 1) / 2 + i, i <= t

  /// The ops of a solution, in order.
  std::vector<std::uint32_t> sequence(std::vector<double> const& values) const {
    std::vector<std::uint32_t> out;
    for (std::size_t t = 0, at = 0; at < runs.size(); ++t)
      for (std::uint32_t i = 0; i <= t; ++i, ++at)
        if (values[runs[at]] > 0.5) out.push_back(i);
    return out;
  }
};

/// Requires a problem that check() passes. O(ops^2) rows of up to O(values) entries. `whole` false: the relaxation, whose
/// least cost is a bound.
inline checkmate_program make_checkmate_program(remat_problem const& p, remat_limits const& limits, bool whole = true) {
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

/// A linear_solver as a remat_solver. What it proves holds up to the solver's tolerance. An answer that passes a limit
/// within that tolerance is not given: then there is only the bound.
template <class Solver>
struct checkmate {
  static_assert(linear_solver<Solver>,
                "neap: this is no linear solver: it lacks  neap::linear_answer operator()(neap::linear_problem const&) "
                "const");
  Solver solver;

  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    remat_answer a;
    if (auto const ok = check(p); !ok) {
      a.status = remat_status::infeasible;
      a.why = ok.message();
      return a;
    }
    auto const made = make_checkmate_program(p, limits);
    auto const found = solver(made.program);
    if (auto const right = verify(made.program, found); !right)
      throw_error({"checkmate: the linear solver gave a wrong answer: ", right.message()});
    a.why = found.why;
    if (found.status == linear_status::infeasible) {
      a.status = remat_status::infeasible;
      a.lower_bound = linear_problem::unbounded;
      return a;
    }
    double const bound = std::max(found.lower_bound, time_once(p));
    a.lower_bound = bound;
    if (found.status != linear_status::optimal && found.status != linear_status::feasible) return a;
    auto b = answer_of(p, made.sequence(found.values));
    if (b.peak_bytes > limits.peak_bytes || b.saved_bytes > limits.saved_bytes) return a;
    b.lower_bound = std::min(bound, b.time);
    if (found.status == linear_status::optimal) {
      b.status = remat_status::optimal;
      b.lower_bound = b.time;
    }
    return b;
  }
};

/// The least cost of Checkmate's program without wholeness: a bound, from one linear program.
template <linear_solver Solver>
double checkmate_bound(Solver const& solver, remat_problem const& p, remat_limits const& limits) {
  auto const found = solver(make_checkmate_program(p, limits, false).program);
  if (found.status == linear_status::infeasible) return linear_problem::unbounded;
  return std::max(time_once(p), found.lower_bound);
}

}}  // namespace neap::v0
