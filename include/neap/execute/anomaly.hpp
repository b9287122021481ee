// Where a planned step went wrong: the first operator whose result has an infinity or a NaN, by name.
//
//   neap::trainer run(step, found.placed, backend, {.watch = neap::anomaly::not_finite});
//   run(batch);   // throws: "the result of matmul blocks.3.up, f32[64,256], is nan at element 17 of 16384"
#pragma once

#include <neap/core/element.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/model/tensor.hpp>

#include <cmath>
#include <cstdint>

namespace neap { inline namespace v0 {

/// What a result must not have. Masks of attention are infinite in many models: `nan` leaves them alone.
enum class anomaly : std::uint8_t { none, nan, not_finite };

namespace detail {
/// The number of the first such element, in row-major order, and the element; -1: there is none.
struct bad_element {
  std::int64_t number = -1;
  double value = 0;
};
inline bad_element first_bad(tensor_ref const& x, anomaly what) {
  if (!is_floating(x.element) || !x.data) return {};
  std::int64_t const n = x.count();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = 0, left = i;
    for (int k = x.rank(); k-- > 0; left /= x.dims[k]) at += left % x.dims[k] * x.strides[k];
    double const value = element_as<double>(x.data, x.element, at);
    if (what == anomaly::nan ? std::isnan(value) : !std::isfinite(value)) return {i, value};
  }
  return {};
}
}  // namespace detail

}}  // namespace neap::v0
