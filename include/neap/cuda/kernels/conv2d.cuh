// Two-dimensional convolution on a GPU: the code of the device. conv2d.hpp says what is multiplied.
#pragma once

#include <neap/backend/strided.hpp>
#include <neap/cuda/kernels/conv2d.hpp>
#include <neap/cuda/kernels/gemm.cuh>
#include <neap/cuda/kernels/tile_product.cuh>
#include <neap/cuda/launch.cuh>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// One pixel of the result and where its taps are in the source.
template <class T>
class tapped_pixel {
 public:
  /// Of a pixel of all images; behind the last one, of none: no tap is inside.
  __device__ tapped_pixel(correlation_operands<T> const& p, std::int64_t pixel, std::int64_t group) : p_(p) {
    bool const inside = pixel < p.pixels();
    conv_pixel const at = conv_pixel::of(inside ? pixel : 0, p.h.out, p.w_axis.out);
    row_ = inside ? at.row * p.h.step + p.h.base : -(1 << 30);
    column_ = at.column * p.w_axis.step + p.w_axis.base;
    from_ = p.x + at.image * p.at_x.image + group * p.ins * p.at_x.channel;
  }

  struct place {
    T const* at;
    bool inside;
  };
  /// The source's element of step k: tap k / ins, channel k % ins.
  __device__ place operator()(int k) const {
    auto const ins = static_cast<unsigned>(p_.ins), across = static_cast<unsigned>(p_.w_axis.taps);
    unsigned const tap = static_cast<unsigned>(k) / ins, channel = static_cast<unsigned>(k) % ins;
    int const row = row_ + static_cast<int>(tap / across) * p_.h.tap_step,
              column = column_ + static_cast<int>(tap % across) * p_.w_axis.tap_step;
    bool const inside = static_cast<int>(tap) < p_.taps() &&
                        static_cast<unsigned>(row) < static_cast<unsigned>(p_.h.in) &&
                        static_cast<unsigned>(column) < static_cast<unsigned>(p_.w_axis.in);
    return {from_ + (inside ? channel * p_.at_x.channel + row * p_.at_x.row + column * p_.at_x.column : 0), inside};
  }

 private:
  correlation_operands<T> const& p_;
  int row_, column_;  // of tap 0 in the source
  T const* from_;
};

template <class T>
__device__ std::uint32_t bits_or_zero(bool inside, T const* at) {
  return inside ? at->bits : 0;
}

/// Gathers tiles [Side pixels, 32 steps of k] of 16-bit elements: a thread has one pixel, hence neighbouring threads read
/// neighbours of an image, and packs of 8 steps.
template <class T, int Side, int Threads>
class pixel_pack_copier {
 public:
  __device__ pixel_pack_copier(correlation_operands<T> const& p, gemm_tile const& tile)
      : p_(p),
        pixel_(p, tile.column + first_line(), tile.batch) {}

  __device__ void next(std::uint32_t to) {
#pragma unroll
    for (int r = 0; r < packs; ++r) {
      int const pack = static_cast<int>(threadIdx.x) / Side + r * (Threads / Side), k = k_ + pack * 8;
      std::uint32_t word[4];
      if (p_.ins % 8 == 0) {  // one tap
        auto const first = pixel_(k);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          word[j] = bits_or_zero(first.inside, first.at + 2 * j * p_.at_x.channel) |
                    bits_or_zero(first.inside, first.at + (2 * j + 1) * p_.at_x.channel) << 16;
      } else {
#pragma unroll 1
        for (int j = 0; j < 4; ++j) {
          auto const low = pixel_(k + 2 * j), high = pixel_(k + 2 * j + 1);
          std::uint32_t const both = bits_or_zero(low.inside, low.at) | bits_or_zero(high.inside, high.at) << 16;
#pragma unroll
          for (int i = 0; i < 4; ++i) word[i] = i == j ? both : word[i];
        }
      }
      store_pack(to + pack_place<depth>(first_line(), pack), word);
    }
    k_ += depth;
  }

 private:
  static constexpr int depth = 32, packs = Side * (depth / 8) / Threads;
  __device__ static int first_line() { return static_cast<int>(threadIdx.x) % Side; }

  correlation_operands<T> const& p_;
  tapped_pixel<T> pixel_;
  int k_ = 0;
};

/// Gathers tiles [16 steps of k, Side pixels]: a thread has one pixel.
template <class T, int Side, int Threads>
class pixel_element_copier {
 public:
  __device__ pixel_element_copier(correlation_operands<T> const& p, gemm_tile const& tile)
      : p_(p),
        pixel_(p, tile.column + static_cast<int>(threadIdx.x) % Side, tile.batch) {}

  __device__ void next(std::uint32_t to) {
    constexpr int line = fma_product<T, Side>::line;
    bool const one_tap = p_.ins % depth == 0;
    auto first = pixel_(one_tap ? k_ : 0);
#pragma unroll
    for (int r = 0; r < Side * depth / Threads; ++r) {
      int const k = static_cast<int>(threadIdx.x) / Side + r * (Threads / Side);
      auto place = first;
      if (one_tap) place.at = first.inside ? first.at + k * p_.at_x.channel : first.at;
      else place = pixel_(k_ + k);
      copy_async<sizeof(T)>(
          to + static_cast<std::uint32_t>((k * line + static_cast<int>(threadIdx.x) % Side) * sizeof(T)), place.at,
          place.inside ? static_cast<int>(sizeof(T)) : 0);
    }
    k_ += depth;
  }

 private:
  static constexpr int depth = 16;
  correlation_operands<T> const& p_;
  tapped_pixel<T> pixel_;
  int k_ = 0;
};

/// Writes sums of a tile [outs, pixels].
template <class T, class Product>
__device__ void put_pixels(correlation_operands<T> const& p, gemm_tile const& tile, Product const& sums) {
  using C = compute_t<T>;
  std::int64_t const pixels = p.pixels();
  sums.for_each([&](int row, int column, auto const& sum) {
    std::int64_t const out = tile.row + row, pixel = tile.column + column;
    if (out >= p.outs || pixel >= pixels) return;
    std::int64_t const channel = tile.batch * p.outs + out;
    C const bias = p.bias ? static_cast<C>(p.bias[channel * p.bias_stride]) : C(0);
    conv_pixel at = conv_pixel::of(pixel, p.h.out, p.w_axis.out);
    constexpr int n = sizeof(sum) / sizeof(C);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (pixel + j >= pixels) return;
      p.y[at.image * p.at_y.image + channel * p.at_y.channel + (p.h.first + at.row * p.h.out_step) * p.at_y.row +
          (p.w_axis.first + at.column * p.w_axis.out_step) * p.at_y.column] = convert<T>(sum[j] + bias);
      at.advance(p.h.out, p.w_axis.out);
    }
  });
}

template <class T, int Side>
__device__ void correlate_by_tensor_cores<T, Side>::operator()(unsigned char* shared) const {
  using product = tensor_core_product<T, false, true, Side>;
  static_assert(fits_block<product, tensor_core_block<Side>>);
  gemm_tile const tile = gemm_tile::of(blockIdx.x, p.outs, p.pixels(), Side, 1);
  tile_copier<T, Side, product::depth, product::threads, false> copy_w(p.w + (tile.batch * p.outs + tile.row) * p.depth,
                                                                       p.depth, p.outs - tile.row, p.depth, true);
  pixel_pack_copier<T, Side, product::threads> copy_x(p, tile);
  product sums;
  multiply_along_k(sums, shared, (p.depth + product::depth - 1) / product::depth, copy_w, copy_x);
  put_pixels(p, tile, sums);
}

template <class T, int Side>
__device__ void correlate_by_fma<T, Side>::operator()(unsigned char* shared) const {
  using product = fma_product<T, Side>;
  static_assert(fits_block<product, fma_block<T, Side>>);
  gemm_tile const tile = gemm_tile::of(blockIdx.x, p.outs, p.pixels(), Side, 1);
  element_copier<T, Side, product::depth, product::line, product::threads, false> copy_w(
      p.w + (tile.batch * p.outs + tile.row) * p.depth, p.depth, p.outs - tile.row, p.depth);
  pixel_element_copier<T, Side, product::threads> copy_x(p, tile);
  product sums;
  multiply_along_k(sums, shared, (p.depth + product::depth - 1) / product::depth, copy_w, copy_x);
  put_pixels(p, tile, sums);
}

// ---- the weight's gradient: k are the pixels of y

/// A line of a tile of pixels: of dy, an output channel; of x, an element of a group's filter and the image elements that it
/// meets.
template <class T, bool OfX>
class gradient_line {
 public:
  /// `i`: the line's number in the tile.
  __device__ gradient_line(weight_gradient_operands<T> const& p, gemm_tile const& tile, int i) {
    std::int64_t const line = (OfX ? tile.column : tile.row) + i,
                       lines = OfX ? p.product.plan.each.n : p.product.plan.each.m;
    inside_ = line < lines;
    if constexpr (OfX) {
      auto const taps = static_cast<unsigned>(p.h.taps * p.w_axis.taps), across = static_cast<unsigned>(p.w_axis.taps),
                 n = static_cast<unsigned>(inside_ ? line : 0), tap = n % taps;
      from_ = p.product.b + (tile.batch * p.ins + n / taps) * p.at_x.channel;
      down_ = static_cast<int>(tap / across) * p.h.tap_step + p.h.base;
      right_ = static_cast<int>(tap % across) * p.w_axis.tap_step + p.w_axis.base;
    } else {
      from_ = p.product.a + (tile.batch * lines + (inside_ ? line : 0)) * p.at_dy.channel;
    }
  }

  struct place {
    T const* at;
    bool inside;
  };
  __device__ place operator()(weight_gradient_operands<T> const& p, conv_pixel const& pixel, bool exists) const {
    if constexpr (OfX) {
      int const row = pixel.row * p.h.step + down_, column = pixel.column * p.w_axis.step + right_;
      bool const there = exists && inside_ && static_cast<unsigned>(row) < static_cast<unsigned>(p.h.in) &&
                         static_cast<unsigned>(column) < static_cast<unsigned>(p.w_axis.in);
      return {from_ + (there ? pixel.image * p.at_x.image + row * p.at_x.row + column * p.at_x.column : 0), there};
    } else {
      bool const there = exists && inside_;
      return {
          from_ + (there ? pixel.image * p.at_dy.image + pixel.row * p.at_dy.row + pixel.column * p.at_dy.column : 0),
          there};
    }
  }

 private:
  T const* from_;
  int down_ = 0, right_ = 0;  // of x: from a pixel's place
  bool inside_;
};

/// Gathers tiles [Side, 32 pixels] of 16-bit elements: of dy, with the output channels, or of x, with the filter's elements.
template <class T, int Side, int Threads, bool OfX>
class gradient_pack_copier {
 public:
  __device__ gradient_pack_copier(weight_gradient_operands<T> const& p, gemm_tile const& tile, gemm_depth const& k)
      : p_(p),
        tile_(tile),
        k_(static_cast<int>(k.begin) + pack() * 8),
        end_(static_cast<int>(k.begin) + k.length) {}

  __device__ void next(std::uint32_t to) {
    bool const packs = OfX ? p_.product.packs_b : p_.product.packs_a;
    bool const exists = k_ < end_;
    conv_pixel const first = conv_pixel::of(exists ? k_ : 0, p_.h.out, p_.w_axis.out);
#pragma unroll 1  // else registers are spilled
    for (int r = 0; r < count; ++r) {
      gradient_line<T, OfX> const line(p_, tile_, line_of(r));
      std::uint32_t const place = to + pack_place<depth>(line_of(r), pack());
      if (packs) {  // a pack is of one image, and there as a whole
        auto const from = line(p_, first, exists);
        copy_async<16>(place, from.at, from.inside ? 16 : 0);
        continue;
      }
      std::uint32_t word[4];
      conv_pixel pixel = first;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        auto const low = line(p_, pixel, k_ + 2 * j < end_);
        std::uint32_t const low_bits = bits_or_zero(low.inside, low.at);
        pixel.advance(p_.h.out, p_.w_axis.out);
        auto const high = line(p_, pixel, k_ + 2 * j + 1 < end_);
        word[j] = low_bits | bits_or_zero(high.inside, high.at) << 16;
        pixel.advance(p_.h.out, p_.w_axis.out);
      }
      store_pack(place, word);
    }
    k_ += depth;
  }

 private:
  static constexpr int depth = 32, per_line = depth / 8, lines_at_once = Threads / per_line,
                       count = Side / lines_at_once;
  __device__ static int pack() { return static_cast<int>(threadIdx.x) % per_line; }
  __device__ static int line_of(int r) { return static_cast<int>(threadIdx.x) / per_line + r * lines_at_once; }

  weight_gradient_operands<T> const& p_;
  gemm_tile tile_;
  int k_, end_;
};

/// The same as tiles [16 pixels, Side]: a warp has 8 pixels of 4 lines, as element_copier.
template <class T, int Side, int Threads, bool OfX>
class gradient_element_copier {
 public:
  __device__ gradient_element_copier(weight_gradient_operands<T> const& p, gemm_tile const& tile, gemm_depth const& k)
      : p_(p),
        tile_(tile),
        k_(static_cast<int>(k.begin) + static_cast<int>(threadIdx.x) % 8),
        end_(static_cast<int>(k.begin) + k.length) {}

  __device__ void next(std::uint32_t to) {
    constexpr int line = fma_product<T, Side>::line;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      bool const exists = k_ + half * 8 < end_;
      conv_pixel const pixel = conv_pixel::of(exists ? k_ + half * 8 : 0, p_.h.out, p_.w_axis.out);
      int const k = static_cast<int>(threadIdx.x) % 8 + half * 8;
#pragma unroll
      for (int r = 0; r < count; ++r) {
        int const i = static_cast<int>(threadIdx.x) / 8 + r * (Threads / 8);
        auto const from = gradient_line<T, OfX>(p_, tile_, i)(p_, pixel, exists);
        copy_async<sizeof(T)>(to + static_cast<std::uint32_t>((k * line + i) * sizeof(T)), from.at,
                              from.inside ? static_cast<int>(sizeof(T)) : 0);
      }
    }
    k_ += 16;
  }

 private:
  static constexpr int count = Side / (Threads / 8);
  weight_gradient_operands<T> const& p_;
  gemm_tile tile_;
  int k_, end_;
};

template <class T, int Side>
__device__ void weight_gradient_by_tensor_cores<T, Side>::operator()(unsigned char* shared) const {
  using product = tensor_core_product<T, false, true, Side>;
  static_assert(fits_block<product, tensor_core_block<Side>>);
  auto const& s = p.product.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, Side, p.product.tiling.k_parts);
  gemm_depth const k(p.product.tiling, s.k, tile);
  gradient_pack_copier<T, Side, product::threads, false> copy_dy(p, tile, k);
  gradient_pack_copier<T, Side, product::threads, true> copy_x(p, tile, k);
  product sums;
  multiply_along_k(sums, shared, k.steps(product::depth), copy_dy, copy_x);
  gemm_result<T> const result(p.product, tile);
  bool const pairs = s.n % 2 == 0;
  sums.for_each([&](int row, int column, auto const& two) { result.put(row, column, two, pairs); });
}

template <class T, int Side>
__device__ void weight_gradient_by_fma<T, Side>::operator()(unsigned char* shared) const {
  using product = fma_product<T, Side>;
  static_assert(fits_block<product, fma_block<T, Side>>);
  auto const& s = p.product.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, Side, p.product.tiling.k_parts);
  gemm_depth const k(p.product.tiling, s.k, tile);
  gradient_element_copier<T, Side, product::threads, false> copy_dy(p, tile, k);
  gradient_element_copier<T, Side, product::threads, true> copy_x(p, tile, k);
  product sums;
  multiply_along_k(sums, shared, k.steps(product::depth), copy_dy, copy_x);
  gemm_result<T> const result(p.product, tile);
  bool const together = s.n % product::pack == 0;
  sums.for_each([&](int row, int column, auto const& neighbours) { result.put(row, column, neighbours, together); });
}

}}}  // namespace neap::v0::detail
