// What can be wrong with a plan. Each kind is one promise broken; tests plant every one of them.
#pragma once

#include <neap/core/id.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

enum class violation_kind : std::uint8_t {
  // the plan as data
  malformed,         // an id or step number that is out of range, a negative or overflowing number
  other_original,    // made for another graph
  not_each_op_once,  // the steps are not the graph's ops, each once
  // what is computed
  source_changed,    // weights, inputs and the like are not those of the original
  name_changed,      // a storage that is there before the step, or an op, has another name than in the original
  unknown_op,        // an op that is neither a copy of an original one nor a transfer
  operator_changed,  // another operator, other attributes, or another random key than the original op's
  type_changed,      // an output's element type, shape, layout, aliasing or bytes
  input_changed,     // an argument that is not the original's value, too few or too many
  not_a_part,        // said to be a part of an original op, and its arguments, attributes or outputs are not
  missing_op,        // an update, or an op that may not be left out, does not run
  repeated_op,       // an update, or an op that may not run again, runs more than once
  output_changed,    // the kept values are not those of the original, in its order
  bad_transfer,      // a load of what was never stored, a transfer with other values than one in and one out
  broken_pin,  // an op or value that is pinned in the original runs again, in parts or not at all, or is swapped out
  // when it is computed
  read_before_made,         // an op runs before one that makes what it reads
  overwritten_before_read,  // an op reads a value after an update of its storage has overwritten it
  wrong_stream,             // a step is on another stream than its op belongs to
  bad_time,                 // a step does not begin when its stream and what it waits for are done
  wrong_duration,           // a step takes another time than what the plan's times come from says
  missing_wait,             // nothing makes a step wait for the transfer that it depends on
  // where it lies
  missing_buffer,  // a storage with bytes has no buffer, or two
  wrong_size,      // a buffer or workspace is not as large as its storage or its op needs
  misaligned,
  outside_arena,
  outside_storage,    // a view reaches beyond its storage, or lies in another one than its base
  taken_late,         // a buffer's life begins after the step that makes it
  freed_early,        // a buffer's life ends before the last step that touches it, or a kept or resident one's does
  freed_in_flight,    // a buffer's life ends while a transfer may still read or write it
  overlap,            // two living buffers share bytes
  workspace_overlap,  // a workspace shares bytes with a living buffer
  missing_workspace,
  bad_takeover,  // a buffer is put into the place of one that it may not overwrite
  // what is claimed
  wrong_peak,
  wrong_resident,
  wrong_arena,
  wrong_latency,
  wrong_bound,  // the lower bound is not the one that the original has
  over_budget,
};

constexpr std::string_view name_of(violation_kind k) {
  constexpr std::array<std::string_view, 39> names{"malformed",
                                                   "other-original",
                                                   "not-each-op-once",
                                                   "source-changed",
                                                   "name-changed",
                                                   "unknown-op",
                                                   "operator-changed",
                                                   "type-changed",
                                                   "input-changed",
                                                   "not-a-part",
                                                   "missing-op",
                                                   "repeated-op",
                                                   "output-changed",
                                                   "bad-transfer",
                                                   "broken-pin",
                                                   "read-before-made",
                                                   "overwritten-before-read",
                                                   "wrong-stream",
                                                   "bad-time",
                                                   "wrong-duration",
                                                   "missing-wait",
                                                   "missing-buffer",
                                                   "wrong-size",
                                                   "misaligned",
                                                   "outside-arena",
                                                   "outside-storage",
                                                   "taken-late",
                                                   "freed-early",
                                                   "freed-in-flight",
                                                   "overlap",
                                                   "workspace-overlap",
                                                   "missing-workspace",
                                                   "bad-takeover",
                                                   "wrong-peak",
                                                   "wrong-resident",
                                                   "wrong-arena",
                                                   "wrong-latency",
                                                   "wrong-bound",
                                                   "over-budget"};
  return names[static_cast<std::size_t>(k)];
}

struct violation {
  violation_kind kind;
  std::uint32_t step = no_id;  // where it shows; no_id: nowhere in particular
  op_id op = nothing<op_id>;   // of the plan's graph
  storage_id storage = nothing<storage_id>;
  std::string message;  // one line
};

/// All that is wrong with a plan; nothing if it is right.
class verification {
 public:
  explicit operator bool() const { return violations_.empty(); }
  bool ok() const { return violations_.empty(); }
  std::vector<violation> const& violations() const { return violations_; }
  bool has(violation_kind k) const {
    for (auto const& v : violations_)
      if (v.kind == k) return true;
    return false;
  }
  void add(violation v) { violations_.push_back(std::move(v)); }
  /// The first violation as one line, and how many more there are; empty if there is none.
  std::string message() const {
    if (ok()) return {};
    auto const& v = violations_.front();
    std::string line = std::string(name_of(v.kind)) + ": " + v.message;
    if (violations_.size() > 1) line += " (and " + std::to_string(violations_.size() - 1) + " more)";
    return line;
  }

 private:
  std::vector<violation> violations_;
};

}}  // namespace neap::v0
