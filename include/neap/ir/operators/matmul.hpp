// Matrix products with broadcast batch axes.
#pragma once

#include <neap/ir/operators/movement.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// A tensor without an address, to ask a kernel for its workspace.
inline tensor_ref unplaced(tensor_layout const& l) { return {nullptr, l.type.element, l.type.dims, l.strides}; }

/// Whether the last two axes are rows of consecutive elements, or the transpose of that.
bool is_matrix(tensor_layout const& l);
inline value_id matrix(gradient_context& c, value_id v) { return is_matrix(c.layout(v)) ? v : c.emit(copy{}, {v}); }
}  // namespace detail

/// a [..., m, k] (or [..., k, m] if transposed), b [..., k, n] (or [..., n, k]) -> [..., m, n]; the axes in front
/// broadcast. The last two axes of each must be rows of consecutive elements, or the transpose of that.
struct matmul {
  static constexpr std::string_view name = "matmul";
  static constexpr precision_rule precision = precision_use::reduced;
  bool transpose_a = false, transpose_b = false;
  static constexpr auto attributes() {
    return std::array{field<&matmul::transpose_a>("transpose_a"), field<&matmul::transpose_b>("transpose_b")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  /// Output j is the product: its axes are those of the inputs.
  void relate_result(dim_context& c, int j) const;
  /// The inner axes may be cut: outputs are added then.
  void relate_sums(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <std::same_as<host_backend> Backend>
void run(Backend& b, matmul const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/matmul.ipp>
#endif
