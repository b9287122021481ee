// What a search may use. It goes in epochs, each with so much work (core/work_meter.hpp), of which its stages have shares;
// seconds, iterations and a stop request end it wherever it is. So the candidates of a search do not depend on its limits:
// a longer search goes on where a shorter one ends.
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/optimize/search_options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// Shares are parts of an epoch's work. A sub-search (stages/smallest_peak.hpp) has a part of it for
/// itself, whenever it begins: its result does not depend on what ran before.
class search_budget {
 public:
  explicit search_budget(search_options const& options)
      : options_(options),
        iterations_(std::max<std::size_t>(options.iterations, 1)),  // the program as it came is evaluated in any case
        begin_(clock::now()) {}

  double elapsed() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }

  /// What is done with the answer takes so many seconds for each of its ops: they are kept back.
  void keep_back(double seconds_an_op) { kept_back_ = seconds_an_op; }

  /// Whether a limit of the user's ends the search, if the answer is to have so many ops. Any thread may call it.
  bool is_over(std::size_t judged, std::size_t ops) const {
    return judged >= iterations_ || is_stopped() || !has_time_for(ops);
  }
  /// Whether an answer of so many ops could still be dealt with.
  bool has_time_for(std::size_t ops) const {
    if (seconds_left(ops) > 0) return true;
    cut_.store(true, std::memory_order_relaxed);
    return false;
  }
  /// Whether a stop or the clock has changed what the search does.
  bool is_cut() const { return cut_.load(std::memory_order_relaxed); }
  double seconds_left(std::size_t ops) const {
    return options_.time.limit.count() - kept_back_ * static_cast<double>(ops) - elapsed();
  }
  /// Candidates that may still be evaluated, at most `most`.
  std::size_t left(std::size_t judged, std::size_t most) const { return std::min(most, iterations_ - judged); }

  /// An epoch of so much work, in seconds of the meter, begins.
  void begin_epoch(double work) {
    epoch_ = work, epoch_begin_ = work_meter::now();
    ran_out_ = false;
    end_sub_budget();
  }
  /// Whether a share of the epoch was used up, so that a longer one would do more. A share of 0 always is, in longer epochs
  /// too: where all else is done with next to nothing of the epoch, there is no more to do.
  bool ran_out() const { return ran_out_ && static_cast<double>(spent()) > least_share * 1e9 * epoch_; }
  double epoch() const { return epoch_; }

  /// Whether a part of the epoch is used up.
  bool is_used_up(double part) {
    bool const yes = nanoseconds_left(part) <= 0;
    ran_out_ = ran_out_ || yes;
    return yes;
  }
  /// Work that is left of a part, in seconds of the meter; whole nanoseconds, which do not depend on how sums are rounded.
  double work_left(double part) const { return 1e-9 * static_cast<double>(nanoseconds_left(part)); }
  /// The part that is used.
  double used() const { return (1e-9 * static_cast<double>(spent() + skipped_) / epoch_ - from_) / (to_ - from_); }

  /// Whether parts are of a sub-budget now. The reserved one is what follows the seeds' share.
  bool has_sub_budget() const { return has_sub_budget_; }
  void begin_reserved_budget() {
    has_sub_budget_ = true;
    from_ = options_.policy.epochs.before_smallest_peak, to_ = 1;
    skipped_ = std::max<std::int64_t>(in_nanoseconds(from_) - spent(), 0);
  }
  /// A part of what is left, from now on.
  void begin_sub_budget(double part) {
    auto const now = used();
    has_sub_budget_ = true;
    from_ = now, to_ = now + part * (1 - now);
  }
  void end_sub_budget() { has_sub_budget_ = false, skipped_ = 0, from_ = 0, to_ = 1; }

 private:
  bool is_stopped() const {
    if (!options_.stop.stop_requested()) return false;
    cut_.store(true, std::memory_order_relaxed);
    return true;
  }
  using clock = std::chrono::steady_clock;
  static constexpr double least_share = 1e-6;  // of an epoch: what is smaller counts as 0

  std::int64_t spent() const { return static_cast<std::int64_t>(work_meter::now() - epoch_begin_); }
  std::int64_t in_nanoseconds(double part_of_epoch) const { return std::llround(1e9 * epoch_ * part_of_epoch); }
  std::int64_t nanoseconds_left(double part) const {
    return in_nanoseconds(from_ + (to_ - from_) * part) - skipped_ - spent();
  }

  mutable std::atomic<bool> cut_ = false;
  search_options const& options_;
  std::size_t iterations_;
  clock::time_point begin_;
  double kept_back_ = 0;
  double epoch_ = 1;
  std::uint64_t epoch_begin_ = work_meter::now();
  bool ran_out_ = false, has_sub_budget_ = false;
  double from_ = 0, to_ = 1;  // of the epoch, what parts are of
  std::int64_t skipped_ = 0;  // nanoseconds of a reserved budget that begins earlier
};

}}}  // namespace neap::v0::detail
