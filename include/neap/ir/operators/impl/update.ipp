// The bodies of <neap/ir/operators/update.hpp>.
#pragma once

#include <neap/ir/operators/update.hpp>

#include <neap/backend/kernels/adafactor.hpp>
#include <neap/backend/kernels/muon.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/core/separate_compilation.hpp>

#include <cmath>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void require_states(shape_context& c, int count) {
  for (int i = 0; i < count; ++i) {
    require_floating(c, i);
    require_dims(c, i, c.in(0).dims, i == 1 ? "the gradient" : "a state");
  }
}

NEAP_FUNC void require_step(shape_context& c, int i) {
  c.require(c.in(i) == tensor_type{dtype::i64, {}}, "the step must be an i64 scalar, got ", c.in(i));
}

NEAP_FUNC void require_settings(shape_context& c, int arity, std::int64_t count) {
  c.require_arity(arity, arity + 1);
  if (c.arity() > arity)
    c.require(c.in(arity) == tensor_type{dtype::f64, {count}} || c.in(arity) == tensor_type{dtype::f64, {count + 1}},
              "the settings must be ", count, " numbers of f64, got ", c.in(arity));
}

NEAP_FUNC double const* settings(kernel_arguments const& a, std::size_t arity) {
  return a.in.size() > arity ? a.in[arity].as<double const>() : nullptr;
}

NEAP_FUNC bool is_skipped(kernel_arguments const& a, std::size_t arity, std::int64_t count) {
  return a.in.size() > arity && a.in[arity].count() > count && !std::isfinite(settings(a, arity)[count]);
}

NEAP_FUNC void require_total(shape_context& c, int i) {
  c.require(c.in(i) == tensor_type{dtype::f64, {}}, "the total must be an f64 scalar, got ", c.in(i));
}

NEAP_FUNC void relate_states(dim_context& c, int count) {
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < c.output_count(); ++j) c.aligned(i, j);
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void sgd::infer(shape_context& c) const {
  detail::require_settings(c, 2, 2);
  detail::require_states(c, 2);
  c.update(0);
}

NEAP_FUNC void momentum::infer(shape_context& c) const {
  detail::require_settings(c, 3, 4);
  detail::require_states(c, 3);
  c.update(0), c.update(2);
}

NEAP_FUNC void lion::infer(shape_context& c) const {
  detail::require_settings(c, 3, 4);
  detail::require_states(c, 3);
  c.update(0), c.update(2);
}

NEAP_FUNC void muon::infer(shape_context& c) const {
  detail::require_settings(c, 3, 3);
  detail::require_states(c, 3);
  c.require(c.in(0).rank() >= 2, "updates weights of two axes or more, got ", c.in(0));
  c.require(c.in(2).element == dtype::f32 || c.in(2).element == dtype::f64, "the momentum must be of f32 or f64, got ",
            c.in(2));
  c.require(iterations >= 1, "needs at least 1 iteration, got ", iterations);
  c.update(0), c.update(2);
}

NEAP_FUNC work muon::cost(work_context const& c) const {
  auto w = detail::streaming_work(c, 8);
  neap::detail::muon_shape const s(c.in[0].type.dims);
  double const side = static_cast<double>(s.side()), count = static_cast<double>(s.count());
  w.flops += static_cast<double>(iterations) * side * (4 * count + 2 * side * side);
  return w;
}

NEAP_FUNC void adafactor::infer(shape_context& c) const {
  c.require_arity(4, 6);
  tensor_type const weight = c.in(0);
  int const states = weight.rank() >= 2 ? 2 : 1;
  detail::require_settings(c, 3 + states, 5);
  detail::require_floating(c, 0);
  detail::require_dense(c, 0), detail::require_dense(c, 1);
  c.require(c.in(1) == weight, "the gradient must be ", weight, ", got ", c.in(1));
  neap::detail::weight_matrix const m(weight.dims);
  for (int k = 0; k < states; ++k) {
    tensor_type const wanted{computed_in(weight.element), {k == 0 ? m.columns : m.rows}};
    c.require(c.in(2 + k) == wanted, "the means of ", k == 0 ? "columns" : "rows", " must be ", wanted, ", got ",
              c.in(2 + k));
    detail::require_dense(c, 2 + k);
  }
  detail::require_step(c, 2 + states);
  c.update(0), c.update(2);
  if (states == 2) c.update(3);
}

NEAP_FUNC work adafactor::cost(work_context const& c) const {
  auto w = detail::streaming_work(c, 20);
  w.read +=
      2 * static_cast<double>(detail::touched_bytes(c.in[1])) + static_cast<double>(detail::touched_bytes(c.in[0]));
  return w;
}

NEAP_FUNC void increment::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_step(c, 0);
  c.update(0);
}

NEAP_FUNC void accumulate::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_states(c, 2);
  c.update(0);
}

NEAP_FUNC void reset::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.update(0);
}

NEAP_FUNC void assign::infer(shape_context& c) const {
  c.require_arity(2, 2);
  c.require(c.in(0) == c.in(1), "what is written must be of the type that is there, ", c.in(0), ", got ", c.in(1));
  c.update(0);
}

NEAP_FUNC work assign::cost(work_context const& c) const {
  return {0, detail::touched_bytes(c.in[1]), detail::touched_bytes(c.out[0])};
}

NEAP_FUNC void rollback_counter::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_step(c, 0);
  detail::require_total(c, 1);
  c.update(0);
}

NEAP_FUNC void rollback_if_overflow::infer(shape_context& c) const {
  c.require_arity(3, 3);
  c.require(c.in(0) == c.in(1), "what it was must be ", c.in(0), ", got ", c.in(1));
  detail::require_total(c, 2);
  c.update(0);
}

NEAP_FUNC void update_loss_scale::infer(shape_context& c) const {
  c.require_arity(3, 3);
  c.require(c.in(0) == tensor_type{dtype::f64, {}}, "the scale must be an f64 scalar, got ", c.in(0));
  detail::require_step(c, 1);
  detail::require_total(c, 2);
  c.update(0), c.update(1);
}

NEAP_FUNC void sum_squares::infer(shape_context& c) const {
  c.require_arity(1, 2);
  detail::require_floating(c, 0);
  detail::require_dense(c, 0);
  if (c.arity() == 2)
    c.require(c.in(1) == tensor_type{dtype::f64, {}}, "the total must be an f64 scalar, got ", c.in(1));
  c.fresh(tensor_type{dtype::f64, {}});
}

NEAP_FUNC void sum_squares::relate(dim_context& c) const {
  for (int k = 0; c.arity() == 1 && k < c.in(0).rank(); ++k) c.reduced(0, k, k);
}

NEAP_FUNC work sum_squares::cost(work_context const& c) const {
  return {2 * static_cast<double>(c.in[0].type.count()), detail::touched_bytes(c.in[0]), 8};
}

NEAP_FUNC void clip_factor::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.require(c.in(0) == tensor_type{dtype::f64, {}}, "the total must be an f64 scalar, got ", c.in(0));
  c.fresh(c.in(0));
}

NEAP_FUNC void scale_by::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_floating(c, 0), detail::require_floating(c, 1);
  detail::require_dims(c, 1, {}, "the factor");
  c.fresh(c.in(0));
}

NEAP_FUNC bytes_t muon::workspace(work_context const& c) const { return neap::muon_workspace(c.in[2].type); }

NEAP_FUNC bytes_t adafactor::workspace(work_context const& c) const { return neap::adafactor_workspace(c.in[0].type); }

NEAP_FUNC bytes_t sum_squares::workspace(work_context const& c) const {
  return neap::add_sum_of_squares_workspace(c.in[0].type);
}

}}}  // namespace neap::v0::op
