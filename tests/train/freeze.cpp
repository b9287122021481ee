#include <neap/train/freeze.hpp>

#include <neap/core/philox.hpp>
#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_file.hpp>
#include <neap/train/training_step.hpp>

#include "../support/files.hpp"
#include "../support/message.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace neap;
using neap::testing::message_of;

namespace {

struct block {
  nn::layer_norm norm;
  nn::linear up, down;
  nn::dropout drop{0.2};
  tensor operator()(tensor const& x) const { return x + drop(down(gelu(up(norm(x))))); }
};
struct model {
  nn::embedding words{10, 8};
  nn::conv2d mix{1, 2, 3, {.padding = 1}};
  nn::batch_norm2d norm{2};
  std::vector<block> blocks;
  nn::linear out{16, 5};
  model() = default;
  tensor operator()(tensor const& ids) const {
    tensor x = unsqueeze(words(ids), 1);               // (n, 1, 4, 8)
    x = reshape(norm(mix(x)), {ids.size(0) * 4, 16});  // two channels side by side
    for (auto const& b : blocks) x = b(x);
    return mean(reshape(out(x), {ids.size(0), 4, 5}), {1});
  }
  friend auto neap_fields(model& m) { return std::tie(m.words, m.mix, m.norm, m.blocks, m.out); }
  static constexpr std::array neap_names{"words", "mix", "norm", "blocks", "out"};
};
model make_model() {
  model m;
  for (int i = 0; i < 2; ++i) m.blocks.push_back({nn::layer_norm(16), nn::linear(16, 32), nn::linear(32, 16)});
  initialise(m, 11);
  return m;
}
std::pair<tensor, tensor> batch(int i, std::int64_t n = 6) {
  std::vector<std::int64_t> ids, labels;
  for (std::int64_t k = 0; k < 4 * n; ++k) ids.push_back((k * 7 + i) % 10);
  for (std::int64_t k = 0; k < n; ++k) labels.push_back((k * 3 + i) % 5);
  return {tensor::from(ids, {n, 4}), tensor::from(labels, {n})};
}
using bits = std::vector<std::vector<double>>;
bits values_of(model& m) {
  bits all;
  for (auto const& w : parameters(m)) all.push_back(w.values<double>());
  return all;
}

/// A few steps with these weights frozen, planned and eager, beside the first step of a model that trains all.
template <class Optimizer>
void check_frozen(std::vector<bool> const& frozen, Optimizer const& optimizer, training_options options) {
  auto planned = make_model();
  planned.norm.fixed_statistics = options.micro_batches > 1;  // a batch norm that trains joins the samples
  auto const named = named_tensors(planned, role::weight);
  REQUIRE(named.size() == frozen.size());
  for (std::size_t i = 0; i < frozen.size(); ++i)
    if (frozen[i]) requires_gradient(planned, named[i].name, false);
  auto eager = planned, whole = planned;
  requires_gradient(whole, true);
  auto const before = values_of(planned);
  options.keep_gradients = true;
  auto const program = training_step(planned, batch(0), cross_entropy{}, optimizer, options);
  if (auto const s = verify(program.program); !s.ok()) FAIL(s.message());
  CHECK(program.weights.size() == static_cast<std::size_t>(std::count(frozen.begin(), frozen.end(), false)));
  for (std::size_t i = 0; i < frozen.size(); ++i)  // no gradient, no state
    for (auto const& r : program.residents)
      if (r.name != named[i].name && r.name.starts_with(named[i].name + ".")) CHECK_FALSE(frozen[i]);
  support::program_runner run(program);
  training_state state, state_of_whole;
  auto const first = eager_step(whole, batch(0), cross_entropy{}, optimizer, state_of_whole, options);
  for (int i = 0; i < 3; ++i) {
    auto const b = batch(i);
    double const a = run({b.first, b.second});
    CHECK(a == eager_step(eager, b, cross_entropy{}, optimizer, state, options).template item<double>());
    if (i == 0) CHECK(a == first.template item<double>());
    if (i == 0 && options.clip_norm == 0) {  // the first step moves what is trained as if nothing was frozen
      auto const now = values_of(planned), all = values_of(whole);
      for (std::size_t k = 0; k < frozen.size(); ++k) CHECK(now[k] == (frozen[k] ? before[k] : all[k]));
    }
    CHECK(values_of(planned) == values_of(eager));
  }
  auto const after = values_of(planned);
  for (std::size_t k = 0; k < frozen.size(); ++k) {
    if (named[k].name != "mix.bias" || frozen[k])  // the batch norm behind it takes the shift away
      CHECK((after[k] == before[k]) == frozen[k]);
    CHECK(state.of(named_tensors(eager, role::weight)[k].tensor).empty() == (frozen[k] || Optimizer::states.empty()));
  }
}

std::size_t count_of(op_graph const& g, std::string_view name) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.facets(o).name == name;
  return n;
}

struct teacher_and_student {
  nn::linear student{6, 4};
  tensor operator()(tensor const& x) const { return student(x); }
};

}  // namespace

TEST_CASE("whatever weights are frozen, they stay, the others train as before, planned and eagerly alike") {
  random_stream draw(5, 1);
  auto m = make_model();
  auto const n = parameters(m).size();
  for (int trial = 0; trial < 12; ++trial) {
    std::vector<bool> frozen(n);
    for (std::size_t i = 0; i < n; ++i) frozen[i] = draw.below(3) < static_cast<std::uint32_t>(1 + trial % 2);
    frozen[draw.below(static_cast<std::uint32_t>(n))] = false;
    CAPTURE(trial);
    switch (trial % 4) {
      case 0: check_frozen(frozen, sgd{.rate = 0.1}, {.micro_batches = 1 + trial % 3}); break;
      case 1: check_frozen(frozen, adamw{.rate = 0.01}, {.clip_norm = 0.1}); break;
      case 2:
        check_frozen(frozen, muon{.use_adamw_for = {"words.*"}}, {.groups = {{.match = "out.*", .rate = 0.1}}});
        break;
      default: check_frozen(frozen, momentum{.rate = 0.1}, {.fuse_updates = false, .recover_activations = false});
    }
  }
}

TEST_CASE("nothing is computed for a frozen trunk: the program is that of a trunk under no_gradient") {
  struct net {
    std::vector<nn::linear> trunk;
    nn::linear head{16, 5};
    bool guarded = false;
    tensor features(tensor x) const {
      for (auto const& l : trunk) x = relu(l(x));
      return x;
    }
    tensor operator()(tensor const& x) const {
      if (!guarded) return head(features(x));
      tensor y;
      {
        no_gradient const here;
        y = features(x);
      }
      return head(y);
    }
  };
  net guarded{{{8, 16}, {16, 16}, {16, 16}}, {16, 5}, true}, frozen = guarded;
  frozen.guarded = false;
  requires_gradient(frozen.trunk, false);
  std::pair const sample{tensor::randn({4, 8}, 1), tensor::from<std::int64_t>({0, 1, 2, 3}, {4})};
  auto const a = training_step(guarded, sample, cross_entropy{}, adamw{}),
             b = training_step(frozen, sample, cross_entropy{}, adamw{});
  CHECK(a.program.op_count() == b.program.op_count());
  CHECK(a.program.value_count() == b.program.value_count());
  CHECK(count_of(b.program, "grad_of_relu") == 0);
  for (auto const& r : b.residents)
    CHECK(r.name.find("moment") == (r.name.starts_with("head.") ? r.name.find("moment") : std::string::npos));
}

TEST_CASE("adapters of low rank: the base is frozen, the adapters train") {
  struct adapted {
    nn::linear base;
    parameter down, up;
    tensor operator()(tensor const& x) const { return base(x) + matmul(matmul(x, down), up) * 0.5; }
  };
  struct net {
    adapted a{nn::linear(8, 8), parameter({8, 2}, initialiser::normal(0, 1)), parameter({2, 8})};
    adapted b{nn::linear(8, 5), parameter({8, 2}, initialiser::normal(0, 1)), parameter({2, 5})};
    tensor operator()(tensor const& x) const { return b(relu(a(x))); }
  };
  net m;
  requires_gradient(m, "*", false);
  for (auto const* adapters : {"*.down", "*.up"}) requires_gradient(m, adapters, true);
  std::pair const sample{tensor::randn({4, 8}, 1), tensor::from<std::int64_t>({0, 1, 2, 3}, {4})};
  auto const before = m.a.base.weight.values<float>(), base = m.b.base.bias.values<float>();
  auto const up = m.b.up.values<float>();
  auto const p = training_step(m, sample, cross_entropy{}, adamw{.rate = 0.1});
  CHECK(p.weights.size() == 4);
  support::program_runner run(p);
  double const first = run({sample.first, sample.second});
  double last = first;
  for (int i = 0; i < 10; ++i) last = run({sample.first, sample.second});
  CHECK(last < 0.8 * first);
  CHECK(m.a.base.weight.values<float>() == before);
  CHECK(m.b.base.bias.values<float>() == base);
  CHECK(m.b.up.values<float>() != up);
}

TEST_CASE("a frozen teacher beside the model is no forgotten part of it") {
  nn::linear teacher(6, 4);
  teacher_and_student m;
  auto const loss = [&](teacher_and_student& net, tensor const& x) { return mse{}(net(x), teacher(x)); };
  tensor const x = tensor::randn({3, 6}, 1);
  training_state state;
  CHECK(message_of([&] { training_step(m, x, loss, sgd{}); }).find("no part of the model") != std::string::npos);
  requires_gradient(teacher, false);
  auto const p = training_step(m, x, loss, sgd{.rate = 0.1});
  CHECK(p.weights.size() == 2);
  auto const before = teacher.weight.values<float>();
  double const first = eager_step(m, x, loss, sgd{.rate = 0.1}, state).item<double>();
  CHECK(eager_step(m, x, loss, sgd{.rate = 0.1}, state).item<double>() < first);
  CHECK(teacher.weight.values<float>() == before);
}

TEST_CASE("ties, copies, assignments and views of frozen weights") {
  parameter w({3, 3}, initialiser::normal(0, 1));
  parameter tied = w.share();
  w.requires_gradient(false);
  CHECK(tied.is_frozen());
  CHECK_FALSE(tied.wants_gradient());
  parameter copy = w;
  CHECK(copy.is_frozen());
  parameter other({3, 3}, initialiser::constant(2));
  w = other;  // the data
  CHECK(w.is_frozen());
  CHECK(w.values<float>() == other.values<float>());
  w.set_element(dtype::f64);
  CHECK(w.is_frozen());
  w = parameter({3, 3});  // another weight
  CHECK_FALSE(w.is_frozen());
  copy.requires_gradient(true);
  CHECK(copy.wants_gradient());

  tied.requires_gradient(false);
  tensor const x = tensor::ones({2, 3});
  CHECK_FALSE(matmul(x, tied).wants_gradient());
  tensor const leaf = tied.with_gradient();  // asked for, though the weight is frozen
  CHECK(grad(sum(matmul(x, leaf)), {leaf}).front().values<float>() == std::vector<float>(9, 2.f));
}

TEST_CASE("a module's parameters and those that train; counts, seeds and element types of all") {
  auto m = make_model(), other = make_model();
  requires_gradient(m.blocks[0], false);
  CHECK(parameters(m).size() == parameters(other).size());
  CHECK(trained_parameters(m).size() == parameters(m).size() - 6);
  CHECK(parameter_count(m) == parameter_count(other));
  initialise(m, 3), initialise(other, 3);
  CHECK(values_of(m) == values_of(other));
  set_element(m, dtype::f64);
  CHECK(m.blocks[0].up.weight.element() == dtype::f64);
  CHECK(m.blocks[0].up.weight.is_frozen());
  CHECK_FALSE(m.blocks[1].up.weight.is_frozen());
}

TEST_CASE("frozen weights are saved and loaded; states of those that train") {
  testing::scratch const folder;
  auto const path = folder / "run.safetensors";
  auto m = make_model();
  requires_gradient(m, "blocks.*", false);
  training_state state;
  eager_step(m, batch(0), cross_entropy{}, adamw{}, state);
  save(m, state, path).value();
  auto other = make_model();
  initialise(other, 99);
  requires_gradient(other, "blocks.*", false);
  training_state again;
  load(other, again, path).value();
  CHECK(values_of(other) == values_of(m));
  for (int i = 1; i < 3; ++i)
    CHECK(eager_step(m, batch(i), cross_entropy{}, adamw{}, state).item<double>() ==
          eager_step(other, batch(i), cross_entropy{}, adamw{}, again).item<double>());
  CHECK(values_of(other) == values_of(m));
  requires_gradient(other, true);  // and on with all of it
  eager_step(other, batch(5), cross_entropy{}, adamw{}, again);
  CHECK(values_of(other) != values_of(m));
}

TEST_CASE("a batch norm with fixed statistics trains nothing of its own, and gradients go through it") {
  struct net {
    nn::conv2d a{1, 3, 3};
    nn::batch_norm2d norm{3};
    tensor operator()(tensor const& x) const { return norm(a(x)); }
  };
  net m;
  m.norm.running_mean.restart(initialiser::constant(0.5));
  tensor const x = tensor::randn({2, 1, 5, 5}, 3);
  auto const loss = [](net& n, tensor const& s) { return mean(square(n(s))); };
  requires_gradient(m.norm, false);
  auto moving = m;  // frozen alone: the running statistics move
  training_state state;
  eager_step(moving, x, loss, sgd{}, state);
  CHECK(moving.norm.running_mean.values<float>() != m.norm.running_mean.values<float>());
  m.norm.fixed_statistics = true;
  auto const weights = m.a.weight.values<float>();
  tensor const there = m(x);
  {
    evaluation const here;
    CHECK(m(x).values<float>() == there.values<float>());
  }
  training_state fresh;
  auto planned = m;
  auto const step = training_step(planned, x, loss, sgd{.rate = 0.1});
  support::program_runner run(step);
  double const a = run({x});
  CHECK(a == eager_step(m, x, loss, sgd{.rate = 0.1}, fresh).item<double>());
  CHECK(m.norm.running_mean.values<float>() == std::vector<float>(3, 0.5f));
  CHECK(m.a.weight.values<float>() != weights);
  CHECK(planned.a.weight.values<float>() == m.a.weight.values<float>());
}

TEST_CASE("what freezing refuses") {
  auto m = make_model();
  training_state state;
  CHECK(message_of([&] {
          requires_gradient(m, "block.*", false);
        }).find("matches \"block.*\"; its weights are words.weight") != std::string::npos);
  tensor const x = tensor::ones({2});
  CHECK(message_of([&] {
          requires_gradient(const_cast<tensor&>(x), false);
        }).find("only a weight is trained or frozen") != std::string::npos);
  requires_gradient(m, false);
  for (auto const& told : {message_of([&] { training_step(m, batch(0), cross_entropy{}, sgd{}); }),
                           message_of([&] { eager_step(m, batch(0), cross_entropy{}, sgd{}, state); })}) {
    CHECK(told.find("all weights of the model are frozen") != std::string::npos);
    CHECK(told.find('\n') == std::string::npos);
  }
  auto const l = [&] { return cross_entropy{}(m(batch(0).first), batch(0).second); };
  CHECK(message_of([&] { grad(l(), parameters(m)); }).find("is frozen: neap::trained_parameters") != std::string::npos);
  requires_gradient(m.out, true);
  CHECK(grad(l(), trained_parameters(m)).size() == 2);
  auto const unused = [](model& net, std::pair<tensor, tensor> const& s) { return mean(net.words(s.first)); };
  CHECK(message_of([&] {
          training_step(m, batch(0), unused, sgd{});
        }).find("on no weight of the model that is not frozen") != std::string::npos);
}
