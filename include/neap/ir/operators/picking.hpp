// Rows, parts and elements picked by numbers, and the way back; numbers as ones in rows of zeros.
#pragma once

#include <neap/ir/operators/binary.hpp>

namespace neap { inline namespace v0 {
struct numbered_sums;
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace op {

namespace detail {
void require_places(shape_context& c, int i);
}  // namespace detail

/// g [..., D], ids [...] -> dtable [rows, D].
struct embedding_grad {
  static constexpr std::string_view name = "embedding_grad";
  static constexpr bool checks_numbers = true;
  std::int64_t rows = 0;
  static constexpr auto attributes() { return std::array{field<&embedding_grad::rows>("rows")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
/// table [rows, D], ids [...] -> [..., D].
struct embedding {
  static constexpr std::string_view name = "embedding";
  static constexpr bool checks_numbers = true;
  static constexpr precision_rule precision = precision_use::rows;
  static constexpr double flops = 0;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, embedding const&, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, embedding_grad const&, kernel_arguments const& a);

struct scatter_add;
/// x, index -> y of index's shape: y[..., k, ...] = x[..., index[..., k, ...], ...] along an axis.
struct gather {
  static constexpr std::string_view name = "gather";
  static constexpr bool checks_numbers = true;
  static constexpr double flops = 0;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&gather::axis>("axis")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const;
};
/// x, index -> y with `extent` places along the axis, y[..., index[..., k, ...], ...] the sum of the x[..., k, ...] that
/// are sent there, in the order of k: the gradient of gather.
struct scatter_add {
  static constexpr std::string_view name = "scatter_add";
  static constexpr bool checks_numbers = true;
  static constexpr precision_rule precision = precision_use::common;
  std::int64_t axis = 0, extent = 0;
  static constexpr auto attributes() {
    return std::array{field<&scatter_add::axis>("axis"), field<&scatter_add::extent>("extent")};
  }
  /// How many terms a place may get.
  std::int64_t terms(shape const& index) const { return index[detail::plain_axis(axis, index.rank())]; }
  template <class Backend>
  numbered_sums cleared_sums(Backend& b, kernel_arguments const& a) const;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, gather const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, scatter_add const& op, kernel_arguments const& a);

namespace detail {
int require_numbers(shape_context& c, std::int64_t axis);
}  // namespace detail

/// x, index [n] -> y[..., i, ...] = x[..., index[i], ...] along an axis.
struct index_select {
  static constexpr std::string_view name = "index_select";
  static constexpr bool checks_numbers = true;
  static constexpr double flops = 0;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&index_select::axis>("axis")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
/// x, index [n], source -> x with source[..., i, ...] added to its part index[i] along an axis, in the order of i.
struct index_add {
  static constexpr std::string_view name = "index_add";
  static constexpr bool checks_numbers = true;
  static constexpr precision_rule precision = precision_use::common;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&index_add::axis>("axis")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, index_select const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, index_add const& op, kernel_arguments const& a);

/// ids [...] -> [..., classes]: 1 at each id's place, else 0.
struct one_hot {
  static constexpr std::string_view name = "one_hot";
  static constexpr bool checks_numbers = true;
  static constexpr double flops = 0;
  std::int64_t classes = 0;
  dtype element = dtype::f32;
  static constexpr auto attributes() {
    return std::array{field<&one_hot::classes>("classes"), field<&one_hot::element>("element")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
};
template <class Backend>
void run(Backend& b, one_hot const&, kernel_arguments const& a);

/// x -> the k largest elements along an axis, the largest first, and their places there (i64); or the smallest, the
/// smallest first. Of equals the one at the lower place; a NaN is larger than all.
struct topk {
  static constexpr std::string_view name = "topk";
  static constexpr double flops = 4;
  std::int64_t k = 1, axis = -1;
  bool largest = true;
  static constexpr auto attributes() {
    return std::array{field<&topk::k>("k"), field<&topk::axis>("axis"), field<&topk::largest>("largest")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, topk const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/picking.ipp>
#endif
