// Root-mean-square normalisation along the last axis (Zhang and Sennrich 2019): y = x * rstd * weight, with rstd =
// 1 / sqrt(mean(x^2) + epsilon). Layer norm's kernels without the mean.
#pragma once

#include <neap/backend/kernels/layer_norm.hpp>

namespace neap { inline namespace v0 {

/// y = x * rstd * weight. x, y and weight have one floating type; rstd, one a row, is f32 (f64 for f64). weight and rstd
/// may have no data. y may be x.
template <class Backend>
void rms_norm(Backend& b, tensor_ref const& y, tensor_ref const& rstd, tensor_ref const& x, tensor_ref const& weight,
              double epsilon) {
  detail::run_norm(b, false, y, {}, rstd, x, weight, {}, epsilon, "rms_norm");
}

/// Bytes of workspace of rms_norm_backward for an x of this type.
inline bytes_t rms_norm_backward_workspace(tensor_type const& x) { return detail::norm_backward_bytes(x, 1); }

/// The gradients of rms_norm; those that have no data are left out. dx may be dy.
template <class Backend>
void rms_norm_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dy,
                       tensor_ref const& x, tensor_ref const& rstd, tensor_ref const& weight, void* workspace) {
  detail::run_norm_backward(b, false, dx, dweight, {}, dy, x, {}, rstd, weight, workspace, "rms_norm_backward");
}

}}  // namespace neap::v0
