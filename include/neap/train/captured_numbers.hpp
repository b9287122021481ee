// The numbers of a step within a compiled function: the host computes them anew in each call, from the number of the step.
#pragma once

#include <neap/capture/host_function.hpp>
#include <neap/train/step_numbers.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class numbers_on_host final : public host_function {
 public:
  /// `k`: which of the sources it gives.
  numbers_on_host(std::shared_ptr<step_numbers const> numbers, step_settings const& s, std::size_t k);
  host_result call(std::span<tensor const> tensors, std::span<std::uint64_t const>) const override;
  bool is_like(host_function const& other) const override;
  bool may_throw() const override { return true; }
  bool gives_tensor() const override { return true; }
  std::optional<tensor_type> type_given() const override { return numbers_->sources()[number_].tensor.type(); }

 private:
  /// Of the first steps: what distinguishes optimizers.
  std::vector<double> values() const;
  std::shared_ptr<step_numbers const> numbers_;  // its tensors are its own
  step_settings settings_;
  std::size_t number_;
};

/// Writes the numbers of the next step; in a compiled function, has the host do so in each call.
void set_numbers(step_numbers& numbers, step_settings const& settings, tensor const& counter, std::source_location at);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/captured_numbers.ipp>
#endif
