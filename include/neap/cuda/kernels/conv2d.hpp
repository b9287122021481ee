// Two-dimensional convolution of [N, C, H, W] on a GPU, and its two gradients, where no library computes them: a thread sums
// an element of the result, a block an element of the weight's gradient. The gradient to the input is the same correlation
// over the output's gradient; a stride s > 1 cuts it into s * s classes of pixels, which meet the same taps each. Filters of
// one tap between dense images are products of matrices (matmul).
//
// Sums have one order: taps by rows, then channels; of the weight's gradient, that of the block's reduction.
#pragma once

#include <neap/backend/kernels/conv2d_axes.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/element.hpp>
#include <neap/core/error.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/convolutions.hpp>
#include <neap/cuda/device_backend.hpp>
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
  T const* w;
  T const* bias;  // [groups * outs], or null
  T* y;
  image_strides at_x, at_y;
  std::int64_t bias_stride;
  int images, groups, ins, outs;
  cuda_conv_axis h, w_axis;

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
};

/// Where a filter's elements lie, seen as [group, out, in, row, column] of a correlation.
struct filter_strides {
  std::int64_t group, out, in, row, column;
};

/// A thread a pixel. A plane of y each.
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

/// A tap of an input channel of an output channel each.
template <class T>
struct convolve_weight_gradient {
  using C = compute_t<T>;
  T const* x;
  T const* dy;
  T* dw;
  image_strides at_x, at_dy;
  int outs, ins;  // of a group
  cuda_conv_axis h, w_axis;
  std::int64_t pixels;

  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    int const taps = h.taps * w_axis.taps;
    std::int64_t const filter = block.id / taps, channel = filter / ins;
    int const tap = static_cast<int>(block.id % taps), down = tap / w_axis.taps * h.tap_step + h.base,
              right = tap % w_axis.taps * w_axis.tap_step + w_axis.base;
    T const* const g = dy + channel * at_dy.channel;
    T const* const from = x + (channel / outs * ins + filter % ins) * at_x.channel;
    C const sum = block.reduce_each(
        pixels, C(0),
        [=, *this](std::int64_t pixel) {
          conv_pixel const at = conv_pixel::of(pixel, h.out, w_axis.out);
          int const row = at.row * h.step + down, column = at.column * w_axis.step + right;
          if (row < 0 || row >= h.in || column < 0 || column >= w_axis.in) return C(0);
          return static_cast<C>(g[at.image * at_dy.image + at.row * at_dy.row + at.column * at_dy.column]) *
                 static_cast<C>(from[at.image * at_x.image + row * at_x.row + column * at_x.column]);
        },
        [](C a, C b) { return a + b; });
    T* const to = dw + block.id;
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

  cuda_conv(shape const& x, shape const& w, conv2d_options const& options)
      : e(conv2d_extents::of(x, w, options)),
        o(options) {}

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
};

inline bytes_t conv_forward_scratch(tensor_ref const& x, tensor_ref const& w, tensor_ref const& y, bool bias,
                                    conv2d_options const& o) {
  cuda_conv const c(x.dims, w.dims, o);
  if (c.is_product(x, w, y, bias))
    return gemm_scratch(matmul_plan::of(c.matrix(w), c.planes(x), c.planes(y), {}), x.element);
  return 0;
}
inline bytes_t conv_input_gradient_scratch(tensor_ref const& dy, tensor_ref const& w, tensor_ref const& dx,
                                           conv2d_options const& o) {
  cuda_conv const c(dx.dims, w.dims, o);
  if (c.is_product(dy, w, dx, false))
    return gemm_scratch(matmul_plan::of(c.matrix(w), c.planes(dy), c.planes(dx), {true, false, false}), dy.element);
  return 0;
}

template <class T, class B>
void correlate(B& b, correlation_operands<T> const& p, filter_strides const& at) {
  std::int64_t const pixels = p.pixels();
  check_counts("conv2d", {pixels, std::int64_t{p.h.taps} * p.w_axis.taps * p.ins, std::int64_t{p.h.in} * p.w_axis.in});
  if (pixels == 0 || p.outs == 0 || p.groups == 0) return;
  b.launch(std::int64_t{p.images} * p.groups * p.outs, correlate_directly<T>{p, at},
           std::int64_t{p.h.out} * p.w_axis.out);
}

template <class T, class B>
void run_weight_gradient(B& b, cuda_conv const& c, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw) {
  auto const& e = c.e;
  std::int64_t const pixels = e.n * e.oh * e.ow, filter = e.cg * e.kh * e.kw;
  check_counts("conv2d_weight_gradient", {pixels, filter, e.h * e.w});
  if (e.o == 0 || filter == 0) return;
  b.launch(e.o * filter,
           convolve_weight_gradient<T>{x.as<T const>(), dy.as<T const>(), dw.as<T>(), image_strides::of(x),
                                       image_strides::of(dy), static_cast<int>(e.og), static_cast<int>(e.cg), c.rows(),
                                       c.columns(), pixels},
           pixels);
}

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
        b,
        {x.as<T const>(), w.as<T const>(), bias.as<T const>(), y.as<T>(), image_strides::of(x), image_strides::of(y),
         bias.rank() ? bias.strides[0] : 0, i(c.e.n), i(c.e.groups), i(c.e.cg), i(c.e.og), c.rows(), c.columns()},
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
            b,
            {dy.as<T const>(), w.as<T const>(), nullptr, dx.as<T>(), image_strides::of(dy), image_strides::of(dx), 0,
             i(c.e.n), i(c.e.groups), i(c.e.og), i(c.e.cg), c.rows_backward(row), c.columns_backward(column)},
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
inline bytes_t device_scratch(conv2d_grad_weight const&, work_context const&) { return 0; }
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
