// Rows, parts and elements picked by numbers, and the way back; numbers as ones in rows of zeros.
#pragma once

#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/kernels/indexed.hpp>
#include <neap/backend/kernels/topk.hpp>
#include <neap/ir/operators/binary.hpp>

namespace neap::inline v0::op {

namespace detail {
inline void require_places(shape_context& c, int i) {
  c.require(c.in(i).element == dtype::i64, "numbers must be i64, was given ", c.in(i), ": cast them");
}
}  // namespace detail

/// g [..., D], ids [...] -> dtable [rows, D].
struct embedding_grad {
  static constexpr std::string_view name = "embedding_grad";
  static constexpr bool checks_numbers = true;
  std::int64_t rows = 0;
  static constexpr auto attributes() { return std::array{field<&embedding_grad::rows>("rows")}; }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    detail::require_floating(c, 0);
    detail::require_places(c, 1);
    detail::require_rank(c, 0, 1, "the gradient");
    shape expected = c.in(1).dims;
    expected.push_back(c.in(0).dims.back());
    detail::require_dims(c, 0, expected, "the gradient");
    detail::require_dense_rows(c, 0), detail::require_dense(c, 1);
    c.fresh(tensor_type{c.in(0).element, {rows, c.in(0).dims.back()}});
  }
  void relate(dim_context& c) const {
    for (int k = 0; k < c.in(1).rank(); ++k) c.reduced(0, k, k), c.reduced(1, k, k);
    c.same(0, c.in(0).rank() - 1, 0, 1);
  }
  bytes_t workspace(work_context const& c) const {
    return neap::embedding_backward_workspace(rows, c.in[1].type.count());
  }
  void gradient(gradient_context& c) const;
};
/// table [rows, D], ids [...] -> [..., D].
struct embedding {
  static constexpr std::string_view name = "embedding";
  static constexpr bool checks_numbers = true;
  static constexpr precision_rule precision = precision_use::rows;
  static constexpr double flops = 0;
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    c.require(c.in(0).rank() == 2, "the table needs two axes, was given ", c.in(0));
    detail::require_places(c, 1);
    detail::require_dense_rows(c, 0), detail::require_dense(c, 1);
    tensor_type t{c.in(0).element, c.in(1).dims};
    t.dims.push_back(c.in(0).dims[1]);
    c.fresh(t);
  }
  void relate(dim_context& c) const {
    for (int k = 0; k < c.in(1).rank(); ++k) c.same(1, k, 0, k);
    c.same(0, 1, 0, c.in(1).rank());
  }
  work cost(work_context const& c) const {  // it reads only the rows that are picked
    double const n = detail::touched_bytes(c.out[0]);
    return {0, n + detail::touched_bytes(c.in[1]), n};
  }
  void gradient(gradient_context& c) const {
    if (c.wants(0)) c.give(0, c.emit(embedding_grad{c.type(c.in(0)).dims[0]}, {dense_rows(c, c.grad()), c.in(1)}));
  }
};
inline void embedding_grad::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.emit(embedding{}, {dense_rows(c, c.grad()), c.in(1)}));
}
template <class Backend>
void run(Backend& b, embedding const&, kernel_arguments const& a) {
  neap::embedding(b, a.out[0], a.in[0], a.in[1]);
}
template <class Backend>
void run(Backend& b, embedding_grad const&, kernel_arguments const& a) {
  neap::embedding_backward(b, a.out[0], a.in[0], a.in[1], a.workspace, position_sort<Backend>{});
}

struct scatter_add;
/// x, index -> y of index's shape: y[..., k, ...] = x[..., index[..., k, ...], ...] along an axis.
struct gather {
  static constexpr std::string_view name = "gather";
  static constexpr bool checks_numbers = true;
  static constexpr double flops = 0;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&gather::axis>("axis")}; }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    int const k = detail::require_axis(c, 0, axis);
    detail::require_places(c, 1);
    bool fits = c.in(0).rank() == c.in(1).rank();
    for (int i = 0; fits && i < c.in(0).rank(); ++i) fits = i == k || c.in(0).dims[i] == c.in(1).dims[i];
    c.require(fits, "index ", c.in(1).dims, " and input ", c.in(0).dims, " differ outside axis ", k);
    c.fresh(tensor_type{c.in(0).element, c.in(1).dims});
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i) {
      if (i != k) c.same(0, i, 0, i);
      c.same(1, i, 0, i);
    }
  }
  void gradient(gradient_context& c) const;
};
/// x, index -> y with `extent` places along the axis, y[..., index[..., k, ...], ...] the sum of the x[..., k, ...] that
/// are sent there, in the order of k: the gradient of gather.
struct scatter_add {
  static constexpr std::string_view name = "scatter_add";
  static constexpr bool checks_numbers = true;
  static constexpr precision_rule precision = precision_use::common;
  std::int64_t axis = 0, extent = 0;
  static constexpr auto attributes() {
    return std::array{field<&scatter_add::axis>("axis"), field<&scatter_add::extent>("extent")};
  }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    detail::require_floating(c, 0);
    int const k = detail::require_axis(c, 0, axis);
    detail::require_places(c, 1);
    c.require(c.in(0).dims == c.in(1).dims, "index ", c.in(1).dims, " and input ", c.in(0).dims, " differ");
    tensor_type t = c.in(0);
    t.dims[k] = extent;
    c.fresh(t);
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i)
      for (int j : {0, 1})
        if (i != k) c.same(j, i, 0, i);
        else c.reduced(j, i, 0);
  }
  void gradient(gradient_context& c) const {
    if (c.wants(0)) c.give(0, c.emit(gather{axis}, {c.grad(), c.in(1)}));
  }
};
inline void gather::gradient(gradient_context& c) const {
  auto const dims = c.type(c.in(0)).dims;
  if (c.wants(0))
    c.give(0, c.emit(scatter_add{axis, dims[detail::plain_axis(axis, dims.rank())]}, {c.grad(), c.in(1)}));
}
template <class Backend>
void run(Backend& b, gather const& op, kernel_arguments const& a) {
  neap::gather(b, a.out[0], a.in[0], a.in[1], static_cast<int>(op.axis));
}
template <class Backend>
void run(Backend& b, scatter_add const& op, kernel_arguments const& a) {
  neap::fill(b, a.out[0], 0);
  neap::scatter_add(b, a.out[0], a.in[0], a.in[1], static_cast<int>(op.axis));
}

namespace detail {
inline int require_numbers(shape_context& c, std::int64_t axis) {
  int const k = require_axis(c, 0, axis);
  require_places(c, 1);
  c.require(c.in(1).rank() == 1, "the numbers must have one axis, was given ", c.in(1));
  return k;
}
}  // namespace detail

/// x, index [n] -> y[..., i, ...] = x[..., index[i], ...] along an axis.
struct index_select {
  static constexpr std::string_view name = "index_select";
  static constexpr bool checks_numbers = true;
  static constexpr double flops = 0;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&index_select::axis>("axis")}; }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    tensor_type t = c.in(0);
    t.dims[detail::require_numbers(c, axis)] = c.in(1).dims[0];
    c.fresh(t);
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i)
      if (i != k) c.same(0, i, 0, i);
    c.same(1, 0, 0, k);
  }
  work cost(work_context const& c) const {  // it reads only what is picked
    double const n = detail::touched_bytes(c.out[0]);
    return {0, n + detail::touched_bytes(c.in[1]), n};
  }
  void gradient(gradient_context& c) const;
};
/// x, index [n], source -> x with source[..., i, ...] added to its part index[i] along an axis, in the order of i.
struct index_add {
  static constexpr std::string_view name = "index_add";
  static constexpr bool checks_numbers = true;
  static constexpr precision_rule precision = precision_use::common;
  std::int64_t axis = 0;
  static constexpr auto attributes() { return std::array{field<&index_add::axis>("axis")}; }
  void infer(shape_context& c) const {
    c.require_arity(3, 3);
    shape dims = c.in(0).dims;
    dims[detail::require_numbers(c, axis)] = c.in(1).dims[0];
    detail::require_same_element(c, 0, 2);
    detail::require_dims(c, 2, dims, "what is added");
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i)
      if (i != k) c.same(0, i, 0, i), c.same(2, i, 0, i);
  }
  work cost(work_context const& c) const {
    work w = detail::streaming_work(c, 0);
    w.flops = static_cast<double>(c.in[2].type.count());
    return w;
  }
  void gradient(gradient_context& c) const {
    if (c.wants(0)) c.give(0, c.grad());
    if (c.wants(2)) c.give(2, c.emit(index_select{axis}, {c.grad(), c.in(1)}));
  }
};
inline void index_select::gradient(gradient_context& c) const {
  auto const x = c.type(c.in(0));
  if (!c.wants(0)) return;
  value_id const zeros = c.emit(broadcast_to{x.dims}, {c.emit(fill{{}, x.element, 0}, {})});
  c.give(0, c.emit(index_add{axis}, {zeros, c.in(1), c.grad()}));
}
template <class Backend>
void run(Backend& b, index_select const& op, kernel_arguments const& a) {
  neap::index_select(b, a.out[0], a.in[0], a.in[1], detail::plain_axis(op.axis, a.in[0].rank()));
}
template <class Backend>
void run(Backend& b, index_add const& op, kernel_arguments const& a) {
  neap::index_add(b, add{}, a.out[0], a.in[0], a.in[1], a.in[2], detail::plain_axis(op.axis, a.in[0].rank()));
}

/// ids [...] -> [..., classes]: 1 at each id's place, else 0.
struct one_hot {
  static constexpr std::string_view name = "one_hot";
  static constexpr bool checks_numbers = true;
  static constexpr double flops = 0;
  std::int64_t classes = 0;
  dtype element = dtype::f32;
  static constexpr auto attributes() {
    return std::array{field<&one_hot::classes>("classes"), field<&one_hot::element>("element")};
  }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    detail::require_places(c, 0);
    detail::require_dense(c, 0);
    c.require(classes >= 0, "needs a number of classes, was given ", classes);
    c.require(c.in(0).rank() < max_rank, "one axis more than ", c.in(0), " has is too many");
    tensor_type t{element, c.in(0).dims};
    t.dims.push_back(classes);
    c.fresh(t);
  }
  void relate(dim_context& c) const {
    for (int k = 0; k < c.in(0).rank(); ++k) c.same(0, k, 0, k);
  }
};
template <class Backend>
void run(Backend& b, one_hot const&, kernel_arguments const& a) {
  neap::one_hot(b, a.out[0], a.in[0]);
}

/// x -> the k largest elements along an axis, the largest first, and their places there (i64); or the smallest, the
/// smallest first. Of equals the one at the lower place; a NaN is larger than all.
struct topk {
  static constexpr std::string_view name = "topk";
  static constexpr double flops = 4;
  std::int64_t k = 1, axis = -1;
  bool largest = true;
  static constexpr auto attributes() {
    return std::array{field<&topk::k>("k"), field<&topk::axis>("axis"), field<&topk::largest>("largest")};
  }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    tensor_type t = c.in(0);
    int const at = detail::require_axis(c, 0, axis);
    c.require(k >= 0 && k <= t.dims[at], "axis ", at, " of ", t, " has no ", k, " elements");
    t.dims[at] = k;
    c.fresh(t);
    c.fresh(tensor_type{dtype::i64, t.dims});
  }
  void relate(dim_context& c) const {
    int const at = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i)
      for (int j : {0, 1})
        if (i != at) c.same(0, i, j, i);
  }
  work cost(work_context const& c) const {
    work w = detail::streaming_work(c, 0);
    w.flops = flops * static_cast<double>(c.in[0].type.count());
    return w;
  }
  bytes_t workspace(work_context const& c) const {
    return neap::topk_workspace(c.in[0].type.dims, k, detail::plain_axis(axis, c.in[0].type.rank()));
  }
  void gradient(gradient_context& c) const {
    auto const dims = c.type(c.in(0)).dims;
    c.give(0, c.emit(scatter_add{axis, dims[detail::plain_axis(axis, dims.rank())]}, {c.grad(), c.out(1)}));
  }
};
template <class Backend>
void run(Backend& b, topk const& op, kernel_arguments const& a) {
  neap::topk(b, a.out[0], a.out[1], a.in[0], op.k, detail::plain_axis(op.axis, a.in[0].rank()), op.largest,
             a.workspace);
}

}  // namespace neap::inline v0::op
