#include <neap/model/nn/mixture_of_experts.hpp>

#include <neap/model/model.hpp>

#include "../support/message.hpp"
#include "../support/quotients.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::check_quotients;
using neap::testing::message_of;

namespace {

using numbers = std::vector<double>;

void compare(numbers const& got, numbers const& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-9).scale(1e-3));
}

numbers softmax_of(numbers v) {
  double total = 0;
  for (auto& x : v) total += x = std::exp(x);
  for (auto& x : v) x /= total;
  return v;
}

/// Each token by itself: the experts with the largest numbers, and nothing of the others.
template <class Expert>
void check_mixture(std::int64_t count, std::int64_t chosen) {
  CAPTURE(count);
  CAPTURE(chosen);
  nn::mixture_of_experts<Expert> m(4, 6, count, chosen);
  initialise(m, 5);
  set_element(m, dtype::f64);
  auto const x = tensor::randn({2, 5, 4}, 1, dtype::f64);
  tensor balance;
  auto const y = m(x, &balance);
  CHECK(y.shape() == x.shape());
  CHECK(m(x).template values<double>() == y.template values<double>());

  auto const tokens = reshape(x, {10, 4}), got = reshape(y, {10, 4});
  numbers share(static_cast<std::size_t>(count)), probability(share.size());
  for (std::int64_t t = 0; t < 10; ++t) {
    tensor const token = slice(tokens, 0, t, t + 1);
    auto const logits = m.router(token).template values<double>();
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
    order.resize(static_cast<std::size_t>(chosen));
    numbers taken;
    for (auto e : order) taken.push_back(logits[e]), share[e] += 0.1 / static_cast<double>(chosen);
    taken = softmax_of(taken);
    numbers expected(4);
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto const part = m.experts[order[i]](token).template values<double>();
      for (std::size_t k = 0; k < part.size(); ++k) expected[k] += taken[i] * part[k];
    }
    compare(slice(got, 0, t, t + 1).template values<double>(), expected);
    auto const p = softmax_of(logits);
    for (std::size_t e = 0; e < p.size(); ++e) probability[e] += p[e] / 10;
  }
  double expected = 0;
  for (std::size_t e = 0; e < share.size(); ++e) expected += static_cast<double>(count) * share[e] * probability[e];
  CHECK(balance.template item<double>() == doctest::Approx(expected).epsilon(1e-9));
  tensor twice = balance;
  m(x, &twice);
  CHECK(twice.template item<double>() == doctest::Approx(2 * expected).epsilon(1e-9));
}

void check_place(std::string const& what, int line, std::string_view text) {
  CAPTURE(what);
  CHECK(what.starts_with("mixture_of_experts.cpp:" + std::to_string(line) + ": "));
  CHECK(what.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("a mixture is each token's weighted sum of its experts, and none is dropped") {
  for (auto [count, chosen] : {std::pair{1, 1}, {4, 1}, {4, 2}, {5, 5}, {8, 3}}) {
    check_mixture<nn::gated_mlp>(count, chosen);
    check_mixture<nn::mlp_block>(count, chosen);
  }
}

TEST_CASE("the balance is 1 for a router that knows no preference, more for one that always chooses the same") {
  nn::mixture_of_experts<> m(4, 6, 4, 1);
  m.router.weight.restart(initialiser::constant(0));
  auto const x = tensor::ones({8, 4});
  tensor even;
  m(x, &even);
  CHECK(even.item<double>() == doctest::Approx(1));
  auto* w = m.router.weight.data<float>();
  std::fill(w + 4, w + 8, 5.f);
  tensor same;
  m(x, &same);
  CHECK(same.item<double>() == doctest::Approx(4).epsilon(1e-3));
}

TEST_CASE("gradients of a mixture and of its balance are the difference quotients") {
  struct {
    nn::mixture_of_experts<> mix{4, 6, 4, 2};
    parameter x{{7, 4}, initialiser::normal(0, 1)};
  } m;
  check_quotients(m, [&] {
    tensor balance;
    tensor const y = m.mix(m.x, &balance);
    return sum(square(y)) + 3 * balance;
  });
}

TEST_CASE("mixtures that cannot be are told with the line") {
  for (std::int64_t chosen : {0, 5})
    check_place(message_of([&] { nn::mixture_of_experts<>(4, 6, 4, chosen); }), __LINE__,
                "mixture_of_experts: cannot choose " + std::to_string(chosen) + " of 4 experts");
  nn::mixture_of_experts<> const m(4, 6, 4, 2);
  check_place(message_of([&] { m(tensor::ones({2, 5})); }), __LINE__, "linear: inner extents differ, [2,5] x [4,4]");
}
