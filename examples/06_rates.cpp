// Lesson 6: learning rates and other numbers of an optimizer may be others in each step, without planning anew: by a
// schedule, for a group of weights, or as said for one step.
#include <neap/neap.hpp>

#include <cstdio>

struct network {
  neap::nn::linear in{4, 32}, out{32, 1};
  neap::tensor operator()(neap::tensor const& x) const { return out(neap::tanh(in(x))); }
};

int main() {
  network model;
  neap::initialise(model, 1);
  auto const x = neap::tensor::randn({128, 4}, 2);
  std::pair const batch{x, neap::sum(x, {1}, true)};

  neap::adamw const optimizer{.rate = neap::scheduled::cosine(3e-2, 1e-3, 200).warm_up(20),
                              .beta2 = [](std::int64_t step) { return step < 50 ? 0.99 : 0.999; }};
  neap::training_options options;
  options.groups = {{.match = "*.bias", .weight_decay = 0}, {.match = "out.*", .rate_factor = 0.5}};
  auto const step = neap::training_step(model, batch, neap::mse{}, optimizer, options);

  neap::host_backend backend(1);
  neap::trainer run(step, neap::plan_in_order(step.program), backend);
  double const first = run(batch);
  double last = first;
  for (int i = 1; i < 200; ++i) last = run(batch);
  std::printf("loss %.4f -> %.6f\n", first, last);

  auto const before = model.out.weight.values<float>();
  run(batch, {.rate = 0.0, .weight_decay = 0.0});  // this one step
  bool const stood = model.out.weight.values<float>() == before;
  std::printf("a step at rate 0 %s\n", stood ? "moves nothing" : "MOVES WEIGHTS");
  return last < 1e-2 * first && stood ? 0 : 1;
}
