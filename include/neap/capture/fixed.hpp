// fixed(f): a function with captured variables, or a std::function, of which the caller promises that they do not change.
#pragma once

#include <neap/core/is_instance.hpp>

#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

template <class F>
struct fixed_function {
  F f;
  template <class... A>
  decltype(auto) operator()(A&&... a) const noexcept(std::is_nothrow_invocable_v<F const&, A...>) {
    return f(std::forward<A>(a)...);
  }
};
/// What the function captures by reference lives as long as the compiled function that has it.
template <class F>
fixed_function<F> fixed(F f) {
  return {std::move(f)};
}

}}  // namespace neap::v0
