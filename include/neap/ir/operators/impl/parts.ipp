// The bodies of <neap/ir/operators/parts.hpp>.
#pragma once

#include <neap/ir/operators/parts.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void blank::infer(shape_context& c) const {
  c.require_arity(0, 0);
  for (auto n : dims) c.require(n >= 0, "negative extent in ", dims);
  c.require(strides.rank() == 0 || strides.rank() == dims.rank(), "as many strides as axes are needed, got ", strides,
            " for ", dims);
  tensor_layout l = tensor_layout::dense({element, dims});
  if (strides.rank() == dims.rank()) l.strides = strides;
  c.fresh(l, bytes);
}

NEAP_FUNC void place::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_same_element(c, 0, 1);
  int const k = detail::require_axis(c, 0, axis);
  auto const &whole = c.in(0).dims, &piece = c.in(1).dims;
  bool fits = whole.rank() == piece.rank();
  for (int i = 0; fits && i < whole.rank(); ++i) fits = i == k || whole[i] == piece[i];
  c.require(fits && start >= 0 && start <= whole[k] && piece[k] <= whole[k] - start, "no place for ", piece, " from ",
            start, " on along axis ", k, " of ", whole);
  c.update(0);
}

NEAP_FUNC work place::cost(work_context const& c) const {
  double const n = detail::touched_bytes(c.in[1]);
  return {0, n, n};
}

NEAP_FUNC void combine_into::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_same_type(c, 0, 1);
  c.require(how == combine::sum || how == combine::max || how == combine::min, "combines by sum, max or min");
  c.update(0);
}

}}}  // namespace neap::v0::op
