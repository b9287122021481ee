// Blocks for tests and benchmarks of recomputation: random ones, chains with skips, and the least time of a small block by
// trying everything.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace neap::testing {

/// A random block: several outputs an op, inputs that are kept or not, ops that run but once, values kept at the end, a
/// pause, workspaces, values of no bytes; times whole or not.
inline remat_problem random_block(random_stream& draw, std::uint32_t max_ops) {
  remat_problem p;
  std::uint32_t const n = 1 + draw.below(max_ops);
  bool const whole = draw.below(3) > 0;
  std::uint32_t const reach = 1 + draw.below(6);
  for (std::uint32_t i = draw.below(3); i > 0; --i)
    p.values.push_back({draw.below(6), draw.below(2) == 0, draw.below(2) == 0});
  for (std::uint32_t i = 0; i < n; ++i) {
    remat_op op;
    op.time = draw.below(10) == 0 ? 0 : whole ? 1 + draw.below(9) : 9 * static_cast<double>(draw.uniform());
    if (draw.below(3) == 0) op.workspace_bytes = draw.below(5);
    op.again = draw.below(16) > 0;
    auto const before = static_cast<std::uint32_t>(p.values.size());
    for (std::uint32_t v = 0; v < before; ++v) {
      bool const near = before - v <= reach;
      if (near ? draw.below(2) == 0 : draw.below(6) == 0) op.inputs.push_back(v);
    }
    for (std::uint32_t k = draw.below(5) == 0 ? 2 : 1; k > 0; --k) {
      op.outputs.push_back(static_cast<std::uint32_t>(p.values.size()));
      p.values.push_back({draw.below(12) == 0 ? 0 : 1 + draw.below(9), draw.below(10) == 0, draw.below(4) == 0});
    }
    p.ops.push_back(op);
  }
  if (draw.below(3) == 0) p.pause_after = draw.below(n);
  return p;
}

/// A chain of `length` ops with a skip from every `skip`-th (0: none), then its backward: 2 * length ops. As in the
/// specification: sizes 2 to 10, times 1 to 10. Op i reads value i - 1, and value i - skip where there is a skip; the
/// backward of op i reads the gradient of its output, its own output and its inputs; gradients are one value an op.
inline remat_problem skip_chain(std::uint32_t length, std::uint32_t skip, std::uint64_t seed) {
  random_stream draw(seed, 1000 * length + skip);
  remat_problem p;
  auto const bytes = [&] { return std::int64_t{2} + draw.below(9); };
  auto const time = [&] { return 1.0 + draw.below(10); };
  std::uint32_t const n = 2 * length;
  for (std::uint32_t i = 0; i < n; ++i) {
    remat_op op;
    op.time = time();
    op.outputs = {i};
    p.values.push_back({bytes()});
    auto const reads = [&](std::uint32_t v) {
      if (std::find(op.inputs.begin(), op.inputs.end(), v) == op.inputs.end()) op.inputs.push_back(v);
    };
    auto const forward_inputs = [&](std::uint32_t k) {
      if (k > 0) reads(k - 1);
      if (skip > 0 && k % skip == 0 && k >= skip) reads(k - skip);
    };
    if (i < length) {
      forward_inputs(i);
    } else {
      std::uint32_t const k = n - 1 - i;  // the op whose backward this is
      reads(i - 1);
      if (k + 1 < length) reads(k);
      forward_inputs(k);
    }
    p.ops.push_back(op);
  }
  p.values.back().kept = true;
  p.pause_after = static_cast<std::int64_t>(length) - 1;
  return p;
}

/// A short chain with skips, changed a little: workspaces, one more kept value, one more output of some op.
inline remat_problem altered_chain(random_stream& draw) {
  auto p = skip_chain(3 + draw.below(3), draw.below(4), draw());
  auto const n = static_cast<std::uint32_t>(p.ops.size());
  for (auto& op : p.ops)
    if (draw.below(4) == 0) op.workspace_bytes = draw.below(8);
  p.values[draw.below(n)].kept = true;
  if (draw.below(2) == 0) return p;
  auto const by = draw.below(n);
  p.ops[by].outputs.push_back(n);
  p.values.push_back({1 + draw.below(9)});
  for (auto i = by + 1; i < n; ++i)
    if (draw.below(4) == 0) p.ops[i].inputs.push_back(n);
  return p;
}

/// The peak when nothing is dropped before its last use, and nothing runs again.
inline std::int64_t peak_once(remat_problem const& p) {
  std::vector<std::size_t> last(p.values.size(), 0);
  std::vector<std::int64_t> made(p.values.size(), -1);
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    for (auto v : p.ops[i].inputs) last[v] = i;
    for (auto v : p.ops[i].outputs) last[v] = i, made[v] = static_cast<std::int64_t>(i);
  }
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    std::int64_t sum = p.ops[i].workspace_bytes;
    for (std::size_t v = 0; v < p.values.size(); ++v)
      if (made[v] <= static_cast<std::int64_t>(i) && (last[v] >= i || p.values[v].kept)) sum += p.values[v].bytes;
    peak = std::max(peak, sum);
  }
  return peak;
}

/// The most that any op needs by itself: no limit below it can be kept.
inline std::int64_t largest_op(remat_problem const& p) {
  std::int64_t largest = 0;
  for (auto const& op : p.ops) {
    std::int64_t sum = op.workspace_bytes;
    for (auto v : op.inputs) sum += p.values[v].bytes;
    for (auto v : op.outputs) sum += p.values[v].bytes;
    largest = std::max(largest, sum);
  }
  return largest;
}

/// A limit between the largest op, or a byte below it, and the peak of running everything once.
inline std::int64_t drawn_peak(random_stream& draw, remat_problem const& p) {
  auto const once = peak_once(p), alone = largest_op(p);
  return once - draw.below(static_cast<std::uint32_t>(once - alone) + 2);
}

/// The least time within the limits, by trying everything: for every phase, position in it and set of living values the
/// least time to be there. Infinity where there is nothing. For up to about 12 values. From phase `first` on with the
/// values of `start` alive (bits), and without either the whole block.
inline double least_time(remat_problem const& p, remat_limits const& limits, std::size_t first = 0,
                         std::uint32_t start = 0xffffffffu) {
  double const never = std::numeric_limits<double>::infinity();
  std::size_t const n = p.ops.size(), sets = std::size_t{1} << p.values.size();
  std::vector<std::uint32_t> in(n), out(n);
  std::uint32_t made = 0, kept = 0, outside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (auto v : p.ops[i].inputs) in[i] |= 1u << v;
    for (auto v : p.ops[i].outputs) out[i] |= 1u << v;
    made |= out[i];
  }
  std::vector<std::int64_t> bytes(sets, 0);
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    if (p.values[v].kept) kept |= 1u << v;
    if (p.values[v].outside) outside |= 1u << v;
    for (std::size_t s = 0; s < sets; ++s)
      if (s >> v & 1) bytes[s] += p.values[v].bytes;
  }
  std::uint32_t const fixed = kept & ~made;  // inputs that may not be dropped
  std::vector<double> now(sets, never), next(sets);
  now[start == 0xffffffffu ? (sets - 1) & ~made : start] = 0;
  for (std::size_t t = first; t < n; ++t) {
    std::fill(next.begin(), next.end(), never);
    for (std::size_t i = 0; i <= t; ++i) {  // now: ops below i of this phase have run or not
      for (std::size_t s = sets; s-- > 0;) {
        if (!(now[s] < never)) continue;
        for (std::size_t v = 0; v < p.values.size(); ++v)
          if ((s & ~fixed) >> v & 1) now[s ^ (std::size_t{1} << v)] = std::min(now[s ^ (std::size_t{1} << v)], now[s]);
      }
      std::vector<double> then = now;
      for (std::size_t s = 0; s < sets; ++s) {
        if (!(now[s] < never) || (s & in[i]) != in[i] || (i < t && !p.ops[i].again)) continue;
        std::size_t const to = s | out[i];
        if (bytes[to] + p.ops[i].workspace_bytes > limits.peak_bytes) continue;
        auto& into = i < t ? then[to] : next[to];
        into = std::min(into, now[s] + p.ops[i].time);
      }
      now = then;
    }
    now = next;
    if (static_cast<std::int64_t>(t) != p.pause_after) continue;
    for (std::size_t s = sets; s-- > 0;) {
      if (!(now[s] < never)) continue;
      for (std::size_t v = 0; v < p.values.size(); ++v)
        if ((s & ~fixed) >> v & 1) now[s ^ (std::size_t{1} << v)] = std::min(now[s ^ (std::size_t{1} << v)], now[s]);
    }
    for (std::size_t s = 0; s < sets; ++s)
      if (bytes[s & ~outside] > limits.saved_bytes) now[s] = never;
  }
  double least = never;
  for (std::size_t s = 0; s < sets; ++s)
    if ((s & kept) == kept) least = std::min(least, now[s]);
  return least;
}

}  // namespace neap::testing
