// The numbers of a step within a compiled function: the host computes them anew in each call, from the number of the step.
#pragma once

#include <neap/capture/host_function.hpp>
#include <neap/train/step_numbers.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

class numbers_on_host final : public host_function {
 public:
  /// `k`: which of the sources it gives.
  numbers_on_host(std::shared_ptr<step_numbers const> numbers, step_settings const& s, std::size_t k)
      : numbers_(std::move(numbers)),
        settings_(s),
        number_(k) {}
  host_result call(std::span<tensor const> tensors, std::span<std::uint64_t const>) const override {
    unseen_scope const unseen;
    numbers_->set(settings_, tensors.front().item<std::int64_t>() + 1, {});
    host_result r;
    r.made = apart(numbers_->sources()[number_].tensor, {});
    return r;
  }
  bool is_like(host_function const& other) const override {
    auto const* o = dynamic_cast<numbers_on_host const*>(&other);
    return o && o->number_ == number_ && o->settings_.rate == settings_.rate &&
           o->settings_.momentum == settings_.momentum && o->settings_.weight_decay == settings_.weight_decay &&
           o->settings_.loss_scale == settings_.loss_scale && o->settings_.seed == settings_.seed &&
           o->values() == values();
  }
  bool may_throw() const override { return true; }
  bool gives_tensor() const override { return true; }
  std::optional<tensor_type> type_given() const override { return numbers_->sources()[number_].tensor.type(); }

 private:
  /// Of the first steps: what distinguishes optimizers.
  std::vector<double> values() const {
    unseen_scope const unseen;
    std::vector<double> all;
    for (std::int64_t const step : {1, 2, 1000}) {
      numbers_->set(settings_, step, {});
      for (double const x : numbers_->sources()[number_].tensor.values<double>()) all.push_back(x);
    }
    return all;
  }
  std::shared_ptr<step_numbers const> numbers_;  // its tensors are its own
  step_settings settings_;
  std::size_t number_;
};

/// Writes the numbers of the next step; in a compiled function, has the host do so in each call.
inline void set_numbers(step_numbers& numbers, step_settings const& settings, tensor const& counter,
                        std::source_location at) {
  if (!host_listener::active() && !host_log::active()) return numbers.set(settings, at);
  if (numbers.finds_scale())
    throw_error(context_access::place(at),
                {"compile: a step of f16 finds its loss scale on the host, which a graph does not go on with: give "
                 "training_options{.loss_scale = ...}, or take the step outside"});
  auto const own = std::make_shared<step_numbers const>(numbers);
  host_listener::arguments given;
  given.tensors.push_back(counter);
  std::vector<tensor> made;
  for (std::size_t k = 0; k < own->sources().size(); ++k)
    made.push_back(perform_on_host(std::make_shared<numbers_on_host>(own, settings, k), given, false, at).first.made);
  numbers.replace_sources(made);
}

}  // namespace neap::inline v0::detail
