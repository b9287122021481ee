#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>

#include <doctest/doctest.h>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>

#include "../support/message.hpp"

using namespace neap;
using neap::testing::message_of;

namespace {

struct network {
  nn::conv2d conv{3, 6, 3, {.padding = 1}};
  nn::batch_norm2d norm{6};
  nn::dropout drop{0.5};
  nn::linear head{6, 4};
  tensor operator()(tensor const& x) const { return head(drop(mean(relu(norm(conv(x))), {2, 3}))); }
};
struct metrics {
  tensor logits, none;
  std::vector<tensor> sums;
};

std::pair<tensor, tensor> batch(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < n; ++i) labels.push_back(i % 4);
  return {tensor::randn({n, 3, 6, 6}, seed), tensor::from(labels, {n})};
}
tensor eager(network const& m, tensor const& x) {
  evaluation const off;
  return m(x);
}

}  // namespace

TEST_CASE("an evaluator gives what the model gives in evaluation, while a trainer changes the weights") {
  eager_context const context{{.threads = 1}};
  network m;
  host_backend backend(1);
  auto const step = training_step(m, batch(8, 0), cross_entropy{}, adamw{.rate = 0.05});
  trainer run(step, plan_in_order(step.program), backend);
  evaluator eval(m, batch(8, 0).first, backend);
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto const x = batch(8, 50 + i).first;
    auto const buffers = m.norm.running_mean.values<float>();
    CHECK(eval(x).values<float>() == eager(m, x).values<float>());
    CHECK(m.norm.running_mean.values<float>() == buffers);
    run(batch(8, i));
    CHECK(m.norm.running_mean.values<float>() != buffers);
  }
}

TEST_CASE("several outputs in the function's own form, other sizes, a search, a place in the trainer's arena") {
  eager_context const context{{.threads = 1}};
  network m;
  host_backend backend(1);
  auto const f = [](network const& net, std::pair<tensor, tensor> const& b) {
    auto const y = net(b.first);
    return metrics{y, {}, {sum(y), cross_entropy_loss(y, b.second)}};
  };
  auto const step = evaluation_step(m, batch(12, 0), f);
  search_options few;
  few.iterations = 20;
  auto const found = optimize(step, rematerialize{}, few, memory_limit::of_original(0.8));
  auto const training = training_step(m, batch(12, 0), cross_entropy{}, sgd{});
  trainer run(training, plan_in_order(training.program), backend);
  execution_options in_arena;
  in_arena.memory = {run.program().arena_data(), static_cast<std::size_t>(run.program().arena_bytes())};
  evaluator eval(step, found.placed, backend, in_arena);
  CHECK(eval.program().arena_data() == run.program().arena_data());
  for (std::int64_t n : {12, 7, 1}) {
    run(batch(12, 1));
    auto const b = batch(n, static_cast<std::uint64_t>(n));
    auto const got = eval(b);
    evaluation const off;
    auto const expected = f(m, b);
    CHECK(got.logits.values<float>() == expected.logits.values<float>());
    CHECK(got.none.is_empty());
    REQUIRE(got.sums.size() == 2);
    for (std::size_t k = 0; k < 2; ++k) CHECK(got.sums[k].item<float>() == expected.sums[k].item<float>());
  }
  CHECK(eval.size_count() == 3);
}

TEST_CASE("mistakes name the user's line") {
  network m;
  host_backend backend(1);
  auto const told = message_of([&] { evaluator(m, tensor::randn({2, 4, 6, 6}, 1), backend); });
  CHECK(told.starts_with("evaluator.cpp:"));
  evaluator eval(m, batch(2, 0).first, backend);
  auto const text = message_of([&] { eval(tensor::randn({2, 3, 6}, 1)); });
  CHECK(text.starts_with("evaluator.cpp:"));
  CHECK(text.find("evaluator: tensor 0 of the batch is f32[2,3,6], the sample's was f32[2,3,6,6]") !=
        std::string::npos);
}

namespace {
tensor loss_of_network(network& m, std::pair<tensor, tensor> const& b) {
  return cross_entropy_loss(m(b.first), b.second);
}
tensor classes(network& m, tensor const& x) { return arg_max(m(x)); }
}  // namespace

TEST_CASE("a loss and what is evaluated may be plain functions, with other sizes too") {
  eager_context const context{{.threads = 1}};
  network m;
  network other = m;
  host_backend backend(1);
  auto const step = training_step(m, batch(8, 0), loss_of_network, sgd{});
  trainer run(step, plan_in_order(step.program), backend);
  auto program = evaluation_step(m, batch(8, 0).first, classes);
  evaluator eval(program, plan_in_order(program.program), backend);
  training_state state;
  for (std::int64_t n : {8, 3}) {
    auto const b = batch(n, 7);
    CHECK(run(b) == eager_step(other, b, loss_of_network, sgd{}, state).item<double>());
    evaluation const off;
    CHECK(eval(b.first).values<std::int64_t>() == classes(m, b.first).values<std::int64_t>());
  }
}
