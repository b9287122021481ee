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
  if (!op.is_gradient() && op.statistics() > 0) op.eps = 1e-5;
  if (f == row_function::group_norm || f == row_function::group_norm_grad) op.groups = 2;
  if (f == row_function::batch_norm_relu_grad) op.gives_result = form.keeps_y;
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
/// Whether an operand is a statistic, whose type is what is computed in.
inline bool is_statistic(operand const& o) { return o.low == 0.5; }
inline std::vector<operand> operands_of_channels(op::fused_rows const& op, shape const& x, bool scale) {
  shape const channels{x[1]}, last{x.back()};
  shape const statistic = op.groups ? shape{x[0], op.groups} : channels;
  std::vector<operand> all{{x}};
  if (op.has_before()) all.push_back({x}), all.push_back({last});
  if (op.is_gradient()) {
    all.push_back({x, 0.0, 1.0});
    for (int j = 0; j < 2; ++j) all.push_back({statistic, 0.5, 1});
    if (op.follows() == row_function::batch_norm_relu_grad) all.push_back({channels}), all.push_back({channels});
    else if (scale) all.push_back({channels});
  } else if (scale) {
    for (int j = 0; j < 2; ++j) all.push_back({channels});
  }
  if (op.has_after()) all.push_back({last}), all.push_back({x});
  return all;
}
/// Its operands, x being [..., rows, columns], or [N, C, ...].
inline std::vector<operand> operands_of(op::fused_rows const& op, shape const& x, bool scale) {
  if (op.is_of_channels()) return operands_of_channels(op, x, scale);
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
