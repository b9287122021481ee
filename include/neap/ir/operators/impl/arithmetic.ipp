// The bodies of <neap/ir/operators/arithmetic.hpp>.
#pragma once

#include <neap/ir/operators/arithmetic.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void add::gradient(gradient_context& c) const {
  for (int i : {0, 1})
    if (c.wants(i)) c.give(i, reduced_to(c, c.grad(), c.type(c.in(i)).dims));
}

NEAP_FUNC void sub::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, reduced_to(c, c.grad(), c.type(c.in(0)).dims));
  if (c.wants(1)) c.give(1, c.emit(neg{}, {reduced_to(c, c.grad(), c.type(c.in(1)).dims)}));
}

NEAP_FUNC void mul::gradient(gradient_context& c) const {
  for (int i : {0, 1})
    if (c.wants(i)) c.give(i, reduced_to(c, c.emit(mul{}, {c.grad(), c.in(1 - i)}), c.type(c.in(i)).dims));
}

}}}  // namespace neap::v0::op
