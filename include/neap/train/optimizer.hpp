// Optimizers as values: sgd{.rate = 0.1}, momentum{}, adam{}, adamw{.rate = 3e-4}. An optimizer names the states that it
// keeps of each weight and says how it updates one weight in place; a training_state holds the states and the counter of
// steps. One's own optimizer is a struct of the same form.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neap::inline v0 {

/// w -= rate * (g + weight_decay * w)
struct sgd {
  double rate = 1e-2, weight_decay = 0;
  static constexpr std::array<std::string_view, 0> states{};
  void update(tensor const& w, tensor const& g, std::span<tensor const>, step_clock&) const {
    apply(op::sgd{rate, weight_decay}, {w, g});
  }
};

/// m = beta * m + (1 - damping) * (g + weight_decay * w); w -= rate * m, or Nesterov's form.
struct momentum {
  double rate = 1e-2, beta = 0.9, damping = 0, weight_decay = 0;
  bool nesterov = false;
  static constexpr std::array<std::string_view, 1> states{"velocity"};
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, step_clock&) const {
    apply(op::momentum{rate, beta, damping, weight_decay, nesterov}, {w, g, s[0]});
  }
};

/// Kingma and Ba 2015; the decay is added to the gradient.
struct adam {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  static constexpr std::array<std::string_view, 2> states{"first_moment", "second_moment"};
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, step_clock& clock) const {
    apply(op::adam{rate, beta1, beta2, epsilon, weight_decay}, {w, g, s[0], s[1], clock.now()});
  }
};

/// Loshchilov and Hutter 2019; the weight itself decays, by rate * weight_decay.
struct adamw {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
  static constexpr std::array<std::string_view, 2> states{"first_moment", "second_moment"};
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, step_clock& clock) const {
    apply(op::adamw{rate, beta1, beta2, epsilon, weight_decay}, {w, g, s[0], s[1], clock.now()});
  }
};

/// What a training keeps between steps besides the model: each weight's states, zeros at first, and the number of steps
/// taken. They take memory once they are used. A copy is another handle to the same states.
class training_state {
 public:
  training_state() : steps_(detail::make_owned({dtype::i64, {}}, initialiser::constant(0), role::state)) {}

  /// An i64 scalar, for step_clock.
  tensor const& counter() const { return steps_; }
  /// The states of a weight, valid until the next call; floating states of 16-bit weights are f32.
  std::vector<tensor> const& of(tensor const& weight, std::size_t count) {
    auto const* key = weight.storage().get();
    if (rows_.add(key, static_cast<std::uint32_t>(weights_.size()))) {
      weights_.push_back(weight);
      states_.emplace_back();
    }
    auto& states = states_[rows_.find(key)];
    auto const element = weight.element() == dtype::f64 ? dtype::f64 : dtype::f32;
    while (states.size() < count)
      states.push_back(detail::make_owned({element, weight.shape()}, initialiser::constant(0), role::state));
    return states;
  }

 private:
  tensor steps_;
  number_map rows_;              // weights' storages to rows of what follows
  std::vector<tensor> weights_;  // keeps the storages' addresses their own
  std::vector<std::vector<tensor>> states_;
};

/// Something that updates weights.
/// Promise: update writes w and the states in place by operators, and nothing else.
template <class O>
concept optimizer = requires(O const& o, tensor const& t, std::span<tensor const> s, step_clock& clock) {
  { O::states.size() } -> std::convertible_to<std::size_t>;
  o.update(t, t, s, clock);
};

}  // namespace neap::inline v0
