// The bodies of <neap/ir/operators/softmax.hpp>.
#pragma once

#include <neap/ir/operators/softmax.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC value_id sum_of_rows(gradient_context& c, value_id v) {
  shape dims = c.type(v).dims;
  dims[dims.rank() - 1] = 1;
  return reduced_to(c, v, dims);
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void softmax_grad::gradient(gradient_context& c) const {  // of y (g - sum(g y))
  value_id const h = dense_rows(c, c.grad()), g = c.in(0), y = c.in(1);
  if (c.wants(0)) c.give(0, c.emit(softmax_grad{}, {h, y}));
  if (!c.wants(1)) return;
  value_id const own = detail::difference(c, g, detail::sum_of_rows(c, detail::product(c, g, y)));
  value_id const others = detail::product(c, g, detail::sum_of_rows(c, detail::product(c, h, y)));
  c.give(1, detail::difference(c, detail::product(c, h, own), others));
}

NEAP_FUNC void log_softmax_grad::gradient(gradient_context& c) const {  // of g - e^y sum(g)
  value_id const h = c.grad(), weighted = detail::product(c, h, c.emit(exp{}, {c.in(1)}));
  if (c.wants(0)) c.give(0, detail::difference(c, h, detail::sum_of_rows(c, weighted)));
  if (c.wants(1)) c.give(1, c.emit(neg{}, {detail::product(c, weighted, detail::sum_of_rows(c, c.in(0)))}));
}

NEAP_FUNC void log_softmax::gradient(gradient_context& c) const {
  c.give(0, c.emit(log_softmax_grad{}, {dense_rows(c, c.grad()), c.out(0)}));
}

}}}  // namespace neap::v0::op
