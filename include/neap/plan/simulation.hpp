// What a simulator says of a schedule: when each op runs, when each storage lives, how many bytes are taken.
//
// Memory semantics (the whole library's; the verifier re-states them independently):
//   - A storage is taken at the position of the op that makes it and freed after the position of the last op that reads
//     or writes any value of it. Storages behind kept values live to the end. A dead fresh output is freed
//     after its own position. Resident storages are taken throughout; a storage that is neither resident nor made by an
//     op is taken from the first position.
//   - Workspace is taken during its op's position alone.
//   - Takeover: an output's storage made at position p may be put into the place of an input's storage of equally many bytes
//     that dies at p: the last op that reads or writes it is this one, which writes no value on it itself, no transfer
//     from or to it is still running when the op starts, it is neither resident nor kept, and the operator allows it
//     (graph_traits::may_take_over) for every argument through which it reads that storage. Both then share one buffer,
//     counted once. An op's outputs are looked at in order, each taking the first input that still can be taken; an
//     input's storage is taken once. Only ops on the compute stream take over.
//   - Transfers run beside the computation, so the device storage of a transfer (what a store reads, what a load makes)
//     is held until the first position at which a compute op starts after the transfer has ended: it is freed no earlier
//     than after the position before that one, at the end if there is none. For a store, an executor waits there. A
//     store's result takes no device bytes. A load takes its memory at its own position.
//   - Sizes are rounded up to the alignment, each buffer and each workspace by itself.
//   - The peak is the largest sum at any position: resident + living buffers + workspace.
// Time: three streams, each runs its ops in issue order. An op starts when its stream is free and all it must wait for
// (producers of its inputs, order_after, and for copies the last compute op issued before) have ended. Latency is the end
// of the last op of any stream.
//
//   store s of x:   compute |--A--|--B--|--C--|--D--|      A makes x; s is issued after A and ends while C runs, so D is
//                   to host       |---s---|                the first op to start after it: x's bytes are there up to and
//                   x taken |=================|            with C's position, free for D's output.
#pragma once

#include <neap/core/units.hpp>
#include <neap/plan/live_range.hpp>

#include <string>
#include <vector>

namespace neap { inline namespace v0 {

struct memory_options {
  bytes_t alignment = 64;  // of every buffer, resident ones too
  bool takeover = true;    // elementwise outputs may overwrite inputs that die
  friend bool operator==(memory_options, memory_options) = default;
};

/// Throws neap::error if the alignment is none: below 1 byte, or above 2^30.
constexpr void check_options(memory_options o) {
  if (o.alignment < 1 || o.alignment > bytes_t{1} << 30)
    throw_error({"memory_options: the alignment must be from 1 to 2^30 bytes, not ", o.alignment});
}

/// What a candidate, or a plan, comes to.
struct plan_cost {
  bytes_t peak_bytes = 0;
  seconds_t latency = 0;
  friend bool operator==(plan_cost const&, plan_cost const&) = default;
};

struct simulation {
  bytes_t peak_bytes = 0;                    // resident included
  bytes_t resident_bytes = 0;                // taken throughout
  std::uint32_t peak_position = 0;           // the first position at which the peak is reached
  seconds_t latency = 0;                     // end of the last op, in seconds
  std::vector<bytes_t> bytes_at;             // at each position, resident and workspace included
  std::vector<seconds_t> start, end;         // of each position's op, in seconds
  table<storage_id, live_range> live;        // of each storage; resident ones: the whole schedule
  table<storage_id, storage_id> takes_over;  // the storage whose buffer this one is put into, or nothing

  operator plan_cost() const { return {peak_bytes, latency}; }
};

}}  // namespace neap::v0
