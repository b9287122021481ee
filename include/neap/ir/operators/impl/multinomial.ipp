// The bodies of <neap/ir/operators/multinomial.hpp>.
#pragma once

#include <neap/ir/operators/multinomial.hpp>

#include <neap/backend/kernels/multinomial.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void multinomial::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_floating(c, 0);
  detail::require_dense(c, 0);
  detail::require_step(c, 1);
  tensor_type t = c.in(0);
  c.require(t.rank() > 0 && t.dims[t.rank() - 1] > 0, "there are no weights to draw by in ", t);
  c.require(count > 0, "needs a number of places to draw, got ", count);
  c.require(replacement || count <= t.dims[t.rank() - 1], count, " places cannot be drawn of ", t.dims[t.rank() - 1],
            " without replacement");
  c.require(first >= 0, "there is no row ", first);
  t.element = dtype::i64, t.dims[t.rank() - 1] = count;
  c.fresh(t);
}

NEAP_FUNC void multinomial::relate(dim_context& c) const {
  int k = 0;
  while (k + 1 < c.in(0).rank() && c.in(0).dims[k] == 1) ++k;
  if (k + 1 < c.in(0).rank()) c.same(0, k, 0, k);
}

NEAP_FUNC work multinomial::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = 30.0 * static_cast<double>(replacement ? c.out[0].type.count() : c.in[0].type.count());
  return w;
}

NEAP_FUNC bytes_t multinomial::workspace(work_context const& c) const {
  return neap::multinomial_workspace(c.in[0].type.dims);
}

}}}  // namespace neap::v0::op
