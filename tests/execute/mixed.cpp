// Mixed precision: a step with {.precision = mixed{...}}, taken at once and planned under limits, gives the same bits; its
// losses are those of f32 to the noise of a seed; f16 leaves out steps that overflow, exactly.
#include <neap/train/mixed.hpp>

#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/resnet.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_file.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../../examples/models/bert.hpp"
#include "../support/files.hpp"
#include "../support/message.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

using ids = std::vector<std::int64_t>;

/// Tokens and the ones that follow, which a rule tells.
std::pair<tensor, tensor> words(int i, std::int64_t rows = 4, std::int64_t columns = 8) {
  random_stream draw(static_cast<std::uint64_t>(i) + 50);
  ids in, out;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t word = draw.below(16);
    for (std::int64_t k = 0; k < columns; ++k) {
      in.push_back(word);
      word = draw.below(8) == 0 ? static_cast<std::int64_t>(draw.below(16)) : (word * 5 + 3) % 16;
      out.push_back(word);
    }
  }
  return {tensor::from(in, {rows, columns}), tensor::from(out, {rows, columns})};
}
/// Images whose class says where they are bright.
std::pair<tensor, tensor> images(int i, std::int64_t count = 8) {
  random_stream draw(static_cast<std::uint64_t>(i) + 70);
  ids classes;
  std::vector<float> pixels;
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t const c = draw.below(4);
    classes.push_back(c);
    for (std::int64_t k = 0; k < 3 * 8 * 8; ++k)
      pixels.push_back(draw.uniform() + (k % 64 / 32 * 2 + k % 8 / 4 == c ? 1.f : 0.f));
  }
  return {tensor::from(pixels, {count, 3, 8, 8}), tensor::from(classes, {count})};
}

struct dropped_gpt : zoo::gpt {
  static zoo::gpt_config config_of() {
    auto c = zoo::gpt_config::toy();
    c.dropout = 0.1;
    return c;
  }
  dropped_gpt() : gpt(config_of()) {}
};
struct toy_bert : zoo::bert {
  toy_bert() : bert(zoo::bert_config::toy()) {}
  tensor operator()(tensor const& x) const { return bert::operator()(x); }
};
struct plain_bert : zoo::bert {
  static zoo::bert_config config_of() {
    auto c = zoo::bert_config::toy();
    c.dropout = 0;
    return c;
  }
  plain_bert() : bert(config_of()) {}
  tensor operator()(tensor const& x) const { return bert::operator()(x); }
};
struct toy_resnet : zoo::resnet {
  static zoo::resnet_config config_of() {
    auto c = zoo::resnet_config::toy();
    c.width = 8;
    return c;
  }
  toy_resnet() : resnet(config_of()) {}
};
/// What may go wrong with casts: a weight that is read thrice and looked at, a mask, a buffer that is moved and read, a
/// table, pooling, a penalty, a statistic.
struct odd_network {
  nn::conv2d conv{3, 8, 3, {.padding = 1}};
  nn::group_norm norm{2, 8};
  nn::multi_head_attention attention{8, 2};
  nn::linear shared{8, 8};
  nn::embedding places{16, 8};
  nn::layer_norm last{8};
  nn::linear out{8, 4};
  buffer average{{8}, initialiser::constant(0)};
  parameter scale{{}, initialiser::constant(1)};

  tensor operator()(tensor const& x) const {
    tensor y = max_pool2d(gelu(norm(conv(x))), {.window = {2, 2}, .stride = {2, 2}});  // (n, 8, 4, 4)
    y = transpose(flatten(y, 2), 1, 2) + places(arange(16));
    tensor const mask = reshape(slice(greater(x, 0.3), 1, 0, 1), {x.size(0), 64});
    y = y + attention(y, slice(mask, 1, 0, 16));
    y = shared(tanh(shared(y))) * scale + matmul(y, transpose(shared.weight));
    assign(average, average * 0.9 + mean(y, {0, 1}).detach() * 0.1);
    y = last(y - average) / (stddev(y, {2}, {.keepdim = true}) + 1);
    return out(mean(y, {1}));
  }
  static tensor arange(std::int64_t n) { return constant(tensor::from(count_to(n), {n})); }
  static ids count_to(std::int64_t n) {
    ids v;
    for (std::int64_t i = 0; i < n; ++i) v.push_back(i);
    return v;
  }
};
struct penalised {
  tensor operator()(odd_network& m, std::pair<tensor, tensor> const& s) const {
    return cross_entropy{}(m(s.first), s.second) + sum(square(m.out.weight)) * 1e-3;
  }
};
struct wide {
  nn::linear in{64, 1024}, middle{1024, 1024}, out{1024, 4};
  tensor operator()(tensor const& x) const { return out(relu(middle(relu(in(slice(flatten(x, 1), 1, 0, 64)))))); }
};

template <class Model>
bool same_tensors(Model& a, Model& b) {
  bool same = true;
  for (role r : {role::weight, role::buffer}) {
    auto const x = named_tensors(a, r), y = named_tensors(b, r);
    for (std::size_t i = 0; i < x.size(); ++i)
      same = same && std::memcmp(x[i].tensor.storage()->data(), y[i].tensor.storage()->data(),
                                 static_cast<std::size_t>(x[i].tensor.type().bytes())) == 0;
  }
  return same;
}
template <class Model>
bool same_states(Model& a, training_state s, Model& b, training_state t) {
  bool same = s.loss_scale() == t.loss_scale() && s.good_steps() == t.good_steps();
  auto const x = named_tensors(a, role::weight), y = named_tensors(b, role::weight);
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto const p = s.of(x[i].tensor), q = t.of(y[i].tensor);
    same = same && p.size() == q.size();
    for (std::size_t k = 0; same && k < p.size(); ++k)
      same = std::memcmp(p[k].storage()->data(), q[k].storage()->data(),
                         static_cast<std::size_t>(p[k].type().bytes())) == 0;
  }
  return same && s.counter().item<std::int64_t>() == t.counter().item<std::int64_t>();
}

auto planned(training_program const& step, double limit) {
  search_options search;
  search.memory_at_most = memory_limit::of_original(limit);
  search.iterations = 40;
  return optimize(step, zip(rematerialize{} | truncate(8), neap::swap{1e9} | truncate(4)), search).placed;
}

/// Steps taken at once and planned, in order and under a limit: the same losses, weights, buffers and states.
template <class Model, class Batch, class Loss, class Optimizer>
void check_same(Batch const& batch, Loss const& loss, Optimizer const& optimizer, training_options options,
                int steps = 3) {
  Model eager;
  initialise(eager, 1);
  options.seed = 4;
  training_state eager_state;
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(eager_step(eager, batch(i), loss, optimizer, eager_state, options).template item<float>());
  for (double limit : {1.0, 0.75}) {
    Model model;
    initialise(model, 1);
    training_state state;
    options.state = &state;
    auto const step = training_step(model, batch(0), loss, optimizer, options);
    auto const plan = limit < 1 ? planned(step, limit) : plan_in_order(step.program);
    CHECK(bool(verify_plan(step.program, plan)));
    host_backend backend(2);
    trainer run(step, plan, backend);
    for (int i = 0; i < steps; ++i) CHECK(static_cast<float>(run(batch(i))) == losses[static_cast<std::size_t>(i)]);
    CHECK(same_tensors(model, eager));
    CHECK(same_states(model, state, eager, eager_state));
  }
}

}  // namespace

TEST_CASE("mixed precision: at once and planned, the same bits") {
  for (dtype t : {dtype::bf16, dtype::f16}) {
    mixed const low{.element = t, .loss_scale = 1024};
    auto const text = [](int i) { return words(i); };
    auto const pictures = [](int i) { return images(i); };
    check_same<dropped_gpt>(text, cross_entropy{}, adamw{.rate = 1e-2}, {.clip_norm = 1, .precision = low});
    check_same<dropped_gpt>(text, cross_entropy{}, sgd{.rate = 1e-1}, {.micro_batches = 2, .precision = low});
    check_same<toy_bert>(text, cross_entropy{}, muon{}, {.precision = low});
    check_same<toy_resnet>(pictures, cross_entropy{}, momentum{}, {.precision = low});
    check_same<odd_network>(pictures, penalised{}, adam{.rate = 1e-2}, {.precision = low});
  }
  check_same<dropped_gpt>([](int i) { return words(i); }, cross_entropy{}, lion{},
                          {.precision = mixed{dtype::f16}, .loss_scale = 64});
}

TEST_CASE("mixed precision: updates made one with products of bf16") {
  for (bool fuse : {false, true}) {
    check_same<wide>([](int i) { return images(i); }, cross_entropy{}, adamw{.rate = 1e-3},
                     {.fuse_updates = fuse, .precision = mixed{}}, 2);
    wide model;
    initialise(model, 1);
    auto const step =
        training_step(model, images(0), cross_entropy{}, adamw{}, {.fuse_updates = fuse, .precision = mixed{}});
    CHECK(step.fused.empty() != fuse);
  }
}

TEST_CASE("mixed precision: other sizes of batches, and a training that was saved") {
  scratch const at;
  for (dtype t : {dtype::bf16, dtype::f16}) {
    training_options options{
        .clip_norm = 1, .seed = 4, .precision = mixed{.element = t, .loss_scale = 512, .growth_steps = 2}};
    std::int64_t const sizes[] = {4, 2, 4, 3, 2};
    auto const batch = [&](int i) { return words(i, sizes[i]); };
    dropped_gpt eager, model;
    initialise(eager, 1), initialise(model, 1);
    training_state eager_state, state;
    options.state = &state;
    host_backend backend(2);
    auto const step = training_step(model, batch(0), cross_entropy{}, adamw{}, options);
    trainer run(step, plan_in_order(step.program), backend);
    for (int i = 0; i < 5; ++i) {
      if (i == 2) REQUIRE(save(model, state, at / "run").ok());
      CHECK(static_cast<float>(run(batch(i))) ==
            eager_step(eager, batch(i), cross_entropy{}, adamw{}, eager_state, options).item<float>());
    }
    CHECK(same_tensors(model, eager));
    CHECK(same_states(model, state, eager, eager_state));
    if (t == dtype::f16) CHECK(state.loss_scale() == 2048);
    // In another model, before its step is made and after.
    for (bool before : {false, true}) {
      dropped_gpt other;
      training_state others;
      options.state = &others;
      if (before) load(other, others, at / "run").value();
      auto const again = training_step(other, batch(0), cross_entropy{}, adamw{}, options);
      trainer go(again, plan_in_order(again.program), backend);
      if (!before) load(other, others, at / "run").value();
      for (int i = 2; i < 5; ++i) go(batch(i));
      CHECK(same_tensors(model, other));
      CHECK(same_states(model, state, other, others));
    }
  }
}

TEST_CASE("mixed precision: losses over 100 steps are those of f32 to the noise of a seed") {
  if (neap::testing::sanitized) return;  // nothing but long
  auto const losses = [](auto& model, auto const& batch, std::uint64_t seed, std::optional<mixed> low) {
    initialise(model, seed);
    training_state state;
    std::vector<double> sums;
    for (int i = 0; i < 100; ++i) {
      if (i % 25 == 0) sums.push_back(0);
      sums.back() += eager_step(model, batch(i), cross_entropy{}, adamw{.rate = 3e-3}, state, {.precision = low})
                         .template item<double>() /
                     25;
    }
    return sums;
  };
  auto const compare = [&]<class Model>(Model*, auto const& batch, char const* name) {
    INFO(name);
    Model a, b, c, d;
    auto const one = losses(a, batch, 1, {}), two = losses(b, batch, 2, {}), bf = losses(c, batch, 1, mixed{}),
               half = losses(d, batch, 1, mixed{dtype::f16});
    CHECK(one.back() < 0.8 * one.front());  // it learns
    double noise = 0;
    for (std::size_t i = 0; i < one.size(); ++i) noise = std::max(noise, std::abs(one[i] - two[i]));
    for (std::size_t i = 0; i < one.size(); ++i) {
      CHECK(std::abs(bf[i] - one[i]) <= noise);
      CHECK(std::abs(half[i] - one[i]) <= noise);
    }
  };
  struct plain_gpt : zoo::gpt {
    plain_gpt() : gpt(zoo::gpt_config::toy()) {}
  };
  compare(
      static_cast<plain_gpt*>(nullptr), [](int i) { return words(i); }, "gpt");
  compare(
      static_cast<plain_bert*>(nullptr), [](int i) { return words(i); }, "bert");
  compare(
      static_cast<toy_resnet*>(nullptr), [](int i) { return images(i); }, "resnet");
}

TEST_CASE("mixed precision: gradients are those of f64 to the rounding of activations") {
  auto const check = [](auto&& model, auto&& wide_model, auto const& batch, double within) {
    initialise(model, 1), initialise(wide_model, 1);
    auto const weights = parameters(model);
    auto const wide_weights = parameters(wide_model);
    for (std::size_t i = 0; i < weights.size(); ++i) CHECK(weights[i].type() == wide_weights[i].type());
    tensor low_loss, loss;
    std::vector<tensor> low_gradients;
    {
      precision_scope const low(dtype::bf16);
      low_loss = cross_entropy{}(model(batch.first), batch.second);
      low_gradients = grad(low_loss, weights);
    }
    auto const gradients = grad(cross_entropy{}(wide_model(batch.first), batch.second), wide_weights);
    CHECK(low_loss.element() == dtype::f32);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      CHECK(low_gradients[i].element() == dtype::f32);
      auto const x = low_gradients[i].template values<double>(), y = gradients[i].template values<double>();
      for (std::size_t k = 0; k < x.size(); ++k) difference += (x[k] - y[k]) * (x[k] - y[k]), size += y[k] * y[k];
    }
    CHECK(std::sqrt(difference / size) < within);
    CHECK(std::sqrt(difference / size) > 1e-5);  // it was rounded
  };
  check(plain_bert(), plain_bert(), words(0), 0.04);
  check(odd_network(), odd_network(), images(0), 0.04);
}

namespace {
/// A model with everything that an overflowing step may touch: weights, a norm's running statistics, a buffer of its own.
struct overflowing {
  nn::conv2d conv{3, 8, 3, {.padding = 1}};
  nn::batch_norm2d norm{8};
  nn::dropout drop{0.2};
  nn::linear out{8, 4};
  buffer seen{{}, initialiser::constant(0)};
  tensor operator()(tensor const& x) const {
    tensor const y = drop(mean(relu(norm(conv(x))), {2, 3}));
    assign(seen, seen + mean(x));
    return out(y);
  }
};
}  // namespace

TEST_CASE("f16: a step that overflows changes nothing but the scale") {
  auto const check = [](auto const& optimizer, bool eager, double clip) {
    overflowing model, before;
    initialise(model, 1), initialise(before, 1);
    training_state state, state_before;
    // A step in f32's range of scales overflows f16 from a scale of some 2^20 on.
    training_options options{.clip_norm = clip,
                             .seed = 4,
                             .precision = mixed{.element = dtype::f16, .loss_scale = 0x1p30, .growth_steps = 3}};
    options.state = &state;
    auto const step = training_step(model, images(0), cross_entropy{}, optimizer, options);
    host_backend backend(2);
    trainer run(step, plan_in_order(step.program), backend);
    auto const take = [&](int i) {
      if (eager) (void)eager_step(model, images(i), cross_entropy{}, optimizer, state, options);
      else run(images(i));
    };
    double scale = 0x1p30;
    int skipped = 0;
    for (; skipped < 40; ++skipped) {
      take(skipped);
      if (state.counter().item<std::int64_t>() != 0) break;
      scale /= 2;
      CHECK(same_tensors(model, before));
      for (auto const& w : named_tensors(model, role::weight))
        for (auto const& s : state.of(w.tensor))
          for (double x : s.template values<double>()) CHECK(x == 0);
      CHECK(state.loss_scale() == scale);
      CHECK(state.good_steps() == 0);
    }
    CHECK(skipped > 1);
    CHECK(skipped < 35);
    CHECK(!same_tensors(model, before));
    // It counted: the running statistics have moved, the scale has not.
    CHECK(state.counter().item<std::int64_t>() == 1);
    CHECK(state.good_steps() == 1);
    CHECK(state.loss_scale() == scale);
    CHECK(model.norm.running_mean.template values<float>() != before.norm.running_mean.template values<float>());
    // An infinity in the batch: whatever the scale.
    auto bad = images(50);
    bad.first.template data<float>()[7] = std::numeric_limits<float>::infinity();
    auto const kept = [&] {
      std::vector<std::vector<double>> all;
      for (role r : {role::weight, role::buffer})
        for (auto const& t : named_tensors(model, r)) all.push_back(t.tensor.template values<double>());
      for (auto const& w : named_tensors(model, role::weight))
        for (auto const& s : state.of(w.tensor)) all.push_back(s.template values<double>());
      return all;
    };
    auto const was = kept();
    if (eager) (void)eager_step(model, bad, cross_entropy{}, optimizer, state, options);
    else run(bad);
    CHECK(kept() == was);
    CHECK(state.counter().item<std::int64_t>() == 1);
    CHECK(state.loss_scale() == scale / 2);
    CHECK(state.good_steps() == 0);
  };
  for (bool eager : {false, true}) {
    check(adamw{.rate = 1e-2}, eager, 0);
    check(momentum{}, eager, 1);
    check(muon{.use_adamw_for = {"out.*"}}, eager, 0);
    check(adafactor{}, eager, 0);
    check(lion{}, eager, 0);
    check(sgd{}, eager, 1);
    check(adam{}, eager, 0);
    check(nesterov{}, eager, 0);
  }
}

TEST_CASE("f16: the scale grows after so many good steps, and steps under a limit agree") {
  training_state state;
  overflowing model;
  initialise(model, 1);
  training_options const options{.seed = 4, .precision = mixed{dtype::f16, 256, 3, 4, 0.25}};
  std::vector<double> scales;
  for (int i = 0; i < 7; ++i) {
    (void)eager_step(model, images(i), cross_entropy{}, sgd{.rate = 1e-2}, state, options);
    scales.push_back(state.loss_scale());
  }
  CHECK(scales == std::vector<double>{256, 256, 1024, 1024, 1024, 4096, 4096});
  // Steps of which some overflow, at once and planned.
  check_same<overflowing>(
      [](int i) { return images(i); }, cross_entropy{}, adamw{},
      {.clip_norm = 1, .precision = mixed{.element = dtype::f16, .loss_scale = 0x1p26, .backoff = 0.125}}, 6);
}

TEST_CASE("f16: bad batches leave a scale that trains, their number is known, and so many of them throw") {
  struct net {
    nn::linear a{8, 16}, b{16, 3};
    tensor operator()(tensor const& x) const { return b(tanh(a(x))); }
  };
  auto const labels = tensor::from(std::vector<std::int64_t>{0, 1, 2, 0}, {4});
  std::pair const good{tensor::randn({4, 8}, 1), labels};
  std::pair const bad{tensor::full({4, 8}, std::numeric_limits<double>::quiet_NaN()), labels};
  for (bool eager : {false, true})
    for (double least : {1.0, 0x1p-24}) {
      CAPTURE(eager);
      net model;
      initialise(model, 1);
      training_state state;
      training_options const options{
          .precision = mixed{.element = dtype::f16, .min_loss_scale = least, .max_skipped = 60}, .state = &state};
      auto const step = training_step(model, good, cross_entropy{}, sgd{.rate = 0.5}, options);
      host_backend backend(1);
      trainer run(step, plan_in_order(step.program), backend);
      auto const take = [&](std::pair<tensor, tensor> const& b) {
        if (eager) return eager_step(model, b, cross_entropy{}, sgd{.rate = 0.5}, state, options).item<double>();
        return run(b);
      };
      for (int i = 1; i < 60; ++i) {
        take(bad);
        CHECK(run.state().skipped_steps() == i);
      }
      CHECK(message_of([&] { take(bad); }).find("60 steps in a row had gradients with an infinity or a NaN") !=
            std::string::npos);
      CHECK(state.loss_scale() == least);
      CHECK(state.counter().item<std::int64_t>() == 0);
      auto const before = model.a.weight.values<double>();
      double const first = take(good);
      CHECK(state.skipped_steps() == 0);
      CHECK(state.good_steps() == 1);
      for (int i = 0; i < 20; ++i) take(good);
      CHECK((take(good) < 0.9 * first) == (least == 1));  // below the floor, gradients are 0 in f16
      CHECK((model.a.weight.values<double>() != before) == (least == 1));
    }
}

TEST_CASE("models that are bf16 or f16 throughout train and are evaluated on the host") {
  for (dtype t : {dtype::bf16, dtype::f16}) {
    toy_resnet eager, model;
    for (auto* m : {&eager, &model}) set_element(*m, t), initialise(*m, 1);
    auto const batch = [&](int i) {
      auto b = images(i);
      b.first = cast(b.first, t);
      return b;
    };
    training_state state;
    auto const step = training_step(model, batch(0), cross_entropy{}, sgd{.rate = 0.05});
    host_backend backend(2);
    trainer run(step, plan_in_order(step.program), backend);
    double first = 0, last = 0;
    for (int i = 0; i < 12; ++i) {
      last = run(batch(i % 3));
      if (i == 0) first = last;
      CHECK(static_cast<float>(last) ==
            eager_step(eager, batch(i % 3), cross_entropy{}, sgd{.rate = 0.05}, state).item<float>());
    }
    CHECK(same_tensors(model, eager));
    CHECK(last < first);
    evaluator eval(model, batch(0).first, backend);
    evaluation const off;
    CHECK(eval(batch(1).first).values<float>() == eager(batch(1).first).values<float>());
  }
}

TEST_CASE("a precision scope: evaluators keep the precision that they were made in") {
  odd_network model;
  initialise(model, 1);
  host_backend backend(2);
  auto const x = images(0).first, y = images(1, 3).first;
  std::optional<precision_scope> scope(std::in_place, dtype::bf16);
  evaluator eval(model, x, backend);
  auto const compare = [&](tensor const& in) {
    odd_network beside;
    initialise(beside, 1);
    std::memcpy(beside.average.storage()->data(), model.average.storage()->data(), 32);
    std::vector<float> expected;
    {
      precision_scope const low(dtype::bf16);
      evaluation const off;
      tensor const made = beside(in);
      CHECK(made.element() == dtype::bf16);
      expected = made.values<float>();
    }
    CHECK(eval(in).values<float>() == expected);
  };
  compare(x);
  scope.reset();
  compare(x);
  compare(y);  // traced now
  CHECK(model(x).element() == dtype::f32);
  // f32 within a scope; and in a trace.
  precision_scope const low(dtype::bf16);
  tensor const a = tensor::randn({4, 4}, 1), b = matmul(a, a);
  CHECK(b.element() == dtype::bf16);
  {
    precision_scope const full(dtype::f32);
    CHECK(matmul(b, a).element() == dtype::f32);
  }
  CHECK((a * 2 + a).element() == dtype::f32);
  CHECK((a + b).element() == dtype::bf16);
  CHECK(sum(b).element() == dtype::f32);
  CHECK(logsumexp(b).element() == dtype::f32);
  CHECK(var(b, {1}).element() == dtype::f32);
  CHECK(norm(b).element() == dtype::f32);
  CHECK((b > a).element() == dtype::boolean);
  CHECK(einsum("ij,jk->ik", {a, b}).element() == dtype::bf16);
  auto const p = trace([](tensor const& in) { return matmul(in, in); }, a);
  CHECK(p.program.type(p.outputs[0]).element == dtype::bf16);
}

TEST_CASE("mixed precision: a weight is cast once, and activations take half the memory") {
  auto const casts_of_weights = [](training_program const& step) {
    std::size_t casts = 0, weights = 0;
    for (auto const& r : step.residents)
      if (step.program.role(r.value) == role::weight) {
        std::size_t own = 0;
        for (auto const& use : step.program.uses(r.value)) own += step.program.template as<op::cast>(use.op) != nullptr;
        CHECK(own <= 1);
        casts += own, ++weights;
      }
    CHECK(casts > weights / 2);
  };
  auto const peak = [&](auto&& model, auto const& batch, std::optional<mixed> low) {
    initialise(model, 1);
    auto const step = training_step(model, batch, cross_entropy{}, adamw{}, {.precision = low});
    if (low) casts_of_weights(step);
    auto const plan = plan_in_order(step.program);
    return static_cast<double>(plan.peak_bytes - plan.resident_bytes);
  };
  auto const compare = [&](auto const& make, auto const& batch, char const* name, double within) {
    double const full = peak(make(), batch, {}), low = peak(make(), batch, mixed{});
    MESSAGE(std::string(name) << ": " << full / 1024 << " KiB in f32, " << low / 1024 << " in bf16: " << low / full);
    CHECK(low < within * full);
  };
  compare(
      [] {
        zoo::gpt_config c;
        c.vocabulary = 64, c.context = 64, c.width = 64, c.heads = 4, c.layers = 4;
        return zoo::gpt(c);
      },
      words(0, 16, 64), "gpt", 0.7);
  compare(
      [] {
        zoo::bert_config c;
        c.vocabulary = 64, c.context = 64, c.width = 64, c.heads = 4, c.layers = 4, c.hidden = 256;
        return zoo::bert(c);
      },
      words(0, 16, 64), "bert", 0.7);
  compare(
      [] {
        auto c = zoo::resnet_config::of({3, 3}, false).narrow();
        c.width = 16;
        return zoo::resnet(c);
      },
      [] {
        random_stream draw(1);
        ids classes;
        for (int i = 0; i < 32; ++i) classes.push_back(draw.below(4));
        return std::pair{tensor::randn({32, 3, 32, 32}, 1), tensor::from(classes, {32})};
      }(),
      "resnet", 0.7);
}

namespace {
struct own_optimizer {
  static constexpr std::array<std::string_view, 0> states{};
  void update(tensor const& w, tensor const& g, std::span<tensor const>, update_inputs&) const {
    apply(op::accumulate{}, {w, g * -0.1});
  }
};
}  // namespace

TEST_CASE("mixed precision: mistakes in one line") {
  toy_resnet model;
  auto const said = [&](mixed const& low, auto const& optimizer, double scale = 0) {
    auto const text = message_of([&] {
      (void)training_step(model, images(0), cross_entropy{}, optimizer, {.precision = low, .loss_scale = scale});
    });
    training_state state;
    CHECK(text.substr(text.find(": ")) == [&] {
      auto const eager = message_of([&] {
        (void)eager_step(model, images(0), cross_entropy{}, optimizer, state, {.precision = low, .loss_scale = scale});
      });
      return eager.substr(eager.find(": "));
    }());
    CHECK(text.starts_with("mixed.cpp:"));
    CHECK(text.find('\n') == text.npos);
    return text;
  };
  auto const has = [](std::string const& text, char const* part) { return text.find(part) != text.npos; };
  CHECK(has(said(mixed{dtype::i32}, sgd{}), "mixed precision computes in bf16 or f16, not in i32"));
  CHECK(has(said(mixed{dtype::f32}, sgd{}), "mixed precision computes in bf16 or f16, not in f32"));
  CHECK(has(said(mixed{dtype::f16, -1}, sgd{}), "the loss scale must be a finite number above 0, got -1"));
  CHECK(has(said(mixed{dtype::f16, 8, 0}, sgd{}), "grows after at least 1 step, got 0"));
  CHECK(has(said(mixed{dtype::f16, 8, 1, 0.5}, sgd{}), "grows by a factor of at least 1, got 0.5"));
  CHECK(has(said(mixed{dtype::f16, 8, 1, 2, 1.5}, sgd{}), "shrinks by a factor above 0 and at most 1, got 1.5"));
  CHECK(has(said(mixed{dtype::f16, 8, 1, 2, 0.5, 0}, sgd{}), "above 0 and at most 2^126, got 0 and"));
  CHECK(has(said(mixed{dtype::f16, 8, 1, 2, 0.5, 4, 2}, sgd{}), "above 0 and at most 2^126, got 4 and 2"));
  CHECK(has(said(mixed{dtype::f16, 8, 1, 2, 0.5, 1, 2, -3}, sgd{}), "max_skipped must not be negative, got -3"));
  CHECK(has(said(mixed{dtype::f16}, own_optimizer{}), "this optimizer cannot leave out a step"));
  CHECK(message_of([&] { precision_scope const low(dtype::f64); }).find("bf16 or f16, not in f64") !=
        std::string::npos);
  // It can train in bf16, and in f16 with a scale that stays.
  for (auto const& [low, scale] : {std::pair{mixed{}, 0.0}, {mixed{dtype::f16}, 128.0}})
    (void)training_step(model, images(0), cross_entropy{}, own_optimizer{}, {.precision = low, .loss_scale = scale});
  auto const step = training_step(model, images(0), cross_entropy{}, sgd{}, {.precision = mixed{dtype::f16}});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend);
  CHECK(has(message_of([&] { run(images(0), {.loss_scale = 8}); }), "this step finds its loss scale"));
}

TEST_CASE("gradients of all uses of a weight arrive in f32") {
  struct net {
    parameter w{{1, 1}, initialiser::constant(1)};
  };
  for (int uses : {2, 1000})
    for (auto low : {dtype::bf16, dtype::f16}) {
      auto const loss = [uses](net& n, tensor const& x) {
        tensor t = matmul(x, n.w);
        for (int i = 1; i < uses; ++i) t = t + matmul(x, n.w) * (i % 2 ? 1.0078125 : 1);
        return sum(cast(t, dtype::f32));
      };
      training_options const o{.keep_gradients = true, .precision = mixed{.element = low, .loss_scale = 1}};
      net eager, planned;
      training_state s;
      auto const r = eager_step(eager, tensor::ones({1, 1}), loss, sgd{}, s, o);
      auto const step = training_step(planned, tensor::ones({1, 1}), loss, sgd{}, o);
      host_backend be(1);
      trainer run(step, plan_in_order(step.program), be);
      run(tensor::ones({1, 1}));
      double const all = uses + uses / 2 * 0.0078125;  // bf16 has neither
      CHECK(r.gradient("w").values<double>()[0] == doctest::Approx(all).epsilon(1e-6));
      CHECK(run.gradient("w").values<double>() == r.gradient("w").values<double>());
    }
}
