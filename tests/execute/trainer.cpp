// A trainer beside eager steps: rates and other numbers in each step, groups, outputs, batches of other sizes.
#include <neap/execute/trainer.hpp>

#include <doctest/doctest.h>
#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer_file.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/files.hpp"
#include "../support/message.hpp"
#include "../support/small_network.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace neap;
using neap::testing::message_of;

namespace {

using network = neap::testing::small_network;
constexpr auto& batch = neap::testing::small_batch;
constexpr auto& weights_of = neap::testing::small_weights;

plan plan_of(training_program const& step, double ratio) {
  search_options few;
  few.iterations = 60;
  auto const found = optimize(step, chain(rematerialize{}, neap::swap{1e9}), few, memory_limit::of_original(ratio));
  REQUIRE(verify_plan(step.program, found.placed).ok());
  return found.placed;
}

/// Steps of two equal models, one planned, one eager, with the same settings.
template <class Optimizer>
void check_steps(Optimizer const& optimizer, training_options const& options,
                 std::vector<step_settings> const& settings) {
  eager_context const context{{.threads = 1}};
  network planned, eager;
  initialise(planned, 3), initialise(eager, 3);
  auto const step = training_step(planned, batch(8, 0), cross_entropy{}, optimizer, options);
  host_backend backend(1);
  trainer run(step, plan_of(step, 0.7), backend);
  training_state state;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    auto const b = batch(8, i);
    double const e =
        eager_step(eager, b, cross_entropy{}, optimizer, state, options, settings[i]).template item<double>();
    CHECK(run(b, settings[i]) == e);
    CHECK(weights_of(planned) == weights_of(eager));
  }
}

}  // namespace

TEST_CASE("numbers of each step, scheduled or said, are those of eager steps, in all optimizers") {
  auto const rate = scheduled::cosine(0.05, 0.001, 5).warm_up(2);
  std::vector<step_settings> const some{{}, {.rate = 0.02}, {}, {.rate = 0.01, .weight_decay = 0.1}, {.seed = 9}, {}};
  check_steps(sgd{.rate = rate}, {}, some);
  check_steps(momentum{.rate = rate}, {}, {{}, {.momentum = 0.5}, {.rate = 0.1, .momentum = 0.1}});
  check_steps(nesterov{.rate = rate}, {.clip_norm = 0.5}, some);
  check_steps(adam{.rate = rate}, {.micro_batches = 2}, some);
  check_steps(adamw{.rate = rate, .beta1 = [](std::int64_t s) { return s > 2 ? 0.9 : 0.8; }}, {}, some);
  check_steps(lion{.rate = rate}, {}, some);
  check_steps(muon{.rate = rate, .others = {.rate = rate}, .use_adamw_for = {"out.*"}}, {}, some);
  check_steps(adafactor{.rate = rate}, {.clip_norm = 0.5}, some);
}

TEST_CASE("a said rate is the rate: a step at rate 0 moves nothing, and a seed draws otherwise") {
  eager_context const context{{.threads = 1}};
  network m;
  auto const step = training_step(m, batch(8, 0), cross_entropy{}, sgd{.rate = 0.5});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend);
  auto const before = weights_of(m);
  double const a = run(batch(8, 0), {.rate = 0});
  CHECK(weights_of(m) == before);
  double const b = run(batch(8, 0), {.rate = 0});
  CHECK(a != b);  // the step's number counts for dropout
  CHECK(run(batch(8, 0), {.rate = 0, .seed = 4}) != run(batch(8, 0), {.rate = 0, .seed = 5}));
  run(batch(8, 0));
  CHECK(weights_of(m) != before);
}

TEST_CASE("one plan serves all rates") {
  network a, b;
  auto const first = training_step(a, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
  auto const second = training_step(b, batch(8, 0), cross_entropy{}, adamw{.rate = 0.2, .weight_decay = 0});
  CHECK(first.program.digest() == second.program.digest());
}

TEST_CASE("groups of weights have their own rate and decay, by hand and planned") {
  eager_context const context{{.threads = 1}};
  training_options options;
  options.groups = {
      {.match = "*.bias", .weight_decay = 0}, {.match = "in.*", .rate_factor = 0.5}, {.match = "out.*", .rate = 0.0}};
  check_steps(adamw{.rate = 0.05, .weight_decay = 0.3}, options, {{}, {.rate = 0.1}, {}});

  network m;
  m.drop.p = 0;
  initialise(m, 3);
  network other = m;
  training_state state;
  auto const b = batch(8, 1);
  auto loss = cross_entropy{}(m(b.first), b.second);
  auto const g = grad(loss, {m.in.weight, m.in.bias, m.middle.weight});
  auto const w = m.in.weight.values<double>(), bias = m.in.bias.values<double>(), out = m.out.weight.values<double>();
  eager_step(other, b, cross_entropy{}, sgd{.rate = 0.1, .weight_decay = 0.2}, state, options);
  auto const w1 = other.in.weight.values<double>(), b1 = other.in.bias.values<double>();
  for (std::size_t i = 0; i < w.size(); ++i)
    CHECK(w1[i] == doctest::Approx(w[i] - 0.05 * (g[0].values<double>()[i] + 0.2 * w[i])).epsilon(1e-5));
  for (std::size_t i = 0; i < bias.size(); ++i)  // the first group that matches counts: no factor
    CHECK(b1[i] == doctest::Approx(bias[i] - 0.1 * g[1].values<double>()[i]).epsilon(1e-5));
  CHECK(other.out.weight.values<double>() == out);
}

TEST_CASE("a scaled loss gives the same weights where the scale is a power of two, and reports the loss itself") {
  eager_context const context{{.threads = 1}};
  auto const after = [&](double scale, step_settings const& s) {
    network m;
    initialise(m, 3);
    training_options o;
    o.loss_scale = scale;
    auto const step = training_step(m, batch(8, 0), cross_entropy{}, sgd{.rate = 0.1}, o);
    host_backend backend(1);
    trainer run(step, plan_of(step, 0.8), backend);
    std::vector<float> all{static_cast<float>(run(batch(8, 0), s))};
    for (auto x : weights_of(m)) all.push_back(x);
    return all;
  };
  auto const plain = after(0, {});
  CHECK(after(1024, {}) == plain);
  CHECK(after(1024, {.loss_scale = 65536}) == plain);
  check_steps(adamw{.rate = 0.05}, {.loss_scale = 3}, {{}, {.loss_scale = 7}});
}

namespace {
struct told {
  tensor loss, logits, accuracy;
};
struct telling {
  told operator()(network const& net, std::pair<tensor, tensor> const& b) const {
    tensor const logits = net(b.first), loss = cross_entropy{}(logits, b.second);
    no_gradient const off;
    tensor const hits = cast(apply(op::equal{}, {arg_max(logits), b.second}), dtype::f32);
    return {loss, logits, mean(hits)};
  }
};
}  // namespace

TEST_CASE("a loss of any floating type is told as it is") {
  struct scaled {
    parameter w;
    tensor operator()(tensor const& x) const { return relu(x * w); }
  };
  auto const loss = [](tensor const& p, tensor const& y) { return mean(square(p - y)); };
  for (auto t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16})
    for (double scale : {0., 128.}) {
      CAPTURE(name_of(t));
      scaled planned{parameter({4}, initialiser::constant(1), t)}, eager{parameter({4}, initialiser::constant(1), t)};
      std::pair const b{tensor::randn({8, 4}, 1, t), tensor::randn({8, 4}, 2, t)};
      training_options const o{.clip_norm = 0.1, .loss_scale = scale};
      auto const step = training_step(planned, b, loss, adamw{.rate = 0.1}, o);
      host_backend backend(1);
      trainer run(step, plan_in_order(step.program), backend);
      training_state state;
      for (int i = 0; i < 2; ++i) {
        double const told = run(b);
        CHECK(told == eager_step(eager, b, loss, adamw{.rate = 0.1}, state, o).item<double>());
        CHECK(told > 0.5);
        CHECK(told < 2);
      }
      CHECK(planned.w.values<double>() == eager.w.values<double>());
    }
}

TEST_CASE("named outputs: what the loss told besides") {
  eager_context const context{{.threads = 1}};
  for (std::int64_t parts : {1, 2}) {
    network m;
    m.drop.p = 0;
    initialise(m, 3);
    network other = m;
    auto const b = batch(8, 2);
    training_options o;
    o.micro_batches = parts;
    auto const step = training_step(m, b, telling{}, sgd{.rate = 0.1}, o);
    host_backend backend(1);
    trainer run(step, plan_of(step, 0.6), backend);
    auto const expected = telling{}(other, b);
    CHECK(run(b) == doctest::Approx(expected.loss.item<double>()).epsilon(1e-6));
    CHECK(run.output("logits").shape() == shape{8, 5});
    if (parts == 1) CHECK(run.output("logits").values<float>() == expected.logits.values<float>());
    CHECK(run.output("accuracy").item<double>() == doctest::Approx(expected.accuracy.item<double>()));
    auto const text = message_of([&] { run.output("logit"); });
    CHECK(text.starts_with("trainer.cpp:"));
    CHECK(text.ends_with("trainer: the step has no output \"logit\"; it has logits, accuracy"));
  }
  network m;
  auto const none = [](network const& net, std::pair<tensor, tensor> const& b) {
    tensor const logits = net(b.first);
    return told{cross_entropy{}(logits, b.second), slice(logits, 0, 0, 0), tensor()};
  };
  auto const empty = training_step(m, batch(8, 2), none, sgd{});
  host_backend one(1);
  trainer with_none(empty, plan_in_order(empty.program), one);
  with_none(batch(8, 2));
  CHECK(with_none.output("logits").type() == tensor_type{dtype::f32, {0, 5}});
  CHECK(with_none.output("logits").values<float>().empty());
  auto const step = training_step(m, batch(8, 2), cross_entropy{}, sgd{}, {.keep_prediction = true});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend);
  run(batch(8, 2));
  CHECK(run.output("prediction").shape() == shape{8, 5});
}

TEST_CASE("gradients are told by their weights' paths, of whichever size the last batch had") {
  eager_context const context{{.threads = 1}};
  network m;
  m.drop.p = 0;
  initialise(m, 3);
  host_backend backend(1);
  auto const step = training_step(m, batch(8, 0), cross_entropy{}, adamw{}, {.keep_gradients = true});
  trainer run(step, plan_of(step, 0.8), backend);
  std::string const path = "trainer.cpp:", unknown = "trainer: the gradient of \"out.bias\" is not known: ";
  CHECK(message_of([&] { run.gradient("out.bias"); }).ends_with(unknown + "no step has run, run a batch first"));
  for (std::int64_t n : {8, 3}) {
    auto const [x, y] = batch(n, 5);
    auto const named = named_tensors(m, role::weight);
    std::vector<tensor> weights;
    for (auto const& w : named) weights.push_back(w.tensor);
    auto const expected = grad(cross_entropy{}(m(x), y), weights);
    run(std::pair{x, y});
    for (std::size_t i = 0; i < named.size(); ++i)
      CHECK(run.gradient(named[i].name).values<float>() == expected[i].values<float>());
  }
  auto const text = message_of([&] { run.gradient("out.b"); });
  CHECK(text.starts_with(path));
  CHECK(text.find("\"out.b\" is not known: no weight that the loss depends on has this path") != std::string::npos);
  CHECK(text.find("middle.weight") != std::string::npos);
  auto const without = training_step(m, batch(8, 0), cross_entropy{}, adamw{});
  trainer forgets(without, plan_in_order(without.program), backend);
  forgets(batch(8, 0));
  CHECK(message_of([&] {
          forgets.gradient("out.bias");
        }).ends_with(unknown + "make the step with training_options{.keep_gradients = true}"));
}

namespace {
struct counted {
  tensor loss, hits, any, rate;
};
struct counting {
  counted operator()(network const& net, std::pair<tensor, tensor> const& b) const {
    tensor const logits = net(b.first), hit = apply(op::equal{}, {arg_max(logits), b.second});
    tensor const hits = sum(cast(hit, dtype::i64));
    return {cross_entropy{}(logits, b.second), hits, greater(hits, 1), mean(cast(hit, dtype::f32))};
  }
};
}  // namespace

namespace {
struct with_state {
  tensor x, y, state;
};
struct told_state {
  tensor loss, state;
};
struct recurrent_net {
  nn::linear in{6, 40}, again{40, 40}, out{40, 5};
};
constexpr auto recurrent_loss = [](recurrent_net const& net, with_state const& s) {
  tensor const h = tanh(net.in(s.x) + net.again(s.state));
  return told_state{cross_entropy{}(net.out(h), s.y), h};
};
}  // namespace

TEST_CASE("what a step told may be a part of the next batch: it is copied before it is overwritten") {
  eager_context const context{{.threads = 1}};
  recurrent_net a, b;
  initialise(a, 3), initialise(b, 3);
  auto const sample = [](std::uint64_t i, tensor const& state) {
    return with_state{tensor::randn({8, 6}, i), batch(8, i).second, state};
  };
  auto const zeros = tensor::zeros({8, 40});
  auto const step = training_step(a, sample(0, zeros), recurrent_loss, sgd{.rate = 0.1});
  host_backend backend(1);
  for (double ratio : {1.0, 0.8}) {
    trainer run(step, plan_of(step, ratio), backend);
    initialise(a, 3), initialise(b, 3);
    training_state state;
    tensor h = zeros, kept = zeros;
    for (std::uint64_t i = 0; i < 6; ++i) {
      double const expected = eager_step(b, sample(i, kept), recurrent_loss, sgd{.rate = 0.1}, state).item<double>();
      CHECK(run(sample(i, h)) == expected);
      h = run.output("state");
      kept = tensor::from(h.values<float>(), {8, 40});
    }
  }
  // The same of an evaluator's.
  auto const next = [](recurrent_net const& net, with_state const& s) {
    return tanh(net.in(s.x) + net.again(s.state));
  };
  auto const forward = evaluation_step(a, sample(0, zeros), next);
  evaluator eval(forward, plan_in_order(forward.program), backend);
  tensor h = zeros, kept = zeros;
  for (std::uint64_t i = 0; i < 4; ++i) {
    evaluation const off;
    kept = next(a, sample(i, kept));
    h = eval(sample(i, h));
    CHECK(h.values<float>() == kept.values<float>());
  }
}

namespace {
struct centred {
  nn::linear a{6, 6}, out{6, 5};
  buffer mean{{8, 6}, initialiser::constant(0.5)};
};
struct told_input {
  tensor loss, x, columns;
};
constexpr auto centred_loss = [](centred& m, std::pair<tensor, tensor> const& b) {
  assign(m.mean, m.mean * 0.5 + mean(b.first, {0}) + 1);
  tensor const logits = m.out(relu(m.a(b.first)));
  return told_input{cross_entropy{}(logits, b.second), b.first, transpose(b.first)};
};
}  // namespace

TEST_CASE("what a step writes may be its batch: it is copied before it is written") {
  eager_context const context{{.threads = 1}};
  auto const y = batch(8, 1).second;
  host_backend backend(1);
  for (double ratio : {1.0, 0.8})
    for (bool weight : {false, true}) {
      centred planned, eager;
      initialise(planned, 3), initialise(eager, 3);
      auto const written = [&](centred& m) -> tensor { return weight ? tensor(m.a.weight) : tensor(m.mean); };
      auto const y_of = slice(y, 0, 0, weight ? 6 : 8);
      if (weight) planned.mean = buffer({6, 6}), eager.mean = buffer({6, 6});
      auto const step = training_step(planned, std::pair{written(planned), y_of}, centred_loss, sgd{.rate = 0.1});
      CHECK(step.weights.size() == 4);  // that one is the sample makes no difference to the model
      trainer run(step, plan_of(step, ratio), backend);
      training_state state;
      for (int i = 0; i < 4; ++i) {
        auto const copy = tensor::from(written(eager).values<float>(), written(eager).shape());
        CHECK(run(std::pair{written(planned), y_of}) ==
              eager_step(eager, std::pair{copy, y_of}, centred_loss, sgd{.rate = 0.1}, state).item<double>());
        CHECK(written(planned).values<float>() == written(eager).values<float>());
        CHECK(run.output("x").values<float>() == copy.values<float>());
      }
    }
}

namespace {
constexpr auto mse_of_logits = [](network& m, std::pair<tensor, tensor> const& b) { return mean(square(m(b.first))); };
}  // namespace

TEST_CASE("a model whose weights are in other memory than the plan was bound to is told") {
  eager_context const context{{.threads = 1}};
  host_backend backend(1);
  auto const b = batch(8, 1);
  auto const check = [&](char const* name, auto const& change) {
    network m;
    auto step = training_step(m, b, cross_entropy{}, sgd{});
    trainer run(step, plan_in_order(step.program), backend);
    evaluator eval(m, b.first, backend);
    run(b), eval(b.first);
    change(m);
    std::string const text = std::string(": the model has \"") + name + "\" in other memory than the plan was bound to";
    CHECK(message_of([&] { run(batch(3, 1)); }).find("trainer" + text) != std::string::npos);  // of another size, too
    auto const of_run = message_of([&] { run(b); }), of_eval = message_of([&] { eval(b.first); });
    CHECK(of_run.starts_with("trainer.cpp:"));
    CHECK(of_run.find("trainer" + text) != std::string::npos);
    CHECK(of_eval.find("evaluator" + text) != std::string::npos);
    CHECK(of_run.ends_with("make step and trainer anew"));
    auto anew = training_step(m, b, mse_of_logits, sgd{});
    trainer again(anew, plan_in_order(anew.program), backend);
    again(b);
  };
  check("in.weight", [](network& m) { m = network(); });
  check("middle.bias", [](network& m) { m.middle.bias = parameter({24}); });
  check("in.weight", [](network& m) {
    network other;
    m = std::move(other);
  });
  check("in.weight", [](network& m) { set_element(m, dtype::f64), set_element(m, dtype::f32); });
  // What goes on: copies, and weights that change places.
  network m, other;
  auto const step = training_step(m, b, cross_entropy{}, sgd{});
  trainer run(step, plan_in_order(step.program), backend);
  run(b);
  m = other;
  std::swap(m.in, m.in);
  initialise(m, 3);
  run(b);
}

TEST_CASE("a batch of which a step or an evaluation tells a part is there until the next one") {
  eager_context const context{{.threads = 1}};
  centred m;
  host_backend backend(1);
  auto const y = batch(8, 1).second;
  auto const step = training_step(m, std::pair{tensor::zeros({8, 6}), y}, centred_loss, sgd{.rate = 0.1});
  trainer run(step, plan_in_order(step.program), backend);
  auto const forward =
      evaluation_step(m, tensor::zeros({8, 6}), [](centred&, tensor const& t) { return slice(t, 0, 2, 4); });
  evaluator eval(forward, plan_in_order(forward.program), backend);
  auto const in_step = [&](tensor const& x) {
    run(std::pair{x, y});
    return run.output("columns");
  };
  auto const in_evaluation = [&](tensor const& x) { return eval(x); };
  auto const check = [&](auto const& run_on, auto const& part) {
    std::weak_ptr<neap::detail::tensor_storage> first, second;
    tensor told;
    {
      auto const x = tensor::randn({8, 6}, 1);
      first = x.storage();
      told = run_on(x);
    }
    CHECK(!first.expired());
    CHECK(told.values<float>() == part(tensor::randn({8, 6}, 1)).template values<float>());
    {
      auto const x = tensor::randn({8, 6}, 2);
      second = x.storage();
      run_on(x);
    }
    CHECK(first.expired());
    CHECK(!second.expired());
  };
  check(in_step, [](tensor const& x) { return transpose(x); });
  check(in_evaluation, [](tensor const& x) { return slice(x, 0, 2, 4); });
}

TEST_CASE("outputs without axes, of a batch in parts: whole numbers are added, truth values hold if one does") {
  eager_context const context{{.threads = 1}};
  std::int64_t hits[2];
  for (std::int64_t parts : {1, 4}) {
    network m;
    m.drop.p = 0;
    initialise(m, 3);
    auto const step = training_step(m, batch(8, 2), counting{}, sgd{}, {.micro_batches = parts});
    host_backend backend(1);
    trainer run(step, plan_in_order(step.program), backend);
    run(batch(8, 2));
    hits[parts > 1] = run.output("hits").item<std::int64_t>();
    CHECK(run.output("hits").element() == dtype::i64);
    CHECK(run.output("rate").item<double>() == doctest::Approx(static_cast<double>(hits[0]) / 8));
    if (parts == 1) CHECK(run.output("any").item<bool>() == (hits[0] > 1));
    else CHECK(run.output("any").shape() == shape{});
  }
  CHECK(hits[0] == hits[1]);
}

TEST_CASE("smaller batches run in the same arena, under plans after the first one, with the bits of eager steps") {
  eager_context const context{{.threads = 1}};
  for (double ratio : {1.0, 0.6, 0.3}) {
    network planned, eager;
    initialise(planned, 3), initialise(eager, 3);
    adamw const optimizer{.rate = 0.01};
    auto const step = training_step(planned, batch(16, 0), cross_entropy{}, optimizer);
    host_backend backend(1);
    trainer run(step, plan_of(step, ratio), backend);
    training_state state;
    std::uint64_t seed = 0;
    for (std::int64_t n : {16, 5, 16, 1, 5, 15, 2}) {
      CAPTURE(n);
      auto const b = batch(n, ++seed);
      std::optional<evaluation> around;  // a new size is traced as the step was, whatever the caller does besides
      if (n == 5) around.emplace();
      auto const loss = run(b);
      around.reset();
      CHECK(loss == eager_step(eager, b, cross_entropy{}, optimizer, state).item<double>());
      CHECK(weights_of(planned) == weights_of(eager));
      auto const& p = run.last_program();
      CHECK(p.planned().arena_bytes <= run.program().planned().arena_bytes);
      CHECK(p.arena_data() == run.program().arena_data());
      CHECK(p.high_water_bytes() == p.planned().arena_bytes);
    }
    CHECK(run.size_count() == 5);
    run.prepare(batch(7, 0));
    CHECK(run.size_count() == 6);
    auto const text = message_of([&] { run(batch(64, 0)); });
    CHECK(text.starts_with("trainer.cpp:"));
    CHECK(text.find("trainer: a batch of this size needs ") != std::string::npos);
    CHECK(weights_of(planned) == weights_of(eager));
  }
}

TEST_CASE("a model that is given another one's weights trains on with them, eager and planned") {
  eager_context const context{{.threads = 1}};
  network planned, eager;
  initialise(planned, 3), initialise(eager, 3);
  adamw const optimizer{.rate = 0.01};
  auto const step = training_step(planned, batch(8, 0), cross_entropy{}, optimizer);
  host_backend backend(1);
  trainer run(step, plan_of(step, 0.7), backend);
  training_state state;
  auto const both = [&](std::int64_t n, std::uint64_t seed) {
    auto const b = batch(n, seed);
    CHECK(run(b) == eager_step(eager, b, cross_entropy{}, optimizer, state).item<double>());
    CHECK(weights_of(planned) == weights_of(eager));
  };
  both(8, 0), both(8, 1);
  network const best = planned;
  auto const kept = weights_of(planned);
  both(8, 2);
  CHECK(weights_of(planned) != kept);
  planned = best, eager = best;
  CHECK(weights_of(planned) == kept);
  both(8, 3), both(5, 4), both(8, 5);
  CHECK(weights_of(planned) != kept);
}

TEST_CASE("a plan after another one is right, and keeps its copies and transfers") {
  network m;
  auto const step = training_step(m, batch(16, 0), cross_entropy{}, adamw{});
  auto const small = training_step(m, batch(6, 0), cross_entropy{}, adamw{});
  int same = 0, copies = 0;
  for (double ratio : {1.0, 0.8, 0.6, 0.4, 0.2}) {
    auto const p = plan_of(step, ratio);
    auto const q = plan_like(p, step.program, small.program);
    if (!q) continue;
    ++same;
    auto const verdict = verify_plan(small.program, *q);
    CHECK_MESSAGE(verdict.ok(), verdict.message());
    CHECK(q->graph.op_count() == p.graph.op_count());
    copies += p.graph.op_count() > step.program.op_count();
  }
  CHECK(same == 5);
  CHECK(copies > 1);
}

TEST_CASE("mistakes with batches and settings name the user's line") {
  eager_context const context{{.threads = 1}};
  network m;
  auto const step = training_step(m, batch(8, 0), cross_entropy{}, sgd{});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend);
  int line = 0;
  auto const check = [&](std::string const& text, auto const& f) {
    auto const told = message_of(f);
    CAPTURE(told);
    CHECK(told.starts_with("trainer.cpp:" + std::to_string(line) + ": "));
    CHECK(told.find(text) != std::string::npos);
  };
  auto const b = batch(8, 0);
  check("the batch has 1 tensors, the sample had 2", [&] {
    line = __LINE__ + 1;
    run(b.first);
  });
  check("tensor 0 of the batch is i64[8], the sample's was f32[8,3,4]", [&] {
    line = __LINE__ + 1;
    run(std::pair{b.second, b.second});
  });
  check("the optimizer of this step has no momentum", [&] {
    line = __LINE__ + 1;
    run(b, {.momentum = 0.5});
  });
  check("without a loss scale", [&] {
    line = __LINE__ + 1;
    run(b, {.loss_scale = 2});
  });
  training_options bad;
  bad.groups = {{.match = "encoder.*"}};
  check("no weight of the model is in the group \"encoder.*\"", [&] {
    line = __LINE__ + 1;
    training_step(m, b, cross_entropy{}, sgd{}, bad);
  });
  auto const other = training_step(m, batch(9, 0), cross_entropy{}, sgd{});
  auto const wrong = plan_in_order(other.program);
  check("the plan is not one of this program", [&] {
    line = __LINE__ + 1;
    trainer(step, wrong, backend);
  });
}

namespace {
struct guided {
  tensor x, y, mask, weight;
  double beta = 1;
};
constexpr auto guided_loss = [](nn::linear& net, guided const& s) {
  tensor d = square(net(s.x) - s.y);
  if (!s.mask.is_empty()) d = d * s.mask;
  if (!s.weight.is_empty()) d = d * square(s.weight);
  return mean(d) * s.beta;
};
}  // namespace

TEST_CASE("a batch has the form of the sample: what the trace has decided by is not another one") {
  eager_context const context{{.threads = 1}};
  nn::linear planned(4, 3), eager = planned;
  tensor const m = tensor::full({6, 3}, 0.5);
  auto const batch_with = [](tensor const& mask, tensor const& weight, double beta) {
    return guided{tensor::randn({6, 4}, 1), tensor::randn({6, 3}, 2), mask, weight, beta};
  };
  auto const step = training_step(planned, batch_with(m, {}, 1), guided_loss, sgd{.rate = 0.1});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend);
  training_state state;
  auto const b = batch_with(m, {}, 1);
  CHECK(run(b) == eager_step(eager, b, guided_loss, sgd{.rate = 0.1}, state).item<double>());
  CHECK(message_of([&] { run(batch_with({}, m, 1)); }).find("trainer: the batch's tensor \"mask\" is empty") !=
        std::string::npos);
  CHECK(message_of([&] { run(batch_with(m, {}, 3)); }).find("trainer: the batch's \"beta\" is 3") != std::string::npos);
  CHECK(planned.weight.values<float>() == eager.weight.values<float>());

  auto const forward = [](nn::linear const& net, guided const& s) { return net(s.x) * s.beta; };
  auto const evaluated = evaluation_step(planned, b, forward);
  evaluator eval(evaluated, plan_in_order(evaluated.program), backend);
  CHECK(message_of([&] { eval(batch_with(m, {}, 3)); }).find("evaluator: the batch's \"beta\" is 3") !=
        std::string::npos);
}

TEST_CASE("a batch may own its tensors: they are read where they are, not copied") {
  eager_context const context{{.threads = 1}};
  for (std::int64_t parts : {1, 3}) {
    nn::linear planned(4, 3), eager = planned;
    std::pair<buffer, std::vector<buffer>> owned{buffer({6, 4}, initialiser::normal(0, 1)),
                                                 {buffer({6, 3}, initialiser::normal(0, 1))}};
    auto const loss = [](nn::linear& net, auto const& s) { return mse{}(net(s.first), s.second[0]); };
    training_options const options{.micro_batches = parts};
    auto const step = training_step(planned, owned, loss, sgd{.rate = 0.1}, options);
    host_backend backend(1);
    trainer run(step, plan_in_order(step.program), backend);
    training_state state;
    for (int i = 0; i < 4; ++i) {
      owned.first.data<float>()[i] += 1;
      CHECK(run(owned) == eager_step(eager, owned, loss, sgd{.rate = 0.1}, state, options).item<double>());
      auto const& g = run.program().planned().graph;
      std::vector<void const*> read;
      for (auto v : g.sources())
        if (g.role(v) == role::input) read.push_back(run.program().value(v).data);
      CHECK(read == std::vector<void const*>{owned.first.ref().data, owned.second[0].ref().data});
    }
    CHECK(planned.weight.values<float>() == eager.weight.values<float>());
  }
}

TEST_CASE("plans for other sizes may be given: of the same model and states") {
  eager_context const context{{.threads = 1}};
  network planned, eager;
  initialise(planned, 3), initialise(eager, 3);
  adamw const optimizer{.rate = 0.01};
  training_state state, eagerly;
  training_options const options{.state = &state};
  auto const large = training_step(planned, batch(16, 0), cross_entropy{}, optimizer, options),
             small = training_step(planned, batch(6, 0), cross_entropy{}, optimizer, options);
  host_backend backend(1);
  trainer run(large, plan_of(large, 0.6), backend);
  run.add(small, plan_of(small, 0.4));
  CHECK(run.size_count() == 2);
  std::uint64_t seed = 0;
  for (std::int64_t n : {16, 6, 6, 16, 5}) {
    auto const b = batch(n, ++seed);
    CHECK(run(b) == eager_step(eager, b, cross_entropy{}, optimizer, eagerly).item<double>());
    CHECK(weights_of(planned) == weights_of(eager));
  }
  CHECK(run.size_count() == 3);

  network other;
  auto const another = training_step(other, batch(4, 0), cross_entropy{}, optimizer, options);
  CHECK(message_of([&] { run.add(another, plan_in_order(another.program)); }).find("add() takes a step of the model") !=
        std::string::npos);
}

TEST_CASE("a step that throws is not counted, planned or eager: the next one is as if it had not been tried") {
  eager_context const context{{.threads = 1}};
  network tried, never, eager;  // with dropout, which draws by the number of the step
  for (auto* m : {&tried, &never, &eager}) initialise(*m, 3);
  adamw const optimizer{.rate = scheduled::linear(0.1, 0.01, 5)};
  auto const step = training_step(tried, batch(8, 0), cross_entropy{}, optimizer);
  host_backend backend(1);
  trainer run(step, plan_of(step, 0.8), backend);
  training_state plain, eagerly;
  auto wrong = batch(8, 1);
  wrong.second = tensor::full({8}, 5, dtype::i64);  // no class
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK(message_of([&] { run(wrong); }).find("target 5") != std::string::npos);
    CHECK(message_of([&] { eager_step(eager, wrong, cross_entropy{}, optimizer, eagerly); }).find("target 5") !=
          std::string::npos);
    CHECK(step.state.counter().item<std::uint64_t>() == i);
    CHECK(eagerly.counter().item<std::uint64_t>() == i);
    auto const b = batch(8, i);
    double const expected = eager_step(never, b, cross_entropy{}, optimizer, plain).item<double>();
    CHECK(run(b) == expected);
    CHECK(eager_step(eager, b, cross_entropy{}, optimizer, eagerly).item<double>() == expected);
    CHECK(weights_of(tried) == weights_of(never));
    CHECK(weights_of(eager) == weights_of(never));
  }
}

namespace {

/// Goes on from its last step: what that gave is in a buffer.
struct recurrent {
  nn::linear in{12, 6}, again{6, 6}, out{6, 5};
  buffer last{{8, 6}};
  mutable tensor shown;  // for whoever wants to look at it; no step reads it
  tensor operator()(tensor const& x) const {
    tensor const h = tanh(in(flatten(x, 1)) + again(apply(op::copy{}, {last})));
    assign(last, h);
    return shown = out(h);
  }
};

}  // namespace

TEST_CASE(
    "a model that goes on from its last step keeps that in a buffer, eager and planned; it may store what it likes") {
  eager_context const context{{.threads = 1}};
  host_backend backend(1);
  recurrent eager;
  training_state state;
  initialise(eager, 3);
  std::vector<double> losses;
  std::vector<float> last;
  for (std::uint64_t i = 0; i < 4; ++i) {
    losses.push_back(eager_step(eager, batch(8, i), cross_entropy{}, adamw{}, state).item<double>());
    last = eager.last.values<float>();
  }
  CHECK(eager.shown.shape() == shape{8, 5});
  for (double ratio : {1.0, 0.5}) {
    recurrent planned;
    initialise(planned, 3);
    auto const step = training_step(planned, batch(8, 0), cross_entropy{}, adamw{});
    trainer run(step, plan_of(step, ratio), backend);
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(run(batch(8, i)) == losses[i]);
    CHECK(planned.last.values<float>() == last);
    for (std::size_t k = 0; k < parameters(eager).size(); ++k)
      CHECK(parameters(eager)[k].values<float>() == parameters(planned)[k].values<float>());
  }
}

TEST_CASE("a batch is data: what it was made of gets no gradient, planned or eager") {
  struct net {
    parameter w{{4, 4}, initialiser::normal(0, 1)};
    tensor operator()(tensor const& x) const { return matmul(x, w); }
  };
  auto const loss = [](net& m, tensor const& x) { return mean(square(m(x) - 1)); };
  for (int kind = 0; kind < 3; ++kind)
    for (std::int64_t parts : {1, 2}) {
      CAPTURE(kind);
      CAPTURE(parts);
      net planned, eager, copied;
      for (auto* m : {&planned, &eager, &copied}) initialise(*m, 1);
      training_options const o{.micro_batches = parts};
      host_backend backend(1);
      auto const step = training_step(planned, tensor::ones({4, 4}), loss, sgd{.rate = 0.1}, o);
      trainer run(step, plan_in_order(step.program), backend);
      training_state s, t;
      for (int i = 0; i < 3; ++i) {
        auto const of = [&](net& m) -> tensor {
          return kind == 0 ? tensor(m.w) : kind == 1 ? m.w.detach() : transpose(m.w * 2.0, 0, 1);
        };
        auto const data = tensor::from(of(copied).values<float>(), {4, 4});
        auto const right = eager_step(copied, data, loss, sgd{.rate = 0.1}, s, o).item<double>();
        CHECK(run(kind == 2 ? contiguous(of(planned)) : of(planned)) == right);
        CHECK(eager_step(eager, of(eager), loss, sgd{.rate = 0.1}, t, o).item<double>() == right);
        CHECK(planned.w.values<float>() == copied.w.values<float>());
        CHECK(eager.w.values<float>() == copied.w.values<float>());
      }
      if (kind == 0) CHECK(eager_step(eager, eager.w, loss, sgd{}, t, o).item<double>() == run(planned.w));
    }
}

TEST_CASE("a trainer is not saved or loaded while a step runs") {
  network m;
  initialise(m, 1);
  auto const b = batch(64, 1);
  host_backend backend(1);
  auto const step = training_step(m, b, cross_entropy{}, sgd{});
  trainer run(step, plan_in_order(step.program), backend);
  run(b);
  neap::testing::scratch const folder;
  auto const path = folder / "run.safetensors";
  {
    auto const under_way = run.begin_call();
    CHECK(message_of([&] { (void)save(run, path); }).find("one thread at a time") != std::string::npos);
    CHECK(message_of([&] { (void)load(run, path); }).find("one thread at a time") != std::string::npos);
    CHECK(!std::filesystem::exists(path));
  }
  CHECK(save(run, path));
  CHECK(load(run, path));
  CHECK(message_of([&] {
          trainer small(step, plan_in_order(step.program), backend, execution_options{.sizes = {.limit = -5}});
        }).find("sizes.limit is a number of bytes, got -5") != std::string::npos);
}

TEST_CASE("a trainer that is called by two threads refuses one of them, in one line") {
  network m, reference;
  initialise(m, 1), initialise(reference, 1);
  auto const b = batch(64, 1);
  host_backend backend(1), other_backend(1);
  auto const step = training_step(m, b, cross_entropy{}, sgd{}),
             same = training_step(reference, b, cross_entropy{}, sgd{});
  trainer run(step, plan_in_order(step.program), backend);
  trainer alone(same, plan_in_order(same.program), other_backend);
  std::atomic<int> taken = 0, refused = 0, otherwise = 0;
  std::atomic<bool> both = false;
  auto const go = [&](bool first) {
    for (int i = 0; i < 20'000 && (i < 100 || refused == 0); ++i) {
      try {
        if (!first)
          while (!both) {}
        both = true;
        run(b), ++taken;
      } catch (error const& e) {
        ++(std::string_view(e.what()).find("one thread at a time") != std::string_view::npos ? refused : otherwise);
      }
    }
  };
  std::thread second(go, false);
  go(true);
  second.join();
  CHECK(refused > 0);
  CHECK(otherwise == 0);
  for (int i = 0; i < taken; ++i) alone(b);
  CHECK(m.out.weight.values<float>() == reference.out.weight.values<float>());
}

TEST_CASE("a batch may be a view with gaps: it is copied") {
  network planned, eager;
  initialise(planned, 1), initialise(eager, 1);
  auto const whole = batch(8, 1);
  host_backend backend(1);
  auto const step = training_step(planned, whole, cross_entropy{}, sgd{.rate = 0.1});
  trainer run(step, plan_in_order(step.program), backend);
  evaluator evaluate(planned, whole.first, backend);
  training_state state;
  tensor const turned = copy(permute(whole.first, {2, 0, 1})), every_other = stack({whole.second, whole.second}, 1);
  for (int i = 0; i < 3; ++i) {
    CHECK(run(std::pair{permute(turned, {1, 2, 0}), select(every_other, 1, i % 2)}) ==
          eager_step(eager, whole, cross_entropy{}, sgd{.rate = 0.1}, state).item<double>());
    CHECK(evaluate(permute(turned, {1, 2, 0})).values<float>() == evaluate(whole.first).values<float>());
  }
  CHECK(weights_of(planned) == weights_of(eager));
}

TEST_CASE("a watched step names the first operator whose result has an infinity or a NaN") {
  struct net {
    nn::linear in{6, 8}, out{8, 3};
    tensor operator()(tensor const& x) const { return out(log(in(x))); }
  };
  net model;
  initialise(model, 1);
  std::pair const good{tensor::zeros({4, 6}), tensor::zeros({4, 3})};
  auto const step = training_step(model, good, mse{}, sgd{.rate = 0});
  host_backend backend(1);
  auto const found = optimize(step, rematerialize{}, memory_limit::of_original(0.9));
  for (auto what : {anomaly::nan, anomaly::not_finite}) {
    trainer run(step, found.placed, backend, {.watch = what});
    model.in.bias.data<float>()[0] = 1;
    for (std::int64_t i = 0; i < 8; ++i) model.in.bias.data<float>()[i] = 1 + static_cast<float>(i);
    CHECK(run(good) > 0);
    model.in.bias.data<float>()[3] = 0;  // log 0: -inf, and a NaN in what follows
    auto const zero = message_of([&] { run(good); });
    CHECK(zero.find(what == anomaly::not_finite ? "the result of log, f32[4,8], is -inf at element 3 of 32"
                                                : "the result of ") != zero.npos);
    model.in.bias.data<float>()[3] = -1;
    auto const negative = message_of([&] { run(good); });
    CAPTURE(negative);
    CHECK(negative.find("the result of log") != negative.npos);
    CHECK(negative.find("nan at element 3 of 32") != negative.npos);
    CHECK(negative.starts_with("trainer.cpp:"));
    CHECK(step.state.counter().item<std::int64_t>() == (what == anomaly::nan ? 1 : 2));
  }
}

TEST_CASE("a plan, its candidate and what runs it share one graph beside the step's") {
  network model;
  initialise(model, 3);
  auto const step = training_step(model, batch(8, 0), cross_entropy{}, adamw{});
  auto const found = optimize(step, rematerialize{}, memory_limit::of_original(0.8));
  host_backend backend(1);
  trainer run(step, found.placed, backend);
  auto const* const planned = found.placed.graph.sources().data();
  CHECK(planned != step.program.sources().data());
  CHECK(found.best.graph.sources().data() == planned);
  CHECK(run.program().planned().graph.sources().data() == planned);
  CHECK(run.step().program.sources().data() == step.program.sources().data());
}
