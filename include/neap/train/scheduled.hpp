// Numbers that change from step to step: learning rates, decays. A number of an optimizer is a `scheduled`, which a plain
// number, one of the usual schedules, or any function of the step is:
//
//   adamw{.rate = 3e-4}
//   adamw{.rate = scheduled::cosine(3e-4, 3e-5, 10'000).warm_up(500)}
//   sgd{.rate = [](std::int64_t step) { return 0.1 / std::sqrt(double(step)); }}
//
// Steps count from 1. Planned programs read the numbers as inputs: a schedule needs no new plan.
#pragma once

#include <neap/core/error.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

class scheduled {
 public:
  /// The same in every step.
  constexpr scheduled(double x = 0) : first_(x), last_(x) {}
  /// What f(step) gives. A copy shares f.
  template <class F>
    requires(std::is_invocable_r_v<double, F const&, std::int64_t> && !std::is_arithmetic_v<F>)
  scheduled(F f) : user_(std::make_shared<function<F>>(std::move(f))) {}

  /// From `first` to `last` along half a cosine (Loshchilov and Hutter 2017), reached in step `steps`; `last` from then on.
  /// Of this and the following: throws neap::error for fewer steps than 0, and for numbers that are NaN or infinite.
  static scheduled cosine(double first, double last, std::int64_t steps,
                          std::source_location at = std::source_location::current());
  /// From `first` to `last` in a straight line, reached in step `steps`.
  static scheduled linear(double first, double last, std::int64_t steps,
                          std::source_location at = std::source_location::current());
  /// From `first` to `last` as (1 - t)^power: last + (first - last) (1 - step / steps)^power.
  static scheduled polynomial(double first, double last, std::int64_t steps, double power,
                              std::source_location at = std::source_location::current());
  /// `first`, multiplied by `factor` after each `every` steps.
  static scheduled staircase(double first, double factor, std::int64_t every,
                             std::source_location at = std::source_location::current());

  /// The same after a start of `steps` steps that rises in a straight line: step k of them has k / steps of what the
  /// schedule gives. (The schedule itself counts from the first step on.) Throws neap::error for fewer steps than 0, and for more
  /// than a cosine, line or polynomial has.
  scheduled warm_up(std::int64_t steps, std::source_location at = std::source_location::current()) const;

  /// The number of step `step`, which is at least 1.
  double at(std::int64_t step) const;

 private:
  enum class form : std::uint8_t { constant, cosine, polynomial, staircase };
  struct any_function {
    virtual ~any_function() = default;
    virtual double call(std::int64_t step) const = 0;
  };
  template <class F>
  struct function final : any_function {
    explicit function(F x) : f(std::move(x)) {}
    double call(std::int64_t step) const override { return static_cast<double>(f(step)); }
    F f;
  };

  scheduled(form how, double first, double last, std::int64_t steps, double power, std::source_location const& at);

  double plain(std::int64_t step) const;

  form form_ = form::constant;
  double first_ = 0, last_ = 0, power_ = 1;
  std::int64_t steps_ = 0, warm_up_ = 0;
  std::shared_ptr<any_function const> user_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/scheduled.ipp>
#endif
