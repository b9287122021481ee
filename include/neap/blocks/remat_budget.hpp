// What a search for recomputation may spend.
#pragma once

#include <neap/core/work_meter.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace neap { inline namespace v0 {

/// Values that a search over sets of values takes at most (inputs that are kept not counted).
inline constexpr std::size_t max_remat_values = 256;

/// What a search may spend. Answers depend on `seconds` only where it ends the search.
struct remat_budget {
  std::int64_t work = std::int64_t{1} << 62;  ///< nodes or evaluations, as the solver counts them
  double seconds = std::numeric_limits<double>::infinity();
};

namespace detail {

/// Counts work, and seconds since it was made, which are read seldom.
class budget_watch {
 public:
  explicit budget_watch(remat_budget const& b) : budget_(b), begin_(std::chrono::steady_clock::now()) {}
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  /// Counts one piece of work; true when the budget is spent.
  bool spend() {
    if (++work_ > budget_.work) over_ = true;
    work_meter::add(100);
    if ((work_ & 1023) == 0 && budget_.seconds < std::numeric_limits<double>::infinity() && seconds() > budget_.seconds)
      over_ = true;
    return over_;
  }
  /// Counts several pieces that were done elsewhere.
  void spent(std::int64_t pieces) {
    work_ += pieces;
    work_meter::add(100 * static_cast<std::uint64_t>(pieces));
    over_ = over_ || work_ > budget_.work || seconds() > budget_.seconds;
  }
  bool over() const { return over_; }
  std::int64_t work() const { return work_; }

 private:
  remat_budget budget_;
  std::chrono::steady_clock::time_point begin_;
  std::int64_t work_ = 0;
  bool over_ = false;
};

}  // namespace detail

}}  // namespace neap::v0
