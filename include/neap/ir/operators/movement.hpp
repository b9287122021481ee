// Operators that move elements without computing: views (which cost nothing), copies, casts, fills, concatenation and
// padding; and `dense`, which puts a copy where a kernel needs dense memory.
#pragma once

#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/backend/kernels/triangle.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/common.hpp>

namespace neap::inline v0::op {

/// x -> x, dense, in a storage of its own.
struct copy {
  static constexpr std::string_view name = "copy";
  static constexpr bool elementwise = true;
  static constexpr double flops = 0;
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const { c.aligned(0, 0); }
  void gradient(gradient_context& c) const { c.give(0, c.grad()); }
};
template <class Backend>
void run(Backend& b, copy const&, kernel_arguments const& a) {
  neap::copy(b, a.out[0], a.in[0]);
}

inline value_id dense(op_emitter& to, value_id v) {
  if (to.layout_of(v).is_dense()) return v;
  return to.emit(view_of(copy{}), span_of(&v, 1)).front();
}
inline value_id dense(gradient_context& c, value_id v) { return c.layout(v).is_dense() ? v : c.emit(copy{}, {v}); }
inline value_id dense_rows(op_emitter& to, value_id v) { return to.layout_of(v).has_dense_rows() ? v : dense(to, v); }
inline value_id dense_rows(gradient_context& c, value_id v) { return c.layout(v).has_dense_rows() ? v : dense(c, v); }

/// x -> x in another element type. Floating to integer goes towards 0, to bool: whether it is not 0.
struct cast {
  static constexpr std::string_view name = "cast";
  static constexpr bool elementwise = true;
  dtype to = dtype::f32;
  static constexpr auto attributes() { return std::array{field<&cast::to>("to")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.fresh(tensor_type{to, c.in(0).dims});
  }
  void relate(dim_context& c) const { c.aligned(0, 0); }
  void gradient(gradient_context& c) const {
    auto const from = c.type(c.in(0)).element;
    if (is_floating(from) && is_floating(to)) c.give(0, c.emit(cast{from}, {c.grad()}));
  }
};
template <class Backend>
void run(Backend& b, cast const&, kernel_arguments const& a) {
  neap::cast(b, a.out[0], a.in[0]);
}

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
  void infer(shape_context& c) const {
    c.require_arity(0, 0);
    for (auto n : dims) c.require(n >= 0, "negative extent in ", dims);
    c.fresh(tensor_type{element, dims});
  }
  void relate(dim_context&) const {}
};
template <class Backend>
void run(Backend& b, fill const& op, kernel_arguments const& a) {
  neap::fill(b, a.out[0], op.value);
}

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
inline plain_vector<dim_link> reshape_links(extents const& a, extents const& b) {
  plain_vector<dim_link> links;
  each_reshaped_axis(a, b, [&](int i, int j) {
    links.push_back({0, static_cast<std::int16_t>(i), 0, static_cast<std::int16_t>(j), combine::concat});
  });
  return links;
}
/// Whether an op's relations are those of a reshape from a to b.
inline bool relates_as_reshape(std::span<dim_link const> links, extents const& a, extents const& b) {
  auto const same = [](dim_link const& x, dim_link const& y) {
    return x.input == y.input && x.in_axis == y.in_axis && x.output == y.output && x.out_axis == y.out_axis &&
           x.how == y.how;
  };
  auto const of_reshape = reshape_links(a, b);
  return std::equal(links.begin(), links.end(), of_reshape.begin(), of_reshape.end(), same);
}
}  // namespace detail

/// A view of a dense tensor with other extents, of as many elements.
struct reshape {
  static constexpr std::string_view name = "reshape";
  static constexpr double flops = 0;
  extents dims;
  static constexpr auto attributes() { return std::array{field<&reshape::dims>("dims")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.require(c.in(0).count() == elements(dims), "from ", c.in(0).dims, " to ", dims, ": element counts differ");
    detail::require_dense(c, 0);
    c.view(0, {{c.in(0).element, dims}, dense_strides(dims), c.layout(0).offset});
  }
  void relate(dim_context& c) const {
    detail::each_reshaped_axis(c.in(0).dims, c.out(0).dims, [&](int i, int j) { c.same(0, i, 0, j); });
  }
  void gradient(gradient_context& c) const { c.give(0, c.emit(reshape{c.type(c.in(0)).dims}, {dense(c, c.grad())})); }
};

/// A view whose axis k is axis axes[k] of x.
struct permute {
  static constexpr std::string_view name = "permute";
  static constexpr double flops = 0;
  extents axes;
  static constexpr auto attributes() { return std::array{field<&permute::axes>("axes")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    auto const& x = c.layout(0);
    c.require(axes.rank() == x.type.rank(), axes, " does not order the axes of ", x.type);
    tensor_layout l{{x.type.element, {}}, {}, x.offset};
    unsigned seen = 0;
    for (auto k : axes) {
      c.require(k >= 0 && k < x.type.rank() && !(seen >> k & 1u), axes, " does not order the axes of ", x.type);
      seen |= 1u << k;
      l.type.dims.push_back(x.type.dims[static_cast<int>(k)]);
      l.strides.push_back(x.strides[static_cast<int>(k)]);
    }
    c.view(0, l);
  }
  void relate(dim_context& c) const {
    for (int k = 0; k < axes.rank(); ++k) c.same(0, static_cast<int>(axes[k]), 0, k);
  }
  void gradient(gradient_context& c) const {
    extents back = axes;
    for (int k = 0; k < axes.rank(); ++k) back[static_cast<int>(axes[k])] = k;
    c.give(0, c.emit(permute{back}, {c.grad()}));
  }
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
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    int const k = detail::require_axis(c, 0, axis);
    c.require(before >= 0 && after >= 0, "cannot pad by ", before, " and ", after);
    tensor_type t = c.in(0);
    t.dims[k] = checked_add(t.dims[k], checked_add(before, after));
    c.fresh(t);
  }
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, pad const& op, kernel_arguments const& a) {
  extents before = extents::filled(a.in[0].rank(), 0);
  before[detail::plain_axis(op.axis, a.in[0].rank())] = op.before;
  neap::pad(b, a.out[0], a.in[0], before, op.value);
}

/// A view of the part [start, stop) of an axis.
struct slice {
  static constexpr std::string_view name = "slice";
  static constexpr double flops = 0;
  std::int64_t axis = 0, start = 0, stop = 0;
  static constexpr auto attributes() {
    return std::array{field<&slice::axis>("axis"), field<&slice::start>("start"), field<&slice::stop>("stop")};
  }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    int const k = detail::require_axis(c, 0, axis);
    c.require(start >= 0 && start <= stop && stop <= c.in(0).dims[k], "no part ", start, " to ", stop, " of axis ", k,
              " in ", c.in(0));
    auto l = c.layout(0);
    l.offset += start * l.strides[k];
    l.type.dims[k] = stop - start;
    c.view(0, l);
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i)
      if (i != k) c.same(0, i, 0, i);
  }
  void gradient(gradient_context& c) const {
    auto const dims = c.type(c.in(0)).dims;
    int const k = detail::plain_axis(axis, dims.rank());
    c.give(0, c.emit(pad{k, start, dims[k] - stop}, {c.grad()}));
  }
};
inline void pad::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    if (i != k) c.same(0, i, 0, i);
}
inline void pad::gradient(gradient_context& c) const {
  auto const dims = c.type(c.in(0)).dims;
  int const k = detail::plain_axis(axis, dims.rank());
  c.give(0, c.emit(slice{k, before, before + dims[k]}, {c.grad()}));
}

/// Inputs one after another along an axis.
struct concat {
  static constexpr std::string_view name = "concat";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr double flops = 0;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&concat::axis>("axis")}; }
  void infer(shape_context& c) const {
    c.require(c.arity() >= 1, "needs at least one input");
    int const k = detail::require_axis(c, 0, axis);
    tensor_type t = c.in(0);
    for (int i = 1; i < c.arity(); ++i) {
      detail::require_same_element(c, 0, i);
      bool fits = c.in(i).rank() == t.rank();
      for (int j = 0; fits && j < t.rank(); ++j) fits = j == k || c.in(i).dims[j] == t.dims[j];
      c.require(fits, "shapes differ outside axis ", k, ", ", c.in(0).dims, " and ", c.in(i).dims);
      t.dims[k] = checked_add(t.dims[k], c.in(i).dims[k]);
    }
    c.fresh(t);
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.arity(); ++i)
      for (int j = 0; j < c.in(0).rank(); ++j)
        if (j != k) c.same(i, j, 0, j);
  }
  void gradient(gradient_context& c) const {
    std::int64_t at = 0;
    for (int i = 0; i < c.arity(); ++i) {
      auto const dims = c.type(c.in(i)).dims;
      int const k = detail::plain_axis(axis, dims.rank());
      if (c.wants(i)) c.give(i, c.emit(slice{k, at, at + dims[k]}, {c.grad()}));
      at += dims[k];
    }
  }
};
template <class Backend>
void run(Backend& b, concat const& op, kernel_arguments const& a) {
  int const k = detail::plain_axis(op.axis, a.out[0].rank());
  std::int64_t at = 0;
  for (auto const& x : a.in) {
    neap::copy_into(b, a.out[0], k, at, x);
    at += x.dims[k];
  }
}

/// x summed over the axes along which a tensor of shape `dims` would be broadcast to x's: the reverse of broadcast_to.
struct sum_to {
  static constexpr std::string_view name = "sum_to";
  extents dims;
  static constexpr auto attributes() { return std::array{field<&sum_to::dims>("dims")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    auto const& x = c.in(0).dims;
    int const missing = x.rank() - dims.rank();
    bool fits = missing >= 0;
    for (int k = 0; fits && k < dims.rank(); ++k) fits = dims[k] == x[missing + k] || dims[k] == 1;
    c.require(fits, dims, " does not broadcast to ", x);
    c.fresh(tensor_type{c.in(0).element, dims});
  }
  void relate(dim_context& c) const {
    int const missing = c.in(0).rank() - dims.rank();
    int reduced = 0;
    for (int k = 0; k < c.in(0).rank(); ++k)
      if (k >= missing && c.out(0).dims[k - missing] == c.in(0).dims[k]) c.same(0, k, 0, k - missing);
      else c.reduced(0, k, reduced++);
  }
  work cost(work_context const& c) const {
    work w = detail::streaming_work(c, 0);
    w.flops = static_cast<double>(c.in[0].type.count());
    return w;
  }
  bytes_t workspace(work_context const& c) const { return neap::sum_to_shape_workspace(c.in[0].type, c.out[0].type); }
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, sum_to const&, kernel_arguments const& a) {
  neap::sum_to_shape(b, a.out[0], a.in[0], a.workspace);
}

/// A view of x in a larger shape: missing leading axes and axes of extent 1 repeat (stride 0).
struct broadcast_to {
  static constexpr std::string_view name = "broadcast_to";
  static constexpr double flops = 0;
  extents dims;
  static constexpr auto attributes() { return std::array{field<&broadcast_to::dims>("dims")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    auto const& x = c.layout(0);
    int const missing = dims.rank() - x.type.rank();
    c.require(missing >= 0, x.type.dims, " does not broadcast to ", dims);
    tensor_layout l{{x.type.element, dims}, extents::filled(dims.rank(), 0), x.offset};
    for (int k = missing; k < dims.rank(); ++k) {
      auto const n = x.type.dims[k - missing];
      c.require(n == dims[k] || n == 1, x.type.dims, " does not broadcast to ", dims);
      l.strides[k] = n == dims[k] ? x.strides[k - missing] : 0;
    }
    c.view(0, l);
  }
  void relate(dim_context& c) const { c.aligned(0, 0); }
  void gradient(gradient_context& c) const { c.give(0, reduced_to(c, c.grad(), c.type(c.in(0)).dims)); }
};
inline void sum_to::gradient(gradient_context& c) const {
  c.give(0, c.emit(broadcast_to{c.type(c.in(0)).dims}, {c.grad()}));
}
inline value_id reduced_to(gradient_context& c, value_id g, shape const& dims) {
  return c.type(g).dims == dims ? g : c.emit(sum_to{dims}, {g});
}

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
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    detail::require_rank(c, 0, 2, "x");
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const { detail::relate_leading(c, 0, 0, 2); }
  void gradient(gradient_context& c) const { c.give(0, c.emit(triangle{diagonal, upper}, {c.grad()})); }
};
template <class Backend>
void run(Backend& b, triangle const& op, kernel_arguments const& a) {
  neap::triangle(b, a.out[0], a.in[0], op.diagonal, op.upper);
}

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
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.require(dims.rank() == strides.rank() && offset >= 0, "no view of extents ", dims, ", strides ", strides,
              " and offset ", offset);
    c.view(0, {{c.in(0).element, dims}, strides, offset});
  }
  void relate(dim_context&) const {}
};

/// Views have no work at all; they are never run.
template <class Op>
concept view_operator = std::is_same_v<Op, reshape> || std::is_same_v<Op, permute> || std::is_same_v<Op, slice> ||
                        std::is_same_v<Op, broadcast_to> || std::is_same_v<Op, as_strided>;
template <class Backend, view_operator Op>
void run(Backend&, Op const&, kernel_arguments const&) {}

}  // namespace neap::inline v0::op
