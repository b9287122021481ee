// AITemplate's memory planner in full (compiler/transform/memory_planning.py), as a preset on neap's own planners.
//
// Tensors and ops in, offsets out: usage records of the tensors that ops touch, views folded into what they see,
// constants in a space of their own, a workspace shared by all ops and one that each op keeps, greedy by size. What is
// wrong with the original is kept as switches, off by default; with all of them on, its offsets are reproduced bit for
// bit (tests/memory/aitemplate.cpp restates its rules plainly and compares).
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace aitemplate {

using index = std::int32_t;
inline constexpr index nowhere = -1;
inline constexpr std::int64_t alignment_bytes = 64;

struct tensor {
  std::string name{};
  std::vector<std::int64_t> shape{};  ///< upper bounds of the extents
  std::int64_t element_bytes = 2;
  bool is_param = false;     ///< a weight: lives outside the arena
  bool is_output = false;    ///< lives to the end
  bool is_constant = false;  ///< has data, or is the result of constant folding
  index view_of = nowhere;   ///< the tensor seen
  std::vector<index> src_ops{};
};

struct op {
  std::vector<index> inputs{}, outputs{};
  std::int64_t workspace = 0;         ///< bytes, shared by all ops
  std::int64_t unique_workspace = 0;  ///< bytes, its own
};

/// Tensors in topological order; ops are found through `src_ops`.
struct graph {
  std::vector<tensor> tensors;
  std::vector<op> ops;
};

enum class run_mode : std::uint8_t { greedy, multi_stream, naive };

/// The mode of that name ("greedy", "multi-stream", "naive"), or AITemplate's number for it ("0", "1").
inline result<run_mode> run_mode_of(std::string_view name) {
  if (name == "greedy" || name == "0") return run_mode::greedy;
  if (name == "multi-stream" || name == "1") return run_mode::multi_stream;
  if (name == "naive") return run_mode::naive;
  return failure{"unknown run mode '" + std::string(name.substr(0, 40)) + "': greedy, multi-stream or naive"};
}

/// The original's defects, each of which costs memory and none of which is needed.
struct flaws {
  bool inputs_in_arena = false;         ///< graph inputs and constants get unused arena bytes
  bool repeated_ops = false;            ///< an op with k outputs counts k times, so lives are longer
  bool views_extend_last_only = false;  ///< a view cannot begin its base's life; views of params keep a record
  bool unaligned_workspaces = false;    ///< workspaces begin wherever the one before ends
  static constexpr flaws all() { return {true, true, true, true}; }
};

struct options {
  run_mode mode = run_mode::greedy;
  std::int64_t max_parallel_ops = 99999999;  ///< of one wave, in multi-stream mode
  aitemplate::flaws flaws{};
};

struct planned {
  std::vector<std::int64_t> offsets;  ///< of each tensor, -1 for none; constants: in the constants' space
  std::int64_t arena_bytes = 0;
  std::int64_t constant_bytes = 0;
  std::int64_t shared_workspace = 0;            ///< bytes; behind the unique ones
  std::int64_t unique_workspace = 0;            ///< bytes of all of them
  std::vector<std::int64_t> workspace_offsets;  ///< of each op's unique workspace, -1 for none
  std::vector<usage_record> records;            ///< what was placed, in the order that decides ties
  std::vector<index> record_tensors;            ///< the tensor of each record
};

namespace detail {

/// The largest size in bytes, rounded up to 64; -1 if it does not fit.
inline std::int64_t bytes_of(tensor const& t) {
  std::int64_t bytes = t.element_bytes;
  bool fits = bytes >= 0;
  for (auto extent : t.shape) fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (!fits || bytes > (std::int64_t{1} << 59)) return -1;
  return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

inline tensor const& tensor_at(graph const& g, index t) { return g.tensors[static_cast<std::size_t>(t)]; }

inline index root_of(graph const& g, index t) {
  while (tensor_at(g, t).view_of != nowhere) t = tensor_at(g, t).view_of;
  return t;
}

/// A fault of the description, or an empty line.
inline std::string fault_of(graph const& g) {
  auto const tensors = static_cast<index>(g.tensors.size()), ops = static_cast<index>(g.ops.size());
  std::vector<std::string_view> names;
  for (index i = 0; i < tensors; ++i) {
    tensor const& t = tensor_at(g, i);
    if (bytes_of(t) < 0) return "tensor '" + t.name + "': its size is negative or beyond 2^59 bytes";
    if (t.view_of < nowhere || t.view_of >= i) return "tensor '" + t.name + "': what it views must come before it";
    for (auto o : t.src_ops)
      if (o < 0 || o >= ops) return "tensor '" + t.name + "': no op " + std::to_string(o);
    names.push_back(t.name);
  }
  for (index k = 0; k < ops; ++k) {
    op const& o = g.ops[static_cast<std::size_t>(k)];
    for (auto const* list : {&o.inputs, &o.outputs})
      for (auto t : *list)
        if (t < 0 || t >= tensors) return "op " + std::to_string(k) + ": no tensor " + std::to_string(t);
    if (o.workspace < 0 || o.unique_workspace < 0) return "op " + std::to_string(k) + ": a workspace is negative";
  }
  v0::detail::sort_list(names);
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return "two tensors are named '" + std::string(*twice) + "'";
  return {};
}

/// The ops in order of execution: as the tensors name their sources.
inline std::vector<index> sequence_of(graph const& g, bool repeated) {
  std::vector<index> sequence;
  std::vector<char> seen(g.ops.size(), 0);
  for (auto const& t : g.tensors)
    for (auto o : t.src_ops)
      if (repeated || !seen[static_cast<std::size_t>(o)]) {
        seen[static_cast<std::size_t>(o)] = 1;
        sequence.push_back(o);
      }
  return sequence;
}

/// Ops that may run at once, in order: waves (all inputs made), cut to at most `most` ops.
inline std::vector<std::vector<index>> waves_of(graph const& g, std::int64_t most) {
  std::vector<std::int64_t> wave(g.ops.size(), 0);
  std::int64_t last = 0;
  auto const sequence = sequence_of(g, false);
  for (auto o : sequence) {
    std::int64_t w = 1;
    for (auto t : g.ops[static_cast<std::size_t>(o)].inputs)
      for (index at = t; at != nowhere; at = tensor_at(g, at).view_of)
        for (auto source : tensor_at(g, at).src_ops) w = std::max(w, wave[static_cast<std::size_t>(source)] + 1);
    wave[static_cast<std::size_t>(o)] = w;
    last = std::max(last, w);
  }
  std::vector<std::vector<index>> by_wave(static_cast<std::size_t>(last)), chunks;
  for (auto o : sequence) by_wave[static_cast<std::size_t>(wave[static_cast<std::size_t>(o)] - 1)].push_back(o);
  for (auto const& ops : by_wave)
    for (std::size_t k = 0; k < ops.size(); ++k) {
      if (k % static_cast<std::size_t>(most) == 0) chunks.emplace_back();
      chunks.back().push_back(ops[k]);
    }
  return chunks;
}

/// Not of the arena: weights, and what the caller or the constants' space holds.
inline bool is_resident(graph const& g, flaws const& wrong, index t) {
  auto const& x = tensor_at(g, t);
  if (x.is_param) return true;
  if (wrong.inputs_in_arena) return false;
  return x.is_constant || (x.src_ops.empty() && x.view_of == nowhere);
}

/// When each tensor is touched, inclusive, in steps that run one after the other.
struct tensor_lives {
  struct life {
    std::int64_t first = -1, last = -1;
    bool folded = false;  ///< a view that needs no bytes itself
  };
  std::vector<life> of{};
  std::vector<index> touched{};  ///< in order of first touch
  std::int64_t end = -1;         ///< the last step

  life& operator[](index t) { return of[static_cast<std::size_t>(t)]; }
};
inline tensor_lives lives_of(graph const& g, options const& how) {
  std::vector<std::vector<index>> steps;
  if (how.mode == run_mode::multi_stream) steps = waves_of(g, how.max_parallel_ops);
  else
    for (auto o : sequence_of(g, how.flaws.repeated_ops)) steps.push_back({o});
  tensor_lives lives{.of = std::vector<tensor_lives::life>(g.tensors.size()),
                     .end = static_cast<std::int64_t>(steps.size()) - 1};
  for (std::int64_t step = 0; step <= lives.end; ++step)
    for (auto o : steps[static_cast<std::size_t>(step)])
      for (auto const* list : {&g.ops[static_cast<std::size_t>(o)].inputs, &g.ops[static_cast<std::size_t>(o)].outputs})
        for (auto t : *list) {
          if (is_resident(g, how.flaws, t)) continue;
          auto& l = lives[t];
          if (l.first < 0) l.first = step, lives.touched.push_back(t);
          l.last = std::max(l.last, tensor_at(g, t).is_output ? lives.end : step);
        }
  return lives;
}

/// A view extends the life of what it sees.
inline status fold_views(graph const& g, flaws const& wrong, tensor_lives& lives) {
  for (index t = 0; t < static_cast<index>(g.tensors.size()); ++t) {
    auto& view = lives[t];
    if (tensor_at(g, t).view_of == nowhere || view.first < 0) continue;
    index const root = root_of(g, t);
    auto& base = lives[root];
    bool const outside = is_resident(g, wrong, root);
    view.folded = !(outside && wrong.views_extend_last_only && tensor_at(g, root).is_param);
    if (outside) continue;
    if (base.first < 0) {
      if (wrong.views_extend_last_only)
        return failure{"tensor '" + tensor_at(g, t).name + "': what it views is touched by no op itself"};
      base = {view.first, view.last}, lives.touched.push_back(root);
    }
    base.last = std::max(base.last, tensor_at(g, root).is_output ? lives.end : view.last);
    if (!wrong.views_extend_last_only) base.first = std::min(base.first, view.first);
  }
  return {};
}

inline status place_by_lives(graph const& g, options const& how, planned& out) {
  auto lives = lives_of(g, how);
  if (auto folded = fold_views(g, how.flaws, lives); !folded) return folded;
  for (auto t : lives.touched) {
    auto const& l = lives[t];
    if (l.folded) continue;
    out.records.push_back({.lower = l.first, .upper = l.last + 1, .size = bytes_of(tensor_at(g, t))});
    out.record_tensors.push_back(t);
  }
  memory_plan const placed = greedy_by_size{}(out.records);
  if (!has_offsets(placed)) return failure{placed.why.message()};
  out.arena_bytes = placed.arena_bytes;
  for (std::size_t r = 0; r < out.records.size(); ++r)
    out.offsets[static_cast<std::size_t>(out.record_tensors[r])] = placed.offsets[r];
  return {};
}

}  // namespace detail

/// Offsets of a graph's tensors and workspaces. O(tensors^2). A failure names the tensor, op or option at fault.
inline result<planned> plan_memory(graph const& g, options const& how = {}) {
  if (auto wrong = detail::fault_of(g); !wrong.empty()) return failure{wrong};
  if (how.max_parallel_ops <= 0) return failure{"max_parallel_ops must be at least 1"};
  planned out;
  out.offsets.assign(g.tensors.size(), -1);
  if (how.mode != run_mode::naive) {
    if (auto const placed = detail::place_by_lives(g, how, out); !placed) return failure{placed.message()};
  } else {
    for (std::size_t t = 0; t < g.tensors.size(); ++t) {
      auto const& x = g.tensors[t];
      if (x.is_constant || x.view_of != nowhere ||
          (!how.flaws.inputs_in_arena && detail::is_resident(g, how.flaws, static_cast<index>(t))))
        continue;
      out.offsets[t] = out.arena_bytes;
      out.arena_bytes += detail::bytes_of(x);
    }
  }
  for (std::size_t t = 0; t < g.tensors.size(); ++t) {
    auto const& x = g.tensors[t];
    if (x.is_constant) {
      out.offsets[t] = out.constant_bytes;
      out.constant_bytes += detail::bytes_of(x);
    }
    if (x.view_of != nowhere) out.offsets[t] = out.offsets[static_cast<std::size_t>(x.view_of)];
  }
  // Workspaces: [unique of the first op]...[unique of the last][shared by all].
  out.workspace_offsets.assign(g.ops.size(), -1);
  auto const rounded = [&](std::int64_t bytes) {
    return how.flaws.unaligned_workspaces ? bytes : (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  };
  for (auto o : detail::sequence_of(g, false)) {
    op const& it = g.ops[static_cast<std::size_t>(o)];
    out.shared_workspace = std::max(out.shared_workspace, rounded(it.workspace));
    if (it.unique_workspace == 0) continue;
    out.workspace_offsets[static_cast<std::size_t>(o)] = out.unique_workspace;
    if (__builtin_add_overflow(out.unique_workspace, rounded(it.unique_workspace), &out.unique_workspace))
      return failure{"op " + std::to_string(o) + ": the workspaces up to here overflow"};
  }
  return out;
}

}}}  // namespace neap::v0::aitemplate
