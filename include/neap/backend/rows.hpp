// Tensors as rows along the last axis: what softmax, norms and losses work on. Rows are contiguous; where they start is
// free (the leading axes may have any strides).
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/strided.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace neap { inline namespace v0 { namespace detail {

/// Where the rows of a tensor begin, in elements.
struct row_layout {
  void* data = nullptr;
  int rank = 0;  // of the leading axes, joined where strides allow
  std::int64_t dims[max_rank]{}, strides[max_rank]{};

  NEAP_HD std::int64_t offset(std::int64_t row) const { return rank == 1 ? row * strides[0] : offset_along_axes(row); }
  NEAP_HD explicit operator bool() const { return data != nullptr; }

 private:
  NEAP_HD NEAP_NOINLINE_ON_HOST std::int64_t offset_along_axes(std::int64_t row) const {
    std::int64_t offset = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      offset += row % dims[axis] * strides[axis];
      row /= dims[axis];
    }
    return offset;
  }
};

/// Row r of a tensor of T.
template <class T>
NEAP_HD NEAP_INLINE T* row_at(row_layout const& rows, std::int64_t r) {
  return static_cast<T*>(rows.data) + rows.offset(r);
}

/// How many rows a tensor of rank 1 or more has; they may have no elements.
inline std::int64_t row_count(shape const& dims) {
  std::int64_t n = 1;
  for (int axis = 0; axis + 1 < dims.rank(); ++axis) n *= dims[axis];
  return n;
}

/// The rows of x, whose elements must be `wanted` and whose last axis contiguous; without data if x is without. Kernels take
/// rows and vectors as addresses, so that checking them is compiled once for all element types.
__attribute__((noinline)) inline row_layout rows_of(tensor_ref const& x, dtype wanted, char const* kernel) {
  if (!x.data) return {};
  auto const fail = [&](std::string const& why) { throw_error({kernel, ": ", why}); };
  if (x.element != wanted)
    fail(std::string(name_of(x.element)) + " where " + std::string(name_of(wanted)) + " is expected");
  if (x.rank() == 0) fail("a tensor of rank 0 has no rows");
  int const last = x.rank() - 1;
  if (x.dims[last] > 1 && x.strides[last] != 1 && x.count() > 0) fail("the last axis must be contiguous");
  row_layout v{x.data, 0, {}, {}};
  for (int axis = 0; axis < last; ++axis) {
    if (x.dims[axis] == 1) continue;
    if (v.rank > 0 && v.strides[v.rank - 1] == x.strides[axis] * x.dims[axis]) {
      v.dims[v.rank - 1] *= x.dims[axis];
      v.strides[v.rank - 1] = x.strides[axis];
    } else {
      v.dims[v.rank] = x.dims[axis];
      v.strides[v.rank++] = x.strides[axis];
    }
  }
  if (v.rank == 0) v.rank = 1, v.dims[0] = 1, v.strides[0] = 0;
  return v;
}
/// The address of a contiguous tensor, or nullptr; `count` is how many elements it must have.
__attribute__((noinline)) inline void* vector_of(tensor_ref const& x, dtype wanted, std::int64_t count,
                                                 char const* kernel) {
  if (!x.data) return nullptr;
  if (x.element != wanted || x.count() != count || !x.is_dense())
    throw_error({kernel, ": ", tensor_type{x.element, x.dims}, " where ", count, " contiguous ", name_of(wanted),
                 " are expected"});
  return x.data;
}

template <class T>
T* vector_of(tensor_ref const& x, std::int64_t count, char const* kernel) {
  return static_cast<T*>(vector_of(x, dtype_of<std::remove_const_t<T>>, count, kernel));
}

__attribute__((noinline)) inline void expect_same_shape(tensor_ref const& a, tensor_ref const& b, char const* kernel) {
  if (b.data && !(a.dims == b.dims)) throw_error({kernel, ": shapes differ: ", a.dims, " and ", b.dims});
}

/// How rows are grouped where sums over all rows are taken: each group makes a partial sum, the groups are added in
/// order. Depends on the number of rows alone.
struct row_groups {
  static constexpr std::int64_t least = sum_run, most = sum_run * sum_run;  // rows: add_rows() takes sum_run at once
  std::int64_t rows, size, count;
  explicit row_groups(std::int64_t n)
      : rows(n),
        size(std::clamp((n + 63) / 64, least, most)),
        count((n + size - 1) / size) {}
};

/// to[k][column] = the sums of rows [first, last), at most sum_run, and of what is there unless `begins`, for each k where
/// there is a to[k]. add(row, column, n, part): part[k][i] += term(row, column + i) for i in [0, n).
template <class Block, class C, int Sums, class F>
NEAP_HD NEAP_INLINE void add_rows(Block& b, bool begins, std::int64_t first, std::int64_t last, std::int64_t columns,
                                  C* const (&to)[Sums], F const& add) {
  constexpr int tile = 256;
  for (std::int64_t column = 0; column < columns; column += tile) {
    std::int64_t const n = columns - column < tile ? columns - column : tile;
    typename Block::template slots<C, tile> sums[Sums];
    decltype(sums[0].place()) part[Sums];
    for (int k = 0; k < Sums; ++k) {
      auto const own = part[k] = sums[k].place();
      b.each(n, [=](std::int64_t i) { own[i] = C(0); });
    }
    for (std::int64_t row = first; row < last; ++row) add(row, column, n, part);
    for (int k = 0; k < Sums; ++k) {
      if (!to[k]) continue;
      auto const own = part[k];
      C* const sum = to[k] + column;
      if (begins) b.each(n, [=](std::int64_t i) { sum[i] = own[i]; });
      else b.each(n, [=](std::int64_t i) { sum[i] += own[i]; });
    }
  }
}

/// Adds the groups' partial sums: out[i] = partial[0][i] + partial[1][i] + ..., one block a tile of columns.
template <class T>
struct add_groups {
  using element = T;
  using C = compute_t<T>;
  static constexpr int tile = 256;
  C const* partial;  // [groups, stride]
  std::int64_t groups, stride, columns;
  T* out;  // [columns]

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * tile, n = columns - first < tile ? columns - first : tile;
    typename Block::template slots<sum_t<C>, tile> sums;
    auto const total = sums.place();
    b.each(n, [=](std::int64_t i) { total[i] = 0; });
    for (std::int64_t g = 0; g < groups; ++g) {
      C const* const x = partial + g * stride + first;
      b.each(n, [=](std::int64_t i) { total[i] += x[i]; });
    }
    T* const y = out + first;
    b.each(n, [=](std::int64_t i) { y[i] = convert<T>(static_cast<C>(total[i])); });
  }
};

/// out = the sums of `groups` partial results from `partial` on, each `stride` after the last, in type t; nothing where
/// out has no data.
template <class Backend>
__attribute__((noinline)) void add_partial_groups(Backend& b, void const* partial, std::int64_t groups,
                                                  std::int64_t stride, tensor_ref const& out, dtype t,
                                                  std::int64_t columns, char const* kernel) {
  if (!out.data) return;
  void* const to = vector_of(out, t, columns, kernel);
  with_floating(t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    add_groups<T> const k{static_cast<compute_t<T> const*>(partial), groups, stride, columns, static_cast<T*>(to)};
    b.launch((columns + k.tile - 1) / k.tile, k, groups * k.tile);
  });
}

}}}  // namespace neap::v0::detail
