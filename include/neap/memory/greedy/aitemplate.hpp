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

inline index root_of(graph const& g, index t) {
  while (g.tensors[static_cast<std::size_t>(t)].view_of != nowhere) t = g.tensors[static_cast<std::size_t>(t)].view_of;
  return t;
}

/// A fault of the description, or an empty line.
inline std::string fault_of(graph const& g) {
  auto const tensors = static_cast<index>(g.tensors.size()), ops = static_cast<index>(g.ops.size());
  std::vector<std::string_view> names;
  for (index i = 0; i < tensors; ++i) {
    tensor const& t = g.tensors[static_cast<std::size_t>(i)];
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
      for (index at = t; at != nowhere; at = g.tensors[static_cast<std::size_t>(at)].view_of)
        for (auto source : g.tensors[static_cast<std::size_t>(at)].src_ops)
          w = std::max(w, wave[static_cast<std::size_t>(source)] + 1);
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

}  // namespace detail

/// Offsets of a graph's tensors and workspaces. O(tensors^2). A failure names the tensor, op or option at fault.
inline result<planned> plan_memory(graph const& g, options const& how = {}) {
  if (auto wrong = detail::fault_of(g); !wrong.empty()) return failure{wrong};
  if (how.max_parallel_ops <= 0) return failure{"max_parallel_ops must be at least 1"};
  auto const at = [&](index t) -> tensor const& { return g.tensors[static_cast<std::size_t>(t)]; };
  auto const resident = [&](index t) {  // not of the arena: weights, and what the caller or the constants' space holds
    if (at(t).is_param) return true;
    if (how.flaws.inputs_in_arena) return false;
    return at(t).is_constant || (at(t).src_ops.empty() && at(t).view_of == nowhere);
  };
  planned out;
  out.offsets.assign(g.tensors.size(), -1);

  // When each tensor is touched, inclusive, in steps that run one after the other.
  std::vector<std::vector<index>> steps;
  if (how.mode == run_mode::multi_stream) steps = detail::waves_of(g, how.max_parallel_ops);
  else
    for (auto o : detail::sequence_of(g, how.flaws.repeated_ops)) steps.push_back({o});
  struct life {
    std::int64_t first = -1, last = -1;
  };
  std::vector<life> lives(g.tensors.size());
  std::vector<index> touched;  // in order of first touch
  auto const end = static_cast<std::int64_t>(steps.size()) - 1;
  auto const touch = [&](index t, std::int64_t step) {
    life& l = lives[static_cast<std::size_t>(t)];
    if (l.first < 0) l.first = step, touched.push_back(t);
    l.last = std::max(l.last, at(t).is_output ? end : step);
  };
  if (how.mode == run_mode::naive) {
    for (index t = 0; t < static_cast<index>(g.tensors.size()); ++t) {
      if (at(t).is_constant || at(t).view_of != nowhere || (!how.flaws.inputs_in_arena && resident(t))) continue;
      out.offsets[static_cast<std::size_t>(t)] = out.arena_bytes;
      out.arena_bytes += detail::bytes_of(at(t));
    }
  } else {
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (auto o : steps[s])
        for (auto const* list :
             {&g.ops[static_cast<std::size_t>(o)].inputs, &g.ops[static_cast<std::size_t>(o)].outputs})
          for (auto t : *list)
            if (!resident(t)) touch(t, static_cast<std::int64_t>(s));
    // A view extends the life of what it sees, and needs no bytes itself.
    std::vector<char> folded(g.tensors.size(), 0);
    for (index t = 0; t < static_cast<index>(g.tensors.size()); ++t) {
      life const view = lives[static_cast<std::size_t>(t)];
      if (at(t).view_of == nowhere || view.first < 0) continue;
      index const root = detail::root_of(g, t);
      life& base = lives[static_cast<std::size_t>(root)];
      if (resident(root)) {
        folded[static_cast<std::size_t>(t)] = !(how.flaws.views_extend_last_only && at(root).is_param);
        continue;
      }
      if (base.first < 0) {
        if (how.flaws.views_extend_last_only)
          return failure{"tensor '" + at(t).name + "': what it views is touched by no op itself"};
        base = view, touched.push_back(root);
      }
      base.last = std::max(base.last, at(root).is_output ? end : view.last);
      if (!how.flaws.views_extend_last_only) base.first = std::min(base.first, view.first);
      folded[static_cast<std::size_t>(t)] = 1;
    }
    for (auto t : touched) {
      if (folded[static_cast<std::size_t>(t)]) continue;
      life const l = lives[static_cast<std::size_t>(t)];
      out.records.push_back({.lower = l.first, .upper = l.last + 1, .size = detail::bytes_of(at(t))});
      out.record_tensors.push_back(t);
    }
    memory_plan const placed = greedy_by_size{}(out.records);
    if (!has_offsets(placed)) return failure{placed.why.message()};
    out.arena_bytes = placed.arena_bytes;
    for (std::size_t r = 0; r < out.records.size(); ++r)
      out.offsets[static_cast<std::size_t>(out.record_tensors[r])] = placed.offsets[r];
  }
  for (index t = 0; t < static_cast<index>(g.tensors.size()); ++t) {
    if (at(t).is_constant) {
      out.offsets[static_cast<std::size_t>(t)] = out.constant_bytes;
      out.constant_bytes += detail::bytes_of(at(t));
    }
    if (at(t).view_of != nowhere)
      out.offsets[static_cast<std::size_t>(t)] = out.offsets[static_cast<std::size_t>(at(t).view_of)];
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
