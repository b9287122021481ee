// Two-dimensional convolution of [N, C, H, W] on a GPU, and its two gradients, as products of tiles that are gathered from
// the images when they are needed (implicit products). The code of the device is in conv2d.cuh; tiles, types and the order
// of sums are those of gemm.hpp.
//
//   forward           y [outs, pixels of y]    = w [outs, taps * ins] * x there [taps * ins, pixels of y]
//   input gradient    dx [ins, pixels of x]    = w [ins, taps * outs] * dy there [taps * outs, pixels of x]
//   weight gradient   dw [outs, ins * taps]    = dy [outs, pixels of y] * x there [pixels of y, ins * taps]
//
// for each group. Pixels are those of all images. The first two are one kernel (a correlation): the filter is packed first
// as [group, out, tap, in], so that a step of k has one tap and its channels lie one after another; a stride s > 1 cuts the
// input gradient into s * s classes of pixels, which meet the same taps each. Filters of one tap between dense images whose
// planes are a multiple of 16 bytes are products of matrices (matmul). Groups of one channel are summed by a thread a
// pixel; their weight's gradient by a block a tap.
//
// Sums have one order: taps by rows, then channels; of the weight's gradient, pixels in the order of memory, in parts that
// are added in order where there are few tiles.
#pragma once

#include <neap/backend/kernels/conv2d.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/element.hpp>
#include <neap/core/error.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/convolutions.hpp>
#include <neap/cuda/device_backend.hpp>
#include <neap/cuda/kernels/gemm.hpp>
#include <neap/cuda/kernels/library_operands.hpp>
#include <neap/cuda/kernels/matmul.hpp>
#include <neap/ir/operators/conv2d.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

namespace neap { inline namespace v0 {

namespace detail {

/// One axis of a correlation: result q takes of tap j the source's element q * step + base + j * tap_step, or zero outside
/// [0, in), times the filter's element first_tap + j * tap_stride. It is stored at first + q * out_step.
struct cuda_conv_axis {
  int in = 0, out = 0, taps = 0;
  int step = 1, base = 0, tap_step = 1;
  int first_tap = 0, tap_stride = 1;
  int first = 0, out_step = 1;

  static cuda_conv_axis forward(std::int64_t in, std::int64_t out, std::int64_t k, std::int64_t stride,
                                std::int64_t pad, std::int64_t dilation) {
    auto const i = [](std::int64_t n) { return static_cast<int>(n); };
    return {i(in), i(out), i(k), i(stride), i(-pad), i(dilation), 0, 1, 0, 1};
  }
  /// The gradient to elements cls, cls + stride, ... of the input: `in` of them in all, from `out` results.
  static cuda_conv_axis backward(std::int64_t in, std::int64_t out, std::int64_t k, std::int64_t stride,
                                 std::int64_t pad, std::int64_t dilation, std::int64_t cls) {
    auto const i = [](std::int64_t n) { return static_cast<int>(n); };
    auto const meets = [&](std::int64_t tap) { return (cls + pad - tap * dilation) % stride == 0; };
    std::int64_t const tap_stride = stride / std::gcd(stride, dilation);
    std::int64_t tap = 0;
    while (tap < k && !meets(tap)) ++tap;
    cuda_conv_axis a;
    a.in = i(out);
    a.out = i(cls < in ? (in - 1 - cls) / stride + 1 : 0);
    a.taps = i(tap < k ? (k - 1 - tap) / tap_stride + 1 : 0);
    a.base = a.taps > 0 ? i((cls + pad - tap * dilation) / stride) : 0;
    a.tap_step = i(-(tap_stride * dilation / stride));
    a.first_tap = i(tap), a.tap_stride = i(tap_stride);
    a.first = i(cls), a.out_step = i(stride);
    return a;
  }
};

/// Where the elements of [N, C, H, W] lie.
struct image_strides {
  std::int64_t image, channel, row, column;
  static image_strides of(tensor_ref const& t) { return {t.strides[0], t.strides[1], t.strides[2], t.strides[3]}; }
};

/// A correlation as its kernels take it: `outs` channels of y from `ins` channels of x, in each group.
template <class T>
struct correlation_operands {
  T const* x;
  T const* w;     // packed: [groups, outs, depth]
  T const* bias;  // [groups * outs], or null
  T* y;
  image_strides at_x, at_y;
  std::int64_t bias_stride;
  int images, groups, ins, outs;
  int depth;  // taps * ins, rounded up to a multiple of 8
  cuda_conv_axis h, w_axis;

  NEAP_HD int taps() const { return h.taps * w_axis.taps; }
  NEAP_HD std::int64_t pixels() const { return std::int64_t{images} * h.out * w_axis.out; }
};

/// The place of a pixel of the result.
struct conv_pixel {
  int image, row, column;
  NEAP_HD static conv_pixel of(std::int64_t pixel, int rows, int columns) {
    auto const p = static_cast<unsigned>(pixel), plane = static_cast<unsigned>(rows) * static_cast<unsigned>(columns),
               in_plane = p % plane;
    return {static_cast<int>(p / plane), static_cast<int>(in_plane / static_cast<unsigned>(columns)),
            static_cast<int>(in_plane % static_cast<unsigned>(columns))};
  }
  NEAP_HD void advance(int rows, int columns) {
    if (++column < columns) return;
    column = 0;
    if (++row < rows) return;
    row = 0, ++image;
  }
};

/// Where a filter's elements lie, seen as [group, out, in, row, column] of a correlation.
struct filter_strides {
  std::int64_t group, out, in, row, column;
};

/// Packs a filter as [groups, outs, depth], zeros at the end of a row: a row each.
template <class T>
struct pack_filter {
  static constexpr bool splits = true;
  T const* w;
  T* to;
  filter_strides at;
  int outs, ins, depth;
  cuda_conv_axis h, w_axis;

  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    T const* const from = w + block.id / outs * at.group + block.id % outs * at.out;
    T* const row = to + block.id * depth;
    block.each(depth, [=, *this](std::int64_t k) {
      int const tap = static_cast<int>(k) / ins, in = static_cast<int>(k) % ins;
      bool const inside = tap < h.taps * w_axis.taps;
      int const i = inside ? h.first_tap + tap / w_axis.taps * h.tap_stride : 0,
                j = inside ? w_axis.first_tap + tap % w_axis.taps * w_axis.tap_stride : 0;
      row[k] = inside ? from[in * at.in + i * at.row + j * at.column] : convert<T>(compute_t<T>(0));
    });
  }
};

/// Tensor cores; tiles of `outs` and pixels.
template <class T, int Side>
struct correlate_by_tensor_cores : tensor_core_block<Side> {
  correlation_operands<T> p;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const;
#endif
};
template <class T, int Side>
struct correlate_by_fma : fma_block<T, Side> {
  correlation_operands<T> p;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const;
#endif
};

/// A thread a pixel: for groups of few channels. `w` is not packed. A plane of y each.
template <class T>
struct correlate_directly {
  static constexpr bool splits = true;
  using C = compute_t<T>;
  correlation_operands<T> p;
  filter_strides at;

  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    int const channels = p.groups * p.outs, image = static_cast<int>(block.id / channels),
              channel = static_cast<int>(block.id % channels), group = channel / p.outs;
    T const* const x = p.x + image * p.at_x.image + std::int64_t{group} * p.ins * p.at_x.channel;
    T const* const w = p.w + group * at.group + channel % p.outs * at.out;
    T* const y = p.y + image * p.at_y.image + channel * p.at_y.channel;
    C const bias = p.bias ? static_cast<C>(p.bias[channel * p.bias_stride]) : C(0);
    block.each(std::int64_t{p.h.out} * p.w_axis.out, [=, *this](std::int64_t pixel) {
      int const q = static_cast<int>(pixel) / p.w_axis.out, r = static_cast<int>(pixel) % p.w_axis.out;
      C sum = bias;
      for (int i = 0; i < p.h.taps; ++i) {
        int const row = q * p.h.step + p.h.base + i * p.h.tap_step;
        if (row < 0 || row >= p.h.in) continue;
        for (int j = 0; j < p.w_axis.taps; ++j) {
          int const column = r * p.w_axis.step + p.w_axis.base + j * p.w_axis.tap_step;
          if (column < 0 || column >= p.w_axis.in) continue;
          T const* const from = x + row * p.at_x.row + column * p.at_x.column;
          T const* const tap = w + (p.h.first_tap + i * p.h.tap_stride) * at.row +
                               (p.w_axis.first_tap + j * p.w_axis.tap_stride) * at.column;
          for (int c = 0; c < p.ins; ++c)
            sum += static_cast<C>(tap[c * at.in]) * static_cast<C>(from[c * p.at_x.channel]);
        }
      }
      y[(p.h.first + q * p.h.out_step) * p.at_y.row + (p.w_axis.first + r * p.w_axis.out_step) * p.at_y.column] =
          convert<T>(sum);
    });
  }
};

/// A weight's gradient as its kernels take it: product.a is dy, product.b is x, product.y is dw, of each group.
template <class T>
struct weight_gradient_operands {
  gemm_operands<T> product;  // m: outs, n: ins * taps, k: pixels; packs_a, packs_b: 8 pixels can be read at once
  image_strides at_x, at_dy;
  int ins;
  cuda_conv_axis h, w_axis;
};
template <class T, int Side>
struct weight_gradient_by_tensor_cores : tensor_core_block<Side> {
  weight_gradient_operands<T> p;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const;
#endif
};
template <class T, int Side>
struct weight_gradient_by_fma : fma_block<T, Side> {
  weight_gradient_operands<T> p;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const;
#endif
};

/// Of groups of one channel: a tap of an output channel each.
template <class T>
struct depthwise_weight_gradient {
  using C = compute_t<T>;
  weight_gradient_operands<T> p;
  int outs;  // of a group

  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    int const taps = p.h.taps * p.w_axis.taps, channel = static_cast<int>(block.id / taps),
              tap = static_cast<int>(block.id % taps);
    int const down = tap / p.w_axis.taps * p.h.tap_step + p.h.base,
              right = tap % p.w_axis.taps * p.w_axis.tap_step + p.w_axis.base;
    T const* const dy = p.product.a + channel * p.at_dy.channel;
    T const* const x = p.product.b + channel / outs * p.at_x.channel;
    C const sum = block.reduce_each(
        p.product.plan.each.k, C(0),
        [=, *this](std::int64_t pixel) {
          conv_pixel const at = conv_pixel::of(pixel, p.h.out, p.w_axis.out);
          int const row = at.row * p.h.step + down, column = at.column * p.w_axis.step + right;
          if (row < 0 || row >= p.h.in || column < 0 || column >= p.w_axis.in) return C(0);
          return static_cast<C>(dy[at.image * p.at_dy.image + at.row * p.at_dy.row + at.column * p.at_dy.column]) *
                 static_cast<C>(x[at.image * p.at_x.image + row * p.at_x.row + column * p.at_x.column]);
        },
        [](C a, C b) { return a + b; });
    T* const to = p.product.y + block.id;
    block.once([=] { *to = convert<T>(sum); });
  }
};

inline void check_counts(char const* what, std::initializer_list<std::int64_t> counts) {
  for (auto n : counts)
    if (n > std::int64_t{std::numeric_limits<int>::max()} / 2)
      throw_error({what, ": ", n, " pixels or channels exceed what its kernel on a GPU counts with"});
}

/// A convolution's extents and how it is done, from shapes and layouts alone.
struct cuda_conv {
  conv2d_extents e;
  conv2d_options o;
  int forced_side = 0;  // of tiles, for tests; 0: the rule's

  cuda_conv(shape const& x, shape const& w, conv2d_options const& options)
      : e(conv2d_extents::of(x, w, options)),
        o(options) {}

  bool one_channel() const { return e.cg == 1 && e.groups > 1; }
  /// Whether it is a product of matrices: one tap between images whose planes are dense, of a size that tiles fit.
  bool is_product(tensor_ref const& from, tensor_ref const& w, tensor_ref const& to, bool bias) const {
    using pair = std::array<std::int64_t, 2>;
    auto const dense_planes = [](tensor_ref const& t) {
      return t.strides[3] == 1 && t.strides[2] == t.dims[3] && t.strides[1] >= t.dims[2] * t.dims[3];
    };
    std::int64_t const plane = e.h * e.w;
    return !bias && e.groups == 1 && e.kh == 1 && e.kw == 1 && o.stride == pair{1, 1} && o.padding == pair{0, 0} &&
           plane >= 256 && plane * size_of(from.element) % 16 == 0 && dense_planes(from) && dense_planes(to) &&
           w.strides[1] == 1 && w.strides[0] >= e.cg;
  }
  static tensor_ref planes(tensor_ref const& t) {
    return {t.data, t.element, {t.dims[0], t.dims[1], t.dims[2] * t.dims[3]}, {t.strides[0], t.strides[1], 1}};
  }
  static tensor_ref matrix(tensor_ref const& w) {
    return {w.data, w.element, {w.dims[0], w.dims[1]}, {w.strides[0], w.strides[1]}};
  }

  static int depth(std::int64_t taps, std::int64_t ins) { return static_cast<int>((taps * ins + 7) / 8 * 8); }
  bytes_t packed_bytes(std::int64_t ins, std::int64_t outs, std::int64_t taps, dtype t) const {
    return e.groups * outs * depth(taps, ins) * size_of(t);
  }
  cuda_conv_axis rows() const {
    return cuda_conv_axis::forward(e.h, e.oh, e.kh, o.stride[0], o.padding[0], o.dilation[0]);
  }
  cuda_conv_axis columns() const {
    return cuda_conv_axis::forward(e.w, e.ow, e.kw, o.stride[1], o.padding[1], o.dilation[1]);
  }
  cuda_conv_axis rows_backward(std::int64_t cls) const {
    return cuda_conv_axis::backward(e.h, e.oh, e.kh, o.stride[0], o.padding[0], o.dilation[0], cls);
  }
  cuda_conv_axis columns_backward(std::int64_t cls) const {
    return cuda_conv_axis::backward(e.w, e.ow, e.kw, o.stride[1], o.padding[1], o.dilation[1], cls);
  }
  /// The tiles of a correlation: large ones, if there are enough of them for half a device.
  int side_of(std::int64_t outs, std::int64_t pixels, dtype t) const {
    if (forced_side > 0) return forced_side;
    constexpr std::int64_t enough_tiles = 80;
    bool const many = (outs + 127) / 128 * ((pixels + 127) / 128) * e.groups >= enough_tiles;
    return t != dtype::f64 && outs > 64 && many ? 128 : 64;
  }
  /// The product of the weight's gradient, and how it is cut. f32 and f64 have tiles of 64 only.
  gemm_shape gradient_product() const {
    return gemm_shape::dense(e.og, e.cg * e.kh * e.kw, e.n * e.oh * e.ow, false, true);
  }
  cuda_gemm_tiling gradient_tiling(dtype t) const {
    auto const s = gradient_product();
    auto tiling = cuda_gemm_tiling::of(s.m, s.n, s.k, e.groups, t);
    if (forced_side > 0) tiling.side = forced_side;
    if (size_of(t) > 2) tiling.side = 64;
    return tiling;
  }
  bytes_t gradient_scratch(dtype t) const {
    auto const s = gradient_product();
    return one_channel() ? 0 : cuda_gemm_scratch(gradient_tiling(t), s.m, s.n, e.groups, t);
  }
};

inline bytes_t conv_forward_scratch(tensor_ref const& x, tensor_ref const& w, tensor_ref const& y, bool bias,
                                    conv2d_options const& o) {
  cuda_conv const c(x.dims, w.dims, o);
  if (c.is_product(x, w, y, bias))
    return gemm_scratch(matmul_plan::of(c.matrix(w), c.planes(x), c.planes(y), {}), x.element);
  return c.one_channel() ? 0 : c.packed_bytes(c.e.cg, c.e.og, c.e.kh * c.e.kw, x.element);
}
inline bytes_t conv_input_gradient_scratch(tensor_ref const& dy, tensor_ref const& w, tensor_ref const& dx,
                                           conv2d_options const& o) {
  cuda_conv const c(dx.dims, w.dims, o);
  if (c.is_product(dy, w, dx, false))
    return gemm_scratch(matmul_plan::of(c.matrix(w), c.planes(dy), c.planes(dx), {true, false, false}), dy.element);
  return c.one_channel() ? 0 : c.packed_bytes(c.e.og, c.e.cg, c.e.kh * c.e.kw, dy.element);
}
inline bytes_t conv_weight_gradient_scratch(shape const& x, shape const& w, dtype t, conv2d_options const& o) {
  return cuda_conv(x, w, o).gradient_scratch(t);
}

template <class T, class B>
void correlate(B& b, cuda_conv const& c, correlation_operands<T> p, filter_strides const& at) {
  std::int64_t const pixels = p.pixels();
  check_counts("conv2d", {pixels, std::int64_t{p.taps()} * p.ins, std::int64_t{p.h.in} * p.w_axis.in});
  if (pixels == 0 || p.outs == 0 || p.groups == 0) return;
  if (c.one_channel())
    return b.launch(std::int64_t{p.images} * p.groups * p.outs, correlate_directly<T>{p, at},
                    std::int64_t{p.h.out} * p.w_axis.out);
  p.depth = cuda_conv::depth(p.taps(), p.ins);
  T* const packed = static_cast<T*>(
      b.scratch(std::max<bytes_t>(std::int64_t{p.groups} * p.outs * p.depth * static_cast<bytes_t>(sizeof(T)), 1)));
  b.launch(std::int64_t{p.groups} * p.outs, pack_filter<T>{p.w, packed, at, p.outs, p.ins, p.depth, p.h, p.w_axis},
           p.depth);
  p.w = packed;
  auto const go = [&](auto const& kernel, int side) {
    b.launch_blocks((p.outs + side - 1) / side * ((pixels + side - 1) / side) * p.groups, kernel);
  };
  bool const large = c.side_of(p.outs, pixels, dtype_of<T>) == 128;
  if constexpr (sizeof(T) == 2) {
    if (large) go(correlate_by_tensor_cores<T, 128>{{}, p}, 128);
    else go(correlate_by_tensor_cores<T, 64>{{}, p}, 64);
  } else if constexpr (sizeof(T) == 4) {
    if (large) go(correlate_by_fma<T, 128>{{}, p}, 128);
    else go(correlate_by_fma<T, 64>{{}, p}, 64);
  } else {
    go(correlate_by_fma<T, 64>{{}, p}, 64);
  }
}

template <class T, class B>
void run_weight_gradient(B& b, cuda_conv const& c, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw) {
  auto const s = c.gradient_product();
  check_counts("conv2d_weight_gradient", {s.k, s.n, c.e.h * c.e.w});
  if (s.m == 0 || s.n == 0 || c.e.groups == 0) return;
  matmul_plan plan;
  plan.each = s;
  plan.batches = c.e.groups;
  plan.batch_rank = 1;
  plan.batch[0] = c.e.groups;
  plan.stride_y[0] = s.m * s.n;
  auto const packs = [&](tensor_ref const& t) {
    constexpr int length = 16 / int{sizeof(T)};
    std::int64_t const strides[] = {t.strides[0], t.strides[1]};
    return t.strides[3] == 1 && t.strides[2] == t.dims[3] && t.dims[2] * t.dims[3] % length == 0 &&
           begins_at_multiples(t.data, 16, sizeof(T), 0, 2, strides);
  };
  using pair = std::array<std::int64_t, 2>;
  bool const one_tap = c.e.kh == 1 && c.e.kw == 1 && c.o.stride == pair{1, 1} && c.o.padding == pair{0, 0};
  auto const tiling = c.gradient_tiling(dy.element);
  bytes_t const bytes = c.gradient_scratch(dy.element);
  weight_gradient_operands<T> const p{{dy.template as<T const>(), x.template as<T const>(), dw.template as<T>(),
                                       bytes > 0 ? static_cast<compute_t<T>*>(b.scratch(bytes)) : nullptr, 1, 0, plan,
                                       tiling, packs(dy), one_tap && packs(x), s.n % 2 == 0, s.n * sizeof(T) % 16 == 0},
                                      image_strides::of(x),
                                      image_strides::of(dy),
                                      static_cast<int>(c.e.cg),
                                      c.rows(),
                                      c.columns()};
  if (c.one_channel())
    return b.launch(c.e.groups * s.m * s.n, depthwise_weight_gradient<T>{p, static_cast<int>(c.e.og)}, s.k);
  std::int64_t const side = tiling.side,
                     blocks = (s.m + side - 1) / side * ((s.n + side - 1) / side) * tiling.k_parts * c.e.groups;
  if constexpr (sizeof(T) == 2) {
    if (side == 128) b.launch_blocks(blocks, weight_gradient_by_tensor_cores<T, 128>{{}, p});
    else b.launch_blocks(blocks, weight_gradient_by_tensor_cores<T, 64>{{}, p});
  } else {
    b.launch_blocks(blocks, weight_gradient_by_fma<T, 64>{{}, p});
  }
  if (tiling.k_parts > 1) b.launch(plan.batches * s.m, add_gemm_parts<T>{p.product}, s.n);
}

}  // namespace detail

namespace detail {

/// A part of a convolution as a library takes it; x, w and y are tensors or gradients to them.
inline cuda_convolution convolution_of(convolution_part part, tensor_ref const& x, tensor_ref const& w,
                                       tensor_ref const& y, conv2d_options const& o) {
  return {part,      x.element, library_tensor_of(x), library_tensor_of(w), library_tensor_of(y), o.stride,
          o.padding, o.dilation};
}
/// Products of matrices that a library makes are left to it.
template <class B>
bool has_products(B& backend) {
  if constexpr (requires { backend.products(); }) return backend.products() != nullptr;
  else return false;
}

template <class B>
cuda_library_way convolution_way_of(B& backend, convolution_part part, tensor_ref const& x, tensor_ref const& w,
                                    tensor_ref const& y, bool bias, conv2d_options const& o) {
  if constexpr (requires { backend.convolutions(); })
    if (auto* const library = backend.convolutions()) {
      cuda_conv const c(x.dims, w.dims, o);
      bool const forward = part == convolution_part::forward;
      if (part != convolution_part::weight_gradient && has_products(backend) &&
          c.is_product(forward ? x : y, w, forward ? y : x, bias))
        return {false, "it is a product of matrices"};
      if (!for_library({&x, &w, &y})) return {false, "addresses are no multiples of 16 bytes"};
      return library->way(convolution_of(part, x, w, y, o));
    }
  return {false, "the backend has no convolution library"};
}
/// Whether the backend's library has computed it.
template <class B>
bool convolved_by_library(B& backend, convolution_part part, tensor_ref const& x, tensor_ref const& w,
                          tensor_ref const& y, bool bias, conv2d_options const& o) {
  if constexpr (requires { backend.convolutions(); })
    if (convolution_way_of(backend, part, x, w, y, bias, o).by_library) {
      auto& library = *backend.convolutions();
      auto const c = convolution_of(part, x, w, y, o);
      bytes_t const bytes = library.scratch_bytes(c);
      library.run(backend.stream(), c, x.data, w.data, y.data, bytes > 0 ? backend.scratch(bytes) : nullptr);
      return true;
    }
  return false;
}
/// What a library takes of the backend's scratch memory.
template <class B>
bytes_t convolution_library_scratch(B& backend, convolution_part part, tensor_ref const& x, tensor_ref const& w,
                                    tensor_ref const& y, bool bias, conv2d_options const& o) {
  if constexpr (requires { backend.convolutions(); })
    if (convolution_way_of(backend, part, x, w, y, bias, o).by_library)
      return backend.convolutions()->scratch_bytes(convolution_of(part, x, w, y, o));
  return 0;
}

/// y [N, O, OH, OW] += bias [O]: a row is a plane.
template <class T>
struct add_channel_bias {
  T* y;
  T const* bias;
  image_strides at;
  std::int64_t bias_stride, channels, columns, pixels;

  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    std::int64_t const image = block.id / channels, channel = block.id % channels;
    T* const plane = y + image * at.image + channel * at.channel;
    auto const b = static_cast<compute_t<T>>(bias[channel * bias_stride]);
    block.each(pixels, [=, *this](std::int64_t i) {
      T& to = plane[i / columns * at.row + i % columns * at.column];
      to = convert<T>(static_cast<compute_t<T>>(to) + b);
    });
  }
};

template <class B>
void run_conv2d(B& b, cuda_conv const& c, tensor_ref const& x, tensor_ref const& w, tensor_ref const& bias,
                tensor_ref const& y) {
  bool const biased = bias.data != nullptr;
  if (convolved_by_library(b, convolution_part::forward, x, w, y, biased, c.o)) {
    if (biased)
      with_floating(y.element, [&](auto tag) {
        using T = typename decltype(tag)::type;
        b.launch(c.e.n * w.dims[0],
                 add_channel_bias<T>{y.as<T>(), bias.as<T const>(), image_strides::of(y), bias.strides[0], w.dims[0],
                                     c.e.ow, c.e.oh * c.e.ow},
                 c.e.oh * c.e.ow);
      });
    return;
  }
  if (c.is_product(x, w, y, biased)) return matmul(b, c.matrix(w), c.planes(x), c.planes(y));
  with_floating(x.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const i = [](std::int64_t n) { return static_cast<int>(n); };
    auto const& s = w.strides;
    correlate<T>(
        b, c,
        {x.as<T const>(), w.as<T const>(), bias.as<T const>(), y.as<T>(), image_strides::of(x), image_strides::of(y),
         bias.rank() ? bias.strides[0] : 0, i(c.e.n), i(c.e.groups), i(c.e.cg), i(c.e.og), 0, c.rows(), c.columns()},
        {c.e.og * s[0], s[0], s[1], s[2], s[3]});
  });
}

template <class B>
void run_input_gradient(B& b, cuda_conv const& c, tensor_ref const& dy, tensor_ref const& w, tensor_ref const& dx) {
  if (convolved_by_library(b, convolution_part::input_gradient, dx, w, dy, false, c.o)) return;
  if (c.is_product(dy, w, dx, false)) return matmul(b, c.matrix(w), c.planes(dy), c.planes(dx), {true, false, false});
  with_floating(dy.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const i = [](std::int64_t n) { return static_cast<int>(n); };
    auto const& s = w.strides;
    for (std::int64_t row = 0; row < c.o.stride[0]; ++row)
      for (std::int64_t column = 0; column < c.o.stride[1]; ++column)
        correlate<T>(
            b, c,
            {dy.as<T const>(), w.as<T const>(), nullptr, dx.as<T>(), image_strides::of(dy), image_strides::of(dx), 0,
             i(c.e.n), i(c.e.groups), i(c.e.og), i(c.e.cg), 0, c.rows_backward(row), c.columns_backward(column)},
            {c.e.og * s[0], s[1], s[0], s[2], s[3]});
  });
}

}  // namespace detail

/// What computes a part of such a convolution on this backend: its library, or our own kernel, and why. x, w and y are
/// tensors or gradients to them.
template <device_backend B>
cuda_library_way conv2d_way(B& backend, convolution_part part, tensor_ref const& x, tensor_ref const& w,
                            tensor_ref const& y, conv2d_options const& o = {}, bool bias = false) {
  return detail::convolution_way_of(backend, part, x, w, y, bias, o);
}

/// y [N, O, OH, OW] = conv2d(x [N, C, H, W], w [O, C / groups, KH, KW]) + bias [O] (data may be null), in f16, bf16, f32 or
/// f64. Any strides. Like the host's conv2d, from which it differs by rounding; throws neap::error as that does, and for
/// more than 2^30 pixels.
template <device_backend B>
void conv2d(B& b, tensor_ref const& x, tensor_ref const& w, tensor_ref const& bias, tensor_ref const& y,
            conv2d_options const& o, void* = nullptr) {
  detail::check_conv2d("conv2d", x, w, y, o);
  detail::run_conv2d(b, {x.dims, w.dims, o}, x, w, bias, y);
}

/// dx = the gradient of conv2d to x, from dy and w.
template <device_backend B>
void conv2d_input_gradient(B& b, tensor_ref const& dy, tensor_ref const& w, tensor_ref const& dx,
                           conv2d_options const& o, void* = nullptr) {
  detail::check_conv2d("conv2d_input_gradient", dx, w, dy, o);
  detail::run_input_gradient(b, {dx.dims, w.dims, o}, dy, w, dx);
}

/// dw = the gradient of conv2d to w, from x and dy. dw is dense.
template <device_backend B>
void conv2d_weight_gradient(B& b, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw,
                            conv2d_options const& o, void* = nullptr) {
  detail::check_conv2d("conv2d_weight_gradient", x, dw, dy, o);
  if (!dw.is_dense()) throw_error({"conv2d_weight_gradient: the gradient ", dw.dims, " must be dense on a GPU"});
  detail::cuda_conv const c(x.dims, dw.dims, o);
  if (detail::convolved_by_library(b, convolution_part::weight_gradient, x, dw, dy, false, o)) return;
  with_floating(x.element,
                [&](auto tag) { detail::run_weight_gradient<typename decltype(tag)::type>(b, c, x, dy, dw); });
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace op {

inline bytes_t device_scratch(conv2d const& op, work_context const& c) {
  return neap::detail::conv_forward_scratch(detail::unplaced(c.in[0]), detail::unplaced(c.in[1]),
                                            detail::unplaced(c.out[0]), c.in.size() > 2, detail::options_of(op));
}
inline bytes_t device_scratch(conv2d_grad_input const& op, work_context const& c) {
  return neap::detail::conv_input_gradient_scratch(detail::unplaced(c.in[0]), detail::unplaced(c.in[1]),
                                                   detail::unplaced(c.out[0]), detail::options_of(op));
}
inline bytes_t device_scratch(conv2d_grad_weight const& op, work_context const& c) {
  return neap::detail::conv_weight_gradient_scratch(c.in[0].type.dims, c.out[0].type.dims, c.in[0].type.element,
                                                    detail::options_of(op));
}
/// Of our own kernel or the backend's library, whichever takes more: where operands lie decides between them.
template <device_backend B>
bytes_t device_scratch(B& b, conv2d const& op, work_context const& c) {
  return std::max(device_scratch(op, c),
                  neap::detail::convolution_library_scratch(b, convolution_part::forward, detail::unplaced(c.in[0]),
                                                            detail::unplaced(c.in[1]), detail::unplaced(c.out[0]),
                                                            c.in.size() > 2, detail::options_of(op)));
}
template <device_backend B>
bytes_t device_scratch(B& b, conv2d_grad_input const& op, work_context const& c) {
  return std::max(device_scratch(op, c),
                  neap::detail::convolution_library_scratch(b, convolution_part::input_gradient,
                                                            detail::unplaced(c.out[0]), detail::unplaced(c.in[1]),
                                                            detail::unplaced(c.in[0]), false, detail::options_of(op)));
}
template <device_backend B>
bytes_t device_scratch(B& b, conv2d_grad_weight const& op, work_context const& c) {
  return std::max(device_scratch(op, c),
                  neap::detail::convolution_library_scratch(b, convolution_part::weight_gradient,
                                                            detail::unplaced(c.in[0]), detail::unplaced(c.out[0]),
                                                            detail::unplaced(c.in[1]), false, detail::options_of(op)));
}
template <device_backend B>
void run(B& b, conv2d const& op, kernel_arguments const& a) {
  neap::conv2d(b, a.in[0], a.in[1], detail::optional(a.in, 2), a.out[0], detail::options_of(op));
}
template <device_backend B>
void run(B& b, conv2d_grad_input const& op, kernel_arguments const& a) {
  neap::conv2d_input_gradient(b, a.in[0], a.in[1], a.out[0], detail::options_of(op));
}
template <device_backend B>
void run(B& b, conv2d_grad_weight const& op, kernel_arguments const& a) {
  neap::conv2d_weight_gradient(b, a.in[0], a.in[1], a.out[0], detail::options_of(op));
}

}}}  // namespace neap::v0::op
