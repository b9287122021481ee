// Group normalisation over [N, C, ...] (Wu and He 2018): the channels of a sample in groups, each normalised over its
// channels and planes; weight and bias for each channel. One block a sample and group. Tensors are contiguous.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/math.hpp>
#include <neap/core/units.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

struct group_norm_operands {
  void const* x;
  void* y;
  void *mean, *rstd;                  // [N, groups] of what is computed in, may be null
  void const *weight, *bias;          // [C], may be null
  std::int64_t groups, width, plane;  // width: channels of a group
  double epsilon;
};
template <class T>
struct group_norm_groups {
  using element = T;
  using C = compute_t<T>;
  group_norm_operands o;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const groups = o.groups, width = o.width, plane = o.plane, length = width * plane;
    T const *const weight = static_cast<T const*>(o.weight), *const bias = static_cast<T const*>(o.bias);
    T const* const from = static_cast<T const*>(o.x) + b.id * length;
    T* const to = static_cast<T*>(o.y) + b.id * length;
    C const n = static_cast<C>(length);
    C const m = b.reduce_each(
                    length, C(0), [=](std::int64_t i) { return static_cast<C>(from[i]); }, sum_op{}) /
                n;
    C const squares = b.reduce_each(
        length, C(0),
        [=](std::int64_t i) {
          C const d = static_cast<C>(from[i]) - m;
          return d * d;
        },
        sum_op{});
    C const r = math::rsqrt(squares / n + static_cast<C>(o.epsilon));
    C *const mean = o.mean ? static_cast<C*>(o.mean) + b.id : nullptr, *const rstd =
                                                                           o.rstd ? static_cast<C*>(o.rstd) + b.id
                                                                                  : nullptr;
    b.once([=] {
      if (mean) *mean = m;
      if (rstd) *rstd = r;
    });
    for (std::int64_t k = 0; k < width; ++k) {
      std::int64_t const channel = b.id % groups * width + k;
      C const scale = r * (weight ? static_cast<C>(weight[channel]) : C(1));
      C const shift = bias ? static_cast<C>(bias[channel]) : C(0);
      T const* const p = from + k * plane;
      T* const q = to + k * plane;
      b.each(plane, [=](std::int64_t i) { q[i] = convert<T>((static_cast<C>(p[i]) - m) * scale + shift); });
    }
  }
};

struct group_norm_backward_operands {
  void const *dy, *x;
  void* dx;                 // may be null
  void const *mean, *rstd;  // [N, groups] of what is computed in
  void const* weight;       // [C], may be null
  void* sums;               // [N, 2, C] of what is computed in: of dy * normalised x, and of dy, over each plane
  std::int64_t groups, width, plane;
};
template <class T>
struct group_norm_backward_groups {
  using element = T;
  using C = compute_t<T>;
  group_norm_backward_operands o;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const groups = o.groups, width = o.width, plane = o.plane;
    std::int64_t const length = width * plane, channels = groups * width;
    std::int64_t const sample = b.id / groups, first = b.id % groups * width;
    T const* const weight = static_cast<T const*>(o.weight);
    T const* const g = static_cast<T const*>(o.dy) + b.id * length;
    T const* const from = static_cast<T const*>(o.x) + b.id * length;
    C const m = static_cast<C const*>(o.mean)[b.id], r = static_cast<C const*>(o.rstd)[b.id];
    C* const by_normal = static_cast<C*>(o.sums) + sample * 2 * channels + first;
    C* const plain = by_normal + channels;
    sum_t<C> a = 0, s = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      T const *const gk = g + k * plane, *const xk = from + k * plane;
      C const gh = b.reduce_each(
          plane, C(0), [=](std::int64_t i) { return static_cast<C>(gk[i]) * ((static_cast<C>(xk[i]) - m) * r); },
          sum_op{});
      C const gs = b.reduce_each(
          plane, C(0), [=](std::int64_t i) { return static_cast<C>(gk[i]); }, sum_op{});
      b.once([=] {
        by_normal[k] = gh;
        plain[k] = gs;
      });
      C const w = weight ? static_cast<C>(weight[first + k]) : C(1);
      a += w * gs;
      s += w * gh;
    }
    if (!o.dx) return;
    C const n = static_cast<C>(length), mean_g = static_cast<C>(a) / n, mean_gh = static_cast<C>(s) / n;
    T* const to = static_cast<T*>(o.dx) + b.id * length;
    for (std::int64_t k = 0; k < width; ++k) {
      T const *const gk = g + k * plane, *const xk = from + k * plane;
      T* const dk = to + k * plane;
      C const w = weight ? static_cast<C>(weight[first + k]) : C(1);
      b.each(plane, [=](std::int64_t i) {
        C const h = (static_cast<C>(xk[i]) - m) * r;
        dk[i] = convert<T>(r * (w * static_cast<C>(gk[i]) - mean_g - h * mean_gh));
      });
    }
  }
};

inline std::int64_t group_width(channel_shape const& s, std::int64_t groups) {
  expect(groups >= 1 && s.channels % groups == 0, "group_norm: the groups must divide the channels");
  return s.channels / groups;
}

}  // namespace detail

/// y = (x - mean) * rstd * weight + bias, with mean and rstd [N, groups] over each sample's group of channels. x, y,
/// weight, bias have one floating type, statistics are f32 (f64 for f64); what has no data is left out. y may be x.
template <class Backend>
void group_norm(Backend& b, tensor_ref const& y, tensor_ref const& mean, tensor_ref const& rstd, tensor_ref const& x,
                tensor_ref const& weight, tensor_ref const& bias, std::int64_t groups, double epsilon) {
  char const* const name = "group_norm";
  detail::expect_same_shape(y, x, name);
  detail::channel_shape const s{x, name};
  std::int64_t const width = detail::group_width(s, groups);
  dtype const t = x.element, c = computed_in(t);
  detail::group_norm_operands const operands{detail::vector_of(x, t, s.count(), name),
                                             detail::vector_of(y, t, s.count(), name),
                                             detail::vector_of(mean, c, s.batch * groups, name),
                                             detail::vector_of(rstd, c, s.batch * groups, name),
                                             detail::vector_of(weight, t, s.channels, name),
                                             detail::vector_of(bias, t, s.channels, name),
                                             groups,
                                             width,
                                             s.plane,
                                             epsilon};
  with_floating(t, [&](auto tag) {
    b.launch(s.batch * groups, detail::group_norm_groups<typename decltype(tag)::type>{operands}, width * s.plane);
  });
}

/// Bytes of workspace of group_norm_backward for an x of this type.
inline bytes_t group_norm_backward_workspace(tensor_type const& x) {
  return checked_mul(checked_mul(x.dims[0], x.dims[1]), x.element == dtype::f64 ? 16 : 8);
}

/// The gradients of group_norm; those that have no data are left out. dx may be dy.
template <class Backend>
void group_norm_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dweight, tensor_ref const& dbias,
                         tensor_ref const& dy, tensor_ref const& x, tensor_ref const& mean, tensor_ref const& rstd,
                         tensor_ref const& weight, std::int64_t groups, void* workspace) {
  char const* const name = "group_norm_backward";
  detail::expect_same_shape(dy, x, name);
  detail::expect_same_shape(dy, dx, name);
  detail::channel_shape const s{x, name};
  std::int64_t const width = detail::group_width(s, groups);
  dtype const t = x.element, c = computed_in(t);
  detail::group_norm_backward_operands const operands{detail::vector_of(dy, t, s.count(), name),
                                                      detail::vector_of(x, t, s.count(), name),
                                                      detail::vector_of(dx, t, s.count(), name),
                                                      detail::vector_of(mean, c, s.batch * groups, name),
                                                      detail::vector_of(rstd, c, s.batch * groups, name),
                                                      detail::vector_of(weight, t, s.channels, name),
                                                      workspace,
                                                      groups,
                                                      width,
                                                      s.plane};
  with_floating(t, [&](auto tag) {
    b.launch(s.batch * groups, detail::group_norm_backward_groups<typename decltype(tag)::type>{operands},
             width * s.plane);
  });
  std::int64_t const n = s.channels;
  auto const* const sums = static_cast<std::byte const*>(workspace);
  detail::add_partial_groups(b, sums, s.batch, 2 * n, dweight, t, n, name);
  detail::add_partial_groups(b, sums + n * size_of(c), s.batch, 2 * n, dbias, t, n, name);
}

}}  // namespace neap::v0
