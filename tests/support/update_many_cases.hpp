// Cases (kernel_cases.hpp) of updates of several tensors in one launch.
#pragma once

#include "operator_cases.hpp"

#include <neap/cuda/kernels/update_many.cuh>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::testing {

/// Updates of ten tensors by one kind of optimizer each, with two settings that take turns: odd extents, several chunks,
/// addresses that no pack begins at, gaps, no elements. On devices in as few launches as there are, or one by one.
struct update_many_case {
  static constexpr bool same_order = false;
  bool one_by_one = false;

  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    all_of(b, m, t, e, [&](int k) { return op::sgd{0.1, k % 2 ? 0 : 0.01}; });
    all_of(b, m, t, e, [&](int k) { return op::momentum{0.1, 0.9, 0.1, k % 2 ? 0 : 0.01, true}; });
    all_of(b, m, t, e, [&](int k) { return op::lion{0.1, 0.9, 0.99, k % 2 ? 0 : 0.01}; });
    all_of(b, m, t, e, [&](int k) { return op::adam{0.1, 0.9, 0.999, 1e-8, k % 2 ? 0 : 0.01}; });
    all_of(b, m, t, e, [&](int) { return op::adamw{}; });
  }

 private:
  template <class B, class F>
  void all_of(B& b, case_memory& m, dtype t, case_extents e, F const& op_of) const {
    using Op = decltype(op_of(0));
    constexpr int states = detail::update_states<Op>;
    std::vector<shape> const dims{{e.rows, e.columns}, {e.columns}, {},  {3, e.columns},         {e.rows},
                                  {0, e.columns},      {e.rows, 3}, {7}, {2, e.rows, e.columns}, {e.columns, e.rows}};
    auto const step = number(m, 3), numbers = m.random(dtype::f64, {5}, 0.1, 0.9);
    std::vector<Op> ops;
    std::vector<std::vector<tensor_ref>> in, out;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      ops.push_back(op_of(static_cast<int>(k)));
      auto const tensor = [&](dtype element, double low) {
        bool const gaps = k == 9 && dims[k].rank() == 2;  // rows of another tensor's columns
        auto const x = m.random(element, gaps ? shape{dims[k][1], dims[k][0]} : dims[k], low, 1);
        return gaps ? transposed(x) : x;
      };
      dtype const c = computed_in(t);
      auto& x = in.emplace_back();
      x.push_back(tensor(t, -1)), x.push_back(tensor(t, -1));
      for (int s = 0; s < states; ++s) x.push_back(tensor(c, 0.1));
      if (states == 2) x.push_back(step);
      if (states == 2 && op_of(0).weight_decay == 0) x.push_back(numbers);
      auto& y = out.emplace_back();
      y.push_back(x[0]);
      for (int s = 0; s < states; ++s) y.push_back(x[static_cast<std::size_t>(s) + 2]);
    }
    if constexpr (device_backend<B>) {
      if (!one_by_one) {
        std::vector<detail::update_call> calls;
        for (std::size_t k = 0; k < dims.size(); ++k) calls.push_back({&ops[k], {in[k], out[k], nullptr}});
        run_updates<Op>(b, calls);
        return;
      }
    }
    for (std::size_t k = 0; k < dims.size(); ++k) run(b, ops[k], kernel_arguments{in[k], out[k], nullptr});
  }
};

}  // namespace neap::testing
