// Lesson 18: mixed precision. The model computes in bf16 or f16, in half the memory of f32; weights, the optimizer's states
// and sums stay f32. A training in f16 finds a scale for its loss: a step whose gradients overflow changes nothing, and the
// next one has a smaller scale.
#include <neap/neap.hpp>

#include <cmath>
#include <cstdio>

struct network {
  neap::nn::linear in{64, 256}, middle{256, 256}, out{256, 10};
  neap::tensor operator()(neap::tensor const& x) const { return out(neap::gelu(middle(neap::gelu(in(x))))); }
};

int main() {
  auto const x = neap::tensor::randn({512, 64}, 1);
  std::pair const batch{x, neap::arg_max(neap::slice(x, 1, 0, 10), 1)};
  neap::adamw const optimizer{.rate = 2e-3};
  neap::host_backend backend(1);

  // Of each training: the memory beside weights and states, and the loss after 40 steps.
  auto const train = [&](neap::training_options options) {
    network model;
    neap::initialise(model, 1);
    neap::training_state state;
    options.state = &state;
    auto const step = neap::training_step(model, batch, neap::cross_entropy{}, optimizer, options);
    auto const plan = neap::plan_in_order(step.program);
    neap::trainer run(step, plan, backend);
    double loss = 0;
    for (int i = 0; i < 40; ++i) loss = run(batch);
    std::printf("%5.0f KiB, loss %.4f, %lld of 40 steps counted\n",
                static_cast<double>(plan.arena_bytes - plan.resident_bytes) / 1024, loss,
                static_cast<long long>(state.counter().item<std::int64_t>()));
    return std::pair{plan.arena_bytes - plan.resident_bytes, loss};
  };
  auto const [full_bytes, full] = train({});
  auto const [low_bytes, low] = train({.precision = neap::mixed{neap::dtype::bf16}});
  // This scale is far too large: some steps overflow until it has come down.
  auto const [half_bytes, half] = train({.precision = neap::mixed{.element = neap::dtype::f16, .loss_scale = 0x1p30}});

  // The forward pass alone, at once and planned; an evaluator keeps the precision that it was made in.
  network model;
  neap::initialise(model, 1);
  neap::precision_scope const scope(neap::dtype::bf16);
  neap::evaluator evaluate(model, x, backend);
  neap::evaluation const off;
  bool const same = evaluate(x).values<float>() == model(x).values<float>();
  std::printf("an evaluation in bf16 %s\n", same ? "agrees with the model" : "DIFFERS");

  bool const learned = std::abs(low - full) < 0.05 && std::abs(half - full) < 0.2;
  bool const smaller = 4 * low_bytes < 3 * full_bytes && 4 * half_bytes < 3 * full_bytes;
  return learned && smaller && same ? 0 : 1;
}
