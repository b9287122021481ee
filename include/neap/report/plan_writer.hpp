// A plan as a file: `neap.plan` version 4, JSON, self-contained. Nodes stand in the order of the steps, in the form of the
// graph format, each with `origin`, the id of the op of the original graph that it is or copies (-1 for transfers). A node
// with `attributes` is an operator of neap's, `op` its name after "neap."; every other one is the graph's own, whatever
// it is called, and `details` is a text that holds what its file says of it besides (for a neap-graph: a JSON object of
// args, kwargs and the like). A node that runs on a piece of its origin's inputs has `part`: [k, n], the k-th of n, or
// [k, n, i, m], of that the i-th of m, and `axes`: for each of these cuts {"in": [...], "out": [...]}, the axis along
// which each input and output is cut, or -1 (an input that is read whole, a partial result); where the origin came with a latency, `whole` is that op's work, {flops, bytes}, and
// `seconds` its latency, of which the part takes its share. Nodes whose origin is no op of the original graph join parts
// (slice, blank, place, combine_into, mul_scalar, copy), or were put there by rewrite rules (any operators that compute).
//
// A node and a tensor that are pinned (ir/pins.hpp) have `pins`, a list of names; `source` has `pins` where the graph was
// given some beside those of its file: rows of a pin and a pattern.
//
//   format, version, name, fingerprint (of the original graph), options
//   durations   what times come from: {table?, given, device}; absent: a cost model that the file cannot tell
//   storages, tensors, nodes, outputs      the planned graph (`buf` of a tensor is a row of storages). An output is
//               {tensor, kind: loss|grad|output, role?}: role is that of a value which an op makes and which is no result,
//               such as a weight that was updated in place. Readers need not know it.
//   steps       {kind: compute|store|load, node, stream, start, end [us], workspace, workspace_offset}
//   buffers     {value, pool, offset, bytes, first, last, resident, takes_over?}: value is the storage's first tensor
//   waits       [step, transfer step]
//   peak_bytes, arena_bytes, resident_bytes, lower_bound_bytes, latency_us
//   limits      {memory_bytes?, latency_us?}: those of the search, where set; a plan that found nothing better may be
//               above. Readers need not know it.
//   checksum    of all the text before it
//
// Version 3 had no axes: a plan of which they are not known, as it was read from such a file, is written as version 3.
// Version 2 had no parts. Version 1 had no durations and no details either, and its fingerprint took no account of details.
//
// Numbers read back as they were, to the bit: a time in microseconds that does not say its seconds so is followed by them,
// `latency_us` by `latency_s`, `start` by `start_s`, and files without those are read as they stand. Attributes that are not finite are the texts "inf", "-inf", "nan", "-nan".
#pragma once

#include <neap/core/json_text.hpp>
#include <neap/ir/part_axes.hpp>
#include <neap/ir/pin_rules.hpp>
#include <neap/plan/durations.hpp>
#include <neap/plan/plan.hpp>

#include <optional>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// How the graph file was read, so that a reader of the plan reads it the same way; the limits of the search; and what the
/// times come from, without which they cannot be verified.
struct plan_source {
  std::string name;
  bool optimizer = false;           // with the update nodes of a neap-graph
  std::string magis = "magis";      // how memory of a MAGIS file is counted: "magis" or "aliased"
  bool losses_apart = false;        // mean losses of a neap-graph as an op for their weight and one for the rest
  bytes_t memory_limit_bytes = -1;  // negative: none
  seconds_t latency_limit_seconds = -1;
  std::optional<duration_source> durations{};
  bool gradients_used_up = false;      // those that the update nodes read are not kept
  std::vector<std::string> donated{};  // patterns of inputs that were donated beside those that the file donates
  pin_rules pins{};                    // by pattern, that the graph was given beside those in its file
};

namespace detail {

/// The text of the file of a plan for the graph with the digest `original`; g: the planned graph.
std::string plan_json(op_graph const& g, placed_steps const& p, digest original, plan_source const& from);

}  // namespace detail

/// The text of the file. Linear in the plan's size.
inline std::string plan_json(plan const& p, plan_source const& from) {
  return detail::plan_json(p.graph, p, p.original, from);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/report/impl/plan_writer.ipp>
#endif
