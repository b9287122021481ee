// Operators that move elements without computing: views (which cost nothing), copies, casts, fills, concatenation and
// padding; and `dense`, which puts a copy where a kernel needs dense memory.
#pragma once

#include <neap/core/span_of.hpp>
#include <neap/ir/operators/common.hpp>

namespace neap { inline namespace v0 { namespace op {

/// x -> x, dense, in a storage of its own.
struct copy {
  static constexpr std::string_view name = "copy";
  static constexpr bool elementwise = true;
  static constexpr double flops = 0;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
  void gradient(gradient_context& c) const { c.give(0, c.grad()); }
};
template <class Backend>
void run(Backend& b, copy const&, kernel_arguments const& a);

value_id dense(op_emitter& to, value_id v);
inline value_id dense(gradient_context& c, value_id v) { return c.layout(v).is_dense() ? v : c.emit(copy{}, {v}); }
inline value_id dense_rows(op_emitter& to, value_id v) { return to.layout_of(v).has_dense_rows() ? v : dense(to, v); }
inline value_id dense_rows(gradient_context& c, value_id v) { return c.layout(v).has_dense_rows() ? v : dense(c, v); }

/// x -> x in another element type. Floating to integer goes towards 0, to bool: whether it is not 0.
struct cast {
  static constexpr std::string_view name = "cast";
  static constexpr bool elementwise = true;
  dtype to = dtype::f32;
  static constexpr auto attributes() { return std::array{field<&cast::to>("to")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, cast const&, kernel_arguments const& a);

namespace detail {
/// v in another element type.
value_id in_element(gradient_context& c, value_id v, dtype t);
}  // namespace detail

/// -> a dense tensor of one value.
struct fill {
  static constexpr std::string_view name = "fill";
  static constexpr double flops = 0;
  extents dims;
  dtype element = dtype::f32;
  double value = 0;
  static constexpr auto attributes() {
    return std::array{field<&fill::dims>("dims"), field<&fill::element>("element"), field<&fill::value>("value")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
};
template <class Backend>
void run(Backend& b, fill const& op, kernel_arguments const& a);

namespace detail {
/// Says which axes of a tensor of extents `a` are cut together with which of it reshaped to `b`: those that stay, and of
/// each group of axes that is joined or split the leading one on both sides where one extent divides the other: in
/// [B,T,D] -> [B*T,D] a piece of B is a piece of B*T. Axes of extent 1 are passed over.
template <class F>
void each_reshaped_axis(extents const& a, extents const& b, F const& say) {
  for (auto const* e : {&a, &b})
    for (auto n : *e)
      if (n == 0) return;
  for (int i = 0, j = 0;;) {
    while (i < a.rank() && a[i] == 1) ++i;
    while (j < b.rank() && b[j] == 1) ++j;
    if (i == a.rank() || j == b.rank()) return;
    if (a[i] % b[j] == 0 || b[j] % a[i] == 0) say(i, j);
    std::int64_t in_a = a[i++], in_b = b[j++];
    while (in_a != in_b)
      if (in_a < in_b && i < a.rank()) in_a *= a[i++];
      else if (j < b.rank()) in_b *= b[j++];
      else return;
  }
}
/// The relations of a reshape from extents a to b.
plain_vector<dim_link> reshape_links(extents const& a, extents const& b);
/// Whether an op's relations are those of a reshape from a to b.
bool relates_as_reshape(std::span<dim_link const> links, extents const& a, extents const& b);
}  // namespace detail

/// A view of a dense tensor with other extents, of as many elements.
struct reshape {
  static constexpr std::string_view name = "reshape";
  static constexpr double flops = 0;
  extents dims;
  static constexpr auto attributes() { return std::array{field<&reshape::dims>("dims")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const { c.give(0, c.emit(reshape{c.type(c.in(0)).dims}, {dense(c, c.grad())})); }
};

/// A view whose axis k is axis axes[k] of x.
struct permute {
  static constexpr std::string_view name = "permute";
  static constexpr double flops = 0;
  extents axes;
  static constexpr auto attributes() { return std::array{field<&permute::axes>("axes")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const;
};

/// x with `before` and `after` elements of `value` around an axis.
struct pad {
  static constexpr std::string_view name = "pad";
  static constexpr double flops = 0;
  std::int64_t axis = 0, before = 0, after = 0;
  double value = 0;
  static constexpr auto attributes() {
    return std::array{field<&pad::axis>("axis"), field<&pad::before>("before"), field<&pad::after>("after"),
                      field<&pad::value>("value")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, pad const& op, kernel_arguments const& a);

/// A view of the part [start, stop) of an axis.
struct slice {
  static constexpr std::string_view name = "slice";
  static constexpr double flops = 0;
  std::int64_t axis = 0, start = 0, stop = 0;
  static constexpr auto attributes() {
    return std::array{field<&slice::axis>("axis"), field<&slice::start>("start"), field<&slice::stop>("stop")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const;
};

/// Inputs one after another along an axis.
struct concat {
  static constexpr std::string_view name = "concat";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 0;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&concat::axis>("axis")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, concat const& op, kernel_arguments const& a);

/// x summed over the axes along which a tensor of shape `dims` would be broadcast to x's: the reverse of broadcast_to.
struct sum_to {
  static constexpr std::string_view name = "sum_to";
  extents dims;
  static constexpr auto attributes() { return std::array{field<&sum_to::dims>("dims")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, sum_to const&, kernel_arguments const& a);

/// A view of x in a larger shape: missing leading axes and axes of extent 1 repeat (stride 0).
struct broadcast_to {
  static constexpr std::string_view name = "broadcast_to";
  static constexpr double flops = 0;
  extents dims;
  static constexpr auto attributes() { return std::array{field<&broadcast_to::dims>("dims")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
  void gradient(gradient_context& c) const { c.give(0, reduced_to(c, c.grad(), c.type(c.in(0)).dims)); }
};
value_id reduced_to(gradient_context& c, value_id g, shape const& dims);

/// x with zeros below a diagonal of the last two axes (upper), or above it; diagonal d holds the elements (i, i + d).
struct triangle {
  static constexpr std::string_view name = "triangle";
  static constexpr bool elementwise = true;
  static constexpr double flops = 0;
  std::int64_t diagonal = 0;
  bool upper = false;
  static constexpr auto attributes() {
    return std::array{field<&triangle::diagonal>("diagonal"), field<&triangle::upper>("upper")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_leading(c, 0, 0, 2); }
  void gradient(gradient_context& c) const { c.give(0, c.emit(triangle{diagonal, upper}, {c.grad()})); }
};
template <class Backend>
void run(Backend& b, triangle const& op, kernel_arguments const& a);

/// A view of x's storage with any extents and strides, from any element on: what traces make of tensors that look at
/// other parts of a storage than was updated last. It has no gradient.
struct as_strided {
  static constexpr std::string_view name = "as_strided";
  static constexpr double flops = 0;
  extents dims, strides;
  std::int64_t offset = 0;  // of the first element in the storage, in elements
  static constexpr auto attributes() {
    return std::array{field<&as_strided::dims>("dims"), field<&as_strided::strides>("strides"),
                      field<&as_strided::offset>("offset")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
};

/// Views have no work at all; they are never run.
template <class Op>
concept view_operator = std::is_same_v<Op, reshape> || std::is_same_v<Op, permute> || std::is_same_v<Op, slice> ||
                        std::is_same_v<Op, broadcast_to> || std::is_same_v<Op, as_strided>;
template <class Backend, view_operator Op>
void run(Backend&, Op const&, kernel_arguments const&);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/movement.ipp>
#endif
