// What a simulator says of a schedule: when each op runs, when each storage lives, how many bytes are taken.
//
// Memory semantics (the whole library's; the verifier re-states them independently):
//   - A storage is taken at the position of the op that makes it and freed after the position of the last op that reads
//     or writes any value of it. Storages behind kept values live to the end. A fresh output that nobody reads is freed
//     after its own position. Resident storages are taken throughout.
//   - Workspace is taken during its op's position alone.
//   - Takeover: where an op may (graph_traits::may_take_over) and the input's storage is not resident, not kept and dies
//     at this position, the output is put into its place: both share one buffer, counted once. An op's outputs are
//     looked at in order, each taking the first input that still can be taken; an input is taken once.
//   - A store's source is freed at the first position at or after the store's own at which a compute op starts after the
//     store has ended (and whose reads of the storage are all done); an executor waits for the store there. A store's
//     result takes no device bytes. A load takes its memory at its own position.
//   - Sizes are rounded up to the alignment, each buffer by itself.
//   - The peak is the largest sum at any position: resident + living buffers + workspace.
// Time: three streams. An op starts when its stream is free and all it must wait for (producers of its inputs,
// order_after, and for copies the last compute op issued before) have ended.
#pragma once

#include <neap/core/units.hpp>
#include <neap/plan/live_range.hpp>

#include <vector>

namespace neap::inline v0 {

struct memory_options {
  bytes_t alignment = 64;  // of every buffer, resident ones too
  bool takeover = true;    // elementwise outputs may overwrite inputs that die
  friend bool operator==(memory_options, memory_options) = default;
};

struct simulation {
  bytes_t peak_bytes = 0;          // resident included
  bytes_t resident_bytes = 0;      // taken throughout
  std::uint32_t peak_position = 0; // the first position at which the peak is reached
  seconds_t latency = 0;           // end of the last op, in seconds
  std::vector<bytes_t> bytes_at;   // at each position, resident and workspace included
  std::vector<seconds_t> start, end;            // of each position's op, in seconds
  table<storage_id, live_range> live;           // of each storage; resident ones: the whole schedule
  table<storage_id, storage_id> takes_over;     // the storage whose buffer this one is put into, or nothing
};

}  // namespace neap::inline v0
