// Training steps that run in parts, beside the same steps taken eagerly: the same losses and weights, to rounding, in the
// arena that was planned.
#include <neap/model/zoo/gpt.hpp>

#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../../examples/models/lstm.hpp"
#include "../../examples/models/mlp.hpp"
#include "../../examples/models/vit.hpp"
#include "../support/beside_eager.hpp"
#include "../support/numbers.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

using namespace neap;
using neap::testing::check_beside_eager;
using neap::testing::whole_numbers;

namespace {

constexpr auto moves = fission{} | truncate(16);

/// Trains under a limit that needs parts, and eagerly; how many parts the plan has.
template <class Model, class Sample, class Loss>
std::size_t check_in_parts(Model model, Sample const& sample, Loss const& loss, double limit) {
  initialise(model, 5);
  auto eager = model;
  sgd const optimizer{
      .rate = 0.01};  // Adam's first steps have the sign of the gradient, whose rounding shows where it is 0
  auto const program = training_step(model, sample, loss, optimizer);
  search_options search;
  search.memory_at_most = memory_limit::of_original(limit);
  search.iterations = testing::sanitized ? 40 : 120;
  auto const found = optimize(program, moves, search);
  CHECK_MESSAGE(found.fits, found.why_not());
  auto const verdict = verify_plan(program.program, found.placed);
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());
  std::size_t parts = 0;
  for (auto o : found.best.graph.ops()) parts += found.best.graph.record(o).part != nothing<part_id>;
  trainer train(program, found.placed, eager_context::current().backend());
  check_beside_eager(train, model, eager, sample, loss, optimizer, 5);
  CHECK(train.program().high_water_bytes() == found.placed.arena_bytes);
  return parts;
}

}  // namespace

TEST_CASE("a multilayer perceptron in parts of the batch") {
  auto const sample = std::pair{tensor::randn({256, 16}, 1), whole_numbers({256}, 2, 4)};
  CHECK(check_in_parts(zoo::mlp({{16, 64, 64, 4}}), sample, cross_entropy{}, 0.6) > 10);
  auto const numbers_to_numbers = std::pair{tensor::randn({256, 16}, 1), tensor::randn({256, 4}, 3)};
  CHECK(check_in_parts(zoo::mlp({{16, 64, 64, 4}}), numbers_to_numbers, mse{}, 0.6) > 10);
}
TEST_CASE("transformers in parts of the batch, with dropout") {
  std::pair<tensor, tensor> const text{whole_numbers({8, 8}, 1, 16), whole_numbers({8, 8}, 2, 16)};
  CHECK(check_in_parts(zoo::gpt(zoo::gpt_config::toy()), text, cross_entropy{}, 0.8) > 10);
  if (testing::sanitized) return;  // the others go the same ways
  auto with_dropout = zoo::gpt_config::toy();
  with_dropout.fused_attention = false, with_dropout.tied_head = false, with_dropout.dropout = 0.1;
  CHECK(check_in_parts(zoo::gpt(with_dropout), text, cross_entropy{}, 0.8) > 10);
  std::pair<tensor, tensor> const images{tensor::randn({8, 3, 16, 16}, 1), whole_numbers({8}, 2, 4)};
  CHECK(check_in_parts(zoo::vit(zoo::vit_config::toy()), images, cross_entropy{}, 0.8) > 10);
}
TEST_CASE("after a plan in parts, smaller batches run in the same arena, whether parts divide them or not") {
  auto const batch = [](std::int64_t n) { return std::pair{tensor::randn({n, 16}, 1), whole_numbers({n}, 2, 4)}; };
  auto model = zoo::mlp({{16, 64, 64, 64, 4}});
  initialise(model, 5);
  auto eager = model;
  sgd const optimizer{.rate = 0.01};
  auto const program = training_step(model, batch(256), cross_entropy{}, optimizer);
  search_options search;
  search.memory_at_most = memory_limit::of_original(0.5);
  search.iterations = 120;
  auto const found = optimize(program, moves, search);
  REQUIRE_MESSAGE(found.fits, found.why_not());
  REQUIRE(found.placed.graph.runs_in_parts());
  trainer train(program, found.placed, eager_context::current().backend());
  training_state state;
  for (std::int64_t n : {256, 37, 240, 1, 256, 240}) {
    CAPTURE(n);
    double const planned = train(batch(n));
    double const plain = eager_step(eager, batch(n), cross_entropy{}, optimizer, state).item<double>();
    CHECK(planned == doctest::Approx(plain).epsilon(1e-4));
    CHECK(train.last_program().arena_data() == train.program().arena_data());
    CHECK(train.last_program().planned().arena_bytes <= train.program().planned().arena_bytes);
  }
  CHECK(train.size_count() == 4);
}
TEST_CASE("a recurrent net in parts") {
  std::pair<tensor, tensor> const text{whole_numbers({8, 8}, 1, 16), whole_numbers({8, 8}, 2, 16)};
  check_in_parts(zoo::lstm(zoo::lstm_config::toy()), text, cross_entropy{}, 0.99);
}
