// The bodies of <neap/ir/operators/loss.hpp>.
#pragma once

#include <neap/ir/operators/loss.hpp>

#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void require_targets(shape_context& c, int logits, int targets) {
  require_floating(c, logits);
  require_rank(c, logits, 1, "logits");
  require_dense_rows(c, logits);
  c.require(c.in(targets).element == dtype::i64, "targets must be i64, got ", c.in(targets), ": cast them");
  c.require(c.in(targets).dims == without_last(c.in(logits).dims), "targets ", c.in(targets).dims,
            " do not go with logits ", c.in(logits).dims);
  require_dense(c, targets);
}

NEAP_FUNC void require_all_targets(shape_context& c, int i) {
  if (i >= c.arity()) return;
  c.require(c.in(i).element == dtype::i64, "all targets must be i64, got ", c.in(i));
  require_dense(c, i);
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void cross_entropy_grad::infer(shape_context& c) const {
  c.require_arity(4, per_row ? 4 : 5);
  detail::require_targets(c, 1, 2);
  detail::require_all_targets(c, 4);
  auto const element = computed_in(c.in(1).element);
  c.require(c.in(0).element == element, "the gradient must be ", element, ", got ", c.in(0));
  detail::require_dims(c, 0, per_row ? c.in(2).dims : shape{}, "the gradient");
  detail::require_dense(c, 0);
  detail::require_dims(c, 3, c.in(2).dims, "log_sum");
  detail::require_dense(c, 3);
  c.fresh(c.in(1));
}

NEAP_FUNC void cross_entropy_grad::relate(dim_context& c) const {
  for (int k = 0; (per_row || c.arity() > 4) && k < c.out(0).rank() - 1; ++k)
    for (int i = per_row ? 0 : 1; i < 4; ++i) c.same(i, k, 0, k);
}

NEAP_FUNC void cross_entropy::infer(shape_context& c) const {
  c.require_arity(2, per_row ? 2 : 3);
  detail::require_targets(c, 0, 1);
  detail::require_all_targets(c, 2);
  c.require(smoothing >= 0 && smoothing <= 1, "the smoothing must be in [0, 1], got ", smoothing);
  auto const element = computed_in(c.in(0).element);
  c.fresh(tensor_type{element, per_row ? c.in(1).dims : shape{}});
  c.fresh(tensor_type{element, c.in(1).dims});
}

NEAP_FUNC void cross_entropy::relate(dim_context& c) const {
  for (int k = 0; (per_row || c.arity() > 2) && k < c.in(1).rank(); ++k)
    for (int i : {0, 1}) {
      if (per_row) c.same(i, k, 0, k);
      else c.reduced(i, k, k);
      c.same(i, k, 1, k);
    }
}

NEAP_FUNC work cross_entropy::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = 10 * static_cast<double>(c.in[0].type.count());
  return w;
}

NEAP_FUNC void cross_entropy::gradient(gradient_context& c) const {
  value_id const of_loss = c.grad(0), of_sums = c.grad(1);
  if (!c.wants(0)) return;
  auto const x = c.type(c.in(0));
  value_id dx = nothing<value_id>;
  if (of_loss != nothing<value_id>) {
    value_id const g = dense(c, of_loss);
    cross_entropy_grad const op{ignore_index, per_row, smoothing};
    dx = c.arity() > 2 ? c.emit(op, {g, c.in(0), c.in(1), c.out(1), c.in(2)})
                       : c.emit(op, {g, c.in(0), c.in(1), c.out(1)});
  }
  if (of_sums != nothing<value_id>) {  // log_sum's slope is softmax less 1 at the largest, in ignored rows too
    value_id const wide = detail::in_element(c, c.in(0), computed_in(x.element)), g = detail::along_rows(c, of_sums);
    value_id const top = c.emit(max_reduce{{-1}, true}, {wide});
    value_id const hit = c.emit(cast{computed_in(x.element)}, {c.emit(equal{}, {wide, top})});
    value_id const share = c.emit(div{}, {hit, c.emit(sum{{-1}, true}, {hit})});
    value_id const slope = detail::difference(c, c.emit(softmax{}, {wide}), share);
    value_id const more = detail::in_element(c, detail::product(c, slope, g), x.element);
    dx = dx == nothing<value_id> ? more : c.emit(add{}, {dx, more});
  }
  c.give(0, dx);
}

NEAP_FUNC void mse_grad::infer(shape_context& c) const {
  c.require_arity(3, 3);
  detail::require_dims(c, 0, {}, "the gradient");
  detail::require_same_type(c, 1, 2);
  detail::require_same_element(c, 0, 1);
  c.fresh(c.in(1));
}

NEAP_FUNC void mse_grad::relate(dim_context& c) const {
  for (int i : {1, 2})
    for (int k = 0; k < c.out(0).rank(); ++k) c.same(i, k, 0, k);
}

NEAP_FUNC void mse_grad::cut(cut_context const& c) {  // the mean's divisor stays
  if (elements == 0) elements = c.out[0].type.count();
}

NEAP_FUNC void mse_grad::gradient(gradient_context& c) const {  // of g (x - y) 2 / n
  auto const n = std::max<std::int64_t>(1, elements == 0 ? c.type(c.in(1)).count() : elements);
  value_id const h = detail::affine(c, c.grad(), 2 / static_cast<double>(n));
  if (c.wants(0))
    c.give(0, reduced_to(c, detail::product(c, h, detail::difference(c, c.in(1), c.in(2))), c.type(c.in(0)).dims));
  if (!c.wants(1) && !c.wants(2)) return;
  value_id const dx = detail::product(c, h, c.in(0));
  if (c.wants(1)) c.give(1, dx);
  if (c.wants(2)) c.give(2, c.emit(neg{}, {dx}));
}

NEAP_FUNC void mse::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_floating(c, 0);
  detail::require_same_type(c, 0, 1);
  for (int i : {0, 1}) detail::require_dense(c, i);
  c.fresh(tensor_type{c.in(0).element, {}});
}

NEAP_FUNC void mse::relate(dim_context& c) const {
  for (int i : {0, 1})
    for (int k = 0; k < c.in(0).rank(); ++k) c.reduced(i, k, k, combine::mean);
}

NEAP_FUNC work mse::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = 3 * static_cast<double>(c.in[0].type.count());
  return w;
}

NEAP_FUNC void mse::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.emit(mse_grad{}, {c.grad(), c.in(0), c.in(1)}));
  if (c.wants(1)) c.give(1, c.emit(mse_grad{}, {c.grad(), c.in(1), c.in(0)}));
}

NEAP_FUNC void binary_cross_entropy::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_floating(c, 0);
  detail::require_same_type(c, 0, 1);  // a column and a row would broadcast to a table
  c.fresh(c.in(0));
}

NEAP_FUNC void binary_cross_entropy::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.emit(binary_cross_entropy_grad{of_probabilities}, {c.grad(), c.in(0), c.in(1)}));
  if (!c.wants(1)) return;
  if (!of_probabilities) return c.give(1, c.emit(neg{}, {c.emit(mul{}, {c.grad(), c.in(0)})}));
  value_id const rest = c.emit(add_scalar{1}, {c.emit(neg{}, {c.in(0)})});
  auto const bounded_log = [&](value_id p) { return c.emit(clamp{-100}, {c.emit(log{}, {p})}); };
  c.give(1, c.emit(mul{}, {c.grad(), c.emit(sub{}, {bounded_log(rest), bounded_log(c.in(0))})}));
}

NEAP_FUNC void huber::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_floating(c, 0);
  detail::require_same_type(c, 0, 1);
  c.require(delta > 0, "delta must be above 0, got ", delta);
  c.fresh(c.in(0));
}

NEAP_FUNC void huber::gradient(gradient_context& c) const {
  value_id const slope = c.emit(clamp{-delta, delta}, {c.emit(sub{}, {c.in(0), c.in(1)})});
  value_id const g = c.emit(mul{}, {c.grad(), slope});
  if (c.wants(0)) c.give(0, g);
  if (c.wants(1)) c.give(1, c.emit(neg{}, {g}));
}

NEAP_FUNC bytes_t cross_entropy_grad::workspace(work_context const& c) const {
  return neap::cross_entropy_workspace(c.in[1].type);
}

NEAP_FUNC bytes_t cross_entropy::workspace(work_context const& c) const {
  return neap::cross_entropy_workspace(c.in[0].type);
}

NEAP_FUNC bytes_t mse::workspace(work_context const& c) const { return neap::mse_workspace(c.in[0].type); }

}}}  // namespace neap::v0::op
