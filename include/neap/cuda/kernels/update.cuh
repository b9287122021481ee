// Optimizer updates on a device (ir/operators/update.hpp): maps whose numbers (rates, the step's number) the device reads,
// as they are in its memory and change from step to step. Results are the host's to rounding.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/cuda/kernels/elementwise.cuh>
#include <neap/ir/operators/kernels/update.hpp>

#include <array>
#include <cmath>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

NEAP_HD NEAP_INLINE bool is_finite(double x) { return x - x == 0; }

/// An optimizer's numbers: settings in the device's memory, or the attributes where there are none.
template <int Count>
struct device_numbers {
  double own[Count];
  double const* settings;
  double const* verdict;  // of whether the update counts: not where it is infinite or a NaN; nullptr: always

  NEAP_HD double operator[](int k) const { return settings ? settings[k] : own[k]; }
  NEAP_HD bool count() const { return !verdict || is_finite(*verdict); }
  friend bool operator==(device_numbers const&, device_numbers const&) = default;
};

/// x^n by squaring, n >= 0.
NEAP_HD inline double whole_power(double x, std::int64_t n) {
  double y = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2 != 0) y *= x;
  return y;
}

// In the order of the operators' settings.
struct device_sgd {
  device_numbers<2> numbers;
  NEAP_HD bool counts() const { return numbers.count(); }
  NEAP_HD sgd_step prepared() const { return {numbers[0], numbers[1]}; }
  friend bool operator==(device_sgd const&, device_sgd const&) = default;
};
struct device_momentum {
  device_numbers<4> numbers;
  bool nesterov;
  NEAP_HD bool counts() const { return numbers.count(); }
  NEAP_HD momentum_step prepared() const { return {numbers[0], numbers[1], numbers[2], numbers[3], nesterov}; }
  friend bool operator==(device_momentum const&, device_momentum const&) = default;
};
struct device_lion {
  device_numbers<4> numbers;
  NEAP_HD bool counts() const { return numbers.count(); }
  NEAP_HD lion_step prepared() const { return {numbers[0], numbers[1], numbers[2], numbers[3]}; }
  friend bool operator==(device_lion const&, device_lion const&) = default;
};
struct device_adam {
  device_numbers<5> numbers;
  std::int64_t const* step;
  bool decoupled;
  NEAP_HD bool counts() const { return numbers.count(); }
  NEAP_HD adam_step prepared() const {
    double const rate = numbers[0], beta1 = numbers[1], beta2 = numbers[2], decay = numbers[4];
    return {beta1,
            beta2,
            numbers[3],
            decoupled ? 0 : decay,
            decoupled ? 1 - rate * decay : 1,
            rate / (1 - whole_power(beta1, *step)),
            1 / math::sqrt(1 - whole_power(beta2, *step))};
  }
  friend bool operator==(device_adam const&, device_adam const&) = default;
};

struct increment_kernel {
  std::int64_t* step;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t* const at = step;
    b.once([at] { ++*at; });
  }
};

/// min(1, max_norm / (sqrt(total) + 1e-6)); a NaN stays.
struct clip_kernel {
  double const* total;
  double* factor;
  double max_norm;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    clip_kernel const k = *this;
    b.once([k] {
      double const wanted = k.max_norm / (math::sqrt(*k.total) + 1e-6);
      *k.factor = wanted >= 1 ? 1.0 : wanted;
    });
  }
};

/// step less one where the total is not finite.
struct count_back_kernel {
  std::int64_t* step;
  double const* total;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    count_back_kernel const k = *this;
    b.once([k] { *k.step -= is_finite(*k.total) ? 0 : 1; });
  }
};
/// What it was, where the total is not finite.
struct device_take_back {
  static constexpr bool integral = true;
  double const* total;
  NEAP_HD bool counts() const { return !is_finite(*total); }
  NEAP_HD identity_of prepared() const { return {}; }
};
struct loss_scale_kernel {
  double* scale;
  std::int64_t* steps;
  double const* total;
  op::update_loss_scale how;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    loss_scale_kernel const k = *this;
    b.once([k] { k.how.move(*k.scale, *k.steps, is_finite(*k.total)); });
  }
};

// Adafactor's kernels that depend on its numbers. In the order of the settings: rate, power, epsilon, threshold, decay.
/// K has a share `fresh` of what is new, which is step^-power.
template <class K, class C>
struct device_fresh {
  K kernel;
  device_numbers<5> numbers;
  std::int64_t const* step;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    if (!numbers.count()) return;
    K k = kernel;
    k.fresh = static_cast<C>(::pow(static_cast<double>(*step), -numbers[1]));
    k(b);
  }
};
template <class T>
struct device_adafactor_step {
  using element = T;
  using C = compute_t<T>;
  adafactor_step<T> kernel;
  device_numbers<5> numbers;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    if (!numbers.count()) return;
    adafactor_step<T> k = kernel;
    k.keep = static_cast<C>(1 - numbers[0] * numbers[4]);
    k(b);
  }
};
struct device_adafactor_length {
  adafactor_length kernel;
  device_numbers<5> numbers;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    if (!numbers.count()) return;
    adafactor_length k = kernel;
    k.options = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    k(b);
  }
};

}  // namespace detail

namespace op {

namespace detail {
/// Where the device has whether the update counts (is_skipped in ir/operators/update.hpp).
inline double const* verdict(kernel_arguments const& a, std::size_t arity, std::int64_t count) {
  return a.in.size() > arity && a.in[arity].count() > count ? settings(a, arity) + count : nullptr;
}
}  // namespace detail

// An update's functor. It maps the weight, the states and the gradient to the weight and the states.
inline auto device_functor(sgd const& op, kernel_arguments const& a) {
  return neap::detail::device_sgd{{{op.rate, op.weight_decay}, detail::settings(a, 2), detail::verdict(a, 2, 2)}};
}
inline auto device_functor(momentum const& op, kernel_arguments const& a) {
  return neap::detail::device_momentum{
      {{op.rate, op.beta, op.damping, op.weight_decay}, detail::settings(a, 3), detail::verdict(a, 3, 4)}, op.nesterov};
}
inline auto device_functor(lion const& op, kernel_arguments const& a) {
  return neap::detail::device_lion{
      {{op.rate, op.beta1, op.beta2, op.weight_decay}, detail::settings(a, 3), detail::verdict(a, 3, 4)}};
}
namespace detail {
template <class Op>
auto device_adam_functor(Op const& op, kernel_arguments const& a, bool decoupled) {
  return neap::detail::device_adam{
      {{op.rate, op.beta1, op.beta2, op.eps, op.weight_decay}, settings(a, 5), verdict(a, 5, 5)},
      a.in[4].template as<std::int64_t const>(),
      decoupled};
}
}  // namespace detail
inline auto device_functor(adam const& op, kernel_arguments const& a) {
  return detail::device_adam_functor(op, a, false);
}
inline auto device_functor(adamw const& op, kernel_arguments const& a) {
  return detail::device_adam_functor(op, a, true);
}

template <device_backend B>
void run(B& b, sgd op, kernel_arguments const& a) {
  map(b, device_functor(op, a), a.in[0], a.in[0], a.in[1]);
}
template <device_backend B>
void run(B& b, momentum op, kernel_arguments const& a) {
  map(b, device_functor(op, a), std::array<tensor_ref, 2>{a.in[0], a.in[2]}, a.in[0], a.in[2], a.in[1]);
}
template <device_backend B>
void run(B& b, lion op, kernel_arguments const& a) {
  map(b, device_functor(op, a), std::array<tensor_ref, 2>{a.in[0], a.in[2]}, a.in[0], a.in[2], a.in[1]);
}
namespace detail {
template <class B, class Op>
void run_adam_on_device(B& b, Op const& op, kernel_arguments const& a) {
  map(b, device_functor(op, a), std::array<tensor_ref, 3>{a.in[0], a.in[2], a.in[3]}, a.in[0], a.in[2], a.in[3],
      a.in[1]);
}
}  // namespace detail
template <device_backend B>
void run(B& b, adam const& op, kernel_arguments const& a) {
  detail::run_adam_on_device(b, op, a);
}
template <device_backend B>
void run(B& b, adamw const& op, kernel_arguments const& a) {
  detail::run_adam_on_device(b, op, a);
}

template <device_backend B>
void run(B& b, increment const&, kernel_arguments const& a) {
  b.launch(1, neap::detail::increment_kernel{a.in[0].as<std::int64_t>()}, 1);
}
template <device_backend B>
void run(B& b, clip_factor const& op, kernel_arguments const& a) {
  b.launch(1, neap::detail::clip_kernel{a.in[0].as<double const>(), a.out[0].as<double>(), op.max_norm}, 1);
}

template <device_backend B>
void run(B& b, rollback_counter const&, kernel_arguments const& a) {
  b.launch(1, neap::detail::count_back_kernel{a.in[0].as<std::int64_t>(), a.in[1].as<double const>()}, 1);
}
template <device_backend B>
void run(B& b, rollback_if_overflow const&, kernel_arguments const& a) {
  map(b, neap::detail::device_take_back{a.in[2].as<double const>()}, a.in[0], a.in[1]);
}
template <device_backend B>
void run(B& b, update_loss_scale const& op, kernel_arguments const& a) {
  b.launch(
      1,
      neap::detail::loss_scale_kernel{a.in[0].as<double>(), a.in[1].as<std::int64_t>(), a.in[2].as<double const>(), op},
      1);
}

/// As adafactor_update (backend/kernels/adafactor.hpp).
template <device_backend B>
void run(B& b, adafactor const& op, kernel_arguments const& a) {
  namespace nd = neap::detail;
  tensor_ref const& weight = a.in[0];
  std::size_t const states = weight.rank() >= 2 ? 2 : 1;
  nd::device_numbers<5> const numbers{{op.rate, op.power, op.epsilon, op.threshold, op.weight_decay},
                                      detail::settings(a, 3 + states),
                                      detail::verdict(a, 3 + states, 5)};
  auto const* const step = a.in[2 + states].as<std::int64_t const>();
  nd::weight_matrix const m(weight.dims);
  if (m.count() == 0) return;
  nd::row_groups const groups(m.rows);
  with_floating(weight.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    nd::adafactor_places const at(m, dtype_of<C>);
    auto* const work = static_cast<std::byte*>(a.workspace);
    auto* const shared = reinterpret_cast<nd::adafactor_numbers*>(work);
    auto* const partial = reinterpret_cast<double*>(work + at.partial);
    auto* const sums = reinterpret_cast<C*>(work + at.columns);
    auto const* const g = static_cast<T const*>(a.in[1].data);
    C *const c = static_cast<C*>(a.in[2].data), *const r = states == 2 ? static_cast<C*>(a.in[3].data) : nullptr;
    auto const block = groups.size * m.columns;
    nd::square_means<T> const rows{g, groups, m.columns, C(0), r, sums};
    b.launch(groups.count, nd::device_fresh<nd::square_means<T>, C>{rows, numbers, step}, block);
    using means = nd::column_means<C>;
    means const columns{sums, groups.count, m.rows, m.columns, C(0), c};
    b.launch((m.columns + means::tile - 1) / means::tile, nd::device_fresh<means, C>{columns, numbers, step},
             groups.count * means::tile);
    if (r) b.launch(1, nd::mean_of_rows<C>{r, m.rows, shared}, m.rows);
    nd::device_adafactor_step<T> update{
        {static_cast<T*>(weight.data), g, groups, m.columns, r, c, C(0), shared, partial}, numbers};
    b.launch(groups.count, update, block);
    b.launch(1, nd::device_adafactor_length{{partial, groups.count, m.count(), {}, shared}, numbers}, groups.count);
    update.kernel.partial = nullptr;
    b.launch(groups.count, update, block);
  });
}

}  // namespace op

}}  // namespace neap::v0
