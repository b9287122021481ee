// Dropout. What stays is a function of (key, step, place of the element), so the gradient and a recomputed copy draw the
// same mask again and none is kept. `step` is a scalar that training increments, so that every step draws anew. A part
// knows its first element's place in the whole, so it draws what the whole would; its elements must follow one another
// there, so only the first axis is cut (of those that are longer than 1).
#pragma once

#include <neap/ir/operators/update.hpp>

namespace neap { inline namespace v0 { namespace op {

#define NEAP_DROPOUT_FACETS(self)                                                                    \
  static constexpr bool elementwise = true, random = true;                                           \
  static constexpr double flops = 12;                                                                \
  double p = 0.5;         /* the share that is dropped */                                            \
  std::int64_t key = 0;   /* of the draws */                                                         \
  std::int64_t first = 0; /* where in the whole the first element stands */                          \
  static constexpr auto attributes() {                                                               \
    return std::array{field<&self::p>("p"), field<&self::key>("key"), field<&self::first>("first")}; \
  }                                                                                                  \
  void infer(shape_context& c) const {                                                               \
    c.require_arity(2, 2);                                                                           \
    detail::require_floating(c, 0);                                                                  \
    detail::require_step(c, 1);                                                                      \
    c.require(p >= 0 && p <= 1, "the rate must be in [0, 1], got ", p);                              \
    c.require(first >= 0, "there is no element ", first);                                            \
    c.fresh(c.in(0));                                                                                \
  }                                                                                                  \
  void relate(dim_context& c) const {                                                                \
    int k = 0;                                                                                       \
    while (k < c.in(0).rank() && c.in(0).dims[k] == 1) ++k;                                          \
    if (k < c.in(0).rank()) c.same(0, k, 0, k);                                                      \
  }                                                                                                  \
  void cut(cut_context const& c) { first += c.before(c.out[0].type.count()); }

/// g, step -> dx: drops what dropout with this key and step dropped.
struct dropout_grad {
  static constexpr std::string_view name = "dropout_grad";
  NEAP_DROPOUT_FACETS(dropout_grad)
  void gradient(gradient_context& c) const { c.give(0, c.emit(*this, {c.grad(), c.in(1)})); }
};
/// x, step -> x / (1 - p), or 0 where dropped.
struct dropout {
  static constexpr std::string_view name = "dropout";
  NEAP_DROPOUT_FACETS(dropout)
  void gradient(gradient_context& c) const { c.give(0, c.emit(dropout_grad{p, key, first}, {c.grad(), c.in(1)})); }
};
#undef NEAP_DROPOUT_FACETS
template <class Backend>
void run(Backend& b, dropout const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, dropout_grad const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op
