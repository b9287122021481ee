// Pooling and resizing of images [N, C, H, W] on a device, of all floating types (backend/kernels/pool2d.hpp and
// interpolate.hpp). A thread does one output. A gradient's element is the sum of what each window that reads it gives, in
// the host's order: bits are the host's but for products and sums that are fused, and of longer rows of averages.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/index_space.cuh>
#include <neap/ir/operators/kernels/image.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// A tensor [N, C, H, W] of any strides.
struct device_image {
  std::byte* data;
  dtype element;
  std::int64_t planes, channels, rows, columns;
  std::int64_t image_stride, channel_stride, row_stride, column_stride;  // bytes

  explicit device_image(tensor_ref const& t)
      : data(static_cast<std::byte*>(t.data)),
        element(t.element),
        planes(t.dims[0] * t.dims[1]),
        channels(t.dims[1]),
        rows(t.dims[2]),
        columns(t.dims[3]),
        image_stride(t.strides[0] * size_of(t.element)),
        channel_stride(t.strides[1] * size_of(t.element)),
        row_stride(t.strides[2] * size_of(t.element)),
        column_stride(t.strides[3] * size_of(t.element)) {}
  std::int64_t count() const { return planes * rows * columns; }

  NEAP_HD std::byte* plane(std::int64_t p) const {
    return data + p / channels * image_stride + p % channels * channel_stride;
  }
  template <class C>
  NEAP_HD C get(std::byte const* of_plane, std::int64_t row, std::int64_t column) const {
    return load_element<C>(of_plane + row * row_stride + column * column_stride, element);
  }
  template <class C>
  NEAP_HD void put(std::byte* of_plane, std::int64_t row, std::int64_t column, C x) const {
    store_element(of_plane + row * row_stride + column * column_stride, element, x);
  }
};

/// F(plane, row, column) for each element of an image.
template <class F>
struct image_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = 2 * cuda_block_threads;
  F f;
  std::int64_t count, rows, columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = count - first;
    image_kernel const* const self = this;
    b.each(left < chunk ? left : chunk, [self, first](std::int64_t i) {
      std::int64_t const line = (first + i) / self->columns, plane = line / self->rows;
      self->f(plane, line - plane * self->rows, first + i - line * self->columns);
    });
  }
};
template <class B, class F>
void for_each_pixel(B& b, device_image const& of, F const& f) {
  image_kernel<F> const k{f, of.count(), of.rows, of.columns};
  launch_in_chunks(b, k.count, k);
}

/// Where windows of an axis look; whole: what an average divides by. `adaptive`: nearly equal parts.
struct device_windows {
  std::int64_t in, out, window, stride, padding;
  bool count_padding, adaptive;

  static device_windows of(shape const& x, shape const& y, pool2d_options const& o, int axis) {
    auto const u = static_cast<std::size_t>(axis);
    return {x[2 + axis], y[2 + axis], o.window[u], o.stride[u], o.padding[u], o.count_padding, false};
  }
  static device_windows parts(shape const& x, shape const& y, int axis) {
    return {x[2 + axis], y[2 + axis], 0, 0, 0, false, true};
  }
  NEAP_HD pool_span operator[](std::int64_t i) const {
    return adaptive ? adaptive_axis{in, out}(i) : window_axis{in, window, stride, padding, count_padding}(i);
  }
  /// The windows that may reach place r are in [begin, end).
  NEAP_HD pool_span reaching(std::int64_t r) const {
    std::int64_t low, high;
    if (adaptive) {
      low = r * out / in, high = ((r + 1) * out + in - 1) / in;
      low = low > 0 ? low - 1 : 0, high = high + 1;
    } else {
      std::int64_t const from = r + padding - window + 1;
      low = from > 0 ? (from + stride - 1) / stride : 0;
      high = (r + padding) / stride + 1;
    }
    return {low, high < out ? high : out, 0};
  }
};

template <class C>
struct max_pool_pixel {
  device_image x, y, place;
  device_windows h, w;
  NEAP_HD void operator()(std::int64_t plane, std::int64_t i, std::int64_t j) const {
    std::byte const* const in = x.plane(plane);
    pool_span const a = h[i], b = w[j];
    std::int64_t const top = i * h.stride - h.padding, left = j * w.stride - w.padding;
    C best = x.get<C>(in, a.begin, b.begin);
    std::int64_t tap = (a.begin - top) * w.window + b.begin - left;
    for (std::int64_t r = a.begin; r < a.end; ++r)
      for (std::int64_t k = b.begin; k < b.end; ++k) {
        C const v = x.get<C>(in, r, k);
        if (!(v > best || (v != v && best == best))) continue;
        best = v, tap = (r - top) * w.window + k - left;
      }
    y.put(y.plane(plane), i, j, best);
    place.put(place.plane(plane), i, j, tap);
  }
};

template <class C>
struct max_pool_gradient_pixel {
  device_image dy, place, dx;
  device_windows h, w;
  NEAP_HD void operator()(std::int64_t plane, std::int64_t r, std::int64_t c) const {
    std::byte const *const in = dy.plane(plane), *const at = place.plane(plane);
    pool_span const rows = h.reaching(r), columns = w.reaching(c);
    sum_t<C> sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i)
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        std::int64_t const tap = (r - i * h.stride + h.padding) * w.window + c - j * w.stride + w.padding;
        if (place.get<std::int64_t>(at, i, j) == tap) sum += dy.get<C>(in, i, j);
      }
    dx.put(dx.plane(plane), r, c, static_cast<C>(sum));
  }
};

template <class C>
struct average_pixel {
  device_image x, y;
  device_windows h, w;
  NEAP_HD void operator()(std::int64_t plane, std::int64_t i, std::int64_t j) const {
    std::byte const* const in = x.plane(plane);
    pool_span const a = h[i], b = w[j];
    sum_t<C> sum = 0;
    for (std::int64_t r = a.begin; r < a.end; ++r)
      for (std::int64_t k = b.begin; k < b.end; ++k) sum += x.get<C>(in, r, k);
    y.put(y.plane(plane), i, j, static_cast<C>(sum) / static_cast<C>(a.whole * b.whole));
  }
};

template <class C>
struct average_gradient_pixel {
  device_image dy, dx;
  device_windows h, w;
  NEAP_HD void operator()(std::int64_t plane, std::int64_t r, std::int64_t c) const {
    std::byte const* const in = dy.plane(plane);
    pool_span const rows = h.reaching(r), columns = w.reaching(c);
    sum_t<C> sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      pool_span const a = h[i];
      if (r < a.begin || r >= a.end) continue;
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        pool_span const b = w[j];
        if (c >= b.begin && c < b.end) sum += dy.get<C>(in, i, j) / static_cast<C>(a.whole * b.whole);
      }
    }
    dx.put(dx.plane(plane), r, c, static_cast<C>(sum));
  }
};

template <class C>
struct resized_pixel {
  device_image x, y;
  interpolate_options o;
  NEAP_HD void operator()(std::int64_t plane, std::int64_t i, std::int64_t j) const {
    std::byte const* const in = x.plane(plane);
    auto const a = sample_at<C>(i, x.rows, y.rows, o), b = sample_at<C>(j, x.columns, y.columns, o);
    C const top = x.get<C>(in, a.low, b.low);
    if (o.mode == interpolation::nearest) return y.put(y.plane(plane), i, j, top);
    C const upper = (C(1) - b.t) * top + b.t * x.get<C>(in, a.low, b.high);
    C const lower = (C(1) - b.t) * x.get<C>(in, a.high, b.low) + b.t * x.get<C>(in, a.high, b.high);
    y.put(y.plane(plane), i, j, (C(1) - a.t) * upper + a.t * lower);
  }
};

template <class C>
struct resized_gradient_pixel {
  device_image dy, dx;
  interpolate_options o;
  NEAP_HD void operator()(std::int64_t plane, std::int64_t r, std::int64_t c) const {
    std::byte const* const in = dy.plane(plane);
    std::int64_t const column = first_from(c - 1, dx.columns, dy.columns);
    sum_t<C> sum = 0;
    for (std::int64_t i = first_from(r - 1, dx.rows, dy.rows); i < dy.rows; ++i) {
      auto const a = sample_at<C>(i, dx.rows, dy.rows, o);
      if (a.low > r) break;
      if (a.low != r && a.high != r) continue;
      for (std::int64_t j = column; j < dy.columns; ++j) {
        auto const b = sample_at<C>(j, dx.columns, dy.columns, o);
        if (b.low > c) break;
        if (b.low != c && b.high != c) continue;
        C const slope = dy.get<C>(in, i, j);
        if (o.mode == interpolation::nearest) {
          sum += slope;
          continue;
        }
        C const upper = (C(1) - a.t) * slope, lower = a.t * slope;
        if (a.low == r && b.low == c) sum += (C(1) - b.t) * upper;
        if (a.low == r && b.high == c) sum += b.t * upper;
        if (a.high == r && b.low == c) sum += (C(1) - b.t) * lower;
        if (a.high == r && b.high == c) sum += b.t * lower;
      }
    }
    dx.put(dx.plane(plane), r, c, static_cast<C>(sum));
  }

 private:
  /// The first output whose lower sample is not below `place`: samples ascend.
  NEAP_HD std::int64_t first_from(std::int64_t place, std::int64_t in, std::int64_t out) const {
    std::int64_t low = 0, high = out;
    while (low < high) {
      std::int64_t const middle = low + (high - low) / 2;
      if (sample_at<C>(middle, in, out, o).low < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

/// f(type_tag<C>) for what a floating type is computed in.
template <class F>
void with_computed(dtype t, F const& f) {
  if (t == dtype::f64) f(type_tag<double>{});
  else f(type_tag<float>{});
}

template <class B>
void average_on_device(B& b, tensor_ref const& x, tensor_ref const& y, device_windows const& h,
                       device_windows const& w) {
  with_computed(x.element, [&](auto tag) {
    device_image const to(y);
    for_each_pixel(b, to, average_pixel<typename decltype(tag)::type>{device_image(x), to, h, w});
  });
}
template <class B>
void average_gradient_on_device(B& b, tensor_ref const& dy, tensor_ref const& dx, device_windows const& h,
                                device_windows const& w) {
  with_computed(dx.element, [&](auto tag) {
    device_image const to(dx);
    for_each_pixel(b, to, average_gradient_pixel<typename decltype(tag)::type>{device_image(dy), to, h, w});
  });
}

}  // namespace detail

namespace op {

template <device_backend B>
void run(B& b, max_pool2d const& op, kernel_arguments const& a) {
  using neap::detail::device_image, neap::detail::device_windows;
  auto const o = detail::pool_of(op);
  tensor_ref const &x = a.in[0], &y = a.out[0];
  neap::detail::with_computed(x.element, [&](auto tag) {
    device_image const to(y);
    neap::detail::max_pool_pixel<typename decltype(tag)::type> const f{device_image(x), to, device_image(a.out[1]),
                                                                       device_windows::of(x.dims, y.dims, o, 0),
                                                                       device_windows::of(x.dims, y.dims, o, 1)};
    neap::detail::for_each_pixel(b, to, f);
  });
}
template <device_backend B>
void run(B& b, max_pool2d_grad const& op, kernel_arguments const& a) {
  using neap::detail::device_image, neap::detail::device_windows;
  auto const o = detail::pool_of(op);
  tensor_ref const &dy = a.in[0], &dx = a.out[0];
  neap::detail::with_computed(dx.element, [&](auto tag) {
    device_image const to(dx);
    neap::detail::max_pool_gradient_pixel<typename decltype(tag)::type> const f{
        device_image(dy), device_image(a.in[1]), to, device_windows::of(dx.dims, dy.dims, o, 0),
        device_windows::of(dx.dims, dy.dims, o, 1)};
    neap::detail::for_each_pixel(b, to, f);
  });
}
template <device_backend B>
void run(B& b, avg_pool2d const& op, kernel_arguments const& a) {
  using neap::detail::device_windows;
  auto const o = detail::pool_of(op);
  shape const &x = a.in[0].dims, &y = a.out[0].dims;
  neap::detail::average_on_device(b, a.in[0], a.out[0], device_windows::of(x, y, o, 0), device_windows::of(x, y, o, 1));
}
template <device_backend B>
void run(B& b, avg_pool2d_grad const& op, kernel_arguments const& a) {
  using neap::detail::device_windows;
  auto const o = detail::pool_of(op);
  shape const &x = a.out[0].dims, &y = a.in[0].dims;
  neap::detail::average_gradient_on_device(b, a.in[0], a.out[0], device_windows::of(x, y, o, 0),
                                           device_windows::of(x, y, o, 1));
}
template <device_backend B>
void run(B& b, adaptive_avg_pool2d const&, kernel_arguments const& a) {
  using neap::detail::device_windows;
  shape const &x = a.in[0].dims, &y = a.out[0].dims;
  neap::detail::average_on_device(b, a.in[0], a.out[0], device_windows::parts(x, y, 0), device_windows::parts(x, y, 1));
}
template <device_backend B>
void run(B& b, adaptive_avg_pool2d_grad const&, kernel_arguments const& a) {
  using neap::detail::device_windows;
  shape const &x = a.out[0].dims, &y = a.in[0].dims;
  neap::detail::average_gradient_on_device(b, a.in[0], a.out[0], device_windows::parts(x, y, 0),
                                           device_windows::parts(x, y, 1));
}

template <device_backend B>
void run(B& b, interpolate const& op, kernel_arguments const& a) {
  using neap::detail::device_image;
  neap::detail::with_computed(a.in[0].element, [&](auto tag) {
    device_image const to(a.out[0]);
    neap::detail::for_each_pixel(b, to,
                                 neap::detail::resized_pixel<typename decltype(tag)::type>{
                                     device_image(a.in[0]), to, detail::resize_options(op.bilinear, op.align_corners)});
  });
}
template <device_backend B>
void run(B& b, interpolate_grad const& op, kernel_arguments const& a) {
  using neap::detail::device_image;
  neap::detail::with_computed(a.out[0].element, [&](auto tag) {
    device_image const to(a.out[0]);
    neap::detail::for_each_pixel(b, to,
                                 neap::detail::resized_gradient_pixel<typename decltype(tag)::type>{
                                     device_image(a.in[0]), to, detail::resize_options(op.bilinear, op.align_corners)});
  });
}

}  // namespace op

}}  // namespace neap::v0
