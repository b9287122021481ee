// Batch norm and group norm of [N, C, ...]. The forward operators keep the statistics for the gradient. Running averages
// for inference are moved by an operator of its own, so that the normalisation itself stays pure and may be recomputed.
#pragma once

#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/row_norm.hpp>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
void require_channels(shape_context& c, int i);
/// Channel axes of a tensor [N, C, ...] and of vectors [C]; outputs that are vectors are summed over N if `summed`.
void relate_samples(dim_context& c, int inputs, int outputs);
void relate_channels(dim_context& c);
/// A vector [C] as it broadcasts against [N, C, ...].
value_id along_channels(gradient_context& c, value_id v, int rank);
}  // namespace detail

/// g, x, mean, rstd, [w] -> dx, [dw, db].
struct batch_norm_grad {
  static constexpr std::string_view name = "batch_norm_grad";
  using joined = batch_norm_relu_grad;
  static constexpr bool elementwise = true;  // dx over g or x: a channel's sums are taken before
  static constexpr double flops = 12;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_channels(c); }
  bytes_t workspace(work_context const& c) const;
};
/// g, x, mean, rstd, w, b -> dx, dw, db of relu(batch_norm(x)), and relu(batch_norm(x)) once more if `gives_result`: who
/// keeps x need not keep what was made of it (train/activation_recovery.hpp).
struct batch_norm_relu_grad {
  static constexpr std::string_view name = "batch_norm_relu_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 16;
  bool gives_result = true;
  static constexpr auto attributes() { return std::array{field<&batch_norm_relu_grad::gives_result>("gives_result")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_channels(c); }
  bytes_t workspace(work_context const& c) const;
};
/// x [N, C, ...], [w [C], [b [C]]] -> y normalised by the batch's statistics; mean [C] and rstd [C] (Ioffe and Szegedy
/// 2015).
struct batch_norm {
  static constexpr std::string_view name = "batch_norm";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 8;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&batch_norm::eps>("eps")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_channels(c); }
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, batch_norm const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, batch_norm_grad const&, kernel_arguments const& a);

template <class Backend>
void run(Backend& b, batch_norm_relu_grad const&, kernel_arguments const& a);

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
  void infer(shape_context& c) const;
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
void run(Backend& b, batch_norm_update const& op, kernel_arguments const& a);

/// x, mean [C], variance [C], [w, [b]] -> y = (x - mean) / sqrt(variance + eps) * w + b with given statistics. Differentiable
/// in x, w and b; the statistics are taken as constants.
struct batch_norm_inference {
  static constexpr std::string_view name = "batch_norm_inference";
  static constexpr precision_rule precision = {precision_use::common, 6};
  static constexpr double flops = 3;
  double eps = 1e-5;
  static constexpr auto attributes() { return std::array{field<&batch_norm_inference::eps>("eps")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, batch_norm_inference const& op, kernel_arguments const& a);

/// g, x, mean, rstd, [w] -> dx, [dw, db].
struct group_norm_grad {
  static constexpr std::string_view name = "group_norm_grad";
  static constexpr bool elementwise = true;  // dx over g or x; dw and db come after every row was read
  static constexpr double flops = 14;
  std::int64_t groups = 1;
  static constexpr auto attributes() { return std::array{field<&group_norm_grad::groups>("groups")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_samples(c, 4, 1); }
  bytes_t workspace(work_context const& c) const;
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
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_samples(c, 1, 3); }
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, group_norm const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, group_norm_grad const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/channel_norm.ipp>
#endif
