// Cases (kernel_cases.hpp) of norms of channels between the chains that are one launch with them on devices
// (cuda/kernels/fused_norms.cuh).
#pragma once

#include "fused_on_device.hpp"
#include "fused_rows_programs.hpp"
#include "operator_cases.hpp"

#include <neap/ir/operators/fused.hpp>

namespace neap::testing {

/// a + b, if it adds; then relu, or its gradient by the next input.
enum class chain_end { none, relu, relu_grad };
inline element_program short_chain(dtype t, bool adds, chain_end end) {
  int const first = adds ? 2 : 1;
  element_program make(static_cast<std::size_t>(first + (end == chain_end::relu_grad ? 1 : 0)));
  int const sum = adds ? *make.add(op::add{}, t, {0, 1}) : 0;
  if (end == chain_end::relu) make.add(op::relu{}, t, {sum});
  if (end == chain_end::relu_grad) make.add(op::relu_grad{}, t, {sum, first});
  return make;
}

struct channel_chain_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    for (auto const& s : {shape{e.rows, 4, e.columns}, shape{e.rows, e.columns}})
      if (s.rank() > 2 || e.columns % 2 == 0) run_norms(b, m, t, s);
  }

 private:
  template <class B>
  static void run_norms(B& b, case_memory& m, dtype t, shape const& s) {
    shape const channels{s[1]}, groups{s[0], 2};
    dtype const c = computed_in(t);
    auto const x = m.random(t, s), y = m.random(t, s), g = m.random(t, s), z = m.random(t, s),
               w = m.random(t, channels), v = m.random(t, channels), mean = m.random(c, channels),
               rstd = m.random(c, channels, 0.5, 1), group_mean = m.random(c, groups),
               group_rstd = m.random(c, groups, 0.5, 1);
    auto const whole = [&] { return m.unwritten(t, s); };
    auto const vector = [&] { return m.unwritten(t, channels); };
    auto const of = [&](shape const& dims) { return m.unwritten(c, dims); };

    auto norm = op::fused::of(op::batch_norm{});
    norm.epilogue = short_chain(t, false, chain_end::relu);
    run_operator(b, m, norm, {x, w, v}, {whole(), of(channels), of(channels)});
    norm.epilogue = short_chain(t, true, chain_end::relu), norm.keeps_y = true;
    run_operator(b, m, norm, {x, w, v, y}, {whole(), whole(), of(channels), of(channels)});
    norm.prologue = short_chain(t, true, chain_end::none), norm.keeps_x = true;
    run_operator(b, m, norm, {x, y, w, g}, {whole(), whole(), whole(), of(channels), of(channels)});

    auto gradient = op::fused::of(op::batch_norm_grad{});
    gradient.prologue = short_chain(t, true, chain_end::relu_grad), gradient.keeps_x = true;
    run_operator(b, m, gradient, {x, y, z, g, mean, rstd, w}, {whole(), whole(), vector(), vector()});
    gradient.prologue = short_chain(t, false, chain_end::relu_grad), gradient.keeps_x = false;
    gradient.epilogue = short_chain(t, true, chain_end::none);
    run_operator(b, m, gradient, {x, z, g, mean, rstd, y}, {whole()});
    auto of_relu = op::fused::of(op::batch_norm_relu_grad{true});
    of_relu.prologue = short_chain(t, true, chain_end::none);
    run_operator(b, m, of_relu, {x, y, g, mean, rstd, w, v}, {whole(), vector(), vector(), whole()});

    auto grouped = op::fused::of(op::group_norm{2, 1e-5});
    grouped.prologue = short_chain(t, true, chain_end::none), grouped.keeps_x = true;
    grouped.epilogue = short_chain(t, false, chain_end::relu);
    run_operator(b, m, grouped, {x, y, w, v}, {whole(), whole(), of(groups), of(groups)});
    auto back = op::fused::of(op::group_norm_grad{2});
    back.prologue = short_chain(t, false, chain_end::relu_grad);
    back.epilogue = short_chain(t, true, chain_end::none);
    run_operator(b, m, back, {x, z, g, group_mean, group_rstd, w, y}, {whole(), vector(), vector()});
  }
};

}  // namespace neap::testing
