// The numbers of a training step that may be others in each step: the optimizer's (rate, decay...), by groups of weights,
// the scale of the loss, a seed of dropout's draws. The program reads them as tensors; before each step they are written
// there, from schedules and from what the caller says of this one step:
//
//   run(batch, {.rate = 1e-4});
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/philox.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/parameter.hpp>
#include <neap/model/parameters.hpp>
#include <neap/train/mixed.hpp>
#include <neap/train/path_pattern.hpp>
#include <neap/train/scheduled.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// What one step shall use instead of what the optimizer and its schedules say. A rate stands for the base rate: groups
/// multiply it by their factors, and groups with a rate of their own keep it. An optimizer's further rates (muon's of
/// `others`) go along in proportion.
struct step_settings {
  std::optional<double> rate{}, momentum{}, weight_decay{}, loss_scale{};
  std::optional<std::uint64_t> seed{};  // of dropout's draws in this step: the same seed and step draw the same
};

/// Weights with numbers of their own.
struct parameter_group {
  std::string match;                        // of their paths; * stands for any characters: "*.bias", "head.*"
  std::optional<scheduled> rate{};          // instead of the optimizer's
  double rate_factor = 1;                   // times the optimizer's
  std::optional<scheduled> weight_decay{};  // instead of the optimizer's
};

namespace detail {

template <class Optimizer>
concept has_numbers = requires(Optimizer const& o) {
  Optimizer::numbers.size();
  o.values();
};

/// The scale of the loss that a training finds for itself (train/mixed.hpp).
struct found_scale {
  tensor scale, good_steps;  // the training's states; empty: there is none
  mixed how{};
};

/// Made once for a training step; the program's sources hold what set() writes.
class step_numbers {
 public:
  /// `groups`: the first whose pattern matches a weight's path counts. `loss_scale` 0: the loss is not scaled.
  template <class Optimizer>
  step_numbers(Optimizer const& o, std::span<parameter_group const> groups, double loss_scale, tensor counter,
               found_scale found = {})
      : step_numbers(names_of<Optimizer>(), values_of(o), groups, loss_scale, std::move(counter), std::move(found)) {}
  NEAP_ONCE step_numbers(std::vector<std::string_view> names, std::vector<scheduled> const& values,
                         std::span<parameter_group const> groups, double loss_scale, tensor counter,
                         found_scale found = {})
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

  tensor const& counter() const { return counter_; }
  tensor const& seed() const { return seed_; }
  bool scales_loss() const { return loss_scale_ != 0 || finds_scale(); }
  bool finds_scale() const { return !found_.scale.is_empty(); }
  found_scale const& found() const { return found_; }
  /// What gradients are multiplied by in this step, where the scale is found; empty when the step has been taken.
  void set_unscale(tensor t) { unscale_ = std::move(t); }
  /// The loss's scale as a number of the loss's type, and what gradients are multiplied by.
  tensor const& scale(dtype t) const { return finds_scale() ? found_.scale : t == dtype::f64 ? scale64_ : scale32_; }
  tensor const& unscale() const { return unscale_; }
  /// The numbers of the group of a weight, in the optimizer's order.
  tensor const& of(std::string_view path) {
    for (std::size_t i = 1; i < groups_.size(); ++i)
      if (matches(groups_[i].match, path)) return groups_[i].used = true, groups_[i].numbers;
    return groups_.front().numbers;
  }
  /// The pattern of a group that no weight has been found in; empty if there is none.
  std::string_view unused_group() const {
    for (std::size_t i = 1; i < groups_.size(); ++i)
      if (!groups_[i].used) return groups_[i].match.empty() ? "(empty)" : std::string_view(groups_[i].match);
    return {};
  }
  /// The tensors that set() writes, and their names.
  NEAP_ONCE std::vector<named_tensor> sources() const {
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

  /// Other tensors in place of sources(), in their order, of equal types.
  NEAP_ONCE void replace_sources(std::span<tensor const> by) {
    std::size_t k = 0;
    for (auto& g : groups_) g.numbers = by[k++];
    seed_ = by[k++];
    if (scales_loss())
      for (auto* x : {&scale32_, &scale64_, &unscale_}) *x = by[k++];
  }

  /// Writes the numbers of the next step, by the counter of those that were taken. Throws neap::error for settings that
  /// the step has no use for.
  void set(step_settings const& s, std::source_location at) const {
    set(s, *reinterpret_cast<std::int64_t const*>(counter_.storage()->data()) + 1, at);
  }
  /// The same for the step of this number.
  NEAP_ONCE void set(step_settings const& s, std::int64_t step, std::source_location at) const {
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
                 " is " + std::to_string(x) + " in step " + std::to_string(step) + ", and must be " +
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
        refuse("the loss scale must be a finite number above 0, was given " + std::to_string(x));
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

 private:
  template <class Optimizer>
  static std::vector<std::string_view> names_of() {
    if constexpr (has_numbers<Optimizer>) return {Optimizer::numbers.begin(), Optimizer::numbers.end()};
    else return {};
  }
  template <class Optimizer>
  static std::vector<scheduled> values_of(Optimizer const& o) {
    if constexpr (has_numbers<Optimizer>) {
      static_assert(
          Optimizer::numbers.size() == std::tuple_size_v<decltype(o.values())>,
          "neap: an optimizer's values() must give one number for each of its `numbers`, in the same order, as "
          "std::array<neap::scheduled, N>");
      auto const values = o.values();
      return {values.begin(), values.end()};
    } else {
      return {};
    }
  }

  /// What a number must be, by its name; of names that are not the library's nothing is known.
  enum class demand : std::uint8_t { none, not_negative, below_one };
  demand demand_on(std::size_t k) const {
    for (auto const* name : {"rate", "weight_decay", "epsilon", "momentum"})
      if (is_named(k, name)) return demand::not_negative;
    for (auto const* name : {"beta1", "beta2"})
      if (is_named(k, name)) return demand::below_one;
    return demand::none;
  }
  static bool may_be(demand d, double x) {
    return d == demand::none || (x >= 0 && x < (d == demand::below_one ? 1 : std::numeric_limits<double>::infinity()));
  }
  /// Throws neap::error if a group changes a number that the optimizer has not.
  NEAP_ONCE void require_number(parameter_group const& g, char const* what, bool changed) const {
    for (std::size_t k = 0; k < names_.size(); ++k) changed = changed && !is_named(k, what);
    if (changed)
      throw_error(context_access::place({}), {"training_step: the group \"", g.match, "\" has a ", what,
                                              " of its own, and the optimizer has no such number"});
  }
  /// "rate", and "others.rate" of an optimizer that updates some weights in another way.
  bool is_named(std::size_t k, std::string_view what) const {
    auto const name = names_[k];
    return name.ends_with(what) && (name.size() == what.size() || name[name.size() - what.size() - 1] == '.');
  }

  struct group {
    std::string match;
    std::vector<scheduled> values;
    tensor numbers{};
    double rate_factor = 1;
    bool own_rate = false, own_decay = false, used = false;
  };
  NEAP_ONCE static tensor number(dtype t, shape const& s = {}) {
    return make_owned({t, s}, initialiser::constant(0), role::state);
  }

  std::vector<std::string_view> names_;
  std::vector<group> groups_;  // the first is of all that are in no other
  tensor counter_, seed_, scale32_, scale64_, unscale_;
  found_scale found_;
  double loss_scale_;
};

}  // namespace detail

}  // namespace neap::inline v0
