// Resizing images [N, C, H, W] on the host, nearest and bilinear, forward and backward, f32 and f64. A plane is one task
// and its gradient is added up in f64 in the order of the outputs, so results do not depend on threads. No workspace.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/tile_of_sums.hpp>
#include <neap/core/element.hpp>
#include <neap/core/error.hpp>
#include <neap/core/kernel_options.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

namespace neap { inline namespace v0 {

namespace detail {

// Output i of an axis is (1 - t) * in[low] + t * in[high].
template <class T>
struct sample_point {
  std::int64_t low, high;
  T t;
};
template <class T>
NEAP_HD sample_point<T> sample_at(std::int64_t i, std::int64_t in, std::int64_t out, interpolate_options const& o) {
  if (o.mode == interpolation::nearest) {
    std::int64_t const at = i * in / out;
    return {at, at, T(0)};
  }
  // Exact up to one rounding: the position is a ratio of integers.
  std::int64_t numerator = o.align_corners ? i * (in - 1) : (2 * i + 1) * in - out;
  std::int64_t denominator = o.align_corners ? out - 1 : 2 * out;
  numerator = numerator > 0 ? numerator : 0, denominator = denominator > 1 ? denominator : 1;
  std::int64_t low = numerator / denominator;
  low = low < in - 1 ? low : in - 1;
  std::int64_t const high = low + 1 < in - 1 ? low + 1 : in - 1;
  return {low, high, static_cast<T>(numerator - low * denominator) / static_cast<T>(denominator)};
}

// The places of the input that an output is made of: [begin, end).
struct sampled_span {
  std::int64_t begin, end;
};

template <class F>
void interpolate_planes(char const* what, host_backend& backend, tensor_ref const& image, tensor_ref const& resized,
                        F const& f) {
  if (image.rank() != 4 || resized.rank() != 4 || image.dims[0] != resized.dims[0] ||
      image.dims[1] != resized.dims[1] || image.dims[2] < 1 || image.dims[3] < 1)
    throw_error({what, ": ", image.dims, " cannot be resized to ", resized.dims});
  if (image.element != resized.element)
    throw_error({what, ": element types differ, ", name_of(image.element), " and ", name_of(resized.element)});
  if (image.element != dtype::f32 && image.element != dtype::f64) refuse_on_host(what, image.element);
  std::int64_t const work = resized.dims[2] * resized.dims[3];
  std::int64_t const grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(work, 1));
  backend.parallel_for(image.dims[0] * image.dims[1], grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t const n = i / image.dims[1], c = i % image.dims[1];
      std::int64_t const from = n * image.strides[0] + c * image.strides[1];
      std::int64_t const to = n * resized.strides[0] + c * resized.strides[1];
      if (image.element == dtype::f32) f(image.as<float>() + from, resized.as<float>() + to);
      else f(image.as<double>() + from, resized.as<double>() + to);
    }
  });
}

}  // namespace detail

/// y [N, C, OH, OW] = x [N, C, H, W] resized.
template <std::same_as<host_backend> Backend>
void interpolate(Backend& backend, tensor_ref const& x, tensor_ref const& y, interpolate_options const& o) {
  detail::interpolate_planes("interpolate", backend, x, y, [&](auto const* in, auto* out) {
    using T = std::remove_reference_t<decltype(*out)>;
    for (std::int64_t i = 0; i < y.dims[2]; ++i) {
      auto const a = detail::sample_at<T>(i, x.dims[2], y.dims[2], o);
      T const* const top = in + a.low * x.strides[2];
      T const* const bottom = in + a.high * x.strides[2];
      T* const row = out + i * y.strides[2];
      for (std::int64_t j = 0; j < y.dims[3]; ++j) {
        auto const b = detail::sample_at<T>(j, x.dims[3], y.dims[3], o);
        std::int64_t const l = b.low * x.strides[3], r = b.high * x.strides[3];
        if (o.mode == interpolation::nearest) {
          row[j * y.strides[3]] = top[l];
          continue;
        }
        T const upper = (T(1) - b.t) * top[l] + b.t * top[r], lower = (T(1) - b.t) * bottom[l] + b.t * bottom[r];
        row[j * y.strides[3]] = (T(1) - a.t) * upper + a.t * lower;
      }
    }
  });
}

/// dx [N, C, H, W] from dy [N, C, OH, OW].
template <std::same_as<host_backend> Backend>
void interpolate_gradient(Backend& backend, tensor_ref const& dy, tensor_ref const& dx, interpolate_options const& o) {
  detail::interpolate_planes("interpolate_gradient", backend, dx, dy, [&](auto* out, auto const* in) {
    using T = std::remove_reference_t<decltype(*out)>;
    auto const span = [&](std::int64_t in_extent, std::int64_t out_extent) {
      return [=](std::int64_t i) {
        auto const at = detail::sample_at<T>(i, in_extent, out_extent, o);
        return detail::sampled_span{at.low, at.high + 1};
      };
    };
    auto const rows = span(dx.dims[2], dy.dims[2]), columns = span(dx.dims[3], dy.dims[3]);
    detail::each_tile_of_sums(dx, out, [&](detail::tile_of_sums<T>& sums) {
      auto const add = [&](std::int64_t r, std::int64_t c, T term) {
        if (sums.has(r, c)) sums.row(r)[c] += term;
      };
      std::int64_t const first = sums.first_column(dy.dims[3], columns);
      for (std::int64_t i = sums.first_row(dy.dims[2], rows); i < dy.dims[2]; ++i) {
        auto const a = detail::sample_at<T>(i, dx.dims[2], dy.dims[2], o);
        if (a.low >= sums.bottom) break;
        T const* const row = in + i * dy.strides[2];
        for (std::int64_t j = first; j < dy.dims[3]; ++j) {
          auto const b = detail::sample_at<T>(j, dx.dims[3], dy.dims[3], o);
          if (b.low >= sums.right) break;
          T const slope = row[j * dy.strides[3]];
          if (o.mode == interpolation::nearest) {
            add(a.low, b.low, slope);
            continue;
          }
          T const upper = (T(1) - a.t) * slope, lower = a.t * slope;
          add(a.low, b.low, (T(1) - b.t) * upper);
          add(a.low, b.high, b.t * upper);
          add(a.high, b.low, (T(1) - b.t) * lower);
          add(a.high, b.high, b.t * lower);
        }
      }
    });
  });
}

}}  // namespace neap::v0
