// What a 2-d convolution is as correlations: its shape, its two axes, and strips of input rows with zeros between them.
#pragma once

#include <neap/backend/every_other.hpp>
#include <neap/core/error.hpp>
#include <neap/core/kernel_options.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

/// The shape [N, O, OH, OW] of conv2d of x [N, C, H, W] with w [O, C / groups, KH, KW]; throws neap::error.
inline shape conv2d_shape(shape const& x, shape const& w, conv2d_options const& o = {}) {
  auto fail = [&](char const* why) { throw_error({"conv2d: ", why, ", ", x, " with filter ", w}); };
  if (x.rank() != 4 || w.rank() != 4) fail("input and filter need four axes");
  if (o.groups < 1 || x[1] != w[1] * o.groups || w[0] % o.groups != 0) fail("channels do not fit the groups");
  shape y{x[0], w[0]};
  for (int i = 0; i < 2; ++i) {
    auto const u = static_cast<std::size_t>(i);
    if (o.stride[u] < 1 || o.dilation[u] < 1 || o.padding[u] < 0 || w[2 + i] < 1)
      fail("bad stride, padding or dilation");
    if (w[2 + i] > 128) fail("filters beyond 128 taps an axis are not supported");
    std::int64_t const room = x[2 + i] + 2 * o.padding[u] - (w[2 + i] - 1) * o.dilation[u] - 1;
    if (room < 0) fail("the filter is larger than the padded input");
    y.push_back(room / o.stride[u] + 1);
  }
  return y;
}

namespace detail {

inline std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// One axis of a correlation: output i takes, from tap t, element i + delta[t] of plane phase[t]; element r of plane p is
// the input's element r * step + shift[p], or zero outside [0, in). Output i is stored at first + i * out_step.
struct correlation_axis {
  std::int64_t in = 0, out = 0, step = 1, first = 0, out_step = 1;
  int taps = 0, phases = 0;
  std::int16_t tap[128], phase[128];
  std::int64_t delta[128], shift[128];
  std::int64_t low = 0, high = 0;  // smallest and largest delta

  void finish() {
    low = high = taps ? delta[0] : 0;
    for (int t = 1; t < taps; ++t) low = std::min(low, delta[t]), high = std::max(high, delta[t]);
  }
  static correlation_axis forward(std::int64_t in, std::int64_t out, std::int64_t k, std::int64_t stride,
                                  std::int64_t pad, std::int64_t dilation) {
    correlation_axis a;
    a.in = in, a.out = out, a.step = stride;
    for (std::int64_t t = 0; t < k; ++t) {
      std::int64_t const at = t * dilation - pad, d = floor_div(at, stride), s = at - d * stride;
      int p = 0;
      while (p < a.phases && a.shift[p] != s) ++p;
      if (p == a.phases) a.shift[a.phases++] = s;
      a.tap[a.taps] = static_cast<std::int16_t>(t), a.phase[a.taps] = static_cast<std::int16_t>(p);
      a.delta[a.taps++] = d;
    }
    a.finish();
    return a;
  }
  // The gradient to the inputs `cls`, cls + stride, ... of that axis.
  static correlation_axis backward(std::int64_t in, std::int64_t out, std::int64_t k, std::int64_t stride,
                                   std::int64_t pad, std::int64_t dilation, std::int64_t cls) {
    correlation_axis a;
    a.in = out, a.out = cls < in ? (in - 1 - cls) / stride + 1 : 0, a.first = cls, a.out_step = stride;
    a.phases = 1, a.shift[0] = 0;
    for (std::int64_t t = 0; t < k; ++t) {
      std::int64_t const at = cls + pad - t * dilation;
      if (floor_div(at, stride) * stride != at) continue;
      a.tap[a.taps] = static_cast<std::int16_t>(t), a.phase[a.taps] = 0;
      a.delta[a.taps++] = floor_div(at, stride);
    }
    a.finish();
    return a;
  }
};

// Where a strip's planes lie in scratch.
struct strip_layout {
  std::int64_t pitch = 0, lead = 0;      // elements from row to row; zeros in front of the first
  std::int64_t column = 0, columns = 0;  // the plane's columns kept: [column, column + columns)
  std::int64_t rows = 0, strips = 0;     // output rows of a strip (the last may have fewer)
  std::int64_t plane = 0, channel = 0;   // elements of a plane of one channel, and of all its planes
  std::int64_t pixels = 0;               // outputs computed for a strip, gaps included, rounded up to lanes

  static constexpr std::int64_t cache_bytes = 192 << 10;  // of packed input a strip: well inside a second-level cache

  static strip_layout of(correlation_axis const& h, correlation_axis const& w, std::int64_t channels, int lanes,
                         std::int64_t element_bytes) {
    strip_layout s;
    std::int64_t valid = 0;
    for (int p = 0; p < w.phases; ++p)
      valid = std::max(valid, w.in > w.shift[p] ? (w.in - 1 - w.shift[p]) / w.step + 1 : 0);
    std::int64_t const from = w.low, to = w.out + w.high;  // columns that taps reach
    s.column = std::clamp<std::int64_t>(from, 0, valid);
    s.columns = std::max<std::int64_t>(0, std::min(valid, to) - s.column);
    std::int64_t const left = s.columns ? s.column - from : to - from;
    std::int64_t const right = s.columns ? to - (s.column + s.columns) : 0;
    std::int64_t const gap = std::max({left, right, std::int64_t{0}});
    s.pitch = std::max({s.columns + gap, w.out, std::int64_t{1}});
    s.lead = std::max(gap, s.pitch - s.columns);
    std::int64_t const planes = h.phases * w.phases, halo = h.high - h.low;
    std::int64_t const row_bytes = std::max<std::int64_t>(1, channels * planes * s.pitch * element_bytes);
    std::int64_t const at_least = std::max<std::int64_t>(1, 3 * lanes / s.pitch);
    s.rows = std::clamp<std::int64_t>(std::max(at_least, cache_bytes / row_bytes - halo), 1,
                                      std::max<std::int64_t>(h.out, 1));
    s.strips = (h.out + s.rows - 1) / s.rows;
    if (s.strips > 0) s.rows = (h.out + s.strips - 1) / s.strips;
    s.pixels = (s.rows * s.pitch + lanes - 1) / lanes * lanes;
    // A tile of lanes may read past the last row: room for a whole tile, filled with zeros.
    s.plane = (s.lead + (s.rows + halo + 1) * s.pitch + (to - from) + 3 * lanes + 15) / 16 * 16;
    s.channel = s.plane * planes;
    return s;
  }
};

// A call of memcpy costs more than a short row.
template <class T>
NEAP_INLINE void copy_row(T const* from, std::int64_t n, T* to) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) __builtin_memcpy(to + i, from + i, 8 * sizeof(T));
  for (; i < n; ++i) to[i] = from[i];
}

// Copies the rows that output rows [row, row + layout.rows) need, of one channel.
template <class T>
void pack_channel(correlation_axis const& h, correlation_axis const& w, strip_layout const& s, std::int64_t row,
                  T const* x, std::int64_t x_row, std::int64_t x_column, T* to) {
  for (int ph = 0; ph < h.phases; ++ph)
    for (int pw = 0; pw < w.phases; ++pw, to += s.plane) {
      T* out = to;
      T* const end = to + s.plane;
      std::int64_t const valid = w.in > w.shift[pw] ? (w.in - 1 - w.shift[pw]) / w.step + 1 : 0;
      std::int64_t const n = std::clamp<std::int64_t>(valid - s.column, 0, s.columns);
      std::fill(out, out + s.lead, T(0));
      out += s.lead;
      std::int64_t const rows = s.rows + h.high - h.low;
      for (std::int64_t r = 0; r < rows; ++r, out += s.pitch) {
        std::int64_t const at = (row + h.low + r) * h.step + h.shift[ph];
        std::int64_t filled = 0;
        if (at >= 0 && at < h.in && n > 0) {
          T const* in = x + at * x_row + (s.column * w.step + w.shift[pw]) * x_column;
          std::int64_t const step = w.step * x_column;
          if (step == 1) copy_row(in, n, out);
          else if (step == 2) every_other(in, n, out);
          else
            for (std::int64_t c = 0; c < n; ++c) out[c] = in[c * step];
          filled = n;
        }
        std::fill(out + filled, out + s.pitch, T(0));
      }
      std::fill(out, end, T(0));
    }
}

// Offsets of the taps from the first of a strip's outputs, in the order in which weights are packed.
inline void tap_offsets(correlation_axis const& h, correlation_axis const& w, strip_layout const& s, std::int64_t* to) {
  for (int i = 0; i < h.taps; ++i)
    for (int j = 0; j < w.taps; ++j)
      *to++ = (h.phase[i] * w.phases + w.phase[j]) * s.plane + s.lead + (h.delta[i] - h.low) * s.pitch + w.delta[j] -
              s.column;
}

inline std::int64_t round_up_64(std::int64_t n) { return (n + 63) / 64 * 64; }

struct conv2d_extents {
  std::int64_t n, c, h, w, o, oh, ow, kh, kw, groups, cg, og;
  static conv2d_extents of(shape const& x, shape const& f, conv2d_options const& p) {
    shape const y = conv2d_shape(x, f, p);
    return {x[0], x[1], x[2], x[3], f[0], y[2], y[3], f[2], f[3], p.groups, f[1], f[0] / p.groups};
  }
};

inline void check_conv2d(char const* what, tensor_ref const& x, tensor_ref const& w, tensor_ref const& y,
                         conv2d_options const& o) {
  if (conv2d_shape(x.dims, w.dims, o) != y.dims)
    throw_error({what, ": ", y.dims, " is not the shape of ", x.dims, " with filter ", w.dims});
  if (x.element != w.element || x.element != y.element) throw_error({what, ": element types differ"});
}

}  // namespace detail

}}  // namespace neap::v0
