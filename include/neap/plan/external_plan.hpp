// A plan for an external graph, as plain data in that graph's own ids: what runs when, on which instance of
// which value, and where every byte lies.
//
//   for (auto const& s : plan.steps)
//     if (s.kind == external_step::compute) run(s.op, s.inputs, s.outputs);      // s.copy > 0: it runs again
//
// An op that runs again makes new instances of its values, in buffers of their own; so does a load. Each argument says
// which instance it is: by the step that made it, and by the buffer that it lies in. Of a kept value the instance counts
// whose buffer is taken up to the last step.
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/units.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/plan/plan.hpp>
#include <neap/plan/simulation.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// An instance of a value.
struct external_value {
  value_id value = nothing<value_id>;  // the graph's
  std::uint32_t made_by = no_id;       // the step that made this instance; no_id: it is there before the step
  std::uint32_t buffer = no_id;        // row of the plan's buffers; no_id: it has no bytes
  friend bool operator==(external_value const&, external_value const&) = default;
};

struct external_step {
  enum kind_of_step : std::uint8_t {
    compute,  // the graph's op `op` runs
    store,    // inputs[0] is copied outside
    load,     // what step `stored_by` stored is copied into the buffer of outputs[0]
    wait  // nothing is done: later computations begin when what step `stored_by` stores is outside (`waits` says so)
  };
  kind_of_step kind = compute;
  op_stream stream = op_stream::compute;
  op_id op = nothing<op_id>;            // the graph's; of a transfer or a wait: nothing
  std::uint32_t copy = 0;               // how many times the op has run before
  std::uint32_t stored_by = no_id;      // of a load or a wait
  seconds_t start = 0, end = 0;         // by the cost model, from the beginning
  bytes_t workspace_bytes = 0;          // rounded up; 0: none
  bytes_t workspace_offset = 0;         // in the arena
  std::vector<external_value> inputs;   // as many as the op has, in its order
  std::vector<external_value> outputs;  // the same
  friend bool operator==(external_step const&, external_step const&) = default;
};

/// A piece of the arena, and when it is taken. Several may hold one storage's values in turn.
struct external_buffer {
  storage_id storage = nothing<storage_id>;  // the graph's
  bytes_t offset = 0;                        // in the arena
  bytes_t bytes = 0;                         // rounded up to the alignment
  std::uint32_t first = 0, last = 0;         // steps, both included
  std::uint32_t takes_over = no_id;          // the buffer that ends at step `first`, whose bytes these are
  bool resident = false;                     // there before and after
  friend bool operator==(external_buffer const&, external_buffer const&) = default;
};

struct external_plan {
  memory_options options;
  std::vector<external_step> steps;      // in issue order
  std::vector<external_buffer> buffers;  // residents at the front of the arena
  std::vector<transfer_wait> waits;      // before a step begins, a store or load has ended (plan/plan.hpp)
  bytes_t peak_bytes = 0;                // the most that lives at any step, resident included
  bytes_t resident_bytes = 0;
  bytes_t arena_bytes = 0;        // the end of the highest buffer or workspace
  bytes_t lower_bound_bytes = 0;  // of the peak: no order, recomputation or swapping gets below
  seconds_t latency = 0;          // the end of the last step
  friend bool operator==(external_plan const&, external_plan const&) = default;
};

}}  // namespace neap::v0
