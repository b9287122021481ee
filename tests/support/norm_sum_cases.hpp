// Cases (kernel_cases.hpp) of functions of rows with programs beside them (op::fused): norms and their gradients
// between sums, which are one launch on devices; and others.
#pragma once

#include "fused_on_device.hpp"
#include "fused_rows_programs.hpp"
#include "operator_cases.hpp"

#include <neap/ir/operators/fused.hpp>

namespace neap::testing {

/// The sum of a program's two inputs.
inline element_program sum_program(dtype t) {
  element_program make(2);
  make.add(op::add{}, t, {0, 1});
  return make;
}

struct norm_sum_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns}, w{e.columns}, r{e.rows};
    dtype const c = computed_in(t);
    auto const sum = sum_program(t);
    auto const x = m.random(t, s), y = m.random(t, s), g = m.random(t, s), weight = m.random(t, w),
               bias = m.random(t, w), mean = m.random(c, r), rstd = m.random(c, r, 0.5, 1);
    auto const whole = [&] { return m.unwritten(t, s); };
    auto const number = [&] { return m.unwritten(c, r); };

    auto normed = op::fused::of(op::layer_norm{});  // h = x + y, read again
    normed.prologue = sum, normed.keeps_x = true;
    run_operator(b, m, normed, {x, y, weight, bias}, {whole(), whole(), number(), number()});
    normed.epilogue = sum, normed.keeps_y = true;
    run_operator(b, m, normed, {x, y, weight, bias, g}, {whole(), whole(), whole(), number(), number()});
    auto by_root = op::fused::of(op::rms_norm{});
    by_root.prologue = sum;
    run_operator(b, m, by_root, {x, y, weight}, {whole(), number()});

    auto gradient = op::fused::of(op::layer_norm_grad{});
    gradient.epilogue = sum;
    run_operator(b, m, gradient, {g, x, mean, rstd, weight, y}, {whole(), m.unwritten(t, w), m.unwritten(t, w)});
    gradient.prologue = sum;
    run_operator(b, m, gradient, {g, y, x, mean, rstd, y}, {whole()});
    auto of_root = op::fused::of(op::rms_norm_grad{});
    of_root.epilogue = sum, of_root.keeps_y = true;
    run_operator(b, m, of_root, {g, x, rstd, weight, y}, {whole(), whole(), m.unwritten(t, w)});
  }
};

/// A norm of a sum of which one operand is a part of rows: several launches on devices.
struct norm_of_part_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto by_root = op::fused::of(op::rms_norm{});
    by_root.prologue = sum_program(t);
    auto const part = slice_view(m.random(t, {e.rows, 2 * e.columns}), 1, 1, e.columns), y = m.random(t, s);
    run_operator(b, m, by_root, {part, y}, {m.unwritten(t, s), m.unwritten(computed_in(t), {e.rows})});
  }
};

/// All functions with the programs of fused_rows_cases.hpp.
struct rows_program_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    each_rows_form([&](anchor f, rows_form const& form) {
      auto const op = rows_with_programs(f, t, form);
      shape const x = op.is_of_channels() ? shape{e.rows, 4, e.columns} : shape{e.rows, e.columns};
      std::vector<tensor_ref> in, out;
      std::vector<tensor_layout> from, to;
      for (auto const& o : operands_of(op, x, form.scale)) {
        in.push_back(m.random(is_statistic(o) ? computed_in(t) : t, o.dims, o.low, o.high));
        from.push_back(tensor_layout::dense({in.back().element, o.dims}));
      }
      shape_context c("fused", from);
      op.infer(c);
      for (auto const& rule : c.outputs()) {
        to.push_back(rule.layout);
        out.push_back(m.unwritten(rule.layout.type.element, rule.layout.type.dims));
      }
      run_fused(b, op, {in, out, m.work(op.workspace({from, to}))});
    });
  }
};

}  // namespace neap::testing
