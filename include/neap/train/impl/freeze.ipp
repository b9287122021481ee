// The bodies of <neap/train/freeze.hpp>.
#pragma once

#include <neap/train/freeze.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::string names_of(std::span<named_tensor const> named) {
  constexpr std::size_t shown = 6;
  std::string text;
  for (std::size_t i = 0; i < named.size() && i < shown; ++i) text += (i ? ", " : "; its weights are ") + named[i].name;
  if (named.size() > shown) text += " and " + std::to_string(named.size() - shown) + " more";
  return text;
}

NEAP_FUNC freeze_record::freeze_record(std::span<named_tensor const> weights)
    : weights_(weights.begin(), weights.end()) {
  for (auto const& w : weights_) frozen_.push_back(w.tensor.storage()->is_frozen());
}

NEAP_FUNC void freeze_record::require_unchanged(std::string_view who, std::source_location at) const {
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (bool const now = weights_[i].tensor.storage()->is_frozen(); now != frozen_[i])
      throw_error(context_access::place(at),
                  {who, ": requires_gradient has ", (now ? "frozen" : "freed"), " the weight \"", weights_[i].name,
                   "\" since the step was made: make step and trainer anew, with training_options{.state = &state} to "
                   "go on with the states"});
}

}  // namespace detail
}}  // namespace neap::v0
