// A function of rows or channels (a norm, a softmax or one of their gradients) and the elementwise work beside it as one
// operator: a program of steps (op::fused) makes what the function reads first, another one goes on from its result.
//
//   x = before(a...);  y, more... = function(x, others...);  z = after(y, b...)
//
//   h = add(x, r); y = layer_norm(h, w, c)     the residual addition in front of a norm, h being a second result
//   x = mul_scalar(a); y = softmax(x)          scaled scores
//   dx = layer_norm_grad(g, ...); z = add(dx, r)   the gradient of a norm, and that of the path around it
//   y = batch_norm(x, w, c); z = relu(add(y, r))   the end of a residual block
//   g = relu_grad(add(a, b), z); dx = batch_norm_grad(g, ...)   its gradient, g being a second result
//
// Each row, or channel, is read and written once, while it is in the cache. On the host, bits are those of the operators
// one after another: x and y are rounded to their types, and rows are added up in the same order. train/fuse_rows.hpp
// puts it into programs.
#pragma once

#include <neap/core/span_of.hpp>
#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace neap { inline namespace v0 {

/// A function of rows or channels. The numbers are an attribute of op::fused_rows.
enum class row_function : std::int64_t {
  layer_norm,
  rms_norm,
  softmax,
  log_softmax,
  layer_norm_grad,
  rms_norm_grad,
  softmax_grad,
  log_softmax_grad,
  batch_norm,
  batch_norm_grad,
  batch_norm_relu_grad,
  group_norm,
  group_norm_grad,
  count
};

namespace op {

/// before's inputs, the function's but for its first one, after's but for its first one -> z, of y's type; x with
/// `keeps_x`; y with `keeps_y`; the function's other results. Without steps, before is its one input, and z is y. No
/// gradient: fused programs have theirs already.
struct fused_rows {
  static constexpr std::string_view name = "fused_rows";
  static constexpr int max_operands = 6, max_results = 4;  // of a function

  std::int64_t function = 0;  // a row_function
  double eps = 0;             // of a norm
  std::int64_t groups = 0;    // of a group norm
  bool gives_result = false;  // of batch_norm_relu_grad
  std::int64_t before_inputs = 1, after_inputs = 1;
  extents before_steps, before_constants, after_steps, after_constants;  // as of op::fused
  bool keeps_x = false, keeps_y = false;

  static constexpr auto attributes() {
    return std::array{field<&fused_rows::function>("function"),
                      field<&fused_rows::eps>("eps"),
                      field<&fused_rows::groups>("groups"),
                      field<&fused_rows::gives_result>("gives_result"),
                      field<&fused_rows::before_inputs>("before_inputs"),
                      field<&fused_rows::before_steps>("before_steps"),
                      field<&fused_rows::before_constants>("before_constants"),
                      field<&fused_rows::after_inputs>("after_inputs"),
                      field<&fused_rows::after_steps>("after_steps"),
                      field<&fused_rows::after_constants>("after_constants"),
                      field<&fused_rows::keeps_x>("keeps_x"),
                      field<&fused_rows::keeps_y>("keeps_y")};
  }
  /// The function alone, without steps.
  template <class Op>
  static fused_rows of(Op const& op) {
    fused_rows all;
    all.function = static_cast<std::int64_t>(function_of<Op>());
    if constexpr (requires { op.eps; }) all.eps = op.eps;
    if constexpr (requires { op.groups; }) all.groups = op.groups;
    if constexpr (requires { op.gives_result; }) all.gives_result = op.gives_result;
    return all;
  }
  void set_before(fused const& p) { before_inputs = p.inputs, before_steps = p.steps, before_constants = p.constants; }
  void set_after(fused const& p) { after_inputs = p.inputs, after_steps = p.steps, after_constants = p.constants; }

  bool has_before() const { return before_steps.rank() > 0; }
  bool has_after() const { return after_steps.rank() > 0; }
  fused before() const { return {before_inputs, before_steps, {}, before_constants}; }
  fused after() const { return {after_inputs, after_steps, {}, after_constants}; }
  row_function follows() const { return static_cast<row_function>(function); }
  /// f(the function as an operator).
  template <class F>
  auto with_function(F const& f) const {
    switch (follows()) {
      case row_function::rms_norm: return f(rms_norm{eps});
      case row_function::softmax: return f(softmax{});
      case row_function::log_softmax: return f(log_softmax{});
      case row_function::layer_norm_grad: return f(layer_norm_grad{});
      case row_function::rms_norm_grad: return f(rms_norm_grad{});
      case row_function::softmax_grad: return f(softmax_grad{});
      case row_function::log_softmax_grad: return f(log_softmax_grad{});
      case row_function::batch_norm: return f(batch_norm{eps});
      case row_function::batch_norm_grad: return f(batch_norm_grad{});
      case row_function::batch_norm_relu_grad: return f(batch_norm_relu_grad{gives_result});
      case row_function::group_norm: return f(group_norm{groups, eps});
      case row_function::group_norm_grad: return f(group_norm_grad{groups});
      default: return f(layer_norm{eps});
    }
  }
  /// Whether the function is a gradient: it reads rows of another operand, too.
  bool is_gradient() const;
  /// Whether the function is of channels, its operands being [N, C, ...], vectors [C] and statistics.
  bool is_of_channels() const { return function >= static_cast<std::int64_t>(row_function::batch_norm); }
  bool is_norm_gradient() const { return is_gradient() && statistics() > 0; }
  /// How many numbers a row a norm keeps, or its gradient reads.
  int statistics() const;
  /// How many operands the function has beside x, of an op with that many inputs.
  int others(int arity) const { return arity - static_cast<int>(before_inputs + after_inputs) + 1; }
  /// How many results have x's shape: z, x and y.
  int whole_results() const { return 1 + (keeps_x ? 1 : 0) + (keeps_y ? 1 : 0); }
  /// How many results the function has beside y, if it has that many operands beside x.
  int more_results(int operands) const;

  /// What is wrong with the programs, for an op with that many inputs and results. Empty if nothing is.
  std::string fault(std::size_t arity) const;

  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;

 private:
  void relate_rows(dim_context& c) const;
  void relate_channels(dim_context& c) const;
  bool is_of_groups() const {
    return follows() == row_function::group_norm || follows() == row_function::group_norm_grad;
  }
  template <class Op>
  static constexpr row_function function_of() {
    if constexpr (std::is_same_v<Op, layer_norm>) return row_function::layer_norm;
    else if constexpr (std::is_same_v<Op, rms_norm>) return row_function::rms_norm;
    else if constexpr (std::is_same_v<Op, softmax>) return row_function::softmax;
    else if constexpr (std::is_same_v<Op, log_softmax>) return row_function::log_softmax;
    else if constexpr (std::is_same_v<Op, layer_norm_grad>) return row_function::layer_norm_grad;
    else if constexpr (std::is_same_v<Op, rms_norm_grad>) return row_function::rms_norm_grad;
    else if constexpr (std::is_same_v<Op, softmax_grad>) return row_function::softmax_grad;
    else if constexpr (std::is_same_v<Op, log_softmax_grad>) return row_function::log_softmax_grad;
    else if constexpr (std::is_same_v<Op, batch_norm>) return row_function::batch_norm;
    else if constexpr (std::is_same_v<Op, batch_norm_grad>) return row_function::batch_norm_grad;
    else if constexpr (std::is_same_v<Op, batch_norm_relu_grad>) return row_function::batch_norm_relu_grad;
    else if constexpr (std::is_same_v<Op, group_norm>) return row_function::group_norm;
    else return row_function::group_norm_grad;
  }
};

namespace detail {

/// A call's operands, stage by stage. What is not kept lies in z's memory: x until y is made of it, y until z is.
struct fused_rows_operands {
  std::span<tensor_ref const> before_in;
  std::array<tensor_ref, fused_rows::max_operands> function_in;
  std::array<tensor_ref, fused_rows::max_results> function_out;
  std::array<tensor_ref, fused::max_inputs> after_in;
  std::size_t operands = 1, results = 1;

  fused_rows_operands(fused_rows const& op, kernel_arguments const& a);
  kernel_arguments before() const { return {before_in, span_of(function_in.data(), 1)}; }
  kernel_arguments function(void* workspace) const;
  kernel_arguments after(fused_rows const& op, kernel_arguments const& a) const;
};

}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, fused_rows const& op, kernel_arguments const& a);

}  // namespace op

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/fused_rows.ipp>
#endif
