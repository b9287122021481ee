// Convolutions of stride 2 with filters of 3x3 and 1x1 as one matrix product a tap, forward and both gradients. Lanes hold
// 16 channels (conv2d_lanes.hpp), so a pixel's place costs nothing: each tap reads pixels copied from its place, and the
// sums of taps stay in order. The gradient to the input takes tiles of 2x2 inputs, whose four classes each meet the taps of
// their parity, and writes whole rows.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/conv2d_lanes.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

// `to` [images, outs, out_h, out_w] from `from` [images, ins, in_h, in_w]: a tile of edge x edge outputs from a window of
// from's pixels, which begins at (row, column) and moves by `step` from tile to tile.
struct taps_shape : tile_grid, convolved_sizes {
  std::int64_t k, edge, step, window, row, column;
  // Taps in order: tap i of the filter reads the window's pixel view[i] and adds to output plane[i] of the tile.
  int view[9] = {}, plane[9] = {};

  static constexpr std::int64_t max_tiles = 64, channel_block = 64;

  static taps_shape forward(convolved_sizes const& sizes, std::int64_t k, std::int64_t pad_h, std::int64_t pad_w) {
    taps_shape s(sizes, k, 1, 2);
    s.window = k, s.row = -pad_h, s.column = -pad_w;
    for (int t = 0; t < k * k && k <= 3; ++t) s.view[t] = t;
    return s;
  }
  // Of the gradient to the input: `from` is the output's gradient, `to` the input's.
  static taps_shape backward(convolved_sizes const& sizes, std::int64_t k, std::int64_t pad_h, std::int64_t pad_w) {
    taps_shape s(sizes, k, 2, 1);
    // Input 2 i + c meets tap t at output i + (c + pad - t) / 2, where that is whole.
    auto const parity = [](std::int64_t pad, std::int64_t t) { return (pad + t) % 2; };
    auto const at = [&](std::int64_t pad, std::int64_t t) { return (parity(pad, t) + pad - t + 2 * 8) / 2 - 8; };
    s.row = at(pad_h, k - 1), s.column = at(pad_w, k - 1);
    s.window = 1;
    for (std::int64_t t = 0; t < k; ++t) {
      s.row = std::min(s.row, at(pad_h, t)), s.column = std::min(s.column, at(pad_w, t));
    }
    for (std::int64_t t = 0; t < k; ++t)
      s.window = std::max({s.window, at(pad_h, t) - s.row + 1, at(pad_w, t) - s.column + 1});
    for (std::int64_t t = 0; t < k * k && k <= 3; ++t) {
      std::int64_t const y = t / k, x = t % k;
      s.view[t] = static_cast<int>((at(pad_h, y) - s.row) * s.window + at(pad_w, x) - s.column);
      s.plane[t] = static_cast<int>(parity(pad_h, y) * 2 + parity(pad_w, x));
    }
    return s;
  }

  // The shape alone decides, whatever machine there is: programs may be compiled with other flags than their kernels.
  bool suits() const { return ins >= 16 && outs >= 16 && units * side >= 64; }

  std::int64_t views() const { return window * window; }
  std::int64_t planes() const { return edge * edge; }
  std::int64_t taps() const { return k * k; }
  std::int64_t panels() const { return (outs + 31) / 32; }
  std::int64_t view_floats() const { return apart(groups_of_lanes(ins) * tile_rows * lanes); }
  std::int64_t tap_floats() const { return groups_of_lanes(ins) * lanes * 32; }
  std::int64_t plane_floats() const { return apart(tile_rows * 32); }
  std::int64_t strip_floats() const { return (step * block + window) * (step * side + window) * lanes; }
  std::int64_t out_floats() const { return planes() * tiles * lanes; }
  std::int64_t weight_floats() const { return panels() * taps() * tap_floats(); }
  std::int64_t private_floats() const {
    return views() * view_floats() + planes() * plane_floats() + strip_floats() + out_floats();
  }
  bytes_t workspace(int threads) const {
    return suits() ? (weight_floats() + threads * private_floats() + 16) * bytes_t{sizeof(float)} : 0;
  }

  // Of the gradient to the weight.
  std::int64_t max_outs() const { return std::min(groups_of_lanes(outs) * lanes, channel_block); }
  std::int64_t max_ins() const { return std::min((ins + 31) / 32 * 32, channel_block); }
  std::int64_t chunks() const {
    std::int64_t const pairs =
        ((outs + channel_block - 1) / channel_block) * ((ins + channel_block - 1) / channel_block);
    return std::clamp<std::int64_t>(8 / pairs, 1, std::max<std::int64_t>(blocks, 1));
  }
  std::int64_t sum_floats() const { return apart(max_outs() * max_ins()); }
  std::int64_t pixel_floats() const { return apart(tile_rows * max_ins()); }
  filter_sums sums_by() const {
    return {outs * ins * taps(), chunks(), filter_passes(images * out_h * out_w, blocks / chunks())};
  }
  std::int64_t gradient_floats() const {
    return taps() * (sum_floats() + pixel_floats()) + tile_rows * max_outs() + strip_floats();
  }
  bytes_t gradient_workspace(int threads) const {
    return suits() ? (sums_by().floats() + threads * gradient_floats() + 16) * bytes_t{sizeof(float)} : 0;
  }

 private:
  taps_shape(convolved_sizes const& sizes, std::int64_t k_, std::int64_t edge_, std::int64_t step_)
      : tile_grid(sizes.images, (sizes.out_h + edge_ - 1) / edge_, (sizes.out_w + edge_ - 1) / edge_, max_tiles),
        convolved_sizes(sizes),
        k(k_),
        edge(edge_),
        step(step_) {}
};

#if defined(NEAP_GEMM_TILES)

struct taps_convolution : channel_lanes {
  taps_shape s;

  explicit taps_convolution(taps_shape const& shape) : s(shape) {}

  // What each pixel of the window sees, of 16 channels of a block's tiles: to[view][tile][16].
  void copy_pixels(tensor_ref const& x, std::int64_t channel, std::int64_t block, float* strip, float* to,
                   std::int64_t view_floats) const {
    s.each_strip(block, [&](std::int64_t n, std::int64_t ty, std::int64_t tx, std::int64_t rows, std::int64_t tile) {
      std::int64_t const columns = s.step * (s.side - 1) + s.window;
      load_window(channels_of(x, n, channel), s.in_h, s.in_w, s.step * ty + s.row, s.step * (rows - 1) + s.window,
                  s.step * tx + s.column, columns, strip);
      for (std::int64_t v = 0; v < s.views(); ++v)
        for (std::int64_t r = 0; r < rows; ++r) {
          float const* const from = strip + ((s.step * r + v / s.window) * columns + v % s.window) * lanes;
          float* const out = to + v * view_floats + (tile + r * s.side) * lanes;
          for (std::int64_t c = 0; c < s.side; ++c)
            gemm_tiles::store(out + c * lanes, gemm_tiles::load(from + s.step * c * lanes));
        }
    });
  }
  void run(host_backend& backend, weights const& w, float const* bias, std::int64_t bias_step, tensor_ref const& x,
           tensor_ref const& y, void* workspace) const {
    std::int64_t const groups = s.groups_of_lanes(s.ins);
    float* const packed = static_cast<float*>(workspace);  // [panel][tap][input][32 outputs]
    backend.parallel_for(s.panels() * groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t c = i % groups * lanes; c < (i % groups + 1) * lanes; ++c)
          for (std::int64_t h = 0; h < 2; ++h) {
            std::int64_t const o = i / groups * 32 + h * lanes;
            vec taps[16] = {};
            if (c < s.ins && o < s.outs)
              load_taps(w, w.at + o * w.out + c * w.in, s.k, std::min(lanes, s.outs - o), taps);
            for (std::int64_t t = 0; t < s.taps(); ++t)
              gemm_tiles::store(packed + (i / groups * s.taps() + t) * s.tap_floats() + c * 32 + h * lanes, taps[t]);
          }
    });
    backend.parallel_for(s.blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      float* const pixels = packed + s.weight_floats() + worker * s.private_floats();
      float* const products = pixels + s.views() * s.view_floats();
      float* const strip = products + s.planes() * s.plane_floats();
      for (std::int64_t block = begin; block < end; ++block) {
        for (std::int64_t g = 0; g < groups; ++g)
          copy_pixels(x, g * lanes, block, strip, pixels + g * s.tile_rows * lanes, s.view_floats());
        clear_rest(s, block, s.views(), s.view_floats(), groups, pixels);
        for (std::int64_t panel = 0; panel < s.panels(); ++panel) {
          bool met[4] = {};
          for (std::int64_t t = 0; t < s.taps(); ++t) {
            for (std::int64_t i = 0; i < s.tile_rows; i += 8)
              product<2, 16, 1, 32>(groups, lanes, pixels + s.view[t] * s.view_floats() + i * lanes,
                                    s.tile_rows * lanes, packed + (panel * s.taps() + t) * s.tap_floats(), lanes * 32,
                                    lanes, met[s.plane[t]], products + s.plane[t] * s.plane_floats() + i * 32, 32);
            met[s.plane[t]] = true;
          }
          for (std::int64_t h = 0; h < 2 && panel * 32 + h * lanes < s.outs; ++h)
            outputs(products, met, panel * 32 + h * lanes, h, block, bias, bias_step, y, strip + s.strip_floats());
        }
      }
    });
  }
  // 16 outputs of a block: the sums of its tiles' planes, turned into rows of pixels.
  void outputs(float const* products, bool const* met, std::int64_t o, std::int64_t h, std::int64_t block,
               float const* bias, std::int64_t bias_step, tensor_ref const& y, float* out) const {
    float start[16] = {};
    for (std::int64_t l = 0; l < lanes && bias && o + l < s.outs; ++l) start[l] = bias[(o + l) * bias_step];
    vec const add = gemm_tiles::load(start);
    std::int64_t const columns = s.edge * s.side;
    s.each_strip(block, [&](std::int64_t n, std::int64_t ty, std::int64_t tx, std::int64_t rows, std::int64_t tile) {
      for (std::int64_t p = 0; p < s.planes(); ++p)
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < s.side; ++c) {
            vec const sum =
                met[p] ? gemm_tiles::load(products + p * s.plane_floats() + (tile + r * s.side + c) * 32 + h * lanes)
                       : vec{};
            gemm_tiles::store(out + ((s.edge * r + p / 2) * columns + s.edge * c + p % 2) * lanes, sum + add);
          }
      store_window(channels_of(y, n, o), s.out_h, s.out_w, s.edge * ty, s.edge * rows, s.edge * tx, columns, out);
    });
  }

  void run_gradient(host_backend& backend, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw,
                    bool accumulate, void* workspace) const {
    weight_gradient(
        backend, s.outs, s.ins, s.k, s.channel_block, s.sums_by(), static_cast<float*>(workspace), s.gradient_floats(),
        dw, accumulate,
        [&](std::int64_t cut, std::int64_t o, std::int64_t c, float* sum) { sums(x, dy, cut, o, c, sum); },
        [&](std::int64_t o, std::int64_t c, float const* sum, vec(&taps)[16]) {
          for (std::int64_t t = 0; t < s.taps(); ++t)
            taps[t] = gemm_tiles::load(sum + t * s.sum_floats() + o * s.max_ins() + c);
        });
  }
  // The sums of a chunk's tiles, [tap][o][c], of a block of outputs and inputs.
  void sums(tensor_ref const& x, tensor_ref const& dy, std::int64_t cut, std::int64_t o0, std::int64_t c0,
            float* sum) const {
    std::int64_t const outs = std::min(s.channel_block, s.outs - o0), ins = std::min(s.channel_block, s.ins - c0);
    std::int64_t const cuts = s.sums_by().cuts(), first = s.blocks * cut / cuts, last = s.blocks * (cut + 1) / cuts;
    float* const pixels = sum + s.taps() * s.sum_floats();
    float* const slopes = pixels + s.taps() * s.pixel_floats();
    float* const strip = slopes + s.tile_rows * s.max_outs();
    for (std::int64_t block = first; block < last; ++block) {
      for (std::int64_t o = 0; o < outs; o += lanes)
        s.each_strip(block,
                     [&](std::int64_t n, std::int64_t ty, std::int64_t tx, std::int64_t rows, std::int64_t tile) {
                       load_window(channels_of(dy, n, o0 + o), s.out_h, s.out_w, ty, rows, tx, s.side,
                                   slopes + (o / lanes * s.tile_rows + tile) * lanes);
                     });
      for (std::int64_t c = 0; c < ins; c += lanes)
        copy_pixels(x, c0 + c, block, strip, pixels + c * s.tile_rows, s.pixel_floats());
      for (std::int64_t t = 0; t < s.taps(); ++t)
        for (std::int64_t c = 0; c < ins; c += 2 * lanes) {
          auto const multiply = c + lanes < ins ? &product<2, 1, 16, 16> : &product<1, 1, 16, 16>;
          for (std::int64_t o = 0; o < outs; o += 8)
            multiply(1, s.tiles_of(block), slopes + o / lanes * lanes * s.tile_rows + o % lanes, 0,
                     pixels + t * s.pixel_floats() + c * s.tile_rows, 0, s.tile_rows * lanes, block > first,
                     sum + t * s.sum_floats() + o * s.max_ins() + c, s.max_ins());
        }
    }
  }
};

#endif

}}}  // namespace neap::v0::detail
