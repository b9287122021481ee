// Lesson 20: four recipes for training: a moving average of weights, two networks that train against each other, a state
// that a model carries from step to step, and low-rank adapters (LoRA) beside frozen weights.
#include <neap/neap.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

struct network {
  neap::nn::linear in{2, 32}, out{32, 1};
  neap::tensor operator()(neap::tensor const& x) const { return out(neap::gelu(in(x))); }
};

/// Moves the weights of `average`, a copy of `model`, a part of the way to the model's; running statistics are copied.
template <class Model>
void move_average(Model& average, Model& model, double part) {
  neap::no_gradient const plain;
  auto const to = neap::parameters(average), from = neap::parameters(model);
  for (std::size_t i = 0; i < to.size(); ++i) neap::assign(to[i], to[i] * (1 - part) + from[i] * part);
  auto const kept = neap::buffers(average), newest = neap::buffers(model);
  for (std::size_t i = 0; i < kept.size(); ++i) neap::assign(kept[i], newest[i]);
}

bool averages(neap::host_backend& backend) {
  network model;
  neap::initialise(model, 1);
  network average = model;  // a copy has weights of its own
  auto const x = neap::tensor::randn({64, 2}, 1);
  std::pair const batch{x, neap::sum(x, {1}, true)};
  auto const step = neap::training_step(model, batch, neap::mse{}, neap::adamw{.rate = 1e-2});
  neap::trainer run(step, neap::plan_in_order(step.program), backend);
  double expected = average.out.bias.item<double>();
  for (int i = 0; i < 20; ++i) {
    run(batch);
    move_average(average, model, 0.1);
    expected = 0.9 * expected + 0.1 * model.out.bias.item<double>();
  }
  bool const right = std::abs(average.out.bias.item<double>() - expected) < 1e-6;
  std::printf("the average of a bias %s\n", right ? "follows it" : "DIFFERS");
  return right;
}

/// Each step trains one network; the loss may depend on weights of the other one, which stay as they are.
bool two_networks(neap::host_backend& backend) {
  network generator, critic;
  neap::initialise(generator, 1), neap::initialise(critic, 2);
  auto const ones = neap::tensor::ones({64, 1}), zeros = neap::tensor::zeros({64, 1});
  neap::binary_cross_entropy_with_logits const judged;
  auto const made_of = [](network const& net, neap::tensor const& noise) {
    return neap::concat({net(noise), net(neap::neg(noise))}, 1);  // (64, 2)
  };
  auto const of_critic = [&](network& net, std::pair<neap::tensor, neap::tensor> const& real_and_noise) {
    auto const made = made_of(generator, real_and_noise.second).detach();
    return judged(net(real_and_noise.first), ones) + judged(net(made), zeros);
  };
  auto const of_generator = [&](network& net, neap::tensor const& noise) {
    return judged(critic(made_of(net, noise)), ones);
  };
  auto const draw = [](std::uint64_t i) {
    return std::pair{neap::tensor::randn({64, 2}, 2 * i) + 1.0, neap::tensor::randn({64, 2}, 2 * i + 1)};
  };
  neap::adamw const optimizer{.rate = 1e-2};
  auto const critic_step = neap::training_step(critic, draw(0), of_critic, optimizer, {.other_weights = true});
  auto const generator_step =
      neap::training_step(generator, draw(0).second, of_generator, optimizer, {.other_weights = true});
  neap::trainer train_critic(critic_step, neap::plan_in_order(critic_step.program), backend);
  neap::trainer train_generator(generator_step, neap::plan_in_order(generator_step.program), backend);
  double of_first = 0, of_second = 0;
  bool apart = true;
  for (std::uint64_t i = 0; i < 50; ++i) {
    auto const batch = draw(i);
    auto const before = generator.in.weight.values<float>();
    of_first = train_critic(batch);
    apart = apart && generator.in.weight.values<float>() == before;
    auto const of_critic_before = critic.in.weight.values<float>();
    of_second = train_generator(batch.second);
    apart = apart && critic.in.weight.values<float>() == of_critic_before;
  }
  std::printf("losses of two networks: %.3f and %.3f; each step %s\n", of_first, of_second,
              apart ? "trains one of them" : "TRAINS BOTH");
  return apart && std::isfinite(of_first) && std::isfinite(of_second);
}

/// Sequences in pieces: the state after one piece is where the next step begins, and no gradient goes back through it.
struct carried {
  neap::nn::gru_cell cell{2, 16};
  neap::nn::linear head{16, 1};
  neap::buffer memory{{64, 16}};
  neap::tensor operator()(neap::tensor const& x) const {
    auto const next = cell(x, memory);
    neap::assign(memory, next);
    return head(next);
  }
};

bool carries(neap::host_backend& backend) {
  carried model, eager;
  neap::initialise(model, 1), neap::initialise(eager, 1);
  std::pair const batch{neap::tensor::randn({64, 2}, 1), neap::tensor::ones({64, 1})};
  auto const step = neap::training_step(model, batch, neap::mse{}, neap::sgd{.rate = 0.1});
  neap::trainer run(step, neap::plan_in_order(step.program), backend);
  neap::training_state state;
  bool same = true;
  for (int i = 0; i < 5; ++i) {
    double const loss = run(batch);
    same = same && loss == neap::eager_step(eager, batch, neap::mse{}, neap::sgd{.rate = 0.1}, state).item<double>();
  }
  bool const moved = neap::max(neap::abs(model.memory)).item<double>() > 0;
  neap::assign(model.memory, neap::tensor::zeros({64, 16}));  // a new sequence begins
  bool const cleared = neap::max(neap::abs(model.memory)).item<double>() == 0 && std::isfinite(run(batch));
  std::printf("a carried state %s\n", same && moved && cleared ? "goes on and starts anew" : "IS LOST");
  return same && moved && cleared;
}

/// A linear layer with an adapter of low rank: the layer is frozen, `down` and `up` train, and `up` begins at 0.
struct adapted {
  neap::nn::linear base;
  neap::parameter down, up;
  double scale;
  adapted(std::int64_t in, std::int64_t out, std::int64_t rank, double alpha)
      : base(in, out),
        down({rank, in}, neap::initialiser::normal(0, 0.02)),
        up({out, rank}),
        scale(alpha / static_cast<double>(rank)) {}
  neap::tensor operator()(neap::tensor const& x) const {
    return base(x) + neap::linear(neap::linear(x, down, {}), up, {}) * scale;
  }
  /// Adds the adapter to the layer, which then gives what both gave together.
  void merge() {
    neap::no_gradient const plain;
    neap::assign(base.weight, base.weight + neap::matmul(up, down) * scale);
    neap::assign(up, up * 0.0);
  }
  friend auto neap_fields(neap::refers_as<adapted> auto& self) { return std::tie(self.base, self.down, self.up); }
  static constexpr std::array neap_names{"base", "down", "up"};
};

struct adapted_network {
  adapted in{2, 32, 4, 8}, out{32, 1, 1, 2};
  neap::tensor operator()(neap::tensor const& x) const { return out(neap::gelu(in(x))); }
};

bool adapts(neap::host_backend& backend) {
  adapted_network model;
  neap::initialise(model, 1);
  neap::requires_gradient(model, "*", false);
  neap::requires_gradient(model, "*.down", true);
  neap::requires_gradient(model, "*.up", true);
  auto const x = neap::tensor::randn({64, 2}, 1);
  std::pair const batch{x, neap::sum(x, {1}, true)};
  auto const step = neap::training_step(model, batch, neap::mse{}, neap::adamw{.rate = 1e-2});
  neap::trainer run(step, neap::plan_in_order(step.program), backend);
  auto const base = model.in.base.weight.values<float>();
  double const first = run(batch);
  double last = first;
  for (int i = 0; i < 100; ++i) last = run(batch);
  bool const frozen = model.in.base.weight.values<float>() == base;
  auto const before = model(x).values<double>();
  model.in.merge(), model.out.merge();
  auto const after = model(x).values<double>();
  double error = 0;
  for (std::size_t i = 0; i < before.size(); ++i) error = std::max(error, std::abs(before[i] - after[i]));
  std::printf("adapters: loss %.4f -> %.4f, weights %s, merged to %.1e\n", first, last, frozen ? "frozen" : "MOVED",
              error);
  return frozen && last < 0.5 * first && error < 1e-4;
}

}  // namespace

int main() {
  neap::host_backend backend(1);
  bool const right[] = {averages(backend), two_networks(backend), carries(backend), adapts(backend)};
  return right[0] && right[1] && right[2] && right[3] ? 0 : 1;
}
