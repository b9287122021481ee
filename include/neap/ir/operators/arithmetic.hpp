// Sums, differences and products of two tensors, broadcast to one shape: what gradient rules are made of.
#pragma once

#include <neap/ir/operators/movement.hpp>

namespace neap { inline namespace v0 { namespace op {

struct neg : scalar_function<1, false> {
  static constexpr std::string_view name = "neg";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return -x;
  }
  void gradient(gradient_context& c) const { c.give(0, c.emit(neg{}, {c.grad()})); }
};
struct add : scalar_function<2, false> {
  static constexpr std::string_view name = "add";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a + b;
  }
  void gradient(gradient_context& c) const;
};
struct sub : scalar_function<2, false> {
  static constexpr std::string_view name = "sub";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a - b;
  }
  void gradient(gradient_context& c) const;
};
struct mul : scalar_function<2, false> {
  static constexpr std::string_view name = "mul";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a * b;
  }
  void gradient(gradient_context& c) const;
};

namespace detail {
// For rules of several of them.
inline value_id product(gradient_context& c, value_id a, value_id b) { return c.emit(mul{}, {a, b}); }
inline value_id difference(gradient_context& c, value_id a, value_id b) { return c.emit(sub{}, {a, b}); }
}  // namespace detail

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/arithmetic.ipp>
#endif
