// Work as a number that does not depend on the machine or its load: what a thread has done, in about nanoseconds of a
// 3 GHz core. Algorithms count what they do in large pieces (a graph built, an order simulated, a cut found); searches share
// out budgets by it, so that the same search takes the same way everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

/// The work of a thread, which only grows.
class work_meter {
 public:
  static std::uint64_t now() { return done_; }
  static void add(std::uint64_t nanoseconds) { done_ += nanoseconds; }
  /// Takes back what was counted since: work of another thread's account.
  static void reset_to(std::uint64_t earlier) { done_ = earlier; }

 private:
  inline static thread_local std::uint64_t done_ = 0;
};

}}  // namespace neap::v0
