// apply: an operator on tensors. The one way in which the DSL computes: while a trace is active the op is added to its
// graph; otherwise it runs at once, and is recorded if it may need a gradient. Both see the same sequence of ops.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/model/kernels.hpp>
#include <neap/model/precision.hpp>
#include <neap/model/scope.hpp>
#include <neap/model/trace.hpp>

#include <cstring>

namespace neap { inline namespace v0 {

namespace detail {

/// Computes `op` now; its outputs.
std::vector<tensor> run_eagerly(operator_view op, std::span<tensor const> in, std::source_location at);

std::vector<tensor> apply_as_given(operator_view op, std::span<tensor const> in, std::source_location at);

/// t in another floating type, by a cast that the scope may have made before.
tensor cast_in(precision_scope& p, tensor const& t, dtype to, std::source_location at);
/// Applies an operator as its facet says in this precision.
std::vector<tensor> apply_in(precision_scope& p, operator_view op, std::span<tensor const> in, std::source_location at);
std::vector<tensor> apply_view(operator_view op, std::span<tensor const> in, std::source_location at);
/// x in f32 where mixed precision has made it bf16 or f16: what follows is computed in full.
tensor in_full(tensor const& x, std::source_location at = std::source_location::current());
/// Whether operands of these types may meet: equal ones, and f32 and a low type where mixed precision makes one of them.
bool may_meet(dtype a, dtype b);

}  // namespace detail

/// All outputs of an operator. Throws neap::error with the place if the shape rule or the kernel refuses the inputs.
template <class Op>
std::vector<tensor> apply_all(Op const& op, std::span<tensor const> in,
                              std::source_location at = std::source_location::current()) {
  if constexpr (!is_standard<Op>)
    static_assert(has_kernel<host_backend, Op>,
                  "neap: the host has no kernel for this operator: write  template <class Backend> void run(Backend&, "
                  "my_op const&, neap::kernel_arguments const&)  in the operator's namespace");
  return detail::apply_view(view_of(op), in, at);
}
template <class Op>
std::vector<tensor> apply_all(Op const& op, std::initializer_list<tensor> in,
                              std::source_location at = std::source_location::current()) {
  return apply_all(op, span_of(in.begin(), in.size()), at);
}
/// The first output of an operator.
template <class Op>
tensor apply(Op const& op, std::initializer_list<tensor> in,
             std::source_location at = std::source_location::current()) {
  return apply_all(op, span_of(in.begin(), in.size()), at).front();
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/apply.ipp>
#endif
