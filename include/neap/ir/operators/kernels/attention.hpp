// The kernels of <neap/ir/operators/attention.hpp>.
#pragma once

#include <neap/ir/operators/attention.hpp>

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/attention.hpp>
#include <neap/core/element.hpp>
#include <neap/ir/operators/kernels/by_f32.hpp>
#include <neap/ir/operators/kernels/threads.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// Whether operands are widened to f32: f16, and bf16 but where it runs on matrix units.
inline bool widens_attention(tensor_ref const& q, tensor_ref const& k, tensor_ref const& v) {
  return is_low(q.element) && !(q.element == dtype::bf16 && attention_on_units(q.dims, k.dims, v.dims));
}
}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, attention const& op, kernel_arguments const& a) {
  if (detail::widens_attention(a.in[0], a.in[1], a.in[2]))
    return detail::run_widened(b, a, {}, [&](kernel_arguments const& wide, bool) { run(b, op, wide); });
  detail::on_planned_threads(b, [&](host_backend& at) {
    neap::attention(at, a.in[0], a.in[1], a.in[2], a.out[0], a.out[1], {op.causal, op.scale}, a.workspace);
  });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, attention_grad const& op, kernel_arguments const& a) {
  if (detail::widens_attention(a.in[1], a.in[2], a.in[3]))
    return detail::run_widened(b, a, {}, [&](kernel_arguments const& wide, bool) { run(b, op, wide); });
  detail::on_planned_threads(b, [&](host_backend& at) {
    neap::attention_gradient(at, a.in[1], a.in[2], a.in[3], a.in[4], a.in[5], a.in[0], a.out[0], a.out[1], a.out[2],
                             {op.causal, op.scale}, a.workspace, detail::optional(a.in, 6));
  });
}

}}}  // namespace neap::v0::op
