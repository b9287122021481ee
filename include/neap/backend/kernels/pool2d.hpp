// 2-d pooling on the host over [N, C, H, W] views, f32 and f64: maximum (with the place of each maximum), average, and
// adaptive average, forward and backward. A plane is one task, and its gradient is added up in f64 in the order of the
// outputs, so results do not depend on threads. No workspace.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/every_other.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/kernels/tile_of_sums.hpp>
#include <neap/core/element.hpp>
#include <neap/core/error.hpp>
#include <neap/core/kernel_options.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace neap { inline namespace v0 {

/// The shape of pooling [N, C, H, W]: extents are rounded down; throws neap::error.
inline shape pool2d_shape(shape const& x, pool2d_options const& o) {
  if (x.rank() != 4) throw_error({"pool2d: the input needs four axes, has ", x});
  shape y{x[0], x[1]};
  for (int i = 0; i < 2; ++i) {
    auto const u = static_cast<std::size_t>(i);
    if (o.window[u] < 1 || o.stride[u] < 1 || o.padding[u] < 0 || 2 * o.padding[u] > o.window[u])
      throw_error({"pool2d: bad window, stride or padding"});
    std::int64_t const room = x[2 + i] + 2 * o.padding[u] - o.window[u];
    if (room < 0) throw_error({"pool2d: the window is larger than the padded input ", x});
    y.push_back(room / o.stride[u] + 1);
  }
  return y;
}

/// What max_pool2d keeps the places of the maxima in: a byte where a window has at most 256 elements.
inline dtype max_pool2d_place(pool2d_options const& o) {
  return o.window[0] * o.window[1] <= 256 ? dtype::u8 : dtype::i32;
}

namespace detail {

// Where output i of an axis looks: [begin, end) inside the input, and the extent that an average divides by.
struct pool_span {
  std::int64_t begin, end, whole;
};
struct window_axis {
  std::int64_t in, window, stride, padding;
  bool count_padding;
  NEAP_HD pool_span operator()(std::int64_t i) const {
    std::int64_t const first = i * stride - padding, most = in + padding;
    std::int64_t const last = first + window < most ? first + window : most;
    pool_span s{first > 0 ? first : 0, last < in ? last : in, 0};
    s.whole = count_padding ? last - first : s.end - s.begin;
    return s;
  }
};
struct adaptive_axis {
  std::int64_t in, out;
  NEAP_HD pool_span operator()(std::int64_t i) const {
    std::int64_t const begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    return {begin, end, end - begin};
  }
};

inline void check_pool(char const* what, tensor_ref const& x, tensor_ref const& y, shape const& want) {
  if (y.dims != want) throw_error({what, ": ", y.dims, " is not the pooled shape of ", x.dims});
  if (x.element != y.element) throw_error({what, ": element types differ"});
}

// f(image, channel) for each plane, in parallel.
template <class F>
void each_plane(host_backend& backend, shape const& dims, std::int64_t plane_work, F const& f) {
  std::int64_t const grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(plane_work, 1));
  backend.parallel_for(dims[0] * dims[1], grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i / dims[1], i % dims[1]);
  });
}
template <class T>
T* plane_of(tensor_ref const& t, std::int64_t n, std::int64_t c) {
  return t.as<T>() + n * t.strides[0] + c * t.strides[1];
}
inline window_axis pool_axis(shape const& x, pool2d_options const& o, int axis) {
  auto const u = static_cast<std::size_t>(axis);
  return {x[2 + axis], o.window[u], o.stride[u], o.padding[u], o.count_padding};
}
// f(P{}) for the type that places are kept in.
template <class F>
void with_place_type(char const* what, tensor_ref const& place, shape const& dims, pool2d_options const& o, F&& f) {
  if (place.element != max_pool2d_place(o) || place.dims != dims)
    throw_error({what, ": places are ", tensor_type{max_pool2d_place(o), dims}});
  if (place.element == dtype::u8) return f(std::uint8_t{});
  f(std::int32_t{});
}

// One row of outputs [from, to) whose windows lie inside the columns of x: the largest of each window, and where it is.
// Of equals the first counts, a NaN before anything. `x`: the element at output 0's window's first row and column.
template <class T, class P>
void maxima_of_row(T const* x, std::int64_t row_stride, std::int64_t step, pool_span h, std::int64_t first,
                   std::int64_t width, std::int64_t from, std::int64_t to, T* y, P* place) {
  // In vectors of eight: compilers make branches of the comparison otherwise. (nvcc compares no such vectors.)
  using index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
#if !defined(__CUDACC__)
  typedef T eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
  typedef index eight_places __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
#endif
  constexpr std::int64_t tile = 64, most = 16;
  T best[tile] = {}, line[2][tile + most] = {};
  index where[tile] = {};
  for (std::int64_t begin = from; begin < to; begin += tile) {
    std::int64_t const n = std::min(tile, to - begin);
    for (std::int64_t r = h.begin; r < h.end; ++r) {
      T const* const row = x + (r - first) * row_stride + begin * step;
      bool const by_two = step == 2 && width <= most;  // even and odd columns apart, once for all taps of a row
      if (by_two) {
        every_other(row, n + (width - 1) / 2, line[0]);
        if (width > 1) every_other(row + 1, n + width / 2 - 1, line[1]);
      }
      for (std::int64_t c = 0; c < width; ++c) {
        T const* in = by_two ? line[c % 2] + c / 2 : row + c;
        if (!by_two && (step > 1 || n < 8)) {
          for (std::int64_t j = 0; j < n; ++j) line[0][j] = row[c + j * step];
          in = line[0];
        }
        bool const is_first = r == h.begin && c == 0;
#if defined(__CUDACC__)
        for (std::int64_t j = 0; j < n; ++j) {
          T const v = in[j];
          if (!is_first && !(v > best[j] || (v != v && best[j] == best[j]))) continue;
          best[j] = v, where[j] = static_cast<index>((r - first) * width + c);
        }
#else
        auto const tap = eight_places{} + static_cast<index>((r - first) * width + c);
        for (std::int64_t left = n; left > 0; left -= 8) {
          std::int64_t const j = left >= 8 ? n - left : std::max<std::int64_t>(n - 8, 0);  // some twice: no harm
          eight const v = *reinterpret_cast<eight const*>(in + j);
          eight& m = *reinterpret_cast<eight*>(best + j);
          eight_places& at = *reinterpret_cast<eight_places*>(where + j);
          if (is_first) {
            m = v, at = tap;
            continue;
          }
          eight_places const better = (v > m) | ((v != v) & (m == m));
          m = better ? v : m;
          at = better ? tap : at;
        }
#endif
      }
    }
    for (std::int64_t j = 0; j < n; ++j) y[begin + j] = best[j], place[begin + j] = static_cast<P>(where[j]);
  }
}

template <class T, class P>
void maxima_of_plane(tensor_ref const& x, tensor_ref const& y, tensor_ref const& place, pool2d_options const& o,
                     std::int64_t n, std::int64_t c) {
  auto const h = pool_axis(x.dims, o, 0), w = pool_axis(x.dims, o, 1);
  T const* const in = plane_of<T const>(x, n, c);
  T* const out = plane_of<T>(y, n, c);
  P* const at = plane_of<P>(place, n, c);
  // The columns of y whose windows lie inside.
  bool const dense = x.strides[3] == 1 && y.strides[3] == 1 && place.strides[3] == 1;
  std::int64_t const columns = y.dims[3];
  std::int64_t const from = dense ? std::min(columns, (w.padding + w.stride - 1) / w.stride) : columns;
  std::int64_t const room = x.dims[3] + w.padding - w.window;
  std::int64_t const to = dense && room >= 0 ? std::max(from, std::min(columns, room / w.stride + 1)) : from;
  for (std::int64_t i = 0; i < y.dims[2]; ++i) {
    auto const a = h(i);
    std::int64_t const top = i * h.stride - h.padding;
    auto const one = [&](std::int64_t j) {
      auto const b = w(j);
      std::int64_t const left = j * w.stride - w.padding;
      T best = in[a.begin * x.strides[2] + b.begin * x.strides[3]];
      std::int64_t tap = (a.begin - top) * w.window + b.begin - left;
      for (std::int64_t r = a.begin; r < a.end; ++r)
        for (std::int64_t k = b.begin; k < b.end; ++k) {
          T const v = in[r * x.strides[2] + k * x.strides[3]];
          bool const better = v > best || (v != v && best == best);
          best = better ? v : best;
          tap = better ? (r - top) * w.window + k - left : tap;
        }
      out[i * y.strides[2] + j * y.strides[3]] = best;
      at[i * place.strides[2] + j * place.strides[3]] = static_cast<P>(tap);
    };
    for (std::int64_t j = 0; j < from; ++j) one(j);
    if (from < to)
      maxima_of_row(in + top * x.strides[2] - w.padding, x.strides[2], w.stride, a, top, w.window, from, to,
                    out + i * y.strides[2], at + i * place.strides[2]);
    for (std::int64_t j = to; j < columns; ++j) one(j);
  }
}

template <class T, class H, class W>
void average_forward(host_backend& backend, tensor_ref const& x, tensor_ref const& y, H const& h, W const& w) {
  bool const dense = x.strides[3] == 1 || x.dims[3] == 1;
  each_plane(backend, y.dims, x.dims[2] * x.dims[3], [&](std::int64_t n, std::int64_t c) {
    T const* const in = plane_of<T const>(x, n, c);
    T* const out = plane_of<T>(y, n, c);
    for (std::int64_t i = 0; i < y.dims[2]; ++i) {
      pool_span const a = h(i);
      for (std::int64_t j = 0; j < y.dims[3]; ++j) {
        pool_span const b = w(j);
        std::int64_t const width = b.end - b.begin;
        sum_t<T> sum = 0;
        for (std::int64_t r = a.begin; r < a.end; ++r) {
          T const* const row = in + r * x.strides[2] + b.begin * x.strides[3];
          if (dense && width >= host_block::lanes)
            sum += host_block{}.reduce_each(
                width, T(0), [&](std::int64_t k) { return row[k]; }, sum_op{});
          else
            for (std::int64_t k = 0; k < width; ++k) sum += row[k * x.strides[3]];
        }
        out[i * y.strides[2] + j * y.strides[3]] = static_cast<T>(sum) / static_cast<T>(a.whole * b.whole);
      }
    }
  });
}
template <class T, class H, class W>
void average_backward(host_backend& backend, tensor_ref const& dy, tensor_ref const& dx, H const& h, W const& w) {
  each_plane(backend, dx.dims, dx.dims[2] * dx.dims[3], [&](std::int64_t n, std::int64_t c) {
    T const* const in = plane_of<T const>(dy, n, c);
    each_tile_of_sums(dx, plane_of<T>(dx, n, c), [&](tile_of_sums<T>& sums) {
      std::int64_t const first = sums.first_column(dy.dims[3], w);
      for (std::int64_t i = sums.first_row(dy.dims[2], h); i < dy.dims[2]; ++i) {
        pool_span const a = h(i);
        std::int64_t const top = std::max(a.begin, sums.top), bottom = std::min(a.end, sums.bottom);
        if (a.begin >= sums.bottom) break;
        for (std::int64_t j = first; j < dy.dims[3]; ++j) {
          pool_span const b = w(j);
          std::int64_t const left = std::max(b.begin, sums.left), right = std::min(b.end, sums.right);
          if (b.begin >= sums.right) break;
          T const share = in[i * dy.strides[2] + j * dy.strides[3]] / static_cast<T>(a.whole * b.whole);
          for (std::int64_t r = top; r < bottom; ++r) {
            sum_t<T>* const row = sums.row(r);
            for (std::int64_t k = left; k < right; ++k) row[k] += share;
          }
        }
      }
    });
  });
}

inline shape adaptive_shape(tensor_ref const& x, tensor_ref const& y) {
  if (x.rank() != 4 || y.rank() != 4 || x.dims[2] < 1 || x.dims[3] < 1)
    throw_error({"adaptive_avg_pool2d: input and result need four axes and elements"});
  return {x.dims[0], x.dims[1], y.dims[2], y.dims[3]};
}

}  // namespace detail

/// y = maximum over windows of x, and where in its window it is: row * window columns + column, in max_pool2d_place(o).
/// The first of equals; a NaN wins.
template <std::same_as<host_backend> Backend>
void max_pool2d(Backend& backend, tensor_ref const& x, tensor_ref const& y, tensor_ref const& place,
                pool2d_options const& o) {
  detail::check_pool("max_pool2d", x, y, pool2d_shape(x.dims, o));
  with_f32_or_f64("max_pool2d", x.element, [&](auto zero) {
    using T = decltype(zero);
    detail::with_place_type("max_pool2d", place, y.dims, o, [&](auto tap) {
      detail::each_plane(backend, y.dims, x.dims[2] * x.dims[3], [&](std::int64_t n, std::int64_t c) {
        detail::maxima_of_plane<T, decltype(tap)>(x, y, place, o, n, c);
      });
    });
  });
}

/// dx from dy and the places that max_pool2d saved.
template <std::same_as<host_backend> Backend>
void max_pool2d_gradient(Backend& backend, tensor_ref const& dy, tensor_ref const& place, tensor_ref const& dx,
                         pool2d_options const& o) {
  detail::check_pool("max_pool2d_gradient", dx, dy, pool2d_shape(dx.dims, o));
  with_f32_or_f64("max_pool2d_gradient", dx.element, [&](auto zero) {
    using T = decltype(zero);
    detail::with_place_type("max_pool2d_gradient", place, dy.dims, o, [&](auto tap) {
      using P = decltype(tap);
      detail::each_plane(backend, dx.dims, dx.dims[2] * dx.dims[3], [&](std::int64_t n, std::int64_t c) {
        T const* const in = detail::plane_of<T const>(dy, n, c);
        P const* const at = detail::plane_of<P const>(place, n, c);
        auto const h = detail::pool_axis(dx.dims, o, 0), w = detail::pool_axis(dx.dims, o, 1);
        detail::each_tile_of_sums(dx, detail::plane_of<T>(dx, n, c), [&](detail::tile_of_sums<T>& sums) {
          std::int64_t const first = sums.first_column(dy.dims[3], w);
          bool const whole_rows = sums.left == 0 && sums.right == dx.dims[3];
          for (std::int64_t i = sums.first_row(dy.dims[2], h); i < dy.dims[2]; ++i) {
            std::int64_t const top = i * o.stride[0] - o.padding[0];
            if (top >= sums.bottom) break;
            bool const inside = whole_rows && top >= sums.top && top + o.window[0] <= sums.bottom;
            for (std::int64_t j = first; j < dy.dims[3]; ++j) {
              std::int64_t const left = j * o.stride[1] - o.padding[1];
              if (left >= sums.right) break;
              std::int64_t const p = at[i * place.strides[2] + j * place.strides[3]];
              std::int64_t const r = p / o.window[1], k = p - r * o.window[1];
              if (inside || sums.has(top + r, left + k))
                sums.row(top + r)[left + k] += in[i * dy.strides[2] + j * dy.strides[3]];
            }
          }
        });
      });
    });
  });
}

/// y = mean over windows of x.
template <std::same_as<host_backend> Backend>
void avg_pool2d(Backend& backend, tensor_ref const& x, tensor_ref const& y, pool2d_options const& o) {
  detail::check_pool("avg_pool2d", x, y, pool2d_shape(x.dims, o));
  with_f32_or_f64("avg_pool2d", x.element, [&](auto zero) {
    detail::average_forward<decltype(zero)>(backend, x, y, detail::pool_axis(x.dims, o, 0),
                                            detail::pool_axis(x.dims, o, 1));
  });
}
/// dx from dy.
template <std::same_as<host_backend> Backend>
void avg_pool2d_gradient(Backend& backend, tensor_ref const& dy, tensor_ref const& dx, pool2d_options const& o) {
  detail::check_pool("avg_pool2d_gradient", dx, dy, pool2d_shape(dx.dims, o));
  with_f32_or_f64("avg_pool2d_gradient", dx.element, [&](auto zero) {
    detail::average_backward<decltype(zero)>(backend, dy, dx, detail::pool_axis(dx.dims, o, 0),
                                             detail::pool_axis(dx.dims, o, 1));
  });
}

/// y [N, C, OH, OW] = means over windows [i * H / OH, ceil((i + 1) * H / OH)) of x; OH = OW = 1 is global pooling.
template <std::same_as<host_backend> Backend>
void adaptive_avg_pool2d(Backend& backend, tensor_ref const& x, tensor_ref const& y) {
  detail::check_pool("adaptive_avg_pool2d", x, y, detail::adaptive_shape(x, y));
  with_f32_or_f64("adaptive_avg_pool2d", x.element, [&](auto zero) {
    detail::average_forward<decltype(zero)>(backend, x, y, detail::adaptive_axis{x.dims[2], y.dims[2]},
                                            detail::adaptive_axis{x.dims[3], y.dims[3]});
  });
}
/// dx from dy.
template <std::same_as<host_backend> Backend>
void adaptive_avg_pool2d_gradient(Backend& backend, tensor_ref const& dy, tensor_ref const& dx) {
  detail::check_pool("adaptive_avg_pool2d_gradient", dx, dy, detail::adaptive_shape(dx, dy));
  with_f32_or_f64("adaptive_avg_pool2d_gradient", dx.element, [&](auto zero) {
    detail::average_backward<decltype(zero)>(backend, dy, dx, detail::adaptive_axis{dx.dims[2], dy.dims[2]},
                                             detail::adaptive_axis{dx.dims[3], dy.dims[3]});
  });
}

}}  // namespace neap::v0
