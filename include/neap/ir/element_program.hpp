// A program of elementwise steps over values of one shape, none of which but the last takes memory: an attribute of fused
// operators (ir/operators/fused.hpp). Each step is a standard scalar operator; its result is rounded to its element type
// before the next step reads it. So the bits are those of the operators one after another.
//
//   t0 = add(x0, x1); t1 = gelu(t0)
//
// Inputs that are smaller are broadcast, as in the steps' operators. Steps compute either in f64 (f64 and booleans) or in
// f32 (f32, bf16, f16 and booleans). Which operators can be steps: ir/operators/element_steps.hpp, which has the bodies.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/ir/standard_set.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace neap { inline namespace v0 {

class shape_context;
struct operator_view;

namespace detail {
struct step_operator;
inline constexpr std::size_t max_step_bytes = 16;
/// What programs know of the standard operator in this row; nullptr if it can be no step.
step_operator const* step_at(int row);
}  // namespace detail

/// One step of a program: operands below the number of inputs are inputs, the others are earlier steps.
struct element_step {
  static constexpr int max_operands = 3;
  std::uint8_t row = 255;  // of the operator in the standard set
  dtype element = dtype::f32;
  std::array<std::uint8_t, max_operands> operands{};

  constexpr bool operator==(element_step const&) const = default;
};

/// x... -> the last step's result, of the shape that the inputs broadcast to.
struct element_program {
  static constexpr int max_inputs = 8, max_steps = 64, max_constants = 24;
  static constexpr int max_registers = 4;  // results that wait for later steps at once: a GPU has them in registers

  std::uint8_t inputs = 0, step_count = 0, constant_count = 0;
  std::array<element_step, max_steps> steps{};
  std::array<std::int64_t, max_constants> constants{};  // the steps' attributes in order, as bits: of all but casts

  element_program() = default;
  /// A program of that many inputs, without steps.
  explicit element_program(std::size_t count) : inputs(static_cast<std::uint8_t>(count)) {}
  bool operator==(element_program const&) const = default;

  bool empty() const { return step_count == 0; }
  element_step const& step(int k) const { return steps[static_cast<std::size_t>(k)]; }
  element_step const& last() const { return step(step_count - 1); }
  /// Whether step k is this operator.
  template <class Op>
  bool is(int k) const {
    return step(k).row == detail::standard_row<Op>;
  }

  /// Adds a step, `element` being its result's type; its number as an operand. None, and no change, if the operator can be
  /// no step, or the program is full.
  std::optional<int> add(operator_view op, dtype element, std::span<int const> operands);
  template <class Op>
  std::optional<int> add(Op const& op, dtype element, std::initializer_list<int> operands) {
    return add(detail::standard_row<Op>, &op, element, span_of(operands.begin(), operands.size()));
  }
  /// By the operator's row. (Not by its facets, which would bring its kernel along.)
  std::optional<int> add(int row, void const* attributes, dtype element, std::span<int const> operands);
  /// Adds the steps of a right program on these values; its result as an operand. None if they do not fit: then some of
  /// them may be there.
  std::optional<int> add_all(element_program const& p, std::span<int const> values);

  /// Writes the attributes of step k to `to` (of max_step_bytes, aligned to 8). The number of constants that it takes,
  /// from `constant` on.
  int attributes_of(int k, int constant, void* to) const;
  /// Calls f(k, step, its operator, its attributes' bytes) for all steps in order. The program must be a right one.
  template <class F>
  void for_each_step(F const& f) const {
    for (int k = 0, constant = 0; k < step_count; ++k) {
      alignas(8) std::byte bytes[detail::max_step_bytes];
      constant += attributes_of(k, constant, bytes);
      f(k, step(k), *detail::step_at(step(k).row), static_cast<void const*>(bytes));
    }
  }
  /// Operations an element.
  double flops() const;
  /// Gives each step but the last a register for its result until the last step that reads it, the lowest that is free
  /// then. How many registers there are. The steps' operands must be there.
  int registers(std::array<int, max_steps>& of_step) const;
  /// Adds the result to the outputs. Throws neap::error for types and shapes that the steps do not take.
  void infer(shape_context& c) const;
  /// What is wrong with the program, for that many inputs: an operator that can be no step, an operand that is not there,
  /// a constant too few or too many, a step or an input that is not read, too many registers. Empty if it is right.
  std::string fault(std::size_t arity) const;

  /// The program as numbers, for files and digests: how many inputs, steps and constants; a number a step; the constants.
  plain_vector<std::int64_t> numbers() const;
  /// The inverse; none if no program has these numbers. (A program may have a fault all the same.)
  static std::optional<element_program> of_numbers(std::span<std::int64_t const> numbers);
};

/// The program as text: "t0 = add(x0, x1); t1 = mul_scalar(t0) {value 2}". The program must be a right one.
std::string to_string(element_program const& p);

}}  // namespace neap::v0
