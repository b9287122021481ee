// Batch normalisation over [N, C, ...] (Ioffe and Szegedy 2015): y = (x - mean) * rstd * weight + bias for each channel.
// One block a channel walks the planes of that channel; where planes are single elements ([N, C]), one block a tile of
// channels walks the rows, lanes across channels. Tensors are contiguous.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/math.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// [N, C, L]: the batch, the channels, and all other axes as one.
struct channel_shape {
  std::int64_t batch = 1, channels = 1, plane = 1;
  channel_shape(tensor_ref const& x, char const* name) {
    if (x.rank() < 2) throw_error({name, ": a tensor [N, C, ...] is needed"});
    batch = x.dims[0], channels = x.dims[1];
    for (int axis = 2; axis < x.rank(); ++axis) plane *= x.dims[axis];
  }
  std::int64_t count() const { return batch * channels * plane; }
  static constexpr int tile = 64;  // channels of a block where planes are single elements
  std::int64_t blocks() const { return plane != 1 ? channels : (channels + tile - 1) / tile; }
  std::int64_t block_work() const { return batch * plane * (plane != 1 ? 1 : tile); }
};

/// Sums over rows for a tile of channels, one a slot: `part` of the rows of a run, `total` of all runs.
template <class Block, class C>
struct channel_totals {
  typename Block::template slots<C, channel_shape::tile> part;
  typename Block::template slots<sum_t<C>, channel_shape::tile> total;
  NEAP_HD NEAP_INLINE void clear(Block& b, std::int64_t width) {
    auto const p = part.place();
    auto const t = total.place();
    b.each(width, [=](std::int64_t i) { p[i] = C(0), t[i] = 0; });
  }
  NEAP_HD NEAP_INLINE void end_run(Block& b, std::int64_t width) {
    auto const p = part.place();
    auto const t = total.place();
    b.each(width, [=](std::int64_t i) { t[i] += p[i], p[i] = C(0); });
  }
};

/// sums(index into x, channel) over batch and plane, to[channel]; the scheme of all sums below.
template <class C, class Block, class F, class G>
NEAP_HD NEAP_INLINE void channel_sums(Block& b, channel_shape const& s, F const& term, G const& finish) {
  if (s.plane != 1) {
    std::int64_t const channel = b.id;
    sum_t<C> sum = 0;
    for (std::int64_t n = 0; n < s.batch; ++n) {
      std::int64_t const at = (n * s.channels + channel) * s.plane;
      sum += b.reduce_each(
          s.plane, C(0), [=](std::int64_t i) { return term(at + i, channel); }, sum_op{});
    }
    b.once([=] { finish(channel, static_cast<C>(sum)); });
  } else {
    std::int64_t const first = b.id * channel_shape::tile;
    std::int64_t const width = s.channels - first < channel_shape::tile ? s.channels - first : channel_shape::tile;
    channel_totals<Block, C> totals;
    auto const part = totals.part.place();
    totals.clear(b, width);
    for (std::int64_t n = 0; n < s.batch; ++n) {
      std::int64_t const at = n * s.channels + first;
      b.each(width, [=](std::int64_t i) { part[i] += term(at + i, first + i); });
      if ((n + 1) % sum_run == 0) totals.end_run(b, width);
    }
    totals.end_run(b, width);
    auto const total = totals.total.place();
    b.each(width, [=](std::int64_t i) { finish(first + i, static_cast<C>(total[i])); });
  }
}

/// each(index into x, channel) over all of a block's elements.
template <class Block, class F>
NEAP_HD NEAP_INLINE void channel_each(Block& b, channel_shape const& s, F const& f) {
  if (s.plane != 1) {
    std::int64_t const channel = b.id;
    for (std::int64_t n = 0; n < s.batch; ++n) {
      std::int64_t const at = (n * s.channels + channel) * s.plane;
      b.each(s.plane, [=](std::int64_t i) { f(at + i, channel); });
    }
  } else {
    std::int64_t const first = b.id * channel_shape::tile;
    std::int64_t const width = s.channels - first < channel_shape::tile ? s.channels - first : channel_shape::tile;
    for (std::int64_t n = 0; n < s.batch; ++n) {
      std::int64_t const at = n * s.channels + first;
      b.each(width, [=](std::int64_t i) { f(at + i, first + i); });
    }
  }
}

/// y from mean and rstd; `scale` and `shift` are worked out for each channel once.
template <class T>
struct channel_affine {
  using element = T;
  using C = compute_t<T>;
  channel_shape s;
  T const* x;
  T* y;
  C const *mean, *rstd;
  T const *weight, *bias;  // may be null

  template <class Block>
  NEAP_HD NEAP_INLINE void run(Block& b) const {
    if (s.plane != 1) {
      std::int64_t const c = b.id;
      C const m = mean[c], scale = rstd[c] * (weight ? static_cast<C>(weight[c]) : C(1));
      C const shift = bias ? static_cast<C>(bias[c]) : C(0);
      T const* const from = x;
      T* const to = y;
      channel_each(b, s, [=](std::int64_t i, std::int64_t) {
        to[i] = convert<T>((static_cast<C>(from[i]) - m) * scale + shift);
      });
    } else {
      channel_affine const k = *this;
      typename Block::template slots<C, channel_shape::tile> scales, shifts;
      auto const scale = scales.place(), shift = shifts.place();
      std::int64_t const first = b.id * channel_shape::tile;
      std::int64_t const width = s.channels - first < channel_shape::tile ? s.channels - first : channel_shape::tile;
      b.each(width, [=](std::int64_t i) {
        scale[i] = k.rstd[first + i] * (k.weight ? static_cast<C>(k.weight[first + i]) : C(1));
        shift[i] = k.bias ? static_cast<C>(k.bias[first + i]) : C(0);
      });
      for (std::int64_t n = 0; n < s.batch; ++n) {
        T const* const from = x + n * s.channels + first;
        T* const to = y + n * s.channels + first;
        C const* const m = mean + first;
        b.each(width,
               [=](std::int64_t i) { to[i] = convert<T>((static_cast<C>(from[i]) - m[i]) * scale[i] + shift[i]); });
      }
    }
  }
};

template <class T>
struct batch_norm_channels {
  using element = T;
  using C = compute_t<T>;
  channel_affine<T> affine;
  C *mean, *rstd;
  C epsilon;
  C *running_mean, *running_variance;  // may be null
  C momentum;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    channel_shape const s = affine.s;
    T const* const x = affine.x;
    batch_norm_channels const k = *this;
    C const n = static_cast<C>(s.batch * s.plane);
    channel_sums<C>(
        b, s, [=](std::int64_t i, std::int64_t) { return static_cast<C>(x[i]); },
        [=](std::int64_t c, C sum) { k.mean[c] = sum / n; });
    b.sync();
    C const* const m = mean;
    channel_sums<C>(
        b, s,
        [=](std::int64_t i, std::int64_t c) {
          C const d = static_cast<C>(x[i]) - m[c];
          return d * d;
        },
        [=](std::int64_t c, C sum) {
          C const variance = sum / n;
          k.rstd[c] = math::rsqrt(variance + k.epsilon);
          if (k.running_mean) k.running_mean[c] += k.momentum * (k.mean[c] - k.running_mean[c]);
          if (k.running_variance) {  // the unbiased estimate
            C const unbiased = n > C(1) ? sum / (n - C(1)) : variance;
            k.running_variance[c] += k.momentum * (unbiased - k.running_variance[c]);
          }
        });
    b.sync();
    affine.run(b);
  }
};

/// With Relu, of max(y, 0) where y is what was normalised: it is worked out again, as channel_affine does, to see where it
/// is positive, and written to `y` on request.
template <class T, bool Relu>
struct batch_norm_backward_channels {
  using element = T;
  using C = compute_t<T>;
  channel_shape s;
  T const *dy, *x;
  T* dx;  // may be null
  C const *mean, *rstd;
  T const* weight;     // may be null
  C *sum_g, *sum_gh;   // [C] each: sums of dy, and of dy * normalised x
  T *dweight, *dbias;  // may be null
  T const* bias;       // of Relu only
  T* y;                // of Relu only; may be null

  /// What a channel's elements are worked out with.
  struct channel {
    C mean, rstd, scale, shift;
    NEAP_HD NEAP_INLINE C normalised(C v) const { return (v - mean) * rstd; }
    NEAP_HD NEAP_INLINE C result(C v) const { return (v - mean) * scale + shift; }
    NEAP_HD NEAP_INLINE C slope(C g, C v) const {
      if constexpr (Relu) return g * pick(result(v) > C(0), C(1), C(0));
      else return g;
    }
  };
  NEAP_HD NEAP_INLINE channel of(std::int64_t c) const {
    C const scale = rstd[c] * (weight ? static_cast<C>(weight[c]) : C(1));
    if constexpr (Relu) return {mean[c], rstd[c], scale, bias ? static_cast<C>(bias[c]) : C(0)};
    else return {mean[c], rstd[c], scale, C(0)};
  }
  NEAP_HD NEAP_INLINE void finish(std::int64_t c, C g, C gh) const {
    sum_g[c] = g, sum_gh[c] = gh;
    if (dbias) dbias[c] = convert<T>(g);
    if (dweight) dweight[c] = convert<T>(gh);
  }
  /// One element: everything is read before anything is written, since dx and y may lie on dy or x.
  NEAP_HD NEAP_INLINE void one_element(channel const& k, C a, C h, T const* g, T const* from, T* to, T* result,
                                       std::int64_t i) const {
    C const v = static_cast<C>(from[i]), slope = k.slope(static_cast<C>(g[i]), v);
    C const d = k.scale * (slope - a - k.normalised(v) * h);
    if constexpr (Relu) {
      if (result) {
        T const r = math::max(convert<T>(k.result(v)), T(0));
        to[i] = convert<T>(d);
        result[i] = r;
        return;
      }
    }
    to[i] = convert<T>(d);
  }

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    batch_norm_backward_channels const self = *this;
    C const n = static_cast<C>(s.batch * s.plane);
    if (s.plane != 1) {
      channel const k = of(b.id);
      sum_t<C> g_total = 0, gh_total = 0;
      for (std::int64_t image = 0; image < s.batch; ++image) {  // the second sum finds the plane in the cache
        std::int64_t const at = (image * s.channels + b.id) * s.plane;
        T const *const g = dy + at, *const from = x + at;
        g_total += b.reduce_each(
            s.plane, C(0), [=](std::int64_t i) { return k.slope(static_cast<C>(g[i]), static_cast<C>(from[i])); },
            sum_op{});
        gh_total += b.reduce_each(
            s.plane, C(0),
            [=](std::int64_t i) {
              C const v = static_cast<C>(from[i]);
              return k.slope(static_cast<C>(g[i]), v) * k.normalised(v);
            },
            sum_op{});
      }
      C const g_sum = static_cast<C>(g_total), gh_sum = static_cast<C>(gh_total);
      b.sync();  // what is written may lie on the statistics or the weight
      std::int64_t const c = b.id;
      b.once([=] { self.finish(c, g_sum, gh_sum); });
      if (!dx) return;
      b.sync();
      C const a = g_sum / n, h = gh_sum / n;
      for (std::int64_t image = 0; image < s.batch; ++image) {
        std::int64_t const at = (image * s.channels + b.id) * s.plane;
        T const *const g = dy + at, *const from = x + at;
        T *const to = dx + at, *const result = y ? y + at : nullptr;
        if (result) b.each(s.plane, [=](std::int64_t i) { self.one_element(k, a, h, g, from, to, result, i); });
        else b.each(s.plane, [=](std::int64_t i) { self.one_element(k, a, h, g, from, to, nullptr, i); });
      }
      return;
    }
    std::int64_t const first = b.id * channel_shape::tile;
    std::int64_t const width = s.channels - first < channel_shape::tile ? s.channels - first : channel_shape::tile;
    channel_totals<Block, C> g_totals, gh_totals;
    auto const g_sum = g_totals.part.place(), gh_sum = gh_totals.part.place();
    g_totals.clear(b, width), gh_totals.clear(b, width);
    for (std::int64_t row = 0; row < s.batch; ++row) {
      std::int64_t const at = row * s.channels + first;
      T const *const g = dy + at, *const from = x + at;
      b.each(width, [=](std::int64_t i) {
        channel const k = self.of(first + i);
        C const v = static_cast<C>(from[i]), slope = k.slope(static_cast<C>(g[i]), v);
        g_sum[i] += slope;
        gh_sum[i] += slope * k.normalised(v);
      });
      if ((row + 1) % sum_run == 0) g_totals.end_run(b, width), gh_totals.end_run(b, width);
    }
    g_totals.end_run(b, width), gh_totals.end_run(b, width);
    auto const g_total = g_totals.total.place(), gh_total = gh_totals.total.place();
    b.each(width,
           [=](std::int64_t i) { g_sum[i] = static_cast<C>(g_total[i]), gh_sum[i] = static_cast<C>(gh_total[i]); });
    if (dx) {
      b.sync();
      for (std::int64_t row = 0; row < s.batch; ++row) {
        std::int64_t const at = row * s.channels + first;
        T const *const g = dy + at, *const from = x + at;
        T *const to = dx + at, *const result = y ? y + at : nullptr;
        b.each(width, [=](std::int64_t i) {
          self.one_element(self.of(first + i), g_sum[i] / n, gh_sum[i] / n, g, from, to, result, i);
        });
      }
    }
    // Last: these may lie on the statistics or the weight.
    b.each(width, [=](std::int64_t i) { self.finish(first + i, g_sum[i], gh_sum[i]); });
  }
};

template <class T>
struct batch_norm_inference_channels {
  using element = T;
  using C = compute_t<T>;
  channel_affine<T> affine;
  C const* variance;
  C* rstd;
  C epsilon;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    channel_shape const& s = affine.s;
    std::int64_t const first = s.plane != 1 ? b.id : b.id * channel_shape::tile;
    std::int64_t const width = s.plane != 1                               ? 1
                               : s.channels - first < channel_shape::tile ? s.channels - first
                                                                          : channel_shape::tile;
    batch_norm_inference_channels const k = *this;
    b.each(width, [=](std::int64_t i) { k.rstd[first + i] = math::rsqrt(k.variance[first + i] + k.epsilon); });
    b.sync();
    affine.run(b);
  }
};

}  // namespace detail

/// Training: y from the statistics of the batch, which are saved (mean, rstd [C]). running_mean and running_variance [C],
/// where they have data, move towards the batch's by `momentum` (the variance's unbiased estimate). x, y, weight, bias
/// have one floating type, statistics are f32 (f64 for f64); weight and bias may have no data. y may be x.
template <class Backend>
void batch_norm(Backend& b, tensor_ref const& y, tensor_ref const& mean, tensor_ref const& rstd, tensor_ref const& x,
                tensor_ref const& weight, tensor_ref const& bias, double epsilon, tensor_ref const& running_mean = {},
                tensor_ref const& running_variance = {}, double momentum = 0.1) {
  char const* const name = "batch_norm";
  detail::expect_same_shape(y, x, name);
  detail::channel_shape const s{x, name};
  with_floating(x.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    C *const m = detail::vector_of<C>(mean, s.channels, name), *const r = detail::vector_of<C>(rstd, s.channels, name);
    detail::expect(m && r, "batch_norm: mean and rstd are needed");
    detail::batch_norm_channels<T> const kernel{
        {s, detail::vector_of<T const>(x, s.count(), name), detail::vector_of<T>(y, s.count(), name), m, r,
         detail::vector_of<T const>(weight, s.channels, name), detail::vector_of<T const>(bias, s.channels, name)},
        m,
        r,
        static_cast<C>(epsilon),
        detail::vector_of<C>(running_mean, s.channels, name),
        detail::vector_of<C>(running_variance, s.channels, name),
        static_cast<C>(momentum)};
    b.launch(s.blocks(), kernel, s.block_work());
  });
}

/// Bytes of workspace of batch_norm_backward and batch_norm_inference for an x of this type.
inline bytes_t batch_norm_workspace(tensor_type const& x) { return checked_mul(x.dims[1], 16); }

namespace detail {
template <bool Relu, class Backend>
void batch_norm_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dbias,
                         tensor_ref const& y, tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean,
                         tensor_ref const& rstd, tensor_ref const& weight, tensor_ref const& bias, void* workspace) {
  char const* const name = Relu ? "batch_norm_relu_backward" : "batch_norm_backward";
  for (auto const* t : {&x, &dx, &y}) expect_same_shape(dy, *t, name);
  channel_shape const s{x, name};
  with_floating(x.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    C* const sums = static_cast<C*>(workspace);
    batch_norm_backward_channels<T, Relu> const kernel{s,
                                                       vector_of<T const>(dy, s.count(), name),
                                                       vector_of<T const>(x, s.count(), name),
                                                       vector_of<T>(dx, s.count(), name),
                                                       vector_of<C const>(mean, s.channels, name),
                                                       vector_of<C const>(rstd, s.channels, name),
                                                       vector_of<T const>(weight, s.channels, name),
                                                       sums,
                                                       sums + s.channels,
                                                       vector_of<T>(dweight, s.channels, name),
                                                       vector_of<T>(dbias, s.channels, name),
                                                       vector_of<T const>(bias, s.channels, name),
                                                       vector_of<T>(y, s.count(), name)};
    b.launch(s.blocks(), kernel, s.block_work());
  });
}
}  // namespace detail

/// The gradients of batch_norm in training; those that have no data are left out. dx may be dy or x.
template <class Backend>
void batch_norm_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dbias,
                         tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean, tensor_ref const& rstd,
                         tensor_ref const& weight, void* workspace) {
  detail::batch_norm_backward<false>(b, dx, dweight, dbias, {}, dy, x, mean, rstd, weight, {}, workspace);
}
/// The gradients of max(batch_norm(x), 0), and if y has data max(batch_norm(x), 0) itself, with the bits that the two
/// forward kernels gave. dx and y may lie on dy and x.
template <class Backend>
void batch_norm_relu_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dbias,
                              tensor_ref const& y, tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean,
                              tensor_ref const& rstd, tensor_ref const& weight, tensor_ref const& bias,
                              void* workspace) {
  detail::batch_norm_backward<true>(b, dx, dweight, dbias, y, dy, x, mean, rstd, weight, bias, workspace);
}

/// Inference: y = (x - mean) / sqrt(variance + epsilon) * weight + bias with given statistics. y may be x.
template <class Backend>
void batch_norm_inference(Backend& b, tensor_ref const& y, tensor_ref const& x, tensor_ref const& mean,
                          tensor_ref const& variance, tensor_ref const& weight, tensor_ref const& bias, double epsilon,
                          void* workspace) {
  char const* const name = "batch_norm_inference";
  detail::expect_same_shape(y, x, name);
  detail::channel_shape const s{x, name};
  with_floating(x.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    C* const r = static_cast<C*>(workspace);
    detail::batch_norm_inference_channels<T> const kernel{
        {s, detail::vector_of<T const>(x, s.count(), name), detail::vector_of<T>(y, s.count(), name),
         detail::vector_of<C const>(mean, s.channels, name), r, detail::vector_of<T const>(weight, s.channels, name),
         detail::vector_of<T const>(bias, s.channels, name)},
        detail::vector_of<C const>(variance, s.channels, name),
        r,
        static_cast<C>(epsilon)};
    b.launch(s.blocks(), kernel, s.block_work());
  });
}

}}  // namespace neap::v0
