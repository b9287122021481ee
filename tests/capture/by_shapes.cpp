// Captures without data: the graphs of running, no memory, arguments as they were, and planned calls from the first on.
#include <neap/execute/capture.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/capture/cond.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/default_moves.hpp>

#include <stdexcept>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::sample;

namespace {

struct training {
  nn::linear up{4, 8}, down{8, 3};
  nn::batch_norm2d norm{2};
  std::vector<buffer> sums;
  state<int> steps{0};
  state<double> rate{0.1};
  buffer counter{{}, initialiser::constant(0), dtype::i64};
  tracked_vector<tensor> history;
  tracked_map<std::string, tensor> features;
  tracked_generator random{3};
  tensor last;
  std::string name = "first";
  int seen = 0;

  tensor operator()(tensor const& x) const {
    tensor const h = reshape(norm(reshape(up(x), {x.size(0), 2, 2, 2})), {x.size(0), 8});
    return down(relu(h));
  }
};
training new_training() {
  training t;
  initialise(t, 3);
  for (auto const& w : parameters(t)) t.sums.emplace_back(w.shape());
  return t;
}
tensor labels(int i) { return tensor::from<std::int64_t>({i % 3, (i + 1) % 3, 2}, {3}); }

/// All that a step may touch, without a decision by data.
tensor step(training& s, tensor const& x, tensor const& y) {
  step_clock clock(s.counter);
  random_scope const draws(7, clock);
  auto const weights = parameters(s);
  tensor const predicted = dropout(s(x), 0.25);
  tensor loss = cross_entropy{}(predicted, y);
  if (s.history.size() > 0) loss = loss + mean(predicted * s.history.back()) * 0.1;
  auto const g = grad(loss, weights);
  for (std::size_t i = 0; i < g.size(); ++i) {
    assign(s.sums[i], s.sums[i] * 0.9 + g[i]);
    assign(weights[i], weights[i] - s.sums[i] * s.rate);
  }
  s.history.push_back(predicted.detach());
  if (s.history.size() > 2) s.history.erase(s.history.begin());
  s.features["loss"] = loss.detach();
  s.rate *= 0.99;
  s.last = predicted.detach() + 1;
  if (++s.steps % 3 == 0 || s.random.uniform() < 0.3) s.last = s.last * 2;
  return loss;
}

/// The graphs that a compiled function has captured.
struct kept_graphs {
  std::shared_ptr<std::vector<graph>> all = std::make_shared<std::vector<graph>>();
  plan operator()(graph const& g) const {
    all->push_back(g);
    return plan_in_order(g);
  }
};

}  // namespace

TEST_CASE("by shapes: the graph of running, with nothing computed and all arguments as they were") {
  training m = new_training();
  kept_graphs captured;
  auto compiled = compile(&step, captured);
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    tensor const x = sample(i), y = labels(i);
    auto const before = content_of(m);
    auto const graphs = capture<shapes_only>(&step, m, x, y);
    REQUIRE(content_of(m) == before);
    REQUIRE(graphs.size() == 1);
    auto const paths = compiled.graphs();
    (void)compiled(m, x, y);
    if (compiled.graphs() == paths) continue;
    CHECK(graphs.front().digest() == captured.all->back().digest());
    CHECK(graphs.front().op_count() == captured.all->back().op_count());
  }
  CHECK(compiled.graphs() > 3);
}

TEST_CASE("a prepared function runs its planned graphs from the first call on") {
  training m = new_training(), plain = new_training();
  auto compiled = compile(&step, plan_with(default_moves, memory_limit::of_original(1.0)));
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    tensor const x = sample(i), y = labels(i);
    compiled.prepare(m, x, y);
    auto const paths = compiled.graphs();
    compiled.prepare(m, x, y);
    REQUIRE(content_of(m) == content_of(plain));
    tensor a = compiled(m, x, y), b = step(plain, x, y);
    REQUIRE(content_of(a) == content_of(b));
    REQUIRE(content_of(m) == content_of(plain));
    REQUIRE(compiled.graphs() == paths);
    REQUIRE(compiled.why_missed().empty());
  }
}

TEST_CASE("a model that no memory holds is captured and planned") {
  struct vast {
    parameter w{{1 << 20, 1 << 20}, initialiser::normal(0, 1)}, v{{1 << 20, 8}, initialiser::normal(0, 1)};
    state<int> n{0};
  } m;
  auto const f = [](vast& s, tensor const& x) {
    ++s.n;
    tensor const loss = mean(matmul(relu(matmul(x, s.w)), s.v));
    auto const g = grad(loss, {s.w, s.v});
    assign(s.w, s.w - g[0] * 0.1), assign(s.v, s.v - g[1] * 0.1);
    return loss;
  };
  tensor const x = tensor::randn({1 << 10, 1 << 20}, 1);
  auto const graphs = capture<shapes_only>(f, m, x);
  REQUIRE(graphs.size() == 1);
  CHECK(plan_in_order(graphs.front()).arena_bytes > bytes_t{1} << 42);
  CHECK(!m.w.storage()->is_allocated());
  CHECK(!x.storage()->is_allocated());
  CHECK(m.n.plain() == 0);
}

TEST_CASE("what a value decides is refused by shapes, with the place and a remedy") {
  training m = new_training();
  auto const before = content_of(m);
  auto const refused = [&](auto f) {
    auto const text = message_of([&] { (void)capture<shapes_only>(f, m, sample(1)); });
    CHECK(text.find("by_shapes.cpp:") == 0);
    CHECK(content_of(m) == before);
    // Running decides.
    training its = m;
    auto compiled = compile(f);
    CHECK_THROWS_AS(compiled.prepare(its, sample(1)), error);
    (void)compiled(its, sample(1));
    CHECK(compiled.graphs() == 1);
    return text;
  };
  CHECK(refused([](training& s, tensor const& x) {
          ++s.steps;
          s.name = "second", s.seen = 4;
          s.last = x * 2;
          return item<float>(sum(x)) > 0 ? x : -x;
        }).find("neap::where") != std::string::npos);
  CHECK(refused([](training&, tensor const& x) { return x * sum(x).item<float>(); }).find("neap::cond") !=
        std::string::npos);
  CHECK(refused([](training& s, tensor const& x) {
          s.steps = external([] { return 3; });
          return s.steps > 2 ? x : -x;
        }).find("neap::external") != std::string::npos);
  CHECK(refused([](training&, tensor const& x) {
          return x + external([] { return tensor::ones({4}); });
        }).find("whose type") != std::string::npos);

  // What is decided by where and cond, and by what the program knows, is not.
  auto const graphs = capture<shapes_only>(
      [](training& s, tensor const& x) {
        auto const size = item<float>(sum(x));
        tensor const y = cond(
            size > 0, [&] { return x * 2; }, [&] { return x + size; });
        return s.random.uniform() < 2 ? where(x > 0, y, x) : x;
      },
      m, sample(1));
  CHECK(!graphs.empty());
}

TEST_CASE("by shapes: effects and functions of the host wait for calls") {
  static std::vector<float> lines;
  static int calls;
  lines.clear(), calls = 0;
  auto const f = [](training& s, tensor const& x) {
    tensor const loss = mean(x * x);
    effect([](float l, int n) { lines.push_back(l + static_cast<float>(n)); }, item<float>(loss), s.steps);
    auto const factor = external([] { return static_cast<float>(++calls); });
    ++s.steps;
    return loss * factor / item<float>(loss);
  };
  training m = new_training(), plain = new_training();
  auto compiled = compile(f);
  compiled.prepare(m, sample(0));
  CHECK(lines.empty());
  CHECK(calls == 0);
  for (int i = 0; i < 4; ++i) {
    tensor const mine = compiled(m, sample(i));
    --calls;
    tensor const its = f(plain, sample(i));
    CHECK(mine.values<float>() == its.values<float>());
  }
  REQUIRE(lines.size() == 8);
  for (std::size_t k = 0; k < 8; k += 2) CHECK(lines[k] == lines[k + 1]);
  CHECK(compiled.graphs() == 1);
  CHECK(compiled.why_missed().empty());
}

TEST_CASE("by shapes: exceptions pass, containers that change their length are refused") {
  training m = new_training();
  auto const before = content_of(m);
  auto const throws = [](training& s, tensor const& x) {
    assign(s.up.weight, s.up.weight * 2);
    ++s.steps;
    s.features["x"] = x;
    s.last = x;
    if (x.size(0) == 3) throw std::out_of_range("rows");
    return x;
  };
  CHECK_THROWS_AS((void)capture<shapes_only>(throws, m, sample(1)), std::out_of_range);
  CHECK(content_of(m) == before);
  CHECK((sample(1) * 2).values<float>()[0] == 2 * sample(1).values<float>()[0]);

  struct grown {
    std::vector<tensor> all;
  } g;
  auto const text = message_of([&] {
    (void)capture<shapes_only>([](grown& s, tensor const& x) { return s.all.push_back(x), x; }, g, sample(1));
  });
  CHECK(text.find("neap::tracked_vector") != std::string::npos);
}

TEST_CASE("by shapes: states that an optimizer lacks are made, and the first step runs planned") {
  struct trained {
    nn::linear up{4, 8}, down{8, 3};
    training_state of;
    state<int> n{0};
  } m, plain;
  initialise(m, 3), initialise(plain, 3);
  auto const f = [](trained& t, tensor const& x, tensor const& y) {
    ++t.n;
    tensor const loss = eager_step(
        t.up, std::pair{x, y},
        [](nn::linear const& l, std::pair<tensor, tensor> const& b) { return cross_entropy{}(l(b.first), b.second); },
        adamw{.rate = 0.1}, t.of);
    assign(t.down.bias, t.down.bias + t.n);
    return loss;
  };
  tensor const x = sample(1), y = labels(1);
  auto const graphs = capture<shapes_only>(f, m, x, y);
  CHECK(!graphs.empty());
  auto compiled = compile(f);
  compiled.prepare(m, x, y);
  CHECK(m.n.plain() == 0);
  CHECK(content_of(m.up) == content_of(plain.up));
  for (int i = 0; i < 3; ++i) {
    tensor a = compiled(m, x, y), b = f(plain, x, y);
    CHECK(content_of(a) == content_of(b));
    CHECK(content_of(m) == content_of(plain));
    CHECK(compiled.why_missed().empty());
  }
  CHECK(compiled.graphs() == 1);
}

TEST_CASE("by shapes: a history from before the capture keeps what it has read") {
  struct with_buffer {
    parameter w{{4}, initialiser::constant(2)};
    buffer b{{4}, initialiser::constant(3)};
  } m;
  tensor const loss = sum(m.w * m.b);
  (void)capture<shapes_only>(
      [](with_buffer& s, tensor const& x) {
        assign(s.b, s.b + x), assign(s.w, s.w * x);
        return s.b * s.w;
      },
      m, tensor::ones({4}));
  CHECK(grad(loss, {m.w})[0].values<float>() == std::vector<float>(4, 3));
  assign(m.b, m.b * 5);
  tensor const again = sum(m.w * m.b);
  CHECK(grad(again, {m.w})[0].values<float>() == std::vector<float>(4, 15));
}

TEST_CASE("by shapes: the library's steps, and what no plan runs") {
  struct net {
    nn::linear up{4, 8}, down{8, 1};
    tensor operator()(tensor const& x) const { return down(tanh(up(x))); }
  } m;
  initialise(m, 1);
  auto const f = [](net& s, tensor const& x) {
    tensor const loss = mean(s(x));
    auto const weights = parameters(s);
    auto const g = grad(loss, weights);
    for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - g[i] * 0.1);
    return loss;
  };
  auto compiled = compile(f, plan_with(default_moves, memory_limit{bytes_t{64}}));
  CHECK(message_of([&] { compiled.prepare(m, sample(1)); }).find("no plan fits") != std::string::npos);
}
