// Freezing by path: weights whose paths match a pattern get no gradient, no update and no optimizer state. Whole modules
// are frozen by requires_gradient(module, false) (model/parameters.hpp). What is frozen counts when a step is made; a
// freeze_record says whether it is so still.
//
//   neap::requires_gradient(model, "*", false);        // the whole model, but
//   neap::requires_gradient(model, "*.lora_*", true);  // its adapters
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/model/parameters.hpp>
#include <neap/train/path_pattern.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neap::inline v0 {

namespace detail {

/// "; its weights are a, b, c and 5 more".
NEAP_ONCE std::string names_of(std::span<named_tensor const> named) {
  constexpr std::size_t shown = 6;
  std::string text;
  for (std::size_t i = 0; i < named.size() && i < shown; ++i) text += (i ? ", " : "; its weights are ") + named[i].name;
  if (named.size() > shown) text += " and " + std::to_string(named.size() - shown) + " more";
  return text;
}

/// Which weights of a model were frozen when a step was made.
class freeze_record {
 public:
  freeze_record() = default;
  NEAP_ONCE explicit freeze_record(std::span<named_tensor const> weights) : weights_(weights.begin(), weights.end()) {
    for (auto const& w : weights_) frozen_.push_back(w.tensor.storage()->is_frozen());
  }
  /// Throws neap::error if a weight was frozen or freed since. Takes no memory where none was. O(weights).
  NEAP_ONCE void require_unchanged(std::string_view who, std::source_location at) const {
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (bool const now = weights_[i].tensor.storage()->is_frozen(); now != frozen_[i])
        throw_error(
            context_access::place(at),
            {who, ": requires_gradient has ", (now ? "frozen" : "freed"), " the weight \"", weights_[i].name,
             "\" since the step was made: make step and trainer anew, with training_options{.state = &state} to "
             "go on with the states"});
  }

 private:
  std::vector<named_tensor> weights_;
  plain_vector<bool> frozen_;
};

}  // namespace detail

/// Freezes the weights of a model whose paths match a pattern (false), or lets them train again; * stands for any
/// characters. Throws neap::error if there are none.
template <class Model>
void requires_gradient(Model& model, std::string_view pattern, bool wanted,
                       std::source_location at = std::source_location::current()) {
  auto const named = named_tensors(model, role::weight);
  bool found = false;
  for (auto const& w : named)
    if (detail::matches(pattern, w.name)) found = true, w.tensor.storage()->set_frozen(!wanted);
  if (!found)
    throw_error(context_access::place(at),
                {"requires_gradient: no weight of the model matches \"", pattern, "\"", detail::names_of(named)});
}

}  // namespace neap::inline v0
