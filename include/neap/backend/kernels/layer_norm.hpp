// Layer normalisation along the last axis (Ba et al. 2016): y = (x - mean) * rstd * weight + bias. The forward pass saves
// mean and rstd, one a row, for the backward pass. Also the scheme that rms_norm shares: one block a row forward; one
// block a group of rows backward, which adds up its part of the parameters' gradients.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/math.hpp>
#include <neap/core/units.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

struct norm_operands {
  row_layout x, y;
  void *mean, *rstd;          // [rows] of what is computed in, may be null
  void const *weight, *bias;  // [columns], may be null
  std::int64_t columns;
  double epsilon;
  bool centred;  // else the mean is taken to be 0 (rms_norm)
};

template <class T>
struct norm_rows {
  using element = T;
  using C = compute_t<T>;
  norm_operands o;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = row_at<T const>(o.x, b.id);
    T* const y = row_at<T>(o.y, b.id);
    std::int64_t const columns = o.columns;
    C const n = static_cast<C>(columns);
    C m = C(0);
    if (o.centred)
      m = b.reduce_transform(
              columns, C(0), [](T v) { return static_cast<C>(v); }, sum_op{}, x) /
          n;
    C const squares = b.reduce_transform(
        columns, C(0),
        [=](T v) {
          C const d = static_cast<C>(v) - m;
          return d * d;
        },
        sum_op{}, x);
    C const r = math::rsqrt(squares / n + static_cast<C>(o.epsilon));
    C *const mean = o.mean ? static_cast<C*>(o.mean) + b.id : nullptr, *const rstd =
                                                                           o.rstd ? static_cast<C*>(o.rstd) + b.id
                                                                                  : nullptr;
    b.once([=] {
      if (mean) *mean = m;
      if (rstd) *rstd = r;
    });
    T const *const w = static_cast<T const*>(o.weight), *const c = static_cast<T const*>(o.bias);
    if (w && c)
      b.transform(
          columns, y,
          [=](T v, T scale, T shift) {
            return convert<T>((static_cast<C>(v) - m) * r * static_cast<C>(scale) + static_cast<C>(shift));
          },
          x, w, c);
    else if (w)
      b.transform(
          columns, y, [=](T v, T scale) { return convert<T>((static_cast<C>(v) - m) * r * static_cast<C>(scale)); }, x,
          w);
    else
      b.transform(
          columns, y, [=](T v) { return convert<T>((static_cast<C>(v) - m) * r); }, x);
  }
};

/// One block a group of rows: dx of each row, and the group's part of dweight and dbias.
struct norm_backward_operands {
  row_layout dy, x, dx;     // dx may be null
  void const *mean, *rstd;  // [rows] of what is computed in
  void const* weight;       // [columns], may be null
  void *dweight, *dbias;    // [groups, columns] of what is computed in, may be null
  std::int64_t rows, columns, group;
  bool centred;
};
template <class T>
struct norm_backward_rows {
  using element = T;
  using C = compute_t<T>;
  norm_backward_operands o;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const columns = o.columns, rows = o.rows, group = o.group;
    C* const dw = o.dweight ? static_cast<C*>(o.dweight) + b.id * columns : nullptr;
    C* const dc = o.dbias ? static_cast<C*>(o.dbias) + b.id * columns : nullptr;
    std::int64_t const begin = b.id * group, end = begin + group < rows ? begin + group : rows;
    for (std::int64_t first = begin; first < end; first += sum_run) {
      std::int64_t const last = first + sum_run < end ? first + sum_run : end;
      if (dw || dc) add_parameters(b, first == begin, first, last, dw, dc);
      if (!o.dx) continue;
      for (std::int64_t row = first; row < last; ++row) {
        T const *const dy = row_at<T const>(o.dy, row), *const x = row_at<T const>(o.x, row);
        T const* const w = static_cast<T const*>(o.weight);
        T* const dx = row_at<T>(o.dx, row);
        C const m = mean_of(row), r = static_cast<C const*>(o.rstd)[row];
        if (w)
          row_gradient(b, dx, x, m, r, [=](std::int64_t i) { return static_cast<C>(dy[i]) * static_cast<C>(w[i]); });
        else row_gradient(b, dx, x, m, r, [=](std::int64_t i) { return static_cast<C>(dy[i]); });
      }
    }
  }

  NEAP_HD NEAP_INLINE C mean_of(std::int64_t row) const {
    return o.centred ? static_cast<C const*>(o.mean)[row] : C(0);
  }

  template <class Block>
  NEAP_HD NEAP_INLINE void add_parameters(Block& b, bool begins, std::int64_t first, std::int64_t last, C* dw,
                                          C* dc) const {
    C* const to[]{dw, dc};
    norm_backward_rows const* const self = this;
    add_rows(b, begins, first, last, o.columns, to,
             [self, &b, dw, dc](std::int64_t row, std::int64_t column, std::int64_t n, auto const& part) {
               T const* const dy = row_at<T const>(self->o.dy, row) + column;
               T const* const x = row_at<T const>(self->o.x, row) + column;
               C const m = self->mean_of(row), r = static_cast<C const*>(self->o.rstd)[row];
               auto const by_normal = part[0], plain = part[1];
               if (dw && dc) {
                 b.each(n, [=](std::int64_t i) {
                   C const g = dy[i];
                   by_normal[i] += g * ((static_cast<C>(x[i]) - m) * r);
                   plain[i] += g;
                 });
               } else if (dw) {
                 b.each(n, [=](std::int64_t i) {
                   by_normal[i] += static_cast<C>(dy[i]) * ((static_cast<C>(x[i]) - m) * r);
                 });
               } else {
                 b.each(n, [=](std::int64_t i) { plain[i] += static_cast<C>(dy[i]); });
               }
             });
  }

  // dx = r (g - mean(g) - h mean(g h)) with h = (x - m) r and g = dy * weight; without mean(g) if not centred.
  template <class Block, class G>
  NEAP_HD NEAP_INLINE void row_gradient(Block& b, T* dx, T const* x, C m, C r, G const& g) const {
    std::int64_t const columns = o.columns;
    C const n = static_cast<C>(columns);
    C a = C(0);
    if (o.centred)
      a = b.reduce_each(
              columns, C(0), [=](std::int64_t i) { return g(i); }, sum_op{}) /
          n;
    C const s = b.reduce_each(
                    columns, C(0), [=](std::int64_t i) { return g(i) * ((static_cast<C>(x[i]) - m) * r); }, sum_op{}) /
                n;
    if (!o.centred) {  // not a - 0: where products and sums are fused, that rounds otherwise
      b.each(columns, [=](std::int64_t i) {
        C const h = static_cast<C>(x[i]) * r;
        dx[i] = convert<T>(r * (g(i) - h * s));
      });
      return;
    }
    b.each(columns, [=](std::int64_t i) {
      C const h = (static_cast<C>(x[i]) - m) * r;
      dx[i] = convert<T>(r * (g(i) - a - h * s));
    });
  }
};

template <class Backend>
void run_norm(Backend& b, bool centred, tensor_ref const& y, tensor_ref const& mean, tensor_ref const& rstd,
              tensor_ref const& x, tensor_ref const& weight, tensor_ref const& bias, double epsilon, char const* name) {
  expect_same_shape(y, x, name);
  dtype const t = x.element, c = computed_in(t);
  std::int64_t const columns = x.extent(-1), rows = row_count(x.dims);
  norm_operands const operands{rows_of(x, t, name),
                               rows_of(y, t, name),
                               vector_of(mean, c, rows, name),
                               vector_of(rstd, c, rows, name),
                               vector_of(weight, t, columns, name),
                               vector_of(bias, t, columns, name),
                               columns,
                               epsilon,
                               centred};
  expect(!bias.data || weight.data, "a norm with a bias needs a weight");
  with_floating(t, [&](auto tag) { b.launch(rows, norm_rows<typename decltype(tag)::type>{operands}, columns); });
}

template <class Backend>
void run_norm_backward(Backend& b, bool centred, tensor_ref const& dx, tensor_ref const& dweight,
                       tensor_ref const& dbias, tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean,
                       tensor_ref const& rstd, tensor_ref const& weight, void* workspace, char const* name) {
  expect_same_shape(dy, x, name);
  expect_same_shape(dy, dx, name);
  dtype const t = x.element, c = computed_in(t);
  std::int64_t const columns = x.extent(-1), rows = row_count(x.dims);
  row_groups const groups{rows};
  auto* const part = static_cast<std::byte*>(workspace);
  std::byte* const dw = dweight.data ? part : nullptr;
  std::byte* const dc = dbias.data ? part + (dw ? groups.count * columns * size_of(c) : 0) : nullptr;
  norm_backward_operands const operands{rows_of(dy, t, name),
                                        rows_of(x, t, name),
                                        rows_of(dx, t, name),
                                        vector_of(mean, c, rows, name),
                                        vector_of(rstd, c, rows, name),
                                        vector_of(weight, t, columns, name),
                                        dw,
                                        dc,
                                        rows,
                                        columns,
                                        groups.size,
                                        centred};
  with_floating(t, [&](auto tag) {
    b.launch(groups.count, norm_backward_rows<typename decltype(tag)::type>{operands}, groups.size * columns);
  });
  add_partial_groups(b, dw, groups.count, columns, dweight, t, columns, name);
  add_partial_groups(b, dc, groups.count, columns, dbias, t, columns, name);
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
  detail::run_norm(b, true, y, mean, rstd, x, weight, bias, epsilon, "layer_norm");
}

/// Bytes of workspace of layer_norm_backward for an x of this type.
inline bytes_t layer_norm_backward_workspace(tensor_type const& x) { return detail::norm_backward_bytes(x, 2); }

/// The gradients of layer_norm; those of dx, dweight, dbias that have no data are left out. dx may be dy.
template <class Backend>
void layer_norm_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dbias,
                         tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean, tensor_ref const& rstd,
                         tensor_ref const& weight, void* workspace) {
  detail::run_norm_backward(b, true, dx, dweight, dbias, dy, x, mean, rstd, weight, workspace, "layer_norm_backward");
}

}}  // namespace neap::v0
