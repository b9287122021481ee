#include <neap/train/grad.hpp>

#include <neap/model/model.hpp>
#include <neap/train/loss.hpp>
#include <neap/train/training_step.hpp>

#include "../support/message.hpp"
#include "../support/quotients.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <thread>
#include <vector>

using namespace neap;
using neap::testing::check_quotients;
using neap::testing::message_of;

namespace {

tensor f64(shape const& s, std::uint64_t seed) { return tensor::randn(s, seed, dtype::f64); }
tensor classes(std::int64_t n, std::int64_t below) {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(i % below);
  return tensor::from(v, {n});
}

}  // namespace

TEST_CASE("gradients of small models are the difference quotients") {
  SUBCASE("perceptron with norms and branches") {
    struct {
      nn::linear a{5, 8}, b{8, 8}, c{8, 3};
      nn::layer_norm n{8};
      nn::rms_norm r{8};
      parameter scale{{8}, initialiser::uniform(0.5, 1.5)};
    } m;
    auto const x = f64({4, 5}, 1);
    check_quotients(m, [&] {
      tensor const h = tanh(m.a(x));
      tensor const y = gelu(m.b(m.n(h))) * m.scale + m.r(h) / (1 + exp(-h));
      return cross_entropy{}(m.c(y - 0.5 * h), classes(4, 3));
    });
  }
  SUBCASE("attention, both forms") {
    for (bool fused : {true, false}) {
      struct {
        nn::multi_head_attention a;
      } m{nn::multi_head_attention(8, 2, {.causal = true, .fused = fused})};
      auto const x = f64({2, 5, 8}, 1), y = f64({2, 5, 8}, 2);
      check_quotients(m, [&] { return mse{}(m.a(x), y); });
    }
  }
  SUBCASE("convolutions, norms and pools") {
    struct {
      nn::conv2d a{2, 4, 3, {.padding = 1}}, b{4, 4, 3, {.stride = 2, .groups = 2}};
      nn::batch_norm2d n{4};
      nn::group_norm g{2, 4};
    } m;
    auto const x = f64({2, 2, 7, 7}, 1);
    check_quotients(m, [&] {
      tensor const y = silu(m.b(avg_pool2d(m.n(m.a(x)), {.window = {2, 2}, .stride = {1, 1}})));
      return sum(square(interpolate(m.g(y), 3, 4, {.bilinear = true})));
    });
  }
  SUBCASE("embedding, views, reductions") {
    struct {
      nn::embedding e{6, 4};
    } m;
    auto const ids = classes(5, 4);
    check_quotients(m, [&] {
      tensor const h = m.e(ids);  // (5, 4)
      tensor const both = concat({transpose(h), permute(slice(h, 0, 1, 5), {1, 0})}, 1);
      auto const parts = split(reshape(both, {4, 3, 3}), 2, 0);
      return mean(max(parts[0], {1}) * sum(parts[1], {2})) + sum(softmax(h, 0) * log_softmax(h));
    });
  }
  SUBCASE("one weight read twice, through a shared handle") {
    struct {
      parameter a{{3, 3}, initialiser::uniform(-1, 1)};
    } m;
    check_quotients(m, [&] { return sum(matmul(m.a, matmul(m.a, m.a, {.transpose_b = true})) * m.a); });
  }
}

TEST_CASE("gradients of inputs, and of what the loss does not depend on") {
  auto const x = tensor::from({1.f, 2.f, 3.f}, {3}).with_gradient();
  parameter const unused({2});
  auto const g = grad(sum(x * x * x), {x, unused});
  CHECK(g[0].values<float>() == std::vector<float>{3, 12, 27});
  CHECK(g[1].values<float>() == std::vector<float>{0, 0});
  CHECK(grad(sum(x * x.detach()), {x})[0].values<float>() == std::vector<float>{1, 2, 3});
  CHECK(grad(sum(x), {x})[0].values<float>() == std::vector<float>(3, 1));
  // A tensor made by an operator that is not recorded is a leaf as well.
  auto const y = tensor::ones({3}) * 2;
  CHECK(grad(sum(x * y), {x})[0].values<float>() == std::vector<float>(3, 2));
}

TEST_CASE("what a loss was computed from may have been recorded in other contexts and threads") {
  tensor const w = tensor::ones({3}).with_gradient();
  auto const tripled = [&] { return (w + 1) * 3.0; };  // d sum(square(tripled)) / d w is 36
  auto const gradient = [&](tensor const& h) { return grad(sum(square(h)), {w})[0].values<float>(); };
  std::vector<float> const expected(3, 36);
  tensor const before = tripled();
  {
    eager_context const inside{{.seed = 7, .threads = 1}};
    CHECK(gradient(before) == expected);
  }
  tensor ended;
  {
    eager_context const inside{{.threads = 1}};
    for (int i = 0; i < 40; ++i) ended = tripled();
  }
  CHECK(gradient(ended) == expected);
  CHECK(gradient(before + ended) == std::vector<float>(3, 144));
  std::vector<float> there;
  tensor made;
  std::thread other([&] { there = gradient(before), made = tripled(); });
  other.join();
  CHECK(there == expected);
  CHECK(gradient(made) == expected);
}

TEST_CASE("the loss must be one number; what was overwritten is missed") {
  auto const x = tensor::from({1.f, 2.f}, {2}).with_gradient();
  CHECK(message_of([&] { (void)grad(x * x, {x}); }).find("grad: the loss must be one number, this is f32[2]") !=
        std::string::npos);

  auto const state = tensor::ones({2});
  tensor const loss = sum(x * state);
  (void)apply(op::accumulate{}, {state, state});
  auto const what = message_of([&] { (void)grad(loss, {x}); });
  CHECK(what.starts_with("grad.cpp:"));
  CHECK(what.find("was changed in place after it was used") != std::string::npos);
}

TEST_CASE("a gradient is of the weights that the loss was computed with, or is refused") {
  auto const refused = [](std::string const& what) {
    CAPTURE(what);
    CHECK(what.starts_with("grad.cpp:"));
    CHECK(what.find("was changed in place after") != std::string::npos);
  };
  auto const change = [](tensor const& w) { (void)apply(op::sgd{.rate = 0.5}, {w, tensor::ones({2})}); };
  {
    parameter const w({2}, initialiser::constant(1));
    tensor const l = sum(square(w));
    change(w);
    refused(message_of([&] { (void)grad(l, {w}); }));
  }
  {  // the rule needs w, which is asked for nothing
    parameter const w({2}, initialiser::constant(1)), v({2}, initialiser::constant(3));
    tensor const l = sum(v * w);
    change(w);
    refused(message_of([&] { (void)grad(l, {v}); }));
    CHECK(grad(l, {w})[0].values<float>() == std::vector<float>(2, 3));  // needs v alone
  }
  {  // through a view that the rule makes
    parameter const w({2, 3, 2}, initialiser::constant(1)), v({2, 2}, initialiser::constant(3));
    tensor const l = sum(matmul(w, v));
    (void)apply(op::accumulate{}, {w, tensor::ones({2, 3, 2})});
    refused(message_of([&] { (void)grad(l, {v}); }));
  }
  {  // what was read before and after: there is no one gradient
    parameter const w({2}, initialiser::constant(1));
    auto const x = tensor::ones({2});
    tensor const before = w + x;
    change(w);
    refused(message_of([&] { (void)grad(sum(before + w), {w}); }));
    tensor const y = w * x;
    change(y);
    refused(message_of([&] { (void)grad(sum(y + x), {w}); }));
  }
  {  // a result that a rule reads
    parameter const w({2}, initialiser::constant(1));
    tensor const y = exp(w), l = sum(reshape(y, {2, 1}));
    change(y);
    refused(message_of([&] { (void)grad(l, {w}); }));
  }
  // A running statistic is written in each use of a norm, and no gradient needs it.
  nn::batch_norm2d n(2);
  auto const x = tensor::randn({2, 2, 3, 3}, 1);
  CHECK(grad(sum(square(n(x) + n(x * 2))), parameters(n)).size() == 2);
}

TEST_CASE("a view of a weight may be older than the weight's value") {
  parameter const w({4, 3}, initialiser::uniform(-1, 1));
  tensor const half = slice(w, 0, 0, 2), x = tensor::randn({5, 2}, 1);
  parameter const a({2, 2}, initialiser::uniform(-1, 1));
  for (int i = 0; i < 3; ++i) {
    auto const g = grad(sum(square(matmul(matmul(x, a), half))) + sum(square(w)), {w, a});
    auto const same = grad(sum(square(matmul(matmul(x, a), slice(w, 0, 0, 2)))) + sum(square(w)), {w, a});
    for (int k : {0, 1})
      CHECK(g[static_cast<std::size_t>(k)].values<float>() == same[static_cast<std::size_t>(k)].values<float>());
    for (auto const& [p, d] : {std::pair{w, g[0]}, std::pair{a, g[1]}}) (void)apply(op::sgd{.rate = 0.1}, {p, d});
  }
}

TEST_CASE("what has no gradient is told, eager as in a trace") {
  auto const x = tensor::ones({3}).with_gradient();
  auto const text = "differentiate: sum_squares #0 has no gradient";
  auto what = message_of([&] { (void)grad(apply(op::sum_squares{}, {x}), {x}); });
  CHECK(what.starts_with("grad.cpp:"));
  CHECK(what.ends_with(text));
  what = message_of([&] {
    (void)trace([](tensor const& v) { return grad(apply(op::sum_squares{}, {v}), {v})[0]; }, tensor::ones({3}));
  });
  CHECK(what.ends_with(text));
  what = message_of([&] { (void)grad(sum(apply(op::accumulate{}, {x * x, x})), {x}); });
  CHECK(what.find("accumulate") != std::string::npos);
  // Integers end what is asked for: they have no slope.
  CHECK(grad(sum(x * cast(cast(x * 2, dtype::i64), dtype::f32)), {x})[0].values<float>() == std::vector<float>(3, 2));
}

TEST_CASE("empty tensors, and those of ended traces, are refused with the place") {
  nn::linear const l(4, 3, {.bias = false});
  tensor const loss = sum(l(tensor::ones({2, 4})));
  auto what = message_of([&] { (void)grad(loss, {l.weight, l.bias}); });
  CHECK(what.starts_with("grad.cpp:"));
  CHECK(what.find("this tensor is empty") != std::string::npos);
  tensor kept;
  (void)trace([&](tensor const& x) { return kept = x * 2; }, tensor::ones({2}));
  what = message_of([&] { (void)grad(loss, {kept}); });
  CHECK(what.starts_with("grad.cpp:"));
  CHECK(what.find("belongs to a trace that has ended") != std::string::npos);
}

TEST_CASE("in a trace too, a gradient is of the weights that the loss was computed with, or is refused") {
  parameter const w({2}, initialiser::constant(1));
  auto const b = buffer({2}, initialiser::constant(1));
  auto const change = [](tensor const& t, tensor const& by) { (void)apply(op::accumulate{}, {t, by}); };
  auto const gradient = [&](auto const& loss) {
    return message_of([&] { (void)trace([&](tensor const& x) { return grad(loss(x), {w})[0]; }, tensor::ones({2})); });
  };
  CHECK(gradient([&](tensor const& x) { return change(w, x), sum(w * x); }) == "no error");
  CHECK(gradient([&](tensor const& x) { return change(slice(w, 0, 0, 1), slice(x, 0, 0, 1)), sum(w * x); }) ==
        "no error");
  CHECK(gradient([&](tensor const& x) { return change(b, w * x), sum((b + x) * w); }) == "no error");
  auto const refused = [&](auto const& loss) {
    auto const what = gradient(loss);
    CAPTURE(what);
    CHECK(what.starts_with("grad.cpp:"));
    CHECK(what.find("was changed in place after an earlier use") != std::string::npos);
  };
  refused([&](tensor const& x) {
    tensor const before = sum(w * x);
    change(w, x);
    return before + sum(w * x);
  });
  refused([&](tensor const& x) {
    tensor const y = w * x;
    change(y, x);
    return sum(y * x);
  });
}

TEST_CASE("whole numbers and truth values have no history") {
  auto const w = tensor::ones({3}).with_gradient();
  CHECK((w * 2).wants_gradient());
  CHECK_FALSE(apply(op::greater{}, {w, w * 2}).wants_gradient());
  CHECK_FALSE(cast(arg_max(w), dtype::f32).wants_gradient());
}

TEST_CASE("a loss that depends on a gradient is refused where ops run at once, and a detached one is a constant") {
  auto const x = tensor::from({1.f, 2.f, 3.f}, {3}).with_gradient();
  tensor const g = grad(sum(x * x * x), {x})[0];
  for (tensor const& l : {sum(square(g)), sum(x * square(g)), sum(x) + sum(g * 2)}) {
    int line = __LINE__ + 1;
    auto const what = message_of([&] { (void)grad(l, {x}); });
    CAPTURE(what);
    CHECK(what.starts_with("grad.cpp:" + std::to_string(line) +
                           ": grad: the loss depends on a gradient or a result of "
                           "a compiled function, f32["));
    CHECK(what.find("{.history = true}") != std::string::npos);
  }
  CHECK(grad(sum(x * g.detach()), {x})[0].values<float>() == std::vector<float>{3, 12, 27});
  CHECK(grad(sum(x * cast(greater(g, 5), dtype::f32)), {x})[0].values<float>() == std::vector<float>{0, 1, 1});
  tensor const stepped = (x - 0.1f * g).with_gradient();
  CHECK(grad(sum(stepped * 2), {stepped})[0].values<float>() == std::vector<float>(3, 2));
}

TEST_CASE("in a trace, gradients are ops of the program, and differentiate again") {
  auto const x = tensor::from({1.f, 2.f, 3.f}, {3});
  auto const p = trace(
      [](tensor const& v) {
        tensor const once = grad(sum(v * v * v), {v})[0];
        return std::pair{once, grad(sum(once), {v})[0]};
      },
      x);
  CHECK(p.outputs.size() == 2);
  CHECK(p.inputs.size() == 1);
  CHECK(p.program.type(p.outputs[1]).dims == shape{3});
}

namespace {
struct scaled_input {
  parameter w{{3, 4}, initialiser::uniform(0.3, 1.3), dtype::f64};
};
/// A penalty of the gradient of f at x * w; its gradient in a traced step against the difference quotients of eager ones.
void check_penalty(char const* name, tensor (*f)(tensor const&)) {
  CAPTURE(name);
  scaled_input m;
  initialise(m, 5);
  tensor const x = tensor::rand({3, 4}, 3, dtype::f64) * 0.6 + 0.2, c = constant(f64({3, 4}, 4));
  auto const penalty = [&](scaled_input const& net, tensor const& from) {
    tensor const at = from.with_gradient();
    return sum(square(grad(sum(f(at * net.w) * c), {at})[0]));
  };
  auto const step = training_step(m, x, penalty, sgd{.rate = 0}, {.keep_gradients = true});
  support::program_runner run(step);
  run({x});
  auto const g = run.value(step.gradients[0]);
  auto* w = m.w.data<double>();
  for (std::size_t i = 0; i < 12; i += 5) {
    double const before = w[i], h = 1e-5;
    w[i] = before + h;
    double const up = penalty(m, x).item<double>();
    w[i] = before - h;
    double const down = penalty(m, x).item<double>();
    w[i] = before;
    CHECK(g[i] == doctest::Approx((up - down) / (2 * h)).epsilon(1e-6).scale(1e-2));
  }
}
}  // namespace

TEST_CASE("a traced loss may depend on gradients: through scalar functions, products, softmax, convolutions, pools") {
#define CHECK_PENALTY(...) check_penalty(#__VA_ARGS__, [](tensor const& x) { return __VA_ARGS__; })
  CHECK_PENALTY(exp(x)), CHECK_PENALTY(log(x)), CHECK_PENALTY(sqrt(x)), CHECK_PENALTY(1 / x);
  CHECK_PENALTY(abs(x - 0.5) * x), CHECK_PENALTY(square(x)), CHECK_PENALTY(tanh(x)), CHECK_PENALTY(sigmoid(x));
  CHECK_PENALTY(square(relu(x - 0.4))), CHECK_PENALTY(silu(x)), CHECK_PENALTY(softplus(x)), CHECK_PENALTY(erf(x));
  CHECK_PENALTY(gelu(x)), CHECK_PENALTY(gelu(x, true)), CHECK_PENALTY(sin(x)), CHECK_PENALTY(cos(x));
  CHECK_PENALTY(pow(x, 2.5)), CHECK_PENALTY(pow(x, 3)), CHECK_PENALTY(pow(x, -1)), CHECK_PENALTY(pow(x, 1));
  CHECK_PENALTY(x * clamp(x, 0.3, 0.6)), CHECK_PENALTY(x * leaky_relu(x - 0.4, 0.1)), CHECK_PENALTY(rsqrt(x));
  CHECK_PENALTY(softmax(x)), CHECK_PENALTY(log_softmax(x)), CHECK_PENALTY(x * mse_loss(x, square(x)));
  CHECK_PENALTY(x * huber_loss(x, square(x), 0.1)), CHECK_PENALTY(x / (1 + x)), CHECK_PENALTY(maximum(x * x, 0.2 * x));
  CHECK_PENALTY(x * binary_cross_entropy_with_logits_loss(x, x * x));
  CHECK_PENALTY(x * binary_cross_entropy_loss(0.5 * x, sigmoid(x)));
  CHECK_PENALTY(matmul(matmul(x, transpose(x)), x)), CHECK_PENALTY(x * mean(x * x, {1}, true));
  CHECK_PENALTY(embedding(square(x), constant(tensor::from({2L, 0L, 2L}, {3}))));
  CHECK_PENALTY(x * mean(square(avg_pool2d(reshape(square(x), {1, 1, 3, 4}), {.window = {2, 2}, .stride = {1, 1}}))));
  CHECK_PENALTY(x * mean(square(interpolate(reshape(square(x), {1, 1, 3, 4}), 5, 7, {.bilinear = true}))));
  CHECK_PENALTY(x * mean(square(conv2d(reshape(x, {1, 1, 3, 4}), reshape(x, {2, 1, 2, 3}), tensor(), {}))));
#undef CHECK_PENALTY
  auto const normal = [](tensor const& x) { return rms_norm(x, constant(tensor::ones({4}, dtype::f64))); };
  auto const told = message_of([&] { check_penalty("rms_norm", normal); });
  CAPTURE(told);
  CHECK(told.find("rms_norm_grad") != std::string::npos);
  CHECK(told.find("has no gradient") != std::string::npos);
}

TEST_CASE("gradients of the many uses of a bf16 or f16 tensor are added in f32, and rounded once") {
  for (dtype t : {dtype::bf16, dtype::f16})
    for (int uses : {1, 2, 3, 3000}) {
      tensor const x = cast(tensor::ones({2000, 2}), t).detach().with_gradient(),
                   factor = cast(tensor::full({}, 0.7), t);
      tensor y;  // of one row, and of the whole
      for (int i = 0; i < uses; ++i) {
        tensor const row = cast(i % 2 ? slice(x, 0, 7, 8) * factor : slice(x, 0, 7, 8), dtype::f32);
        y = y.is_empty() ? row : y + row;
      }
      auto const g = grad(sum(y) + sum(cast(x, dtype::f32)), {x})[0];
      CHECK(g.element() == t);
      double const all = 1 + uses - uses / 2 + factor.item<double>() * (uses / 2);
      auto const v = g.values<double>();
      CHECK(v[0] == 1);
      CHECK(v[14] == doctest::Approx(all).epsilon(t == dtype::bf16 ? 0x1p-8 : 0x1p-11));
    }
}

TEST_CASE("gradients of gradients at once: closed forms, difference quotients, steps") {
  using d = std::vector<double>;
  auto const same = [](d const& a, d const& b, double tolerance) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(tolerance));
  };
  SUBCASE("three times through x^4 and sin") {
    auto const x = tensor::from(d{0.5, -1, 2}, {3}).with_gradient();
    auto const one = grad(sum(x * x * x * x + sin(x)), {x}, {.history = true})[0];
    auto const two = grad(sum(one), {x}, {.history = true})[0];
    auto const three = grad(sum(two), {x})[0];
    d slopes, curves, thirds;
    for (double v : {0.5, -1., 2.}) {
      slopes.push_back(4 * v * v * v + std::cos(v));
      curves.push_back(12 * v * v - std::sin(v));
      thirds.push_back(24 * v - std::cos(v));
    }
    same(one.values<double>(), slopes, 1e-12);
    same(two.values<double>(), curves, 1e-12);
    same(three.values<double>(), thirds, 1e-12);
  }
  SUBCASE("a penalty on the gradient of a network, and its weights' slopes") {
    struct {
      nn::linear a{4, 6}, b{6, 1};
      parameter scale{{6}, initialiser::uniform(0.5, 1.5)};
    } m;
    auto const x = f64({3, 4}, 1).with_gradient();
    check_quotients(m, [&] {
      auto const [s, c] = std::pair{softmax(tanh(m.a(x)) * m.scale), m.b(tanh(m.a(x)))};
      auto const g = grad(sum(c) + sum(s * s), {x}, {.history = true})[0];
      return mean(square(sqrt(sum(square(g), 1) + 1e-3) - 1)) + mean(square(c));
    });
  }
  SUBCASE("the loss of a step, at once and planned, without the option") {
    struct net {
      nn::linear a{4, 8}, b{8, 1};
      tensor operator()(tensor const& x) const { return b(silu(a(x))); }
    };
    auto const loss = [](net& n, tensor const& x) {
      auto const seen = x.with_gradient();
      auto const g = grad(sum(n(seen)), {seen})[0];
      return mean(square(norm(g, 2, {1}) - 1));
    };
    net planned, eager;
    initialise(planned, 1), initialise(eager, 1);
    auto const x = tensor::randn({16, 4}, 3);
    auto const step = training_step(planned, x, loss, adamw{.rate = 1e-2});
    support::program_runner run(step);
    training_state state;
    for (int i = 0; i < 3; ++i) {
      double const of_plan = run({x});
      CHECK(of_plan == eager_step(eager, x, loss, adamw{.rate = 1e-2}, state).item<double>());
    }
    CHECK(planned.a.weight.values<float>() == eager.a.weight.values<float>());
  }
  SUBCASE("without a history it is refused, and the text says what to write") {
    auto const x = tensor::from(d{0.5}, {1}).with_gradient();
    auto const g = grad(sum(x * x), {x})[0];
    auto const text = message_of([&] { (void)grad(sum(g * x), {x}); });
    CHECK(text.find("grad(loss, wrt, {.history = true})") != text.npos);
    CHECK(grad(sum(g.detach() * x), {x})[0].item<double>() == 1);
    // A tensor that carries gradients from step to step grows no history.
    tensor m = tensor::zeros({1}, dtype::f64);
    for (int i = 0; i < 3; ++i) m = m * 0.5 + grad(sum(x * x), {x})[0];
    CHECK_FALSE(m.wants_gradient());
  }
  SUBCASE("what was changed in place in between is refused") {
    struct {
      parameter w{{1}, initialiser::constant(2), dtype::f64};
    } m;
    auto const g = grad(sum(m.w * m.w * m.w), {m.w}, {.history = true})[0];
    assign(m.w, m.w * 2.0);
    auto const text = message_of([&] { (void)grad(sum(g), {m.w}); });
    CHECK(text.find("changed in place") != text.npos);
  }
}
