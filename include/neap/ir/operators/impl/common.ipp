// The bodies of <neap/ir/operators/common.hpp>.
#pragma once

#include <neap/ir/operators/common.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void require_floating(shape_context& c, int i) {
  c.require(is_floating(c.in(i).element), "needs a floating type, got ", c.in(i));
}

NEAP_FUNC void require_same_element(shape_context& c, int i, int j) {
  c.require(c.in(i).element == c.in(j).element, "element types differ, ", c.in(i), " and ", c.in(j),
            is_floating(c.in(i).element) == is_floating(c.in(j).element)
                ? ": cast one of them"
                : ": are whole numbers (labels, ids) where floats belong? If they are meant, cast them");
}

NEAP_FUNC void require_same_type(shape_context& c, int i, int j) {
  c.require(c.in(i) == c.in(j), "types differ, ", c.in(i), " and ", c.in(j));
}

NEAP_FUNC void require_dims(shape_context& c, int i, shape const& dims, std::string_view what) {
  c.require(c.in(i).dims == dims, what, " must have shape ", dims, ", got ", c.in(i));
}

NEAP_FUNC void require_rank(shape_context& c, int i, int least, std::string_view what) {
  c.require(c.in(i).rank() >= least, what, " needs at least ", least, least == 1 ? " axis" : " axes", ", got ",
            c.in(i));
}

NEAP_FUNC void require_dense(shape_context& c, int i) {
  c.require(c.layout(i).is_dense(), "input ", i, " must be dense, got ", c.in(i), " with strides ",
            c.layout(i).strides);
}

NEAP_FUNC void require_dense_rows(shape_context& c, int i) {
  c.require(c.layout(i).has_dense_rows(), "rows of input ", i, " must be dense, got ", c.in(i), " with strides ",
            c.layout(i).strides);
}

NEAP_FUNC int require_axis(shape_context& c, int i, std::int64_t axis) {
  int const rank = c.in(i).rank();
  c.require(axis >= -rank && axis < rank, "no axis ", axis, " in ", c.in(i));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

NEAP_FUNC shape broadcast(shape_context& c, int first) {
  shape dims = c.in(first).dims;
  for (int i = first + 1; i < c.arity(); ++i) {
    shape const& b = c.in(i).dims;
    shape const& longer = dims.rank() >= b.rank() ? dims : b;
    shape const& shorter = dims.rank() >= b.rank() ? b : dims;
    shape both = longer;
    int const missing = longer.rank() - shorter.rank();
    for (int k = missing; k < longer.rank(); ++k) {
      auto const x = longer[k], y = shorter[k - missing];
      c.require(x == y || x == 1 || y == 1, "shapes do not broadcast, ", dims, " and ", b);
      both[k] = x == 1 ? y : x;
    }
    dims = both;
  }
  return dims;
}

NEAP_FUNC tensor_ref optional(std::span<tensor_ref const> list, std::size_t i) {
  return i < list.size() ? list[i] : tensor_ref{};
}

}  // namespace detail
}}}  // namespace neap::v0::op
