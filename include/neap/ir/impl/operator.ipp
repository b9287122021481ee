// The bodies of <neap/ir/operator.hpp>.
#pragma once

#include <neap/ir/operator.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void check_rules(shape_context const& c, void (*relate)(void const*, dim_context&), void const* op) {
  c.require(!c.outputs().empty(), "its infer() gives no output: c.fresh(type), c.view(input, layout), c.update(input)");
  plain_vector<tensor_layout> out;
  for (auto const& o : c.outputs()) {
    if (o.of >= 0) (void)c.layout(o.of);
    out.push_back(o.layout);
  }
  dim_context dims(c.inputs(), {out.data(), out.size()});
  try {
    relate(op, dims);
  } catch (error const& e) { c.require(false, e.what()); }
  auto const require = [&](int i, int axis, std::span<tensor_layout const> all, char const* what) {
    c.require(i >= 0 && static_cast<std::size_t>(i) < all.size(), "its relate() joins ", what, i, ", which it has not");
    auto const& t = all[static_cast<std::size_t>(i)].type;
    c.require(axis >= 0 && axis < t.rank(), "its relate() joins axis ", axis, " of ", what, i, ", which is ", t);
  };
  for (auto const& l : dims.links()) {
    require(l.input, l.in_axis, c.inputs(), "input ");
    if (l.output >= 0) require(l.output, l.out_axis, {out.data(), out.size()}, "output ");
  }
}

}  // namespace detail
}}  // namespace neap::v0
