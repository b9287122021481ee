// The bodies of <neap/ir/operators/split.hpp>.
#pragma once

#include <neap/ir/operators/split.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void split::infer(shape_context& c) const {
  c.require_arity(1, 1);
  int const k = detail::require_axis(c, 0, axis);
  c.require(parts >= 1 && c.in(0).dims[k] % parts == 0, "axis ", k, " of ", c.in(0), " does not divide into ", parts,
            " parts");
  auto l = c.layout(0);
  l.type.dims[k] /= parts;
  for (std::int64_t i = 0; i < parts; ++i, l.offset += l.type.dims[k] * l.strides[k]) c.view(0, l);
}

NEAP_FUNC void split::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int j = 0; j < c.output_count(); ++j)
    for (int i = 0; i < c.in(0).rank(); ++i)
      if (i != k) c.same(0, i, j, i);
}

NEAP_FUNC void split::gradient(gradient_context& c) const {
  std::vector<value_id> all;
  auto const part = c.type(c.out(0));
  for (int j = 0; j < static_cast<int>(parts); ++j)
    all.push_back(c.grad(j) != nothing<value_id> ? c.grad(j) : c.emit(fill{part.dims, part.element, 0}, {}));
  c.give(0, all.size() == 1 ? all[0] : c.emit_all(concat{axis}, span_of(all)).front());
}

}}}  // namespace neap::v0::op
