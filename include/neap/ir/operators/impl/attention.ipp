// The bodies of <neap/ir/operators/attention.hpp>.
#pragma once

#include <neap/ir/operators/attention.hpp>

#include <neap/backend/kernels/attention.hpp>
#include <neap/core/element.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC tensor_layout heads_inside(tensor_type const& t) {
  auto const& d = t.dims;
  return {t, {d[1] * d[2] * d[3], d[3], d[1] * d[3], 1}, 0};
}

NEAP_FUNC bool has_rows_apart(tensor_layout const& l) {
  return l.has_dense_rows() && (l.type.dims[2] <= 1 || l.strides[2] >= l.type.dims[3] || l.has_no_elements());
}

NEAP_FUNC void require_rows_apart(shape_context& c, int i) {
  c.require(has_rows_apart(c.layout(i)), "rows of input ", i, " must be dense and apart, got ", c.in(i),
            " with strides ", c.layout(i).strides);
}

NEAP_FUNC void require_attention(shape_context& c, int q, bool causal) {
  int const k = q + 1, v = q + 2;
  for (int i : {q, k, v}) {
    c.require(c.in(i).rank() == 4, "needs [batch, heads, length, depth], got ", c.in(i));
    require_floating(c, i);
    require_same_element(c, q, i);
    require_rows_apart(c, i);
  }
  auto const &a = c.in(q).dims, &b = c.in(k).dims, &d = c.in(v).dims;
  c.require(a[0] == b[0] && a[0] == d[0] && b[1] == d[1] && b[2] == d[2] && a[3] == b[3], "q ", a, ", k ", b, " and v ",
            d, " do not fit");
  c.require(b[1] > 0 && a[1] % b[1] == 0, "heads of keys must divide those of queries, ", a, " and ", b);
  c.require(b[2] > 0 || a[2] == 0, "needs at least one key, got ", b);
  c.require(!causal || a[2] == b[2], "causal attention needs as many keys as queries, ", a, " and ", b);
}

NEAP_FUNC double attention_products(tensor_type const& q, tensor_type const& v, bool causal) {
  return (causal ? 0.5 : 1.0) * static_cast<double>(q.count()) * static_cast<double>(v.dims[2]) *
         (1 + static_cast<double>(v.dims[3]) / static_cast<double>(std::max<std::int64_t>(1, q.dims[3])));
}

NEAP_FUNC void relate_heads(dim_context& c, int q, int inputs) {
  bool const grouped = c.in(q).dims[1] != c.in(q + 1).dims[1];
  for (int i = 0; i < inputs; ++i)
    for (int j = 0; j < c.output_count(); ++j)
      for (int k = 0; k < (grouped ? 1 : 2); ++k) c.same(i, k, j, k);
}

/// Workspace by way of f32 and, for bf16, without: which of them runs is the executing machine's affair.
template <class Own>
bytes_t workspace_of_attention(work_context const& c, Own const& own) {
  auto const element = c.out[0].type.element;
  if (!is_low(element)) return own(c);
  bytes_t const wide = widened_workspace(c, {}, own);
  return element == dtype::bf16 ? std::max(wide, own(c)) : wide;
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void attention_grad::infer(shape_context& c) const {
  c.require_arity(6, 7);
  detail::require_attention(c, 1, causal);
  shape y = c.in(1).dims;
  y[3] = c.in(3).dims[3];
  detail::require_dims(c, 4, y, "the result");
  detail::require_same_type(c, 0, 4);
  for (int i : {0, 4}) detail::require_same_element(c, 1, i), detail::require_rows_apart(c, i);
  detail::require_dims(c, 5, detail::without_last(y), "logsumexp");
  detail::require_dense(c, 5);
  c.require(c.in(5).element == computed_in(c.in(1).element), "logsumexp must be ", computed_in(c.in(1).element),
            ", got ", c.in(5));
  if (c.arity() > 6) detail::require_same_type(c, 5, 6);
  for (int i : {1, 2, 3}) c.fresh(detail::heads_inside(c.in(i)));
}

NEAP_FUNC work attention_grad::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = 5 * detail::attention_products(c.in[1].type, c.in[3].type, causal);
  return w;
}

NEAP_FUNC bytes_t attention_grad::workspace(work_context const& c) const {
  auto const own = [&](work_context const& at) {
    return neap::attention_gradient_workspace(at.in[1].type.dims, at.in[2].type.dims, at.in[3].type.dims,
                                              {causal, scale}, at.in[1].type.element, detail::planned_threads());
  };
  return detail::workspace_of_attention(c, own);
}

NEAP_FUNC void attention::infer(shape_context& c) const {
  c.require_arity(3, 3);
  detail::require_attention(c, 0, causal);
  tensor_type y = c.in(0);
  y.dims[3] = c.in(2).dims[3];
  c.fresh(detail::heads_inside(y));
  c.fresh(tensor_type{computed_in(y.element), detail::without_last(y.dims)});
}

NEAP_FUNC work attention::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = 2 * detail::attention_products(c.in[0].type, c.in[2].type, causal);
  return w;
}

NEAP_FUNC bytes_t attention::workspace(work_context const& c) const {
  auto const own = [&](work_context const& at) {
    return neap::attention_workspace(at.in[0].type.dims, at.in[1].type.dims, at.in[2].type.dims, {causal, scale},
                                     at.in[0].type.element, detail::planned_threads());
  };
  return detail::workspace_of_attention(c, own);
}

NEAP_FUNC void attention::gradient(gradient_context& c) const {
  value_id g = c.grad(0), of_sums = c.grad(1);
  auto const y = c.type(c.out(0));
  g = g == nothing<value_id>                ? c.emit(fill{y.dims, y.element, 0}, {})
      : detail::has_rows_apart(c.layout(g)) ? g
                                            : c.emit(copy{}, {g});
  std::vector<value_id> in{g, c.in(0), c.in(1), c.in(2), c.out(0), c.out(1)};
  if (of_sums != nothing<value_id>) in.push_back(of_sums);
  auto const all = c.emit_all(attention_grad{causal, scale}, span_of(in));
  for (int i : {0, 1, 2})
    if (c.wants(i)) c.give(i, all[static_cast<std::size_t>(i)]);
}

}}}  // namespace neap::v0::op
