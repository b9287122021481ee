// The bodies of <neap/ir/operators/transfer.hpp>.
#pragma once

#include <neap/ir/operators/transfer.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void store::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.off_device(c.layout(0));
}

NEAP_FUNC void wait::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.view(0, c.layout(0));
}

NEAP_FUNC void load::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.fresh(c.layout(0));
}

}}}  // namespace neap::v0::op
