// Functions of rows with programs before and after (op::fused_rows), of each kind, and their operands.
#pragma once

#include <neap/ir/operators/fused_rows.hpp>
#include <neap/ir/standard_operators.hpp>

#include "operand.hpp"

#include <cstdint>
#include <vector>

namespace neap::testing {

/// What a function of rows has beside it.
struct rows_form {
  bool before = true, after = true, keeps_x = false, keeps_y = false, scale = true;
};

/// The function with a program before: (a + b) * 0.5 - c, c being a vector; and one after: relu(y * c) + b.
inline op::fused_rows rows_with_programs(row_function f, dtype element, rows_form form) {
  op::fused_rows op;
  op.function = static_cast<std::int64_t>(f);
  if (f == row_function::layer_norm || f == row_function::rms_norm) op.eps = 1e-5;
  if (form.before) {
    op::fused_maker make(3);
    make.add(op::sub{}, element, {*make.add(op::mul_scalar{0.5}, element, {*make.add(op::add{}, element, {0, 1})}), 2});
    op.set_before(make.made());
    op.keeps_x = form.keeps_x;
  }
  if (form.after) {
    op::fused_maker make(3);
    make.add(op::add{}, element, {*make.add(op::relu{}, element, {*make.add(op::mul{}, element, {0, 1})}), 2});
    op.set_after(make.made());
    op.keeps_y = form.keeps_y;
  }
  return op;
}
/// Its operands, x being [..., rows, columns].
inline std::vector<operand> operands_of(op::fused_rows const& op, shape const& x, bool scale) {
  shape const vector{x.back()};
  shape rows = x;
  rows.erase(rows.rank() - 1);
  std::vector<operand> all{{x}};
  if (op.has_before()) all.push_back({x}), all.push_back({vector});
  if (op.is_gradient()) {
    bool const log = op.follows() == row_function::log_softmax_grad;
    all.push_back({x, log ? -3.0 : 0.0, log ? 0.0 : 1.0});
    for (int j = 0; j < op.statistics(); ++j) all.push_back({rows, 0.5, 1});
    if (op.statistics() && scale) all.push_back({vector});
  } else if (op.statistics() && scale) {
    for (int j = 0; j < op.statistics(); ++j) all.push_back({vector});
  }
  if (op.has_after()) all.push_back({vector}), all.push_back({x});
  return all;
}

/// f(function, form) for all of them.
template <class F>
void each_rows_form(F const& f) {
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(row_function::count); ++k)
    for (int bits = 0; bits < 32; ++bits) {
      rows_form const form{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      if ((!form.before && !form.after) || (form.keeps_x && !form.before) || (form.keeps_y && !form.after)) continue;
      f(static_cast<row_function>(k), form);
    }
}

}  // namespace neap::testing
