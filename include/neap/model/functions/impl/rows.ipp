// The bodies of <neap/model/functions/rows.hpp>.
#pragma once

#include <neap/model/functions/rows.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor rows(tensor const& x) { return x.layout().has_dense_rows() ? x : apply(op::copy{}, {x}); }

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor softmax(tensor const& x, std::int64_t axis, std::source_location at) {
  place_scope const here(at, "softmax");
  if (detail::axis_of(x, axis, "softmax", at) != x.rank() - 1)
    return transpose(softmax(transpose(x, axis, -1), -1), axis, -1);
  return apply(op::softmax{}, {detail::rows(x)});
}

NEAP_FUNC tensor log_softmax(tensor const& x, std::int64_t axis, std::source_location at) {
  place_scope const here(at, "log_softmax");
  if (detail::axis_of(x, axis, "log_softmax", at) != x.rank() - 1)
    return transpose(log_softmax(transpose(x, axis, -1), -1), axis, -1);
  if (!context_access::precision() && is_low(x.element()))  // its gradient needs more digits of the result
    return cast(apply(op::log_softmax{}, {cast(detail::rows(x), dtype::f32)}), x.element());
  return apply(op::log_softmax{}, {detail::rows(x)});
}

NEAP_FUNC tensor layer_norm(tensor const& x, tensor const& weight, tensor const& bias, double epsilon,
                            std::source_location at) {
  place_scope const here(at, "layer_norm");
  return apply(op::layer_norm{epsilon}, {detail::rows(x), weight, bias});
}

NEAP_FUNC tensor rms_norm(tensor const& x, tensor const& weight, double epsilon, std::source_location at) {
  place_scope const here(at, "rms_norm");
  return apply(op::rms_norm{epsilon}, {detail::rows(x), weight});
}

NEAP_FUNC tensor cross_entropy_loss(tensor const& logits, tensor const& targets, std::int64_t ignored, double smoothing,
                                    std::source_location at) {
  place_scope const here(at, "cross_entropy");
  tensor const dense = contiguous(targets);  // given twice: parts of the rows see all targets
  return apply(op::cross_entropy{ignored, false, smoothing}, {detail::rows(logits), dense, dense});
}

NEAP_FUNC tensor mse_loss(tensor const& x, tensor const& y, std::source_location at) {
  place_scope const here(at, "mse");
  return apply(op::mse{}, {contiguous(x), contiguous(y)});
}

}}  // namespace neap::v0
