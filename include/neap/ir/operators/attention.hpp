// Fused scaled dot-product attention: the matrix of scores is never whole; the gradient computes it again from one
// number a row.
#pragma once

#include <neap/ir/operators/by_f32.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/threads.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// [B, H, T, D] whose elements lie in [B, T, H, D] order, so that joining the heads is a view.
tensor_layout heads_inside(tensor_type const& t);
/// Each row of [B, H, T, D] is dense, and no two of a head share elements (a broadcast T).
bool has_rows_apart(tensor_layout const& l);
void require_rows_apart(shape_context& c, int i);
void require_attention(shape_context& c, int q, bool causal);
double attention_products(tensor_type const& q, tensor_type const& v, bool causal);
/// Batches, and heads where keys have as many as queries.
void relate_heads(dim_context& c, int q, int inputs);
}  // namespace detail

/// dy, q, k, v, y, lse, [dlse] -> dq, dk, dv.
struct attention_grad {
  static constexpr std::string_view name = "attention_grad";
  bool causal = false;
  double scale = 0;
  static constexpr auto attributes() {
    return std::array{field<&attention_grad::causal>("causal"), field<&attention_grad::scale>("scale")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_heads(c, 1, c.arity()); }
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
};
/// q [B, H, T, D], k [B, K, S, D], v [B, K, S, E] -> y [B, H, T, E] = softmax(scale * q k^T) v and the logarithms of the
/// softmax's sums [B, H, T], in f32 for bf16 and f16. K divides H. scale 0 means 1 / sqrt(D). y lies in [B, T, H, E] order
/// in memory.
struct attention {
  static constexpr std::string_view name = "attention";
  static constexpr precision_rule precision = precision_use::reduced;
  bool causal = false;
  double scale = 0;
  static constexpr auto attributes() {
    return std::array{field<&attention::causal>("causal"), field<&attention::scale>("scale")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_heads(c, 0, 3); }
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <std::same_as<host_backend> Backend>
void run(Backend& b, attention const& op, kernel_arguments const& a);
template <std::same_as<host_backend> Backend>
void run(Backend& b, attention_grad const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/attention.ipp>
#endif
