// A compiled function beside the plain one on a copy of its state: outputs and all state are bit-equal after every call. A
// function that decides by its gradient.
#pragma once

#include <neap/execute/compile.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "../support/content.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace neap::testing {

/// Whether a path that ends by an exception is a graph: on a device, where nothing runs eagerly.
#if defined(NEAP_COMPILES_FOR_DEVICE)
inline constexpr bool keeps_exceptions = true;
#else
inline constexpr bool keeps_exceptions = false;
#endif

/// n rows of 4 numbers, other ones for each i; alone, as the arguments of call i.
inline tensor sample(int i, std::int64_t n = 3) { return tensor::randn({n, 4}, static_cast<std::uint64_t>(i) + 1); }
inline auto one_sample(int i) { return std::tuple{sample(i)}; }

/// Call number i on both: f(model, arguments(i)...) for a tuple of arguments. Returns the compiled object's graphs.
template <class F, class Model, class Arguments>
std::size_t compare(F f, Model& model, int calls, Arguments arguments, compile_options const& options = {}) {
  Model plain = model;
  auto compiled = compile(f, options);
  for (int i = 0; i < calls; ++i) {
    auto mine = arguments(i), its = arguments(i);
    auto a = std::apply([&](auto&... x) { return compiled(model, x...); }, mine);
    auto b = std::apply([&](auto&... x) { return f(plain, x...); }, its);
    CAPTURE(i);
    CAPTURE(compiled.why_missed());
    REQUIRE(content_of(a) == content_of(b));
    REQUIRE(content_of(model) == content_of(plain));
    REQUIRE(content_of(mine) == content_of(its));
  }
  return compiled.graphs();
}

/// Layers that are trained, and how often their gradient was large.
struct deep {
  std::vector<nn::linear> layers = std::vector<nn::linear>(5, nn::linear(32, 32));
  state<int> large{0};
};
inline deep new_deep() {
  deep d;
  initialise(d, 4);
  return d;
}
inline tensor loss_of(deep const& d, tensor const& x) {
  tensor h = x;
  for (auto const& l : d.layers) h = neap::tanh(l(h)) * 0.5 + h;
  return mean(h * h);
}
/// The gradient decides in the middle.
inline tensor in_stages(deep& d, tensor const& x) {
  auto const weights = parameters(d);
  tensor const loss = loss_of(d, x);
  auto const g = grad(loss, weights);
  auto const norm = item<float>(sum(g[0] * g[0]));
  if (norm > 1e-4F) {
    for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - 0.5 * g[i]);
    ++d.large;
  } else {
    for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] * 0.9);
  }
  return loss;
}

}  // namespace neap::testing
