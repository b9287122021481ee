// Cases (kernel_cases.hpp) of updates with products of matrices in them: muon, and updates by a gradient that is a product.
#pragma once

#include "operator_cases.hpp"

#include <neap/cuda/kernels/matmul.hpp>
#include <neap/cuda/kernels/muon.cuh>
#include <neap/ir/operators/matmul_update.hpp>

#include <cstdint>
#include <limits>

namespace neap::testing {

/// Of a weight [rows, columns] in t, with a momentum in f32 or f64.
struct muon_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    dtype const c = computed_in(t);
    auto const g = m.random(t, s, -1, 1);
    for (bool const nesterov : {true, false}) {
      auto const w = m.random(t, s, -1, 1), x = m.random(c, s, -1, 1);
      op::muon op{0.1, 0.9, 0.01, nesterov, 3};
      op.rms = nesterov ? 0 : 0.2;
      run_operator(b, m, op, {w, g, x}, {w, x});
    }
    // A step that counts, and one that does not, whose gradient has an infinity.
    for (double const verdict : {1.0, std::numeric_limits<double>::infinity()}) {
      auto const w = m.random(t, s, -1, 1), x = m.random(c, s, -1, 1), numbers = m.random(dtype::f64, {4}, 0.1, 0.9),
                 dw = m.random(t, s, -1, 1);
      numbers.as<double>()[3] = verdict;
      if (verdict > 1 && dw.count() > 0 && t == dtype::f32) dw.as<float>()[0] = std::numeric_limits<float>::infinity();
      run_operator(b, m, op::muon{}, {w, dw, x, numbers}, {w, x});
    }
  }
};

/// Of a weight [rows, columns] by a gradient that is a product over 19 rows of a batch, in one part and in three.
struct product_update_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    std::int64_t const batch = 19;
    shape const s{e.rows, e.columns};
    dtype const c = computed_in(t);
    for (std::int64_t const parts : {1, 3})
      for (int transposes = 0; transposes < 3; ++transposes) {
        bool const ta = transposes == 1, tb = transposes == 2;
        auto const left = m.random(t, ta ? shape{batch, e.rows} : shape{e.rows, batch}, -1, 1),
                   right = m.random(t, tb ? shape{e.columns, batch} : shape{batch, e.columns}, -1, 1);
        auto const weight = [&] { return m.random(c, s, -1, 1); };
        auto const state = [&] { return m.random(c, s, 0.1, 1); };
        auto const of = [&](auto const& update) {
          using Update = std::remove_cvref_t<decltype(update)>;
          return op::matmul_update<Update>{update, ta, tb, parts};
        };
        {
          auto const w = weight();
          run_operator(b, m, of(op::sgd{0.1, 0.01}), {w, left, right}, {w});
        }
        {
          auto const w = weight(), x = state(), numbers = m.random(dtype::f64, {4}, 0.1, 0.9);
          run_operator(b, m, of(op::momentum{}), {w, left, right, x, numbers}, {w, x});
        }
        {
          auto const w = weight(), x = state(), y = state();
          run_operator(b, m, of(op::adamw{0.1, 0.9, 0.999, 1e-8, 0.01}), {w, left, right, x, y, number(m, 3)},
                       {w, x, y});
        }
        if (transposes > 0) continue;
        auto const w = weight(), v = weight(), x = state(), y = state(), z = state();
        run_operator(b, m, of(op::adam{}), {w, left, right, x, y, number(m, 3)}, {w, x, y});
        run_operator(b, m, of(op::lion{0.1, 0.9, 0.99, 0.01}), {v, left, right, z}, {v, z});
      }
  }
};

}  // namespace neap::testing
