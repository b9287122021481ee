// A reduction and the chain of elementwise operators that makes what it adds up as one operator: a program of steps
// (op::fused) whose result x takes no memory, unless others read it.
//
//   y = reduction(program(a...))
//
//   x = mul(a, mask); y = sum(x)                      a masked sum
//   x = square(sub(a, b)); y = mean(x)                a squared error
//   x = mul(g, a); y = sum_to(x)                      the gradient of a scale
//   x = relu_grad(g, z); y = sum_to(x)                the gradient of a bias; x is a second result, which others read
//
// Chunks of x are added while they are in the first cache, on a device while they are in registers. Bits are those of the
// operators one after another: x is rounded to its type, and its elements are added up in the same order.
// train/fuse_rows.hpp puts it into programs. (Beside op::fused_rows, whose result has the shape of what it reads and lies
// in its place.)
#pragma once

#include <neap/ir/operators/fused.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/reduction.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace neap { inline namespace v0 {

/// A reduction. The numbers are an attribute of op::fused_reduction.
enum class reduction_function : std::int64_t { sum, mean, max_reduce, min_reduce, sum_to, count };

namespace op {

/// The program's inputs -> y; x with `keeps_x`. x is of a floating type. No gradient: fused programs have theirs
/// already.
struct fused_reduction {
  static constexpr std::string_view name = "fused_reduction";

  std::int64_t function = 0;  // a reduction_function
  extents axes;               // of all but sum_to, as theirs
  bool keepdim = false;
  extents dims;  // of sum_to
  std::int64_t inputs = 1;
  extents steps, more_steps, constants;  // as of op::fused
  bool keeps_x = false;

  static constexpr auto attributes() {
    return std::array{
        field<&fused_reduction::function>("function"),     field<&fused_reduction::axes>("axes"),
        field<&fused_reduction::keepdim>("keepdim"),       field<&fused_reduction::dims>("dims"),
        field<&fused_reduction::inputs>("inputs"),         field<&fused_reduction::steps>("steps"),
        field<&fused_reduction::more_steps>("more_steps"), field<&fused_reduction::constants>("constants"),
        field<&fused_reduction::keeps_x>("keeps_x")};
  }
  /// The reduction alone, without steps.
  template <class Op>
  static fused_reduction of(Op const& op) {
    fused_reduction all;
    if constexpr (std::is_same_v<Op, sum_to>) {
      all.function = static_cast<std::int64_t>(reduction_function::sum_to), all.dims = op.dims;
    } else {
      constexpr auto f = std::is_same_v<Op, sum>          ? reduction_function::sum
                         : std::is_same_v<Op, mean>       ? reduction_function::mean
                         : std::is_same_v<Op, max_reduce> ? reduction_function::max_reduce
                                                          : reduction_function::min_reduce;
      all.function = static_cast<std::int64_t>(f), all.axes = op.axes, all.keepdim = op.keepdim;
    }
    return all;
  }
  void set_program(fused const& p) {
    inputs = p.inputs, steps = p.steps, more_steps = p.more_steps, constants = p.constants;
  }
  fused program() const { return {inputs, steps, more_steps, constants}; }
  reduction_function follows() const { return static_cast<reduction_function>(function); }
  /// f(the reduction as an operator).
  template <class F>
  auto with_function(F const& f) const {
    switch (follows()) {
      case reduction_function::mean: return f(mean{axes, keepdim});
      case reduction_function::max_reduce: return f(max_reduce{axes, keepdim});
      case reduction_function::min_reduce: return f(min_reduce{axes, keepdim});
      case reduction_function::sum_to: return f(sum_to{dims});
      default: return f(sum{axes, keepdim});
    }
  }
  /// How the reduction combines elements.
  neap::reduction kind() const;
  /// Which axes of x, of this shape, are reduced.
  std::array<bool, max_rank> reduces(shape const& x) const;
  /// x's type, from its inputs' layouts. They must go together.
  tensor_type x_type(std::span<tensor_layout const> in) const;
  tensor_type x_type(std::span<tensor_ref const> in) const;

  /// What is wrong with the operator, for that many inputs. Empty if nothing is.
  std::string fault(std::size_t arity) const;

  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;

 private:
  /// The type of what the steps make of inputs that broadcast to this shape.
  tensor_type made_of(shape const& whole) const;
};

template <std::same_as<host_backend> Backend>
void run(Backend& b, fused_reduction const& op, kernel_arguments const& a);

}  // namespace op

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/fused_reduction.ipp>
#endif
