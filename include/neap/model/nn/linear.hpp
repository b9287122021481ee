// A linear layer: y = x w^T + b over the last axis.
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <tuple>

namespace neap { inline namespace v0 { namespace nn {

namespace detail {
/// Refuses inputs whose last axis is not as wide as a weight (out, in) takes, by the name of the module that has it.
void require_width(char const* who, tensor const& x, parameter const& weight);
}  // namespace detail

struct linear_options {
  bool bias = true;
  dtype element = dtype::f32;
};

struct linear {
  parameter weight;  // (out, in)
  parameter bias;    // (out); empty without bias

  linear() = default;
  linear(std::int64_t in, std::int64_t out, linear_options o = {},
         std::source_location at = std::source_location::current());

  /// x (..., in) -> (..., out)
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<linear> auto& self) { return std::tie(self.weight, self.bias); }
  static constexpr std::array neap_names{"weight", "bias"};
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/linear.ipp>
#endif
