// Several operators as one: an anchor (a reduction, a function of rows or channels, or a product) between two programs of
// elementwise steps (ir/element_program.hpp), or a program alone. What lies in between takes no memory unless others read
// it.
//
//   x = prologue(a...);  y, more... = anchor(x, others...);  z = epilogue(y, b...)
//
//   t = add(a, b); z = relu(t)                      no anchor
//   x = square(sub(a, b)); y = mean(x)              a squared error
//   x = relu_grad(g, z); y = sum_to(x)              the gradient of a bias; x is a second result, which others read
//   x = add(h, r); y = layer_norm(x, w, c)          the residual addition in front of a norm, x being a second result
//   x = mul_scalar(a); y = softmax(x)               scaled scores
//   dx = layer_norm_grad(g, ...); z = add(dx, r)    the gradient of a norm, and that of the path around it
//   y = batch_norm(x, w, c); z = relu(add(y, r))    the end of a residual block
//   y = matmul(a, b); z = gelu(add(y, bias))        one call of a GPU's product library
//
// The host computes chunks, rows or channels while they are in the cache; bits are those of the operators one after
// another: x, y and all steps' results are rounded to their types, and sums are added in the same order. A GPU's product
// library rounds once, after the epilogue: z differs from the host's by rounding. train/fuse.hpp makes these operators.
#pragma once

#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/element_steps.hpp>
#include <neap/ir/operators/matmul.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace neap { inline namespace v0 {

/// What stands between the programs of a fused operator: one of op::detail::anchor_list, in its order.
enum class anchor : std::int64_t {
  sum,
  mean,
  max_reduce,
  min_reduce,
  sum_to,
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
  matmul,
  none
};

/// What a product adds up beside its result z, over all axes but the last: an operand of two axes, or z. (The gradient of
/// a bias.)
enum class product_sums : std::int64_t { none, of_a, of_b, of_result };

namespace op {

namespace detail {
using anchor_list = type_list<sum, mean, max_reduce, min_reduce, sum_to, layer_norm, rms_norm, softmax, log_softmax,
                              layer_norm_grad, rms_norm_grad, softmax_grad, log_softmax_grad, batch_norm,
                              batch_norm_grad, batch_norm_relu_grad, group_norm, group_norm_grad, matmul>;
/// The anchor that an operator is; none: it can be none.
template <class Op, class... All>
constexpr anchor anchor_of(type_list<All...>) {
  std::int64_t k = 0;
  static_cast<void>(((std::is_same_v<Op, All> || (++k, false)) || ...));
  return static_cast<anchor>(k);
}
}  // namespace detail

/// The prologue's inputs, the anchor's but for its first one, the epilogue's but for its first one -> z, of y's type; x
/// with `keeps_x`; y with `keeps_y`; the result of the epilogue's first step with `keeps_step`; the anchor's other
/// results, a product's sums. Where a program has no steps, x is its one input, or z is y. No gradient: fused programs
/// are made of graphs that have theirs.
struct fused {
  static constexpr std::string_view name = "fused";
  static constexpr int max_operands = 6, max_results = 4;  // of an anchor

  element_program prologue{}, epilogue{};
  anchor middle = anchor::none;
  // The anchor's attributes; those that it has not are as here.
  double eps = 0;
  std::int64_t groups = 0;
  bool gives_result = false, keepdim = false, transpose_a = false, transpose_b = false;
  extents axes{}, dims{};

  bool keeps_x = false, keeps_y = false, keeps_step = false;
  product_sums sums = product_sums::none;

  static constexpr auto attributes() {
    return std::array{field<&fused::prologue>("prologue"),
                      field<&fused::epilogue>("epilogue"),
                      field<&fused::middle>("anchor"),
                      field<&fused::eps>("eps"),
                      field<&fused::groups>("groups"),
                      field<&fused::gives_result>("gives_result"),
                      field<&fused::keepdim>("keepdim"),
                      field<&fused::transpose_a>("transpose_a"),
                      field<&fused::transpose_b>("transpose_b"),
                      field<&fused::axes>("axes"),
                      field<&fused::dims>("dims"),
                      field<&fused::keeps_x>("keeps_x"),
                      field<&fused::keeps_y>("keeps_y"),
                      field<&fused::keeps_step>("keeps_step"),
                      field<&fused::sums>("sums")};
  }
  /// The anchor alone, without steps.
  template <class Op>
  static fused of(Op const& op) {
    fused all;
    all.middle = detail::anchor_of<Op>(detail::anchor_list{});
    if constexpr (requires { op.eps; }) all.eps = op.eps;
    if constexpr (requires { op.groups; }) all.groups = op.groups;
    if constexpr (requires { op.gives_result; }) all.gives_result = op.gives_result;
    if constexpr (requires { op.keepdim; }) all.axes = op.axes, all.keepdim = op.keepdim;
    if constexpr (requires { op.dims; }) all.dims = op.dims;
    if constexpr (requires { op.transpose_a; }) all.transpose_a = op.transpose_a, all.transpose_b = op.transpose_b;
    return all;
  }
  /// The anchor as an operator of this type.
  template <class Op>
  Op anchor_as() const {
    Op op{};
    if constexpr (requires { op.eps; }) op.eps = eps;
    if constexpr (requires { op.groups; }) op.groups = groups;
    if constexpr (requires { op.gives_result; }) op.gives_result = gives_result;
    if constexpr (requires { op.keepdim; }) op.axes = axes, op.keepdim = keepdim;
    if constexpr (requires { op.dims; }) op.dims = dims;
    if constexpr (requires { op.transpose_a; }) op.transpose_a = transpose_a, op.transpose_b = transpose_b;
    return op;
  }
  /// f(the anchor as an operator), if it is one of anchor_list from First on, before Last.
  template <anchor First = anchor::sum, anchor Last = anchor::none, class F>
  void with_anchor(F const& f) const {
    each_anchor<First, Last>(f, detail::anchor_list{});
  }
  bool has_anchor() const { return middle != anchor::none; }
  bool is_reduction() const { return middle <= anchor::sum_to; }
  bool is_of_rows() const { return middle >= anchor::layer_norm && middle <= anchor::log_softmax_grad; }
  bool is_of_channels() const { return middle >= anchor::batch_norm && middle <= anchor::group_norm_grad; }
  bool is_product() const { return middle == anchor::matmul; }
  /// Whether the outputs may overwrite a dying input of equal size and layout.
  bool is_elementwise() const { return !has_anchor(); }
  /// Whether the anchor is a gradient of rows or channels: it reads those of another operand, too.
  bool is_gradient() const;
  /// How many numbers a row or a group a norm keeps, or its gradient reads.
  int statistics() const;
  bool is_norm_gradient() const { return is_gradient() && statistics() > 0; }

  int prologue_inputs() const { return prologue.empty() ? 1 : prologue.inputs; }
  int epilogue_inputs() const { return epilogue.empty() ? 1 : epilogue.inputs; }
  /// How many operands the anchor has beside x, of an op with that many inputs.
  int others(int arity) const { return arity - prologue_inputs() - epilogue_inputs() + 1; }
  /// How many results come before the anchor's other ones.
  int whole_results() const { return 1 + (keeps_x ? 1 : 0) + (keeps_y ? 1 : 0) + (keeps_step ? 1 : 0); }
  /// How many results the op has, of that many inputs.
  int results(int arity) const;
  /// The operand that a product adds up; -1: none, or the result.
  int summed() const { return sums == product_sums::of_a ? 0 : sums == product_sums::of_b ? 1 : -1; }
  /// What a product adds up, of a call's inputs and outputs.
  template <class T>
  T const& summed_of(std::span<T const> in, std::span<T const> out) const {
    return summed() >= 0 ? in[static_cast<std::size_t>(summed())] : out[0];
  }
  /// The epilogue's first step, of its inputs, and the second one, of the first one's result: with `keeps_step`.
  element_program first_step() const;
  element_program second_step() const;

  /// How a reduction combines elements.
  neap::reduction kind() const;
  /// Which axes of x, of this shape, are reduced.
  std::array<bool, max_rank> reduces(shape const& x) const;
  /// The type of a reduction's x, from its inputs' layouts. They must go together.
  tensor_type x_type(std::span<tensor_layout const> in) const;
  tensor_type x_type(std::span<tensor_ref const> in) const;

  /// What is wrong with the operator, for that many inputs. Empty if nothing is.
  std::string fault(std::size_t arity) const;

  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;

 private:
  template <anchor First, anchor Last, class F, class... Op>
  void each_anchor(F const& f, type_list<Op...> list) const {
    auto const one = [&]<class One>(type_tag<One>) {
      constexpr auto its = detail::anchor_of<One>(decltype(list){});
      if constexpr (its >= First && its < Last)
        if (middle == its) f(anchor_as<One>());
    };
    (one(type_tag<Op>{}), ...);
  }
  std::string fault_of_anchor(std::size_t arity) const;
  bool is_of_groups() const { return middle == anchor::group_norm || middle == anchor::group_norm_grad; }
  void infer_sums(shape_context& c, tensor_type const& z) const;
  void relate_reduction(dim_context& c) const;
  void relate_rows(dim_context& c) const;
  void relate_channels(dim_context& c) const;
  void relate_product(dim_context& c) const;
};

namespace detail {

/// A call's operands, program by program. What is not kept lies in z's memory: x until y is made of it, y until z is.
struct fused_operands {
  std::span<tensor_ref const> prologue_in;
  std::array<tensor_ref, fused::max_operands> anchor_in;
  std::array<tensor_ref, fused::max_results> anchor_out;
  std::array<tensor_ref, element_program::max_inputs> epilogue_in;
  std::size_t operands = 1, results = 1;

  fused_operands(fused const& op, kernel_arguments const& a);
  kernel_arguments prologue() const& { return {prologue_in, span_of(anchor_in.data(), 1)}; }
  kernel_arguments middle(void* workspace) const&;
  kernel_arguments epilogue(fused const& op, kernel_arguments const& a) const&;
  kernel_arguments prologue() && = delete;  // the arguments are views of this object
  kernel_arguments middle(void* workspace) && = delete;
  kernel_arguments epilogue(fused const& op, kernel_arguments const& a) && = delete;
};

}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, fused const& op, kernel_arguments const& a);

}  // namespace op

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/fused.ipp>
#endif
