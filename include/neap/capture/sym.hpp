// sym<T>: a scalar that may differ from call to call of a compiled function. It is computed with like a T, and stands
// beside tensors as an operand. Only where it becomes a plain value (a branch, value()) the graph depends on it:
//
//   auto step = neap::compile([](net& m, neap::tensor x, neap::sym<double> scale) { return m(x) * scale; });
//   step(m, x, 0.5), step(m, x, 0.25);   // one graph
//
// Beside a tensor it has the tensor's element type.
#pragma once

#include <neap/capture/scalar_listener.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/tensor.hpp>

#include <concepts>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

template <class T>
class sym {
  static_assert(detail::tracked_scalar<T>, "neap: a sym<T> is of a number, a bool or an enum");

 public:
  using value_type = T;
  sym() = default;
  template <class U>
    requires(std::is_arithmetic_v<U> || std::is_same_v<U, T>)
  sym(U x) : value_(static_cast<T>(x)) {}
  /// For the library: a value with its expression.
  sym(T x, detail::symbol_id m) : value_(x), symbol_(m) {}

  /// The plain value, on which the graph then depends: one graph for each value.
  T value(std::source_location at = std::source_location::current()) const {
    if (auto* l = detail::scalar_listener::active()) l->add_guard(number(*l), detail::to_bits(value_), at);
    else is_used_unheard();
    return value_;
  }
  /// Whether it is not zero; the graph depends on that alone.
  explicit operator bool() const;

  // For the library: no guard.
  T plain() const { return value_; }
  std::uint32_t number(detail::scalar_listener& l) const { return l.expression_of(symbol_, detail::to_bits(value_)); }
  detail::symbol_id& symbol() { return symbol_; }
  /// By a thread that records nothing.
  void is_used_unheard() const {
    if (symbol_.capture != 0) detail::recording_watch::uses(this, symbol_.capture);
  }
  T& place() { return value_; }

 private:
  T value_{};
  detail::symbol_id symbol_;
};

template <class T>
class state;

namespace detail {

template <class T>
struct scalar_of {
  using type = void;
};
template <class T>
struct scalar_of<sym<T>> {
  using type = T;
};
template <class T>
struct scalar_of<state<T>> {
  using type = T;
};
/// A sym<T> or a state<T>.
template <class X>
concept symbolic = !std::is_void_v<typename scalar_of<std::remove_cvref_t<X>>::type>;
/// One side is symbolic, the other too or a plain number.
template <class A, class B>
concept symbolic_pair = (symbolic<A> && (symbolic<B> || tracked_scalar<std::remove_cvref_t<B>>)) ||
                        (symbolic<B> && tracked_scalar<std::remove_cvref_t<A>>);

template <class X>
auto as_sym(X const& x) {
  if constexpr (symbolic<X>) return sym<typename scalar_of<X>::type>(x);
  else return sym<X>(x);
}

template <class F, class A, class B>
std::uint64_t call_scalar(std::uint64_t a, std::uint64_t b) {
  return to_bits(F{}(from_bits<A>(a), from_bits<B>(b)));
}
/// F of two scalars, of floating type by the very code that look-ups call: in place, a compiler would fold constants,
/// contract products and sums, and have other bits.
template <class F, class A, class B>
auto combined(A a, B b) {
  using R = std::remove_cvref_t<decltype(F{}(a, b))>;
  if constexpr (std::is_floating_point_v<R>) {
    scalar_function const volatile call = &call_scalar<F, A, B>;
    return from_bits<R>(call(to_bits(a), to_bits(b)));
  } else {
    return R(F{}(a, b));
  }
}
template <class F, class A, class B>
auto combine_scalars(sym<A> const& a, sym<B> const& b) {
  auto const x = combined<F>(a.plain(), b.plain());
  using R = std::remove_const_t<decltype(x)>;
  auto* l = scalar_listener::active();
  if (!l) {
    a.is_used_unheard(), b.is_used_unheard();
    return sym<R>(x);
  }
  auto const i = a.number(*l), j = b.number(*l);
  return sym<R>(x, l->symbol_of(l->call(&call_scalar<F, A, B>, i, j)));
}

template <class To>
struct convert_to {
  template <class A, class B>
  To operator()(A a, B) const {
    if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>) return To(static_cast<float>(a));
    else return static_cast<To>(a);
  }
};
/// A conversion to U.
template <class U, class T>
sym<U> converted(sym<T> const& x) {
  if constexpr (std::is_same_v<U, T>) return x;
  else return combine_scalars<convert_to<U>>(x, sym<char>('\0'));
}

template <class To, class From>
std::uint64_t element_bits(std::uint64_t from, std::uint64_t) {
  To const x = convert_to<To>{}(from_bits<From>(from), 0);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
/// A tensor of one element of this type.
template <class T>
tensor scalar_tensor(sym<T> const& x, dtype t, std::source_location at) {
  tensor made = make_leaf(make_storage({t, {}}, {}, role::activation, at), tensor_layout::dense({t, {}}));
  std::byte* const to = made.storage()->data();
  with_type(t, [&](auto tag) {
    using To = typename decltype(tag)::type;
    auto const bits = element_bits<To, T>(to_bits(x.plain()), 0);
    std::memcpy(to, &bits, sizeof(To));
    if (auto* l = scalar_listener::active()) {
      auto const of = x.number(*l);
      l->filled(made, l->call(&element_bits<To, T>, of, of));
    } else {
      x.is_used_unheard();
    }
  });
  return made;
}

}  // namespace detail

template <class T>
sym<T>::operator bool() const {
  auto* l = detail::scalar_listener::active();
  bool const yes = value_ != T{};
  if (l) {
    auto const said = detail::combine_scalars<std::not_equal_to<>>(*this, sym<T>(T{}));
    l->add_guard(said.number(*l), detail::to_bits(yes), {});
  } else {
    is_used_unheard();
  }
  return yes;
}

#define NEAP_SYMBOLIC(OP, F)                                                        \
  template <class A, class B>                                                       \
    requires detail::symbolic_pair<A, B>                                            \
  auto operator OP(A const& a, B const& b) {                                        \
    return detail::combine_scalars<std::F<>>(detail::as_sym(a), detail::as_sym(b)); \
  }                                                                                 \
  static_assert(true)
NEAP_SYMBOLIC(+, plus);
NEAP_SYMBOLIC(-, minus);
NEAP_SYMBOLIC(*, multiplies);
NEAP_SYMBOLIC(/, divides);
NEAP_SYMBOLIC(%, modulus);
NEAP_SYMBOLIC(<, less);
NEAP_SYMBOLIC(>, greater);
NEAP_SYMBOLIC(<=, less_equal);
NEAP_SYMBOLIC(>=, greater_equal);
NEAP_SYMBOLIC(==, equal_to);
NEAP_SYMBOLIC(!=, not_equal_to);
#undef NEAP_SYMBOLIC

#define NEAP_SYMBOLIC(OP)                                                                               \
  template <detail::symbolic S>                                                                         \
  tensor operator OP(tensor const& x, S const& s) {                                                     \
    return x OP detail::scalar_tensor(detail::as_sym(s), x.element(), std::source_location::current()); \
  }                                                                                                     \
  template <detail::symbolic S>                                                                         \
  tensor operator OP(S const& s, tensor const& x) {                                                     \
    return detail::scalar_tensor(detail::as_sym(s), x.element(), std::source_location::current()) OP x; \
  }                                                                                                     \
  static_assert(true)
NEAP_SYMBOLIC(+);
NEAP_SYMBOLIC(-);
NEAP_SYMBOLIC(*);
NEAP_SYMBOLIC(/);
#undef NEAP_SYMBOLIC

}}  // namespace neap::v0
