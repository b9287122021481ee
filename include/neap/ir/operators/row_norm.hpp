// Layer norm and RMS norm over the last axis. The forward operators keep a row's statistics for the gradient, so that it
// reads x once more and nothing else of its size. The gradients write dx over g or x where these die.
#pragma once

#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/movement.hpp>

namespace neap::inline v0::op {

namespace detail {
inline shape without_last(shape s) {
  if (s.rank()) s.erase(s.rank() - 1);
  return s;
}
/// Inputs from `first` on are vectors of `n` elements of x's type.
inline void require_vectors(shape_context& c, int first, std::int64_t n, std::string_view what) {
  for (int i = first; i < c.arity(); ++i) {
    require_dims(c, i, {n}, what);
    require_same_element(c, 0, i);
    require_dense(c, i);
  }
}
/// x, up to `vectors` of scale and shift -> y and `statistics` of each row.
inline void infer_row_norm(shape_context& c, int vectors, int statistics) {
  c.require_arity(1, 1 + vectors);
  require_floating(c, 0);
  require_rank(c, 0, 1, "the input");
  require_dense_rows(c, 0);
  require_vectors(c, 1, c.in(0).dims.back(), "scale and shift");
  c.fresh(c.in(0));
  for (int j = 0; j < statistics; ++j) c.fresh(tensor_type{computed_in(c.in(0).element), without_last(c.in(0).dims)});
}
/// g, x, the statistics, [scale] -> dx, and with a scale `vectors` gradients of scale and shift.
inline void infer_row_norm_grad(shape_context& c, int vectors, int statistics) {
  int const fixed = 2 + statistics;
  c.require_arity(fixed, fixed + 1);
  require_floating(c, 0);
  require_rank(c, 0, 1, "the gradient");
  require_same_type(c, 0, 1);
  for (int i : {0, 1}) require_dense_rows(c, i);
  for (int i = 2; i < fixed; ++i) {
    require_dims(c, i, without_last(c.in(1).dims), "a statistic");
    require_dense(c, i);
  }
  require_vectors(c, fixed, c.in(1).dims.back(), "scale");
  c.fresh(c.in(1));
  if (c.arity() > fixed)
    for (int j = 0; j < vectors; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims.back()}});
}
inline value_id in_element(gradient_context& c, value_id v, dtype t) {
  return c.type(v).element == t ? v : c.emit(cast{t}, {v});
}
/// One number a row as it broadcasts against the rows.
inline value_id along_rows(gradient_context& c, value_id v) {
  shape dims = c.type(v).dims;
  dims.push_back(1);
  return c.emit(reshape{dims}, {dense(c, v)});
}
/// What a norm's statistics add to its gradient to x: that of a group's mean, dm / n, and that of its rstd r,
/// -r^3 (x - mean) dr / n, where n elements make a group. The mean is output 1 if there are two statistics; `dx`, what y
/// gave, may be nothing, and so may the result. x is seen as `groups` (dense if that is not its shape), a statistic as
/// `each`, which broadcasts to it.
inline value_id with_statistics(gradient_context& c, value_id dx, int statistics, shape const& groups,
                                shape const& each) {
  value_id const of_mean = statistics > 1 ? c.grad(1) : nothing<value_id>, of_rstd = c.grad(statistics);
  if (!c.wants(0) || (of_mean == nothing<value_id> && of_rstd == nothing<value_id>)) return dx;
  auto const x = c.type(c.in(0));
  auto const number = computed_in(x.element);
  auto const seen = [&](value_id v) { return c.emit(reshape{each}, {dense(c, v)}); };
  auto const count = [](shape const& s) { return static_cast<double>(std::max<std::int64_t>(1, elements(s))); };
  double const share = count(each) / count(groups);
  value_id more = nothing<value_id>;
  if (of_rstd != nothing<value_id>) {
    value_id const r = seen(c.out(statistics)), cube = c.emit(mul{}, {c.emit(square{}, {r}), r});
    value_id const slope = c.emit(mul_scalar{-share}, {c.emit(mul{}, {cube, seen(of_rstd)})});
    value_id h = in_element(c, groups == x.dims ? c.in(0) : c.emit(reshape{groups}, {c.in(0)}), number);
    if (statistics > 1) h = c.emit(sub{}, {h, seen(c.out(1))});
    more = c.emit(mul{}, {h, slope});
  }
  if (of_mean != nothing<value_id>) {
    value_id const part = c.emit(mul_scalar{share}, {seen(of_mean)});
    more = more == nothing<value_id> ? c.emit(broadcast_to{groups}, {part}) : c.emit(add{}, {more, part});
  }
  if (!(groups == x.dims)) more = c.emit(reshape{x.dims}, {dense(c, more)});
  more = in_element(c, more, x.element);
  return dx == nothing<value_id> ? more : c.emit(add{}, {dx, more});
}
/// The gradient of a norm with optional scale and shift to y = output 0 (`grad` of g, x, the statistics and the scale
/// gives those of x, scale and shift) and to the statistics, which are seen as with_statistics has it.
inline void norm_gradient(gradient_context& c, operator_view grad, int statistics, value_id g, shape const& groups,
                          shape const& each) {
  value_id dx = nothing<value_id>;
  if (g != nothing<value_id>) {
    std::vector<value_id> in{g, c.in(0)};
    for (int j = 1; j <= statistics; ++j) in.push_back(c.out(j));
    if (c.arity() > 1) in.push_back(c.in(1));
    auto const all = c.emit_all(grad, span_of(in));
    dx = all[0];
    for (int i = 1; i < c.arity(); ++i)
      if (c.wants(i)) c.give(i, all[static_cast<std::size_t>(i)]);
  }
  dx = with_statistics(c, dx, statistics, groups, each);
  if (c.wants(0)) c.give(0, dx);
}
inline void row_norm_gradient(gradient_context& c, operator_view grad, int statistics) {
  value_id const g = c.grad();
  auto const x = c.type(c.in(0)).dims;
  shape each = x;
  each[each.rank() - 1] = 1;
  norm_gradient(c, grad, statistics, g == nothing<value_id> ? g : dense_rows(c, g), x, each);
}

/// Row axes of the first `inputs` are those of the first `outputs`; what else comes out is summed over them.
inline void relate_rows(dim_context& c, int inputs, int outputs) {
  int const rows = c.in(0).rank() - 1;
  for (int i = 0; i < inputs; ++i)
    for (int k = 0; k < rows; ++k) {
      for (int j = 0; j < outputs; ++j) c.same(i, k, j, k);
      if (outputs < c.output_count()) c.reduced(i, k, k);
    }
}
}  // namespace detail

/// g, x, mean, rstd, [w] -> dx, [dw, db].
struct layer_norm_grad {
  static constexpr std::string_view name = "layer_norm_grad";
  static constexpr bool elementwise = true;  // dx over g or x: a row is read before it is written; dw, db come last
  static constexpr double flops = 14;
  void infer(shape_context& c) const { detail::infer_row_norm_grad(c, 2, 2); }
  void relate(dim_context& c) const { detail::relate_rows(c, 4, 1); }
  bytes_t workspace(work_context const& c) const {
    return c.out.size() > 1 ? neap::layer_norm_backward_workspace(c.in[1].type) : 0;
  }
};
/// x, [w, [b]] -> y = (x - mean) * rstd * w + b over the last axis; mean and rstd of each row (Ba et al. 2016).
struct layer_norm {
  static constexpr std::string_view name = "layer_norm";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 8;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&layer_norm::eps>("eps")}; }
  void infer(shape_context& c) const { detail::infer_row_norm(c, 2, 2); }
  void relate(dim_context& c) const { detail::relate_rows(c, 1, 3); }
  void gradient(gradient_context& c) const { detail::row_norm_gradient(c, view_of(layer_norm_grad{}), 2); }
};
template <class Backend>
void run(Backend& b, layer_norm const& op, kernel_arguments const& a) {
  neap::layer_norm(b, a.out[0], a.out[1], a.out[2], a.in[0], detail::optional(a.in, 1), detail::optional(a.in, 2),
                   op.eps);
}
template <class Backend>
void run(Backend& b, layer_norm_grad const&, kernel_arguments const& a) {
  neap::layer_norm_backward(b, a.out[0], detail::optional(a.out, 1), detail::optional(a.out, 2), a.in[0], a.in[1],
                            a.in[2], a.in[3], detail::optional(a.in, 4), a.workspace);
}

/// g, x, rstd, [w] -> dx, [dw].
struct rms_norm_grad {
  static constexpr std::string_view name = "rms_norm_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 11;
  void infer(shape_context& c) const { detail::infer_row_norm_grad(c, 1, 1); }
  void relate(dim_context& c) const { detail::relate_rows(c, 3, 1); }
  bytes_t workspace(work_context const& c) const {
    return c.out.size() > 1 ? neap::rms_norm_backward_workspace(c.in[1].type) : 0;
  }
};
/// x, [w] -> y = x * rstd * w over the last axis; rstd of each row (Zhang and Sennrich 2019).
struct rms_norm {
  static constexpr std::string_view name = "rms_norm";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 5;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&rms_norm::eps>("eps")}; }
  void infer(shape_context& c) const { detail::infer_row_norm(c, 1, 1); }
  void relate(dim_context& c) const { detail::relate_rows(c, 1, 2); }
  void gradient(gradient_context& c) const { detail::row_norm_gradient(c, view_of(rms_norm_grad{}), 1); }
};
template <class Backend>
void run(Backend& b, rms_norm const& op, kernel_arguments const& a) {
  neap::rms_norm(b, a.out[0], a.out[1], a.in[0], detail::optional(a.in, 1), op.eps);
}
template <class Backend>
void run(Backend& b, rms_norm_grad const&, kernel_arguments const& a) {
  neap::rms_norm_backward(b, a.out[0], detail::optional(a.out, 1), a.in[0], a.in[1], a.in[2], detail::optional(a.in, 3),
                          a.workspace);
}

}  // namespace neap::inline v0::op
