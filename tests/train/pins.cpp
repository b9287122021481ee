// Pins in models and training steps.
#include <neap/model/pins.hpp>

#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/message.hpp"
#include "../support/pin_counts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace neap;
using namespace neap::testing;

namespace {

enum class mark { none, kept, once, scope, by_pattern };

struct perceptron {
  mark how = mark::none;
  nn::linear in{24, 96}, middle{96, 96}, out{96, 5};
  friend auto neap_fields(perceptron& self) { return std::tie(self.in, self.middle, self.out); }
  static constexpr std::array neap_names{"in", "middle", "out"};
  tensor operator()(tensor const& x) const {
    auto h = gelu(in(x));
    if (how == mark::kept) h = keep(h);
    if (how == mark::once) h = run_once(h);
    if (how == mark::scope) {
      pin_scope const whole(pin::never_in_parts | pin::never_out);
      h = gelu(middle(h));
    } else {
      h = gelu(middle(h));
    }
    return out(h);
  }
};

auto const sample = std::pair{tensor::randn({32, 24}, 1), tensor::from(std::vector<std::int64_t>(32, 2), {32})};

auto step_of(perceptron& m, training_options const& o = {}) {
  return training_step(m, sample, cross_entropy{}, adamw{.rate = 0.01}, o);
}
std::size_t count(op_graph const& g, std::string_view name, pin_set with) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.facets(o).name == name && (with.empty() || g.pins(o).has_any(with));
  return n;
}

}  // namespace

TEST_CASE("marks on tensors and scopes reach the program, and tensors computed at once are handed through") {
  auto const x = tensor::randn({4, 4}, 3);
  CHECK(keep(x).values<float>() == x.values<float>());
  CHECK(run_once(relu(x)).values<float>() == relu(x).values<float>());
  perceptron m;
  initialise(m, 1);
  m.how = mark::kept;
  CHECK(count(step_of(m).program, "gelu", pin::keep) == 1);
  m.how = mark::once;
  CHECK(count(step_of(m).program, "gelu", pin::run_once) == 1);
  m.how = mark::scope;
  auto const g = step_of(m).program;
  CHECK(count(g, "gelu", pin::never_in_parts) == 1);
  CHECK(count(g, "matmul", pin::never_in_parts) == 1);
  CHECK(count(g, "gelu", pin::never_out) == 1);
}

TEST_CASE("each micro-batch has the pins of the model") {
  perceptron m;
  initialise(m, 1);
  m.how = mark::once;
  training_options o;
  o.micro_batches = 4;
  CHECK(count(step_of(m, o).program, "gelu", pin::run_once) == 4);
  m.how = mark::none;
  o.pins = {{pin::never_out, "gelu"}};
  CHECK(count(step_of(m, o).program, "gelu", pin::never_out) == 8);
}

TEST_CASE("what is kept is not recovered in its gradient, and pinned updates are not fused") {
  perceptron m;
  initialise(m, 1);
  auto const recovered = [&](perceptron& model, training_options const& o) {
    return count(step_of(model, o).program, "gelu_grad_and_result", {});
  };
  auto const plain = recovered(m, {});
  REQUIRE(plain > 0);
  m.how = mark::kept;
  CHECK(recovered(m, {}) == plain - 1);
  m.how = mark::once;
  CHECK(recovered(m, {}) == plain - 1);
  // A user who asks for one result, by pattern, before the passes: the op is there and pinned.
  m.how = mark::none;
  training_options o;
  o.pins = {{pin::run_once, "gelu_grad*"}};
  auto const g = step_of(m, o).program;
  CHECK(count(g, "gelu_grad", pin::run_once) == 2);
  CHECK(count(g, "gelu_grad_and_result", {}) == 0);
  o.pins = {{pin::keep, "no such op"}};
  CHECK(message_of([&] { (void)step_of(m, o); }).ends_with("pin keep: no op or value matches \"no such op\""));
}

TEST_CASE("a model with pins trains as without, to the bit, and its plans break none") {
  perceptron free, pinned_one;
  initialise(free, 5), initialise(pinned_one, 5);
  pinned_one.how = mark::kept;
  constexpr auto moves = chain(rematerialize{} | truncate(16), fission{} | truncate(8));
  auto const plan_of = [&](auto const& step) {
    search_options o;
    o.iterations = 150;
    o.set(memory_limit::of_original(0.8));
    return optimize(step, moves, o).placed;
  };
  auto const one = step_of(free), two = step_of(pinned_one);
  auto const p = plan_of(two);
  CHECK(verify_plan(two.program, p).message() == "");
  CHECK(broken_pins(two.program, p.graph).first == "");
  host_backend backend(1);
  trainer a(one, plan_of(one), backend), b(two, p, backend);
  for (int i = 0; i < 3; ++i) CHECK(a(sample) == b(sample));
}

TEST_CASE("pins that exclude each other are told where they are made") {
  struct both {
    nn::linear f{24, 5};
    tensor operator()(tensor const& x) const { return run_again(keep(f(x))); }
  };
  both m;
  initialise(m, 1);
  auto const said = message_of([&] { (void)training_step(m, sample, cross_entropy{}, sgd{}); });
  CHECK(said.find("pins.cpp") != std::string::npos);
  CHECK(said.find("which exclude each other") != std::string::npos);
}
