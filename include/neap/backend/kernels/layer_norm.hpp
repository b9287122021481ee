// Layer normalisation along the last axis (Ba et al. 2016): y = (x - mean) * rstd * weight + bias. The forward pass saves
// mean and rstd, one a row, for the backward pass. Also the scheme that rms_norm shares: one block a row forward; one
// block a group of rows backward, which adds up its part of the parameters' gradients.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/math.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/units.hpp>

#include <cstdint>

namespace neap::inline v0 {

namespace detail {

template <class T, bool Centred>
struct norm_rows {
  using element = T;
  using C = compute_t<T>;
  row_view<T const> x_rows;
  row_view<T> y_rows;
  C *mean, *rstd;          // [rows], may be null
  T const *weight, *bias;  // [columns], may be null
  std::int64_t columns;
  C epsilon;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = x_rows(b.id);
    T* const y = y_rows(b.id);
    C const n = static_cast<C>(columns);
    C const m = Centred ? b.reduce_each(
                              columns, C(0), [=](std::int64_t i) { return static_cast<C>(x[i]); }, sum_op{}) /
                              n
                        : C(0);
    C const squares = b.reduce_each(
        columns, C(0),
        [=](std::int64_t i) {
          C const d = static_cast<C>(x[i]) - m;
          return d * d;
        },
        sum_op{});
    C const r = math::rsqrt(squares / n + epsilon);
    if (mean) mean[b.id] = m;
    if (rstd) rstd[b.id] = r;
    T const *const w = weight, *const c = bias;
    if (w && c)
      b.each(columns, [=](std::int64_t i) {
        y[i] = convert<T>((static_cast<C>(x[i]) - m) * r * static_cast<C>(w[i]) + static_cast<C>(c[i]));
      });
    else if (w)
      b.each(columns,
             [=](std::int64_t i) { y[i] = convert<T>((static_cast<C>(x[i]) - m) * r * static_cast<C>(w[i])); });
    else b.each(columns, [=](std::int64_t i) { y[i] = convert<T>((static_cast<C>(x[i]) - m) * r); });
  }
};

/// One block a group of rows: dx of each row, and the group's part of dweight and dbias.
template <class T, bool Centred>
struct norm_backward_rows {
  using element = T;
  using C = compute_t<T>;
  row_view<T const> dy_rows, x_rows;
  row_view<T> dx_rows;   // may be null
  C const *mean, *rstd;  // [rows]
  T const* weight;       // [columns], may be null
  C *dweight, *dbias;    // [groups, columns], may be null
  std::int64_t rows, columns, group;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    C* const dw = dweight ? dweight + b.id * columns : nullptr;
    C* const dc = dbias ? dbias + b.id * columns : nullptr;
    if (dw) b.each(columns, [=](std::int64_t i) { dw[i] = C(0); });
    if (dc) b.each(columns, [=](std::int64_t i) { dc[i] = C(0); });
    std::int64_t const end = (b.id + 1) * group < rows ? (b.id + 1) * group : rows;
    for (std::int64_t row = b.id * group; row < end; ++row) {
      T const *const dy = dy_rows(row), *const x = x_rows(row), *const w = weight;
      C const m = Centred ? mean[row] : C(0), r = rstd[row];
      if (dw && dc) {
        b.each(columns, [=](std::int64_t i) {
          C const g = dy[i];
          dw[i] += g * ((static_cast<C>(x[i]) - m) * r);
          dc[i] += g;
        });
      } else if (dw) {
        b.each(columns, [=](std::int64_t i) { dw[i] += static_cast<C>(dy[i]) * ((static_cast<C>(x[i]) - m) * r); });
      } else if (dc) {
        b.each(columns, [=](std::int64_t i) { dc[i] += static_cast<C>(dy[i]); });
      }
      if (!dx_rows) continue;
      T* const dx = dx_rows(row);
      if (w) row_gradient(b, dx, x, m, r, [=](std::int64_t i) { return static_cast<C>(dy[i]) * static_cast<C>(w[i]); });
      else row_gradient(b, dx, x, m, r, [=](std::int64_t i) { return static_cast<C>(dy[i]); });
    }
  }

  // dx = r (g - mean(g) - h mean(g h)) with h = (x - m) r and g = dy * weight; without mean(g) if not centred.
  template <class Block, class G>
  NEAP_HD NEAP_INLINE void row_gradient(Block& b, T* dx, T const* x, C m, C r, G const& g) const {
    C const n = static_cast<C>(columns);
    C const a = Centred ? b.reduce_each(
                              columns, C(0), [=](std::int64_t i) { return g(i); }, sum_op{}) /
                              n
                        : C(0);
    C const s = b.reduce_each(
                    columns, C(0), [=](std::int64_t i) { return g(i) * ((static_cast<C>(x[i]) - m) * r); }, sum_op{}) /
                n;
    b.each(columns, [=](std::int64_t i) {
      C const h = (static_cast<C>(x[i]) - m) * r;
      dx[i] = convert<T>(r * (g(i) - a - h * s));
    });
  }
};

template <bool Centred, class Backend>
void run_norm(Backend& b, tensor_ref const& y, tensor_ref const& mean, tensor_ref const& rstd, tensor_ref const& x,
              tensor_ref const& weight, tensor_ref const& bias, double epsilon, char const* name) {
  expect_same_shape(y, x, name);
  with_floating(x.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    std::int64_t const columns = x.extent(-1), rows = row_count(x.dims);
    norm_rows<T, Centred> const kernel{rows_of<T const>(x, name),
                                       rows_of<T>(y, name),
                                       vector_of<C>(mean, rows, name),
                                       vector_of<C>(rstd, rows, name),
                                       vector_of<T const>(weight, columns, name),
                                       vector_of<T const>(bias, columns, name),
                                       columns,
                                       static_cast<C>(epsilon)};
    expect(!bias.data || weight.data, "a norm with a bias needs a weight");
    b.launch(rows, kernel, columns);
  });
}

template <bool Centred, class Backend>
void run_norm_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dbias,
                       tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean, tensor_ref const& rstd,
                       tensor_ref const& weight, void* workspace, char const* name) {
  expect_same_shape(dy, x, name);
  expect_same_shape(dy, dx, name);
  with_floating(x.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    std::int64_t const columns = x.extent(-1), rows = row_count(x.dims);
    row_groups const groups{rows};
    C* const dw = dweight.data ? static_cast<C*>(workspace) : nullptr;
    C* const dc = dbias.data ? static_cast<C*>(workspace) + (dw ? groups.count * columns : 0) : nullptr;
    norm_backward_rows<T, Centred> const kernel{rows_of<T const>(dy, name),
                                                rows_of<T const>(x, name),
                                                rows_of<T>(dx, name),
                                                vector_of<C const>(mean, rows, name),
                                                vector_of<C const>(rstd, rows, name),
                                                vector_of<T const>(weight, columns, name),
                                                dw,
                                                dc,
                                                rows,
                                                columns,
                                                groups.size};
    b.launch(groups.count, kernel, groups.size * columns);
    if (dw) {
      add_groups<C, T> const add{dw, groups.count, columns, columns, vector_of<T>(dweight, columns, name)};
      b.launch(add.blocks(), add, groups.count * add.tile);
    }
    if (dc) {
      add_groups<C, T> const add{dc, groups.count, columns, columns, vector_of<T>(dbias, columns, name)};
      b.launch(add.blocks(), add, groups.count * add.tile);
    }
  });
}

inline bytes_t norm_backward_bytes(tensor_type const& x, int parameters) {
  std::int64_t const columns = x.extent(-1), rows = row_count(x.dims);
  bytes_t const element = x.element == dtype::f64 ? 8 : 4;
  return checked_mul(checked_mul(row_groups{rows}.count, checked_mul(columns, element)), parameters);
}

}  // namespace detail

/// y = (x - mean) * rstd * weight + bias along the last axis. x, y, weight and bias have one floating type; mean and
/// rstd, one a row, are f32 (f64 for f64). Without weight (and bias), without mean or rstd, where they have no data. y
/// may be x. Throws neap::error if types or extents do not fit.
template <class Backend>
void layer_norm(Backend& b, tensor_ref const& y, tensor_ref const& mean, tensor_ref const& rstd, tensor_ref const& x,
                tensor_ref const& weight, tensor_ref const& bias, double epsilon) {
  detail::run_norm<true>(b, y, mean, rstd, x, weight, bias, epsilon, "layer_norm");
}

/// Bytes of workspace of layer_norm_backward for an x of this type.
inline bytes_t layer_norm_backward_workspace(tensor_type const& x) { return detail::norm_backward_bytes(x, 2); }

/// The gradients of layer_norm; those of dx, dweight, dbias that have no data are left out. dx may be dy.
template <class Backend>
void layer_norm_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dbias,
                         tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean, tensor_ref const& rstd,
                         tensor_ref const& weight, void* workspace) {
  detail::run_norm_backward<true>(b, dx, dweight, dbias, dy, x, mean, rstd, weight, workspace, "layer_norm_backward");
}

}  // namespace neap::inline v0
