// The bodies of <neap/ir/operators/binary.hpp>.
#pragma once

#include <neap/ir/operators/binary.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::op {

NEAP_FUNC void div::gradient(gradient_context& c) const {
  value_id const over_b = c.emit(div{}, {c.grad(), c.in(1)});  // dL/da; dL/db is that times -y
  if (c.wants(0)) c.give(0, reduced_to(c, over_b, c.type(c.in(0)).dims));
  if (c.wants(1)) {
    value_id const g = reduced_to(c, c.emit(mul{}, {over_b, c.out(0)}), c.type(c.in(1)).dims);
    c.give(1, c.emit(neg{}, {g}));
  }
}

}  // namespace neap::inline v0::op

namespace neap::inline v0::op {
namespace detail {

NEAP_FUNC void comparison::infer(shape_context& c) const {
  c.require_arity(2, 2);
  require_same_element(c, 0, 1);
  c.fresh(tensor_type{dtype::boolean, broadcast(c)});
}

}  // namespace detail
}  // namespace neap::inline v0::op

namespace neap::inline v0::op {

NEAP_FUNC void where::gradient(gradient_context& c) const {
  auto const element = c.type(c.grad()).element;
  value_id const zero = c.emit(fill{{}, element, 0}, {});
  if (c.wants(1)) c.give(1, reduced_to(c, c.emit(where{}, {c.in(0), c.grad(), zero}), c.type(c.in(1)).dims));
  if (c.wants(2)) c.give(2, reduced_to(c, c.emit(where{}, {c.in(0), zero, c.grad()}), c.type(c.in(2)).dims));
}

NEAP_FUNC void pow_op::gradient(gradient_context& c) const {
  if (c.wants(0)) {  // g * b * y / a
    value_id const slope = c.emit(mul{}, {c.emit(div{}, {c.out(0), c.in(0)}), c.in(1)});
    c.give(0, reduced_to(c, c.emit(mul{}, {slope, c.grad()}), c.type(c.in(0)).dims));
  }
  if (c.wants(1)) {  // g * y * log a
    value_id const slope = c.emit(mul{}, {c.out(0), c.emit(log{}, {c.in(0)})});
    c.give(1, reduced_to(c, c.emit(mul{}, {slope, c.grad()}), c.type(c.in(1)).dims));
  }
}

}  // namespace neap::inline v0::op
