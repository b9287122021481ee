#include <neap/train/differentiate.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

using namespace neap;
using namespace neap::testing;

namespace user {
/// x / (1 + |x|), as a user writes an operator: the gradient's operator comes from its slope.
struct softsign : op::unary<softsign> {
  static constexpr std::string_view name = "softsign";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x / (T(1) + math::abs(x));
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    T const d = T(1) + math::abs(x);
    return T(1) / (d * d);
  }
};
struct no_gradient : op::scalar_function<1, true> {
  static constexpr std::string_view name = "no_gradient";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x;
  }
};
/// x -> x and |x|; the rule is the first output's alone.
struct partly {
  static constexpr std::string_view name = "partly";
  void infer(shape_context& c) const { c.fresh(c.in(0)), c.fresh(c.in(0)); }
  void relate(dim_context&) const {}
  void gradient(gradient_context& c) const {
    if (c.grad() != nothing<value_id>) c.give(0, c.grad());
  }
};
struct my_ops : extend<standard_operators, softsign, op::grad_of<softsign>, no_gradient, partly> {};
}  // namespace user

namespace {
struct fixture {
  graph_editor e{operator_table(user::my_ops::facets)};
  std::vector<value_id> sources;
  value_id input(shape s) {
    sources.push_back(e.add_source(role::weight, {dtype::f64, s}));
    return sources.back();
  }
  value_id one(auto const& op, std::initializer_list<value_id> in) { return e.add(op, in)[0]; }
};

std::vector<block> run(graph_editor e, std::vector<block> const& sources) {
  graph const g = std::move(e).finish();
  schedule s;
  for (auto o : g.ops()) s.order.push_back(o);
  return run_plainly(g, s, sources, testing::detail::backend()).kept;
}
double& number(block const& b, std::size_t i) { return reinterpret_cast<double*>(b.data())[i]; }
}  // namespace

TEST_CASE(
    "a program's gradient agrees with the difference quotient: several readers, broadcasts, views, a user's operator") {
  fixture f;
  auto const x = f.input({4, 6}), w = f.input({6, 6}), b = f.input({6});
  auto const h = f.one(user::softsign{}, {f.one(op::add{}, {f.one(op::matmul{}, {x, w}), b})});
  auto const t = f.one(op::permute{{1, 0}}, {h});
  auto const y = f.one(op::matmul{}, {h, t});  // h twice
  auto const z = f.one(op::add{}, {f.one(op::slice{1, 0, 4}, {h}), f.one(op::mul{}, {y, y})});
  auto const loss = f.one(op::mean{}, {f.one(op::mul{}, {z, f.one(op::slice{0, 1, 2}, {z})})});
  graph_editor forward = f.e;
  forward.keep(loss, role::loss);
  auto const gradients = differentiate(f.e, loss, f.sources);
  for (auto g : gradients) f.e.keep(g, role::gradient);
  auto const memory = random_sources(f.e.graph(), 3);
  auto const slopes = run(f.e, memory);
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < static_cast<std::size_t>(f.e.graph().type(f.sources[k]).count()); i += 5) {
      auto& v = number(memory[k], i);
      double const before = v, step = 1e-6;
      v = before + step;
      double const up = number(run(forward, memory)[0], 0);
      v = before - step;
      double const down = number(run(forward, memory)[0], 0);
      v = before;
      CHECK(number(slopes[k], i) == doctest::Approx((up - down) / (2 * step)).epsilon(1e-5));
    }
}

TEST_CASE("what the loss does not depend on has zeros, and costs nothing more") {
  fixture f;
  auto const x = f.input({3}), unused = f.input({2});
  auto const side = f.one(op::exp{}, {unused});
  auto const loss = f.one(op::sum{}, {f.one(op::square{}, {x})});
  f.e.keep(side, role::output);
  auto const before = f.e.graph().op_count();
  auto const g = differentiate(f.e, loss, f.sources);
  CHECK(f.e.graph().op_count() - before <= 5);  // a one, its broadcast, the slope, zeros
  f.e.keep(g[1], role::gradient);
  auto const kept = run(f.e, random_sources(f.e.graph(), 1));
  CHECK(number(kept[1], 0) == 0);
  CHECK(number(kept[1], 1) == 0);
}

TEST_CASE("what has no gradient is told with the operator's name") {
  fixture f;
  auto const x = f.input({}), g = f.input({});
  CHECK(message_of([&] {
          differentiate(f.e, f.one(user::no_gradient{}, {x}), std::span(&x, 1));
        }).find("no_gradient") != std::string::npos);
  CHECK(message_of([&] {
          differentiate(f.e, f.one(op::sgd{}, {x, g}), std::span(&x, 1));
        }).find("sgd") != std::string::npos);
}

TEST_CASE("a gradient of a unary's gradient needs its curve, that to the incoming gradient does not") {
  fixture f;
  auto const g = f.input({3}), x = f.input({3});
  auto const first = f.one(op::grad_of<user::softsign>{}, {g, x});
  CHECK(differentiate(f.e, f.one(op::sum{}, {first}), std::span(&g, 1)).size() == 1);
  CHECK(message_of([&] {
          differentiate(f.e, first, f.sources);
        }).ends_with("no gradient of this gradient is known: softsign defines no curve"));
}

TEST_CASE("a gradient that a rule does not ask for is refused, not dropped") {
  fixture f;
  auto const x = f.input({2});
  auto const y = f.e.add(user::partly{}, {x});
  auto const first = f.one(op::sum{}, {y[0]}), second = f.one(op::sum{}, {y[1]}),
             both = f.one(op::add{}, {first, second});
  auto const told = "differentiate: partly #0: its output 1 has no gradient";
  CHECK(message_of([&] { differentiate(f.e, second, f.sources); }) == told);
  CHECK(message_of([&] { differentiate(f.e, both, f.sources); }) == told);
  CHECK(differentiate(f.e, first, f.sources).size() == 1);
}

TEST_CASE("a second output's rule costs nothing where its gradient is not asked for") {
  auto const ops = [](auto const& make) {
    fixture f;
    auto const loss = make(f);
    auto const before = f.e.graph().op_count();
    differentiate(f.e, loss, f.sources);
    return f.e.graph().op_count() - before;
  };
  CHECK(ops([](fixture& f) {
          return f.one(op::sum{}, {f.one(op::layer_norm{}, {f.input({4, 6}), f.input({6}), f.input({6})})});
        }) == 5);  // a one, its reshape and broadcast, a dense copy for the rows, layer_norm_grad
  CHECK(ops([](fixture& f) {
          auto const t = f.e.add_source(role::input, {dtype::i64, {4}});
          return f.one(op::cross_entropy{}, {f.input({4, 6}), t});
        }) == 2);
}
