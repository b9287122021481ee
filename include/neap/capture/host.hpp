// Host work within a compiled function: what is printed or logged, what is read anew in each call, scalars read from
// tensors.
//
//   auto step = neap::compile([](model& m, neap::tensor const& x) {
//     neap::tensor const loss = mean(m(x));
//     neap::effect([](float l, int n) { std::printf("%d: %g\n", n, l); }, neap::item<float>(loss), m.steps);
//     neap::sym<double> const now = neap::external([] { return seconds_since_start(); });
//     if (neap::item<float>(loss) > m.highest) ...    // the graph depends on the outcome
//     return loss * now;
//   });
//
// The functions have no captured variables, or are vouched for by neap::fixed. Tracked scalars reach them as plain values,
// tensors as copies; other arguments are values of the path on which they were captured. They run in the order of the
// program, also where a call that began as a graph goes on eagerly: none runs twice. Outside of compiled functions they run
// at once.
#pragma once

#include <neap/capture/fixed.hpp>
#include <neap/capture/host_function.hpp>

namespace neap { inline namespace v0 {

namespace detail {

template <class F>
constexpr void check_host_function() {
  static_assert(std::is_empty_v<F> || std::is_pointer_v<std::decay_t<F>> || is_instance<F, fixed_function>,
                "neap: a function that the host calls in a compiled function captures no variables: their later values "
                "would not be seen. Give them as arguments, or promise by neap::fixed(f) that they stay as they are");
}

template <class F, class... A>
std::pair<host_result, std::uint32_t> call_on_host(bool is_effect, std::source_location at, F const& f, A const&... x) {
  check_host_function<F>();
  host_listener::arguments passed;
  (list_argument(passed, x, at), ...);
  auto const made = std::make_shared<host_function_of<std::decay_t<F>, std::decay_t<A const&>...>>(f, x...);
  return perform_on_host(made, passed, is_effect, at);
}

template <class To, class From>
std::uint64_t element_as_scalar(std::uint64_t bits, std::uint64_t) {
  return to_bits(element_as<To>(&bits, dtype_of<From>, 0));
}

template <class F, class... A>
auto external_at(std::source_location at, F const& f, A const&... arguments) {
  using R = typename host_function_of<std::decay_t<F>, std::decay_t<A const&>...>::result;
  static_assert(!std::is_void_v<R>, "neap: a host function without a result is a neap::effect");
  auto [r, number] = call_on_host(false, at, f, arguments...);
  if constexpr (tensor_argument<R>) {
    return tensor(std::move(r.made));
  } else {
    auto const x = from_bits<R>(r.bits);
    auto* l = scalar_listener::active();
    return l ? sym<R>(x, l->symbol_of(number)) : sym<R>(x);
  }
}

}  // namespace detail

/// Calls f(arguments...) for what it does: printing, logging, counting elsewhere. In a run of a graph it is called when
/// the graph has run, before the state is written. An exception of f passes through, and the state is as eager execution
/// leaves it; where f is noexcept the weights that the graph updates need not be saved for that case.
template <class F, class... A>
  requires(sizeof...(A) > 6)
void effect(F const& f, A const&... arguments) {
  (void)detail::call_on_host(true, std::source_location{}, f, arguments...);
}

/// The result of f(arguments...) in this call: a number, bool or enum as a sym, or a tensor without history, of which a copy
/// is made. Each call of a compiled function calls it once: clocks, counters, files, generators, queues of data.
template <class F, class... A>
  requires(sizeof...(A) > 6)
auto external(F const& f, A const&... arguments) {
  return detail::external_at(std::source_location{}, f, arguments...);
}

// The same for up to six arguments, where errors name the line of the call: no default argument follows a pack.
#define NEAP_LIST(...) __VA_ARGS__
#define NEAP_HOST_CALLS(TYPES, PARAMETERS, NAMES)                                                             \
  template <class F NEAP_LIST TYPES>                                                                          \
  void effect(F const& f NEAP_LIST PARAMETERS, std::source_location at = std::source_location::current()) {   \
    (void)detail::call_on_host(true, at, f NEAP_LIST NAMES);                                                  \
  }                                                                                                           \
  template <class F NEAP_LIST TYPES>                                                                          \
  auto external(F const& f NEAP_LIST PARAMETERS, std::source_location at = std::source_location::current()) { \
    return detail::external_at(at, f NEAP_LIST NAMES);                                                        \
  }                                                                                                           \
  static_assert(true)
// clang-format off
NEAP_HOST_CALLS((), (), ());
NEAP_HOST_CALLS((, class A), (, A const& a), (, a));
NEAP_HOST_CALLS((, class A, class B), (, A const& a, B const& b), (, a, b));
NEAP_HOST_CALLS((, class A, class B, class C), (, A const& a, B const& b, C const& c), (, a, b, c));
NEAP_HOST_CALLS((, class A, class B, class C, class D), (, A const& a, B const& b, C const& c, D const& d),
                (, a, b, c, d));
NEAP_HOST_CALLS((, class A, class B, class C, class D, class E),
                (, A const& a, B const& b, C const& c, D const& d, E const& e), (, a, b, c, d, e));
NEAP_HOST_CALLS((, class A, class B, class C, class D, class E, class G),
                (, A const& a, B const& b, C const& c, D const& d, E const& e, G const& g), (, a, b, c, d, e, g));
// clang-format on
#undef NEAP_HOST_CALLS
#undef NEAP_LIST

/// The one element of a tensor, converted to T. A compiled function depends on what it does with it: a comparison that
/// decides is one guard with two values, and as a factor it decides nothing. (tensor::item gives a plain number: one
/// graph for each value.) Throws neap::error if the tensor has none or more elements.
template <class T>
sym<T> item(tensor const& x, std::source_location at = std::source_location::current()) {
  auto* l = detail::host_listener::active();
  if (!l || x.is_empty() || x.count() != 1) return sym<T>(x.item<T>(at));
  auto const leaf = l->element(x, 0, at);
  auto plain = static_cast<T>(1);  // where nothing is computed: no divisor is zero
  std::uint32_t number = 0;
  if (detail::computation_listener::computes()) {
    detail::unseen_scope const unseen;
    plain = x.item<T>(at);
  } else if (auto const bits = l->known(leaf)) {
    with_type(x.element(), [&](auto tag) {
      plain = detail::from_bits<T>(detail::element_as_scalar<T, typename decltype(tag)::type>(*bits, 0));
    });
  }
  auto& scalars = *detail::scalar_listener::active();
  with_type(x.element(), [&](auto tag) {
    number = scalars.call(&detail::element_as_scalar<T, typename decltype(tag)::type>, leaf, leaf);
  });
  return sym<T>(plain, scalars.symbol_of(number));
}

}}  // namespace neap::v0
