// Lengths that make no other graph (any_length): results and states are those of eager calls for every length; graphs are
// counted, planned, kept and dropped as what any_length says.
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/capture/sym_functions.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::content_of;

namespace {

struct attention_net {
  nn::linear q{8, 8}, k{8, 8}, v{8, 8};
  state<int> steps = 0;
  tensor mean_of_last;
};

attention_net new_net() {
  attention_net m;
  initialise(m, 4);
  return m;
}
tensor words(std::int64_t length, std::uint64_t seed) { return tensor::randn({2, length, 8}, seed); }

/// A training step: positions attend to one another, so that lengths meet lengths; its loss.
tensor trained(attention_net& m, tensor const& x, tensor const& weight_of_position) {
  tensor const scores = softmax(matmul(m.q(x), transpose(m.k(x), 1, 2)) * 0.35, 2);
  tensor const y = matmul(scores, m.v(x)) * weight_of_position;
  tensor const loss = mean(square(y - x));
  auto const weights = parameters(m);
  auto const g = grad(loss, weights);
  for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - 0.1 * g[i]);
  if (++m.steps % 3 == 0) m.mean_of_last = mean(x, 1);
  return loss;
}

/// Plans as another planner does, and counts what it is called for.
template <class Plan>
struct counted {
  Plan plan_it;
  int *first, *after;
  std::vector<bytes_t>* arenas = nullptr;
  plan operator()(graph const& g, bytes_t original, detail::planned_before const* like) const {
    ++*(like ? after : first);
    auto made = plan_it(g, original, like);
    if (arenas) arenas->push_back(made.arena_bytes);
    return made;
  }
};

}  // namespace

TEST_CASE("calls of any length are one graph for each path, with the bits of eager calls") {
  auto step = compile(&trained, {.graphs = 2, .lengths = {any_length(1, 2), any_length{.axis = 0, .argument = 3}}});
  auto mine = new_net(), plain = new_net();
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < 24; ++i) {
      std::int64_t const length = 2 + i * 5 % 24;
      auto const x = words(length, 7);
      auto const w = tensor::randn({length, 1}, 8);
      CHECK(step(mine, x, w).values<float>() == trained(plain, x, w).values<float>());
      CHECK(content_of(mine) == content_of(plain));
      CHECK(step.graphs() <= 2);
    }
  CHECK(step.graphs() == 2);  // every third step keeps a mean
  CHECK(step.why_missed().find("limit") == std::string::npos);
}

TEST_CASE("the first length is planned by a search, others after its plan, within their own limits") {
  int first = 0, after = 0;
  std::vector<bytes_t> arenas;
  auto const how = plan_with(rematerialize{}, memory_limit::of_original(0.9), time_budget{std::chrono::seconds(20)});
  auto step = compile(&trained, counted<decltype(how)>{how, &first, &after, &arenas},
                      {.lengths = {any_length(1), any_length{.axis = 0, .argument = 3}}});
  auto mine = new_net(), plain = new_net();
  for (std::int64_t length = 40; length < 52; ++length) {
    auto const x = words(length, 7);
    auto const w = tensor::randn({length, 1}, 8);
    mine.steps = plain.steps = 0;
    CHECK(step(mine, x, w).values<float>() == trained(plain, x, w).values<float>());
    auto const made = arenas.size();
    mine.steps = plain.steps = 0;
    CHECK(step(mine, x, w).values<float>() == trained(plain, x, w).values<float>());
    CHECK(content_of(mine) == content_of(plain));
    CHECK(arenas.size() == made);  // the second call has a graph
  }
  CHECK(step.graphs() == 1);
  CHECK(first == 1);
  CHECK(after == 11);
  CHECK(std::is_sorted(arenas.begin(), arenas.end()));
}

TEST_CASE("a plan that does not fit with another length is searched again, or the call says so") {
  auto const x = words(12, 1), longer = words(48, 2), w = tensor::ones({12, 1}), more = tensor::ones({48, 1});
  auto m = new_net();
  auto const small = plan_in_order(compile(&trained).graphs_for(m, x, w)[0]).arena_bytes;
  auto const large = plan_in_order(compile(&trained).graphs_for(m, longer, more)[0]).arena_bytes;
  REQUIRE(small < large * 8 / 10);
  any_length const lengths[] = {any_length(1), any_length{.axis = 0, .argument = 3}};
  for (bool const can : {true, false}) {
    auto step = compile(&trained, plan_with(rematerialize{}, memory_limit(can ? large * 9 / 10 : small * 11 / 10)),
                        {.lengths = {lengths[0], lengths[1]}});
    auto mine = new_net(), plain = new_net();
    (void)step(mine, x, w), (void)trained(plain, x, w);
    for (int i = 0; i < 2; ++i) {
      CHECK(step(mine, longer, more).values<float>() == trained(plain, longer, more).values<float>());
      CHECK(content_of(mine) == content_of(plain));
    }
    CHECK((step.why_missed().find("no plan") != std::string::npos) == !can);
  }
}

TEST_CASE("bounds, arguments and axes: other lengths make other graphs") {
  auto const twice = [](tensor const& x, tensor const& y) { return x * 2 + mean(y); };
  auto graphs = [&](any_length l, std::vector<std::pair<shape, shape>> const& calls) {
    auto f = compile(twice, {.lengths = {l}});
    for (auto const& [a, b] : calls) {
      auto const x = tensor::randn(a, 1), y = tensor::randn(b, 2);
      CHECK(f(x, y).values<float>() == twice(x, y).values<float>());
    }
    return f.graphs();
  };
  CHECK(graphs(any_length(0, 3, 5), {{{3}, {4}}, {{4}, {3}}, {{5}, {5}}}) == 1);
  CHECK(graphs(any_length(0, 3, 5), {{{3}, {4}}, {{6}, {4}}, {{2}, {4}}, {{2}, {5}}}) == 3);
  CHECK(graphs(any_length(-1), {{{2, 3}, {4}}, {{2, 5}, {6}}, {{2, 1}, {1}}}) == 1);
  CHECK(graphs(any_length(-1), {{{2, 3}, {4}}, {{3, 3}, {4}}}) == 2);
  CHECK(graphs({.axis = 0, .argument = 2}, {{{3}, {4}}, {{3}, {5}}, {{4}, {5}}}) == 2);
  CHECK(graphs(any_length(3), {{{3}, {4}}, {{3}, {5}}}) == 2);
}

TEST_CASE("weights keep their lengths; views of a longer tensor are calls of their lengths") {
  auto const apply = [](nn::linear& m, tensor const& x) { return m(x); };
  auto f = compile(apply, {.lengths = {any_length(0), any_length(1)}});
  nn::linear wide(4, 6), narrow(4, 2);
  for (auto* m : {&wide, &narrow, &wide}) {
    auto const x = tensor::randn({9, 4}, 3);
    for (std::int64_t n = 1; n < 9; ++n)
      CHECK(f(*m, slice(x, 0, 1, 1 + n)).values<float>() == apply(*m, slice(x, 0, 1, 1 + n)).values<float>());
  }
  CHECK(f.graphs() == 2);
}

TEST_CASE("lengths of a path that reads an element between its graphs") {
  auto const decided = [](tensor const& x, sym<double> by) {
    tensor const y = softmax(x * by, 0);
    tensor const total = sum(x);
    if (total.item<float>() > 0) return y + total;
    return y - 1;
  };
  auto f = compile(decided, {.graphs = 2, .lengths = {any_length(0)}});
  for (int pass = 0; pass < 2; ++pass)
    for (std::int64_t n = 1; n < 12; ++n)
      for (double const by : {-1.0, 0.5}) {
        auto const x = tensor::randn({n}, static_cast<std::uint64_t>(n));
        CHECK(f(x, sym<double>(by)).values<float>() == decided(x, sym<double>(by)).values<float>());
      }
  CHECK(f.graphs() <= 2);
  CHECK(f.why_missed().find("limit") == std::string::npos);
}

TEST_CASE("of too many lengths the one that was used least recently is dropped, of graphs likewise") {
  auto const decided = [](tensor const& x, int by) { return by == 0 ? x + 1 : x * by; };
  int planned = 0, none = 0;
  auto const in_order = [](graph const& g, bytes_t, detail::planned_before const*) { return plan_in_order(g); };
  counted<decltype(in_order)> const how{in_order, &planned, &planned};
  auto f = compile(decided, how, {.lengths = {any_length(0)}, .max_lengths = 3});
  auto const call = [&](std::int64_t n, int by) {
    auto const x = tensor::randn({n}, 5);
    CHECK(f(x, by).values<float>() == decided(x, by).values<float>());
    return std::exchange(planned, none);
  };
  CHECK(call(1, 2) + call(2, 2) + call(3, 2) == 3);
  CHECK(call(1, 2) == 0);
  CHECK(call(4, 2) == 1);  // in place of length 2
  CHECK(call(1, 2) + call(3, 2) + call(4, 2) == 0);
  CHECK(call(2, 2) == 1);
  CHECK(f.graphs() == 1);

  auto g = compile(decided, how, {.graphs = 2, .full = when_full::drop_oldest, .lengths = {any_length(0)}});
  for (int i = 0; i < 60; ++i) {
    auto const x = tensor::randn({1 + i % 4}, 5);
    int const by = i / 7 % 4;
    CHECK(g(x, by).values<float>() == decided(x, by).values<float>());
    CHECK(g.graphs() <= 2);
  }
}
