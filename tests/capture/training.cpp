// Training loops written as eager code, captured whole: forward, gradients, updates, counters, schedules.
#include <neap/execute/compile.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/mutate/default_moves.hpp>

#include <thread>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;
using neap::testing::message_of;

namespace {

struct net {
  nn::linear up{4, 8}, down{8, 3};
  nn::batch_norm2d norm{2};
  state<int> steps{0};
  state<double> rate{0.1};
  buffer last{{}};
  tensor operator()(tensor const& x) const {
    tensor const h = reshape(norm(reshape(up(x), {x.size(0), 2, 2, 2})), {x.size(0), 8});
    return down(relu(h));
  }
};
struct adam_state {
  std::vector<buffer> first, second;
  buffer corrections{{2}, initialiser::constant(1)};
};
struct training {
  net model;
  adam_state adam;
  std::vector<buffer> sums;
};
training new_training() {
  training t;
  initialise(t.model, 3);
  for (auto const& w : parameters(t.model)) {
    t.adam.first.emplace_back(w.shape());
    t.adam.second.emplace_back(w.shape());
    t.sums.emplace_back(w.shape());
  }
  return t;
}

auto batch(int i) {
  std::vector<std::int64_t> labels;
  for (int k = 0; k < 5; ++k) labels.push_back((i + k) % 3);
  return std::tuple{tensor::randn({5, 4}, static_cast<std::uint64_t>(i) + 1), tensor::from(labels, {5})};
}
tensor loss_of(net& m, tensor const& x, tensor const& y) { return neap::cross_entropy{}(m(x), y); }

}  // namespace

TEST_CASE("descent with a schedule of the rate and a counter is one graph but for the steps that decide") {
  training t = new_training();
  auto const f = [](training& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.model);
    tensor const loss = loss_of(s.model, x, y);
    auto const g = grad(loss, weights);
    for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - g[i] * s.model.rate);
    ++s.model.steps;
    s.model.rate *= 0.99;
    if (s.model.steps % 10 == 0) assign(s.model.last, loss);
    return loss;
  };
  CHECK(compare(f, t, 50, batch) == 2);
  CHECK(t.model.steps.plain() == 50);
}

TEST_CASE("adam by hand, and gradients accumulated over four calls") {
  training t = new_training();
  auto const f = [](training& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.model);
    tensor const loss = loss_of(s.model, x, y);
    auto const g = grad(loss, weights);
    ++s.model.steps;
    for (std::size_t i = 0; i < g.size(); ++i) assign(s.sums[i], s.sums[i] + g[i]);
    if (s.model.steps % 4 == 0) {
      assign(s.adam.corrections, s.adam.corrections * tensor::from({0.9F, 0.999F}, {2}));
      tensor const c = 1 - s.adam.corrections;
      for (std::size_t i = 0; i < g.size(); ++i) {
        auto &m = s.adam.first[i], &v = s.adam.second[i];
        assign(m, m * 0.9 + s.sums[i] * 0.1);
        assign(v, v * 0.999 + s.sums[i] * s.sums[i] * 0.001);
        assign(weights[i], weights[i] - 0.01 * (m / c[0]) / (sqrt(v / c[1]) + 1e-8));
        assign(s.sums[i], s.sums[i] * 0);
      }
    }
    return loss;
  };
  CHECK(compare(f, t, 40, batch) == 2);
}

TEST_CASE("dropout within a random scope draws as the eager step does") {
  struct dropping {
    parameter w{{4, 4}, initialiser::normal(0, 1).with_seed(1, 0)};
    buffer counter{{}, initialiser::constant(0), dtype::i64};
  } m;
  CHECK(compare(
            [](dropping& d, tensor const& x) {
              step_clock clock(d.counter);
              random_scope const draws(7, clock);
              tensor const loss = mean(dropout(matmul(x, d.w), 0.5));
              auto const g = grad(loss, {d.w});
              assign(d.w, d.w - g[0]);
              return loss;
            },
            m, 20,
            [](int i) {
              return std::tuple{tensor::randn({3, 4}, static_cast<std::uint64_t>(i))};
            }) == 1);
  CHECK(m.counter.item<std::int64_t>() == 20);
}

TEST_CASE("two models that are trained in turn, one frozen in part") {
  struct pair {
    net first, second;
  } m;
  initialise(m.first, 1), initialise(m.second, 2);
  requires_gradient(m.second.up, false);
  auto const f = [](pair& p, tensor const& x, tensor const& y) {
    for (auto* n : {&p.first, &p.second}) {
      auto const weights = trained_parameters(*n);
      auto const g = grad(loss_of(*n, x, y), weights);
      for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - 0.1 * g[i]);
    }
    return loss_of(p.first, x, y) - loss_of(p.second, x, y);
  };
  CHECK(compare(f, m, 12, batch) == 1);
}

TEST_CASE("a training step under a memory limit takes less, and computes the same bits") {
  struct deep {
    std::vector<nn::linear> layers = std::vector<nn::linear>(8, nn::linear(32, 32));
  };
  auto const f = [](deep& d, tensor const& x) {
    auto const weights = parameters(d);
    tensor h = x;
    for (auto const& l : d.layers) h = neap::tanh(l(h)) * 0.5 + h;
    tensor const loss = mean(h * h);
    auto const g = grad(loss, weights);
    for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - 0.1 * g[i]);
    return loss;
  };
  deep m, plain;
  initialise(m, 4), initialise(plain, 4);
  auto step =
      compile(f, plan_with(default_moves, memory_limit::of_original(0.7), time_budget{std::chrono::seconds(20)}));
  for (int i = 0; i < 4; ++i) {
    tensor const x = tensor::randn({512, 32}, static_cast<std::uint64_t>(i));
    CHECK(step(m, x).values<float>() == f(plain, x).values<float>());
    CHECK(content_of(m) == content_of(plain));
  }
  CHECK(step.graphs() == 1);
}

TEST_CASE("two threads call one compiled function, each with its own model") {
  training a = new_training(), b = new_training();
  auto const f = [](training& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.model);
    tensor const loss = loss_of(s.model, x, y);
    auto const g = grad(loss, weights);
    for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - g[i] * s.model.rate);
    ++s.model.steps;
    return loss;
  };
  training plain = a;
  auto step = compile(f);
  auto const train = [&](training& t) {
    for (int i = 0; i < 50; ++i) {
      auto [x, y] = batch(i);
      (void)step(t, x, y);
    }
  };
  std::thread other([&] { train(b); });
  train(a);
  other.join();
  for (int i = 0; i < 50; ++i) {
    auto [x, y] = batch(i);
    (void)f(plain, x, y);
  }
  CHECK(content_of(a) == content_of(plain));
  CHECK(content_of(b) == content_of(plain));
  CHECK(step.graphs() >= 1);
  CHECK(step.graphs() <= 2);  // one, if the padding of the two models' norms is equal
}
