#include <neap/train/old_values.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "run_program.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace neap;

namespace {

struct net {
  nn::linear in{4, 4};
  buffer h{{3, 4}, initialiser::constant(0.5)};
  bool again = false;  // what was written is read again
  tensor operator()(tensor const& x) const {
    tensor const y = tanh(in(x)*h);
    assign(h, y);
    return again ? y * h : y;
  }
};
std::pair<tensor, tensor> batch() { return {tensor::randn({3, 4}, 1), tensor::randn({3, 4}, 2)}; }

std::size_t copies_in(graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.as<op::copy>(o) != nullptr;
  return n;
}

}  // namespace

TEST_CASE("a buffer is copied where a gradient that needs it depends on what was written, and only there") {
  for (bool again : {false, true}) {
    net m;
    m.again = again;
    auto const step = training_step(m, batch(), mse{}, sgd{});
    CHECK(verify(step.program).ok());
    CHECK(copies_in(step.program) == (again ? 1 : 0));
    CHECK(keep_old_values(step.program).copies == 0);  // it can run as it is
  }
}

TEST_CASE("the program with copies has the bits of eager steps") {
  eager_context const context{{.threads = 1}};
  net planned, eager;
  planned.again = eager.again = true;
  initialise(planned, 3), initialise(eager, 3);
  auto const step = training_step(planned, batch(), mse{}, sgd{.rate = 0.1});
  support::program_runner run(step);
  training_state state;
  for (int i = 0; i < 3; ++i) {
    auto const b = batch();
    step.set();
    CHECK(run({b.first, b.second}) == eager_step(eager, b, mse{}, sgd{.rate = 0.1}, state).item<double>());
    CHECK(planned.h.values<float>() == eager.h.values<float>());
    CHECK(planned.in.weight.values<float>() == eager.in.weight.values<float>());
  }
}
