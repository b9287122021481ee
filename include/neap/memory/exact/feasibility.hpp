// The question that the exact searches answer, and when they end without an answer.
#pragma once

#include <neap/memory/exact/policy.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace neap { inline namespace v0 { namespace detail {

/// Whether all records fit below a capacity. `unknown`: the search ended early.
enum class feasibility : std::uint8_t { yes, no, unknown };

/// When a search ends early: after so many nodes, at a time, or once another thread has raised a flag. Conditions nest:
/// an outer one holds inside, too, but for its nodes. Cheap to copy; outer conditions and flags must outlive it.
class stop_condition {
 public:
  stop_condition() = default;  ///< never
  static stop_condition after_seconds(double seconds) {
    stop_condition s;
    s.timed_ = seconds < std::numeric_limits<double>::infinity();
    if (s.timed_) s.end_ = clock::now() + std::chrono::duration<double>(std::min(seconds, 1e8));
    return s;
  }
  static stop_condition after_nodes(std::int64_t nodes, stop_condition const* outer = nullptr,
                                    std::atomic<bool> const* raised = nullptr) {
    stop_condition s;
    s.max_nodes_ = nodes, s.outer_ = outer, s.raised_ = raised;
    return s;
  }

  /// The time is over, or a flag is raised.
  bool passed() const {
    return (raised_ != nullptr && raised_->load(std::memory_order_relaxed)) || (timed_ && clock::now() >= end_) ||
           (outer_ != nullptr && outer_->passed());
  }
  /// For searches, at each node; `nodes` is their count so far.
  bool operator()(std::int64_t nodes) const {
    return nodes >= max_nodes_ || (nodes % exact_policy::nodes_between_stops == 0 && passed());
  }

 private:
  using clock = std::chrono::steady_clock;
  std::int64_t max_nodes_ = std::numeric_limits<std::int64_t>::max();
  bool timed_ = false;
  std::chrono::time_point<clock, std::chrono::duration<double>> end_{};
  std::atomic<bool> const* raised_ = nullptr;
  stop_condition const* outer_ = nullptr;
};

/// A search for a packing below a capacity, in units, which can be resumed.
class placement_search {
 public:
  virtual ~placement_search() = default;
  /// Begins anew.
  virtual void start(std::int64_t capacity) = 0;
  /// Continues where it stopped, until an answer or `stop`, which is tested after each step.
  virtual feasibility run(stop_condition const& stop) = 0;
  /// Of a record, after `yes`.
  virtual std::int64_t offset(std::size_t record) const = 0;
  /// Since the start.
  std::int64_t nodes() const { return nodes_; }

 protected:
  std::int64_t nodes_ = 0;
};

}}}  // namespace neap::v0::detail
