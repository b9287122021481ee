// A chain of elementwise operators as one operator: a small program of steps over values of one shape, none of which but
// the last takes memory. Each step is a standard scalar operator; its result is rounded to its element type before the
// next step reads it. So the bits are those of the operators one after another.
//
//   t0 = add(x0, x1); t1 = gelu(t0)
//
// The host runs a program in chunks that stay in the first cache, one compiled loop a step: the loop that the operator
// alone has, which is why the bits are equal. ir/fuse.hpp makes such operators of a graph's.
//
// Operands that are smaller are broadcast, as in the steps' operators. Steps compute either in f64 (f64 and booleans) or
// in f32 (f32, bf16, f16 and booleans).
#pragma once

#include <neap/core/span_of.hpp>
#include <neap/core/text_part.hpp>
#include <neap/ir/operators/binary.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 { namespace op {

namespace detail {

/// The operators that can be steps. Their rows in the standard set are their numbers in programs.
using step_list =
    type_list<cast, neg, exp, log, sqrt, rsqrt, reciprocal, abs, square, tanh, sigmoid, relu, gelu, silu, erf, softplus,
              leaky_relu, add_scalar, mul_scalar, pow_scalar, exp_grad, log_grad, sqrt_grad, rsqrt_grad,
              reciprocal_grad, abs_grad, square_grad, tanh_grad, sigmoid_grad, relu_grad, gelu_grad, silu_grad,
              erf_grad, softplus_grad, leaky_relu_grad, pow_scalar_grad, sin, cos, sign, floor, round, clamp, sin_grad,
              cos_grad, clamp_grad, elu, elu_grad, add, sub, mul, div, maximum, minimum, pow_op, greater, greater_equal,
              less, less_equal, equal, not_equal, where, scalar_over, scalar_over_grad, rsqrt_grad_at,
              reciprocal_grad_at, tanh_grad_at, sigmoid_grad_at, elu_grad_at, clamp_grad_at, exp_grad_at, sqrt_grad_at>;

/// What programs know of an operator that can be a step. (Its facets would bring its kernel along.)
struct step_operator {
  std::string_view name;
  int row = -1, arguments = 0;
  std::uint32_t size = 0;  // bytes of its attributes
  double flops = 0;
  void (*construct)(void*) = nullptr;
  void (*infer)(void const*, shape_context&) = nullptr;
  std::span<attribute_field const> attributes;
};
inline constexpr std::size_t max_step_bytes = 16;

/// What programs know of the standard operator in this row; nullptr if it can be no step.
step_operator const* step_at(int row);
/// Its place in step_list; -1: it can be no step.
int step_place(int row);

}  // namespace detail

/// One step of a program: operands below the number of inputs are inputs, the others are earlier steps.
struct fused_step {
  static constexpr int max_operands = 3;
  int row = -1;  // of the operator in the standard set
  dtype element = dtype::f32;
  std::array<int, max_operands> operands{};

  constexpr bool operator==(fused_step const&) const = default;
};

/// x... -> the last step's result, of the shape that the inputs broadcast to. No gradient: programs are made of graphs
/// that have their gradients.
struct fused {
  static constexpr std::string_view name = "fused";
  static constexpr bool elementwise = true;
  static constexpr layouts takes = layouts::any;
  static constexpr int max_inputs = 8, max_steps = 2 * max_rank, max_constants = max_rank;
  static constexpr int max_rooms = 4;  // results that wait for later steps at once: a GPU has them in registers

  std::int64_t inputs = 0;
  extents steps, more_steps;  // a number each (packed); beyond the first eight in more_steps
  extents constants;          // the steps' attributes in order, as bits: of all but casts, whose type is the step's

  static constexpr auto attributes() {
    return std::array{field<&fused::inputs>("inputs"), field<&fused::steps>("steps"),
                      field<&fused::more_steps>("more_steps"), field<&fused::constants>("constants")};
  }

  int step_count() const { return steps.rank() + more_steps.rank(); }
  fused_step step(int k) const;
  /// The operator of step k, its attributes written to `to` (of detail::max_step_bytes, aligned to 8). The number of
  /// constants that it takes, from `constant` on.
  int attributes_of(int k, int constant, void* to) const;
  /// Calls f(k, step, its operator, its attributes' bytes) for all steps in order. The program must be a right one.
  template <class F>
  void for_each_step(F const& f) const {
    for (int k = 0, constant = 0; k < step_count(); ++k) {
      alignas(8) std::byte bytes[detail::max_step_bytes];
      constant += attributes_of(k, constant, bytes);
      auto const s = step(k);
      f(k, s, *detail::step_at(s.row), static_cast<void const*>(bytes));
    }
  }

  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  work cost(work_context const& c) const;

  /// Gives each step but the last a room for its result until the last step that reads it, the lowest that is free then.
  /// How many rooms there are. The steps' operands must be there.
  int rooms(std::array<int, max_steps>& of_step) const;

  /// What is wrong with the program, for that many inputs: an operator that can be no step, an operand that is not there,
  /// a constant too few or too many, a step or an input that is not read, too many rooms. Empty if it is right.
  std::string fault(std::size_t arity) const;

 private:
  std::int64_t packed(int k) const { return k < steps.rank() ? steps[k] : more_steps[k - steps.rank()]; }
};

/// Makes programs step by step. What does not fit into a program is refused without a change.
class fused_maker {
 public:
  /// A program of that many inputs.
  explicit fused_maker(int inputs) { made_.inputs = inputs; }

  /// Adds a step, `element` being its result's type; its number as an operand. None if the operator can be no step, or the
  /// program is full.
  std::optional<int> add(operator_view op, dtype element, std::span<int const> operands);
  template <class Op>
  std::optional<int> add(Op const& op, dtype element, std::initializer_list<int> operands) {
    return add_step(neap::detail::standard_row<Op>, &op, element, span_of(operands.begin(), operands.size()));
  }
  /// Adds the steps of a right program on these values; its result as an operand. None if they do not fit: then some of
  /// them may be there.
  std::optional<int> add_all(fused const& p, std::span<int const> inputs);
  fused const& made() const { return made_; }

 private:
  /// By the operator's row. (Not by its facets, which would bring its kernel along.)
  std::optional<int> add_step(int row, void const* attributes, dtype element, std::span<int const> operands);
  static std::int64_t bits_of(attribute_value const& v);
  fused made_;
};

/// The program as text: "t0 = add(x0, x1); t1 = mul_scalar(t0) {value 2}". The program must be a right one.
std::string to_string(fused const& p);

template <std::same_as<host_backend> Backend>
void run(Backend& b, fused const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/fused.ipp>
#endif
