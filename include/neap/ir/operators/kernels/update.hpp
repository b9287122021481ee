// The kernels of <neap/ir/operators/update.hpp>.
#pragma once

#include <neap/ir/operators/update.hpp>

#include <neap/backend/kernels/adafactor.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/kernels/muon.hpp>
#include <neap/backend/kernels/optimizer.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
template <class Op>
adam_options adam_numbers(Op const& op, kernel_arguments const& a) {
  if (auto const* s = settings(a, 5)) return {s[0], s[1], s[2], s[3], s[4]};
  return {op.rate, op.beta1, op.beta2, op.eps, op.weight_decay};
}
}  // namespace detail

template <class Backend>
void run(Backend& b, sgd op, kernel_arguments const& a) {
  if (detail::is_skipped(a, 2, 2)) return;
  if (auto const* s = detail::settings(a, 2)) op.rate = s[0], op.weight_decay = s[1];
  neap::sgd_update(b, a.in[0], a.in[1], op.rate, op.weight_decay);
}

template <class Backend>
void run(Backend& b, momentum op, kernel_arguments const& a) {
  if (detail::is_skipped(a, 3, 4)) return;
  if (auto const* s = detail::settings(a, 3)) op.rate = s[0], op.beta = s[1], op.damping = s[2], op.weight_decay = s[3];
  neap::momentum_update(b, a.in[0], a.in[2], a.in[1], op.rate, op.beta, op.nesterov, op.weight_decay, op.damping);
}

template <class Backend>
void run(Backend& b, adam const& op, kernel_arguments const& a) {
  if (detail::is_skipped(a, 5, 5)) return;
  neap::adam_update(b, a.in[0], a.in[2], a.in[3], a.in[1], *a.in[4].as<std::int64_t const>(),
                    detail::adam_numbers(op, a));
}

template <class Backend>
void run(Backend& b, adamw const& op, kernel_arguments const& a) {
  if (detail::is_skipped(a, 5, 5)) return;
  neap::adamw_update(b, a.in[0], a.in[2], a.in[3], a.in[1], *a.in[4].as<std::int64_t const>(),
                     detail::adam_numbers(op, a));
}

template <class Backend>
void run(Backend& b, lion op, kernel_arguments const& a) {
  if (detail::is_skipped(a, 3, 4)) return;
  if (auto const* s = detail::settings(a, 3)) op.rate = s[0], op.beta1 = s[1], op.beta2 = s[2], op.weight_decay = s[3];
  neap::lion_update(b, a.in[0], a.in[2], a.in[1], op.rate, op.beta1, op.beta2, op.weight_decay);
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, muon const& op, kernel_arguments const& a) {
  if (detail::is_skipped(a, 3, 3)) return;
  muon_options o{op.rate, op.beta, op.weight_decay, op.nesterov, op.iterations, op.rms};
  if (auto const* s = detail::settings(a, 3)) o.rate = s[0], o.beta = s[1], o.decay = s[2];
  neap::muon_update(b, a.in[0], a.in[2], a.in[1], o, a.workspace);
}

template <class Backend>
void run(Backend& b, adafactor const& op, kernel_arguments const& a) {
  std::size_t const states = a.in[0].dims.rank() >= 2 ? 2 : 1;
  if (detail::is_skipped(a, 3 + states, 5)) return;
  adafactor_options o{op.rate, op.power, op.epsilon, op.threshold, op.weight_decay};
  if (auto const* s = detail::settings(a, 3 + states)) o = {s[0], s[1], s[2], s[3], s[4]};
  neap::adafactor_update(b, a.in[0], a.in[1], a.in[2], states == 2 ? a.in[3] : tensor_ref{},
                         *a.in[2 + states].as<std::int64_t const>(), o, a.workspace);
}

template <class Backend>
void run(Backend& b, increment const&, kernel_arguments const& a) {
  auto* const step = a.in[0].as<std::int64_t>();
  b.elementwise(1, [=](std::int64_t) { ++*step; });
}

template <class Backend>
void run(Backend& b, accumulate const&, kernel_arguments const& a) {
  neap::map(b, add{}, a.in[0], a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, reset const&, kernel_arguments const& a) {
  neap::fill(b, a.in[0], 0);
}

template <class Backend>
void run(Backend& b, assign const&, kernel_arguments const& a) {
  neap::copy(b, a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, rollback_counter const&, kernel_arguments const& a) {
  auto* const step = a.in[0].as<std::int64_t>();
  auto const* const total = a.in[1].as<double const>();
  b.elementwise(1, [=](std::int64_t) { *step -= std::isfinite(*total) ? 0 : 1; });
}

template <class Backend>
void run(Backend& b, rollback_if_overflow const&, kernel_arguments const& a) {
  if (!std::isfinite(*a.in[2].as<double const>())) neap::copy(b, a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, update_loss_scale const& op, kernel_arguments const& a) {
  auto* const scale = a.in[0].as<double>();
  auto* const steps = a.in[1].as<std::int64_t>();
  auto const* const total = a.in[2].as<double const>();
  b.elementwise(1, [=](std::int64_t) { op.move(*scale, *steps, std::isfinite(*total)); });
}

template <class Backend>
void run(Backend& b, sum_squares const&, kernel_arguments const& a) {
  if (a.in.size() > 1) neap::copy(b, a.out[0], a.in[1]);
  else neap::fill(b, a.out[0], 0);
  neap::add_sum_of_squares(b, a.out[0], a.in[0], a.workspace);
}

template <class Backend>
void run(Backend& b, clip_factor const& op, kernel_arguments const& a) {
  neap::clip_scale(b, a.out[0], a.in[0], op.max_norm);
}

template <class Backend>
void run(Backend& b, scale_by const&, kernel_arguments const& a) {
  neap::map(b, neap::detail::scale_step{}, a.out[0], a.in[0], a.in[1]);
}

}}}  // namespace neap::v0::op
