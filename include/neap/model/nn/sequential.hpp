// Modules one after the other: sequential{linear(64, 32), relu{}, linear(32, 10)}.
#pragma once

#include <neap/model/scope.hpp>
#include <neap/model/tensor.hpp>

#include <tuple>
#include <utility>

namespace neap { inline namespace v0 { namespace nn {

/// x -> last(...(first(x))). Members are named 0, 1, ... in paths. An error in a module of the program's own names
/// its place, an error in one of the library's the place of the call.
template <class... Module>
struct sequential {
  std::tuple<Module...> modules;

  sequential() = default;
  explicit sequential(Module... m)
    requires(sizeof...(Module) > 0)
      : modules(std::move(m)...) {}

  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    caller_scope const here(at);
    scope const within(*this);
    auto const step = [&](auto const& module) {
      scope const one(module);
      if constexpr (requires { module(x, at); }) x = module(x, at);
      else x = module(x);
    };
    std::apply([&](auto const&... m) { (step(m), ...); }, modules);
    return x;
  }

 private:
  template <std::size_t... I>
  static auto members(sequential& self, std::index_sequence<I...>) {
    return std::tie(std::get<I>(self.modules)...);
  }
  friend auto neap_fields(sequential& self) { return members(self, std::index_sequence_for<Module...>{}); }
};

template <class... Module>
sequential(Module...) -> sequential<Module...>;

}}}  // namespace neap::v0::nn
