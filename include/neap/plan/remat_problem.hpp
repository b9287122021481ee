// The vocabulary of recomputation inside a block: ops in a fixed order with times, values with bytes, limits; the answer
// is a sequence of computations and drops. Data only; the solvers live in neap/solve.
//
// The order is that of the first computations. Phase t is what happens after op t - 1 has run for the first time, up to
// the first run of op t: it may compute earlier ops again, each at most once and in ascending order (Checkmate's model).
//
//   phase   0    1    2    3        4
//   runs    op0  op1  op2  op3      op1 op4        op4 reads a value of op1 that had to go while op3 ran
//
// Memory: while an op runs, its inputs, its outputs, its workspace and whatever else is alive are there together; what
// is not needed later is dropped when the op has ended. An op that runs again leaves alone what it makes and is alive.
#pragma once

#include <neap/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// One op of a block.
struct remat_op {
  double time = 0;                       ///< of one run, in any unit; not negative
  std::int64_t workspace_bytes = 0;      ///< needed while it runs, besides inputs and outputs
  std::vector<std::uint32_t> inputs{};   ///< values that it reads, each once
  std::vector<std::uint32_t> outputs{};  ///< values that it makes, each once
  bool again = true;                     ///< it may run more than once
  friend bool operator==(remat_op const&, remat_op const&) = default;
};

/// One value of a block. A value that no op makes is an input: alive from the start, and gone for good once dropped.
struct remat_value {
  std::int64_t bytes = 0;
  bool kept = false;     ///< alive at the end; an input that is kept is alive throughout
  bool outside = false;  ///< counts as workspace of the pause of the one that runs the block, not as saved
  friend bool operator==(remat_value const&, remat_value const&) = default;
};

/// A block. Ops stand in the order in which they run for the first time.
struct remat_problem {
  std::vector<remat_op> ops;
  std::vector<remat_value> values;
  std::int64_t pause_after = -1;  ///< the op (the loss) after whose first run the block pauses; -1: no pause

  friend bool operator==(remat_problem const&, remat_problem const&) = default;
};

/// What may be alive at once, and what may be alive in the pause (between forward and backward).
struct remat_limits {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t peak_bytes = none;
  std::int64_t saved_bytes = none;
  friend bool operator==(remat_limits const&, remat_limits const&) = default;
};

/// Compute op `index`, or drop value `index`.
struct remat_step {
  enum class action : std::uint8_t { compute, drop };
  action what = action::compute;
  std::uint32_t index = 0;
  friend bool operator==(remat_step const&, remat_step const&) = default;
};

enum class remat_status : std::uint8_t {
  optimal,       ///< within the limits, and no sequence of phases takes less time
  feasible,      ///< within the limits; whether a quicker one exists is not known
  infeasible,    ///< proved: nothing keeps the limits; or the problem is faulty, and `why` says how
  budget_spent,  ///< nothing was found within the solver's budget, nor proved that there is nothing
};

/// True where there are steps to run.
constexpr bool has_steps(remat_status s) { return s == remat_status::optimal || s == remat_status::feasible; }

constexpr char const* name_of(remat_status s) {
  switch (s) {
    case remat_status::optimal: return "optimal";
    case remat_status::feasible: return "feasible";
    case remat_status::infeasible: return "infeasible";
    case remat_status::budget_spent: break;
  }
  return "budget spent";
}

/// What to run, what it costs, and what is known of anything better.
struct remat_answer {
  std::vector<remat_step> steps{};  ///< empty unless has_steps(status)
  double time = 0;                  ///< of all computations
  std::int64_t peak_bytes = 0;      ///< while any op runs
  std::int64_t saved_bytes = 0;     ///< alive in the pause, without values that are paid for outside
  remat_status status = remat_status::budget_spent;
  double lower_bound = 0;  ///< proved: within these limits no sequence of phases takes less time
  std::int64_t work = 0;   ///< nodes, evaluations or iterations of search
  std::string why{};       ///< of a faulty problem: what is wrong, and where
};

constexpr bool has_steps(remat_answer const& a) { return has_steps(a.status); }

/// One run of everything: no answer takes less time.
inline double time_once(remat_problem const& p) {
  double sum = 0;
  for (auto const& op : p.ops) sum += op.time;
  return sum;
}

/// The op that makes each value, or `no_producer`. Requires a problem that check() passes.
inline constexpr std::uint32_t no_producer = 0xffffffffu;
inline std::vector<std::uint32_t> producers(remat_problem const& p) {
  std::vector<std::uint32_t> out(p.values.size(), no_producer);
  for (std::size_t i = 0; i < p.ops.size(); ++i)
    for (auto v : p.ops[i].outputs) out[v] = static_cast<std::uint32_t>(i);
  return out;
}

/// Whether a problem can be solved at all: indices in range, every value made at most once and before it is read, no
/// negative or endless sizes and times. The message names the op or the value.
inline status check(remat_problem const& p) {
  auto const op_fault = [](std::size_t i, char const* what) {
    return failure{"op " + std::to_string(i) + ": " + what};
  };
  auto const value_fault = [](std::size_t v, char const* what) {
    return failure{"value " + std::to_string(v) + ": " + what};
  };
  std::int64_t room = std::numeric_limits<std::int64_t>::max();
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    if (p.values[v].bytes < 0) return value_fault(v, "its bytes are negative");
    if (p.values[v].bytes > room) return value_fault(v, "bytes of all values do not fit into 63 bits");
    room -= p.values[v].bytes;
  }
  std::vector<std::uint32_t> made(p.values.size(), no_producer), read(p.values.size(), no_producer);
  double time = 0;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    auto const& op = p.ops[i];
    auto const me = static_cast<std::uint32_t>(i);
    if (!(op.time >= 0)) return op_fault(i, "its time is negative or not a number");
    time += op.time;
    if (!(time < std::numeric_limits<double>::infinity())) return op_fault(i, "times add up to no finite number");
    if (op.workspace_bytes < 0) return op_fault(i, "its workspace is negative");
    if (op.workspace_bytes > room) return op_fault(i, "its workspace and all values do not fit into 63 bits");
    for (auto v : op.outputs) {
      if (v >= p.values.size()) return op_fault(i, "an output is no value of this block");
      if (made[v] == me) return op_fault(i, "it makes a value twice");
      if (made[v] != no_producer) return value_fault(v, "two ops make it");
      if (read[v] != no_producer) return value_fault(v, "it is read before it is made");
      made[v] = me;
    }
    for (auto v : op.inputs) {
      if (v >= p.values.size()) return op_fault(i, "an input is no value of this block");
      if (made[v] == me) return op_fault(i, "it reads what it makes");
      if (read[v] == me) return op_fault(i, "it reads a value twice");
      read[v] = me;
    }
  }
  if (p.pause_after < -1 || p.pause_after >= static_cast<std::int64_t>(p.ops.size()))
    return failure{"the pause is after an op that is not there"};
  return {};
}

}}  // namespace neap::v0
