// A user's limits: bounds of memory and latency, in absolute numbers or as ratios of the unplanned step, and a time
// budget for the search.
#pragma once

#include <neap/core/units.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace neap::inline v0 {

/// At most so many bytes at the peak, or so many times the original peak. Less than nothing, or not a number: nothing. A
/// ratio is meant as it is written: 0.57 of 100 is 57, though the double next to it is smaller.
struct memory_limit {
  bytes_t bytes = -1;  // negative: not given in bytes
  double ratio = -1;   // negative: not given as a ratio

  constexpr memory_limit() = default;
  constexpr explicit memory_limit(bytes_t b) : bytes(b > 0 ? b : 0) {}
  template <class T>
    requires std::is_floating_point_v<T>
  constexpr explicit memory_limit(T) {
    static_assert(
        !std::is_floating_point_v<T>,
        "neap: a memory limit is a whole number of bytes, as memory_limit{2_GiB}; a part of what the step needs "
        "without a plan is memory_limit::of_original(0.4)");
  }
  static constexpr memory_limit of_original(double r) {
    memory_limit l;
    l.ratio = r > 0 ? r : 0;
    return l;
  }
  constexpr bytes_t resolve(bytes_t original) const {
    if (bytes >= 0) return bytes;
    if (ratio == 1) return original;  // also beyond 2^53, where not every number is a double
    double const most = ratio * static_cast<double>(original) * (1 + 2 * std::numeric_limits<double>::epsilon());
    return ratio >= 0 && most < 9e18 ? static_cast<bytes_t>(most) : INT64_MAX;
  }
};

/// At most so many seconds a step, or so many times the original latency. Less than nothing, or not a number: nothing.
struct latency_limit {
  seconds_t seconds = -1;
  double ratio = -1;

  constexpr latency_limit() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr explicit latency_limit(T) {
    static_assert(!std::is_arithmetic_v<T>,
                  "neap: a latency limit is latency_limit::in_seconds(0.25), or so many times what the step takes "
                  "without a plan, latency_limit::of_original(1.1)");
  }
  static constexpr latency_limit in_seconds(seconds_t s) {
    latency_limit l;
    l.seconds = s > 0 ? s : 0;
    return l;
  }
  static constexpr latency_limit of_original(double r) {
    latency_limit l;
    l.ratio = r > 0 ? r : 0;
    return l;
  }
  constexpr seconds_t resolve(seconds_t original) const {
    if (seconds >= 0) return seconds;
    return ratio >= 0 ? ratio * original : 1e300;
  }
};

/// How long a search may take, by the wall clock.
struct time_budget {
  std::chrono::duration<double> limit{10};
  constexpr time_budget() = default;
  template <class Rep, class Period>
  constexpr explicit time_budget(std::chrono::duration<Rep, Period> d) : limit(d) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr explicit time_budget(Number) {
    static_assert(!std::is_arithmetic_v<Number>,
                  "neap: a time budget has a unit: time_budget(std::chrono::seconds(2)), or time_budget{2s} with "
                  "using namespace std::chrono_literals");
  }
};

}  // namespace neap::inline v0
