// Cases (kernel_cases.hpp) of standard operators whose kernels have a form of their own on devices: each runs operators on
// operands of many layouts, as an executable would.
#pragma once

#include "elementwise_cases.hpp"
#include "kernel_cases.hpp"

#include <neap/backend/kernels/pool2d.hpp>
#include <neap/ir/operators/dropout.hpp>
#include <neap/ir/operators/image.hpp>
#include <neap/ir/operators/multinomial.hpp>
#include <neap/ir/operators/picking.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/update.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

namespace neap::testing {

inline std::vector<tensor_layout> layouts_of(std::initializer_list<tensor_ref> const& tensors) {
  std::vector<tensor_layout> all;
  for (auto const& t : tensors) all.push_back({{t.element, t.dims}, t.strides, 0});
  return all;
}

/// Runs an operator's kernel, with the workspace that it needs.
template <class B, class Op>
void run_operator(B& b, case_memory& m, Op const& op, std::initializer_list<tensor_ref> in,
                  std::initializer_list<tensor_ref> out) {
  kernel_arguments a{{in.begin(), in.size()}, {out.begin(), out.size()}};
  if constexpr (requires(work_context const& c) { op.workspace(c); }) {
    auto const from = layouts_of(in), to = layouts_of(out);
    a.workspace = m.work(op.workspace({from, to}));
  }
  run(b, op, a);
}

/// A scalar of i64.
inline tensor_ref number(case_memory& m, std::int64_t value) {
  auto const x = m.zeros(dtype::i64, {});
  *x.as<std::int64_t>() = value;
  return x;
}

struct update_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    dtype const c = computed_in(t);
    auto const g = m.random(t, s);
    auto const weight = [&] { return m.random(t, s); };
    auto const state = [&] { return m.random(c, s, 0.1, 1); };
    auto const settings = [&](std::int64_t n) { return m.random(dtype::f64, {n}, 0.1, 0.9); };
    {
      auto const w = weight(), v = weight();
      run_operator(b, m, op::sgd{0.1, 0.01}, {w, g}, {w});
      run_operator(b, m, op::sgd{}, {v, g, settings(2)}, {v});
    }
    {
      auto const w = weight(), v = weight(), x = state(), y = state();
      run_operator(b, m, op::momentum{0.1, 0.9, 0.1, 0.01, true}, {w, g, x}, {w, x});
      run_operator(b, m, op::momentum{}, {v, g, y, settings(4)}, {v, y});
    }
    {
      auto const w = weight(), v = weight(), x = state(), y = state();
      run_operator(b, m, op::lion{0.1, 0.9, 0.99, 0.01}, {w, g, x}, {w, x});
      run_operator(b, m, op::lion{}, {v, g, y, settings(4)}, {v, y});
    }
    {
      auto const w = weight(), v = weight(), x = state(), y = state(), p = state(), q = state();
      run_operator(b, m, op::adam{0.1, 0.9, 0.999, 1e-8, 0.01}, {w, g, x, p, number(m, 1)}, {w, x, p});
      run_operator(b, m, op::adamw{}, {v, g, y, q, number(m, 1000), settings(5)}, {v, y, q});
    }
    {
      auto const w = weight(), v = m.random(t, {e.columns}), dv = m.random(t, {e.columns}),
                 row = m.random(c, {e.rows}, 0.5, 1), column = m.random(c, {e.columns}, 0.5, 1),
                 squares = m.random(c, {e.columns}, 0.5, 1);
      run_operator(b, m, op::adafactor{}, {w, g, column, row, number(m, 3)}, {w, column, row});
      run_operator(b, m, op::adafactor{}, {v, dv, squares, number(m, 7), settings(5)}, {v, squares});
    }
    auto const count = number(m, 41);
    run_operator(b, m, op::increment{}, {count}, {count});
    auto const total = m.unwritten(dtype::f64, {}), more = m.unwritten(dtype::f64, {}),
               factor = m.unwritten(dtype::f64, {}), one = m.unwritten(dtype::f64, {});
    run_operator(b, m, op::sum_squares{}, {g}, {total});
    run_operator(b, m, op::sum_squares{}, {g, total}, {more});
    run_operator(b, m, op::clip_factor{0.5}, {more}, {factor});
    run_operator(b, m, op::clip_factor{1e9}, {more}, {one});
    // steps that count, and that do not
    for (double verdict : {1.0, std::numeric_limits<double>::infinity()}) {
      auto const given = settings(3), sum = m.zeros(dtype::f64, {}), w = weight(), was = weight(), v = weight(),
                 scale = m.random(dtype::f64, {}, 1, 2);
      static_cast<double*>(given.data)[2] = *static_cast<double*>(sum.data) = verdict;
      auto const step = number(m, 7), good = number(m, 4);
      run_operator(b, m, op::sgd{}, {v, g, given}, {v});
      run_operator(b, m, op::rollback_counter{}, {step, sum}, {step});
      run_operator(b, m, op::rollback_if_overflow{}, {w, was, sum}, {w});
      run_operator(b, m, op::update_loss_scale{2, 0.5, 5}, {scale, good, sum}, {scale, good});
    }
  }
};

struct dropout_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto const x = m.random(t, s), step = number(m, 5), in_place = m.copy(x);
    for (op::dropout const& op : {op::dropout{0.3, 11, 0}, op::dropout{0.3, 11, 8}, op::dropout{0.3, 11, 3},
                                  op::dropout{0, 1, 0}, op::dropout{1, 1, 0}})
      run_operator(b, m, op, {x, step}, {m.unwritten(t, s)});
    run_operator(b, m, op::dropout_grad{0.5, -7, 0}, {transposed(m.random(t, {e.columns, e.rows})), step},
                 {m.unwritten(t, s)});
    run_operator(b, m, op::dropout{0.5, 3, 0}, {in_place, step}, {in_place});
    run_operator(b, m, op::dropout{0.5, 3, 0}, {m.random(dtype::f64, s), step}, {m.unwritten(dtype::f64, s)});
  }
};

struct reduction_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns}, deep{2, e.rows, e.columns};
    auto const x = m.random(t, s, -1, 1), z = m.random(t, deep, -1, 1);
    auto const kept = [](shape const& of, extents const& axes) {
      return op::detail::reduced_axes(axes, of.rank()).kept(of, false);
    };
    for (extents const& axes : {extents{0}, extents{1}, extents{}}) {
      run_operator(b, m, op::sum{axes}, {x}, {m.unwritten(t, kept(s, axes))});
      run_operator(b, m, op::mean{axes}, {x}, {m.unwritten(t, kept(s, axes))});
      run_operator(b, m, op::max_reduce{axes}, {x}, {m.unwritten(t, kept(s, axes))});
    }
    for (extents const& axes : {extents{1}, extents{0, 2}, extents{0}, extents{2}})
      run_operator(b, m, op::sum{axes}, {z}, {m.unwritten(t, kept(deep, axes))});
    run_operator(b, m, op::min_reduce{{1}}, {transposed(m.random(t, {e.columns, e.rows}))}, {m.unwritten(t, {e.rows})});
    run_operator(b, m, op::sum{{0}}, {transposed(m.random(t, {e.columns, e.rows}, -1, 1))},
                 {m.unwritten(t, {e.columns})});
    run_operator(b, m, op::sum_to{{e.columns}}, {z}, {m.unwritten(t, {e.columns})});
    run_operator(b, m, op::sum_to{{e.rows, 1}}, {z}, {m.unwritten(t, {e.rows, 1})});
    run_operator(b, m, op::sum{{1}}, {m.random(dtype::i32, s, -9, 9)}, {m.unwritten(dtype::i64, {e.rows})});
    run_operator(b, m, op::sum{}, {m.random(dtype::boolean, s, -1, 1)}, {m.unwritten(dtype::i64, {})});
    run_operator(b, m, op::max_reduce{{0}}, {m.random(dtype::i64, s, -9, 9)}, {m.unwritten(dtype::i64, {e.columns})});
    run_operator(b, m, op::sum{}, {m.random(dtype::f64, s, -1, 1)}, {m.unwritten(dtype::f64, {})});
  }
};

struct picking_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    std::int64_t const n = e.rows > 0 ? 40 : 0, k = e.columns > 0 ? 9 : 0;
    auto const x = m.random(t, s), whole = m.random(dtype::i64, s, -100, 100), index = m.numbers({n}, e.rows),
               columns = m.numbers({k}, e.columns), places = m.numbers(s, e.columns);
    run_operator(b, m, op::embedding{}, {x, index}, {m.unwritten(t, {n, e.columns})});
    run_operator(b, m, op::embedding_grad{e.rows}, {m.random(t, {n, e.columns}), index}, {m.unwritten(t, s)});
    run_operator(b, m, op::gather{1}, {x, places}, {m.unwritten(t, s)});
    run_operator(b, m, op::gather{-1}, {whole, places}, {m.unwritten(dtype::i64, s)});
    run_operator(b, m, op::scatter_add{1, e.columns}, {x, places}, {m.unwritten(t, s)});
    run_operator(b, m, op::index_select{0}, {x, index}, {m.unwritten(t, {n, e.columns})});
    run_operator(b, m, op::index_select{1}, {x, columns}, {m.unwritten(t, {e.rows, k})});
    run_operator(b, m, op::index_add{0}, {x, index, m.random(t, {n, e.columns})}, {m.unwritten(t, s)});
    run_operator(b, m, op::index_add{1}, {x, columns, m.random(t, {e.rows, k})}, {m.unwritten(t, s)});
    run_operator(b, m, op::index_add{0}, {whole, index, m.random(dtype::i64, {n, e.columns}, -9, 9)},
                 {m.unwritten(dtype::i64, s)});
    if (e.rows > 0) run_operator(b, m, op::one_hot{e.rows, t}, {index}, {m.unwritten(t, {n, e.rows})});
  }
};

/// Lines in one order: the host's bits.
struct line_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto const x = m.random(t, s), whole = m.random(dtype::i32, s, -100, 100);
    run_operator(b, m, op::cumsum{0}, {x}, {m.unwritten(t, s)});
    run_operator(b, m, op::cumsum{1, true}, {whole}, {m.unwritten(dtype::i64, s)});
    for (std::int64_t axis : {0, 1}) {
      std::int64_t const n = s[static_cast<int>(axis)], other = s[static_cast<int>(1 - axis)];
      if (n > 0) {
        run_operator(b, m, op::arg_max{axis}, {x}, {m.unwritten(dtype::i64, {other})});
        run_operator(b, m, op::arg_max{axis}, {whole}, {m.unwritten(dtype::i64, {other})});
      }
      std::int64_t const k = std::min<std::int64_t>(n, 3);
      shape const picked = axis == 0 ? shape{k, e.columns} : shape{e.rows, k};
      for (bool largest : {true, false})
        run_operator(b, m, op::topk{k, axis, largest}, {x}, {m.unwritten(t, picked), m.unwritten(dtype::i64, picked)});
      run_operator(b, m, op::topk{k, axis, true}, {whole},
                   {m.unwritten(dtype::i32, picked), m.unwritten(dtype::i64, picked)});
    }
    if (e.columns < 1 || e.specials) return;
    auto const weights = m.random(t, s, 0.1, 1), step = number(m, 3);
    run_operator(b, m, op::multinomial{4, true, 17, 0}, {weights, step}, {m.unwritten(dtype::i64, {e.rows, 4})});
    std::int64_t const few = std::min<std::int64_t>(e.columns, 3);
    run_operator(b, m, op::multinomial{few, false, 17, 2}, {weights, step}, {m.unwritten(dtype::i64, {e.rows, few})});
  }
};

struct running_sum_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto const x = m.random(t, s, -1, 1), in_place = m.copy(x);
    run_operator(b, m, op::cumsum{1}, {x}, {m.unwritten(t, s)});
    run_operator(b, m, op::cumsum{-1, true}, {x}, {m.unwritten(t, s)});
    run_operator(b, m, op::cumsum{1}, {in_place}, {in_place});
  }
};

/// The host's are of f32 and f64.
struct image_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype, case_extents e) const {
    dtype const t = dtype::f32;
    shape const x{2, 2, e.rows + 3, e.columns + 3};
    auto const image = m.random(t, x);
    for (int padding : {0, 1}) {
      extents const window{3, 2}, stride{2, 1}, around{padding, padding};
      shape const y = pool2d_shape(x, {{3, 2}, {2, 1}, {padding, padding}});
      auto const place = m.unwritten(dtype::u8, y), dy = m.random(t, y);
      run_operator(b, m, op::max_pool2d{window, stride, around}, {image}, {m.unwritten(t, y), place});
      run_operator(b, m, op::max_pool2d_grad{x, window, stride, around}, {dy, place}, {m.unwritten(t, x)});
      for (bool count : {true, false}) {
        run_operator(b, m, op::avg_pool2d{window, stride, around, count}, {image}, {m.unwritten(t, y)});
        run_operator(b, m, op::avg_pool2d_grad{x, window, stride, around, count}, {dy}, {m.unwritten(t, x)});
      }
    }
    for (shape const& small : {shape{2, 2, 2, 3}, shape{2, 2, 1, 1}, shape{2, 2, e.rows + 5, 7}}) {
      auto const dy = m.random(t, small);
      run_operator(b, m, op::adaptive_avg_pool2d{small[2], small[3]}, {image}, {m.unwritten(t, small)});
      run_operator(b, m, op::adaptive_avg_pool2d_grad{x}, {dy}, {m.unwritten(t, x)});
      for (auto const& [bilinear, corners] : {std::pair{false, false}, {true, false}, {true, true}}) {
        run_operator(b, m, op::interpolate{small[2], small[3], bilinear, corners}, {image}, {m.unwritten(t, small)});
        run_operator(b, m, op::interpolate_grad{x, bilinear, corners}, {dy}, {m.unwritten(t, x)});
      }
    }
  }
};

}  // namespace neap::testing
