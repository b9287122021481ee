// Lesson 2: a model is a plain struct of modules. neap finds its weights, and their names, by looking into it.
#include <neap/neap.hpp>

#include <cstdio>
#include <vector>

struct block {
  neap::nn::layer_norm norm{32};
  neap::nn::linear up{32, 64}, down{64, 32};
  neap::tensor operator()(neap::tensor const& x) const { return x + down(neap::gelu(up(norm(x)))); }
};

struct classifier {
  neap::nn::linear in{2, 32};
  std::vector<block> blocks{2};
  neap::nn::linear out{32, 2};
  neap::tensor operator()(neap::tensor x) const {
    x = in(x);
    for (auto const& b : blocks) x = b(x);
    return out(x);
  }
};

int main() {
  classifier model;
  neap::initialise(model, 1);  // the same weights for the same seed
  for (auto const& [name, t] : neap::named_tensors(model, neap::role::weight))
    std::printf("%-20s %s\n", name.c_str(), neap::to_string(t.type()).c_str());

  // Two classes: inside and outside of a circle.
  auto const x = neap::tensor::randn({256, 2}, 7);
  std::vector<std::int64_t> inside;
  auto const v = x.values<float>();
  for (std::size_t i = 0; i < v.size(); i += 2) inside.push_back(v[i] * v[i] + v[i + 1] * v[i + 1] < 1.4f);
  auto const y = neap::tensor::from(inside, {256});

  neap::training_state state;
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    last = neap::eager_step(model, std::pair{x, y}, neap::cross_entropy{}, neap::adamw{.rate = 3e-3}, state)
               .item<double>();
    if (step == 0) first = last;
  }
  neap::evaluation const no_training;
  auto const guess = neap::arg_max(model(x)).values<std::int64_t>();
  int right = 0;
  for (std::size_t i = 0; i < guess.size(); ++i) right += guess[i] == inside[i];
  std::printf("loss %.3f -> %.3f, %d of 256 right\n", first, last, right);
  return last < 0.5 * first && right > 230 ? 0 : 1;
}
