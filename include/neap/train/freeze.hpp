// Freezing by path: weights whose paths match a pattern get no gradient, no update and no optimizer state. Whole modules
// are frozen by requires_gradient(module, false) (model/parameters.hpp). What is frozen counts when a step is made; a
// freeze_record says whether it is so still.
//
//   neap::requires_gradient(model, "*", false);        // the whole model, but
//   neap::requires_gradient(model, "*.lora_*", true);  // its adapters
#pragma once

#include <neap/model/parameters.hpp>
#include <neap/train/path_pattern.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// "; its weights are a, b, c and 5 more".
std::string names_of(std::span<named_tensor const> named);

/// Which weights of a model were frozen when a step was made.
class freeze_record {
 public:
  freeze_record() = default;
  explicit freeze_record(std::span<named_tensor const> weights);
  /// Throws neap::error if a weight was frozen or freed since. Takes no memory where none was. O(weights).
  void require_unchanged(std::string_view who, std::source_location at) const;

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

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/freeze.ipp>
#endif
