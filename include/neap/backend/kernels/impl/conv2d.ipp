// The bodies of <neap/backend/kernels/conv2d.hpp>.
#pragma once

#include <neap/backend/kernels/conv2d.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC bytes_t conv2d_workspace(shape const& x, shape const& w, conv2d_options const& o, dtype element,
                                   int threads) {
  auto const e = detail::conv2d_extents::of(x, w, o);
  auto const winograd = detail::winograd_forward(e, o);
  auto const taps = detail::taps_forward(e, o);
  bytes_t const tiled = detail::suits_winograd(e, o, winograd, element) ? winograd.workspace(threads)
                        : detail::suits_taps(detail::taps_use::forward, e, o, taps, element) ? taps.workspace(threads)
                                                                                             : 0;
  return with_f32_or_f64("conv2d", element, [&](auto zero) -> bytes_t {
    auto const c = detail::conv2d_forward<decltype(zero)>(e, o, false);
    return std::max({tiled, c.weight_bytes() + c.offset_bytes() + threads * c.scratch_bytes(),
                     detail::correlation_product::workspace(c.h, c.w, e.n, e.cg, e.og, element, threads)});
  });
}

NEAP_FUNC bytes_t conv2d_input_gradient_workspace(shape const& x, shape const& w, conv2d_options const& o,
                                                  dtype element, int threads) {
  auto const e = detail::conv2d_extents::of(x, w, o);
  auto const winograd = detail::winograd_backward(e, o);
  auto const taps = detail::taps_backward(e, o);
  return with_f32_or_f64("conv2d_input_gradient", element, [&](auto zero) -> bytes_t {
    bytes_t most = detail::suits_winograd(e, o, winograd, element) ? winograd.workspace(threads)
                   : detail::suits_taps(detail::taps_use::input_gradient, e, o, taps, element) ? taps.workspace(threads)
                                                                                               : 0;
    for (std::int64_t i = 0; i < o.stride[0]; ++i)
      for (std::int64_t j = 0; j < o.stride[1]; ++j) {
        auto const c = detail::conv2d_backward<decltype(zero)>(e, o, i, j, false);
        most = std::max(most, c.weight_bytes() + c.offset_bytes() + threads * c.scratch_bytes());
        most = std::max(most, detail::correlation_product::workspace(c.h, c.w, e.n, e.og, e.cg, element, threads));
      }
    return most;
  });
}

NEAP_FUNC bytes_t conv2d_weight_gradient_workspace(shape const& x, shape const& w, conv2d_options const& o,
                                                   dtype element, int threads) {
  auto const e = detail::conv2d_extents::of(x, w, o);
  bytes_t product = detail::weight_product::suits(e, o, element) ? detail::weight_product(e, o).workspace(threads) : 0;
  if (auto const winograd = detail::winograd_forward(e, o); detail::suits_winograd(e, o, winograd, element))
    product = std::max(product, winograd.of_weight_gradient().gradient_workspace(threads));
  if (auto const taps = detail::taps_forward(e, o);
      detail::suits_taps(detail::taps_use::weight_gradient, e, o, taps, element))
    product = std::max(product, taps.gradient_workspace(threads));
  return with_f32_or_f64("conv2d_weight_gradient", element, [&](auto zero) -> bytes_t {
    return std::max(product, detail::weight_gradient<decltype(zero)>(e, o).workspace(threads));
  });
}

}}  // namespace neap::v0
