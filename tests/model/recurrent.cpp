#include <neap/model/nn/recurrent.hpp>

#include <neap/model/model.hpp>
#include <neap/train/loss.hpp>

#include "../support/message.hpp"
#include "../support/quotients.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::check_quotients;
using neap::testing::message_of;

namespace {

using numbers = std::vector<double>;

tensor f64(shape const& s, std::uint64_t seed) { return tensor::randn(s, seed, dtype::f64); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

void compare(numbers const& got, numbers const& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-9).scale(1e-3));
  }
}

/// weight (out, in) x + bias, of one sequence.
numbers product(nn::linear const& l, numbers const& x) {
  auto const w = l.weight.values<double>();
  auto y = l.bias.is_empty() ? numbers(w.size() / x.size()) : l.bias.values<double>();
  for (std::size_t i = 0; i < w.size(); ++i) y[i / x.size()] += w[i] * x[i % x.size()];
  return y;
}
/// The state (h, c) after one step of one sequence.
void step(nn::lstm_cell const& cell, numbers const& x, numbers& h, numbers& c) {
  auto const a = product(cell.input, x), b = product(cell.state, h);
  std::size_t const n = h.size();
  for (std::size_t k = 0; k < n; ++k) {
    auto const gate = [&](std::size_t g) { return a[g * n + k] + b[g * n + k]; };
    c[k] = sigmoid_of(gate(1)) * c[k] + sigmoid_of(gate(0)) * std::tanh(gate(2));
    h[k] = sigmoid_of(gate(3)) * std::tanh(c[k]);
  }
}
void step(nn::gru_cell const& cell, numbers const& x, numbers& h, numbers&) {
  auto const a = product(cell.input, x), b = product(cell.state, h);
  std::size_t const n = h.size();
  for (std::size_t k = 0; k < n; ++k) {
    double const r = sigmoid_of(a[k] + b[k]), z = sigmoid_of(a[n + k] + b[n + k]);
    h[k] = (1 - z) * std::tanh(a[2 * n + k] + r * b[2 * n + k]) + z * h[k];
  }
}

nn::lstm_state state_of(nn::lstm const&, shape const& s, std::uint64_t seed) {
  return {f64(s, seed), f64(s, seed + 9)};
}
tensor state_of(nn::gru const&, shape const& s, std::uint64_t seed) { return f64(s, seed); }
std::vector<tensor> parts(nn::lstm_state const& s) { return {s.hidden, s.cell}; }
std::vector<tensor> parts(tensor const& s) { return {s}; }

template <class Net>
Net network(std::int64_t in, std::int64_t width, std::int64_t layers) {
  Net net(in, width, {.layers = layers});
  initialise(net, 7);
  set_element(net, dtype::f64);
  return net;
}

template <class Net>
void check_network() {
  for (std::int64_t layers : {1, 3})
    for (std::int64_t steps : {1, 5})
      for (bool given : {false, true}) {
        CAPTURE(layers);
        CAPTURE(steps);
        CAPTURE(given);
        std::int64_t const batch = 2, in = 3, width = 4;
        auto const net = network<Net>(in, width, layers);
        auto const x = f64({batch, steps, in}, 1);
        typename Net::states first;
        for (std::int64_t l = 0; given && l < layers; ++l)
          first.push_back(state_of(net, {batch, width}, 20 + static_cast<std::uint64_t>(l)));
        auto const got = net(x, first);
        CHECK(got.output.shape() == shape{batch, steps, width});
        REQUIRE(got.last.size() == net.layers.size());

        for (std::int64_t s = 0; s < batch; ++s) {
          std::vector<numbers> seen;
          for (std::int64_t t = 0; t < steps; ++t)
            seen.push_back(select(select(x, 0, s), 0, t).template values<double>());
          for (std::size_t l = 0; l < net.layers.size(); ++l) {
            std::vector<numbers> state(2, numbers(static_cast<std::size_t>(width)));
            for (std::size_t k = 0; given && k < parts(first[l]).size(); ++k)
              state[k] = select(parts(first[l])[k], 0, s).template values<double>();
            for (auto& v : seen) {
              step(net.layers[l], v, state[0], state[1]);
              v = state[0];
            }
            for (std::size_t k = 0; k < parts(got.last[l]).size(); ++k)
              compare(select(parts(got.last[l])[k], 0, s).template values<double>(), state[k]);
          }
          for (std::int64_t t = 0; t < steps; ++t)
            compare(select(select(got.output, 0, s), 0, t).template values<double>(),
                    seen[static_cast<std::size_t>(t)]);
        }
      }
}

/// Whole sequences, halves that go on from one another, and single steps of the cell are the same.
template <class Net>
void check_going_on() {
  auto const net = network<Net>(3, 4, 2);
  auto const x = f64({2, 6, 3}, 1);
  auto const whole = net(x);
  auto const half = net(slice(x, 1, 0, 2));
  auto const rest = net(slice(x, 1, 2, 6), half.last);
  compare(concat({half.output, rest.output}, 1).template values<double>(), whole.output.template values<double>());
  auto state = half.last;
  for (std::int64_t t = 2; t < 6; ++t) {
    tensor y = select(x, 1, t);
    for (std::size_t l = 0; l < state.size(); ++l) {
      state[l] = net.layers[l](y, state[l]);
      y = parts(state[l])[0];
    }
    compare(y.template values<double>(), select(whole.output, 1, t).template values<double>());
  }
}

template <class Net>
void check_gradients() {
  struct {
    Net net{3, 4, {.layers = 2}};
    parameter x{{2, 4, 3}, initialiser::normal(0, 1)};
  } m;
  auto const y = f64({2, 4, 4}, 5);
  check_quotients(m, [&] {
    auto const r = m.net(m.x);
    tensor loss = mse{}(r.output, y);
    for (auto const& s : r.last)
      for (auto const& t : parts(s)) loss = loss + sum(square(t));
    return loss;
  });
}

void check_place(std::string const& what, int line, std::string_view text) {
  CAPTURE(what);
  CHECK(what.starts_with("recurrent.cpp:" + std::to_string(line) + ": "));
  CHECK(what.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("lstm against plain loops") { check_network<nn::lstm>(); }
TEST_CASE("gru against plain loops") { check_network<nn::gru>(); }
TEST_CASE("a sequence may be cut anywhere, down to single steps of the cells") {
  check_going_on<nn::lstm>();
  check_going_on<nn::gru>();
}
TEST_CASE("gradients of recurrent networks are the difference quotients") {
  check_gradients<nn::lstm>();
  check_gradients<nn::gru>();
}

TEST_CASE("dropout is between layers, in training") {
  auto one = nn::gru(3, 4, {.dropout = 1}), two = nn::gru(3, 4, {.layers = 2, .dropout = 1});
  auto const x = tensor::randn({2, 3, 3}, 1);
  for (auto v : one(x).output.values<float>()) CHECK(v != 0);
  auto const none = two(x).output.values<float>();
  CHECK(none == two(tensor::randn({2, 3, 3}, 2)).output.values<float>());  // the second layer sees zeros
  evaluation const off;
  CHECK(none != two(x).output.values<float>());
}

TEST_CASE("names of a recurrent network's weights") {
  nn::lstm lstm(3, 4, {.layers = 2});
  std::string names;
  for (auto const& [name, t] : named_tensors(lstm, role::weight)) names += name + to_string(t.shape()) + " ";
  CHECK(names ==
        "layers.0.input.weight[16,3] layers.0.input.bias[16] layers.0.state.weight[16,4] "
        "layers.1.input.weight[16,4] layers.1.input.bias[16] layers.1.state.weight[16,4] ");
  nn::gru gru(3, 4);
  CHECK(named_tensors(gru, role::weight).size() == 4);
}

TEST_CASE("a trace makes the products with the inputs of a layer once, and nothing that nobody reads") {
  nn::lstm const net(3, 4, {.layers = 2});
  auto const p = trace([&](tensor const& x) { return net(x * 1).output; }, tensor::ones({2, 5, 3}));
  std::size_t products = 0;
  for (auto o : p.program.ops()) {
    products += p.program.facets(o).name == "matmul";
    bool read = false;
    for (auto v : p.program.outputs(o)) read = read || p.program.is_kept(v) || !p.program.uses(v).empty();
    CHECK(read);
  }
  CHECK(products == 2 + 2 * 5);
}

TEST_CASE("what a recurrent network cannot take is told with the line") {
  nn::lstm const lstm(3, 4);
  nn::gru const gru(3, 4, {.layers = 2});
  auto const x = tensor::ones({2, 5, 3}), h = tensor::ones({2, 4}), wrong = tensor::ones({2, 5});
  check_place(message_of([&] { lstm(h); }), __LINE__, "lstm: takes (batch, at least one step, width), got f32[2,4]");
  check_place(message_of([&] { gru(tensor::ones({2, 0, 3})); }), __LINE__, "gru: takes (batch, at least one step");
  check_place(message_of([&] { gru(x, {h}); }), __LINE__, "gru: has 2 layers, got states of 1");
  nn::lstm::states const bad{{h, wrong}};
  check_place(message_of([&] { lstm(x, bad); }), __LINE__, "lstm: the state must have shape [2,4], got f32[2,5]");
  check_place(message_of([&] { gru.layers[0](select(x, 1, 0), wrong); }), __LINE__,
              "gru: the state must have shape [2,4], got f32[2,5]");
  auto const wide = tensor::ones({2, 5, 6});
  check_place(message_of([&] { lstm(wide); }), __LINE__, "lstm: takes inputs of width 3, got f32[2,5,6]");
  check_place(message_of([&] { nn::lstm(3, 4, {.layers = 0}); }), __LINE__, "lstm: needs at least one layer");
  check_place(message_of([&] { nn::gru(3, -4); }), __LINE__, "a tensor cannot have the shape [-12,3]");
}
