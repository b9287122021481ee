// The notes of a memory picture beside its curve: which tensors make the peak, what is recomputed, moved out and brought
// back and when, when computations wait for that, and which part of the step runs when.
#pragma once

#include <neap/plan/simulation.hpp>
#include <neap/report/labels.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// What is there at the peak. A buffer that an output takes over is the output's.
struct peak_part {
  enum class kind : std::uint8_t { tensor, workspace, resident };
  kind what = kind::tensor;
  std::string name;   // of the tensor; "12 weights" for residents, which are counted together by role
  std::string about;  // the operator that makes it, and its type: "aten.relu.default f32[256,1024]"
  bytes_t bytes = 0;  // rounded up, as the simulator counts
};

/// An op that is there to save memory; or the time for which no computation runs because one waits for a transfer to end.
struct memory_event {
  enum class kind : std::uint8_t { recomputed, stored, loaded, waited };
  kind what = kind::recomputed;
  std::string name;            // of the op computed again, or of the tensor moved or waited for
  std::string about;           // its operator or type
  bytes_t bytes = 0;           // made, moved or waited for
  std::uint32_t position = 0;  // in the schedule; of a wait, that of the computation that waits
  seconds_t start = 0, end = 0;
};
inline constexpr std::size_t memory_event_kinds = 4;

struct memory_notes {
  std::uint32_t peak_position = 0;
  std::string peak_op;               // what runs at the peak
  std::vector<peak_part> peak;       // residents, then the rest, the largest first; all bytes together are the peak
  std::vector<memory_event> events;  // in the order of the schedule
  std::vector<step_part> parts;      // of each position; empty where there is one part only
};

/// The notes on a schedule of `g` and what a simulator says of it under `options`. O(n log n).
memory_notes notes_on(op_graph const& g, schedule const& order, simulation const& s, memory_options options = {});

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/report/impl/memory_notes.ipp>
#endif
