#include <neap/ir/operators/update.hpp>

#include <neap/backend/kernels/optimizer.hpp>
#include <neap/ir/operators/matmul_update.hpp>
#include <neap/ir/verify.hpp>

#include <cmath>
#include <limits>
#include <string>

#include "../support/message.hpp"
#include "../support/newton_schulz.hpp"
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

TEST_CASE("muon is its authors' formulas, of weights wide and tall, as matrices and as images") {
  for (shape const& w : {shape{7, 9}, shape{12, 5}, shape{1, 6}, shape{6, 1}, shape{8, 8}, shape{3, 4, 2, 2},
                         shape{40, 2, 3}, shape{70, 90}})
    for (bool nesterov : {false, true})
      for (double rms : {0.0, 0.2}) {
        op::muon const op{.rate = 0.1, .beta = 0.9, .weight_decay = 0.05, .nesterov = nesterov, .rms = rms};
        auto const reference = [&](arrays const& in) {
          auto x = in[0].values(), m = in[2].values();
          plain_muon{0.1, 0.9, 0.05, nesterov, rms}.step(x, m, in[1].values(), w[0]);
          return numbers{x, m};
        };
        // Small singular values grow some 500 times, and their rounding with them.
        check_operator(op, {{w}, {w}, {w}}, reference, {.tolerance = 1e-9, .f32_tolerance = 5e-3});
      }
  check_operator(op::muon{}, {{{0, 3}}, {{0, 3}}, {{0, 3}}});
}

TEST_CASE("muon's direction has singular values near 1") {
  // Of a diagonal matrix they stand on the diagonal: the step itself at a rate of 1, from a weight of zeros.
  std::int64_t const n = 12;
  array w(tensor_layout::dense({dtype::f64, {n, n}})), g = w, m = w;
  for (std::int64_t i = 0; i < n * n; ++i) w.set(i, 0), g.set(i, 0), m.set(i, 0);
  for (std::int64_t i = 0; i < n; ++i) g.set(i * n + i, 1.0 / static_cast<double>(1 + i));
  auto const stepped =
      testing::detail::run(view_of(op::muon{.rate = 1}), host_kernel(facets_of<op::muon>), {w, g, m})[0];
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double const x = -stepped[i * n + j];
      if (i == j) CHECK((x > 0.6 && x < 1.3));
      else CHECK(std::fabs(x) < 1e-9);
    }
}

TEST_CASE("muon refuses what is no matrix") {
  auto const message = [](op::muon const& op, std::vector<tensor_type> const& in) {
    graph_editor e{graph{}.facet_table()};
    std::vector<value_id> v;
    for (auto const& t : in) v.push_back(e.add_source(role::weight, t));
    return message_of([&] { e.add(op, std::span<value_id const>(v)); });
  };
  tensor_type const row{dtype::f32, {6}}, matrix{dtype::f32, {4, 6}}, half{dtype::bf16, {4, 6}};
  CHECK(message({}, {row, row, row}) == "muon: updates weights of two axes or more, got f32[6]");
  CHECK(message({}, {half, half, half}) == "muon: the momentum must be of f32 or f64, got bf16[4,6]");
  CHECK(message({}, {half, half, matrix}) == "no error");
  CHECK(message({.iterations = 0}, {matrix, matrix, matrix}) == "muon: needs at least 1 iteration, got 0");
  CHECK(message({}, {matrix, {dtype::f32, {6, 4}}, matrix}) ==
        "muon: the gradient must have shape [4,6], got f32[6,4]");
}

TEST_CASE("adafactor is its paper's formulas") {
  operand const third{{}, 3, 4, dtype::i64};
  double const share = std::pow(3, -0.8), rate = 0.1, epsilon = 0.01, threshold = 0.7, decay = 0.05;
  for (shape const& w : {shape{7, 9}, shape{1, 6}, shape{6, 1}, shape{3, 4, 2, 2}, shape{70, 90}, shape{11}, shape{}}) {
    bool const matrix = w.rank() >= 2;
    auto const reference = [&](arrays const& in) {
      auto x = in[0].values(), g = in[1].values(), c = in[2].values(), r = matrix ? in[3].values() : row{1};
      std::size_t const columns = c.size(), rows = r.size();
      double mean = 0, u_squares = 0, w_squares = 0;
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < rows; ++i) sum += g[i * columns + j] * g[i * columns + j];
        c[j] += share * (sum / static_cast<double>(rows) - c[j]);
      }
      for (std::size_t i = 0; i < rows && matrix; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < columns; ++j) sum += g[i * columns + j] * g[i * columns + j];
        r[i] += share * (sum / static_cast<double>(columns) - r[i]);
      }
      for (double y : r) mean += y / static_cast<double>(rows);
      for (std::size_t i = 0; i < x.size(); ++i) {
        g[i] /= std::sqrt(r[i / columns] * c[i % columns] / mean);
        u_squares += g[i] * g[i], w_squares += x[i] * x[i];
      }
      double const n = static_cast<double>(x.size());
      double const step =
          rate * std::max(epsilon, std::sqrt(w_squares / n)) / std::max(1.0, std::sqrt(u_squares / n) / threshold);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = (1 - rate * decay) * x[i] - step * g[i];
      return matrix ? numbers{x, c, r} : numbers{x, c};
    };
    op::adafactor const op{rate, 0.8, epsilon, threshold, decay};
    neap::detail::weight_matrix const m(w);
    operand const column{{m.columns}, 0.1, 1}, rows{{m.rows}, 0.1, 1};
    std::vector<operand> in{{w}, {w}, column};
    if (matrix) in.push_back(rows);
    in.push_back(third);
    check_operator(op, in, reference, {.f32_tolerance = 1e-4});
  }
}

TEST_CASE("adafactor refuses states that are not its own") {
  auto const message = [](std::vector<tensor_type> const& in) {
    graph_editor e{graph{}.facet_table()};
    std::vector<value_id> v;
    for (auto const& t : in) v.push_back(e.add_source(role::weight, t));
    return message_of([&] { e.add(op::adafactor{}, std::span<value_id const>(v)); });
  };
  tensor_type const w{dtype::f32, {4, 6}}, column{dtype::f32, {6}}, row{dtype::f32, {4}}, step{dtype::i64, {}},
      half{dtype::bf16, {4, 6}};
  CHECK(message({w, w, column, row, step}) == "no error");
  CHECK(message({half, half, column, row, step}) == "no error");
  CHECK(message({row, row, row, step}) == "no error");
  CHECK(message({w, w, row, column, step}) == "adafactor: the means of columns must be f32[6], got f32[4]");
  CHECK(message({w, half, column, row, step}) == "adafactor: the gradient must be f32[4,6], got bf16[4,6]");
  CHECK(message({w, w, column, row, column}) == "adafactor: the step must be an i64 scalar, got f32[6]");
}

TEST_CASE("counters, accumulators, clipping") {
  check_operator(op::increment{}, {{{}, 5, 6, dtype::i64}}, [](arrays const&) { return numbers{{6}}; });
  check_operator(op::accumulate{}, {{{4, 6}}, {{4, 6}}}, each([](row const& x) { return row{x[0] + x[1]}; }));
  check_operator(op::reset{}, {{{4, 6}}}, each([](row const&) { return row{0}; }));
  check_operator(op::assign{}, {{{4, 6}}, {{4, 6}}}, each([](row const& x) { return row{x[1]}; }));
  double const x = 0.5 * 0.5 * 24;
  CHECK(check_operator(op::sum_squares{}, {{{4, 6}, 0.5, 0.5}}, [&](arrays const&) { return numbers{{x}}; }) == 2);
  check_operator(op::scale_by{}, {{{4, 6}}, {{}}}, [](arrays const& in) {
    row y = in[0].values();
    for (auto& v : y) v *= in[1][0];
    return numbers{y};
  });
  for (shape none : {shape{0}, shape{3, 0}}) {
    check_operator(op::scale_by{}, {{none}, {{}}});
    check_operator(op::accumulate{}, {{none}, {none}});
    check_operator(op::assign{}, {{none}, {none}});
    check_operator(op::sgd{}, {{none}, {none}});
    check_operator(op::sum_squares{}, {{none}}, [](arrays const&) { return numbers{{0}}; });
  }
  for (double total : {0.0, 2.25, 16.0})
    check_operator(op::clip_factor{2}, {{{}, total, total}},
                   [](arrays const& in) { return numbers{{std::min(1.0, 2 / (std::sqrt(in[0][0]) + 1e-6))}}; },
                   {.f32 = false});  // totals are f64
  auto const kernel = [](auto const& op, arrays in) {
    return testing::detail::run(view_of(op), host_kernel(facets_of<std::remove_cvref_t<decltype(op)>>), in)[0][0];
  };
  array total(tensor_layout::dense({dtype::f64, {}})), values(tensor_layout::dense({dtype::f32, {2}}));
  total.set(0, 16), values.set(0, 3), values.set(1, 0);
  CHECK(kernel(op::sum_squares{}, {values, total}) == 25);
  CHECK(kernel(op::clip_factor{2}, {total}) == doctest::Approx(0.5));
  CHECK(kernel(op::clip_factor{5}, {total}) == 1);
  total.set(0, 0.5);
  CHECK(kernel(op::scale_by{}, {values, total}) == 1.5);
}

TEST_CASE("updates by a product are the update by that product's value") {
  operator_checks const checks{.tolerance = 1e-10, .f32_tolerance = 1e-3};
  auto const product = [](arrays const& in, bool ta, bool tb) {
    auto const& w = in[0].layout.type.dims;
    auto const k = in[1].layout.type.dims[ta ? 0 : 1];
    numbers g(1);
    for (std::int64_t i = 0; i < w[0]; ++i)
      for (std::int64_t j = 0; j < w[1]; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += (ta ? in[1].at({l, i}) : in[1].at({i, l})) * (tb ? in[2].at({j, l}) : in[2].at({l, j}));
        g[0].push_back(sum);
      }
    return g[0];
  };
  struct size {
    std::int64_t m, n, k;
  };
  for (size const s : {size{5, 7, 3}, size{1300, 70, 40}, size{60, 1300, 50}, size{4, 6, 5000}})
    for (bool const ta : {false, true}) {
      bool const tb = !ta || s.m > s.n;
      operand const w{{s.m, s.n}}, a{ta ? shape{s.k, s.m} : shape{s.m, s.k}}, b{tb ? shape{s.n, s.k} : shape{s.k, s.n}};
      check_operator(
          op::matmul_update<op::sgd>{{0.1, 0.01}, ta, tb, 4}, {w, a, b},
          [&](arrays const& in) {
            auto g = product(in, ta, tb);
            for (std::size_t i = 0; i < g.size(); ++i) {
              double const x = in[0][static_cast<std::int64_t>(i)];
              g[i] = x - 0.1 * (g[i] + 0.01 * x);
            }
            return numbers{g};
          },
          checks);
      check_operator(
          op::matmul_update<op::momentum>{{0.1, 0.9, 0.2, 0, false}, ta, tb, 3}, {w, a, b, w},
          [&](arrays const& in) {
            auto const g = product(in, ta, tb);
            numbers out(2);
            for (std::size_t i = 0; i < g.size(); ++i) {
              auto const at = static_cast<std::int64_t>(i);
              double const m = 0.9 * in[3][at] + 0.8 * g[i];
              out[0].push_back(in[0][at] - 0.1 * m), out[1].push_back(m);
            }
            return out;
          },
          checks);
    }
  CHECK(op::matmul_update<op::adamw>::name == "matmul_adamw");
}

TEST_CASE("updates by a product refuse what does not fit") {
  auto const message = [](auto const& op, std::vector<shape> const& in) {
    graph_editor e{graph{}.facet_table()};
    std::vector<value_id> v;
    for (auto const& s : in) v.push_back(e.add_source(role::weight, {dtype::f32, s}));
    return message_of([&] { e.add(op, std::span<value_id const>(v)); });
  };
  op::matmul_update<op::sgd> const u;
  CHECK(message(u, {{4, 6}, {4, 3}, {3, 5}}) == "sgd: the gradient must have shape [4,6], got f32[4,5]");
  CHECK(message(u, {{4, 6}, {4, 3}, {2, 6}}).starts_with("matmul: inner extents differ"));
  CHECK(message(u, {{4, 6}, {2, 4, 3}, {3, 6}}) == "matmul_sgd: the gradient is a product of matrices, got f32[2,4,3]");
  CHECK(message(u, {{4, 6}, {4, 3}}) == "matmul_sgd: takes 3 to 8 inputs, got 2");
  CHECK(message(op::matmul_update<op::sgd>{{}, false, false, 0}, {{4, 6}, {4, 3}, {3, 6}}) ==
        "matmul_sgd: parts must be at least 1, is 0");
}

TEST_CASE("an update that reads another view of what it overwrites is refused, when added and when found") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const b = e.add_source(role::weight, {dtype::f32, {4, 4}}), c = e.add_source(role::input, {dtype::f32, {4, 4}});
  auto const turned = e.add(op::permute{{1, 0}}, {b})[0];
  auto const row = [&](std::int64_t from) { return e.add(op::slice{0, from, from + 2}, {b})[0]; };
  auto const line = "input 1 is another view of what is overwritten; copy it first";
  CHECK(message_of([&] { e.add(op::accumulate{}, {b, turned}); }) == std::string("accumulate: ") + line);
  CHECK(message_of([&] { e.add(op::accumulate{}, {row(0), row(1)}); }) == std::string("accumulate: ") + line);
  auto const first = row(0), last = row(2);
  auto fine = e;
  fine.add(op::accumulate{}, {first, last});  // apart
  CHECK(verify(graph{std::move(fine).finish()}));
  auto itself = e;
  itself.add(op::accumulate{}, {b, b});  // element by element
  CHECK(verify(graph{std::move(itself).finish()}));
  auto const sum = e.add(op::accumulate{}, {b, c})[0];
  e.keep(sum, role::output);
  auto planted = e;
  planted.set_input(planted.graph().producer(sum), 1, turned);
  CHECK(verify(graph{std::move(e).finish()}));
  auto const told = verify(graph{std::move(planted).finish()});
  CHECK(!told);
  CHECK(told.message().find(line) != std::string::npos);
}

TEST_CASE("an update that does not count writes nothing; with a number that is finite it is as without") {
  double const infinity = std::numeric_limits<double>::infinity();
  auto const numbers = [](std::vector<double> const& v) {
    array a(tensor_layout::dense({dtype::f64, {static_cast<std::int64_t>(v.size())}}));
    for (std::size_t i = 0; i < v.size(); ++i) a.set(static_cast<std::int64_t>(i), v[i]);
    return a;
  };
  auto const check = [&]<class Op>(Op const& op, std::vector<operand> const& spec, std::vector<double> settings) {
    auto const drawn = testing::detail::draw_inputs(spec, dtype::f32, 5, false);
    auto const run = [&](std::vector<double> const& s) {
      auto in = drawn;
      in.push_back(numbers(s));
      std::vector<std::vector<double>> memory;
      for (auto const& x : testing::detail::run(view_of(op), host_kernel(facets_of<Op>), in))
        memory.push_back(x.memory);
      return memory;
    };
    auto const plain = run(settings);
    settings.push_back(0);
    INFO(Op::name);
    auto const bytes = [](auto const& all) {
      std::string s;
      for (auto const& x : all) s.append(reinterpret_cast<char const*>(x.data()), x.size() * 8);
      return s;
    };
    std::vector<std::vector<double>> before;
    for (auto const& r : testing::detail::infer(view_of(op), drawn))
      before.push_back(drawn[static_cast<std::size_t>(r.of)].memory);
    for (double counts : {0.0, 7.0, 1e300}) {
      settings.back() = counts;
      CHECK(bytes(run(settings)) == bytes(plain));
    }
    for (double overflow : {infinity, -infinity, std::nan("")}) {
      settings.back() = overflow;
      CHECK(bytes(run(settings)) == bytes(before));
    }
    CHECK(bytes(plain) != bytes(before));
  };
  operand const w{{6, 4}}, v{{6, 4}, 0, 1}, step{{}, 3, 4, dtype::i64};
  check(op::sgd{}, {w, w}, {0.1, 0.01});
  check(op::momentum{}, {w, w, w}, {0.1, 0.9, 0, 0.01});
  check(op::lion{}, {w, w, w}, {0.1, 0.9, 0.99, 0.01});
  check(op::adam{}, {w, w, w, v, step}, {0.1, 0.9, 0.99, 1e-8, 0.01});
  check(op::adamw{}, {w, w, w, v, step}, {0.1, 0.9, 0.99, 1e-8, 0.01});
  check(op::muon{}, {w, w, w}, {0.1, 0.9, 0.01});
  check(op::adafactor{}, {w, w, {{4}, 0, 1}, {{6}, 0, 1}, step}, {0.1, 0.8, 1e-3, 1, 0.01});
}

TEST_CASE("steps that do not count are taken back, and move the loss's scale") {
  auto const scalar = [](dtype t, double x) {
    array a(tensor_layout::dense({t, {}}));
    a.set(0, x);
    return a;
  };
  double const none = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (double total : {3.0, none, infinity}) {
    bool const counts = total == 3;
    std::vector<array> in{scalar(dtype::i64, 7), scalar(dtype::f64, total)};
    CHECK(testing::detail::run(view_of(op::rollback_counter{}), host_kernel(facets_of<op::rollback_counter>),
                               in)[0][0] == (counts ? 7 : 6));
    std::vector<array> back{scalar(dtype::f32, 5), scalar(dtype::f32, 4), scalar(dtype::f64, total)};
    CHECK(testing::detail::run(view_of(op::rollback_if_overflow{}), host_kernel(facets_of<op::rollback_if_overflow>),
                               back)[0][0] == (counts ? 5 : 4));
  }
  auto const moved = [&](double scale, double good, double total) {
    std::vector<array> in{scalar(dtype::f64, scale), scalar(dtype::i64, good), scalar(dtype::f64, total)};
    op::update_loss_scale const op{4, 0.5, 3, 0.75, 0x1p10};
    auto const out = testing::detail::run(view_of(op), host_kernel(facets_of<op::update_loss_scale>), in);
    return std::pair{out[0][0], out[1][0]};
  };
  CHECK(moved(8, 0, 1) == std::pair{8.0, 1.0});
  CHECK(moved(8, 1, 1) == std::pair{8.0, 2.0});
  CHECK(moved(8, 2, 1) == std::pair{32.0, 0.0});
  CHECK(moved(8, 2, none) == std::pair{4.0, -1.0});
  CHECK(moved(8, -1, none) == std::pair{4.0, -2.0});
  CHECK(moved(8, -2, 1) == std::pair{8.0, 1.0});
  CHECK(moved(1, -7, infinity) == std::pair{0.75, -8.0});
  CHECK(moved(0.75, 0, infinity) == std::pair{0.75, -1.0});
  CHECK(moved(0.5, 0, infinity) == std::pair{0.5, -1.0});  // it began below
  CHECK(moved(512, 2, 1) == std::pair{1024.0, 0.0});
  CHECK(moved(1024, 2, 1) == std::pair{1024.0, 0.0});
  CHECK(moved(0x1p30, 2, 1) == std::pair{0x1p30, 0.0});  // and above
  CHECK(moved(0x1p30, 0, none) == std::pair{0x1p29, -1.0});
}
