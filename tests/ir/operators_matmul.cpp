#include <neap/ir/operators/matmul.hpp>

#include "../support/operator_check.hpp"

using namespace neap;
using namespace neap::testing;

namespace {
numbers product(arrays const& in, bool ta, bool tb, shape const& y) {
  std::vector<double> out;
  int const r = y.rank();
  auto const& a = in[0];
  auto const& b = in[1];
  auto const matrix = [&](array const& x, std::int64_t batch) {  // where the matrix of y's batch-th begins
    std::int64_t at = 0, scale = x.layout.type.extent(-1) * x.layout.type.extent(-2);
    int const missing = r - x.layout.type.rank();
    for (int k = r - 3; k >= 0; --k) {
      if (k >= missing) {
        auto const n = x.layout.type.dims[k - missing];
        at += (n == 1 ? 0 : batch % y[k]) * scale;
        scale *= n;
      }
      batch /= y[k];
    }
    return at;
  };
  auto const m = y[r - 2], n = y[r - 1], inner = a.layout.type.extent(ta ? -2 : -1);
  for (std::int64_t batch = 0; m * n > 0 && batch < elements(y) / (m * n); ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double s = 0;
        for (std::int64_t k = 0; k < inner; ++k)
          s += a[matrix(a, batch) + (ta ? k * m + i : i * inner + k)] *
               b[matrix(b, batch) + (tb ? j * inner + k : k * n + j)];
        out.push_back(s);
      }
  return {out};
}
}  // namespace

TEST_CASE("products of matrices, transposed and batched") {
  struct operands {
    shape a, b, y;
  };
  std::vector<operands> cases{{{4, 6}, {6, 2}, {4, 2}},
                              {{1, 5}, {5, 1}, {1, 1}},
                              {{2, 3, 4}, {4, 6}, {2, 3, 6}},
                              {{2, 3, 4}, {2, 4, 6}, {2, 3, 6}},
                              {{2, 1, 3, 4}, {3, 4, 2}, {2, 3, 3, 2}},
                              {{3, 4}, {2, 4, 2}, {2, 3, 2}},
                              {{2, 3, 4}, {4, 0}, {2, 3, 0}},
                              {{2, 3, 0}, {0, 4}, {2, 3, 4}},
                              {{0, 3, 4}, {4, 2}, {0, 3, 2}},
                              {{2, 0, 4}, {2, 4, 3}, {2, 0, 3}}};
  random_stream draw(31, 1);
  for (int i = 0; i < 6; ++i) {
    shape const batch = random_shape(draw, 0, 3);
    shape c = batch, a = random_part(draw, batch), b = random_part(draw, batch);
    std::int64_t const m = 1 + draw.below(5), k = 1 + draw.below(5), n = 1 + draw.below(5);
    (draw.below(2) ? a : b) = batch;
    c.push_back(m), c.push_back(n), a.push_back(m), a.push_back(k), b.push_back(k), b.push_back(n);
    cases.push_back({a, b, c});
  }
  std::uint64_t seed = 0;
  for (auto const& c : cases)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        auto const turned = [](shape s, bool turn) {
          if (turn) std::swap(s[s.rank() - 2], s[s.rank() - 1]);
          return s;
        };
        int const cuts = check_operator(
            op::matmul{ta, tb}, {{turned(c.a, ta)}, {turned(c.b, tb)}},
            [&](arrays const& in) { return product(in, ta, tb, c.y); }, {}, ++seed);
        if (c.y == shape{4, 2}) CHECK(cuts == 4);
      }
}

TEST_CASE("what does not fit is told") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const a = e.add_source(role::input, {dtype::f32, {32, 64}}),
             b = e.add_source(role::input, {dtype::f32, {128, 10}});
  std::string told;
  try {
    e.add(op::matmul{}, {a, b});
  } catch (error const& x) { told = x.what(); }
  CHECK(told == "matmul: inner extents differ, [32,64] x [128,10]");
}
