#include <neap/ir/operators/reduction.hpp>

#include "../support/operator_check.hpp"

#include <algorithm>
#include <limits>

using namespace neap;
using namespace neap::testing;

namespace {
template <class Op>
void reduces(double start, auto const& f, bool mean = false) {
  struct {
    shape x;
    extents axes;
  } const cases[] = {{{4, 6}, {}}, {{4, 6}, {1}}, {{4, 6}, {0}}, {{2, 3, 4}, {0, -1}}, {{2, 300}, {1}}, {{}, {}}};
  for (auto const& c : cases)
    for (bool keep : {false, true})
      check_operator(Op{c.axes, keep}, {{c.x}}, [&](arrays const& in) {
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
      });
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
