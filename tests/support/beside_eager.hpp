// Planned steps beside the same steps taken eagerly, where sums are added in another order: the same losses and weights, to
// rounding.
#pragma once

#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace neap::testing {

/// `train` trains `model`; `eager` is as the model was before.
template <class Trainer, class Model, class Sample, class Loss, class Optimizer>
void check_beside_eager(Trainer& train, Model& model, Model& eager, Sample const& sample, Loss const& loss,
                        Optimizer const& optimizer, int steps) {
  training_state state;
  for (int i = 0; i < steps; ++i) {
    double const planned = train(sample);
    double const plain = eager_step(eager, sample, loss, optimizer, state).template item<double>();
    CHECK(planned == doctest::Approx(plain).epsilon(1e-4));
  }
  auto const a = parameters(model), b = parameters(eager);
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const x = a[i].template values<float>(), y = b[i].template values<float>();
    double most = 0, large = 1e-6;
    for (std::size_t k = 0; k < x.size(); ++k) {
      most = std::max(most, static_cast<double>(std::abs(x[k] - y[k])));
      large = std::max(large, static_cast<double>(std::abs(y[k])));
    }
    CHECK(most / large < 1e-3);
  }
}

}  // namespace neap::testing
