// What a launch of an interpreted kernel reports: faults, with the line of the PTX text and the thread, and counts.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace neap::testing::ptx {

/// The text is not PTX, or has what the interpreter lacks: "line 12: unknown opcode 'tcgen05.mma'".
struct error : std::runtime_error {
  error(int line, std::string const& what) : std::runtime_error("line " + std::to_string(line) + ": " + what) {}
  explicit error(std::string const& what) : std::runtime_error(what) {}
};

struct dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

enum class fault_kind {
  race,           // two accesses to a byte, one of them a write, that nothing orders
  barrier,        // a barrier that not all threads reach, or reach at different instructions
  deadlock,       // threads that wait for ever, or spin for ever
  bounds,         // an address in no buffer
  alignment,      // an address that is no multiple of the access's size
  uninitialised,  // a read of a byte that was never written
  in_flight,      // an access to bytes that an unfinished cp.async copies
  warp,           // a warp-wide instruction without the lanes that it names
  assertion,      // assert() or trap
};

inline char const* name_of(fault_kind k) {
  switch (k) {
    case fault_kind::race: return "race";
    case fault_kind::barrier: return "barrier";
    case fault_kind::deadlock: return "deadlock";
    case fault_kind::bounds: return "bounds";
    case fault_kind::alignment: return "alignment";
    case fault_kind::uninitialised: return "uninitialised";
    case fault_kind::in_flight: return "in flight";
    case fault_kind::warp: return "warp";
    case fault_kind::assertion: return "assertion";
  }
  return "?";
}

/// The first fault of its kind at an instruction.
struct fault {
  fault_kind kind{};
  int line = 0;  // of the PTX text, from 1
  dim3 block{}, thread{};
  std::string message;      // complete: kind, line, thread, what
  std::uint64_t times = 1;  // how often the same kind occurred at this instruction
};

struct counts {
  std::uint64_t instructions = 0;       // one a thread
  std::uint64_t warp_instructions = 0;  // one a group of lanes that executes together
  std::uint64_t block_barriers = 0;     // completed ones
  std::uint64_t global_requests = 0;    // loads and stores of global memory, one a group of lanes
  std::uint64_t global_sectors = 0;     // sectors of 32 bytes that those touch
  std::uint64_t global_bytes = 0;       // bytes that the lanes move
  std::uint64_t shared_requests = 0;    // loads and stores of shared memory, one a group of lanes
  std::uint64_t shared_wavefronts = 0;  // passes they take; a request without bank conflicts takes the least
  std::uint64_t bank_conflicts = 0;     // passes beyond the least
  std::uint64_t atomics = 0;            // one a thread
  std::uint64_t same_value_writes = 0;  // unordered writes of the value that was there: no fault
  double sectors_per_request() const {
    return global_requests ? static_cast<double>(global_sectors) / static_cast<double>(global_requests) : 0;
  }
};

struct report {
  std::vector<fault> faults;
  struct counts counts;

  bool clean() const { return faults.empty(); }
  bool has(fault_kind k) const {
    for (auto const& f : faults)
      if (f.kind == k) return true;
    return false;
  }
  /// All messages, a line each; empty if there is no fault.
  std::string text() const {
    std::string out;
    for (auto const& f : faults) {
      out += f.message;
      if (f.times > 1) out += " (" + std::to_string(f.times) + " times)";
      out += '\n';
    }
    return out;
  }
};

}  // namespace neap::testing::ptx
