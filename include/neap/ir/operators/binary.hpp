// Quotients, comparison and choice of two tensors, broadcast to one shape; powers.
#pragma once

#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/unary.hpp>

namespace neap { inline namespace v0 { namespace op {

struct div : scalar_function<2, true> {
  static constexpr std::string_view name = "div";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a / b;
  }
  void gradient(gradient_context& c) const;
};

struct greater;
struct less;
struct equal;

namespace detail {
/// Facets of a comparison: booleans come out, and no gradient goes through.
struct comparison {
  static constexpr int map_inputs = 2;
  static constexpr bool elementwise = true, integral = true;
  static constexpr precision_rule precision = precision_use::full;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { relate_all_aligned(c); }
  void gradient(gradient_context&) const {}
};
}  // namespace detail

#define NEAP_COMPARISON(type, sign)                 \
  struct type : detail::comparison {                \
    static constexpr std::string_view name = #type; \
    template <class T>                              \
    NEAP_HD T operator()(T a, T b) const {          \
      return T(a sign b);                           \
    }                                               \
  };
NEAP_COMPARISON(greater, >)
NEAP_COMPARISON(greater_equal, >=)
NEAP_COMPARISON(less, <)
NEAP_COMPARISON(less_equal, <=)
NEAP_COMPARISON(equal, ==)
NEAP_COMPARISON(not_equal, !=)
#undef NEAP_COMPARISON

/// condition, a, b -> a where the condition holds (is not 0), else b.
struct where {
  static constexpr std::string_view name = "where";
  static constexpr precision_rule precision = precision_use::common;
  static constexpr bool elementwise = true;
  void infer(shape_context& c) const {
    c.require_arity(3, 3);
    c.require(c.in(0).element == dtype::boolean, "the condition must be of booleans, got ", c.in(0));
    detail::require_same_element(c, 1, 2);
    c.fresh(tensor_type{c.in(1).element, detail::broadcast(c)});
  }
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, where const&, kernel_arguments const& a);

namespace detail {
/// The gradient of a choice between two tensors goes to the one that was taken; to the first where they are equal.
template <class TakesFirst>
void choice_gradient(gradient_context& c) {
  value_id const first = c.emit(TakesFirst{}, {c.in(0), c.in(1)});
  value_id const zero = c.emit(fill{{}, c.type(c.grad()).element, 0}, {});
  if (c.wants(0)) c.give(0, reduced_to(c, c.emit(where{}, {first, c.grad(), zero}), c.type(c.in(0)).dims));
  if (c.wants(1)) c.give(1, reduced_to(c, c.emit(where{}, {first, zero, c.grad()}), c.type(c.in(1)).dims));
}
}  // namespace detail

/// The larger; a NaN wins.
struct maximum : scalar_function<2, false> {
  static constexpr std::string_view name = "maximum";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return math::max(a, b);
  }
  void gradient(gradient_context& c) const { detail::choice_gradient<greater_equal>(c); }
};
/// The smaller; a NaN wins.
struct minimum : scalar_function<2, false> {
  static constexpr std::string_view name = "minimum";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return math::min(a, b);
  }
  void gradient(gradient_context& c) const { detail::choice_gradient<less_equal>(c); }
};

/// a^b for a > 0 (see detail::power).
struct pow_op : scalar_function<2, true> {
  static constexpr std::string_view name = "pow";
  static constexpr double flops = 18;
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return detail::power(a, b);
  }
  void gradient(gradient_context& c) const;
};

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/binary.ipp>
#endif
