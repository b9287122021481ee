// Layer norm and RMS norm over the last axis. The forward operators keep a row's statistics for the gradient, so that it
// reads x once more and nothing else of its size. The gradients write dx over g or x where these die.
#pragma once

#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/movement.hpp>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
shape without_last(shape s);
/// Inputs from `first` on are vectors of `n` elements of x's type.
void require_vectors(shape_context& c, int first, std::int64_t n, std::string_view what);
/// x, up to `vectors` of scale and shift -> y and `statistics` of each row.
void infer_row_norm(shape_context& c, int vectors, int statistics);
/// g, x, the statistics, [scale] -> dx, and with a scale `vectors` gradients of scale and shift.
void infer_row_norm_grad(shape_context& c, int vectors, int statistics);
/// One number a row as it broadcasts against the rows.
value_id along_rows(gradient_context& c, value_id v);
/// What a norm's statistics add to its gradient to x: that of a group's mean, dm / n, and that of its rstd r,
/// -r^3 (x - mean) dr / n, where n elements make a group. The mean is output 1 if there are two statistics; `dx`, what y
/// gave, may be nothing, and so may the result. x is seen as `groups` (dense if that is not its shape), a statistic as
/// `each`, which broadcasts to it.
value_id with_statistics(gradient_context& c, value_id dx, int statistics, shape const& groups, shape const& each);
/// The gradient of a norm with optional scale and shift to y = output 0 (`grad` of g, x, the statistics and the scale
/// gives those of x, scale and shift) and to the statistics, which are seen as with_statistics has it.
void norm_gradient(gradient_context& c, operator_view grad, int statistics, value_id g, shape const& groups,
                   shape const& each);
void row_norm_gradient(gradient_context& c, operator_view grad, int statistics);

/// Row axes of the first `inputs` are those of the first `outputs`; what else comes out is summed over them.
void relate_rows(dim_context& c, int inputs, int outputs);
}  // namespace detail

/// g, x, mean, rstd, [w] -> dx, [dw, db].
struct layer_norm_grad {
  static constexpr std::string_view name = "layer_norm_grad";
  static constexpr bool elementwise = true;  // dx over g or x: a row is read before it is written; dw, db come last
  static constexpr double flops = 14;
  void infer(shape_context& c) const { detail::infer_row_norm_grad(c, 2, 2); }
  void relate(dim_context& c) const { detail::relate_rows(c, 4, 1); }
  bytes_t workspace(work_context const& c) const;
};
/// x, [w, [b]] -> y = (x - mean) * rstd * w + b over the last axis; mean and rstd of each row (Ba et al. 2016).
struct layer_norm {
  static constexpr std::string_view name = "layer_norm";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 8;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&layer_norm::eps>("eps")}; }
  void infer(shape_context& c) const { detail::infer_row_norm(c, 2, 2); }
  void relate(dim_context& c) const { detail::relate_rows(c, 1, 3); }
  void gradient(gradient_context& c) const { detail::row_norm_gradient(c, view_of(layer_norm_grad{}), 2); }
};
template <class Backend>
void run(Backend& b, layer_norm const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, layer_norm_grad const&, kernel_arguments const& a);

/// g, x, rstd, [w] -> dx, [dw].
struct rms_norm_grad {
  static constexpr std::string_view name = "rms_norm_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 11;
  void infer(shape_context& c) const { detail::infer_row_norm_grad(c, 1, 1); }
  void relate(dim_context& c) const { detail::relate_rows(c, 3, 1); }
  bytes_t workspace(work_context const& c) const;
};
/// x, [w] -> y = x * rstd * w over the last axis; rstd of each row (Zhang and Sennrich 2019).
struct rms_norm {
  static constexpr std::string_view name = "rms_norm";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 5;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&rms_norm::eps>("eps")}; }
  void infer(shape_context& c) const { detail::infer_row_norm(c, 1, 1); }
  void relate(dim_context& c) const { detail::relate_rows(c, 1, 2); }
  void gradient(gradient_context& c) const { detail::row_norm_gradient(c, view_of(rms_norm_grad{}), 1); }
};
template <class Backend>
void run(Backend& b, rms_norm const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, rms_norm_grad const&, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/row_norm.ipp>
#endif
