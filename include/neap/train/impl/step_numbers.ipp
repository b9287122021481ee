// The bodies of <neap/train/step_numbers.hpp>.
#pragma once

#include <neap/train/step_numbers.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC step_numbers::step_numbers(std::vector<std::string_view> names, std::vector<scheduled> const& values,
                                     std::span<parameter_group const> groups, double loss_scale, tensor counter,
                                     found_scale found)
    : names_(std::move(names)),
      counter_(std::move(counter)),
      seed_(number(dtype::i64)),
      found_(std::move(found)),
      loss_scale_(loss_scale) {
  groups_.push_back({"", values, {}, 1, false});
  for (auto const& g : groups) {
    require_number(g, "rate", g.rate || g.rate_factor != 1);
    require_number(g, "weight_decay", g.weight_decay.has_value());
    group mine{g.match, values, {}, g.rate_factor, false};
    for (std::size_t k = 0; k < names_.size(); ++k) {
      if (is_named(k, "rate") && g.rate) mine.values[k] = *g.rate, mine.own_rate = true;
      if (is_named(k, "weight_decay") && g.weight_decay) mine.values[k] = *g.weight_decay, mine.own_decay = true;
    }
    groups_.push_back(std::move(mine));
  }
  for (auto& g : groups_) g.numbers = number(dtype::f64, {static_cast<std::int64_t>(names_.size())});
  if (loss_scale_ != 0) scale32_ = number(dtype::f32), scale64_ = number(dtype::f64), unscale_ = number(dtype::f64);
}

NEAP_FUNC std::vector<named_tensor> step_numbers::sources() const {
  std::vector<named_tensor> all;
  for (auto const& g : groups_) all.push_back({g.match.empty() ? "numbers" : "numbers." + g.match, g.numbers});
  all.push_back({"seed", seed_});
  if (finds_scale()) all.push_back({"loss_scale", found_.scale}), all.push_back({"good_steps", found_.good_steps});
  if (loss_scale_ != 0)
    for (auto const& [name, x] :
         {std::pair{"loss_scale", &scale32_}, {"loss_scale", &scale64_}, {"loss_unscale", &unscale_}})
      all.push_back({name, *x});
  return all;
}

NEAP_FUNC void step_numbers::replace_sources(std::span<tensor const> by) {
  std::size_t k = 0;
  for (auto& g : groups_) g.numbers = by[k++];
  seed_ = by[k++];
  if (scales_loss())
    for (auto* x : {&scale32_, &scale64_, &unscale_}) *x = by[k++];
}

NEAP_FUNC void step_numbers::set(step_settings const& s, std::int64_t step, std::source_location at) const {
  auto const refuse = [&](std::string const& what) { throw_error(context_access::place(at), {what}); };
  bool rate = !s.rate, momentum = !s.momentum, decay = !s.weight_decay;
  for (auto const& g : groups_) {
    auto* const to = reinterpret_cast<double*>(g.numbers.storage()->data());
    double along = 1;  // what a said rate is of the optimizer's
    for (std::size_t k = 0; k < names_.size(); ++k) {
      double x = g.values[k].at(step);
      bool const is_rate = is_named(k, "rate"), is_decay = is_named(k, "weight_decay");
      if (is_rate) {
        if (s.rate && !g.own_rate) {
          bool const base = names_[k] == "rate";
          if (base) along = x > 0 ? *s.rate / x : 1;
          x = base ? *s.rate : x * along;
        }
        x *= g.own_rate ? 1 : g.rate_factor;
        rate = true;
      }
      if (names_[k] == "momentum" && s.momentum) x = *s.momentum, momentum = true;
      if (is_decay) {
        if (s.weight_decay && !g.own_decay) x = *s.weight_decay;
        decay = true;
      }
      if (auto const must = demand_on(k); !may_be(must, x))
        refuse("the optimizer's " + std::string(names_[k]) + (g.match.empty() ? "" : " for \"" + g.match + "\"") +
               " is " + detail::text_of({x}) + " in step " + std::to_string(step) + ", and must be " +
               (must == demand::below_one ? "at least 0 and below 1" : "a finite number of at least 0"));
      to[k] = x;
    }
  }
  for (auto [used, name] : {std::pair{rate, "rate"}, {momentum, "momentum"}, {decay, "weight_decay"}})
    if (!used) refuse(std::string("the optimizer of this step has no ") + name);
  if (s.loss_scale && finds_scale())
    refuse(
        "this step finds its loss scale, which is a state of the training: give training_options{.loss_scale = ...} "
        "for one that stays");
  if (finds_scale())
    if (auto& x = *reinterpret_cast<double*>(found_.scale.storage()->data()); x == 0) x = found_.how.loss_scale;
  if (s.loss_scale && !scales_loss())
    refuse("this step was made without a loss scale: give training_options{.loss_scale = ...}");
  if (loss_scale_ != 0) {
    double const x = s.loss_scale.value_or(loss_scale_);
    if (!(x > 0 && x < std::numeric_limits<double>::infinity()))
      refuse("the loss scale must be a finite number above 0, got " + detail::text_of({x}));
    *reinterpret_cast<float*>(scale32_.storage()->data()) = static_cast<float>(x);
    *reinterpret_cast<double*>(scale64_.storage()->data()) = x;
    *reinterpret_cast<double*>(unscale_.storage()->data()) = 1 / x;
  }
  std::int64_t draws = 0;  // what is added to the number of the step
  if (s.seed) {
    auto const four = philox{*s.seed}(0, 2);
    draws = static_cast<std::int64_t>((four[0] | std::uint64_t{four[1]} << 32) >> 2);
  }
  *reinterpret_cast<std::int64_t*>(seed_.storage()->data()) = draws;
}

NEAP_FUNC void step_numbers::require_number(parameter_group const& g, char const* what, bool changed) const {
  for (std::size_t k = 0; k < names_.size(); ++k) changed = changed && !is_named(k, what);
  if (changed)
    throw_error(context_access::place({}), {"training_step: the group \"", g.match, "\" has a ", what,
                                            " of its own, and the optimizer has no such number"});
}

NEAP_FUNC tensor step_numbers::number(dtype t, shape const& s) {
  return make_owned({t, s}, initialiser::constant(0), role::state);
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor const& step_numbers::of(std::string_view path) {
  for (std::size_t i = 1; i < groups_.size(); ++i)
    if (matches(groups_[i].match, path)) return groups_[i].used = true, groups_[i].numbers;
  return groups_.front().numbers;
}

NEAP_FUNC std::string_view step_numbers::unused_group() const {
  for (std::size_t i = 1; i < groups_.size(); ++i)
    if (!groups_[i].used) return groups_[i].match.empty() ? "(empty)" : std::string_view(groups_[i].match);
  return {};
}

NEAP_FUNC void step_numbers::set(step_settings const& s, std::source_location at) const {
  set(s, *reinterpret_cast<std::int64_t const*>(counter_.storage()->data()) + 1, at);
}

NEAP_FUNC step_numbers::demand step_numbers::demand_on(std::size_t k) const {
  for (auto const* name : {"rate", "weight_decay", "epsilon", "momentum"})
    if (is_named(k, name)) return demand::not_negative;
  for (auto const* name : {"beta1", "beta2"})
    if (is_named(k, name)) return demand::below_one;
  return demand::none;
}

NEAP_FUNC bool step_numbers::may_be(demand d, double x) {
  return d == demand::none || (x >= 0 && x < (d == demand::below_one ? 1 : std::numeric_limits<double>::infinity()));
}

NEAP_FUNC bool step_numbers::is_named(std::size_t k, std::string_view what) const {
  auto const name = names_[k];
  return name.ends_with(what) && (name.size() == what.size() || name[name.size() - what.size() - 1] == '.');
}

}  // namespace detail
}}  // namespace neap::v0
