// Planned paths of a compiled function: the stages of captured paths (captured_path.hpp) with their graphs placed in
// the arena that all of them share. Paths that begin alike share stages: what may follow a stage is a tree.
//
// A path of one stage without host work is its fast case: it has no look-up but the first.
#pragma once

#include <neap/capture/captured_path.hpp>
#include <neap/core/digest.hpp>
#include <neap/execute/bound_graph.hpp>
#include <neap/execute/graph_device.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Where the paths of a compiled function run, one at a time.
struct path_arena {
  std::source_location at;               // of the compiled function
  std::unique_ptr<graph_device> device;  // null: graphs run on the host
  std::vector<seconds_t>* step_seconds;  // null, or where graphs write the times of their steps
  shared_arena memory{};                 // of graphs on the host
  mutable std::mutex running{};          // held while graphs run, and while the arena or the stages of a path change
  bool is_in_host_code = false;  // a path calls a function of the host, without `running`; the arena is still its
};

/// A stage and those that may follow it.
struct planned_stage {
  static constexpr std::uint32_t made_before = number_map::none;

  captured_stage captured;                  // without its graph
  std::unique_ptr<bound_graph> run;         // null: no operators, or on a device
  std::unique_ptr<device_graph> on_device;  // in place of that
  std::vector<value_id> sources, kept;      // of `captured`, in the plan's terms
  std::vector<digest> ops;                  // for comparison
  byte_block scalars;
  bool throws_late = false;  // an operator may throw when another has written memory of arguments
  bytes_t kept_bytes = 0;    // for later stages
  guard_trie guards;         // of the next stage
  std::vector<std::unique_ptr<planned_stage>> next;
  std::optional<captured_end> end;  // the path ends here
  std::vector<std::uint32_t> made;  // of each storage that the end makes, its place in `kept`, or made_before
  std::shared_ptr<void> result;     // its form, without tensors

  bool has_graph() const { return run || on_device; }
  /// Bytes that this stage and those after it need of the arena, where `before` bytes are kept at its end; on a device,
  /// of the memory for what is kept.
  std::size_t needed(bytes_t before = 0) const {
    bytes_t const own = run ? (*run)->arena_bytes() : 0;
    auto most = static_cast<std::size_t>(std::max(align_up(own, 64), end ? 0 : kept_bytes) + before);
    for (auto const& n : next) most = std::max(most, n->needed(before + kept_bytes));
    return most;
  }
};

/// All planned paths that have one first stage.
struct planned_path {
  planned_stage first;
  std::string refused;                          // why it has no plan: such calls run eagerly; empty: it has one
  bool is_simple = true;                        // one stage, without host work
  std::size_t arena_bytes = 0;                  // needed() of the first stage
  std::shared_ptr<expression_tape const> tape;  // unless it is simple
  std::size_t count = 0;                        // of paths that have an end
  std::atomic<std::uint64_t> last_used = 0;
};

}}}  // namespace neap::v0::detail
