// Optimizer updates, in place and fused: one pass over parameter, gradient and states. States may have another floating
// type than the parameter (f32 states of bf16 parameters); all is computed in float, or double if one of them is f64.
// Also clipping of gradients by their global norm.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/math.hpp>
#include <neap/core/units.hpp>

#include <array>
#include <cmath>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// A weight as a matrix: its first axis by all others; of fewer than two axes, one row.
struct weight_matrix {
  std::int64_t rows = 1, columns = 1;
  explicit weight_matrix(shape const& s) {
    if (s.rank() >= 2) rows = s[0];
    for (int k = s.rank() >= 2; k < s.rank(); ++k) columns *= s[k];
  }
  std::int64_t count() const { return rows * columns; }
};

struct sgd_step {
  double rate, decay;
  template <class C>
  NEAP_HD C operator()(C p, C g) const {
    return p - static_cast<C>(rate) * (g + static_cast<C>(decay) * p);
  }
};

struct momentum_step {
  double rate, momentum, damping, decay;
  bool nesterov;
  template <class C>
  NEAP_HD std::array<C, 2> operator()(C p, C v, C g) const {
    C const d = g + static_cast<C>(decay) * p;
    C const next = static_cast<C>(momentum) * v + static_cast<C>(1 - damping) * d;
    C const ahead = d + static_cast<C>(momentum) * next;
    return {p - static_cast<C>(rate) * pick(nesterov, ahead, next), next};
  }
};

struct lion_step {
  double rate, beta1, beta2, decay;
  template <class C>
  NEAP_HD std::array<C, 2> operator()(C p, C m, C g) const {
    C const d = static_cast<C>(beta1) * m + static_cast<C>(1 - beta1) * g;
    C const sign = static_cast<C>(d > C(0)) - static_cast<C>(d < C(0));
    return {p - static_cast<C>(rate) * (sign + static_cast<C>(decay) * p),
            static_cast<C>(beta2) * m + static_cast<C>(1 - beta2) * g};
  }
};

struct adam_step {
  double beta1, beta2, epsilon;
  double coupled_decay;    // adam: added to the gradient
  double keep;             // adamw: 1 - rate * decay
  double step_size;        // rate / (1 - beta1^t)
  double root_correction;  // 1 / sqrt(1 - beta2^t)
  template <class C>
  NEAP_HD std::array<C, 3> operator()(C p, C m, C v, C g) const {
    C const d = g + static_cast<C>(coupled_decay) * p;
    C const m1 = static_cast<C>(beta1) * m + static_cast<C>(1 - beta1) * d;
    C const v1 = static_cast<C>(beta2) * v + static_cast<C>(1 - beta2) * (d * d);
    C const root = math::sqrt(v1) * static_cast<C>(root_correction) + static_cast<C>(epsilon);
    return {static_cast<C>(keep) * p - static_cast<C>(step_size) * (m1 / root), m1, v1};
  }
};

}  // namespace detail

/// weight -= rate * (gradient + decay * weight).
template <class Backend>
void sgd_update(Backend& b, tensor_ref const& weight, tensor_ref const& gradient, double rate, double decay = 0) {
  map(b, detail::sgd_step{rate, decay}, weight, weight, gradient);
}

/// velocity = beta * velocity + (1 - damping) * d with d = gradient + decay * weight; weight -= rate *
/// velocity, or rate * (d + beta * velocity) for Nesterov's form. The velocity starts from 0.
template <class Backend>
void momentum_update(Backend& b, tensor_ref const& weight, tensor_ref const& velocity, tensor_ref const& gradient,
                     double rate, double beta, bool nesterov = false, double decay = 0, double damping = 0) {
  map(b, detail::momentum_step{rate, beta, damping, decay, nesterov}, std::array<tensor_ref, 2>{weight, velocity},
      weight, velocity, gradient);
}

/// weight -= rate * (sign(beta1 * momentum + (1 - beta1) * gradient) + decay * weight), and then momentum = beta2 *
/// momentum + (1 - beta2) * gradient (Lion, Chen et al. 2023).
template <class Backend>
void lion_update(Backend& b, tensor_ref const& weight, tensor_ref const& momentum, tensor_ref const& gradient,
                 double rate, double beta1, double beta2, double decay) {
  map(b, detail::lion_step{rate, beta1, beta2, decay}, std::array<tensor_ref, 2>{weight, momentum}, weight, momentum,
      gradient);
}

struct adam_options {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
};

namespace detail {
template <class Backend>
void run_adam(Backend& b, tensor_ref const& weight, tensor_ref const& first, tensor_ref const& second,
              tensor_ref const& gradient, std::int64_t step, adam_options const& o, bool decoupled) {
  expect(step >= 1, "adam: the first step has number 1");
  double const t = static_cast<double>(step);
  adam_step const f{o.beta1,
                    o.beta2,
                    o.epsilon,
                    decoupled ? 0 : o.decay,
                    decoupled ? 1 - o.rate * o.decay : 1,
                    o.rate / (1 - std::pow(o.beta1, t)),
                    1 / std::sqrt(1 - std::pow(o.beta2, t))};
  map(b, f, std::array<tensor_ref, 3>{weight, first, second}, weight, first, second, gradient);
}
}  // namespace detail

/// Adam (Kingma and Ba 2015): the decay is added to the gradient. `step` counts from 1; `first` and `second` are the
/// moments, which start from 0.
template <class Backend>
void adam_update(Backend& b, tensor_ref const& weight, tensor_ref const& first, tensor_ref const& second,
                 tensor_ref const& gradient, std::int64_t step, adam_options const& options) {
  detail::run_adam(b, weight, first, second, gradient, step, options, false);
}
/// AdamW (Loshchilov and Hutter 2019): the parameter itself decays, by rate * decay.
template <class Backend>
void adamw_update(Backend& b, tensor_ref const& weight, tensor_ref const& first, tensor_ref const& second,
                  tensor_ref const& gradient, std::int64_t step, adam_options const& options) {
  detail::run_adam(b, weight, first, second, gradient, step, options, true);
}

namespace detail {

/// One block a chunk: its sum of squares.
template <class T>
struct square_chunks {
  using element = T;
  using C = compute_t<T>;
  static constexpr std::int64_t chunk = 16384;
  void const* x;
  double* partial;
  std::int64_t n;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const p = static_cast<T const*>(x) + b.id * chunk;
    std::int64_t const left = n - b.id * chunk;
    C const sum = b.reduce_each(
        left < chunk ? left : chunk, C(0),
        [=](std::int64_t i) {
          C const v = p[i];
          return v * v;
        },
        sum_op{});
    double* const to = partial + b.id;
    b.once([=] { *to = static_cast<double>(sum); });
  }
};

struct add_partials {
  double const* partial;
  std::int64_t n;
  double* total;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    double const* const p = partial;
    double const sum = b.reduce_each(
        n, 0.0, [=](std::int64_t i) { return p[i]; }, sum_op{});
    double* const to = total;
    b.once([=] { *to += sum; });
  }
};

struct scale_step {
  template <class C>
  NEAP_HD C operator()(C x, C s) const {
    return x * s;
  }
};

}  // namespace detail

/// Bytes of workspace of add_sum_of_squares for a tensor of this type.
inline bytes_t add_sum_of_squares_workspace(tensor_type const& x) {
  return checked_mul(x.count() / detail::square_chunks<float>::chunk + 1, 8);
}

/// total += the sum of x^2, for the global norm of many gradients; total is one f64, set to 0 before the first. x is
/// contiguous and floating.
template <class Backend>
void add_sum_of_squares(Backend& b, tensor_ref const& total, tensor_ref const& x, void* workspace) {
  char const* const name = "add_sum_of_squares";
  double* const sum = detail::vector_of<double>(total, 1, name);
  std::int64_t const n = x.count();
  constexpr std::int64_t chunk = detail::square_chunks<float>::chunk;
  std::int64_t const blocks = (n + chunk - 1) / chunk;
  void const* const from = detail::vector_of(x, x.element, n, name);
  auto* const partial = static_cast<double*>(workspace);
  with_floating(x.element, [&](auto tag) {
    b.launch(blocks, detail::square_chunks<typename decltype(tag)::type>{from, partial, n}, chunk);
  });
  b.launch(1, detail::add_partials{partial, blocks, sum}, blocks);
}

/// scale = min(1, max_norm / (sqrt(total) + 1e-6)): what gradients are multiplied by. total is one f64, scale one number
/// of a floating type.
template <class Backend>
void clip_scale(Backend& b, tensor_ref const& scale, tensor_ref const& total, double max_norm) {
  double const* const from = detail::vector_of<double const>(total, 1, "clip_scale");
  detail::expect(is_floating(scale.element), "clip_scale: the scale needs a floating type");
  void* const to = detail::vector_of(scale, scale.element, 1, "clip_scale");
  auto const stored = detail::conversion_to<double>(scale.element);
  b.launch(
      1,
      [=](auto&) {
        double const wanted = max_norm / (math::sqrt(*from) + 1e-6), s = wanted >= 1 ? 1.0 : wanted;  // a NaN stays
        stored(to, 1, &s, 1, 1);
      },
      1);
}

}}  // namespace neap::v0
