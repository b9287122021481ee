// Pointwise convolutions, filters of 1x1 at stride 1, of f32 as matrix products on matrix units (backend/gemm_amx.hpp),
// where the operands lie: y_i = w x_i for each image i, dx_i = w^T dy_i, dw = sum over i of dy_i x_i^T.
#pragma once

#include <neap/backend/gemm.hpp>
#include <neap/backend/host.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <cstdint>

#if defined(NEAP_GEMM_AMX)

namespace neap { inline namespace v0 { namespace detail {

struct pointwise_convolution {
  std::int64_t images, ins, outs, pixels;

  /// Whether it is the quickest for y, or for the weight's gradient where `gradient`; x and y have dense planes.
  bool suits(bool gradient) const {
    return suits_units(gradient ? gemm_shape::dense(outs, ins, pixels) : gemm_shape::dense(outs, pixels, ins));
  }

  /// y [images, outs, pixels] = w [outs, ins] x [images, ins, pixels] + start [outs]; image and channel strides are the
  /// tensors' own.
  void run(host_backend& backend, gemm_tiles::operand w, float const* start, std::int64_t start_step,
           tensor_ref const& x, tensor_ref const& y) const {
    // Ranges of images, and of outputs where there are few images: w is packed once for each.
    std::int64_t const by_image = std::min<std::int64_t>(images, backend.threads());
    auto const [by_row, rows] = parts(outs, (backend.threads() + by_image - 1) / by_image);
    backend.parallel_for(by_image * by_row, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const first = images * (id / by_row) / by_image, last = images * (id / by_row + 1) / by_image,
                           o = id % by_row * rows;
        gemm_series s;
        s.groups = last - first, s.b_group = x.strides[0], s.c_group = y.strides[0];
        s.start = start ? start + o * start_step : nullptr, s.start_step = start_step;
        gemm_amx::run(std::min(rows, outs - o), pixels, ins, {w.at(o, 0), w.ld, w.transposed},
                      {x.as<float const>() + first * x.strides[0], x.strides[1], false}, false,
                      y.as<float>() + first * y.strides[0] + o * y.strides[1], y.strides[1], s);
      }
    });
  }

  /// dw [outs, ins] (+)= the gradient to the weight; its rows are dense.
  void run_gradient(host_backend& backend, tensor_ref const& x, tensor_ref const& dy, tensor_ref const& dw,
                    bool accumulate) const {
    auto const [down, rows] = parts(outs, outs >= ins ? backend.threads() : 1);
    auto const [across, columns] = parts(ins, outs >= ins ? 1 : backend.threads());
    backend.parallel_for(down * across, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const o = id / across * rows, c = id % across * columns;
        gemm_series s;
        s.terms = images, s.a_term = dy.strides[0], s.b_term = x.strides[0];
        gemm_amx::run(std::min(rows, outs - o), std::min(columns, ins - c), pixels,
                      {dy.as<float const>() + o * dy.strides[1], dy.strides[1], false},
                      {x.as<float const>() + c * x.strides[1], x.strides[1], true}, accumulate,
                      dw.as<float>() + o * dw.strides[0] + c, dw.strides[0], s);
      }
    });
  }

 private:
  struct cut {
    std::int64_t count, length;
  };
  // At most `wanted` parts of whole tiles.
  static cut parts(std::int64_t extent, std::int64_t wanted) {
    constexpr std::int64_t unit = gemm_amx::rows;
    std::int64_t const length = ((extent + wanted - 1) / wanted + unit - 1) / unit * unit;
    return {(extent + length - 1) / length, length};
  }
};

}}}  // namespace neap::v0::detail
#endif
