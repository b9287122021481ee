// Functions of tracked scalars, as the standard library has them of numbers: what is computed from a sym or a state is a
// sym, and no path depends on it before it decides.
//
//   if (!neap::isfinite(neap::item<float>(norm))) m.scale = m.scale / 2;
//   m.rate = neap::max(m.rate * 0.99, 1e-4);
#pragma once

#include <neap/capture/sym.hpp>

#include <algorithm>
#include <cmath>

namespace neap { inline namespace v0 {

namespace detail {

template <class F>
struct of_first {
  template <class A, class B>
  auto operator()(A a, B) const {
    return F{}(a);
  }
};
template <class F, class X>
auto map_scalar(X const& x) {
  auto const s = as_sym(x);
  return combine_scalars<of_first<F>>(s, s);
}

template <class T>
T masked(T x, bool keep) {
  return from_bits<T>(keep ? to_bits(x) : 0);
}
struct keep_where {
  template <class T>
  T operator()(T x, bool p) const {
    return masked(x, p);
  }
};
struct keep_unless {
  template <class T>
  T operator()(T x, bool p) const {
    return masked(x, !p);
  }
};
struct either {  // one of them is all zeros
  template <class T>
  T operator()(T a, T b) const {
    return from_bits<T>(to_bits(a) | to_bits(b));
  }
};

}  // namespace detail

#define NEAP_OF_SCALAR(NAME)                             \
  namespace detail {                                     \
  struct scalar_##NAME {                                 \
    template <class T>                                   \
    auto operator()(T x) const {                         \
      using std::NAME;                                   \
      return NAME(x);                                    \
    }                                                    \
  };                                                     \
  }                                                      \
  template <detail::symbolic S>                          \
  auto NAME(S const& x) {                                \
    return detail::map_scalar<detail::scalar_##NAME>(x); \
  }                                                      \
  static_assert(true)
NEAP_OF_SCALAR(isfinite);
NEAP_OF_SCALAR(isnan);
NEAP_OF_SCALAR(isinf);
NEAP_OF_SCALAR(abs);
NEAP_OF_SCALAR(sqrt);
NEAP_OF_SCALAR(exp);
NEAP_OF_SCALAR(exp2);
NEAP_OF_SCALAR(log);
NEAP_OF_SCALAR(log2);
NEAP_OF_SCALAR(sin);
NEAP_OF_SCALAR(cos);
NEAP_OF_SCALAR(tanh);
NEAP_OF_SCALAR(floor);
NEAP_OF_SCALAR(ceil);
NEAP_OF_SCALAR(round);
#undef NEAP_OF_SCALAR

namespace detail {
struct scalar_min {
  template <class A, class B>
  auto operator()(A a, B b) const {
    using T = std::common_type_t<A, B>;
    return std::min<T>(a, b);
  }
};
struct scalar_max {
  template <class A, class B>
  auto operator()(A a, B b) const {
    using T = std::common_type_t<A, B>;
    return std::max<T>(a, b);
  }
};
struct scalar_pow {
  template <class A, class B>
  auto operator()(A a, B b) const {
    return std::pow(a, b);
  }
};
}  // namespace detail

/// Of the operands' common type.
template <class A, class B>
  requires detail::symbolic_pair<A, B>
auto min(A const& a, B const& b) {
  return detail::combine_scalars<detail::scalar_min>(detail::as_sym(a), detail::as_sym(b));
}
template <class A, class B>
  requires detail::symbolic_pair<A, B>
auto max(A const& a, B const& b) {
  return detail::combine_scalars<detail::scalar_max>(detail::as_sym(a), detail::as_sym(b));
}
template <class A, class B>
  requires detail::symbolic_pair<A, B>
auto pow(A const& a, B const& b) {
  return detail::combine_scalars<detail::scalar_pow>(detail::as_sym(a), detail::as_sym(b));
}

template <detail::symbolic S>
auto operator-(S const& x) {
  return detail::map_scalar<std::negate<>>(x);
}
/// The graph does not depend on it, in contrast to the ! of a condition that decides.
template <detail::symbolic S>
sym<bool> logical_not(S const& x) {
  return detail::map_scalar<std::logical_not<>>(x);
}
/// Both are evaluated.
template <class A, class B>
  requires detail::symbolic_pair<A, B>
sym<bool> logical_and(A const& a, B const& b) {
  return detail::combine_scalars<std::logical_and<>>(detail::as_sym(a), detail::as_sym(b));
}
template <class A, class B>
  requires detail::symbolic_pair<A, B>
sym<bool> logical_or(A const& a, B const& b) {
  return detail::combine_scalars<std::logical_or<>>(detail::as_sym(a), detail::as_sym(b));
}

/// x converted, as static_cast<To>(x) is.
template <class To, detail::symbolic S>
sym<To> sym_cast(S const& x) {
  return detail::converted<To>(detail::as_sym(x));
}

/// a where p holds, else b: the path does not depend on p. Both are of one type.
template <detail::symbolic P, class A, class B>
  requires(detail::symbolic_pair<A, B> || (detail::tracked_scalar<A> && detail::tracked_scalar<B>))
auto select(P const& p, A const& a, B const& b) {
  auto const x = detail::as_sym(a);
  auto const y = detail::as_sym(b);
  using T = typename decltype(x)::value_type;
  static_assert(std::is_same_v<T, typename decltype(y)::value_type>, "neap: select(p, a, b) is of a and b of one type");
  auto const yes = detail::converted<bool>(detail::as_sym(p));
  return detail::combine_scalars<detail::either>(detail::combine_scalars<detail::keep_where>(x, yes),
                                                 detail::combine_scalars<detail::keep_unless>(y, yes));
}

}}  // namespace neap::v0
