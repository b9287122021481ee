// Optimizers in training steps, beside plainly written references; the formulas of each update are tested by itself
// (tests/ir/operators_update.cpp), numbers of each step in tests/execute/trainer.cpp.
#include <neap/train/optimizer.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_file.hpp>
#include <neap/train/training_step.hpp>

#include "../support/files.hpp"
#include "../support/message.hpp"
#include "../support/newton_schulz.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

using namespace neap;
using namespace neap::testing;

namespace {

// Weights of one, two and four axes, and a table of vectors.
struct network {
  nn::embedding tokens{10, 6};
  nn::conv2d conv{1, 4, 3, {.padding = 1}};
  nn::linear wide{24, 8}, tall{8, 20}, head{20, 3};
  tensor operator()(tensor const& ids) const {
    tensor const x = relu(conv(unsqueeze(tokens(ids), 1)));  // (b, 4, t, 6)
    return head(tanh(tall(gelu(wide(reshape(mean(x, {2}), {ids.size(0), 24}))))));
  }
};

std::pair<tensor, tensor> batch(int i) {
  std::vector<std::int64_t> ids, labels;
  for (int k = 0; k < 8 * 5; ++k) ids.push_back((7 * k + 3 * i) % 10);
  for (int k = 0; k < 8; ++k) labels.push_back((k + i) % 3);
  return {tensor::from(ids, {8, 5}), tensor::from(labels, {8})};
}

using numbers = std::vector<double>;

/// AdamW, element by element.
struct plain_adamw {
  double rate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 1e-2;
  void step(numbers& w, numbers& m, numbers& v, numbers const& g, int t) const {
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i], v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      double const root = std::sqrt(v[i] / (1 - std::pow(beta2, t))) + epsilon;
      w[i] = (1 - rate * decay) * w[i] - rate * (m[i] / (1 - std::pow(beta1, t))) / root;
    }
  }
};

/// Steps of a network whose gradients come from the library and whose updates are `update(path, w, g, step)`, beside
/// eager steps of the optimizer and of the traced program: the numbers, the bits.
template <class Optimizer, class Update>
void check_steps(Optimizer const& optimizer, training_options options, Update const& update) {
  network plain, eager, traced;
  for (auto* m : {&plain, &eager, &traced}) set_element(*m, dtype::f64), initialise(*m, 3);
  training_state state;
  auto const program = training_step(traced, batch(0), cross_entropy{}, optimizer, options);
  REQUIRE(verify(program.program).ok());
  support::program_runner run(program);
  for (int i = 0; i < 4; ++i) {
    auto const b = batch(i);
    auto const weights = named_tensors(plain, role::weight);
    std::vector<tensor> handles;
    for (auto const& w : weights) handles.push_back(w.tensor);
    auto const g = grad(cross_entropy{}(plain(b.first), b.second), handles);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      auto w = handles[k].values<double>();
      update(weights[k].name, w, g[k].values<double>(), handles[k].shape(), i + 1);
      std::copy(w.begin(), w.end(), handles[k].data<double>());
    }
    double const loss = eager_step(eager, b, cross_entropy{}, optimizer, state, options).template item<double>();
    program.set();
    CHECK(run({b.first, b.second}) == loss);
    auto const e = named_tensors(eager, role::weight), t = named_tensors(traced, role::weight);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      auto const expected = handles[k].values<double>(), got = e[k].tensor.values<double>();
      for (std::size_t j = 0; j < got.size(); ++j) {
        if (std::fabs(got[j] - expected[j]) < 1e-9) continue;
        FAIL_CHECK(weights[k].name << "[" << j << "] is " << got[j] << ", not " << expected[j] << ", in step " << i);
        break;
      }
      CHECK_MESSAGE(t[k].tensor.values<double>() == got, weights[k].name);
    }
  }
}

}  // namespace

TEST_CASE("muon steps matrices, adamw the others") {
  for (bool nesterov : {false, true})
    for (double rms : {0.0, 0.2}) {
      muon const optimizer{.rate = 0.02,
                           .beta = 0.9,
                           .weight_decay = 0.1,
                           .nesterov = nesterov,
                           .rms = rms,
                           .others = {.rate = 0.01},
                           .use_adamw_for = {"tokens.*", "head.*"}};
      std::map<std::string, numbers> first, second;
      check_steps(optimizer, {}, [&](std::string const& path, numbers& w, numbers const& g, shape const& s, int step) {
        auto &m = first[path], &v = second[path];
        m.resize(w.size()), v.resize(w.size());
        if (s.rank() < 2 || path == "tokens.weight" || path == "head.weight")
          plain_adamw{.rate = 0.01}.step(w, m, v, g, step);
        else plain_muon{0.02, 0.9, 0.1, nesterov, rms}.step(w, m, g, s[0]);
      });
    }
}

namespace {
/// Adafactor as its paper writes it, of one weight.
struct plain_adafactor {
  double rate, power = 0.8, epsilon = 1e-3, threshold = 1, decay = 0;
  void step(numbers& w, numbers& column, numbers& row, numbers const& g, shape const& s, int t) const {
    std::size_t const rows = s.rank() < 2 ? 1 : static_cast<std::size_t>(s[0]), columns = w.size() / rows;
    double const n = static_cast<double>(w.size()), share = std::pow(t, -power);
    numbers r(rows), c(columns);
    for (std::size_t i = 0; i < w.size(); ++i) {
      r[i / columns] += (g[i] * g[i] + 1e-30) / static_cast<double>(columns);
      c[i % columns] += (g[i] * g[i] + 1e-30) / static_cast<double>(rows);
    }
    column.resize(columns), row.resize(rows);
    double mean = 0;
    for (std::size_t i = 0; i < rows; ++i) row[i] = (1 - share) * row[i] + share * r[i], mean += row[i];
    for (std::size_t j = 0; j < columns; ++j) column[j] = (1 - share) * column[j] + share * c[j];
    mean /= static_cast<double>(rows);
    numbers u(w.size());
    double u_squares = 0, w_squares = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      u[i] = g[i] / std::sqrt(s.rank() < 2 ? column[i] : row[i / columns] * column[i % columns] / mean);
      u_squares += u[i] * u[i], w_squares += w[i] * w[i];
    }
    double const scale =
        rate * std::max(epsilon, std::sqrt(w_squares / n)) / std::max(1.0, std::sqrt(u_squares / n) / threshold);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = (1 - rate * decay) * w[i] - scale * u[i];
  }
};
}  // namespace

TEST_CASE("adafactor is its paper's, with next to no states of matrices") {
  for (double threshold : {1.0, 0.3}) {
    std::map<std::string, numbers> column, row;
    check_steps(adafactor{.rate = 0.05, .threshold = threshold, .weight_decay = 0.1}, {},
                [&](std::string const& path, numbers& w, numbers const& g, shape const& s, int step) {
                  plain_adafactor{.rate = 0.05, .threshold = threshold, .decay = 0.1}.step(w, column[path], row[path],
                                                                                           g, s, step);
                });
  }
  network m;
  auto const step = training_step(m, batch(0), cross_entropy{}, adafactor{});
  std::map<std::string, std::string> types;
  for (auto const& r : step.residents) types[r.name] = to_string(r.holder.type());
  CHECK(types["wide.weight.mean_square"] == "f32[24]");
  CHECK(types["wide.weight.mean_square_of_rows"] == "f32[8]");
  CHECK(types["conv.weight.mean_square"] == "f32[9]");
  CHECK(types["conv.weight.mean_square_of_rows"] == "f32[4]");
  CHECK(types["conv.bias.mean_square"] == "f32[4]");
  CHECK(types.count("conv.bias.mean_square_of_rows") == 0);
}

TEST_CASE("adafactor takes gradients that are one number everywhere") {
  struct summing {
    nn::linear a{3, 2};
    tensor operator()(tensor const& x) const { return x * (sum(a.weight) + sum(a.bias)); }
  };
  summing eager, traced;
  initialise(eager, 1), initialise(traced, 1);
  std::pair const sample{tensor::ones({4}), tensor::ones({4})};
  training_state state;
  auto const step = training_step(traced, sample, mse{}, adafactor{});
  support::program_runner run(step);
  for (int i = 0; i < 2; ++i)
    CHECK(run({sample.first, sample.second}) ==
          static_cast<double>(eager_step(eager, sample, mse{}, adafactor{}, state).item<float>()));
  CHECK(traced.a.weight.values<float>() == eager.a.weight.values<float>());
}

TEST_CASE("states of a file fit the optimizer of the step that comes, or it says so") {
  scratch const at;
  network m, again;
  training_state state, its, others;
  eager_step(m, batch(0), cross_entropy{}, adafactor{}, state);
  REQUIRE(save(m, state, at / "f").ok());
  REQUIRE(load(again, its, at / "f"));
  CHECK(eager_step(m, batch(1), cross_entropy{}, adafactor{}, state).item<float>() ==
        eager_step(again, batch(1), cross_entropy{}, adafactor{}, its).item<float>());
  REQUIRE(load(again, others, at / "f"));
  auto const told = message_of([&] { eager_step(again, batch(1), cross_entropy{}, adamw{}, others); });
  CHECK(told.find("the training has a state f32[6] of the weight tokens.weight, where the optimizer keeps f32[10,6]") !=
        std::string::npos);
  eager_step(again, batch(1), cross_entropy{}, momentum{}, others = {});
  CHECK(load(again, others, at / "f").message().find("it has 2 states of \"tokens.weight\", the optimizer 1") !=
        std::string::npos);
}

TEST_CASE("groups change the numbers of whichever way their weights are updated") {
  muon const optimizer{.rate = scheduled::linear(0.05, 0.01, 4), .weight_decay = 0.1, .others = {.rate = 0.01}};
  training_options options;
  options.groups = {{.match = "*.bias", .weight_decay = 0},
                    {.match = "head.*", .rate = 0.002},
                    {.match = "wide.*", .rate_factor = 0.5}};
  std::map<std::string, numbers> first, second;
  check_steps(optimizer, options, [&](std::string const& path, numbers& w, numbers const& g, shape const& s, int step) {
    auto &m = first[path], &v = second[path];
    m.resize(w.size()), v.resize(w.size());
    double const rate = path == "head.weight"   ? 0.002
                        : path == "wide.weight" ? 0.5 * optimizer.rate.at(step)
                                                : optimizer.rate.at(step);
    if (s.rank() < 2) plain_adamw{.rate = 0.01, .decay = 0}.step(w, m, v, g, step);
    else plain_muon{rate, 0.95, 0.1, true, 0}.step(w, m, g, s[0]);
  });
}

TEST_CASE("a rate said for one step is muon's, and the others' goes along; a decay is both's") {
  network a, b;
  initialise(a, 1), initialise(b, 1);
  training_state s, t;
  eager_step(a, batch(0), cross_entropy{}, muon{.rate = 0.02, .others = {.rate = 0.01, .weight_decay = 0.1}}, s, {},
             {.rate = 0.04, .weight_decay = 0.3});
  eager_step(b, batch(0), cross_entropy{},
             muon{.rate = 0.04, .weight_decay = 0.3, .others = {.rate = 0.02, .weight_decay = 0.3}}, t);
  auto const p = parameters(a), q = parameters(b);
  for (std::size_t i = 0; i < p.size(); ++i) CHECK(p[i].values<float>() == q[i].values<float>());
  std::vector<std::vector<float>> before;
  for (auto const& w : p) before.push_back(w.values<float>());
  eager_step(a, batch(1), cross_entropy{}, muon{}, s, {}, {.rate = 0});
  for (std::size_t i = 0; i < p.size(); ++i)
    CHECK(p[i].values<float>() == before[i]);  // a step at rate 0 moves nothing
}

TEST_CASE("muon keeps one state of a matrix, and files have no more") {
  scratch const at;
  network m;
  training_state state;
  muon const optimizer{.use_adamw_for = {"tokens.*"}};
  auto const step = training_step(m, batch(0), cross_entropy{}, optimizer, {.state = &state});
  std::map<std::string, std::string> names;
  for (auto const& r : step.residents) names[r.name] = to_string(r.holder.type());
  CHECK(names.count("wide.weight.momentum") == 1);
  CHECK(names.count("wide.weight.second_moment") == 0);
  CHECK(names.count("wide.bias.second_moment") == 1);
  CHECK(names.count("tokens.weight.second_moment") == 1);
  eager_step(m, batch(0), cross_entropy{}, optimizer, state);
  REQUIRE(save(m, state, at / "f").ok());
  auto const file = safetensors_file::open(at / "f");
  CHECK(file->header().find("training_state/0/conv.weight"));
  CHECK(!file->header().find("training_state/1/conv.weight"));
  CHECK(file->header().find("training_state/1/conv.bias"));
  CHECK(file->header().find("training_state/1/tokens.weight"));
  network again;
  training_state its;
  REQUIRE(load(again, its, at / "f"));
  for (int i = 1; i < 3; ++i)
    CHECK(eager_step(m, batch(i), cross_entropy{}, optimizer, state).item<float>() ==
          eager_step(again, batch(i), cross_entropy{}, optimizer, its).item<float>());
}

namespace {
/// An optimizer with a state more than it has names.
struct forgetful {
  static constexpr std::array<std::string_view, 1> states{"mean"};
  std::vector<tensor_type> state_types(tensor const& w, std::string_view) const { return {w.type(), w.type()}; }
  void update(tensor const& w, tensor const& g, std::span<tensor const>, update_inputs&) const {
    apply(op::sgd{}, {w, g});
  }
};
/// One without numbers.
struct plain_descent {
  static constexpr std::array<std::string_view, 0> states{};
  void update(tensor const& w, tensor const& g, std::span<tensor const>, update_inputs&) const {
    apply(op::sgd{}, {w, g});
  }
};
}  // namespace

TEST_CASE("patterns in vain and numbers that cannot be are told with the user's line") {
  network m;
  training_state state;
  auto const check = [&](int line, std::string const& told, std::string const& text) {
    CAPTURE(told);
    CHECK(told == "optimizer.cpp:" + std::to_string(line) + ": " + text);
  };
  auto const told = [&](auto const& optimizer, int& line, step_settings const& settings = {},
                        training_options const& options = {}) {
    return message_of([&] {
      line = __LINE__ + 1;
      eager_step(m, batch(0), cross_entropy{}, optimizer, state, options, settings);
    });
  };
  int line = 0;
  auto what = told(muon{.use_adamw_for = {"tokens.*", "last.*"}}, line);
  check(
      line, what,
      "training_step: the optimizer names weights \"last.*\", and no weight of the model is among them; its weights are "
      "tokens.weight, conv.weight, conv.bias, wide.weight, wide.bias, tall.weight and 3 more");
  what = told(sgd{.rate = -0.5}, line);
  check(line, what, "the optimizer's rate is -0.5 in step 1, and must be a finite number of at least 0");
  what = told(adamw{.beta2 = 1}, line);
  check(line, what, "the optimizer's beta2 is 1 in step 1, and must be at least 0 and below 1");
  what = told(muon{.others = {.rate = -1}}, line);
  check(line, what, "the optimizer's others.rate is -1 in step 1, and must be a finite number of at least 0");
  eager_step(m, batch(0), cross_entropy{}, adamw{.rate = 0}, state);
  what = told(momentum{}, line);
  check(line, what,
        "training_step: the training has 2 states of the weight tokens.weight, the optimizer keeps 1: they are another "
        "optimizer's; give a new training_state, or load without them by load_options{.drop_states = true}");
  what = told(adafactor{}, line);
  check(
      line, what,
      "training_step: the training has a state f32[10,6] of the weight tokens.weight, where the optimizer keeps f32[6]: "
      "they are another optimizer's; give a new training_state, or load without them by load_options{.drop_states = "
      "true}");
  state = {};
  what = told(forgetful{}, line);
  check(line, what, "the optimizer's state_types() are 2 of the weight tokens.weight, its `states` names 1");
  what = told(plain_descent{}, line, {}, {.groups = {{.match = "conv.*", .rate = 0.0}}});
  check(line, what, "training_step: the group \"conv.*\" has a rate of its own, and the optimizer has no such number");
  what = told(plain_descent{}, line, {}, {.groups = {{.match = "conv.*", .weight_decay = 0.0}}});
  check(line, what,
        "training_step: the group \"conv.*\" has a weight_decay of its own, and the optimizer has no such number");
  what = told(sgd{}, line, {.rate = std::nan("")});
  CHECK(what.find("the optimizer's rate is ") != std::string::npos);
  CHECK(state.counter().item<std::int64_t>() == 0);  // no step was taken
}

TEST_CASE("states stay with a weight that is converted more than once") {
  parameter w{{3}, initialiser::constant(1)};
  training_state s;
  tensor_type const type{dtype::f32, {3}};
  auto const first = s.of(w, {&type, 1});
  w.set_element(dtype::f64), w.set_element(dtype::bf16), w.set_element(dtype::f32);
  REQUIRE(s.of(w).size() == 1);
  CHECK(s.of(w)[0].storage() == first[0].storage());
  parameter other{{3}, initialiser::constant(1)};
  CHECK(s.of(other).empty());
}
