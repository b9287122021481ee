#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/unary.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

#include <algorithm>

using namespace neap;
using namespace neap::testing;

namespace {

template <class Op, class F>
void unary(Op const& op, F f, double low = -2, double high = 2) {
  random_stream draw(5, 1);
  for (shape dims : {shape{5, 6}, shape{2, 3, 70}, shape{1}, shape{}, shape{3, 0}, shape{0, 2, 0},
                     random_shape(draw, 1, 4), random_shape(draw, 1, 4)})
    check_operator(
        op, {{dims, low, high}},
        [&](arrays const& in) {
          std::vector<double> y;
          for (double x : in[0].values()) y.push_back(f(x));
          return numbers{y};
        },
        {}, 1 + static_cast<std::uint64_t>(dims.rank()));
}
/// The slope too, which no gradient is asked of.
template <class Op>
void slope_of(Op const& op, double low = -2, double high = 2) {
  for (shape dims : {shape{4, 6}, shape{40}, shape{}, shape{0}})
    check_operator(op, {{dims}, {dims, low, high}}, [](arrays const&) { return numbers{}; });
}

double read(array const& x, shape const& whole, std::int64_t i) {  // x as broadcast to a shape
  std::int64_t at = 0, scale = 1;
  int const missing = whole.rank() - x.layout.type.rank();
  for (int k = whole.rank() - 1; k >= 0; --k) {
    if (k >= missing) {
      auto const n = x.layout.type.dims[k - missing];
      at += (n == 1 ? 0 : i % whole[k]) * scale;
      scale *= n;
    }
    i /= whole[k];
  }
  return x[at];
}

template <class Op, class F>
void binary(Op const& op, F f, double low = -2, double high = 2, bool gradient = true) {
  struct operands {
    shape a, b, y;
  };
  std::vector<operands> cases{{{4, 6}, {4, 6}, {4, 6}},       {{4, 6}, {6}, {4, 6}}, {{4, 1}, {4, 6}, {4, 6}},
                              {{2, 1, 5}, {4, 1}, {2, 4, 5}}, {{}, {3}, {3}},        {{}, {}, {}},
                              {{3, 0}, {1}, {3, 0}},          {{0}, {2, 1}, {2, 0}}};
  random_stream draw(3, 1);
  for (int k = 0; k < 4; ++k) {
    shape const y = random_shape(draw, 1, 4), part = random_part(draw, y);
    if (k % 2) cases.push_back({part, y, y});
    else cases.push_back({y, part, y});
  }
  std::uint64_t seed = 0;
  for (auto const& c : cases)
    check_operator(
        op, {{c.a, low, high}, {c.b, low, high}},
        [&](arrays const& in) {
          std::vector<double> y;
          for (std::int64_t i = 0; i < elements(c.y); ++i) y.push_back(f(read(in[0], c.y, i), read(in[1], c.y, i)));
          return numbers{y};
        },
        {.gradient = gradient}, ++seed);
}

}  // namespace

TEST_CASE("scalar functions of one tensor") {
  unary(op::neg{}, [](double x) { return -x; });
  unary(op::exp{}, [](double x) { return std::exp(x); });
  unary(
      op::log{}, [](double x) { return std::log(x); }, 0.1, 3);
  unary(
      op::sqrt{}, [](double x) { return std::sqrt(x); }, 0.1, 3);
  unary(
      op::rsqrt{}, [](double x) { return 1 / std::sqrt(x); }, 0.1, 3);
  unary(
      op::reciprocal{}, [](double x) { return 1 / x; }, 0.2, 3);
  unary(
      op::scalar_over{-1.5}, [](double x) { return -1.5 / x; }, 0.2, 3);
  unary(op::abs{}, [](double x) { return std::abs(x); });
  unary(op::square{}, [](double x) { return x * x; });
  unary(op::tanh{}, [](double x) { return std::tanh(x); });
  unary(op::sigmoid{}, [](double x) { return 1 / (1 + std::exp(-x)); });
  unary(op::relu{}, [](double x) { return std::max(x, 0.0); });
  unary(op::silu{}, [](double x) { return x / (1 + std::exp(-x)); });
  unary(op::erf{}, [](double x) { return std::erf(x); });
  unary(op::elu{.alpha = 0.7}, [](double x) { return x > 0 ? x : 0.7 * std::expm1(x); });
  unary(op::softplus{}, [](double x) { return std::log1p(std::exp(x)); });
  unary(op::gelu{}, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  unary(op::gelu{true}, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  });
  unary(
      op::sin{}, [](double x) { return std::sin(x); }, -9, 9);
  unary(
      op::cos{}, [](double x) { return std::cos(x); }, -9, 9);
  unary(op::sign{}, [](double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; });
  unary(
      op::floor{}, [](double x) { return std::floor(x); }, -9, 9);
  unary(
      op::round{}, [](double x) { return std::nearbyint(x); }, -9, 9);
  unary(op::clamp{-0.5, 1}, [](double x) { return std::min(std::max(x, -0.5), 1.0); });
  unary(op::clamp{0.25}, [](double x) { return std::max(x, 0.25); });
  unary(op::clamp{}, [](double x) { return x; });
  unary(op::leaky_relu{0.1}, [](double x) { return x > 0 ? x : 0.1 * x; });
  unary(op::leaky_relu{-0.5}, [](double x) { return x > 0 ? x : -0.5 * x; });
  unary(op::add_scalar{0.75}, [](double x) { return x + 0.75; });
  unary(op::mul_scalar{-1.5}, [](double x) { return x * -1.5; });
  for (double p : {0.5, -1.5, 6.25})
    unary(
        op::pow_scalar{p}, [p](double x) { return std::pow(x, p); }, 0.2, 2);
  for (double p : {0.0, 1.0, 2.0, 3.0, -2.0, 5.0, 8.0})
    unary(
        op::pow_scalar{p}, [p](double x) { return std::pow(x, p); }, -2, -0.3);
}

TEST_CASE("slopes of scalar functions") {
  slope_of(op::exp_grad{}, 0.1, 3), slope_of(op::log_grad{}, 0.1, 3), slope_of(op::sqrt_grad{}, 0.1, 3);
  slope_of(op::rsqrt_grad{}, 0.1, 3), slope_of(op::reciprocal_grad{}, 0.2, 3), slope_of(op::abs_grad{});
  slope_of(op::square_grad{}), slope_of(op::tanh_grad{}, -1, 1), slope_of(op::sigmoid_grad{}, 0, 1);
  slope_of(op::relu_grad{}), slope_of(op::silu_grad{}), slope_of(op::erf_grad{}), slope_of(op::softplus_grad{}),
      slope_of(op::elu_grad{op::elu{.alpha = 0.7}}, -0.6, 3);
  slope_of(op::gelu_grad{}), slope_of(op::gelu_grad{true}), slope_of(op::leaky_relu_grad{0.1});
  slope_of(op::pow_scalar_grad{2.5}, 0.1, 2), slope_of(op::sin_grad{}), slope_of(op::cos_grad{});
  slope_of(op::clamp_grad{op::clamp{-1, 1.5}}), slope_of(op::scalar_over_grad{op::scalar_over{1.5}}, 0.2, 3);
  slope_of(op::exp_grad_at{}, 0.1, 3), slope_of(op::sqrt_grad_at{}, 0.1, 3), slope_of(op::rsqrt_grad_at{}, 0.1, 3),
      slope_of(op::reciprocal_grad_at{}, 0.2, 3), slope_of(op::tanh_grad_at{});
  slope_of(op::sigmoid_grad_at{}), slope_of(op::elu_grad_at{op::elu{.alpha = 0.7}});
  slope_of(op::clamp_grad_at{op::clamp{-1, 1.5}});
}

TEST_CASE("gradients that give the result too") {
  auto const both = [](auto const& op, auto f, auto slope) {
    for (shape const& x : {shape{3, 5}, shape{2, 70}, shape{0, 4}})
      check_operator(op, {{x, -3, 3}, {x, -3, 3}}, [&](arrays const& in) {
        std::vector<double> d, y;
        for (std::int64_t i = 0; i < in[0].count(); ++i)
          d.push_back(in[0][i] * slope(in[1][i])), y.push_back(f(in[1][i]));
        return numbers{d, y};
      });
  };
  auto const sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  both(
      op::grad_and_result<op::silu>{}, [&](double x) { return x * sigmoid(x); },
      [&](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); });
  for (bool tanh_form : {false, true}) {
    auto const gelu = [&](double x) {
      return 0.5 * x *
             (1 +
              (tanh_form ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)) : std::erf(x / std::sqrt(2.0))));
    };
    both(op::grad_and_result<op::gelu>{tanh_form}, gelu,
         [&](double x) { return (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6; });
  }
}

TEST_CASE("x^0 is 1 everywhere, and its slope 0") {
  tensor_layout const l = tensor_layout::dense({dtype::f64, {3}});
  array g(l), x(l);
  for (std::int64_t i : {0, 1, 2}) g.set(i, 5), x.set(i, static_cast<double>(i - 1));
  auto const run = [&](auto const& op, arrays const& in) {
    return testing::detail::run(view_of(op), host_kernel(facets_of<std::remove_cvref_t<decltype(op)>>), in)[0].values();
  };
  CHECK(run(op::pow_scalar{0}, {x}) == std::vector<double>{1, 1, 1});
  CHECK(run(op::pow_scalar_grad{0}, {g, x}) == std::vector<double>{0, 0, 0});
  CHECK(run(op::pow_scalar_grad{1}, {g, x}) == std::vector<double>{5, 5, 5});
}

TEST_CASE("a tensor of integers and a number") {
  for (auto element : {dtype::i64, dtype::i32, dtype::u8}) {
    auto const by_value = [](auto const& f) {
      return [f](arrays const& in) {
        std::vector<double> y;
        for (double x : in[0].values()) y.push_back(f(x));
        return numbers{y};
      };
    };
    operator_checks const exact{.tolerance = 0, .f32_tolerance = 0};
    check_operator(op::add_scalar{3}, {{{4, 5}, 0, 40, element}}, by_value([](double x) { return x + 3; }), exact);
    check_operator(op::mul_scalar{2}, {{{4, 5}, 0, 40, element}}, by_value([](double x) { return x * 2; }), exact);
    check_operator(op::clamp{3, 30}, {{{4, 5}, 0, 40, element}},
                   by_value([](double x) { return std::min(std::max(x, 3.0), 30.0); }), exact);
    check_operator(op::clamp{.high = 7}, {{{4, 5}, 0, 40, element}},
                   by_value([](double x) { return std::min(x, 7.0); }), exact);
    check_operator(op::sign{}, {{{4, 5}, 0, 3, element}}, by_value([](double x) { return x > 0; }), exact);
  }
  check_operator(op::mul_scalar{-1}, {{{7}, -9e15, 9e15, dtype::i64}}, [](arrays const& in) {
    std::vector<double> y;
    for (double x : in[0].values()) y.push_back(-x);
    return numbers{y};
  });
}

TEST_CASE("arithmetic, comparison and choice of two tensors") {
  binary(op::add{}, [](double a, double b) { return a + b; });
  binary(op::sub{}, [](double a, double b) { return a - b; });
  binary(op::mul{}, [](double a, double b) { return a * b; });
  binary(
      op::div{}, [](double a, double b) { return a / b; }, 0.3, 2);
  binary(op::maximum{}, [](double a, double b) { return std::max(a, b); });
  binary(op::minimum{}, [](double a, double b) { return std::min(a, b); });
  binary(
      op::pow_op{}, [](double a, double b) { return std::pow(a, b); }, 0.3, 2);
  binary(
      op::greater{}, [](double a, double b) { return a > b; }, -2, 2, false);
  binary(
      op::greater_equal{}, [](double a, double b) { return a >= b; }, -2, 2, false);
  binary(
      op::less{}, [](double a, double b) { return a < b; }, -2, 2, false);
  binary(
      op::less_equal{}, [](double a, double b) { return a <= b; }, -2, 2, false);
  binary(
      op::equal{}, [](double a, double b) { return a == b; }, -2, 2, false);
  binary(
      op::not_equal{}, [](double a, double b) { return a != b; }, -2, 2, false);
  check_operator(op::where{}, {{{4, 1}, 0, 2, dtype::boolean}, {{4, 6}}, {{6}}}, [](arrays const& in) {
    std::vector<double> y;
    for (std::int64_t i = 0; i < 24; ++i) y.push_back(in[0][i / 6] != 0 ? in[1][i] : in[2][i % 6]);
    return numbers{y};
  });
  // integers are computed as integers
  check_operator(op::add{}, {{{3}, 0, 1e9, dtype::i64}, {{3}, 0, 1e9, dtype::i64}},
                 [](arrays const& in) {
                   std::vector<double> y;
                   for (std::int64_t i = 0; i < 3; ++i) y.push_back(in[0][i] + in[1][i]);
                   return numbers{y};
                 },
                 {.tolerance = 0, .f32_tolerance = 0});
}

TEST_CASE("a mistake is told with the operator and the shapes") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const a = e.add_source(role::input, {dtype::f32, {32, 64}}), b = e.add_source(role::input, {dtype::f32, {10}}),
             i = e.add_source(role::input, {dtype::i64, {64}});
  CHECK(message_of([&] { e.add(op::add{}, {a, b}); }) == "add: shapes do not broadcast, [32,64] and [10]");
  CHECK(
      message_of([&] {
        e.add(op::mul{}, {a, i});
      }) ==
      "mul: element types differ, f32[32,64] and i64[64]: are whole numbers (labels, ids) where floats belong? If they "
      "are meant, cast them");
  CHECK(message_of([&] { e.add(op::relu{}, {i}); }) == "relu: needs a floating type, got i64[64]");
  CHECK(message_of([&] { e.add(op::add{}, {a}); }) == "add: takes 2 inputs, got 1");
  CHECK(message_of([&] { e.add(op::add_scalar{0.5}, {i}); }) ==
        "add_scalar: 0.5 is no integer, but the tensor is i64[64]: cast it to a floating type first");
  CHECK(message_of([&] { e.add(op::mul_scalar{1e300}, {i}); }).find("mul_scalar: ") == 0);
  CHECK(message_of([&] { e.add(op::clamp{2, 1}, {a}); }) == "clamp: the bounds are not in order, 2 and 1");
  CHECK(message_of([&] { e.add(op::clamp{0.5}, {i}); }) ==
        "clamp: the bound 0.5 is no i64, but the tensor is i64[64]: cast it first");
  auto const bytes = e.add_source(role::input, {dtype::u8, {3}}),
             truths = e.add_source(role::input, {dtype::boolean, {3}});
  CHECK(message_of([&] {
          e.add(op::clamp{0, 256}, {bytes});
        }) == "clamp: the bound 256 is no u8, but the tensor is u8[3]: cast it first");
  CHECK(message_of([&] { e.add(op::clamp{0, 1}, {truths}); }) == "clamp: needs numbers, got bool[3]: cast it first");
  CHECK(message_of([&] { e.add(op::floor{}, {i}); }) == "floor: needs a floating type, got i64[64]");
  auto const b1 = e.add_source(role::input, {dtype::boolean, {4}});
  CHECK(message_of([&] { e.add(op::mul_scalar{2}, {b1}); }) == "mul_scalar: needs numbers, got bool[4]: cast it first");
}
