// Lesson 16: a training loop in eager style, compiled. The step below keeps a counter, lowers its rate, accumulates
// gradients over four calls and records a loss now and then. Each path of its branches becomes one graph, planned under a
// limit of memory, with the bits of the plain function.
#include <neap/execute/compile.hpp>
#include <neap/neap.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

struct network {
  neap::nn::linear in{16, 128}, middle{128, 128}, out{128, 1};
  neap::tensor operator()(neap::tensor const& x) const { return out(neap::tanh(middle(neap::tanh(in(x))))); }
};

// All that the function reads and writes from call to call is in its arguments. Numbers that change are a state: a plain
// int would be part of the path, and each of its values a graph.
struct training {
  network model;
  std::vector<neap::buffer> sums;
  neap::state<int> calls{0};
  neap::state<double> rate{0.1};
  neap::buffer recorded{{}};
};

neap::tensor train(training& t, neap::tensor const& x, neap::tensor const& y) {
  auto const weights = neap::parameters(t.model);
  neap::tensor const difference = t.model(x) - y;
  neap::tensor const loss = neap::mean(difference * difference);
  auto const gradients = neap::grad(loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) neap::assign(t.sums[i], t.sums[i] + gradients[i]);
  ++t.calls;
  if (t.calls % 4 == 0) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      neap::assign(weights[i], weights[i] - t.sums[i] * (t.rate / 4));
      neap::assign(t.sums[i], t.sums[i] * 0.0);
    }
    t.rate *= 0.99;
  }
  if (t.calls % 10 == 0) neap::assign(t.recorded, loss);
  return loss;
}

training new_training() {
  training t;
  neap::initialise(t.model, 1);
  for (auto const& w : neap::parameters(t.model)) t.sums.emplace_back(w.shape());
  return t;
}

int main() {
  auto const x = neap::tensor::randn({256, 16}, 2);
  auto const y = neap::sum(x, {1}, true);

  auto step = neap::compile(train, neap::plan_with(neap::default_moves, neap::memory_limit::of_original(0.8)));
  training compiled = new_training(), eager = new_training();
  bool same = true;
  float first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    last = step(compiled, x, y).item<float>();
    if (i == 0) first = last;
    same = same && last == train(eager, x, y).item<float>();
  }
  same = same && compiled.model.in.weight.values<float>() == eager.model.in.weight.values<float>() &&
         compiled.recorded.values<float>() == eager.recorded.values<float>() &&
         compiled.rate.value() == eager.rate.value();

  // Steps that update, steps that record, both and neither.
  std::printf("loss %.4f -> %.4f in %zu graphs, %s the plain function\n", first, last, step.graphs(),
              same ? "the bits of" : "NOT THE BITS OF");
  return same && step.graphs() == 4 && last < 0.5f * first ? EXIT_SUCCESS : EXIT_FAILURE;
}
