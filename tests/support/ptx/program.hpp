// A linked kernel: instructions decoded once, and the rows of registers they name. A row holds one value a lane.
#pragma once

#include "report.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace neap::testing::ptx {

using lanes = std::uint32_t;  // a bit a lane
inline constexpr int warp_size = 32;

enum class space : std::uint8_t { generic, global, shared, local, param, constant };

/// What an instruction does beside computing: most compute only.
enum class flow : std::uint8_t {
  compute,  // runs for the lanes that are there
  warp,     // waits for the lanes of its mask
  branch,   // to `target`
  table,    // to targets[operand 0]
  call,     // to `target`, back to the next one
  ret,      // from a function; of the kernel: exit
  exit,     // of the thread
  barrier,  // of the block
};

struct warp;
struct instruction;
using executor = void (*)(warp&, instruction const&, lanes);

struct instruction {
  executor run = nullptr;
  flow kind = flow::compute;
  bool guard_not = false;
  std::uint8_t operand_count = 0;
  std::uint8_t width = 0;   // bytes of one element
  std::uint8_t vector = 1;  // elements of a load or store
  std::uint8_t flags = 0;   // see flag
  std::uint8_t mode = 0;    // meaning differs by opcode
  space where = space::generic;
  int guard = -1;   // row of the predicate, or -1
  int target = -1;  // of a branch or a call: first a label's number, after linking an instruction
  int line = 0;
  std::int64_t immediate = 0;                // of an address: bytes
  std::array<std::uint32_t, 16> operands{};  // rows
};

enum flag : std::uint8_t {
  flag_ftz = 1,
  flag_sat = 2,
  flag_strong = 4,  // volatile, relaxed, acquire, release, atomic
  flag_acquire = 8,
  flag_release = 16,
  flag_no_result = 32,
  flag_aligned = 64,
  flag_signed = 128,
};

struct copy_of_parameter {
  std::uint32_t from, to, bytes;  // in the parameter space of a thread
};
struct call_site {
  std::vector<copy_of_parameter> in, out;
};

/// A variable in shared, local or parameter space: bytes [offset, offset + bytes).
struct variable {
  std::string name;
  std::uint32_t offset = 0, bytes = 0, align = 1;
};

struct kernel_code {
  std::string name;
  std::vector<instruction> code;
  int entry = 0;
  std::vector<std::vector<int>> tables;
  std::vector<call_site> calls;                     // by instruction.immediate of a call
  std::vector<std::uint64_t> row_values;            // what a row holds at the start, in each lane
  std::map<std::string, std::uint32_t> specials;    // "%tid.x" -> row
  std::vector<variable> shared, local, parameters;  // parameters: of the kernel, in order
  std::vector<std::uint32_t> rows_of_dynamic_shared;
  std::uint32_t shared_end = 0, local_end = 0, param_end = 0;
  std::uint32_t dynamic_align = 16;
  std::uint32_t carry_row = 0;
  std::vector<std::string> globals;  // module variables that it names
  std::vector<std::pair<std::uint32_t, std::pair<std::string, std::int64_t>>> rows_of_globals;
  std::uint32_t rows() const { return static_cast<std::uint32_t>(row_values.size()); }
};

}  // namespace neap::testing::ptx
