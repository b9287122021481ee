// Equal parts of an axis as views: one op with several outputs, so that its gradient is one concatenation. (As slices,
// each part's gradient would be padded to the whole, and the wholes added.)
#pragma once

#include <neap/core/span_of.hpp>
#include <neap/ir/operators/movement.hpp>

namespace neap::inline v0::op {

/// x -> views of `parts` equal parts of an axis, in order.
struct split {
  static constexpr std::string_view name = "split";
  static constexpr double flops = 0;
  std::int64_t axis = 0, parts = 1;
  static constexpr auto attributes() { return std::array{field<&split::axis>("axis"), field<&split::parts>("parts")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    int const k = detail::require_axis(c, 0, axis);
    c.require(parts >= 1 && c.in(0).dims[k] % parts == 0, "axis ", k, " of ", c.in(0), " does not divide into ", parts,
              " parts");
    auto l = c.layout(0);
    l.type.dims[k] /= parts;
    for (std::int64_t i = 0; i < parts; ++i, l.offset += l.type.dims[k] * l.strides[k]) c.view(0, l);
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int j = 0; j < c.output_count(); ++j)
      for (int i = 0; i < c.in(0).rank(); ++i)
        if (i != k) c.same(0, i, j, i);
  }
  void gradient(gradient_context& c) const {
    std::vector<value_id> all;
    auto const part = c.type(c.out(0));
    for (int j = 0; j < static_cast<int>(parts); ++j)
      all.push_back(c.grad(j) != nothing<value_id> ? c.grad(j) : c.emit(fill{part.dims, part.element, 0}, {}));
    c.give(0, all.size() == 1 ? all[0] : c.emit_all(concat{axis}, span_of(all)).front());
  }
};
template <class Backend>
void run(Backend&, split const&, kernel_arguments const&) {}

}  // namespace neap::inline v0::op
