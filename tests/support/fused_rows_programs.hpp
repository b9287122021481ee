// Functions of rows with programs before and after (op::fused), of each kind, and their operands.
#pragma once

#include <neap/ir/operators/fused.hpp>
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
inline op::fused rows_with_programs(anchor f, dtype element, rows_form form) {
  op::fused op;
  op.middle = f;
  if (!op.is_gradient() && op.statistics() > 0) op.eps = 1e-5;
  if (f == anchor::group_norm || f == anchor::group_norm_grad) op.groups = 2;
  if (f == anchor::batch_norm_relu_grad) op.gives_result = form.keeps_y;
  if (form.before) {
    element_program make(3);
    make.add(op::sub{}, element, {*make.add(op::mul_scalar{0.5}, element, {*make.add(op::add{}, element, {0, 1})}), 2});
    op.prologue = make;
    op.keeps_x = form.keeps_x;
  }
  if (form.after) {
    element_program make(3);
    make.add(op::add{}, element, {*make.add(op::relu{}, element, {*make.add(op::mul{}, element, {0, 1})}), 2});
    op.epilogue = make;
    op.keeps_y = form.keeps_y;
  }
  return op;
}
/// Whether an operand is a statistic, whose type is what is computed in.
inline bool is_statistic(operand const& o) { return o.low == 0.5; }
inline std::vector<operand> operands_of_channels(op::fused const& op, shape const& x, bool scale) {
  shape const channels{x[1]}, last{x.back()};
  shape const statistic = op.groups ? shape{x[0], op.groups} : channels;
  std::vector<operand> all{{x}};
  if (!op.prologue.empty()) all.push_back({x}), all.push_back({last});
  if (op.is_gradient()) {
    all.push_back({x, 0.0, 1.0});
    for (int j = 0; j < 2; ++j) all.push_back({statistic, 0.5, 1});
    if (op.middle == anchor::batch_norm_relu_grad) all.push_back({channels}), all.push_back({channels});
    else if (scale) all.push_back({channels});
  } else if (scale) {
    for (int j = 0; j < 2; ++j) all.push_back({channels});
  }
  if (!op.epilogue.empty()) all.push_back({last}), all.push_back({x});
  return all;
}
/// Its operands, x being [..., rows, columns], or [N, C, ...].
inline std::vector<operand> operands_of(op::fused const& op, shape const& x, bool scale) {
  if (op.is_of_channels()) return operands_of_channels(op, x, scale);
  shape const vector{x.back()};
  shape rows = x;
  rows.erase(rows.rank() - 1);
  std::vector<operand> all{{x}};
  if (!op.prologue.empty()) all.push_back({x}), all.push_back({vector});
  if (op.is_gradient()) {
    bool const log = op.middle == anchor::log_softmax_grad;
    all.push_back({x, log ? -3.0 : 0.0, log ? 0.0 : 1.0});
    for (int j = 0; j < op.statistics(); ++j) all.push_back({rows, 0.5, 1});
    if (op.statistics() && scale) all.push_back({vector});
  } else if (op.statistics() && scale) {
    for (int j = 0; j < op.statistics(); ++j) all.push_back({vector});
  }
  if (!op.epilogue.empty()) all.push_back({vector}), all.push_back({x});
  return all;
}

/// f(function, form) for all of them.
template <class F>
void each_rows_form(F const& f) {
  for (auto k = static_cast<std::int64_t>(anchor::layer_norm); k < static_cast<std::int64_t>(anchor::matmul); ++k)
    for (int bits = 0; bits < 32; ++bits) {
      rows_form const form{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      if ((!form.before && !form.after) || (form.keeps_x && !form.before) || (form.keeps_y && !form.after)) continue;
      f(static_cast<anchor>(k), form);
    }
}

}  // namespace neap::testing
