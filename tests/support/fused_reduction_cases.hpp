// Reductions with a program before them (op::fused), of each kind, and their operands.
#pragma once

#include <neap/ir/operators/fused.hpp>
#include <neap/ir/standard_operators.hpp>

#include "operand.hpp"

#include <cstdint>
#include <vector>

namespace neap::testing {

/// The reduction of (a + b) * 0.5 - c.
template <class Op>
op::fused reduction_with_steps(Op const& reduction, dtype element, bool keeps_x) {
  element_program make(3);
  make.add(op::sub{}, element, {*make.add(op::mul_scalar{0.5}, element, {*make.add(op::add{}, element, {0, 1})}), 2});
  auto op = op::fused::of(reduction);
  op.prologue = make;
  op.keeps_x = keeps_x;
  return op;
}
/// Its operands, x being of three axes: a is whole, b a vector or, with `columns`, one number a row, c is whole.
inline std::vector<operand> operands_of_reduction(shape const& x, bool columns) {
  return {{x}, {columns ? shape{x[0], x[1], 1} : shape{x[2]}}, {x}};
}

/// f(operator) for reductions of all kinds, of values of this shape and type.
template <class F>
void each_reduction(shape const& x, dtype element, F const& f) {
  for (bool const keeps : {false, true}) {
    for (extents const& axes :
         {extents{}, extents{0}, extents{1}, extents{-1}, extents{0, 1}, extents{0, 2}, extents{1, 2}})
      f(reduction_with_steps(op::sum{axes, false}, element, keeps));
    f(reduction_with_steps(op::mean{{2}, true}, element, keeps));
    f(reduction_with_steps(op::mean{{0, 1}, false}, element, keeps));
    f(reduction_with_steps(op::max_reduce{{2}, false}, element, keeps));
    f(reduction_with_steps(op::min_reduce{{0}, true}, element, keeps));
    f(reduction_with_steps(op::sum_to{{x[2]}}, element, keeps));
    f(reduction_with_steps(op::sum_to{{x[1], 1}}, element, keeps));
  }
}

}  // namespace neap::testing
