// The bodies of <neap/train/scheduled.hpp>.
#pragma once

#include <neap/train/scheduled.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC scheduled scheduled::cosine(double first, double last, std::int64_t steps, std::source_location at) {
  return scheduled(form::cosine, first, last, steps, 1, at);
}

NEAP_FUNC scheduled scheduled::linear(double first, double last, std::int64_t steps, std::source_location at) {
  return scheduled(form::polynomial, first, last, steps, 1, at);
}

NEAP_FUNC scheduled scheduled::polynomial(double first, double last, std::int64_t steps, double power,
                                          std::source_location at) {
  return scheduled(form::polynomial, first, last, steps, power, at);
}

NEAP_FUNC scheduled scheduled::staircase(double first, double factor, std::int64_t every, std::source_location at) {
  return scheduled(form::staircase, first, 0, every, factor, at);
}

NEAP_FUNC scheduled scheduled::warm_up(std::int64_t steps, std::source_location at) const {
  if (steps < 0) throw_error(at, {"scheduled::warm_up: ", steps, " steps"});
  if ((form_ == form::cosine || form_ == form::polynomial) && steps > steps_)
    throw_error(at, {"scheduled::warm_up: ", steps, " steps, and the schedule has ", steps_});
  scheduled s = *this;
  s.warm_up_ = steps;
  return s;
}

NEAP_FUNC double scheduled::at(std::int64_t step) const {
  double const x = plain(step);
  return step < warm_up_ ? x * static_cast<double>(step) / static_cast<double>(warm_up_) : x;
}

NEAP_FUNC scheduled::scheduled(form how, double first, double last, std::int64_t steps, double power,
                               std::source_location const& at)
    : form_(how),
      first_(first),
      last_(last),
      power_(power),
      steps_(steps) {
  if (steps < 0) throw_error(at, {"scheduled: ", steps, " steps"});
  for (double const x : {first, last, power})
    if (!std::isfinite(x)) throw_error(at, {"scheduled: ", x, " is no number for a schedule"});
}

NEAP_FUNC double scheduled::plain(std::int64_t step) const {
  if (user_) return user_->call(step);
  if (form_ == form::constant) return first_;
  if (form_ == form::staircase) {
    auto const stair = steps_ < 1 ? 0 : (step - 1) / steps_;
    return first_ * std::pow(power_, static_cast<double>(stair));
  }
  if (step >= steps_) return last_;
  double const t = static_cast<double>(step) / static_cast<double>(steps_);
  double const left =
      form_ == form::cosine ? 0.5 * (1 + std::cos(3.14159265358979323846 * t)) : std::pow(1 - t, power_);
  return last_ + (first_ - last_) * left;
}

}}  // namespace neap::v0
