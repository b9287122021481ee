// A plan: everything that is needed to run a training step in a given amount of memory, as plain data. A planner makes
// it (memory/make_plan.hpp), an executor runs it, neap/verify checks it against the graph it was made for.
//
// One arena holds everything, residents first:
//
//   0            resident_bytes                                        arena_bytes
//   | w0 | w1 |..| buffers and workspaces, placed by a memory planner  |
#pragma once

#include <neap/core/digest.hpp>
#include <neap/core/units.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/plan/simulation.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// What runs at one position of the schedule.
struct plan_step {
  op_id op = nothing<op_id>;
  op_stream stream = op_stream::compute;
  seconds_t start = 0, end = 0;  // by the cost model, in seconds from the step's beginning
  bytes_t workspace_bytes = 0;   // rounded up; 0: the op needs none
  bytes_t workspace_offset = 0;  // in the arena
  friend bool operator==(plan_step const&, plan_step const&) = default;
};

/// Where one storage lies, and when.
struct plan_buffer {
  storage_id storage = nothing<storage_id>;
  storage_id takes_over = nothing<storage_id>;  // the storage that dies at step `first`, whose bytes these are
  bytes_t offset = 0;                           // in the arena
  bytes_t bytes = 0;                            // rounded up to the alignment
  std::uint32_t first = 0, last = 0;            // steps, both included
  bool resident = false;                        // there before and after the step
  friend bool operator==(plan_buffer const&, plan_buffer const&) = default;
};

/// Before step `step` begins (the number of steps: before all is done), the store or load of step `transfer` has ended.
/// A wait of a compute step holds for all later steps; a wait of a transfer's step holds for that transfer. Beyond these
/// waits, each stream runs its steps in order, and a transfer begins after the last compute step issued before it.
struct transfer_wait {
  std::uint32_t step = 0, transfer = 0;
  friend auto operator<=>(transfer_wait const&, transfer_wait const&) = default;
};

/// Steps and addresses of a graph that stands elsewhere: ids are that graph's.
struct placed_steps {
  static constexpr std::uint32_t no_buffer = 0xffffffffu;

  memory_options options;
  std::vector<plan_step> steps;      // in issue order
  std::vector<plan_buffer> buffers;  // ascending by storage; storages of no device bytes have none
  std::vector<transfer_wait> waits;  // ascending, each once

  bytes_t peak_bytes = 0;  // the most that lives at any step, resident included
  bytes_t resident_bytes = 0;
  bytes_t arena_bytes = 0;        // the end of the highest buffer or workspace
  bytes_t lower_bound_bytes = 0;  // of the peak: no order, recomputation or swapping of the original gets below
  seconds_t latency = 0;          // the end of the last step

  schedule order() const {
    schedule s;
    s.order.reserve(steps.size());
    for (auto const& x : steps) s.order.push_back(x.op);
    return s;
  }
};

struct plan : placed_steps {
  op_graph graph;   // with its copies, stores and loads
  digest original;  // of the graph that the user gave; ids in op_record::origin are that graph's

  /// For each storage the index of its buffer, or no_buffer.
  table<storage_id, std::uint32_t> buffer_of() const {
    table<storage_id, std::uint32_t> t(flow::storage_count(graph), no_buffer);
    for (std::uint32_t i = 0; i < buffers.size(); ++i) t[buffers[i].storage] = i;
    return t;
  }
};

}}  // namespace neap::v0
