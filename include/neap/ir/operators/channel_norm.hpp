// Batch norm and group norm of [N, C, ...]. The forward operators keep the statistics for the gradient. Running averages
// for inference are moved by an operator of its own, so that the normalisation itself stays pure and may be recomputed.
#pragma once

#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/row_norm.hpp>

namespace neap::inline v0::op {

namespace detail {
inline void require_channels(shape_context& c, int i) {
  require_floating(c, i);
  c.require(c.in(i).rank() >= 2, "needs [N, C, ...], was given ", c.in(i));
  require_dense(c, i);
}
/// Channel axes of a tensor [N, C, ...] and of vectors [C]; outputs that are vectors are summed over N if `summed`.
inline void relate_samples(dim_context& c, int inputs, int outputs) {
  for (int i = 0; i < inputs; ++i) {
    for (int j = 0; j < outputs; ++j) c.same(i, 0, j, 0);
    if (outputs < c.output_count()) c.reduced(i, 0, 0);
  }
}
inline void relate_channels(dim_context& c) {
  for (int i = 0; i < c.arity(); ++i)
    for (int j = 0; j < c.output_count(); ++j) c.same(i, c.in(i).rank() > 1, j, c.out(j).rank() > 1);
}
/// A vector [C] as it broadcasts against [N, C, ...].
inline value_id along_channels(gradient_context& c, value_id v, int rank) {
  shape dims = extents::filled(rank - 1, 1);
  dims[0] = c.type(v).dims[0];
  return c.emit(reshape{dims}, {v});
}
}  // namespace detail

/// g, x, mean, rstd, [w] -> dx, [dw, db].
struct batch_norm_grad {
  static constexpr std::string_view name = "batch_norm_grad";
  using joined = batch_norm_relu_grad;
  static constexpr bool elementwise = true;  // dx over g or x: a channel's sums are taken before
  static constexpr double flops = 12;
  void infer(shape_context& c) const {
    c.require_arity(4, 5);
    detail::require_channels(c, 0), detail::require_channels(c, 1);
    detail::require_same_type(c, 0, 1);
    for (int i : {2, 3}) detail::require_dims(c, i, {c.in(1).dims[1]}, "a statistic"), detail::require_dense(c, i);
    detail::require_vectors(c, 4, c.in(1).dims[1], "scale");
    c.fresh(c.in(1));
    for (int j = 0; c.arity() == 5 && j < 2; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims[1]}});
  }
  void relate(dim_context& c) const { detail::relate_channels(c); }
  bytes_t workspace(work_context const& c) const { return neap::batch_norm_workspace(c.in[1].type); }
};
/// g, x, mean, rstd, w, b -> dx, dw, db of relu(batch_norm(x)), and relu(batch_norm(x)) once more if `gives_result`: who
/// keeps x need not keep what was made of it (train/activation_recovery.hpp).
struct batch_norm_relu_grad {
  static constexpr std::string_view name = "batch_norm_relu_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 16;
  bool gives_result = true;
  static constexpr auto attributes() { return std::array{field<&batch_norm_relu_grad::gives_result>("gives_result")}; }
  void infer(shape_context& c) const {
    c.require_arity(6, 6);
    detail::require_channels(c, 0), detail::require_channels(c, 1);
    detail::require_same_type(c, 0, 1);
    for (int i : {2, 3}) detail::require_dims(c, i, {c.in(1).dims[1]}, "a statistic"), detail::require_dense(c, i);
    detail::require_vectors(c, 4, c.in(1).dims[1], "scale and shift");
    c.fresh(c.in(1));
    for (int j = 0; j < 2; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims[1]}});
    if (gives_result) c.fresh(c.in(1));
  }
  void relate(dim_context& c) const { detail::relate_channels(c); }
  bytes_t workspace(work_context const& c) const { return neap::batch_norm_workspace(c.in[1].type); }
};
/// x [N, C, ...], [w [C], [b [C]]] -> y normalised by the batch's statistics; mean [C] and rstd [C] (Ioffe and Szegedy
/// 2015).
struct batch_norm {
  static constexpr std::string_view name = "batch_norm";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 8;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&batch_norm::eps>("eps")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 3);
    detail::require_channels(c, 0);
    detail::require_vectors(c, 1, c.in(0).dims[1], "scale and shift");
    c.fresh(c.in(0));
    for (int j = 0; j < 2; ++j) c.fresh(tensor_type{computed_in(c.in(0).element), {c.in(0).dims[1]}});
  }
  void relate(dim_context& c) const { detail::relate_channels(c); }
  void gradient(gradient_context& c) const {
    auto const x = c.type(c.in(0)).dims;
    shape each = extents::filled(x.rank() - 1, 1);
    each[0] = x[1];
    value_id const g = c.grad();
    detail::norm_gradient(c, view_of(batch_norm_grad{}), 2, g == nothing<value_id> ? g : dense(c, g), x, each);
  }
};
template <class Backend>
void run(Backend& b, batch_norm const& op, kernel_arguments const& a) {
  neap::batch_norm(b, a.out[0], a.out[1], a.out[2], a.in[0], detail::optional(a.in, 1), detail::optional(a.in, 2),
                   op.eps);
}
template <class Backend>
void run(Backend& b, batch_norm_grad const&, kernel_arguments const& a) {
  neap::batch_norm_backward(b, a.out[0], detail::optional(a.out, 1), detail::optional(a.out, 2), a.in[0], a.in[1],
                            a.in[2], a.in[3], detail::optional(a.in, 4), a.workspace);
}

template <class Backend>
void run(Backend& b, batch_norm_relu_grad const&, kernel_arguments const& a) {
  neap::batch_norm_relu_backward(b, a.out[0], a.out[1], a.out[2], detail::optional(a.out, 3), a.in[0], a.in[1], a.in[2],
                                 a.in[3], a.in[4], a.in[5], a.workspace);
}

/// running mean, running variance, mean, rstd -> the first two, moved in place towards the batch's by `momentum`; the
/// variance's unbiased estimate from `count` elements a channel is used.
struct batch_norm_update {
  static constexpr std::string_view name = "batch_norm_update";
  double momentum = 0.1, eps = 1e-5;
  std::int64_t count = 1;  // elements of a channel
  static constexpr auto attributes() {
    return std::array{field<&batch_norm_update::momentum>("momentum"), field<&batch_norm_update::eps>("eps"),
                      field<&batch_norm_update::count>("count")};
  }
  void infer(shape_context& c) const {
    c.require_arity(4, 4);
    c.require(count > 0, "the count must be positive, was given ", count);
    for (int i = 0; i < 4; ++i) {
      detail::require_floating(c, i);
      detail::require_dims(c, i, c.in(0).dims, "a statistic");
    }
    c.update(0), c.update(1);
  }
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
};
namespace detail {
struct running_average {
  double momentum, eps, unbiased;
  template <class T>
  NEAP_HD std::array<T, 2> operator()(T mean, T variance, T m, T r) const {
    T const now = (T(1) / (r * r) - T(eps)) * T(unbiased), k = T(momentum);
    return {mean + k * (m - mean), variance + k * (now - variance)};
  }
};
}  // namespace detail
template <class Backend>
void run(Backend& b, batch_norm_update const& op, kernel_arguments const& a) {
  double const n = static_cast<double>(op.count);
  neap::map(b, detail::running_average{op.momentum, op.eps, op.count > 1 ? n / (n - 1) : 1.0},
            std::array<tensor_ref, 2>{a.in[0], a.in[1]}, a.in[0], a.in[1], a.in[2], a.in[3]);
}

/// x, mean [C], variance [C], [w, [b]] -> y = (x - mean) / sqrt(variance + eps) * w + b with given statistics. Differentiable
/// in x, w and b; the statistics are taken as constants.
struct batch_norm_inference {
  static constexpr std::string_view name = "batch_norm_inference";
  static constexpr precision_rule precision = {precision_use::common, 6};
  static constexpr double flops = 3;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&batch_norm_inference::eps>("eps")}; }
  void infer(shape_context& c) const {
    c.require_arity(3, 5);
    detail::require_channels(c, 0);
    for (int i : {1, 2}) {
      c.require(c.in(i) == tensor_type{computed_in(c.in(0).element), {c.in(0).dims[1]}}, "statistics must be ",
                tensor_type{computed_in(c.in(0).element), {c.in(0).dims[1]}}, ", was given ", c.in(i));
      detail::require_dense(c, i);
    }
    detail::require_vectors(c, 3, c.in(0).dims[1], "scale and shift");
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const {
    c.same(0, 0, 0, 0);
    for (int i = 0; i < c.arity(); ++i) c.same(i, i == 0, 0, 1);
  }
  bytes_t workspace(work_context const& c) const { return neap::batch_norm_workspace(c.in[0].type); }
  void gradient(gradient_context& c) const {
    value_id const g = c.grad();
    auto const x = c.type(c.in(0));
    int const rank = x.rank();
    auto const in_type = [&](value_id v) { return detail::in_element(c, v, x.element); };
    value_id const rstd =
        detail::along_channels(c, in_type(c.emit(rsqrt{}, {c.emit(add_scalar{eps}, {c.in(2)})})), rank);
    if (c.wants(0)) {
      value_id scale = rstd;
      if (c.arity() > 3) scale = c.emit(mul{}, {scale, detail::along_channels(c, c.in(3), rank)});
      c.give(0, c.emit(mul{}, {g, scale}));
    }
    extents others{0};
    for (int k = 2; k < rank; ++k) others.push_back(k);
    if (c.wants(3)) {
      value_id const mean = detail::along_channels(c, in_type(c.in(1)), rank);
      value_id const h = c.emit(mul{}, {c.emit(sub{}, {c.in(0), mean}), rstd});
      c.give(3, c.emit(sum{others}, {c.emit(mul{}, {h, g})}));
    }
    if (c.wants(4)) c.give(4, c.emit(sum{others}, {g}));
  }
};
template <class Backend>
void run(Backend& b, batch_norm_inference const& op, kernel_arguments const& a) {
  neap::batch_norm_inference(b, a.out[0], a.in[0], a.in[1], a.in[2], detail::optional(a.in, 3),
                             detail::optional(a.in, 4), op.eps, a.workspace);
}

/// g, x, mean, rstd, [w] -> dx, [dw, db].
struct group_norm_grad {
  static constexpr std::string_view name = "group_norm_grad";
  static constexpr bool elementwise = true;  // dx over g or x; dw and db come after every row was read
  static constexpr double flops = 14;
  std::int64_t groups = 1;
  static constexpr auto attributes() { return std::array{field<&group_norm_grad::groups>("groups")}; }
  void infer(shape_context& c) const {
    c.require_arity(4, 5);
    detail::require_channels(c, 0), detail::require_channels(c, 1);
    detail::require_same_type(c, 0, 1);
    for (int i : {2, 3})
      detail::require_dims(c, i, {c.in(1).dims[0], groups}, "a statistic"), detail::require_dense(c, i);
    detail::require_vectors(c, 4, c.in(1).dims[1], "scale");
    c.fresh(c.in(1));
    for (int j = 0; c.arity() == 5 && j < 2; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims[1]}});
  }
  void relate(dim_context& c) const { detail::relate_samples(c, 4, 1); }
  bytes_t workspace(work_context const& c) const { return neap::group_norm_backward_workspace(c.in[1].type); }
};
/// x [N, C, ...], [w [C], [b [C]]] -> y normalised over each sample's groups of channels; mean and rstd [N, groups] (Wu
/// and He 2018).
struct group_norm {
  static constexpr std::string_view name = "group_norm";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 8;
  std::int64_t groups = 1;
  double eps = 1e-5;
  static constexpr auto attributes() {
    return std::array{field<&group_norm::groups>("groups"), field<&group_norm::eps>("eps")};
  }
  void infer(shape_context& c) const {
    c.require_arity(1, 3);
    detail::require_channels(c, 0);
    c.require(groups > 0 && c.in(0).dims[1] % groups == 0, groups, " groups do not divide the channels of ", c.in(0));
    detail::require_vectors(c, 1, c.in(0).dims[1], "scale and shift");
    c.fresh(c.in(0));
    for (int j = 0; j < 2; ++j) c.fresh(tensor_type{computed_in(c.in(0).element), {c.in(0).dims[0], groups}});
  }
  void relate(dim_context& c) const { detail::relate_samples(c, 1, 3); }
  void gradient(gradient_context& c) const {
    auto const x = c.type(c.in(0)).dims;
    shape in_groups{x[0], groups, x[1] / groups};
    for (int k = 2; k < x.rank(); ++k) in_groups[2] *= x[k];
    value_id const g = c.grad();
    detail::norm_gradient(c, view_of(group_norm_grad{groups}), 2, g == nothing<value_id> ? g : dense(c, g), in_groups,
                          {x[0], groups, 1});
  }
};
template <class Backend>
void run(Backend& b, group_norm const& op, kernel_arguments const& a) {
  neap::group_norm(b, a.out[0], a.out[1], a.out[2], a.in[0], detail::optional(a.in, 1), detail::optional(a.in, 2),
                   op.groups, op.eps);
}
template <class Backend>
void run(Backend& b, group_norm_grad const& op, kernel_arguments const& a) {
  neap::group_norm_backward(b, a.out[0], detail::optional(a.out, 1), detail::optional(a.out, 2), a.in[0], a.in[1],
                            a.in[2], a.in[3], detail::optional(a.in, 4), op.groups, a.workspace);
}

}  // namespace neap::inline v0::op
