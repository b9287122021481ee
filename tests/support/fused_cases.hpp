// Cases (kernel_cases.hpp) of fused programs: steps of one operation each, whose bits are the host's, on operands of many
// layouts and types; and any program, by the operators' own kernels.
#pragma once

#include "elementwise_cases.hpp"
#include "fused_on_device.hpp"
#include "operator_cases.hpp"
#include "random_fused.hpp"

#include <neap/ir/operators/fused.hpp>

#include <cstddef>
#include <vector>

namespace neap::testing {

struct fused_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns}, deep{2, e.rows, e.columns};
    dtype const wide = computed_in(t);
    auto const x = m.random(t, s), y = m.random(t, s), of_columns = m.random(t, {e.columns}),
               of_rows = m.random(wide, {e.rows, 1}), one = m.random(t, {}),
               back = transposed(m.random(t, {e.columns, e.rows})), z = m.random(t, deep);
    auto const yes = m.random(dtype::boolean, s, -1, 1);

    element_program chain(3);  // -max(x + columns, y)
    chain.add(op::neg{}, t, {*chain.add(op::maximum{}, t, {*chain.add(op::add{}, t, {0, 1}), 2})});
    run_operator(b, m, op::fused{chain}, {x, of_columns, y}, {m.unwritten(t, s)});
    run_operator(b, m, op::fused{chain}, {back, one, x}, {m.unwritten(t, s)});
    run_operator(b, m, op::fused{chain}, {z, x, of_columns}, {m.unwritten(t, deep)});
    auto const in_place = m.copy(x);
    run_operator(b, m, op::fused{chain}, {in_place, of_columns, y}, {in_place});
    auto const part = slice_view(m.copy(m.random(t, {e.rows, 2 * e.columns})), 1, 1, e.columns);
    run_operator(b, m, op::fused{chain}, {part, part, x}, {m.unwritten(t, s)});

    element_program mixed(4);  // yes and x > y ? x * 0.5 * rows in the wide type, and back : y
    auto const scaled = *mixed.add(op::mul_scalar{0.5}, wide, {*mixed.add(op::cast{wide}, wide, {0})});
    auto const narrow = *mixed.add(op::cast{t}, t, {*mixed.add(op::mul{}, wide, {scaled, 2})});
    auto const both = *mixed.add(op::mul{}, dtype::boolean, {*mixed.add(op::greater{}, dtype::boolean, {0, 1}), 3});
    mixed.add(op::where{}, t, {both, narrow, 1});
    run_operator(b, m, op::fused{mixed}, {x, y, of_rows, yes}, {m.unwritten(t, s)});
    run_operator(b, m, op::fused{mixed}, {back, one, of_rows, yes}, {m.unwritten(t, s)});

    element_program many(8);  // all inputs, and as many steps and results that wait as there may be
    std::vector<int> waiting;
    for (int k = 0; k < 8; k += 2) waiting.push_back(*many.add(op::sub{}, t, {k, k + 1}));
    int sum = waiting[0];
    for (int k = 1; k < 4; ++k) sum = *many.add(op::add{}, t, {sum, waiting[static_cast<std::size_t>(k)]});
    for (int k = 0; k < 4; ++k) sum = *many.add(op::clamp{-3.0 + k, 3}, t, {sum});
    while (many.step_count < element_program::max_steps) sum = *many.add(op::abs{}, t, {sum});
    run_operator(b, m, op::fused{many}, {x, y, of_columns, one, back, x, y, of_columns}, {m.unwritten(t, s)});
  }
};

/// Runs a step's operator on a backend of any kind.
template <class B, class... Op>
void run_step(B& b, int row, void const* bytes, kernel_arguments const& a, type_list<Op...>) {
  auto const one = [&]<class O>(type_tag<O>) {
    if (row == neap::detail::standard_row<O>) run(b, *static_cast<O const*>(bytes), a);
  };
  (one(type_tag<Op>{}), ...);
}

/// A program in f32 by the operators' own kernels or as one, on operands that are the same each time.
struct program_case {
  random_fused const& what;
  bool fused;

  template <class B>
  tensor_ref operator()(B& b, case_memory& m) const {
    std::vector<tensor_ref> values;
    for (auto const& t : what.inputs)
      values.push_back(m.random(t.element, t.dims, t.element == dtype::boolean ? -1 : -2));
    auto const last = what.program.step(what.program.step_count - 1).element;
    if (fused) {
      auto const out = m.unwritten(last, what.dims);
      run_fused(b, op::fused{what.program}, {values, {&out, 1}});
      return out;
    }
    what.program.for_each_step([&](int, element_step const& s, op::detail::step_operator const& f, void const* bytes) {
      std::vector<tensor_ref> in;
      for (int i = 0; i < f.arguments; ++i)
        in.push_back(values[static_cast<std::size_t>(s.operands[static_cast<std::size_t>(i)])]);
      auto const out = m.unwritten(s.element, what.dims);
      run_step(b, s.row, bytes, {in, {&out, 1}}, op::detail::step_list{});
      values.push_back(out);
    });
    return values.back();
  }
  /// Whether a step reads booleans alone: operators compute in whole numbers then, by other kernels.
  bool has_whole_numbers() const {
    for (int k = 0; k < what.program.step_count; ++k) {
      auto const s = what.program.step(k);
      bool whole = true;
      for (int i = 0; i < op::detail::step_at(s.row)->arguments; ++i) {
        auto const x = s.operands[static_cast<std::size_t>(i)];
        auto const element = x < what.program.inputs ? what.inputs[static_cast<std::size_t>(x)].element
                                                     : what.program.step(x - what.program.inputs).element;
        whole = whole && element == dtype::boolean;
      }
      if (whole) return true;
    }
    return false;
  }
};

}  // namespace neap::testing
