// What a search may use: candidates judged, seconds, and the user's patience.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/optimize/search_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace neap::inline v0::detail {

/// Parts of a search may use the budget up to a part of the whole. A hunt (best_first.hpp) has its own part of it, whenever
/// it begins, so that what it finds does not depend on what was tried before.
class search_budget {
 public:
  explicit search_budget(search_options const& options)
      : options_(options),
        iterations_(static_cast<double>(std::max<std::size_t>(options.iterations, 1))),
        begin_(clock::now()) {}

  double elapsed() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }

  /// What is done with the answer takes so many seconds for each of its ops: they are kept back.
  void keep_back(double seconds_an_op) { kept_back_ = seconds_an_op; }
  double kept_back(std::size_t ops) const { return kept_back_ * static_cast<double>(ops); }

  /// Whether a part of the budget is used up, if the answer is to have so many ops.
  NEAP_ONCE bool is_used_up(double part, std::size_t judged, std::size_t ops) const {
    return has_judged_all(part, judged) || options_.stop.stop_requested() ||
           !(elapsed() + kept_back(ops) + skipped_seconds_ < share(part) * options_.time.limit.count());
  }
  /// Candidates that may still be judged within a part; at most `most`. O(log most).
  std::size_t left(double part, std::size_t judged, std::size_t most) const {
    if (!has_judged_all(part, judged + most)) return most;
    std::size_t few = 0;  // by the same rounded sums as is_used_up(): the first number that uses it up
    for (auto many = most; few < many;) {
      auto const middle = few + (many - few) / 2;
      if (has_judged_all(part, judged + middle)) many = middle;
      else few = middle + 1;
    }
    return few;
  }
  /// Seconds that are left of a part.
  double seconds_left(double part, std::size_t ops) const {
    return share(part) * options_.time.limit.count() - kept_back(ops) - elapsed();
  }
  /// Whether an answer of so many ops could still be dealt with.
  bool has_time_for(std::size_t ops) const { return elapsed() + kept_back(ops) < options_.time.limit.count(); }
  /// The part that is used, of candidates or of seconds, whichever is larger.
  double used(std::size_t judged) const {
    auto const whole = std::max((static_cast<double>(judged) + skipped_candidates_) / iterations_,
                                (elapsed() + skipped_seconds_) / options_.time.limit.count());
    return (whole - from_) / (to_ - from_);
  }

  bool is_hunting() const { return hunting_; }
  void begin_hunt(std::size_t judged) {
    hunting_ = true;
    share_out(before_hunt, 1);
    skipped_candidates_ = std::max(before_hunt * iterations_ - static_cast<double>(judged), 0.0);
    skipped_seconds_ = std::max(before_hunt * options_.time.limit.count() - elapsed(), 0.0);
  }
  /// A hunt with a part of what is left, from now on.
  void begin_short_hunt(std::size_t judged, double part) {
    auto const now = used(judged);
    hunting_ = true;
    share_out(now, now + part * (1 - now));
  }
  void end_hunt() {
    hunting_ = false, skipped_candidates_ = skipped_seconds_ = 0;
    share_out(0, 1);
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr double before_hunt = 0.35;  // at most: what seeds may use

  /// Compiled in one place, so that all who ask round alike, whatever their files are compiled for.
  NEAP_ONCE bool has_judged_all(double part, std::size_t judged) const {
    return static_cast<double>(judged) + skipped_candidates_ >= share(part) * iterations_;
  }
  double share(double part) const { return from_ + (to_ - from_) * part; }
  /// Parts are of what lies between these parts of the whole from now on.
  void share_out(double from, double to) { from_ = from, to_ = to; }

  search_options const& options_;
  double iterations_;  // the program as it came is judged in any case
  clock::time_point begin_;
  double kept_back_ = 0;
  bool hunting_ = false;
  double from_ = 0, to_ = 1;                             // of the whole, what parts are of
  double skipped_candidates_ = 0, skipped_seconds_ = 0;  // of a hunt that begins earlier
};

}  // namespace neap::inline v0::detail
