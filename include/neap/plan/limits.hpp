// A user's limits: bounds of memory and latency, in absolute numbers or as ratios of the unplanned step, and a time
// budget for the search.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <source_location>
#include <type_traits>

namespace neap { inline namespace v0 {

namespace detail {
/// Throws neap::error with a number that is no limit.
[[noreturn]] inline void refuse_limit(char const* what, double x, char const* why, std::source_location at) {
  throw_error(at, {what, " of ", x, ": ", why});
}
constexpr double checked_limit(char const* what, double x, char const* why, std::source_location at) {
  return x >= 0 ? x : (refuse_limit(what, x, why, at), 0);
}
}  // namespace detail

/// At most so many bytes at the peak, or so many times the original peak, up to 10. A ratio is meant as it is written: 0.57
/// of 100 is 57, though the double next to it is smaller. Throws neap::error for other numbers, as the limits below do.
struct memory_limit {
  bytes_t bytes = -1;  // negative: not given in bytes
  double ratio = -1;   // negative: not given as a ratio

  constexpr memory_limit() = default;
  constexpr explicit memory_limit(bytes_t b, std::source_location at = std::source_location::current()) : bytes(b) {
    if (b < 0)
      detail::refuse_limit("a memory limit", static_cast<double>(b), "it is a number of bytes, at least 0", at);
  }
  template <class T>
    requires std::is_floating_point_v<T>
  constexpr explicit memory_limit(T) {
    static_assert(
        !std::is_floating_point_v<T>,
        "neap: a memory limit is a whole number of bytes, as memory_limit{2_GiB}; a part of what the step needs "
        "without a plan is memory_limit::of_original(0.4)");
  }
  static constexpr memory_limit of_original(double r, std::source_location at = std::source_location::current()) {
    memory_limit l;
    l.ratio = r;
    if (!(r >= 0 && r <= 10))
      detail::refuse_limit("memory_limit::of_original", r,
                           "it is a ratio of what the step needs without a plan: 0.4 for 40 %", at);
    return l;
  }
  constexpr bytes_t resolve(bytes_t original) const {
    if (bytes >= 0) return bytes;
    if (ratio == 1) return original;  // also beyond 2^53, where not every number is a double
    double const most = ratio * static_cast<double>(original) * (1 + 2 * std::numeric_limits<double>::epsilon());
    return ratio >= 0 && most < 9e18 ? static_cast<bytes_t>(most) : INT64_MAX;
  }
};

/// At most so many seconds a step, or so many times the original latency.
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
  static constexpr latency_limit in_seconds(seconds_t s, std::source_location at = std::source_location::current()) {
    latency_limit l;
    l.seconds = detail::checked_limit("latency_limit::in_seconds", s, "it is a number of seconds, at least 0", at);
    return l;
  }
  static constexpr latency_limit of_original(double r, std::source_location at = std::source_location::current()) {
    latency_limit l;
    l.ratio = detail::checked_limit("latency_limit::of_original", r, "it is a ratio, at least 0", at);
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
  constexpr explicit time_budget(std::chrono::duration<Rep, Period> d,
                                 std::source_location at = std::source_location::current())
      : limit(d) {
    (void)detail::checked_limit("a time budget", limit.count(), "it is a number of seconds, at least 0", at);
  }
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr explicit time_budget(Number) {
    static_assert(!std::is_arithmetic_v<Number>,
                  "neap: a time budget has a unit: time_budget(std::chrono::seconds(2)), or time_budget{2s} with "
                  "using namespace std::chrono_literals");
  }
};

}}  // namespace neap::v0
