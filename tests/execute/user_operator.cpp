// A user's operators, used without a word to anybody: eagerly, differentiated, traced, planned. Their kernels see dense
// inputs unless they say that they can read others.
#include <neap/execute/trainer.hpp>

#include <doctest/doctest.h>
#include <neap/memory/make_plan.hpp>
#include <neap/model/nn/linear.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>

#include "../support/message.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace user {
using namespace neap;

/// x, or alpha (e^x - 1) where x is negative.
struct elu : op::unary<elu> {
  static constexpr std::string_view name = "user_elu";
  double alpha = 1;
  explicit elu(double a = 1) : alpha(a) {}
  static constexpr auto attributes() { return std::array{field<&elu::alpha>("alpha")}; }
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x > T(0) ? x : T(alpha) * (math::exp(x) - T(1));
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return x > T(0) ? T(1) : T(alpha) * math::exp(x);
  }
};

/// g, x -> g * cos(x); a kernel that knows nothing of strides.
struct wave_grad {
  static constexpr std::string_view name = "wave_grad";
  void infer(shape_context& c) const { c.fresh(c.in(1)); }
  void relate(dim_context& c) const { c.aligned(0, 0), c.aligned(1, 0); }
};
struct wave {
  static constexpr std::string_view name = "wave";
  void infer(shape_context& c) const { c.fresh(c.in(0)); }
  void relate(dim_context& c) const { c.aligned(0, 0); }
  void gradient(gradient_context& c) const { c.give(0, c.emit(wave_grad{}, {c.grad(), c.in(0)})); }
};
int calls = 0;
template <class Backend>
void run(Backend&, wave const&, kernel_arguments const& a) {
  ++calls;
  CHECK(a.in[0].is_dense());
  for (std::int64_t i = 0; i < a.out[0].count(); ++i) a.out[0].as<float>()[i] = std::sin(a.in[0].as<float>()[i]);
}
template <class Backend>
void run(Backend&, wave_grad const&, kernel_arguments const& a) {
  ++calls;
  CHECK(a.in[0].is_dense());
  CHECK(a.in[1].is_dense());
  for (std::int64_t i = 0; i < a.out[0].count(); ++i)
    a.out[0].as<float>()[i] = a.in[0].as<float>()[i] * std::cos(a.in[1].as<float>()[i]);
}

struct plain_backend {
  static constexpr std::string_view name = "plain";
  using operators = operator_set<op::opaque, op::store, op::load, op::wait, wave>;
};

/// w *= 2 in place, by a kernel for dense memory.
struct twice {
  static constexpr std::string_view name = "twice";
  void infer(shape_context& c) const { c.update(0); }
  void relate(dim_context& c) const { c.aligned(0, 0); }
};
template <class Backend>
void run(Backend&, twice const&, kernel_arguments const& a) {
  for (std::int64_t i = 0; i < a.out[0].count(); ++i) a.out[0].as<float>()[i] *= 2;
}

struct same_name : op::unary<same_name> {
  static constexpr std::string_view name = "user_elu";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x;
  }
  template <class T>
  NEAP_HD T slope(T) const {
    return T(1);
  }
};

// Operators with a mistake each: `what` says which.
enum class mistake : std::int64_t {
  none,
  input,
  output,
  axis,
  related,
  asked,
  gradient_input,
  gradient_output,
  unreached
};
struct mistaken {
  static constexpr std::string_view name = "mistaken";
  mistake what = mistake::none;
  static constexpr auto attributes() { return std::array{field<&mistaken::what>("what")}; }
  void infer(shape_context& c) const {
    if (what == mistake::input) c.fresh(c.in(1));
    else if (what != mistake::output) c.fresh(c.in(0)), c.fresh(c.in(0));
  }
  void relate(dim_context& c) const {
    if (what == mistake::axis) c.same(0, 2, 0, 0);
    else if (what == mistake::related) c.same(0, 0, 2, 0);
    else if (what == mistake::asked) c.aligned(1, 0);
    else c.aligned(0, 0), c.aligned(0, 1);
  }
  void gradient(gradient_context& c) const {
    auto const g = c.grad(), h = c.grad(1);
    if (what == mistake::gradient_input) c.give(1, g);
    else if (what == mistake::gradient_output) c.give(0, c.emit(op::mul{}, {g, c.out(2)}));
    else if (what == mistake::unreached) c.give(0, c.emit(op::add{}, {g, h}));
    else c.give(0, g);
  }
};
template <class Backend>
void run(Backend&, mistaken const&, kernel_arguments const& a) {
  for (auto const& y : a.out)
    for (std::int64_t i = 0; i < y.count(); ++i) y.template as<float>()[i] = a.in[0].as<float const>()[i];
}

struct network {
  nn::linear a{6, 8}, b{8, 6};
  tensor operator()(tensor const& x) const {
    tensor h = neap::apply(elu{0.7}, {a(x)});
    h = neap::apply(wave{}, {transpose(h)});  // not dense
    return b(transpose(h));
  }
};
struct sum_of_squares {
  tensor operator()(tensor const& y, tensor const&) const { return sum(square(y)); }
};
struct plain_sum {
  tensor operator()(tensor const& y, tensor const&) const { return sum(neap::apply(wave{}, {y})); }
};
}  // namespace user

namespace {
using namespace neap;

std::vector<float> weights_of(user::network& n) {
  std::vector<float> all;
  for (auto const& w : named_tensors(n, role::weight))
    for (auto x : w.tensor.values<float>()) all.push_back(x);
  return all;
}
}  // namespace

TEST_CASE("a scalar operator with attributes: its gradient sees them") {
  eager_context const context{{.threads = 1}};
  for (double alpha : {0.3, 2.0}) {
    auto const x = tensor::from<double>({-1.5, -0.2, 0.1, 3}, {4}).with_gradient();
    auto const y = sum(neap::apply(user::elu{alpha}, {x}));
    auto const g = grad(y, {x})[0].values<double>();
    auto const at = x.values<double>();
    for (std::size_t i = 0; i < 4; ++i) {
      double const e = 1e-6;
      auto const f = [&](double v) { return v > 0 ? v : alpha * (std::exp(v) - 1); };
      CHECK(g[i] == doctest::Approx((f(at[i] + e) - f(at[i] - e)) / (2 * e)).epsilon(1e-6));
    }
  }
}

TEST_CASE("a kernel for dense memory is never handed other strides: a transposed input, the gradient of a sum") {
  eager_context const context{{.threads = 1}};
  user::calls = 0;
  auto const x = tensor::randn({3, 5}, 1).with_gradient();
  auto const y = neap::apply(user::wave{}, {transpose(x)});
  auto const g = grad(sum(y), {x})[0];  // sum's gradient is one number, repeated by strides of 0
  CHECK(user::calls == 2);
  auto const got = g.values<float>(), from = x.values<float>();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == std::cos(from[i]));
}

TEST_CASE("what is written in place cannot be copied first: refused with the place") {
  eager_context const context{{.threads = 1}};
  auto const x = tensor::randn({3, 5}, 1);
  CHECK_NOTHROW(neap::apply(user::twice{}, {x}));
  try {
    neap::apply(user::twice{}, {transpose(x)});
    FAIL("accepted");
  } catch (error const& e) {
    CHECK(std::string(e.what()).find("user_operator.cpp:") != std::string::npos);
    CHECK(std::string(e.what()).find("twice: input 0, which it writes or looks at, must be dense") !=
          std::string::npos);
  }
}

TEST_CASE("an operator that speaks of inputs, outputs and axes that it has not is told with the place") {
  eager_context const context{{.threads = 1}};
  using user::mistake, user::mistaken;
  auto const x = tensor::randn({3, 5}, 1).with_gradient();
  int line = 0;
  auto const check = [&](std::string const& text, auto const& f) {
    for (bool traced : {false, true}) {
      auto const told = testing::message_of([&] {
        if (traced) (void)trace(f, x);
        else (void)f(x);
      });
      CAPTURE(told);
      CHECK(told.starts_with("user_operator.cpp:" + std::to_string(line) + ": "));
      CHECK(told.find(text) != std::string::npos);
    }
  };
  auto const shapes = [&](mistake what, char const* text) {
    line = __LINE__ + 1;
    check(text, [&](tensor const& t) { return neap::apply(mistaken{what}, {t}); });
  };
  shapes(mistake::input, "mistaken: needs input 1, got 1 input");
  shapes(mistake::output, "mistaken: its infer() gives no output: c.fresh(type)");
  shapes(mistake::axis, "mistaken: its relate() joins axis 2 of input 0, which is f32[3,5]");
  shapes(mistake::related, "mistaken: its relate() joins output 2, which it has not");
  shapes(mistake::asked, "mistaken: its relate() asks for input 1, which it has not");
  auto const gradients = [&](mistake what, char const* text) {
    line = __LINE__ + 1;
    check(text, [&](tensor const& t) { return grad(sum(neap::apply(mistaken{what}, {t})), {t})[0]; });
  };
  gradients(mistake::gradient_input, "mistaken #0: its gradient rule speaks of input 1, which it has not");
  gradients(mistake::gradient_output, "mistaken #0: its gradient rule speaks of output 2, which it has not");
  gradients(mistake::unreached,
            "mistaken #0: its gradient rule gives add a value that is not there: grad(j) is nothing");
}

TEST_CASE("a backend of one's own runs the operators of its set, and refuses others by name") {
  user::plain_backend backend;
  alignas(64) float numbers[3] = {0.5f, -1, 2};
  auto const plan_of = [&](auto const& op) {
    graph_editor e{operator_table()};
    auto const x = e.add_source(role::input, {dtype::f32, {3}});
    e.keep(e.add(op, {x})[0], role::output);
    return plan_in_order(std::move(e).finish());
  };
  auto const p = plan_of(user::wave{});
  source_binding const bound{p.graph.sources()[0], numbers};
  executable<user::plain_backend> run(p, {&bound, 1}, backend);
  run();
  auto const* const y = run.value(run.planned().graph.kept()[0]).as<float>();
  for (int i = 0; i < 3; ++i) CHECK(y[i] == std::sin(numbers[i]));
  CHECK(neap::testing::message_of([&] {
          executable<user::plain_backend>(plan_of(op::relu{}), {&bound, 1}, backend);
        }) == "executable: relu has no kernel on the backend plain");
}

TEST_CASE("two operators of one name in a graph are told") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const x = e.add_source(role::input, {dtype::f32, {3}});
  e.add(user::elu{}, {x});
  try {
    e.add(user::same_name{}, {x});
    FAIL("accepted");
  } catch (error const& told) {
    CHECK(std::string(told.what()) == "user_elu: another operator in the graph has this name");
  }
}

TEST_CASE("a model of user's operators trains alike eagerly and planned, recomputation included") {
  eager_context const context{{.threads = 1}};
  auto const x = tensor::randn({10, 6}, 3);
  std::pair const batch{x, x};
  auto const train = [&](auto const& loss) {
    user::network eager, planned;
    initialise(eager, 5), initialise(planned, 5);
    training_state state;
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i)
      losses.push_back(eager_step(eager, batch, loss, sgd{.rate = 1e-2}, state).template item<double>());
    auto const step = training_step(planned, batch, loss, sgd{.rate = 1e-2});
    search_options few;
    few.iterations = 200;
    auto const found = optimize(step, rematerialize{}, few, memory_limit::of_original(0.5));
    host_backend backend(1);
    trainer run(step, found.placed, backend);
    for (int i = 0; i < 4; ++i) CHECK(run(batch) == losses[static_cast<std::size_t>(i)]);
    CHECK(weights_of(eager) == weights_of(planned));
  };
  train(user::sum_of_squares{});
  train(user::plain_sum{});
}
