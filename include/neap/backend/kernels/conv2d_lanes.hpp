// What convolutions that hold 16 channels in the lanes of a vector are made of (conv2d_winograd.hpp, conv2d_taps.hpp):
// images cut into blocks of tiles, windows of 16 channels turned from planes into pixels and back, and the product of
// such pixels with weights or with one another.
#pragma once

#include <neap/backend/gemm_tiles.hpp>
#include <neap/backend/host.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

// What a convolution goes to and from: `to` [images, outs, out_h, out_w], `from` [images, ins, in_h, in_w].
struct convolved_sizes {
  std::int64_t images, ins, outs, in_h, in_w, out_h, out_w;
};

// f32 gradients of filters are summed over so many pixels at a time, and these sums in f64.
inline std::int64_t filter_passes(std::int64_t pixels, std::int64_t most) {
  constexpr std::int64_t pixels_at_once = 32'768;
  return std::clamp<std::int64_t>((pixels + pixels_at_once - 1) / pixels_at_once, 1, std::max<std::int64_t>(most, 1));
}

// How the gradient to a weight of `weights` elements is summed: in passes one after another, each of as many chunks.
struct filter_sums {
  std::int64_t weights, chunks, passes;

  std::int64_t cuts() const { return chunks * passes; }
  // The sums of a pass's chunks, where they are not the gradient itself; behind them those of all passes.
  std::int64_t chunk_floats() const {
    return passes > 1 ? (chunks * weights + 15) / 16 * 16 : chunks > 1 ? chunks * weights : 0;
  }
  std::int64_t floats() const { return chunk_floats() + (passes > 1 ? (2 * weights + 15) / 16 * 16 : 0); }
  // The sum of element i: of its chunks, or, after the last of several passes, of all.
  bool add_chunks(float* partials, std::int64_t pass, std::int64_t i, float& sum) const {
    if (passes == 1) {
      sum = partials[i];
      for (std::int64_t part = 1; part < chunks; ++part) sum += partials[part * weights + i];
      return true;
    }
    auto* const all = reinterpret_cast<double*>(partials + chunk_floats());
    double more = pass > 0 ? all[i] : 0;
    for (std::int64_t part = 0; part < chunks; ++part) more += partials[part * weights + i];
    all[i] = more, sum = static_cast<float>(more);
    return pass + 1 == passes;
  }
};

// Images of down x across tiles in units of up to 32 tiles side by side, and units in blocks of up to so many tiles.
struct tile_grid {
  std::int64_t down = 0, segments = 0, side = 1;  // units of an image's column, of its row; tiles of a unit
  std::int64_t units = 0, block = 1, blocks = 0;  // in all; of a block; blocks
  std::int64_t tiles = 0, tile_rows = 0;          // of a block; the same as a multiple of what a register tile takes

  static constexpr std::int64_t lanes = 16, max_side = 32;

  tile_grid(std::int64_t images, std::int64_t down_, std::int64_t across, std::int64_t max_tiles) : down(down_) {
    segments = (across + max_side - 1) / max_side;
    side = segments > 0 ? (across + segments - 1) / segments : 1;
    units = images * segments * down;
    cut(max_tiles);
  }
  void cut(std::int64_t max_tiles) {
    block = std::clamp<std::int64_t>(max_tiles / side, 1, std::max<std::int64_t>(units, 1));
    blocks = (units + block - 1) / block;
    block = blocks > 0 ? (units + blocks - 1) / blocks : 1;
    tiles = block * side;
    tile_rows = (tiles + 7) / 8 * 8;
  }
  std::int64_t tiles_of(std::int64_t i) const { return (std::min(units, (i + 1) * block) - i * block) * side; }
  // f(image, first row and column of tiles, rows of tiles, first tile in the block) for what of block i lies in one image
  // and one column of units.
  template <class F>
  void each_strip(std::int64_t i, F const& f) const {
    std::int64_t const last = std::min(units, (i + 1) * block);
    for (std::int64_t u = i * block; u < last;) {
      std::int64_t const y = u % down, rows = std::min(last - u, down - y);
      f(u / down / segments, y, u / down % segments * side, rows, (u - i * block) * side);
      u += rows;
    }
  }

  static std::int64_t groups_of_lanes(std::int64_t channels) { return (channels + lanes - 1) / lanes; }
  // Floats from one matrix of a set to the next: an odd number of cache lines, since all are written and read at once.
  static std::int64_t apart(std::int64_t floats) { return floats / 32 * 32 + 48; }
};

#if defined(NEAP_GEMM_TILES)

struct channel_lanes {
  using vec = gemm_tiles::vec;
  static constexpr std::int64_t lanes = 16;

  struct image {  // 16 channels of one image, or fewer
    float* at;
    std::int64_t channels, channel, row, column;  // how many; strides
  };
  // `count` pixels, at most 16, one behind another in each channel.
  static void load_pixels(image const& x, float const* from, std::int64_t count, vec (&r)[16]) {
    if (count == 16 && x.column == 1) {
#pragma GCC unroll 16
      for (std::int64_t l = 0; l < lanes; ++l) r[l] = l < x.channels ? gemm_tiles::load(from + l * x.channel) : vec{};
    } else {
      for (std::int64_t l = 0; l < lanes; ++l) {
        float line[16] = {};
        for (std::int64_t i = 0; i < count && l < x.channels; ++i) line[i] = from[l * x.channel + i * x.column];
        r[l] = gemm_tiles::load(line);
      }
    }
    transpose16(r);
  }
  static void store_pixels(image const& y, float* to, std::int64_t count, vec (&r)[16]) {
    transpose16(r);
    for (std::int64_t l = 0; l < y.channels; ++l) {
      if (count == 16 && y.column == 1) gemm_tiles::store(to + l * y.channel, r[l]);
      else
        for (std::int64_t i = 0; i < count; ++i) to[l * y.channel + i * y.column] = r[l][i];
    }
  }
  // What of an image's rows [row, row + rows) and columns [column, column + columns) lies inside of it, as runs of pixels
  // with nothing between: a run a row, or one for all where whole rows lie one behind another. f(run's first pixel in the
  // image, pixels, the row's pixels, place of the first in the window).
  template <class F>
  static void each_run(image const& x, std::int64_t height, std::int64_t width, std::int64_t row, std::int64_t rows,
                       std::int64_t column, std::int64_t columns, F const& f) {
    std::int64_t const r0 = std::clamp<std::int64_t>(-row, 0, rows), r1 = std::clamp(height - row, r0, rows);
    std::int64_t const c0 = std::clamp<std::int64_t>(-column, 0, columns), c1 = std::clamp(width - column, c0, columns);
    if (r0 == r1 || c0 == c1) return;
    float* const first = x.at + (row + r0) * x.row + (column + c0) * x.column;
    if (c1 - c0 == width && x.row == width * x.column) return f(first, (r1 - r0) * width, width, r0 * columns + c0);
    for (std::int64_t r = r0; r < r1; ++r) f(first + (r - r0) * x.row, c1 - c0, c1 - c0, r * columns + c0);
  }
  // 16 pixels of a run at a time, the last 16 again where fewer are left. f(first of them, how many, place of each).
  template <class F>
  static void each_sixteen(std::int64_t count, std::int64_t width, std::int64_t place, std::int64_t columns,
                           F const& f) {
    std::int64_t y = 0, x = 0;  // of the next pixel
    for (std::int64_t done = 0; done < count;) {
      std::int64_t const begin = count < 16 ? 0 : std::min(done, count - 16), here = std::min<std::int64_t>(count, 16);
      if (begin < done) y = begin / width, x = begin % width;
      std::int64_t places[16];
      for (std::int64_t i = 0; i < here; ++i) {
        places[i] = place + y * columns + x;
        if (++x == width) x = 0, ++y;
      }
      f(begin, here, places);
      done = begin + here;
    }
  }
  // A window of 16 channels of an image, pixel by pixel: to[rows][columns][16], zeros outside of the image.
  static void load_window(image const& x, std::int64_t height, std::int64_t width, std::int64_t row, std::int64_t rows,
                          std::int64_t column, std::int64_t columns, float* to) {
    if (row < 0 || row + rows > height || column < 0 || column + columns > width)
      for (std::int64_t r = 0; r < rows; ++r) {
        bool const outside = row + r < 0 || row + r >= height;
        std::int64_t const left = outside ? columns : std::clamp<std::int64_t>(-column, 0, columns);
        std::int64_t const right = std::clamp<std::int64_t>(width - column, left, columns);
        std::fill(to + r * columns * lanes, to + (r * columns + left) * lanes, 0.f);
        std::fill(to + (r * columns + right) * lanes, to + (r + 1) * columns * lanes, 0.f);
      }
    each_run(x, height, width, row, rows, column, columns,
             [&](float const* from, std::int64_t count, std::int64_t run_width, std::int64_t place) {
               each_sixteen(count, run_width, place, columns,
                            [&](std::int64_t begin, std::int64_t here, std::int64_t const* places) {
                              vec r[16];
                              load_pixels(x, from + begin * x.column, here, r);
                              for (std::int64_t i = 0; i < here; ++i) gemm_tiles::store(to + places[i] * lanes, r[i]);
                            });
             });
  }
  // What of from[rows][columns][16] lies inside of the image.
  static void store_window(image const& y, std::int64_t height, std::int64_t width, std::int64_t row, std::int64_t rows,
                           std::int64_t column, std::int64_t columns, float const* from) {
    each_run(y, height, width, row, rows, column, columns,
             [&](float* to, std::int64_t count, std::int64_t run_width, std::int64_t place) {
               each_sixteen(count, run_width, place, columns,
                            [&](std::int64_t begin, std::int64_t here, std::int64_t const* places) {
                              vec r[16] = {};
                              for (std::int64_t i = 0; i < here; ++i) r[i] = gemm_tiles::load(from + places[i] * lanes);
                              store_pixels(y, to + begin * y.column, here, r);
                            });
             });
  }
  static image channels_of(tensor_ref const& t, std::int64_t image, std::int64_t channel) {
    return {t.as<float>() + image * t.strides[0] + channel * t.strides[1], std::min(lanes, t.dims[1] - channel),
            t.strides[1], t.strides[2], t.strides[3]};
  }
  // The tiles of block i that fill up a register tile, of `sets` matrices of `groups` x 16 channels.
  static void clear_rest(tile_grid const& grid, std::int64_t i, std::int64_t sets, std::int64_t set_floats,
                         std::int64_t groups, float* to) {
    std::int64_t const used = grid.tiles_of(i);
    for (std::int64_t p = 0; p < sets; ++p)
      for (std::int64_t g = 0; g < groups; ++g)
        std::fill(to + p * set_floats + (g * grid.tile_rows + used) * lanes,
                  to + p * set_floats + (g + 1) * grid.tile_rows * lanes, 0.f);
  }
  // c[8 rows, Vectors * 16] (+)= the sum over k of a's 8 values and b's vectors. Where they lie: the values of row i at
  // i * Row, k steps within an outer one A and B apart, outer steps a_outer and b_outer.
  template <int Vectors, int Row, int A, int B>
  [[gnu::noinline]] static void product(std::int64_t outer, std::int64_t inner, float const* left, std::int64_t a_outer,
                                        float const* right, std::int64_t b_outer, std::int64_t b_vector, bool add,
                                        float* c, std::int64_t ldc) {
#if NEAP_VECTORS_OF_16 == 512
    product_of_rows<vector16, 8, Vectors, Row, A, B>(outer, inner, left, a_outer, right, b_outer, b_vector, add, c,
                                                     ldc);
#else
    for (int h = 0; h < Vectors; ++h)  // 16 registers hold 4 rows of 16
      for (int i = 0; i < 8; i += 4)
        product_of_rows<vector8, 4, 2, Row, A, B>(outer, inner, left + i * Row, a_outer, right + h * b_vector, b_outer,
                                                  8, add, c + i * ldc + h * lanes, ldc);
#endif
  }
  // The same for `Rows` rows and as many of `V`'s registers.
  template <class V, int Rows, int Vectors, int Row, int A, int B>
  static NEAP_INLINE void product_of_rows(std::int64_t outer, std::int64_t inner, float const* left,
                                          std::int64_t a_outer, float const* right, std::int64_t b_outer,
                                          std::int64_t b_vector, bool add, float* c, std::int64_t ldc) {
    V sum[Rows][Vectors] = {};
    for (std::int64_t o = 0; o < outer; ++o, left += a_outer, right += b_outer) {
      float const *x = left, *y = right;
#pragma GCC unroll 4
      for (std::int64_t k = 0; k < inner; ++k, x += A, y += B) {
        V y0 = {}, y1 = {};
        __builtin_memcpy(&y0, y, sizeof y0);
        if constexpr (Vectors > 1) __builtin_memcpy(&y1, y + b_vector, sizeof y1);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
          V v;
          asm("vbroadcastss %1, %0" : "=v"(v) : "m"(x[i * Row]));
          asm("vfmadd231ps %1, %2, %0" : "+v"(sum[i][0]) : "v"(v), "v"(y0));
          if constexpr (Vectors > 1) asm("vfmadd231ps %1, %2, %0" : "+v"(sum[i][1]) : "v"(v), "v"(y1));
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int h = 0; h < Vectors; ++h) {
        float* const to = c + i * ldc + h * static_cast<std::int64_t>(sizeof(V) / sizeof(float));
        V before = {};
        if (add) __builtin_memcpy(&before, to, sizeof before), sum[i][h] = before + sum[i][h];
        __builtin_memcpy(to, &sum[i][h], sizeof(V));
      }
  }

  struct weights {  // w[o][c][i][j] by strides
    float const* at;
    std::int64_t out, in, row, column;
  };
  // The taps of a filter of k x k, at most 3 x 3, of `count` outputs, an output a lane.
  static void load_taps(weights const& w, float const* from, std::int64_t k, std::int64_t count, vec (&taps)[16]) {
    bool const forward = w.row == k && w.column == 1, backward = w.row == -k && w.column == -1;
    if (k == 3 && count == lanes && (forward || backward)) {  // nine side by side; what is read beyond is not used
      float const* const first = forward ? from : from - 8;
#pragma GCC unroll 16
      for (std::int64_t l = 0; l < lanes - 1; ++l) taps[l] = gemm_tiles::load(first + l * w.out);
      float last[16] = {};
      __builtin_memcpy(last, first + (lanes - 1) * w.out, 9 * sizeof(float));
      taps[15] = gemm_tiles::load(last);
      transpose16(taps);
      if (backward) std::reverse(taps, taps + 9);
      return;
    }
    float lines[9][16] = {};
    for (std::int64_t l = 0; l < count; ++l)
      for (std::int64_t t = 0; t < k * k; ++t) lines[t][l] = from[l * w.out + t / k * w.row + t % k * w.column];
    for (std::int64_t t = 0; t < k * k; ++t) taps[t] = gemm_tiles::load(lines[t]);
  }

  // The gradient to a weight of k x k taps: a task sums a chunk of the tiles for a block of outputs and inputs, and the
  // sums of chunks are added in order. sums(cut, first output, first input, scratch) does the first, of chunk cut % chunks
  // of pass cut / chunks; taps(output, input, scratch, to) gives what it found, 16 inputs in the lanes.
  template <class Sums, class Taps>
  static void weight_gradient(host_backend& backend, std::int64_t outs, std::int64_t ins, std::int64_t k,
                              std::int64_t block, filter_sums const& by, float* partials, std::int64_t scratch_floats,
                              tensor_ref const& dw, bool accumulate, Sums const& sums, Taps const& taps) {
    std::int64_t const in_blocks = (ins + block - 1) / block, blocks = (outs + block - 1) / block * in_blocks;
    std::int64_t const kk = k * k;
    bool const direct = by.cuts() == 1;
    for (std::int64_t pass = 0; pass < by.passes; ++pass) {
      backend.parallel_for(by.chunks * blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        float* const scratch = partials + by.floats() + worker * scratch_floats;
        for (std::int64_t i = begin; i < end; ++i) {
          std::int64_t const chunk = i / blocks, o = i % blocks / in_blocks * block, c = i % in_blocks * block;
          sums(pass * by.chunks + chunk, o, c, scratch);
          float* const at = direct ? dw.as<float>() : partials + chunk * by.weights;
          weights const to = direct ? weights{at, dw.strides[0], dw.strides[1], dw.strides[2], dw.strides[3]}
                                    : weights{at, ins * kk, kk, k, 1};
          for (std::int64_t y = 0; y < std::min(block, outs - o); ++y)
            for (std::int64_t x = 0; x < std::min(block, ins - c); x += lanes) {
              vec r[16] = {};
              taps(y, x, scratch, r);
              store_taps(to, k, std::min(lanes, std::min(block, ins - c) - x), direct && accumulate, r,
                         at + (o + y) * to.out + (c + x) * to.in);
            }
        }
      });
      if (direct) return;
      backend.parallel_for(outs * ins, 1024, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin * kk; i < end * kk; ++i) {
          float sum = 0;
          if (!by.add_chunks(partials, pass, i, sum)) continue;
          std::int64_t const o = i / kk / ins, c = i / kk % ins, t = i % kk;
          float& to =
              dw.as<float>()[o * dw.strides[0] + c * dw.strides[1] + t / k * dw.strides[2] + t % k * dw.strides[3]];
          to = accumulate ? to + sum : sum;
        }
      });
    }
  }

 private:
  static void store_taps(weights const& w, std::int64_t k, std::int64_t count, bool accumulate, vec (&r)[16],
                         float* to) {
    transpose16(r);
    std::int64_t const kk = k * k;
    bool const dense = w.in == kk && w.row == k && w.column == 1 && !accumulate;
    for (std::int64_t l = 0; l < count; ++l) {
      float* const g = to + l * w.in;
      if (dense && (count - l) * kk >= lanes) gemm_tiles::store(g, r[l]);  // the next write over what is beyond
      else
        for (std::int64_t t = 0; t < kk; ++t) {
          float& v = g[t / k * w.row + t % k * w.column];
          v = accumulate ? v + r[l][t] : r[l][t];
        }
    }
  }
};

#endif

}}}  // namespace neap::v0::detail
