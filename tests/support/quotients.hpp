// Gradients of models, checked against difference quotients.
#pragma once

#include <neap/model/parameters.hpp>
#include <neap/train/grad.hpp>

#include <doctest/doctest.h>

namespace neap::testing {

/// Every weight's gradient against the symmetric difference quotient of the loss, in f64, at some of its elements.
template <class Model, class F>
void check_quotients(Model& m, F loss) {
  initialise(m, 3);
  set_element(m, dtype::f64);
  auto const weights = parameters(m);
  auto const gradients = grad(loss(), weights);
  REQUIRE(gradients.size() == weights.size());
  for (std::size_t k = 0; k < weights.size(); ++k) {
    CAPTURE(k);
    REQUIRE(gradients[k].type() == weights[k].type());
    auto const g = gradients[k].template values<double>();
    auto* w = weights[k].template data<double>();
    auto const n = static_cast<std::size_t>(weights[k].count());
    for (std::size_t i = 0; i < n; i += 1 + n / 5) {
      double const before = w[i], h = 1e-5;
      w[i] = before + h;
      double const up = loss().template item<double>();
      w[i] = before - h;
      double const down = loss().template item<double>();
      w[i] = before;
      CHECK(g[i] == doctest::Approx((up - down) / (2 * h)).epsilon(1e-5).scale(1e-3));
    }
  }
}

}  // namespace neap::testing
