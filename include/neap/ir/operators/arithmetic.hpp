// Sums, differences and products of two tensors, broadcast to one shape: what gradient rules are made of.
#pragma once

#include <neap/ir/operators/movement.hpp>

namespace neap::inline v0::op {

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
  void gradient(gradient_context& c) const {
    for (int i : {0, 1})
      if (c.wants(i)) c.give(i, reduced_to(c, c.grad(), c.type(c.in(i)).dims));
  }
};
struct sub : scalar_function<2, false> {
  static constexpr std::string_view name = "sub";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a - b;
  }
  void gradient(gradient_context& c) const {
    if (c.wants(0)) c.give(0, reduced_to(c, c.grad(), c.type(c.in(0)).dims));
    if (c.wants(1)) c.give(1, c.emit(neg{}, {reduced_to(c, c.grad(), c.type(c.in(1)).dims)}));
  }
};
struct mul : scalar_function<2, false> {
  static constexpr std::string_view name = "mul";
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a * b;
  }
  void gradient(gradient_context& c) const {
    for (int i : {0, 1})
      if (c.wants(i)) c.give(i, reduced_to(c, c.emit(mul{}, {c.grad(), c.in(1 - i)}), c.type(c.in(i)).dims));
  }
};

namespace detail {
// For rules of several of them.
inline value_id product(gradient_context& c, value_id a, value_id b) { return c.emit(mul{}, {a, b}); }
inline value_id difference(gradient_context& c, value_id a, value_id b) { return c.emit(sub{}, {a, b}); }
}  // namespace detail

}  // namespace neap::inline v0::op
