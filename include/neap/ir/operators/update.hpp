// Updates in place: optimizers, the step counter, gradient accumulation; and what clipping by the global norm needs. An
// update's outputs are the next versions of its inputs' storages; it has no gradient.
//
// An optimizer's numbers (rate, decay...) are attributes, or elements of one more input, an f64 vector in the attributes'
// order: then they may be others in each run of the same program. One more number there says whether the update counts:
// where it is infinite or a NaN, nothing is written.
#pragma once

#include <neap/ir/operators/binary.hpp>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// Weight, gradient and floating states have one shape.
void require_states(shape_context& c, int count);
void require_step(shape_context& c, int i);
/// The numbers of an optimizer as its last input, where it has one more than `arity`; and whether the update counts.
void require_settings(shape_context& c, int arity, std::int64_t count);
double const* settings(kernel_arguments const& a, std::size_t arity);
/// Whether the update does not count.
bool is_skipped(kernel_arguments const& a, std::size_t arity, std::int64_t count);
void require_total(shape_context& c, int i);
void relate_states(dim_context& c, int count);
}  // namespace detail

/// w, g -> w - rate * (g + weight_decay * w).
struct sgd {
  static constexpr std::string_view name = "sgd";
  using joined = matmul_update<sgd>;
  static constexpr double flops = 4;
  double rate = 1e-2, weight_decay = 0;
  static constexpr auto attributes() {
    return std::array{field<&sgd::rate>("rate"), field<&sgd::weight_decay>("weight_decay")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_states(c, 2); }
};
template <class Backend>
void run(Backend& b, sgd op, kernel_arguments const& a);

/// w, g, m -> w, m with m = beta * m + (1 - damping) * d, d = g + weight_decay * w; w - rate * m, or Nesterov's form.
struct momentum {
  static constexpr std::string_view name = "momentum";
  using joined = matmul_update<momentum>;
  static constexpr double flops = 7;
  double rate = 1e-2, beta = 0.9, damping = 0, weight_decay = 0;
  bool nesterov = false;
  static constexpr auto attributes() {
    return std::array{field<&momentum::rate>("rate"), field<&momentum::beta>("beta"),
                      field<&momentum::damping>("damping"), field<&momentum::weight_decay>("weight_decay"),
                      field<&momentum::nesterov>("nesterov")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_states(c, 3); }
};
template <class Backend>
void run(Backend& b, momentum op, kernel_arguments const& a);

namespace detail {
#define NEAP_ADAM_FACETS(self)                                                                                \
  static constexpr double flops = 14;                                                                         \
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;                               \
  static constexpr auto attributes() {                                                                        \
    return std::array{field<&self::rate>("rate"), field<&self::beta1>("beta1"), field<&self::beta2>("beta2"), \
                      field<&self::eps>("eps"), field<&self::weight_decay>("weight_decay")};                  \
  }                                                                                                           \
  void infer(shape_context& c) const {                                                                        \
    detail::require_settings(c, 5, 5);                                                                        \
    detail::require_states(c, 4);                                                                             \
    detail::require_step(c, 4);                                                                               \
    c.update(0), c.update(2), c.update(3);                                                                    \
  }                                                                                                           \
  void relate(dim_context& c) const { detail::relate_states(c, 4); }
}  // namespace detail

/// w, g, m, v, step -> w, m, v: Adam (Kingma and Ba 2015), with the decay added to the gradient. The first step is 1.
struct adam {
  static constexpr std::string_view name = "adam";
  using joined = matmul_update<adam>;
  NEAP_ADAM_FACETS(adam)
};
/// w, g, m, v, step -> w, m, v: AdamW (Loshchilov and Hutter 2019), where the weight itself decays by rate * weight_decay.
struct adamw {
  static constexpr std::string_view name = "adamw";
  using joined = matmul_update<adamw>;
  NEAP_ADAM_FACETS(adamw)
};
#undef NEAP_ADAM_FACETS
template <class Backend>
void run(Backend& b, adam const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, adamw const& op, kernel_arguments const& a);

/// w, g, m -> w, m: Lion (Chen et al. 2023). w - rate * (sign(beta1 m + (1 - beta1) g) + weight_decay w), and then
/// m = beta2 m + (1 - beta2) g.
struct lion {
  static constexpr std::string_view name = "lion";
  using joined = matmul_update<lion>;
  static constexpr double flops = 10;
  double rate = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  static constexpr auto attributes() {
    return std::array{field<&lion::rate>("rate"), field<&lion::beta1>("beta1"), field<&lion::beta2>("beta2"),
                      field<&lion::weight_decay>("weight_decay")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_states(c, 3); }
};
template <class Backend>
void run(Backend& b, lion op, kernel_arguments const& a);

/// w, g, m -> w, m: Muon (Jordan et al. 2024) of a weight of two axes or more, as the matrix of its first axis by all
/// others: a step along its momentum made nearly orthogonal (backend/kernels/muon.hpp has the formulas). Every element
/// depends on all of the gradient: it is neither cut nor made one with the gradient's product.
struct muon {
  static constexpr std::string_view name = "muon";
  double rate = 2e-2, beta = 0.95, weight_decay = 0;
  bool nesterov = true;
  std::int64_t iterations = 5;
  double rms = 0;
  static constexpr auto attributes() {
    return std::array{field<&muon::rate>("rate"),
                      field<&muon::beta>("beta"),
                      field<&muon::weight_decay>("weight_decay"),
                      field<&muon::nesterov>("nesterov"),
                      field<&muon::iterations>("iterations"),
                      field<&muon::rms>("rms")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
};
template <std::same_as<host_backend> Backend>
void run(Backend& b, muon const& op, kernel_arguments const& a);

/// w, g, column, row, step -> w, column, row: Adafactor (Shazeer and Stern 2018) of a weight of two axes or more, as the
/// matrix of its first axis by all others; w, g, column, step -> w, column of other weights, where the column has the
/// means of elements (backend/kernels/adafactor.hpp has the formulas). Every element depends on all of the gradient.
struct adafactor {
  static constexpr std::string_view name = "adafactor";
  double rate = 1e-2, power = 0.8, epsilon = 1e-3, threshold = 1, weight_decay = 0;
  static constexpr auto attributes() {
    return std::array{field<&adafactor::rate>("rate"), field<&adafactor::power>("power"),
                      field<&adafactor::epsilon>("epsilon"), field<&adafactor::threshold>("threshold"),
                      field<&adafactor::weight_decay>("weight_decay")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
};
template <class Backend>
void run(Backend& b, adafactor const& op, kernel_arguments const& a);

/// step -> step + 1.
struct increment {
  static constexpr std::string_view name = "increment";
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
};
template <class Backend>
void run(Backend& b, increment const&, kernel_arguments const& a);

/// acc, g -> acc + g.
struct accumulate {
  static constexpr std::string_view name = "accumulate";
  static constexpr precision_rule precision = precision_use::of_first;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_states(c, 2); }
};
template <class Backend>
void run(Backend& b, accumulate const&, kernel_arguments const& a);

/// acc -> 0.
struct reset {
  static constexpr std::string_view name = "reset";
  static constexpr double flops = 0;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
  work cost(work_context const& c) const { return {0, 0, detail::touched_bytes(c.out[0])}; }
};
template <class Backend>
void run(Backend& b, reset const&, kernel_arguments const& a);

/// to, x -> x, in the memory of `to`.
struct assign {
  static constexpr std::string_view name = "assign";
  static constexpr precision_rule precision = precision_use::of_first;
  static constexpr double flops = 0;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_states(c, 2); }
  work cost(work_context const& c) const;
};
template <class Backend>
void run(Backend& b, assign const&, kernel_arguments const& a);

// ---------------------------------------------------------------------------------- steps that may not count
//
// `total` is finite where the step counts: the sum of its gradients' squares.

/// step, total -> step; one less where the step does not count.
struct rollback_counter {
  static constexpr std::string_view name = "count_back";
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
};
template <class Backend>
void run(Backend& b, rollback_counter const&, kernel_arguments const& a);

/// x, what it was, total -> x; what it was where the step does not count.
struct rollback_if_overflow {
  static constexpr std::string_view name = "take_back";
  static constexpr double flops = 0;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_states(c, 2); }
};
template <class Backend>
void run(Backend& b, rollback_if_overflow const&, kernel_arguments const& a);

/// scale, steps, total -> both moved. The scale is `growth` times itself after `growth_steps` steps that count, and `backoff`
/// times where a step does not; it does not grow beyond `most`, nor shrink below `least`. Steps are those since the scale
/// moved; after steps that did not count they are their number, negative.
struct update_loss_scale {
  static constexpr std::string_view name = "move_loss_scale";
  double growth = 2, backoff = 0.5;
  std::int64_t growth_steps = 2000;
  double least = 1, most = 0x1p32;
  static constexpr auto attributes() {
    return std::array{field<&update_loss_scale::growth>("growth"), field<&update_loss_scale::backoff>("backoff"),
                      field<&update_loss_scale::growth_steps>("growth_steps"),
                      field<&update_loss_scale::least>("least"), field<&update_loss_scale::most>("most")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
  NEAP_HD void move(double& scale, std::int64_t& steps, bool counts) const {
    std::int64_t const now = counts ? (steps > 0 ? steps : 0) + 1 : (steps < 0 ? steps : 0) - 1;
    bool const grows = now >= growth_steps;
    double const next = scale * (grows ? growth : counts ? 1 : backoff);
    if (grows ? next <= most : next >= least) scale = next;
    else if (grows ? scale < most : scale > least) scale = grows ? most : least;
    steps = grows ? 0 : now;
  }
};
template <class Backend>
void run(Backend& b, update_loss_scale const& op, kernel_arguments const& a);

// ---------------------------------------------------------------------------------- clipping by the global norm
//
//   total = sum_squares(g1); total = sum_squares(g2, total); ...   f = clip_factor(total);   g1 = scale_by(g1, f); ...

/// x, [total] -> the sum of x's squares, plus total: an f64 scalar.
struct sum_squares {
  static constexpr std::string_view name = "sum_squares";
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
};
template <class Backend>
void run(Backend& b, sum_squares const&, kernel_arguments const& a);

/// total -> min(1, max_norm / (sqrt(total) + 1e-6)).
struct clip_factor {
  static constexpr std::string_view name = "clip_factor";
  static constexpr bool elementwise = true;
  double max_norm = 1;
  static constexpr auto attributes() { return std::array{field<&clip_factor::max_norm>("max_norm")}; }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
};
template <class Backend>
void run(Backend& b, clip_factor const& op, kernel_arguments const& a);

/// x, s -> x * s for a scalar s of any floating type.
struct scale_by {
  static constexpr std::string_view name = "scale_by";
  static constexpr bool elementwise = true;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
};
template <class Backend>
void run(Backend& b, scale_by const&, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/update.ipp>
#endif
