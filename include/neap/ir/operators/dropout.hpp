// Dropout. What stays is a function of (key, step, place of the element), so the gradient and a recomputed copy draw the
// same mask again and none is kept. `step` is a scalar that training increments, so that every step draws anew. Parts
// along an axis would draw at other places: dropout states no dimension relations and is not cut.
#pragma once

#include <neap/backend/kernels/dropout.hpp>
#include <neap/ir/operators/update.hpp>

namespace neap::inline v0::op {

#define NEAP_DROPOUT_FACETS(self)                                                                           \
  static constexpr bool elementwise = true, random = true;                                                  \
  static constexpr double flops = 12;                                                                       \
  double p = 0.5;       /* the share that is dropped */                                                     \
  std::int64_t key = 0; /* of the draws */                                                                  \
  static constexpr auto attributes() { return std::array{field<&self::p>("p"), field<&self::key>("key")}; } \
  void infer(shape_context& c) const {                                                                      \
    c.require_arity(2, 2);                                                                                  \
    detail::require_floating(c, 0);                                                                         \
    detail::require_step(c, 1);                                                                             \
    c.require(p >= 0 && p <= 1, "the rate must be in [0, 1], was given ", p);                               \
    c.fresh(c.in(0));                                                                                       \
  }                                                                                                         \
  void relate(dim_context&) const {}

/// g, step -> dx: drops what dropout with this key and step dropped.
struct dropout_grad {
  static constexpr std::string_view name = "dropout_grad";
  NEAP_DROPOUT_FACETS(dropout_grad)
};
/// x, step -> x / (1 - p), or 0 where dropped.
struct dropout {
  static constexpr std::string_view name = "dropout";
  NEAP_DROPOUT_FACETS(dropout)
  void gradient(gradient_context& c) const { c.give(0, c.emit(dropout_grad{p, key}, {c.grad(), c.in(1)})); }
};
#undef NEAP_DROPOUT_FACETS
template <class Backend>
void run(Backend& b, dropout const& op, kernel_arguments const& a) {
  neap::dropout(b, a.out[0], a.in[0], static_cast<std::uint64_t>(op.key),
                static_cast<std::uint64_t>(*a.in[1].as<std::int64_t const>()), op.p);
}
template <class Backend>
void run(Backend& b, dropout_grad const& op, kernel_arguments const& a) {
  run(b, dropout{op.p, op.key}, a);
}

}  // namespace neap::inline v0::op
