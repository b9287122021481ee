// The bodies of <neap/train/captured_numbers.hpp>.
#pragma once

#include <neap/train/captured_numbers.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC numbers_on_host::numbers_on_host(std::shared_ptr<step_numbers const> numbers, step_settings const& s,
                                           std::size_t k)
    : numbers_(std::move(numbers)),
      settings_(s),
      number_(k) {}

NEAP_FUNC host_result numbers_on_host::call(std::span<tensor const> tensors, std::span<std::uint64_t const>) const {
  unseen_scope const unseen;
  numbers_->set(settings_, tensors.front().item<std::int64_t>() + 1, {});
  host_result r;
  r.made = apart(numbers_->sources()[number_].tensor, {});
  return r;
}

NEAP_FUNC bool numbers_on_host::is_like(host_function const& other) const {
  auto const* o = dynamic_cast<numbers_on_host const*>(&other);
  return o && o->number_ == number_ && o->settings_.rate == settings_.rate &&
         o->settings_.momentum == settings_.momentum && o->settings_.weight_decay == settings_.weight_decay &&
         o->settings_.loss_scale == settings_.loss_scale && o->settings_.seed == settings_.seed &&
         o->values() == values();
}

NEAP_FUNC std::vector<double> numbers_on_host::values() const {
  unseen_scope const unseen;
  std::vector<double> all;
  for (std::int64_t const step : {1, 2, 1000}) {
    numbers_->set(settings_, step, {});
    for (double const x : numbers_->sources()[number_].tensor.values<double>()) all.push_back(x);
  }
  return all;
}

NEAP_FUNC void set_numbers(step_numbers& numbers, step_settings const& settings, tensor const& counter,
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

}}}  // namespace neap::v0::detail
