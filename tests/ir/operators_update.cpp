#include <neap/ir/operators/update.hpp>

#include "../support/operator_check.hpp"

using namespace neap;
using namespace neap::testing;

namespace {
/// Reference of an update: f(w, g, states..., step) gives the new values of its outputs at one place.
template <class F>
reference each(F f) {
  return [f](arrays const& in) {
    numbers out;
    for (std::int64_t i = 0; i < in[0].count(); ++i) {
      std::vector<double> x;
      for (auto const& a : in) x.push_back(a[a.count() == 1 ? 0 : i]);
      auto const y = f(x);
      out.resize(y.size());
      for (std::size_t j = 0; j < y.size(); ++j) out[j].push_back(y[j]);
    }
    return out;
  };
}
using row = std::vector<double>;
}  // namespace

TEST_CASE("optimizers follow their formulas") {
  shape const w{7, 9};
  operand const step{{}, 3, 4, dtype::i64};
  operator_checks const checks{.f32_tolerance = 1e-5};
  check_operator(op::sgd{0.1, 0.01}, {{w}, {w}},
                 each([](row const& x) { return row{x[0] - 0.1 * (x[1] + 0.01 * x[0])}; }), checks);
  for (bool nesterov : {false, true})
    check_operator(op::momentum{0.1, 0.9, 0.2, 0.01, nesterov}, {{w}, {w}, {w}}, each([nesterov](row const& x) {
                     double const d = x[1] + 0.01 * x[0], m = 0.9 * x[2] + 0.8 * d;
                     return row{x[0] - 0.1 * (nesterov ? d + 0.9 * m : m), m};
                   }),
                   checks);
  auto const adam = [](bool decoupled) {
    return each([decoupled](row const& x) {
      double const g = decoupled ? x[1] : x[1] + 0.05 * x[0], m = 0.9 * x[2] + 0.1 * g, v = 0.99 * x[3] + 0.01 * g * g,
                   t = x[4];
      double const root = std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8;
      return row{x[0] * (decoupled ? 1 - 0.01 * 0.05 : 1) - 0.01 * (m / (1 - std::pow(0.9, t))) / root, m, v};
    });
  };
  check_operator(op::adam{0.01, 0.9, 0.99, 1e-8, 0.05}, {{w}, {w}, {w}, {w, 0, 1}, step}, adam(false), checks);
  check_operator(op::adamw{0.01, 0.9, 0.99, 1e-8, 0.05}, {{w}, {w}, {w}, {w, 0, 1}, step}, adam(true), checks);
}

TEST_CASE("counters, accumulators, clipping") {
  check_operator(op::increment{}, {{{}, 5, 6, dtype::i64}}, [](arrays const&) { return numbers{{6}}; });
  check_operator(op::accumulate{}, {{{4, 6}}, {{4, 6}}}, each([](row const& x) { return row{x[0] + x[1]}; }));
  check_operator(op::reset{}, {{{4, 6}}}, each([](row const&) { return row{0}; }));
  double const x = 0.5 * 0.5 * 24;
  CHECK(check_operator(op::sum_squares{}, {{{4, 6}, 0.5, 0.5}}, [&](arrays const&) { return numbers{{x}}; }) == 2);
  auto const kernel = [](auto const& op, arrays in) {
    return testing::detail::run(view_of(op), kernel_of<host_backend, std::remove_cvref_t<decltype(op)>>(), in)[0][0];
  };
  array total(tensor_layout::dense({dtype::f64, {}})), values(tensor_layout::dense({dtype::f32, {2}}));
  total.set(0, 16), values.set(0, 3), values.set(1, 0);
  CHECK(kernel(op::sum_squares{}, {values, total}) == 25);
  CHECK(kernel(op::clip_factor{2}, {total}) == doctest::Approx(0.5));
  CHECK(kernel(op::clip_factor{5}, {total}) == 1);
  total.set(0, 0.5);
  CHECK(kernel(op::scale_by{}, {values, total}) == 1.5);
}
