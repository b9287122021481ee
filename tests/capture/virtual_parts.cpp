// Layers behind pointers to a base, function pointers, functions with captured variables: what a path depends on of them.
#include <neap/capture/walk.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/execute/compile.hpp>

#include <functional>
#include <memory>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::sample;

namespace {

struct layer {
  layer() = default;
  layer(layer const&) = delete;
  layer& operator=(layer const&) = delete;
  virtual ~layer() = default;
  virtual tensor operator()(tensor const& x) = 0;
  virtual void neap_parts(parts& list) = 0;
};
struct dense final : layer {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(5, 0)};
  state<int> calls{0};
  tensor operator()(tensor const& x) override {
    ++calls;
    tensor const loss = mean(matmul(x, w));
    assign(w, w - grad(loss, {w})[0] * 0.1);
    return matmul(x, w);
  }
  void neap_parts(parts& list) override { list(w, calls); }
};
struct scaling final : layer {
  state<float> by{2};
  int power = 1;
  tensor operator()(tensor const& x) override {
    by *= 0.9F;
    tensor y = x;
    for (int i = 0; i < power; ++i) y = y * by;
    return y;
  }
  void neap_parts(parts& list) override { list(by, power); }
};
struct network {
  std::vector<std::unique_ptr<layer>> layers;
  state<int> n{0};
};
network new_network() {
  network m;
  m.layers.push_back(std::make_unique<dense>());
  m.layers.push_back(std::make_unique<scaling>());
  return m;
}

}  // namespace

TEST_CASE("virtual layers with states and weights of their own: one graph; an exchanged layer is another") {
  auto const f = [](network& m, tensor x) {
    ++m.n;
    for (auto const& l : m.layers) x = (*l)(x);
    return x * m.n;
  };
  network m = new_network(), plain = new_network();
  auto step = compile(f);
  for (int i = 0; i < 30; ++i) {
    if (i == 20)
      for (auto* each : {&m, &plain}) each->layers[0] = std::make_unique<scaling>();
    if (i == 26)
      for (auto* each : {&m, &plain}) static_cast<scaling&>(*each->layers[1]).power = 2;
    CAPTURE(i);
    CAPTURE(step.why_missed());
    CHECK(step(m, sample(i)).values<float>() == f(plain, sample(i)).values<float>());
    CHECK(content_of(m) == content_of(plain));
    if (i == 19) {
      CHECK(step.graphs() == 1);
      CHECK(static_cast<dense&>(*m.layers[0]).calls.plain() == 20);
    }
    if (i == 25) CHECK(step.graphs() == 2);
  }
  CHECK(step.graphs() == 3);
}

TEST_CASE("a function pointer decides by identity, an empty callable by its type") {
  struct rectifier {
    tensor operator()(tensor const& x) const { return relu(x); }
  };
  struct activated {
    tensor (*activation)(tensor const&) = [](tensor const& x) { return neap::tanh(x); };
    rectifier after;
    state<int> n{0};
  } m;
  auto const f = [](activated& s, tensor const& x) {
    ++s.n;
    return s.after(s.activation(x) * s.n);
  };
  auto step = compile(f);
  for (int i = 0; i < 20; ++i) {
    if (i == 10) m.activation = [](tensor const& x) { return x * x; };
    activated plain = m;
    CHECK(step(m, sample(i)).values<float>() == f(plain, sample(i)).values<float>());
  }
  CHECK(step.graphs() == 2);
}

TEST_CASE("a tensor that a lambda captures is refused with its line; functions are promised by fixed") {
  tensor const foreign = sample(3);
  auto bad = compile(fixed([&](network&, tensor const& x) { return x * foreign; }));
  network m = new_network();
  CHECK(message_of([&] { bad(m, sample(1)); }).find("virtual_parts.cpp:") == 0);
  CHECK(bad.graphs() == 0);
  std::function<tensor(network&, tensor const&)> const any = [scale = 3.0](network& s, tensor const& x) {
    ++s.n;
    return x * scale;
  };
  auto step = compile(fixed(any));
  for (int i = 0; i < 5; ++i) CHECK(step(m, sample(i)).values<float>() == (sample(i) * 3.0).values<float>());
  CHECK(step.graphs() == 1);
  CHECK(m.n.plain() == 5);
}
