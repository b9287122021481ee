#include <neap/ir/operators/reduction.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

#include <algorithm>
#include <limits>

using namespace neap;
using namespace neap::testing;

namespace {
template <class Op>
void reduces(double start, auto const& f, bool mean = false) {
  struct reduced {
    shape x;
    extents axes;
  };
  std::vector<reduced> cases{{{4, 6}, {}},    {{4, 6}, {1}}, {{4, 6}, {0}},    {{2, 3, 4}, {0, -1}},
                             {{2, 300}, {1}}, {{}, {}},      {{3, 0}, {}},     {{3, 0}, {1}},
                             {{3, 0}, {0}},   {{0, 4}, {0}}, {{2, 0, 3}, {1}}, {{0}, {}}};
  random_stream draw(11, 1);
  for (int k = 0; k < 6; ++k) {
    reduced r{random_shape(draw, 1, 5), {}};
    for (int axis = 0; axis < r.x.rank(); ++axis)
      if (draw.below(2)) r.axes.push_back(draw.below(2) ? axis : axis - r.x.rank());
    cases.push_back(r);
  }
  std::uint64_t seed = 0;
  for (auto const& c : cases)
    for (bool keep : {false, true})
      check_operator(
          Op{c.axes, keep}, {{c.x}},
          [&](arrays const& in) {
            std::vector<double> y;
            std::vector<bool> marked(8, c.axes.empty());
            for (auto k : c.axes) marked[static_cast<std::size_t>(k < 0 ? k + c.x.rank() : k)] = true;
            std::int64_t outputs = 1;
            for (int k = 0; k < c.x.rank(); ++k) outputs *= marked[static_cast<std::size_t>(k)] ? 1 : c.x[k];
            y.assign(static_cast<std::size_t>(outputs), start);
            for (std::int64_t i = 0; i < in[0].count(); ++i) {
              std::int64_t at = 0, scale = 1, rest = i;
              for (int k = c.x.rank() - 1; k >= 0; --k) {
                if (!marked[static_cast<std::size_t>(k)]) at += rest % c.x[k] * scale, scale *= c.x[k];
                rest /= c.x[k];
              }
              auto& v = y[static_cast<std::size_t>(at)];
              v = f(v, in[0][i]);
            }
            if (mean)
              for (auto& v : y) v *= static_cast<double>(outputs) / static_cast<double>(in[0].count());
            return numbers{y};
          },
          {}, ++seed);
}
}  // namespace

TEST_CASE("reductions over axes") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  reduces<op::sum>(0, [](double a, double b) { return a + b; });
  reduces<op::mean>(
      0, [](double a, double b) { return a + b; }, true);
  reduces<op::max_reduce>(-inf, [](double a, double b) { return std::max(a, b); });
  reduces<op::min_reduce>(inf, [](double a, double b) { return std::min(a, b); });
  CHECK(check_operator(op::sum{{1}}, {{{4, 6}}}) == 2);
}

TEST_CASE("sums of integers are i64, counts of booleans too, and means are refused") {
  auto const total = [](arrays const& in) {
    double s = 0;
    for (double x : in[0].values()) s += x;
    return numbers{{s}};
  };
  for (auto element : {dtype::boolean, dtype::u8, dtype::i32, dtype::i64}) {
    double const high = element == dtype::boolean ? 2 : element == dtype::u8 ? 255 : 2e9;
    for (shape x : {shape{3, 700}, shape{70000}, shape{0}})
      check_operator(op::sum{}, {{x, 0, high, element}}, total, {.tolerance = 0, .f32_tolerance = 0});
    graph_editor e{operator_table(standard_operators::facets)};
    auto const x = e.add_source(role::input, {element, {4}});
    CHECK(e.graph().type(e.add(op::sum{}, {x})[0]).element == dtype::i64);
    CHECK(message_of([&] { e.add(op::mean{}, {x}); }) == "mean: the mean of integers is none, got " +
                                                             std::string(name_of(element)) +
                                                             "[4]: cast it to a floating type first");
    CHECK(e.graph().type(e.add(op::max_reduce{}, {x})[0]).element == element);
  }
}

TEST_CASE("the place of the largest element") {
  for (int axis : {0, 1, -1})
    check_operator(op::arg_max{axis}, {{{4, 6}}},
                   [axis](arrays const& in) {
                     std::vector<double> y;
                     int const n = axis == 0 ? 6 : 4, m = axis == 0 ? 4 : 6;
                     for (int i = 0; i < n; ++i) {
                       int best = 0;
                       auto const at = [&](int k) { return axis == 0 ? in[0].at({k, i}) : in[0].at({i, k}); };
                       for (int k = 1; k < m; ++k)
                         if (at(k) > at(best)) best = k;
                       y.push_back(best);
                     }
                     return numbers{y};
                   },
                   {.gradient = false});
}

TEST_CASE("running sums") {
  struct summed {
    shape x;
    std::int64_t axis;
  };
  std::vector<summed> cases{{{4, 6}, 1},    {{4, 6}, 0},      {{4, 6}, -2},      {{7}, 0},        {{2, 3, 4}, 1},
                            {{2, 1000}, 1}, {{1000, 2}, 0},   {{3, 10, 300}, 1}, {{2, 0, 3}, 0},  {{2, 0, 3}, 1},
                            {{1, 1}, 0},    {{2, 257, 3}, 1}, {{513, 257}, 0},   {{40, 256}, -1}, {{2, 3, 4, 5}, -3}};
  std::uint64_t seed = 0;
  for (auto const& c : cases)
    for (bool reverse : {false, true})
      for (auto element : {dtype::f64, dtype::i32, dtype::boolean}) {
        int const k = static_cast<int>(c.axis < 0 ? c.axis + c.x.rank() : c.axis);
        int const cuts = check_operator(
            op::cumsum{c.axis, reverse},
            {{c.x, element == dtype::boolean ? 0.0 : -9.0, element == dtype::boolean ? 2.0 : 9.0, element}},
            [&](arrays const& in) {
              std::int64_t inner = 1;
              for (int i = k + 1; i < c.x.rank(); ++i) inner *= c.x[i];
              std::vector<double> y = in[0].values();
              auto const n = static_cast<std::int64_t>(y.size());
              auto const at = [&](std::int64_t i) -> double& { return y[static_cast<std::size_t>(i)]; };
              for (std::int64_t i = 0; !reverse && i < n; ++i)
                if (i / inner % c.x[k] > 0) at(i) += at(i - inner);
              for (std::int64_t i = n - 1; reverse && i >= 0; --i)
                if (i / inner % c.x[k] < c.x[k] - 1) at(i) += at(i + inner);
              return numbers{y};
            },
            {}, ++seed);
        if (c.x == shape{2, 3, 4}) CHECK(cuts == 2);
      }
  graph_editor e{operator_table(standard_operators::facets)};
  auto const mask = e.add_source(role::input, {dtype::boolean, {4}});
  CHECK(e.graph().type(e.add(op::cumsum{0}, {mask})[0]).element == dtype::i64);
  CHECK(message_of([&] { e.add(op::cumsum{1}, {mask}); }) == "cumsum: no axis 1 in bool[4]");
}
