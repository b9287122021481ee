// The inputs of cases of operators.
#pragma once

#include <neap/core/tensor_type.hpp>

namespace neap::testing {

/// An input of a case. Floating ones are computed in f64 or f32; the others hold numbers in [low, high) rounded down.
struct operand {
  shape dims;
  double low = -1, high = 1;
  dtype element = dtype::f64;
  bool differentiable = true;
};

}  // namespace neap::testing
