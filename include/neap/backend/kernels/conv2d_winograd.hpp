// 3x3 convolutions of stride 1 by Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray 2016): forward, and the
// gradients to input and weight. A tile of 4x4 outputs takes 36 products a pair of channels instead of 144:
//
//     y = A^T [(G w G^T) . (B^T x B)] A        x 6x6, w 3x3, y 4x4, products element by element
//
// Summed over channels, each of the 36 points is a matrix product. The points are 0, +-5/8, +-3/2 and infinity, whose
// powers up to the third are exact in f32 (Barabasz et al. 2020 look for such points): errors, taken against f64, are 1.7 to
// 2.2 times those of the direct f32 kernels (weights: 3 times), about 1e-6 of the results' size at 128 channels and 2e-6 at
// 512, where the direct kernel sums in blocks and has 3e-7. The usual 0, +-1, +-2 make twice as much. The gradient to the
// input is the same with the weight turned round; the gradient to the weight is the algorithm's transpose,
// G^T [sum of (A dy A^T) . (B^T x B)] G.
//
// On vectors of 256 bits too, 3x3 convolutions of 64 to 512 channels take 0.5 to 0.85 of oneDNN's time (PyTorch 2.15's,
// channels last, both held to AVX2, one core); of 16 channels 1.3 times.
//
// Lanes hold 16 channels: pixels are turned round on their way into a strip and on their way out, and tiles take no
// shuffles. Every sum's order is fixed by the shapes: how tiles and channels are cut into tasks does not change it.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/conv2d_lanes.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

// `to` [images, outs, out_h, out_w] from `from` [images, ins, in_h, in_w], whose pixel (0, 0) lies at (pad_h, pad_w).
struct winograd_shape : tile_grid, convolved_sizes {
  std::int64_t pad_h, pad_w;
  std::int64_t channel_block;  // outputs and inputs whose sums the weight's gradient holds at once

  static constexpr std::int64_t points = 36;

  winograd_shape(convolved_sizes const& sizes, std::int64_t pad_h_, std::int64_t pad_w_)
      : tile_grid(sizes.images, (sizes.out_h + 3) / 4, (sizes.out_w + 3) / 4, 64),
        convolved_sizes(sizes),
        pad_h(pad_h_),
        pad_w(pad_w_) {
    channel_block = scratch_goal() >= (std::int64_t{3} << 16) ? 64 : 32;
    fit(0, few_weights() ? points * (groups_of_lanes(ins) * lanes + width() * lanes) : 0);
  }
  /// The same convolution cut for its weight's gradient.
  winograd_shape of_weight_gradient() const {
    auto s = *this;
    s.fit(points * channel_block * channel_block, 2 * points * channel_block);
    return s;
  }

  // The shape alone decides, whatever machine there is: programs may be compiled with other flags than their kernels.
  bool suits() const {
    if (ins < 16 || outs < 16 || ins > 1024 || outs > 1024 || units * side < 16) return false;
    // Tiles that stand over the edge, and lanes without a channel, are work for nothing.
    double const done = double(units * side) * 16 * double(groups_of_lanes(ins) * groups_of_lanes(outs)) * 256;
    return done <= 1.75 * double(images * out_h * out_w) * double(ins) * double(outs);
  }
  // Floats of scratch that a thread should need about: an eighth of images and weights, within limits.
  std::int64_t scratch_goal() const {
    std::int64_t const floats = images * (ins * in_h * in_w + outs * out_h * out_w) + outs * ins * 9;
    return std::clamp<std::int64_t>(floats / 8, 1 << 16, 1 << 19);
  }
  // Blocks of up to 64 tiles: their points of 64 channels stay in a second-level cache. Small images are cut into smaller
  // ones, so that scratch is little beside them.
  void fit(std::int64_t fixed_floats, std::int64_t tile_floats) {
    cut(tile_floats > 0 ? std::clamp<std::int64_t>((scratch_goal() - fixed_floats) / tile_floats, 16, 64) : 64);
  }
  // Vectors of outputs that a register tile holds, and how many such panels there are.
  std::int64_t width() const { return outs > lanes ? 2 : 1; }
  std::int64_t panels() const { return (outs + width() * lanes - 1) / (width() * lanes); }

  // Floats from a point to the next.
  std::int64_t input_point() const { return apart(groups_of_lanes(ins) * tile_rows * lanes); }
  std::int64_t weight_point() const { return apart(groups_of_lanes(ins) * lanes * width() * lanes); }
  std::int64_t product_point() const { return apart(tile_rows * width() * lanes); }
  std::int64_t strip_floats() const { return (4 * block + 2) * (4 * side + 2) * lanes; }
  std::int64_t slope_floats() const { return 16 * tiles * lanes; }

  // Weights of up to this size are transformed once, and each thread takes tiles through all channels. Larger ones would
  // cost memory: each thread takes a panel of them, for as many tiles as fit.
  bool few_weights() const { return panels() * points * weight_point() <= (std::int64_t{5} << 17); }
  std::int64_t blocks_at_once() const {
    if (few_weights()) return 1;
    return std::clamp<std::int64_t>((std::int64_t{5} << 18) / (points * input_point()), 1,
                                    std::max<std::int64_t>(blocks, 1));
  }
  std::int64_t shared_floats() const {
    return few_weights() ? panels() * points * weight_point() : blocks_at_once() * points * input_point();
  }
  std::int64_t private_floats() const {
    return points * (few_weights() ? input_point() : weight_point()) + points * product_point() + strip_floats() +
           slope_floats();
  }
  bytes_t workspace(int threads) const {
    return suits() ? (shared_floats() + threads * private_floats() + 16) * bytes_t{sizeof(float)} : 0;
  }

  // Of the gradient to the weight: blocks of outputs and inputs, and chunks of tile blocks where these are few. The sums
  // of chunks are added in order.
  std::int64_t out_blocks() const { return (outs + channel_block - 1) / channel_block; }
  std::int64_t in_blocks() const { return (ins + channel_block - 1) / channel_block; }
  std::int64_t chunks() const {
    return std::clamp<std::int64_t>(8 / (out_blocks() * in_blocks()), 1, std::max<std::int64_t>(blocks, 1));
  }
  std::int64_t max_outs() const { return std::min(groups_of_lanes(outs) * lanes, channel_block); }
  std::int64_t max_ins() const { return std::min((ins + 31) / 32 * 32, channel_block); }
  std::int64_t sum_point() const { return apart(max_outs() * max_ins()); }
  std::int64_t slopes_point() const { return apart(tile_rows * max_outs()); }
  std::int64_t pixels_point() const { return apart(tile_rows * max_ins()); }
  filter_sums sums_by() const {
    return {outs * ins * 9, chunks(), filter_passes(images * out_h * out_w, blocks / chunks())};
  }
  std::int64_t gradient_floats() const {
    return points * (sum_point() + slopes_point() + pixels_point()) + strip_floats();
  }
  bytes_t gradient_workspace(int threads) const {
    return suits() ? (sums_by().floats() + threads * gradient_floats() + 16) * bytes_t{sizeof(float)} : 0;
  }
};

#if defined(NEAP_GEMM_TILES)

struct winograd : channel_lanes {
  static constexpr std::int64_t points = 36;
  static constexpr float a = 5.f / 8, b = 3.f / 2, aa = a * a, bb = b * b;  // the points, and their squares
  static constexpr float n0 = float(1 / (double(aa) * bb));                 // of G's rows
  static constexpr float na = float(1 / (2.0 * aa * (double(aa) - bb))), nb = float(1 / (2.0 * bb * (double(bb) - aa)));

  winograd_shape s;

  explicit winograd(winograd_shape const& shape) : s(shape) {}

  // ---- the transforms of one axis ----

  struct by_b {  // B^T, of pixels
    static constexpr int in = 6, out = 6;
    static NEAP_INLINE void apply(vec const* x, vec* y) {
      vec const u = x[4] - bb * x[2], v = a * (x[3] - bb * x[1]);
      vec const p = x[4] - aa * x[2], q = b * (x[3] - aa * x[1]);
      y[0] = x[4] - (aa + bb) * x[2] + aa * bb * x[0];
      y[1] = u + v, y[2] = u - v, y[3] = p + q, y[4] = p - q;
      y[5] = x[5] - (aa + bb) * x[3] + aa * bb * x[1];
    }
  };
  struct by_g {  // G, of weights
    static constexpr int in = 3, out = 6;
    static NEAP_INLINE void apply(vec const* w, vec* y) {
      vec const u = na * w[0] + (na * aa) * w[2], v = (na * a) * w[1];
      vec const p = nb * w[0] + (nb * bb) * w[2], q = (nb * b) * w[1];
      y[0] = n0 * w[0], y[1] = u + v, y[2] = u - v, y[3] = p + q, y[4] = p - q, y[5] = w[2];
    }
  };
  struct by_a_transposed {  // A^T, of products
    static constexpr int in = 6, out = 4;
    static NEAP_INLINE void apply(vec const* m, vec* y) {
      vec const u = m[1] + m[2], v = m[1] - m[2], p = m[3] + m[4], q = m[3] - m[4];
      y[0] = m[0] + u + p;
      y[1] = a * v + b * q;
      y[2] = aa * u + bb * p;
      y[3] = m[5] + (a * aa) * v + (b * bb) * q;
    }
  };
  struct by_a {  // A, of the output's gradient
    static constexpr int in = 4, out = 6;
    static NEAP_INLINE void apply(vec const* y, vec* m) {
      vec const u = y[0] + aa * y[2], v = a * y[1] + (a * aa) * y[3];
      vec const p = y[0] + bb * y[2], q = b * y[1] + (b * bb) * y[3];
      m[0] = y[0], m[1] = u + v, m[2] = u - v, m[3] = p + q, m[4] = p - q, m[5] = y[3];
    }
  };
  struct by_g_transposed {  // G^T, of sums for the weight's gradient
    static constexpr int in = 6, out = 3;
    static NEAP_INLINE void apply(vec const* m, vec* w) {
      vec const u = na * (m[1] + m[2]), v = (na * a) * (m[1] - m[2]);
      vec const p = nb * (m[3] + m[4]), q = (nb * b) * (m[3] - m[4]);
      w[0] = n0 * m[0] + u + p, w[1] = v + q, w[2] = m[5] + aa * u + bb * p;
    }
  };
  // Both axes of a tile: load(i, j) gives its elements, store(i, j, v) takes the result's.
  template <class Axis, class Load, class Store>
  static NEAP_INLINE void transform(Load const& load, Store const& store) {
    vec half[Axis::out][Axis::in];
    for (int j = 0; j < Axis::in; ++j) {
      vec x[Axis::in], y[Axis::out];
#pragma GCC unroll 6
      for (int i = 0; i < Axis::in; ++i) x[i] = load(i, j);
      Axis::apply(x, y);
#pragma GCC unroll 6
      for (int i = 0; i < Axis::out; ++i) half[i][j] = y[i];
    }
    for (int i = 0; i < Axis::out; ++i) {
      vec y[Axis::out];
      Axis::apply(half[i], y);
#pragma GCC unroll 6
      for (int j = 0; j < Axis::out; ++j) store(i, j, y[j]);
    }
  }

  // B^T x B of 16 channels of a block's tiles: to[point][tile][16].
  void transform_pixels(tensor_ref const& x, std::int64_t channel, std::int64_t block, float* strip, float* to,
                        std::int64_t point) const {
    std::int64_t const columns = 4 * s.side + 2;
    s.each_strip(block, [&](std::int64_t n, std::int64_t ty, std::int64_t tx, std::int64_t rows, std::int64_t tile) {
      load_window(channels_of(x, n, channel), s.in_h, s.in_w, 4 * ty - s.pad_h, 4 * rows + 2, 4 * tx - s.pad_w, columns,
                  strip);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < s.side; ++c, ++tile) {
          float const* const from = strip + (4 * r * columns + 4 * c) * lanes;
          transform<by_b>([&](int i, int j) { return gemm_tiles::load(from + (i * columns + j) * lanes); },
                          [&](int i, int j, vec v) { gemm_tiles::store(to + (6 * i + j) * point + tile * lanes, v); });
        }
    });
  }
  // A dy A^T likewise; what of tiles lies outside of the image is zero.
  void transform_slopes(tensor_ref const& dy, std::int64_t channel, std::int64_t block, float* strip, float* to,
                        std::int64_t point) const {
    std::int64_t const columns = 4 * s.side;
    s.each_strip(block, [&](std::int64_t n, std::int64_t ty, std::int64_t tx, std::int64_t rows, std::int64_t tile) {
      load_window(channels_of(dy, n, channel), s.out_h, s.out_w, 4 * ty, 4 * rows, 4 * tx, columns, strip);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < s.side; ++c, ++tile) {
          float const* const from = strip + (4 * r * columns + 4 * c) * lanes;
          transform<by_a>([&](int i, int j) { return gemm_tiles::load(from + (i * columns + j) * lanes); },
                          [&](int i, int j, vec v) { gemm_tiles::store(to + (6 * i + j) * point + tile * lanes, v); });
        }
    });
  }

  // ---- forward, and the gradient to the input ----

  // G w G^T of 16 inputs from `c0` on and a panel of outputs: to[point][c][outputs].
  void transform_weights(weights const& w, std::int64_t panel, std::int64_t c0, float* to) const {
    std::int64_t const width = s.width(), point = s.weight_point();
    for (std::int64_t c = c0; c < c0 + lanes; ++c)
      for (std::int64_t h = 0; h < width; ++h) {
        std::int64_t const o = (panel * width + h) * lanes, count = c < s.ins ? std::min(lanes, s.outs - o) : 0;
        vec taps[16];
        load_taps(w, w.at + o * w.out + c * w.in, 3, count, taps);
        transform<by_g>(
            [&](int i, int j) { return taps[3 * i + j]; },
            [&](int i, int j, vec v) { gemm_tiles::store(to + (6 * i + j) * point + (c * width + h) * lanes, v); });
      }
  }
  // A panel of outputs of a block: products of all points, turned into pixels.
  void outputs(float const* pixels, float const* weight, std::int64_t panel, std::int64_t block, float const* bias,
               std::int64_t bias_step, tensor_ref const& y, float* products, float* pixels_out) const {
    std::int64_t const width = s.width(), groups = s.groups_of_lanes(s.ins), point = s.product_point();
    auto const multiply = width == 2 ? &product<2, 16, 1, 32> : &product<1, 16, 1, 16>;
    for (std::int64_t p = 0; p < points; ++p)
      for (std::int64_t t = 0; t < s.tile_rows; t += 8)
        multiply(groups, lanes, pixels + p * s.input_point() + t * lanes, s.tile_rows * lanes,
                 weight + p * s.weight_point(), lanes * width * lanes, lanes, false,
                 products + p * point + t * width * lanes, width * lanes);
    std::int64_t const columns = 4 * s.side;
    for (std::int64_t h = 0; h < width; ++h) {
      std::int64_t const o = (panel * width + h) * lanes;
      if (o >= s.outs) break;
      float start[16] = {};
      for (std::int64_t l = 0; l < lanes && bias && o + l < s.outs; ++l) start[l] = bias[(o + l) * bias_step];
      vec const add = gemm_tiles::load(start);
      s.each_strip(block, [&](std::int64_t n, std::int64_t ty, std::int64_t tx, std::int64_t rows, std::int64_t tile) {
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < s.side; ++c, ++tile) {
            float const* const from = products + (tile * width + h) * lanes;
            float* const to = pixels_out + (4 * r * columns + 4 * c) * lanes;
            transform<by_a_transposed>(
                [&](int i, int j) { return gemm_tiles::load(from + (6 * i + j) * point); },
                [&](int i, int j, vec v) { gemm_tiles::store(to + (i * columns + j) * lanes, v + add); });
          }
        store_window(channels_of(y, n, o), s.out_h, s.out_w, 4 * ty, 4 * rows, 4 * tx, columns, pixels_out);
      });
    }
  }
  void run(host_backend& backend, weights const& w, float const* bias, std::int64_t bias_step, tensor_ref const& x,
           tensor_ref const& y, void* workspace) const {
    std::int64_t const groups = s.groups_of_lanes(s.ins), panels = s.panels(), panel_floats = points * s.weight_point();
    float* const shared = static_cast<float*>(workspace);
    auto const own = [&](int worker) { return shared + s.shared_floats() + worker * s.private_floats(); };
    auto const pixels_of = [&](std::int64_t block, std::int64_t g, float* strip, float* to) {
      transform_pixels(x, g * lanes, block, strip, to + g * s.tile_rows * lanes, s.input_point());
    };
    if (s.few_weights()) {
      backend.parallel_for(panels * groups, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          transform_weights(w, i / groups, i % groups * lanes, shared + i / groups * panel_floats);
      });
      backend.parallel_for(s.blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        float* const pixels = own(worker);
        float* const products = pixels + points * s.input_point();
        float* const strip = products + points * s.product_point();
        for (std::int64_t block = begin; block < end; ++block) {
          for (std::int64_t g = 0; g < groups; ++g) pixels_of(block, g, strip, pixels);
          clear_rest(s, block, points, s.input_point(), groups, pixels);
          for (std::int64_t i = 0; i < panels; ++i)
            outputs(pixels, shared + i * panel_floats, i, block, bias, bias_step, y, products,
                    strip + s.strip_floats());
        }
      });
      return;
    }
    std::int64_t const most = s.blocks_at_once(), block_floats = points * s.input_point();
    for (std::int64_t first = 0; first < s.blocks; first += most) {
      std::int64_t const count = std::min(most, s.blocks - first);
      backend.parallel_for(count * groups, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        float* const strip = own(worker);
        for (std::int64_t i = begin; i < end; ++i)
          pixels_of(first + i / groups, i % groups, strip, shared + i / groups * block_floats);
      });
      for (std::int64_t i = 0; i < count; ++i)
        clear_rest(s, first + i, points, s.input_point(), groups, shared + i * block_floats);
      backend.parallel_for(panels, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        float* const weight = own(worker);
        float* const products = weight + panel_floats;
        for (std::int64_t panel = begin; panel < end; ++panel) {
          for (std::int64_t g = 0; g < groups; ++g) transform_weights(w, panel, g * lanes, weight);
          for (std::int64_t i = 0; i < count; ++i)
            outputs(shared + i * block_floats, weight, panel, first + i, bias, bias_step, y, products,
                    products + points * s.product_point());
        }
      });
    }
  }

  // ---- the gradient to the weight ----

  void run_gradient(host_backend& backend, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw,
                    bool accumulate, void* workspace) const {
    weight_gradient(
        backend, s.outs, s.ins, 3, s.channel_block, s.sums_by(), static_cast<float*>(workspace), s.gradient_floats(),
        dw, accumulate,
        [&](std::int64_t cut, std::int64_t o, std::int64_t c, float* sum) { sums(x, dy, cut, o, c, sum); },
        [&](std::int64_t o, std::int64_t c, float const* sum, vec(&taps)[16]) {
          float const* const from = sum + o * s.max_ins() + c;
          transform<by_g_transposed>([&](int i, int j) { return gemm_tiles::load(from + (6 * i + j) * s.sum_point()); },
                                     [&](int i, int j, vec v) { taps[3 * i + j] = v; });
        });
  }
  // The sums of a chunk's tiles, [point][o][c], of a block of outputs and inputs.
  void sums(tensor_ref const& x, tensor_ref const& dy, std::int64_t cut, std::int64_t o0, std::int64_t c0,
            float* sum) const {
    std::int64_t const outs = std::min(s.channel_block, s.outs - o0), ins = std::min(s.channel_block, s.ins - c0);
    std::int64_t const cuts = s.sums_by().cuts(), first = s.blocks * cut / cuts, last = s.blocks * (cut + 1) / cuts;
    float* const slopes = sum + points * s.sum_point();
    float* const pixels = slopes + points * s.slopes_point();
    float* const strip = pixels + points * s.pixels_point();
    for (std::int64_t block = first; block < last; ++block) {
      std::int64_t const tiles = s.tiles_of(block);
      for (std::int64_t o = 0; o < outs; o += lanes)
        transform_slopes(dy, o0 + o, block, strip, slopes + o * s.tile_rows, s.slopes_point());
      for (std::int64_t c = 0; c < ins; c += lanes)
        transform_pixels(x, c0 + c, block, strip, pixels + c * s.tile_rows, s.pixels_point());
      for (std::int64_t p = 0; p < points; ++p)
        for (std::int64_t c = 0; c < ins; c += 2 * lanes) {
          auto const multiply = c + lanes < ins ? &product<2, 1, 16, 16> : &product<1, 1, 16, 16>;
          for (std::int64_t o = 0; o < outs; o += 8)
            multiply(1, tiles, slopes + p * s.slopes_point() + o / lanes * lanes * s.tile_rows + o % lanes, 0,
                     pixels + p * s.pixels_point() + c * s.tile_rows, 0, s.tile_rows * lanes, block > first,
                     sum + p * s.sum_point() + o * s.max_ins() + c, s.max_ins());
        }
    }
  }
};

#endif

}}}  // namespace neap::v0::detail
