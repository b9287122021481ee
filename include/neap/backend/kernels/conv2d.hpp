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
#include <neap/backend/gemm_tiles.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/kernels/conv2d_axes.hpp>
#include <neap/backend/kernels/conv2d_pointwise.hpp>
#include <neap/backend/kernels/conv2d_products.hpp>
#include <neap/backend/kernels/conv2d_strips.hpp>
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

namespace detail {

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
