#include <neap/train/loss.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "run_program.hpp"

#include <doctest/doctest.h>

using namespace neap;

namespace {
struct network {
  nn::linear in{6, 8}, out{8, 4};
  bool squash = false;
  tensor operator()(tensor const& x) const {
    tensor const y = out(tanh(in(x)));
    return squash ? sigmoid(y) : y;
  }
};

/// Trained with a loss: the traced step has the bits of the eager one, and the loss falls.
template <class Loss>
void trains(Loss const& loss, tensor const& target, bool squash = false) {
  network planned;
  planned.squash = squash;
  initialise(planned, 4);
  network eager = planned;
  std::pair const batch{tensor::randn({8, 6}, 2), target};
  auto const program = training_step(planned, batch, loss, adamw{.rate = 0.02});
  auto const valid = verify(program.program);
  REQUIRE_MESSAGE(valid.ok(), valid.message());
  support::program_runner run(program);
  training_state state;
  double first = 0, last = 0;
  for (int i = 0; i < 6; ++i) {
    last = run({batch.first, batch.second});
    if (i == 0) first = last;
    CHECK(last == eager_step(eager, batch, loss, adamw{.rate = 0.02}, state).template item<double>());
  }
  CHECK(last < 0.95 * first);
}
}  // namespace

TEST_CASE("losses as values, eager and traced") {
  tensor const numbers = tensor::randn({8, 4}, 9), truths = greater(numbers, 0);
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 8; ++i) classes.push_back(i * 3 % 4);
  trains(cross_entropy{.label_smoothing = 0.1}, tensor::from(classes, {8}));
  trains(mse{}, numbers);
  trains(huber{}, numbers);
  trains(huber{.delta = 0.2}, numbers);
  trains(smooth_l1{.beta = 0.5}, numbers);
  trains(smooth_l1{.beta = 0}, numbers);
  trains(binary_cross_entropy_with_logits{}, truths);
  trains(binary_cross_entropy_with_logits{}, sigmoid(numbers));
  trains(binary_cross_entropy{}, truths, true);
}

TEST_CASE("smoothing moves the loss towards all classes") {
  tensor const sure = tensor::from({10.f, 0.f, 0.f, 0.f}, {1, 4}),
               first = tensor::from(std::vector<std::int64_t>{0}, {1});
  double const plain = cross_entropy{}(sure, first).item<double>();
  double const even = mean(neg(log_softmax(sure))).item<double>();
  for (double s : {0.0, 0.25, 1.0})
    CHECK(cross_entropy{.label_smoothing = s}(sure, first).item<double>() ==
          doctest::Approx((1 - s) * plain + s * even).epsilon(1e-5));
}
