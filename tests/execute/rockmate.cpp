// Rockmate's promise: models of the zoo and some more, trained within five budgets each, give the bits of the unplanned
// step: losses, gradients, weights, running statistics, with dropout and without; and the memory that they really use is
// within the budget from the first step on.
#include <neap/execute/rockmate.hpp>

#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/resnet.hpp>

#include <neap/model/model.hpp>
#include <neap/train/training_file.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../../examples/models/vit.hpp"
#include "../support/files.hpp"
#include "../support/numbers.hpp"
#include "../support/sanitized.hpp"
#include "../train/run_program.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::scratch;
using neap::testing::whole_numbers;

namespace {

std::vector<std::byte> bytes_of(tensor_ref const& t) {
  auto const* at = static_cast<std::byte const*>(t.data);
  return {at, at + t.count() * size_of(t.element)};
}
/// Of all that a model owns: weights and running statistics.
template <class Model>
std::vector<std::byte> memory_of(Model& model) {
  std::vector<std::byte> all;
  for_each_tensor(model, [&](tensor const& t, std::string const&) {
    if (t.is_empty()) return;
    auto const b = bytes_of(t.ref());
    all.insert(all.end(), b.begin(), b.end());
  });
  return all;
}

constexpr int steps = 3;
// Per cent of what lies between the bound and the peak.
std::vector<int> const budgets = testing::sanitized ? std::vector{50} : std::vector{90, 70, 50, 35, 20};
int const all_budgets = static_cast<int>(budgets.size());

/// How many of the budgets were met.
template <class Model, class Sample, class Loss = cross_entropy>
int check_budgets(Model const& of, Sample const& sample, training_options options = {}, Loss const& loss = {}) {
  options.keep_gradients = true;
  adamw const optimizer{.rate = 0.01};
  auto plain = of;
  initialise(plain, 5);
  auto const start = plain;
  auto const program = training_step(plain, sample, loss, optimizer, options);
  support::program_runner run(program);
  std::vector<double> losses;
  std::vector<std::vector<double>> gradients;  // of the first step
  for (int i = 0; i < steps; ++i) {
    losses.push_back(run({sample.first, sample.second}));
    for (auto v : program.gradients)
      if (i == 0) gradients.push_back(run.value(v));
  }
  auto const trained = memory_of(plain);
  schedule const order{topological_order(program.program)};
  auto const most = simulate(program.program, order, roofline::host(2)).peak_bytes;
  auto const least = peak_lower_bound(program.program, memory_options{}).bytes;
  host_backend backend(1);
  int met = 0, recomputed = 0;
  for (int part : budgets) {
    auto model = start;
    initialise(model, 5);
    auto const budget = least + (most - least) * part / 100;
    CAPTURE(part);
    rockmate_options how;
    how.training = options;
    how.search.iterations = 1'200;
    how.solvers.work = 20'000;
    how.search.time = time_budget(std::chrono::seconds(60));  // candidates end the search, however slow the machine is
    auto train = rockmate(model, sample, loss, optimizer, memory_limit(budget), backend, how);
    if (!train) {
      CHECK(train.message().find("no plan fits") != std::string::npos);
      continue;
    }
    ++met;
    auto const& found = train->found();
    auto const verdict = verify_plan(train->step().program, found.placed);
    REQUIRE_MESSAGE(verdict.ok(), verdict.message());
    CHECK(found.placed.arena_bytes <= budget);
    recomputed += found.placed.graph.op_count() > train->step().program.op_count();
    for (int i = 0; i < steps; ++i) {
      CHECK((*train)(sample) == losses[static_cast<std::size_t>(i)]);
      CHECK(train->run().program().high_water_bytes() <= budget);
      if (i > 0) continue;
      auto const& g = train->step();
      auto const& planned = train->run().program().planned().graph;
      for (std::size_t k = 0; k < g.gradients.size(); ++k)
        for (std::size_t j = 0; j < g.program.kept().size(); ++j)
          if (g.program.kept()[j] == g.gradients[k]) {
            auto const got = train->run().program().value(planned.kept()[j]);
            auto const n = static_cast<std::size_t>(got.count());
            REQUIRE(n == gradients[k].size());
            bool same = true;
            for (std::size_t x = 0; x < n; ++x)
              same = same && got.template as<float>()[x] == static_cast<float>(gradients[k][x]);
            CHECK(same);
          }
    }
    CHECK(memory_of(model) == trained);
  }
  CHECK(recomputed > 0);
  return met;
}

struct mixer_block {
  nn::layer_norm first{16}, second{16};
  nn::linear tokens_up{16, 24}, tokens_down{24, 16}, up{16, 32}, down{32, 16};
  tensor operator()(tensor x) const {  // (b, tokens, channels)
    x = x + transpose(tokens_down(gelu(tokens_up(transpose(first(x), 1, 2)))), 1, 2);
    return x + down(gelu(up(second(x))));
  }
};
/// MLP-Mixer (Tolstikhin et al. 2021).
struct mixer {
  nn::conv2d patches{3, 16, 4, {.stride = 4}};
  std::vector<mixer_block> blocks = std::vector<mixer_block>(4);
  nn::layer_norm norm{16};
  nn::linear head{16, 4};
  tensor operator()(tensor const& images) const {
    tensor x = transpose(flatten(patches(images), 2), 1, 2);
    for (auto const& b : blocks) x = b(x);
    return head(mean(norm(x), {1}));
  }
};

/// A block of RegNetY (Radosavovic et al. 2020): a bottleneck of grouped convolutions, its channels weighed by
/// squeeze-and-excitation.
struct regnet_block {
  nn::conv2d in, grouped, squeeze, excite, out;
  nn::batch_norm2d first, second, third;
  std::optional<nn::conv2d> shortcut;
  std::optional<nn::batch_norm2d> shortcut_norm;

  regnet_block(std::int64_t from, std::int64_t width, std::int64_t stride)
      : in(from, width, 1, {.bias = false}),
        grouped(width, width, 3, {.stride = stride, .padding = 1, .groups = width / 4, .bias = false}),
        squeeze(width, from / 4, 1),
        excite(from / 4, width, 1),
        out(width, width, 1, {.bias = false}),
        first(width),
        second(width),
        third(width) {
    if (from == width && stride == 1) return;
    shortcut.emplace(from, width, 1, nn::conv2d_options{.stride = stride, .bias = false});
    shortcut_norm.emplace(width);
  }
  tensor operator()(tensor const& x) const {
    tensor y = relu(second(grouped(relu(first(in(x))))));
    y = third(out(y * sigmoid(excite(relu(squeeze(mean(y, {2, 3}, true)))))));
    return relu(y + (shortcut ? (*shortcut_norm)((*shortcut)(x)) : x));
  }
  friend auto neap_fields(regnet_block& self) {
    return std::tie(self.in, self.grouped, self.squeeze, self.excite, self.out, self.first, self.second, self.third,
                    self.shortcut, self.shortcut_norm);
  }
  static constexpr std::array neap_names{"in",    "grouped", "squeeze", "excite",   "out",
                                         "first", "second",  "third",   "shortcut", "shortcut_norm"};
};
std::vector<regnet_block> regnet_blocks() {
  std::vector<regnet_block> all;
  std::int64_t from = 8;
  for (auto const& [width, depth] : {std::pair{8, 1}, std::pair{16, 1}, std::pair{24, 2}})
    for (int i = 0; i < depth; ++i) all.emplace_back(from, width, i == 0 ? 2 : 1), from = width;
  return all;
}
struct regnet {
  nn::conv2d stem{3, 8, 3, {.padding = 1, .bias = false}};
  nn::batch_norm2d norm{8};
  std::vector<regnet_block> blocks = regnet_blocks();
  nn::linear head{24, 4};
  tensor operator()(tensor const& images) const {
    tensor x = relu(norm(stem(images)));
    for (auto const& b : blocks) x = b(x);
    return head(mean(x, {2, 3}));
  }
};

struct decoder_block {
  nn::layer_norm first{16}, second{16}, third{16};
  nn::multi_head_attention self{16, 2, {.causal = true}};
  nn::linear query{16, 16}, key{16, 16}, value{16, 16}, out{16, 16}, up{16, 32}, down{32, 16};
  tensor operator()(tensor x, tensor const& memory) const {
    x = x + self(first(x));
    auto const heads = [](tensor const& t) { return permute(reshape(t, {t.size(0), t.size(1), 2, 8}), {0, 2, 1, 3}); };
    tensor const seen = attention(heads(query(second(x))), heads(key(memory)), heads(value(memory)), {});
    x = x + dropout(out(reshape(permute(seen, {0, 2, 1, 3}), {x.size(0), x.size(1), 16})), 0.1);
    return x + down(gelu(up(third(x))));
  }
};
std::vector<nn::transformer_block> encoder_blocks() {
  nn::transformer_options o;
  o.dropout = 0.1;
  std::vector<nn::transformer_block> all;
  for (int i = 0; i < 3; ++i) all.emplace_back(16, 2, 32, o);
  return all;
}
/// A transformer whose decoder's layers all read its encoder's result: no chain.
struct translator {
  nn::embedding tokens{16, 16}, words{16, 16};
  std::vector<nn::transformer_block> encoder = encoder_blocks();
  std::vector<decoder_block> decoder = std::vector<decoder_block>(3);
  nn::linear head{16, 16};
  tensor operator()(tensor const& ids) const {
    tensor memory = tokens(ids), x = words(ids);
    for (auto const& b : encoder) memory = b(memory);
    for (auto const& b : decoder) x = b(x, memory);
    return head(x);
  }
};

std::pair<tensor, tensor> images() { return {tensor::randn({16, 3, 16, 16}, 1), whole_numbers({16}, 2, 4)}; }
std::pair<tensor, tensor> text() { return {whole_numbers({24, 8}, 1, 16), whole_numbers({24, 8}, 2, 16)}; }

}  // namespace

TEST_CASE("gpt, with dropout") {
  auto c = zoo::gpt_config::toy();
  c.layers = 6, c.dropout = 0.1, c.fused_attention = false;
  CHECK(check_budgets(zoo::gpt(c), text()) == all_budgets);
}
TEST_CASE("gpt, clipped, in two micro-batches") {  // the gradients pile up until they are clipped: not much falls
  CHECK(check_budgets(zoo::gpt(zoo::gpt_config::toy()), text(), {.clip_norm = 0.5, .micro_batches = 2}) >= 1);
}
TEST_CASE("resnet, whose norms keep running statistics") {
  CHECK(check_budgets(zoo::resnet(zoo::resnet_config::toy()), images()) >= all_budgets - 1);
  CHECK(check_budgets(zoo::resnet(zoo::resnet_config::resnet50().narrow()), images()) >= all_budgets - 1);
}
TEST_CASE("regnet: grouped convolutions, and channels weighed by what the whole image has") {
  CHECK(check_budgets(regnet{}, images()) >= (all_budgets + 1) / 2);
}
TEST_CASE("vit") {
  auto c = zoo::vit_config::toy();
  c.layers = 6, c.dropout = 0.1;
  CHECK(check_budgets(zoo::vit(c), images()) == all_budgets);
}
TEST_CASE("mlp-mixer") { CHECK(check_budgets(mixer{}, images()) >= all_budgets - 1); }
TEST_CASE("encoder and decoder") { CHECK(check_budgets(translator{}, text()) >= all_budgets - 1); }

namespace {

/// Two inputs, two outputs, running statistics and dropout.
struct two_towers {
  struct made {
    tensor classes, means;
  };
  nn::linear left{12, 48}, right{8, 48}, between{48, 48}, classes{48, 4}, means{48, 2};
  nn::layer_norm norm{48};
  std::vector<nn::linear> layers = std::vector<nn::linear>(6, nn::linear(48, 48));
  nn::dropout drop{0.2};
  made operator()(tensor const& a, tensor const& b) const {
    tensor x = norm(left(a) + right(b));
    for (auto const& l : layers) x = x + drop(gelu(l(x)));
    return {classes(x), means(gelu(between(x)))};
  }
};
struct both_losses {
  struct told {
    tensor loss, classes_loss, means;
  };
  told operator()(two_towers::made const& m, tensor const& target) const {
    tensor const c = cross_entropy{}(m.classes, target);
    return {c + mean(m.means * m.means) * 0.5, c, m.means};
  }
};

}  // namespace

TEST_CASE("several inputs and outputs, a changed rate, saved and resumed in the middle, evaluated behind it") {
  scratch const at;
  adamw const optimizer{.rate = 0.01};
  auto const batch = [](int i) {
    auto const n = static_cast<std::uint64_t>(i);
    return std::tuple{tensor::randn({64, 12}, 10 + n), tensor::randn({64, 8}, 30 + n), whole_numbers({64}, 3 + i, 4)};
  };
  auto const settings = [](int i) { return i % 2 ? step_settings{.rate = 0.003} : step_settings{}; };
  host_backend backend(1);
  eager_context const here({.seed = 3});
  two_towers plain;
  initialise(plain, 5);
  training_state plain_state;
  training_options const plain_options{.clip_norm = 1, .seed = 9, .state = &plain_state};
  std::vector<double> losses;
  for (int i = 0; i < 6; ++i)
    losses.push_back(eager_step(plain, batch(i), both_losses{}, optimizer, plain_state, plain_options, settings(i))
                         .template item<double>());
  auto const file = at / "half";
  for (bool second : {false, true}) {
    CAPTURE(second);
    two_towers model;
    initialise(model, second ? 77 : 5);
    training_state state;
    if (second) REQUIRE(load(model, state, file).ok());
    rockmate_options how;
    how.training = {.clip_norm = 1, .seed = 9, .state = &state};
    how.search.iterations = 200;
    how.solvers.work = 20'000;
    how.search.time = time_budget(std::chrono::seconds(60));
    auto const step = training_step(model, batch(0), both_losses{}, optimizer, how.training);
    auto const most = simulate(step.program, schedule{topological_order(step.program)}, roofline::host(2)).peak_bytes;
    auto const least = peak_lower_bound(step.program, memory_options{}).bytes;
    auto train = rockmate(model, batch(0), both_losses{}, optimizer, memory_limit(least + (most - least) * 7 / 10),
                          backend, how);
    REQUIRE_MESSAGE(train, train.message());
    for (int i = second ? 3 : 0; i < (second ? 6 : 3); ++i)
      CHECK((*train)(batch(i), settings(i)) == losses[static_cast<std::size_t>(i)]);
    if (!second) REQUIRE(save(model, state, file).ok());
    if (!second) continue;
    CHECK(memory_of(model) == memory_of(plain));
    evaluation const now;
    auto const [a, b, target] = batch(9);
    auto const x = model(a, b), y = plain(a, b);
    CHECK(bytes_of(x.classes.ref()) == bytes_of(y.classes.ref()));
    CHECK(bytes_of(x.means.ref()) == bytes_of(y.means.ref()));
  }
}

TEST_CASE("a budget that nobody can meet is refused in one line") {
  zoo::gpt model(zoo::gpt_config::toy());
  host_backend backend(1);
  rockmate_options how;
  how.search.iterations = 50;
  auto const train = rockmate(model, text(), cross_entropy{}, adamw{}, memory_limit(1000), backend, how);
  REQUIRE(!train);
  CHECK(train.message().find("rockmate: no plan fits: the limit is 1000 bytes") == 0);
}
