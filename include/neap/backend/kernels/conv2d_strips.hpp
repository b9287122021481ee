// Convolutions by strips of rows, for any number of channels: forward, the input's gradient and the weight's.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/kernels/conv2d_axes.hpp>
#include <neap/backend/kernels/conv2d_lanes.hpp>
#include <neap/backend/kernels/conv2d_tiles.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

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

}}}  // namespace neap::v0::detail
