// 2-d convolution on the host, NCHW, f32 and f64: forward and the gradients to input, weight and bias.
//
// All of it runs on two register tiles (conv2d_tiles.hpp). A strip of output rows of one image is computed at a time.
// Its input rows are copied next to one another, with zeros for the padding, so that a tap of the filter is a constant
// offset and rows need no special cases; the zeros to the right of one row are those to the left of the next:
//
//     0 x x x x 0 x x x x 0 x x x x 0      a 3x3 filter with padding 1 over rows of 4: row pitch 5
//
// A stride s > 1 splits the input into s x s such planes. The gradient to the input is the same correlation over the
// output's gradient, once for each of the s x s classes of input pixels. 1x1 filters read the input where it lies.
// Weight gradients are summed over a number of chunks of images that the shape fixes, which are then added in order.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/every_other.hpp>
#include <neap/backend/gemm_tiles.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/kernels/conv2d_pointwise.hpp>
#include <neap/backend/kernels/conv2d_taps.hpp>
#include <neap/backend/kernels/conv2d_tiles.hpp>
#include <neap/backend/kernels/conv2d_winograd.hpp>
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
#include <type_traits>

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

// What forward and input gradient share: `outs` channels of `to` from `ins` channels of `from`, in each group.
template <class T>
struct correlation {
  correlation_axis h, w;
  strip_layout strip;
  tile_set<T> tiles;
  std::int64_t ins, outs, groups;
  std::int64_t taps;
  bool in_place;  // 1x1 on dense planes: x is read where it lies

  correlation(correlation_axis const& h_, correlation_axis const& w_, std::int64_t ins_, std::int64_t outs_,
              std::int64_t groups_, bool may_stay)
      : h(h_),
        w(w_),
        tiles(machine_vectors()),
        ins(ins_),
        outs(outs_),
        groups(groups_),
        taps(std::int64_t{h_.taps} * w_.taps) {
    strip = strip_layout::of(h, w, ins, tiles.lanes, sizeof(T));
    in_place = may_stay && taps == 1 && h.step == 1 && w.step == 1 && h.out_step == 1 && w.out_step == 1 &&
               h.delta[0] == 0 && w.delta[0] == 0 && h.in == h.out && w.in == w.out;
  }
  // Scratch of one worker: packed planes, then the outputs of up to 8 channels.
  std::int64_t scratch_bytes() const {
    return round_up_64(ins * strip.channel * std::int64_t{sizeof(T)}) +
           round_up_64(8 * (strip.pixels + 3 * tiles.lanes) * std::int64_t{sizeof(T)}) + 64;
  }
  std::int64_t weight_bytes() const { return round_up_64(groups * outs * ins * taps * std::int64_t{sizeof(T)}); }
  std::int64_t offset_bytes() const { return round_up_64(taps * 8); }

  // weight[o][c][i][j] by strides; packed as [rows of a tile][channel][tap][row in tile].
  void pack_weights(host_backend& backend, T const* weight, std::int64_t group, std::int64_t out, std::int64_t in,
                    std::int64_t row, std::int64_t column, T* packed) const {
    std::int64_t const blocks = (outs + tiles.rows - 1) / tiles.rows;
    std::int64_t const grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, tiles.rows * ins * taps));
    backend.parallel_for(groups * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const g = id / blocks, last = std::min(outs, (id % blocks + 1) * tiles.rows);
        for (std::int64_t o = id % blocks * tiles.rows; o < last;) {
          int const rows = tiles.rows_for(last - o);
          T* to = packed + (g * outs + o) * ins * taps;
          T const* const from = weight + g * group + o * out;
          for (std::int64_t c = 0; c < ins; ++c)
            for (int i = 0; i < h.taps; ++i)
              for (int j = 0; j < w.taps; ++j)
                for (int a = 0; a < rows; ++a) *to++ = from[a * out + c * in + h.tap[i] * row + w.tap[j] * column];
          o += rows;
        }
      }
    });
  }

  // x: the first channel of the group in this image, with strides of channel, row, column; y likewise.
  void run_strip(std::int64_t index, T const* packed, std::int64_t const* offsets, T const* bias,
                 std::int64_t bias_step, T const* x, std::int64_t const* xs, T* y, std::int64_t const* ys,
                 void* scratch) const {
    T* const planes = static_cast<T*>(scratch);
    T* const result = reinterpret_cast<T*>(static_cast<std::byte*>(scratch) +
                                           round_up_64(ins * strip.channel * std::int64_t{sizeof(T)}));
    std::int64_t const row = index * strip.rows, rows = std::min(strip.rows, h.out - row);
    std::int64_t const L = tiles.lanes, span = rows * strip.pitch;
    bool const y_dense = in_place && ys[2] == 1 && ys[1] == w.out;
    std::int64_t const zero_offset = 0;
    std::int64_t whole = 0;  // pixels that are read in place
    std::int64_t tail_stride = strip.channel;
    if (in_place) {
      whole = span / L * L;
      tail_stride = L;
      if (whole < span)
        for (std::int64_t c = 0; c < ins; ++c) {
          T* const to = planes + c * L;
          T const* const from = x + c * xs[0] + row * w.out + whole;
          for (std::int64_t i = 0; i < L; ++i) to[i] = whole + i < span ? from[i] : T(0);
        }
    } else if (taps > 0) {  // a class of pixels that no tap meets has none
      for (std::int64_t c = 0; c < ins; ++c)
        pack_channel(h, w, strip, row, x + c * xs[0], xs[1], xs[2], planes + c * strip.channel);
    }
    std::int64_t const result_stride = strip.pixels + 3 * L;
    for (std::int64_t o = 0; o < outs;) {
      int const a = tiles.rows_for(outs - o);
      T start[8];
      for (int i = 0; i < a; ++i) start[i] = bias ? bias[(o + i) * bias_step] : T(0);
      correlation_tile<T> tile;
      tile.channels = ins, tile.taps = taps, tile.weight = packed + o * ins * taps, tile.start = start;
      auto const& kernels = kernels_of(tiles).correlation[tile_set<T>::log2(a)];
      auto sweep = [&](std::int64_t from, std::int64_t to) {  // whole vectors; tile.x and tile.y are at `from`
        for (std::int64_t q = from; q < to;) {
          std::int64_t const left = (to - q + L - 1) / L;
          std::int64_t const b = left == 4 ? 2 : std::min<std::int64_t>(3, left);
          kernels[b - 1](tile);
          tile.x += b * L, tile.y += b * L, q += b * L;
        }
      };
      if (in_place) {
        tile.offset = &zero_offset;
        tile.channel_stride = xs[0], tile.x = x + row * w.out;
        tile.y = y_dense ? y + o * ys[0] + row * ys[1] : result;
        tile.y_stride = y_dense ? ys[0] : result_stride;
        sweep(0, whole);
        if (whole < span) {
          tile.channel_stride = tail_stride, tile.x = planes;
          T tail[8 * 16];
          if (y_dense) tile.y = tail, tile.y_stride = L;
          T* const to = tile.y;
          sweep(whole, span);
          if (y_dense)
            for (int i = 0; i < a; ++i)
              for (std::int64_t q = whole; q < span; ++q) y[(o + i) * ys[0] + row * ys[1] + q] = to[i * L + q - whole];
        }
      } else {
        tile.offset = offsets, tile.channel_stride = strip.channel, tile.x = planes, tile.y = result;
        tile.y_stride = result_stride;
        sweep(0, span);
      }
      if (!y_dense) {
        std::int64_t const pitch = in_place ? w.out : strip.pitch, step = w.out_step * ys[2];
        for (int i = 0; i < a; ++i)
          for (std::int64_t r = 0; r < rows; ++r) {
            T const* const from = result + i * result_stride + r * pitch;
            T* const to = y + (o + i) * ys[0] + (h.first + (row + r) * h.out_step) * ys[1] + w.first * ys[2];
            if (step == 1) copy_row(from, w.out, to);
            else
              for (std::int64_t c = 0; c < w.out; ++c) to[c * step] = from[c];
          }
      }
      o += a;
    }
  }

  // All images; weights and offsets are packed already.
  void run(host_backend& backend, std::int64_t images, T const* packed, std::int64_t const* offsets, T const* bias,
           std::int64_t bias_step, tensor_ref const& from, tensor_ref const& to, std::byte* scratch) const {
    if (h.out <= 0 || w.out <= 0) return;
    std::int64_t const each = scratch_bytes(), strips = strip.strips;
    std::int64_t const work = strip.rows * strip.pitch * ins * std::max<std::int64_t>(taps, 1) * outs;
    std::int64_t const grain = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(work, 1));
    backend.parallel_for(images * groups * strips, grain, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const image = id / (groups * strips), g = id / strips % groups;
        run_strip(id % strips, packed + g * outs * ins * taps, offsets, bias ? bias + g * outs * bias_step : nullptr,
                  bias_step, from.as<T const>() + image * from.strides[0] + g * ins * from.strides[1],
                  from.strides.begin() + 1, to.as<T>() + image * to.strides[0] + g * outs * to.strides[1],
                  to.strides.begin() + 1, scratch + worker * each);
      }
    });
  }
};

inline bool dense_planes(tensor_ref const& t) {
  return (t.dims[3] == 1 || t.strides[3] == 1) && (t.dims[2] == 1 || t.strides[2] == t.dims[3]);
}

template <class T>
correlation<T> conv2d_forward(conv2d_extents const& e, conv2d_options const& o, bool may_stay) {
  return {correlation_axis::forward(e.h, e.oh, e.kh, o.stride[0], o.padding[0], o.dilation[0]),
          correlation_axis::forward(e.w, e.ow, e.kw, o.stride[1], o.padding[1], o.dilation[1]),
          e.cg,
          e.og,
          e.groups,
          may_stay};
}
template <class T>
correlation<T> conv2d_backward(conv2d_extents const& e, conv2d_options const& o, std::int64_t i, std::int64_t j,
                               bool may_stay) {
  return {correlation_axis::backward(e.h, e.oh, e.kh, o.stride[0], o.padding[0], o.dilation[0], i),
          correlation_axis::backward(e.w, e.ow, e.kw, o.stride[1], o.padding[1], o.dilation[1], j),
          e.og,
          e.cg,
          e.groups,
          may_stay};
}

// The weight's gradient: chunks of units (strips of images), each with a partial sum of the whole weight; the outputs
// of a chunk may be split among several tasks, which cost no memory.
template <class T>
struct weight_gradient {
  conv2d_extents e;
  correlation_axis h, w;
  strip_layout strip;
  tile_set<T> tiles;
  std::int64_t taps, columns, units, chunks, passes, splits, split, batch;
  std::int64_t block;  // channels of x packed at a time, so that many units share a sweep

  weight_gradient(conv2d_extents const& e_, conv2d_options const& o)
      : e(e_),
        h(correlation_axis::forward(e.h, e.oh, e.kh, o.stride[0], o.padding[0], o.dilation[0])),
        w(correlation_axis::forward(e.w, e.ow, e.kw, o.stride[1], o.padding[1], o.dilation[1])),
        tiles(machine_vectors()),
        taps(e.kh * e.kw),
        columns(e.cg * taps) {
    block = std::min<std::int64_t>(e.cg, 16);
    strip = strip_layout::of(h, w, block, tiles.lanes, sizeof(T));
    units = e.n * strip.strips;
    std::int64_t const weights = e.o * columns * std::int64_t{sizeof(T)};
    std::int64_t const by_memory =
        std::max<std::int64_t>(1, (std::int64_t{4} << 20) / std::max<std::int64_t>(weights, 1));
    chunks = std::clamp<std::int64_t>(e.n * e.oh * e.ow / 1024, 1, std::min<std::int64_t>(16, by_memory));
    chunks = std::clamp<std::int64_t>(chunks, 1, std::max<std::int64_t>(units, 1));
    passes = sizeof(T) == 4 ? filter_passes(e.n * e.oh * e.ow, units / chunks) : 1;
    splits = std::clamp<std::int64_t>(8 / (chunks * e.groups), 1, std::max<std::int64_t>(1, e.og / 32));
    split = (e.og + splits - 1) / splits;
    split = (split + tiles.rows - 1) / tiles.rows * tiles.rows;
    splits = (e.og + split - 1) / split;
    // Equal batches: a last one of a few units would cost as much as a full one.
    std::int64_t const fit = std::max<std::int64_t>(
        1, (std::int64_t{256} << 10) / std::max<std::int64_t>(1, unit_elements() * std::int64_t{sizeof(T)}));
    std::int64_t const most = std::max<std::int64_t>(1, (units + chunks * passes - 1) / (chunks * passes));
    std::int64_t const batches = (most + fit - 1) / fit;
    batch = (most + batches - 1) / batches;
  }
  std::int64_t x_unit() const { return block * strip.channel; }
  std::int64_t g_unit() const { return split * strip.pixels; }
  std::int64_t unit_elements() const { return x_unit() + g_unit(); }
  std::int64_t scratch_bytes() const { return round_up_64(batch * unit_elements() * std::int64_t{sizeof(T)}) + 64; }
  std::int64_t offset_bytes() const { return round_up_64(block * taps * 8); }
  filter_sums sums_by() const { return {e.o * columns, chunks, passes}; }
  std::int64_t partial_bytes() const {
    std::int64_t const all = passes > 1 ? sums_by().floats() : chunks * e.o * columns;
    return round_up_64(all * std::int64_t{sizeof(T)});
  }
  std::int64_t tasks() const { return chunks * e.groups * splits; }
  // Each task packs into scratch of its own, or where there are more tasks than threads each thread.
  bytes_t workspace(int threads) const {
    return offset_bytes() + partial_bytes() + std::min<std::int64_t>(threads, tasks()) * scratch_bytes();
  }

  void pack_slopes(std::int64_t row, std::int64_t rows, T const* dy, tensor_ref const& t, T* to) const {
    T* const end = to + strip.pixels;
    for (std::int64_t r = 0; r < rows; ++r, to += strip.pitch) {
      T const* const from = dy + (row + r) * t.strides[2];
      std::int64_t const step = t.strides[3];
      if (step == 1) copy_row(from, e.ow, to);
      else
        for (std::int64_t c = 0; c < e.ow; ++c) to[c] = from[c * step];
      std::fill(to + e.ow, to + strip.pitch, T(0));
    }
    std::fill(to, end, T(0));
  }

  void run(host_backend& backend, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw, bool accumulate,
           void* workspace) const {
    auto* const offsets = static_cast<std::int64_t*>(workspace);
    auto* const partials = reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset_bytes());
    auto* const scratch = static_cast<std::byte*>(workspace) + offset_bytes() + partial_bytes();
    for (std::int64_t c = 0; c < block; ++c) {
      tap_offsets(h, w, strip, offsets + c * taps);
      for (std::int64_t t = 0; t < taps; ++t) offsets[c * taps + t] += c * strip.channel;
    }
    std::int64_t const each = scratch_bytes();
    bool const own = tasks() <= backend.threads();
    std::int64_t const count = e.o * columns;
    T* const out = dw.as<T>();
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      backend.parallel_for(tasks(), 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        for (std::int64_t id = begin; id < end; ++id)
          run_chunk(pass, id / (e.groups * splits), id / splits % e.groups, id % splits * split, x, dy, offsets,
                    partials, reinterpret_cast<T*>(scratch + (own ? id : worker) * each));
      });
      backend.parallel_for(
          e.o, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(columns, 1)),
          [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin * columns; i < end * columns; ++i) {
              T sum = 0;
              if constexpr (std::is_same_v<T, float>) {
                if (!sums_by().add_chunks(partials, pass, i, sum)) continue;
              } else {
                for (std::int64_t k = 0; k < chunks; ++k) sum += partials[k * count + i];
              }
              std::int64_t const o = i / columns, c = i % columns / taps, t = i % taps;
              T& to = out[o * dw.strides[0] + c * dw.strides[1] + t / e.kw * dw.strides[2] + t % e.kw * dw.strides[3]];
              to = accumulate ? to + sum : sum;
            }
          });
    }
  }

  void run_chunk(std::int64_t pass, std::int64_t chunk, std::int64_t g, std::int64_t o0, tensor_ref const& x,
                 tensor_ref const& dy, std::int64_t const* offsets, T* partials, T* scratch) const {
    std::int64_t const cut = pass * chunks + chunk, cuts = chunks * passes;
    std::int64_t const first = units * cut / cuts, last = units * (cut + 1) / cuts;
    std::int64_t const outs = std::min(split, e.og - o0);
    T* const sum = partials + chunk * e.o * columns + (g * e.og + o0) * columns;
    T* const planes = scratch;
    T* const slopes = scratch + batch * x_unit();
    if (first == last) std::fill(sum, sum + outs * columns, T(0));
    for (std::int64_t u0 = first; u0 < last; u0 += batch) {
      std::int64_t const count = std::min(batch, last - u0);
      auto each_unit = [&](auto const& f) {
        for (std::int64_t u = 0; u < count; ++u) f(u, (u0 + u) / strip.strips, (u0 + u) % strip.strips * strip.rows);
      };
      each_unit([&](std::int64_t u, std::int64_t image, std::int64_t row) {
        for (std::int64_t o = 0; o < outs; ++o)
          pack_slopes(row, std::min(strip.rows, e.oh - row),
                      dy.as<T const>() + image * dy.strides[0] + (g * e.og + o0 + o) * dy.strides[1], dy,
                      slopes + u * g_unit() + o * strip.pixels);
      });
      for (std::int64_t c0 = 0; c0 < e.cg; c0 += block) {
        std::int64_t const channels = std::min(block, e.cg - c0), here = channels * taps;
        each_unit([&](std::int64_t u, std::int64_t image, std::int64_t row) {
          for (std::int64_t c = 0; c < channels; ++c)
            pack_channel(h, w, strip, row, x.as<T const>() + image * x.strides[0] + (g * e.cg + c0 + c) * x.strides[1],
                         x.strides[2], x.strides[3], planes + u * x_unit() + c * strip.channel);
        });
        for (std::int64_t o = 0; o < outs;) {
          int const a = tiles.rows_for(outs - o);
          for (std::int64_t c = 0; c < here;) {
            std::int64_t const left = here - c, b = left == 4 ? 2 : std::min<std::int64_t>(3, left);
            kernels_of(tiles).weight[tile_set<T>::log2(a)][b - 1](
                {count, strip.pixels, slopes + o * strip.pixels, g_unit(), strip.pixels, planes, x_unit(), offsets + c,
                 sum + o * columns + c0 * taps + c, columns, u0 != first});
            c += b;
          }
          o += a;
        }
      }
    }
  }
};

// A strip layout whose strips have at most `most` pixels, gaps included; what is cut for matrix products.
inline strip_layout short_strips(correlation_axis const& h, correlation_axis const& w, std::int64_t most) {
  constexpr std::int64_t channels = 16, lanes = 16;  // that a strip is made for
  auto s = strip_layout::of(h, w, channels, lanes, sizeof(float));
  std::int64_t const rows = std::clamp<std::int64_t>(most / s.pitch, 1, std::max<std::int64_t>(h.out, 1));
  if (rows < s.rows) {
    s.strips = (h.out + rows - 1) / rows;
    s.rows = (h.out + s.strips - 1) / s.strips;
  }
  return s;
}

// Rows of `width` elements, `pitch` apart, one behind another. Reads and writes up to 15 elements more.
inline void join_rows(float const* from, std::int64_t rows, std::int64_t width, std::int64_t pitch, float* to) {
  for (std::int64_t r = 0; r < rows; ++r, from += pitch, to += width)
    for (std::int64_t i = 0; i < width; i += 16) __builtin_memcpy(to + i, from + i, 16 * sizeof(float));
}

// A correlation from and to many channels as one matrix product, y [outs, pixels] = w [outs, ins * taps] x [ins * taps,
// pixels], for images of any size: strips of pixels without the gaps between their rows, several strips side by side. A
// tile holds 14 channels of y, whose pixels may be those of several strips; the correlation's own holds 8, computes the
// gaps too, and ends with each strip.
struct correlation_product {
  correlation_axis h, w;
  strip_layout strip;
  std::int64_t ins, outs, groups, taps, strips, unit;  // unit: pixels of a strip
  std::int64_t together;                               // strips side by side, for so many threads

  static constexpr std::int64_t max_pixels = 512, k_step = 256;

  // The shape decides, whatever machine there is: programs may be compiled with other flags than their kernels.
  static bool suits(correlation_axis const& h, correlation_axis const& w, std::int64_t images, std::int64_t ins,
                    std::int64_t outs, dtype element) {
    std::int64_t const taps = std::int64_t{h.taps} * w.taps;
    if (element != dtype::f32 || outs < 128 || ins * taps < 256 || images * h.out * w.out < 64) return false;
    if (w.out + w.high - w.low > max_pixels / 2) return false;  // a row and its gap must fit
    // Rows that fill few lanes, many planes to split, long sums without a tap to shift by. Elsewhere the correlation's own
    // tiles were quicker.
    return w.out <= 8 || (w.out <= 16 && (h.step * w.step > 1 || (taps == 1 && ins >= 512)));
  }
  correlation_product(correlation_axis const& h_, correlation_axis const& w_, std::int64_t images, std::int64_t ins_,
                      std::int64_t outs_, std::int64_t groups_, int threads)
      : h(h_),
        w(w_),
        strip(short_strips(h, w, max_pixels)),
        ins(ins_),
        outs(outs_),
        groups(groups_),
        taps(std::int64_t{h.taps} * w.taps),
        strips(images * strip.strips),
        unit(strip.rows * w.out) {
    std::int64_t const side = (strips + threads - 1) / threads;
    together = std::clamp<std::int64_t>(side, 1, std::max<std::int64_t>(max_pixels / unit, 1));
  }
  std::int64_t channels() const { return std::min(ins, (k_step + taps - 1) / taps + 1); }
  std::int64_t plane_floats() const { return channels() * together * strip.channel; }
  std::int64_t pixels() const { return (together * unit + 31) / 32 * 32; }
  bytes_t scratch_bytes() const {
    return round_up_64((plane_floats() + pixels() + 16 + outs * together * unit) * std::int64_t{sizeof(float)});
  }
  /// Of as many threads as there are at most; 0 for shapes that do not suit.
  static bytes_t workspace(correlation_axis const& h, correlation_axis const& w, std::int64_t images, std::int64_t ins,
                           std::int64_t outs, dtype element, int threads) {
    bytes_t most = 0;
    if (!suits(h, w, images, ins, outs, element)) return most;
    for (int t = 1; t <= threads; ++t) {
      correlation_product const p(h, w, images, ins, outs, 1, t);
      most = std::max(most, round_up_64(2 * p.taps * 8) + t * p.scratch_bytes());
    }
    return most;
  }

#if defined(NEAP_GEMM_TILES)
  /// weight[o][c][i][j] by strides, those of groups in front.
  void run(host_backend& backend, float const* weight, std::int64_t group, std::int64_t out, std::int64_t in,
           std::int64_t row, std::int64_t column, float const* bias, std::int64_t bias_step, tensor_ref const& from,
           tensor_ref const& to, void* workspace) const {
    auto* const offsets = static_cast<std::int64_t*>(workspace);
    auto* const weight_at = offsets + taps;
    auto* const scratch = static_cast<std::byte*>(workspace) + round_up_64(2 * taps * 8);
    tap_offsets(h, w, strip, offsets);
    bool contiguous = in == taps;
    for (int i = 0; i < h.taps; ++i)
      for (int j = 0; j < w.taps; ++j) {
        weight_at[i * w.taps + j] = h.tap[i] * row + w.tap[j] * column;
        contiguous = contiguous && weight_at[i * w.taps + j] == i * w.taps + j;
      }
    std::int64_t const blocks = (strips + together - 1) / together;
    backend.parallel_for(groups * blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const g = id / blocks, first = id % blocks * together;
        std::int64_t const count = std::min(together, strips - first), n = count * unit;
        auto* const planes = reinterpret_cast<float*>(scratch + worker * scratch_bytes());
        float* const line = planes + plane_floats();
        float* const y = line + pixels() + 16;
        float const* const w0 = weight + g * group;
        gemm_tiles::run(
            outs, n, ins * taps, k_step,
            [&](std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* packed) {
              if (contiguous) return gemm_tiles::pack_left({w0, out, false}, i, p, mc, kc, packed);
              if (taps == 1 && out == 1) return gemm_tiles::pack_left({w0, in, true}, i, p, mc, kc, packed);
              pack_weights(w0, out, in, weight_at, i, p, mc, kc, packed);
            },
            [&](std::int64_t p, std::int64_t, std::int64_t kc, std::int64_t, float* packed) {
              pack_pixels(from, g * ins, first, count, p, kc, offsets, planes, line, packed);
            },
            false, y, n);
        for (std::int64_t o = 0; o < outs; ++o)
          write_channel(y + o * n, first, count, bias ? bias[(g * outs + o) * bias_step] : 0.f, g * outs + o, to);
      }
    });
  }

 private:
  void pack_weights(float const* weight, std::int64_t out, std::int64_t in, std::int64_t const* weight_at,
                    std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* packed) const {
    for (std::int64_t r = 0; r < mc; r += gemm_tiles::rows) {
      std::int64_t const rows = std::min(gemm_tiles::rows, mc - r);
      float* to = packed + r * kc;
      for (std::int64_t k = p; k < p + kc; ++k) {
        float const* const from = weight + (i + r) * out + k / taps * in + weight_at[k % taps];
        for (std::int64_t l = 0; l < rows; ++l) *to++ = from[l * out];
      }
    }
  }
  void pack_pixels(tensor_ref const& x, std::int64_t channel, std::int64_t first, std::int64_t count, std::int64_t p,
                   std::int64_t kc, std::int64_t const* offsets, float* planes, float* line, float* packed) const {
    std::int64_t const c0 = p / taps, here = (p + kc - 1) / taps - c0 + 1;
    for (std::int64_t u = 0; u < count; ++u)
      for (std::int64_t c = 0; c < here; ++c)
        pack_channel(
            h, w, strip, (first + u) % strip.strips * strip.rows,
            x.as<float const>() + (first + u) / strip.strips * x.strides[0] + (channel + c0 + c) * x.strides[1],
            x.strides[2], x.strides[3], planes + (u * here + c) * strip.channel);
    constexpr std::int64_t width = gemm_tiles::columns;
    std::int64_t const n = count * unit, panels = (n + width - 1) / width;
    for (std::int64_t k = 0; k < kc; ++k) {
      std::int64_t const c = (p + k) / taps - c0, tap = (p + k) % taps;
      for (std::int64_t u = 0; u < count; ++u)
        join_rows(planes + (u * here + c) * strip.channel + offsets[tap], strip.rows, w.out, strip.pitch,
                  line + u * unit);
      std::fill(line + n, line + panels * width, 0.f);
      for (std::int64_t i = 0; i < panels; ++i)
        __builtin_memcpy(packed + (i * kc + k) * width, line + i * width, width * sizeof(float));
    }
  }
  void write_channel(float const* y, std::int64_t first, std::int64_t count, float bias, std::int64_t channel,
                     tensor_ref const& to) const {
    for (std::int64_t u = first; u < first + count; ++u, y += unit) {
      std::int64_t const row = u % strip.strips * strip.rows, rows = std::min(strip.rows, h.out - row);
      std::int64_t const step = w.out_step * to.strides[3];
      float* const out =
          to.as<float>() + u / strip.strips * to.strides[0] + channel * to.strides[1] + w.first * to.strides[3];
      for (std::int64_t r = 0; r < rows; ++r) {
        float const* const from = y + r * w.out;
        float* const at = out + (h.first + (row + r) * h.out_step) * to.strides[2];
        if (step == 1)
          for (std::int64_t c = 0; c < w.out; ++c) at[c] = from[c] + bias;
        else
          for (std::int64_t c = 0; c < w.out; ++c) at[c * step] = from[c] + bias;
      }
    }
  }
#endif
};

// The weight's gradient of many channels as one matrix product, dw [O, C * taps] = g [O, pixels] x [pixels, C * taps],
// for images of any size: pixels are cut every few units (images or strips of them). The tile's sums stay in registers for
// all pixels of a cut, where weight_gradient adds up lanes for each.
struct weight_product {
  conv2d_extents e;
  correlation_axis h, w;
  strip_layout strip;
  std::int64_t taps, columns, units, unit;  // unit: pixels of one
  std::int64_t together;                    // units of a cut
  std::int64_t passes;                      // as filter_passes says

  static constexpr std::int64_t max_pixels = 256, line_floats = max_pixels + 16;

  // The shape decides, whatever machine there is: programs may be compiled with other flags than their kernels.
  static bool suits(conv2d_extents const& e, conv2d_options const& o, dtype element) {
    if (element != dtype::f32 || e.og < 128 || e.cg * e.kh * e.kw < 128 || e.n * e.oh * e.ow < 64) return false;
    if (e.kh * e.kw == 1 && e.og < 256 && e.ow > 16) return false;
    weight_product const p(e, o);
    return p.unit <= max_pixels && p.units > 0;
  }
  weight_product(conv2d_extents const& e_, conv2d_options const& o)
      : e(e_),
        h(correlation_axis::forward(e.h, e.oh, e.kh, o.stride[0], o.padding[0], o.dilation[0])),
        w(correlation_axis::forward(e.w, e.ow, e.kw, o.stride[1], o.padding[1], o.dilation[1])),
        taps(e.kh * e.kw),
        columns(e.cg * taps) {
    strip = short_strips(h, w, max_pixels);
    unit = strip.rows * e.ow;
    units = e.n * strip.strips;
    together =
        std::clamp<std::int64_t>(max_pixels / std::max<std::int64_t>(unit, 1), 1, std::max<std::int64_t>(units, 1));
    passes = filter_passes(units * unit, units / together);
  }
  /// Channels of x that a block of columns touches, at most.
  std::int64_t channels() const { return std::min(e.cg, (1024 + taps - 1) / taps + 1); }
  std::int64_t planes() const { return channels() * together * strip.channel; }
  bytes_t scratch_bytes() const { return round_up_64((planes() + 16 * line_floats) * std::int64_t{sizeof(float)}); }
  filter_sums sums_by() const { return {e.o * columns, 1, passes}; }
  bytes_t sums_bytes() const { return sums_by().floats() * std::int64_t{sizeof(float)}; }
  bytes_t workspace(int threads) const { return round_up_64(taps * 8) + sums_bytes() + threads * scratch_bytes(); }

#if defined(NEAP_GEMM_TILES)
  void run(host_backend& backend, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw, bool accumulate,
           void* workspace) const {
    auto* const offsets = static_cast<std::int64_t*>(workspace);
    auto* const partials = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + round_up_64(taps * 8));
    auto* const scratch = reinterpret_cast<std::byte*>(partials) + sums_bytes();
    tap_offsets(h, w, strip, offsets);
    // Columns side by side, in whole panels.
    std::int64_t const panels = (columns + gemm_tiles::columns - 1) / gemm_tiles::columns;
    std::int64_t const parts = std::min<std::int64_t>(backend.threads(), panels);
    backend.parallel_for(e.groups * parts, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const g = id / parts, part = id % parts;
        std::int64_t const first = panels * part / parts * gemm_tiles::columns;
        std::int64_t const last = std::min(columns, panels * (part + 1) / parts * gemm_tiles::columns);
        auto* const to = reinterpret_cast<float*>(scratch + worker * scratch_bytes());
        std::int64_t const corner = g * e.og * columns + first;
        for (std::int64_t pass = 0; pass < passes; ++pass) {
          std::int64_t const u0 = units * pass / passes, u1 = units * (pass + 1) / passes;
          gemm_tiles::run(
              e.og, last - first, (u1 - u0) * unit, together * unit,
              [&](std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* packed) {
                pack_slopes(dy, g * e.og + i, u0 + p / unit, kc / unit, mc, to + planes(), packed);
              },
              [&](std::int64_t p, std::int64_t j, std::int64_t kc, std::int64_t nc, float* packed) {
                pack_pixels(x, g * e.cg, first + j, u0 + p / unit, kc / unit, nc, offsets, to, to + planes(), packed);
              },
              passes == 1 && accumulate, (passes == 1 ? dw.as<float>() : partials) + corner, columns);
          for (std::int64_t i = 0; i < e.og && passes > 1; ++i)
            for (std::int64_t at = corner + i * columns; at < corner + i * columns + last - first; ++at) {
              float sum = 0;
              if (!sums_by().add_chunks(partials, pass, at, sum)) continue;
              float& into = dw.as<float>()[at];
              into = accumulate ? into + sum : sum;
            }
        }
      }
    });
  }

 private:
  // Strips of 14 rows o of g, unit after unit.
  void pack_slopes(tensor_ref const& dy, std::int64_t o, std::int64_t first, std::int64_t count, std::int64_t mc,
                   float* lines, float* packed) const {
    std::int64_t const kc = count * unit;
    for (std::int64_t i = 0; i < mc; i += gemm_tiles::rows) {
      std::int64_t const rows = std::min(gemm_tiles::rows, mc - i);
      float const* from[16];
      for (std::int64_t r = 0; r < rows; ++r) {
        float* to = lines + r * line_floats;
        from[r] = to;
        for (std::int64_t u = first; u < first + count; ++u) {
          std::int64_t const row = u % strip.strips * strip.rows, here = std::min(strip.rows, e.oh - row);
          float const* const in = dy.as<float const>() + u / strip.strips * dy.strides[0] + (o + i + r) * dy.strides[1];
          for (std::int64_t y = 0; y < strip.rows; ++y, to += e.ow) {
            if (y >= here) {
              std::fill(to, to + e.ow, 0.f);
              continue;
            }
            float const* const at = in + (row + y) * dy.strides[2];
            if (dy.strides[3] == 1) copy_row(at, e.ow, to);
            else
              for (std::int64_t k = 0; k < e.ow; ++k) to[k] = at[k * dy.strides[3]];
          }
        }
      }
      gemm_tiles::pack_lines(from, rows, kc, rows, packed + i * kc);
    }
  }
  // Panels of 32 columns (channel, tap) of x from column j on.
  void pack_pixels(tensor_ref const& x, std::int64_t channel, std::int64_t j, std::int64_t first, std::int64_t count,
                   std::int64_t nc, std::int64_t const* offsets, float* planes, float* buffer, float* packed) const {
    std::int64_t const c0 = j / taps, channels = (j + nc - 1) / taps - c0 + 1, kc = count * unit;
    for (std::int64_t u = 0; u < count; ++u)
      for (std::int64_t c = 0; c < channels; ++c)
        pack_channel(
            h, w, strip, (first + u) % strip.strips * strip.rows,
            x.as<float const>() + (first + u) / strip.strips * x.strides[0] + (channel + c0 + c) * x.strides[1],
            x.strides[2], x.strides[3], planes + (u * channels + c) * strip.channel);
    constexpr std::int64_t lanes = gemm_tiles::lanes, width = gemm_tiles::columns;
    for (std::int64_t at = 0; at < nc; at += lanes) {
      std::int64_t const lines = std::min(lanes, nc - at);
      float* const to = packed + at / width * width * kc + at % width;
      float const* from[16];
      for (std::int64_t l = 0; l < lines; ++l) {
        std::int64_t const column = j + at + l;
        from[l] = buffer + l * line_floats;
        for (std::int64_t u = 0; u < count; ++u)
          join_rows(planes + (u * channels + column / taps - c0) * strip.channel + offsets[column % taps], strip.rows,
                    e.ow, strip.pitch, buffer + l * line_floats + u * unit);
      }
      gemm_tiles::pack_lines(from, lines, kc, width, to);
    }
    if (std::int64_t const rest = nc % width; rest > 0)  // pack_lines may have filled up lanes with what it read last
      for (std::int64_t p = 0; p < kc; ++p)
        std::fill(packed + nc / width * width * kc + p * width + rest,
                  packed + nc / width * width * kc + (p + 1) * width, 0.f);
  }
#endif
};

// From the input to the output, and from the output's gradient to the input's.
inline convolved_sizes forward_sizes(conv2d_extents const& e) { return {e.n, e.cg, e.og, e.h, e.w, e.oh, e.ow}; }
inline convolved_sizes backward_sizes(conv2d_extents const& e) { return {e.n, e.og, e.cg, e.oh, e.ow, e.h, e.w}; }

// Whether Winograd's algorithm takes this convolution (of `winograd`, its shape or that of its input's gradient).
inline bool suits_winograd(conv2d_extents const& e, conv2d_options const& o, winograd_shape const& winograd,
                           dtype element) {
  using pair = std::array<std::int64_t, 2>;
  return element == dtype::f32 && e.groups == 1 && e.kh == 3 && e.kw == 3 && o.stride == pair{1, 1} &&
         o.dilation == pair{1, 1} && winograd.suits();
}
inline winograd_shape winograd_forward(conv2d_extents const& e, conv2d_options const& o) {
  return {forward_sizes(e), o.padding[0], o.padding[1]};
}
inline winograd_shape winograd_backward(conv2d_extents const& e, conv2d_options const& o) {
  return {backward_sizes(e), 2 - o.padding[0], 2 - o.padding[1]};
}

// Whether products by taps take it. Elsewhere the others were quicker: filters of 1x1 forward and for their weights, 16
// channels, and weights of many outputs.
enum class taps_use { forward, input_gradient, weight_gradient };
inline bool suits_taps(taps_use use, conv2d_extents const& e, conv2d_options const& o, taps_shape const& taps,
                       dtype element) {
  using pair = std::array<std::int64_t, 2>;
  if (element != dtype::f32 || e.groups != 1 || e.kh != e.kw || (e.kh != 1 && e.kh != 3) || o.stride != pair{2, 2} ||
      (e.kh == 3 && o.dilation != pair{1, 1}) || std::max(o.padding[0], o.padding[1]) > 3 || !taps.suits())
    return false;
  switch (use) {
    case taps_use::forward: return e.kh == 3 && taps.ins >= 32 && taps.outs >= 32;
    case taps_use::input_gradient: return e.kh == 1 || (taps.ins >= 32 && taps.outs >= 32);
    case taps_use::weight_gradient: return e.kh == 3 && taps.outs < 128;
  }
  return false;
}
inline taps_shape taps_forward(conv2d_extents const& e, conv2d_options const& o) {
  return taps_shape::forward(forward_sizes(e), e.kh, o.padding[0], o.padding[1]);
}
inline taps_shape taps_backward(conv2d_extents const& e, conv2d_options const& o) {
  return taps_shape::backward(backward_sizes(e), e.kh, o.padding[0], o.padding[1]);
}

#if defined(NEAP_GEMM_AMX)
// Whether the convolution from `from` to `to` is pointwise and its planes are where products can read them; w, as
// [to's channels, from's], has rows or columns that are dense.
inline bool suits_pointwise(conv2d_extents const& e, conv2d_options const& o, tensor_ref const& from,
                            tensor_ref const& to, std::int64_t w_row, std::int64_t w_column, bool gradient) {
  using pair = std::array<std::int64_t, 2>;
  return from.element == dtype::f32 && e.groups == 1 && e.kh == 1 && e.kw == 1 && o.stride == pair{1, 1} &&
         o.padding == pair{0, 0} && e.n > 0 && dense_planes(from) && dense_planes(to) && from.strides[1] >= e.h * e.w &&
         to.strides[1] >= e.h * e.w && (w_column == 1 || (w_row == 1 && !gradient)) &&
         pointwise_convolution{e.n, from.dims[1], to.dims[1], e.h * e.w}.suits(gradient);
}
// w as [to's channels, from's].
inline gemm_tiles::operand pointwise_weight(tensor_ref const& w, std::int64_t row, std::int64_t column) {
  return {w.as<float const>(), column == 1 ? row : column, column != 1};
}
#endif

inline void check_conv2d(char const* what, tensor_ref const& x, tensor_ref const& w, tensor_ref const& y,
                         conv2d_options const& o) {
  if (conv2d_shape(x.dims, w.dims, o) != y.dims)
    throw_error({what, ": ", y.dims, " is not the shape of ", x.dims, " with filter ", w.dims});
  if (x.element != w.element || x.element != y.element) throw_error({what, ": element types differ"});
}

}  // namespace detail

/// Bytes of workspace for conv2d on `threads` threads (host_backend::threads()).
bytes_t conv2d_workspace(shape const& x, shape const& w, conv2d_options const& o, dtype element, int threads);

/// y [N, O, OH, OW] = conv2d(x [N, C, H, W], w [O, C / groups, KH, KW]) + bias [O] (data may be null). Any strides.
/// Throws neap::error on shapes that do not fit and on element types other than f32 and f64.
template <std::same_as<host_backend> Backend>
void conv2d(Backend& backend, tensor_ref const& x, tensor_ref const& w, tensor_ref const& bias, tensor_ref const& y,
            conv2d_options const& o, void* workspace) {
  detail::check_conv2d("conv2d", x, w, y, o);
  auto const e = detail::conv2d_extents::of(x.dims, w.dims, o);
#if defined(NEAP_GEMM_AMX)
  if (detail::suits_pointwise(e, o, x, y, w.strides[0], w.strides[1], false))
    return detail::pointwise_convolution{e.n, e.cg, e.og, e.h * e.w}.run(
        backend, detail::pointwise_weight(w, w.strides[0], w.strides[1]), bias.as<float const>(),
        bias.rank() ? bias.strides[0] : 0, x, y);
#endif
#if defined(NEAP_GEMM_TILES)
  if (auto const winograd = detail::winograd_forward(e, o); detail::suits_winograd(e, o, winograd, x.element))
    return detail::winograd{winograd}.run(backend,
                                          {w.as<float const>(), w.strides[0], w.strides[1], w.strides[2], w.strides[3]},
                                          bias.as<float const>(), bias.rank() ? bias.strides[0] : 0, x, y, workspace);
  if (auto const taps = detail::taps_forward(e, o);
      detail::suits_taps(detail::taps_use::forward, e, o, taps, x.element))
    return detail::taps_convolution{taps}.run(
        backend, {w.as<float const>(), w.strides[0], w.strides[1], w.strides[2], w.strides[3]}, bias.as<float const>(),
        bias.rank() ? bias.strides[0] : 0, x, y, workspace);
#endif
  with_f32_or_f64("conv2d", x.element, [&](auto zero) {
    using T = decltype(zero);
    auto const c = detail::conv2d_forward<T>(e, o, detail::dense_planes(x));
#if defined(NEAP_GEMM_TILES)
    if constexpr (std::is_same_v<T, float>)
      if (detail::correlation_product::suits(c.h, c.w, e.n, e.cg, e.og, x.element))
        return detail::correlation_product(c.h, c.w, e.n, e.cg, e.og, e.groups, backend.threads())
            .run(backend, w.as<T const>(), e.og * w.strides[0], w.strides[0], w.strides[1], w.strides[2], w.strides[3],
                 bias.as<T const>(), bias.rank() ? bias.strides[0] : 0, x, y, workspace);
#endif
    auto* const at = static_cast<std::byte*>(workspace);
    auto* const packed = reinterpret_cast<T*>(at);
    auto* const offsets = reinterpret_cast<std::int64_t*>(at + c.weight_bytes());
    c.pack_weights(backend, w.as<T const>(), e.og * w.strides[0], w.strides[0], w.strides[1], w.strides[2],
                   w.strides[3], packed);
    detail::tap_offsets(c.h, c.w, c.strip, offsets);
    c.run(backend, e.n, packed, offsets, bias.as<T const>(), bias.rank() ? bias.strides[0] : 0, x, y,
          at + c.weight_bytes() + c.offset_bytes());
  });
}

/// Bytes of workspace for conv2d_input_gradient; x and w are the shapes of the forward convolution.
bytes_t conv2d_input_gradient_workspace(shape const& x, shape const& w, conv2d_options const& o, dtype element,
                                        int threads);

/// dx [N, C, H, W] from dy [N, O, OH, OW] and w [O, C / groups, KH, KW].
template <std::same_as<host_backend> Backend>
void conv2d_input_gradient(Backend& backend, tensor_ref const& dy, tensor_ref const& w, tensor_ref const& dx,
                           conv2d_options const& o, void* workspace) {
  detail::check_conv2d("conv2d_input_gradient", dx, w, dy, o);
  auto const e = detail::conv2d_extents::of(dx.dims, w.dims, o);
#if defined(NEAP_GEMM_AMX)
  if (detail::suits_pointwise(e, o, dy, dx, w.strides[1], w.strides[0], false))
    return detail::pointwise_convolution{e.n, e.og, e.cg, e.h * e.w}.run(
        backend, detail::pointwise_weight(w, w.strides[1], w.strides[0]), nullptr, 0, dy, dx);
#endif
#if defined(NEAP_GEMM_TILES)
  if (auto const winograd = detail::winograd_backward(e, o); detail::suits_winograd(e, o, winograd, dx.element)) {
    auto const [out, in, row, column] = std::array{w.strides[1], w.strides[0], -w.strides[2], -w.strides[3]};
    return detail::winograd{winograd}.run(backend, {w.as<float const>() - 2 * (row + column), out, in, row, column},
                                          nullptr, 0, dy, dx, workspace);
  }
  if (auto const taps = detail::taps_backward(e, o);
      detail::suits_taps(detail::taps_use::input_gradient, e, o, taps, dx.element))
    return detail::taps_convolution{taps}.run(
        backend, {w.as<float const>(), w.strides[1], w.strides[0], w.strides[2], w.strides[3]}, nullptr, 0, dy, dx,
        workspace);
#endif
  with_f32_or_f64("conv2d_input_gradient", dx.element, [&](auto zero) {
    using T = decltype(zero);
    auto* const at = static_cast<std::byte*>(workspace);
    for (std::int64_t i = 0; i < o.stride[0]; ++i)
      for (std::int64_t j = 0; j < o.stride[1]; ++j) {
        auto const c = detail::conv2d_backward<T>(e, o, i, j, detail::dense_planes(dy));
#if defined(NEAP_GEMM_TILES)
        if constexpr (std::is_same_v<T, float>)
          if (detail::correlation_product::suits(c.h, c.w, e.n, e.og, e.cg, dx.element)) {
            detail::correlation_product(c.h, c.w, e.n, e.og, e.cg, e.groups, backend.threads())
                .run(backend, w.as<T const>(), e.og * w.strides[0], w.strides[1], w.strides[0], w.strides[2],
                     w.strides[3], nullptr, 0, dy, dx, workspace);
            continue;
          }
#endif
        auto* const packed = reinterpret_cast<T*>(at);
        auto* const offsets = reinterpret_cast<std::int64_t*>(at + c.weight_bytes());
        c.pack_weights(backend, w.as<T const>(), e.og * w.strides[0], w.strides[1], w.strides[0], w.strides[2],
                       w.strides[3], packed);
        detail::tap_offsets(c.h, c.w, c.strip, offsets);
        c.run(backend, e.n, packed, offsets, nullptr, 0, dy, dx, at + c.weight_bytes() + c.offset_bytes());
      }
  });
}

/// Bytes of workspace for conv2d_weight_gradient.
bytes_t conv2d_weight_gradient_workspace(shape const& x, shape const& w, conv2d_options const& o, dtype element,
                                         int threads);

/// dw [O, C / groups, KH, KW] (+)= the gradient to the weight, from x and dy.
template <std::same_as<host_backend> Backend>
void conv2d_weight_gradient(Backend& backend, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw,
                            conv2d_options const& o, void* workspace, bool accumulate = false) {
  detail::check_conv2d("conv2d_weight_gradient", x, dw, dy, o);
  auto const e = detail::conv2d_extents::of(x.dims, dw.dims, o);
#if defined(NEAP_GEMM_AMX)
  if (detail::suits_pointwise(e, o, x, dy, dw.strides[0], dw.strides[1], true))
    return detail::pointwise_convolution{e.n, e.cg, e.og, e.h * e.w}.run_gradient(backend, x, dy, dw, accumulate);
#endif
#if defined(NEAP_GEMM_TILES)
  if (auto const winograd = detail::winograd_forward(e, o); detail::suits_winograd(e, o, winograd, x.element))
    return detail::winograd{winograd.of_weight_gradient()}.run_gradient(backend, x, dy, dw, accumulate, workspace);
  if (auto const taps = detail::taps_forward(e, o);
      detail::suits_taps(detail::taps_use::weight_gradient, e, o, taps, x.element))
    return detail::taps_convolution{taps}.run_gradient(backend, x, dy, dw, accumulate, workspace);
  if (detail::weight_product::suits(e, o, x.element) && dw.is_dense())
    return detail::weight_product(e, o).run(backend, x, dy, dw, accumulate, workspace);
#endif
  with_f32_or_f64("conv2d_weight_gradient", x.element, [&](auto zero) {
    detail::weight_gradient<decltype(zero)>(e, o).run(backend, x, dy, dw, accumulate, workspace);
  });
}

/// db [O] (+)= sum of dy [N, O, OH, OW] over N, OH, OW. No workspace.
template <std::same_as<host_backend> Backend>
void conv2d_bias_gradient(Backend& backend, tensor_ref const& dy, tensor_ref const& db, bool accumulate = false) {
  if (dy.rank() != 4 || db.rank() != 1 || db.dims[0] != dy.dims[1] || db.element != dy.element)
    throw_error({"conv2d_bias_gradient: ", dy.dims, " does not reduce to ", db.dims});
  with_f32_or_f64("conv2d_bias_gradient", dy.element, [&](auto zero) {
    using T = decltype(zero);
    bool const dense = detail::dense_planes(dy);
    std::int64_t const plane = dy.dims[2] * dy.dims[3];
    backend.parallel_for(dy.dims[1], 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        sum_t<T> sum = 0;
        for (std::int64_t n = 0; n < dy.dims[0]; ++n) {
          T const* const p = dy.as<T const>() + n * dy.strides[0] + c * dy.strides[1];
          sum += dense ? host_block{}.reduce_each(
                             plane, T(0), [&](std::int64_t i) { return p[i]; }, sum_op{})
                       : host_block{}.reduce_each(
                             plane, T(0),
                             [&](std::int64_t i) {
                               return p[i / dy.dims[3] * dy.strides[2] + i % dy.dims[3] * dy.strides[3]];
                             },
                             sum_op{});
        }
        T& out = db.as<T>()[c * db.strides[0]];
        out = static_cast<T>(accumulate ? out + sum : sum);
      }
    });
  });
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/backend/kernels/impl/conv2d.ipp>
#endif
