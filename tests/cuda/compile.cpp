// Compiled functions on a simulated device, by the host's kernels: from the first call on, with the bits of plain execution
// and of functions that are compiled for the host.
#include <neap/cuda/compile.hpp>

#include <neap/capture/cond.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/train/training_step.hpp>

#include "../support/content.hpp"
#include "../support/device/simulated_device.hpp"
#include "../support/message.hpp"
#include "compare_compiled.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

using namespace neap;
using neap::testing::compare_on_device;
using neap::testing::content_of;
using neap::testing::device_work;
using neap::testing::message_of;
using neap::testing::problems;
using neap::testing::sample;
namespace simulated_device = neap::testing::simulated_device;

namespace {

auto planned_at(double ratio) {
  search_options few;
  few.iterations = 60;
  return plan_with(default_moves, few, memory_limit::of_original(ratio));
}

struct network {
  nn::linear in{16, 24}, middle{24, 24}, out{24, 1};
  tensor operator()(tensor const& x) const { return out(tanh(middle(tanh(in(x))))); }
};
/// Counts, lowers its rate, accumulates gradients, scales its loss, records each ten steps.
struct training {
  network model;
  std::vector<buffer> sums;
  state<int> calls{0}, good{0};
  state<double> rate{0.1}, scale{8};
  buffer recorded{{}};
};
training new_training() {
  training t;
  initialise(t.model, 1);
  for (auto const& w : parameters(t.model)) t.sums.emplace_back(w.shape());
  return t;
}

tensor train(training& t, tensor const& x, tensor const& y) {
  auto const weights = parameters(t.model);
  tensor const difference = t.model(x) - y;
  tensor const loss = mean(difference * difference);
  auto const gradients = grad(loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) assign(t.sums[i], t.sums[i] + gradients[i]);
  ++t.calls;
  if (t.calls % 4 == 0) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      assign(weights[i], weights[i] - t.sums[i] * (t.rate / 4));
      assign(t.sums[i], t.sums[i] * 0.0);
    }
    t.rate *= 0.99;
  }
  if (t.calls % 10 == 0) assign(t.recorded, loss);
  return loss;
}
auto batch(int i) { return std::tuple{sample(i, 8), sum(sample(i, 8), {1}, true)}; }
auto large_batch(int i) { return std::tuple{sample(i, 64), sum(sample(i, 64), {1}, true)}; }

/// Scales its loss; the gradients are looked at before the update, and a value that is no number halves the scale.
tensor train_scaled(training& t, tensor const& x, tensor const& y) {
  auto const weights = parameters(t.model);
  tensor const difference = t.model(x) - y;
  tensor const loss = mean(difference * difference);
  auto const gradients = grad(loss * t.scale, weights);
  tensor largest = max(abs(gradients.front()));
  for (auto const& g : gradients) largest = maximum(largest, max(abs(g)));
  if (item<float>(largest) < 40.0f) {
    for (std::size_t i = 0; i < weights.size(); ++i) assign(weights[i], weights[i] - gradients[i] * (t.rate / t.scale));
    if (++t.good % 3 == 0) t.scale *= 2.0;
  } else {
    t.scale *= 0.5;
    t.good = 0;
  }
  ++t.calls;
  return loss;
}

std::vector<float> logged;
/// Logs each third loss.
tensor train_logged(training& t, tensor const& x, tensor const& y) {
  tensor const loss = train(t, x, y);
  if (t.calls % 3 == 0)
    effect([](float l, int n) { logged.push_back(l + static_cast<float>(n)); }, item<float>(loss), t.calls);
  return loss * 2;
}

struct pair_of_networks {
  nn::linear made{16, 16}, judged{16, 1};
  std::vector<buffer> sums;
  state<int> calls{0};
};
/// One network makes, another one judges; each has its own updates, in turn.
std::pair<tensor, tensor> train_both(pair_of_networks& p, tensor const& noise, tensor const& real) {
  tensor const made = tanh(p.made(noise));
  auto const judged = parameters(p.judged), making = parameters(p.made);
  tensor const judge = mean(relu(p.judged(made.detach()) + 1.0)) + mean(relu(1.0 - p.judged(real)));
  auto const g = grad(judge, judged);
  for (std::size_t i = 0; i < g.size(); ++i) {
    assign(p.sums[i], p.sums[i] * 0.5 + g[i]);
    assign(judged[i], judged[i] - p.sums[i] * 0.1);
  }
  tensor make = judge.detach();
  if (++p.calls % 2 == 0) {
    make = -mean(p.judged(made));
    auto const h = grad(make, making);
    for (std::size_t i = 0; i < h.size(); ++i) assign(making[i], making[i] - h[i] * 0.05);
  }
  return {judge, make};
}

/// Leaves early, where a tensor says so.
tensor early_exit(training& t, tensor const& x, sym<double> bound) {
  tensor h = tanh(t.model.in(x));
  for (int k = 0; k < 6; ++k) {
    if (mean(abs(h)).item<float>() < 0.01f) break;
    if (item<double>(mean(abs(h))) < bound) return h * static_cast<double>(k + 1);
    h = tanh(t.model.middle(h)) * 0.5;
    t.calls += 1;
  }
  assign(t.recorded, mean(h));
  return h;
}

}  // namespace

TEST_CASE(
    "a training loop with a counter, a schedule and gradient accumulation runs on the device from its first call") {
  CHECK(compare_on_device(train, new_training(), 24, batch) == 4);
  CHECK(compare_on_device(train, new_training(), 8, large_batch, planned_at(0.9)) == 2);
}

TEST_CASE("loss scaling, which looks at the gradients before it updates") {
  CHECK(compare_on_device(train_scaled, new_training(), 30, batch) > 2);
  CHECK(compare_on_device(train_scaled, new_training(), 6, large_batch, planned_at(0.9)) > 1);
}

TEST_CASE("effects in the middle are those of plain calls") {
  logged.clear();
  CHECK(compare_on_device(train_logged, new_training(), 12, batch) > 2);
  REQUIRE(logged.size() == 24);
  for (std::size_t k = 0; k < logged.size(); k += 3) {
    CHECK(logged[k] == logged[k + 1]);
    CHECK(logged[k] == logged[k + 2]);
  }
}

TEST_CASE("two networks and their updates, in turn") {
  pair_of_networks p;
  initialise(p.made, 1), initialise(p.judged, 2);
  for (auto const& w : parameters(p.judged)) p.sums.emplace_back(w.shape());
  CHECK(compare_on_device(train_both, p, 9, [](int i) { return std::tuple{sample(i), sample(i + 50)}; }) == 2);
}

TEST_CASE("an early exit on what a tensor contains: the stages before it run, and the answer decides") {
  CHECK(compare_on_device(early_exit, new_training(), 12, [](int i) {
          return std::tuple{sample(i), sym<double>(i % 4 == 0 ? 0.5 : i % 4 == 1 ? 0.1 : i % 4 == 2 ? 0.03 : 0.0)};
        }) > 2);
}

TEST_CASE("device memory is within the plan: the limit of one path, one arena for all") {
  simulated_device::reset(5);
  training there = new_training();
  cuda_backend backend;
  bytes_t original = 0, most = 0;
  auto const planner = planned_at(0.9);
  // compile() has no captured variables in f alone: a planner may have them.
  auto step = compile(
      train,
      [&](graph const& g, bytes_t of) {
        auto const p = planner(g, of);
        original = std::max(original, plan_in_order(g).arena_bytes), most = std::max(most, p.arena_bytes);
        return p;
      },
      backend);
  auto const before = simulated_device::counts().memory;
  for (int i = 0; i < 11; ++i) {
    auto [x, y] = large_batch(i);
    (void)step(there, x, y);
    CHECK(step.device_bytes() <= most);
    CHECK(simulated_device::counts().memory - before ==
          static_cast<std::size_t>(step.device_bytes() + backend.scratch_bytes()));
  }
  CHECK(step.graphs() == 3);
  CHECK(most <= original * 9 / 10);
  CHECK(simulated_device::counts().peak_memory <= static_cast<std::size_t>(most + backend.scratch_bytes()));
  CHECK(problems() == "");
}

TEST_CASE("weights and states stay on the device: a call copies the batch in, the loss and small states out") {
  simulated_device::reset(6);
  training there = new_training(), here = new_training();
  cuda_backend backend;
  auto step = compile(train, backend);
  auto const call = [&](int i) {
    auto [x, y] = batch(i);
    CHECK(step(there, x, y).item<float>() == train(here, x, y).item<float>());
  };
  for (int i = 0; i < 20; ++i) call(i);
  auto const before = simulated_device::counts();
  for (int i = 20; i < 29; ++i) call(i);
  auto const after = simulated_device::counts();
  CHECK(after.copies <= before.copies + 3 * 9);
  CHECK(after.memory == before.memory);
  CHECK(after.graph_launches == before.graph_launches + 9);
  CHECK(content_of(there) == content_of(here));  // reads all
  for (auto* t : {&there, &here}) t->model.middle.weight.data<float>()[3] = 0.5f;
  call(29), call(30);
  training copy = there;
  CHECK(content_of(copy) == content_of(here));
  CHECK(problems() == "");
}

TEST_CASE("values between graphs stay on the device: of them, only what decides is copied") {
  auto const f = [](training& t, tensor const& x) {
    tensor h = tanh(t.model.in(x));
    if (item<float>(mean(abs(h))) < 1e-6F) return h;
    tensor const g = tanh(t.model.middle(h));
    if (item<float>(max(g)) > 100.0F) return g;
    assign(h, h + g * 0.5);
    auto const least = item<float>(min(h));
    if (least > 100.0F) return h;
    ++t.calls;
    return mean(t.model.out(h - g) * least);
  };
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(13 + captured);
    training there = new_training(), here = new_training();
    cuda_backend backend;
    compile_options options;
    options.run.graph = captured;
    auto step = compile(f, backend, options);
    auto const call = [&](int i) {
      tensor x = sample(i, 64);
      CHECK(step(there, x).item<float>() == f(here, x).item<float>());
    };
    for (int i = 0; i < 4; ++i) call(i);
    auto const first = simulated_device::operations().size();
    auto const memory = simulated_device::counts().memory;
    constexpr int calls = 5;
    for (int i = 4; i < 4 + calls; ++i) call(i);
    constexpr std::size_t batch_bytes = 64 * 16 * sizeof(float), kept_bytes = 64 * 24 * sizeof(float);
    std::size_t in = 0, out = 0, kept = 0;
    auto const all = simulated_device::operations();
    for (std::size_t k = first; k < all.size(); ++k) {
      auto const& o = all[k];
      if (o.kind == device_work::copy_to_device) in += o.bytes;
      if (o.kind == device_work::copy_to_host) out += o.bytes;
      kept += o.kind == device_work::copy_on_device && o.bytes == kept_bytes;
    }
    CHECK(in >= calls * batch_bytes);
    CHECK(in < calls * (batch_bytes + 2048));
    CHECK(out < calls * 2048);
    CHECK(kept >= 2 * calls);
    CHECK(simulated_device::counts().memory == memory);
    CHECK(content_of(there) == content_of(here));
    CHECK(problems() == "");
  }
}

TEST_CASE("several models share graphs, others go, and what they had on the device is freed") {
  simulated_device::reset(7);
  cuda_backend backend;
  auto step = compile(train, backend);
  training there[3] = {new_training(), new_training(), new_training()};
  training here[3] = {new_training(), new_training(), new_training()};
  for (int m = 0; m < 3; ++m)
    for (auto* t : {&there[m], &here[m]}) initialise(t->model, static_cast<std::uint64_t>(m) + 4);
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    auto [x, y] = batch(i);
    CHECK(step(there[i % 3], x, y).item<float>() == train(here[i % 3], x, y).item<float>());
  }
  for (int m = 0; m < 3; ++m) CHECK(content_of(there[m]) == content_of(here[m]));
  auto const graphs = step.graphs();
  auto const bytes = step.device_bytes();
  for (int i = 0; i < 20; ++i) {
    training brief = new_training(), its = new_training();
    auto [x, y] = batch(i);
    CHECK(step(brief, x, y).item<float>() == train(its, x, y).item<float>());
    if (i % 2 == 0) CHECK(content_of(brief) == content_of(its));
  }
  CHECK(step.graphs() == graphs);
  CHECK(step.device_bytes() <= bytes);
  CHECK(problems() == "");
}

TEST_CASE("arguments by value, aliases, views and tensors that a call leaves") {
  struct history {
    nn::linear layer{16, 16};
    tensor last, part;
    state<int> n{0};
    tracked_vector<tensor> all;
    tracked_generator random{5};
  } first;
  initialise(first.layer, 3);
  auto const f = [](history& h, tensor x, sym<float> s, tensor const& y) {
    tensor const z = tanh(h.layer(x)) * s + y;
    if (!h.last.is_empty()) assign(h.last, h.last * 0.5 + z);
    else h.last = z;
    h.part = reshape(z, {4, 12});
    h.all.push_back(z * 0.5);
    if (h.all.size() > 2) h.all.erase(h.all.begin());
    if (h.random.uniform() < 0.4) x = x + h.all.front();
    ++h.n;
    return std::pair{x, h.part};
  };
  CHECK(compare_on_device(f, first, 10, [](int i) {
          tensor const x = sample(i);
          return std::tuple{x, sym<float>(0.5f * static_cast<float>(i)), i % 2 ? x : sample(i + 30)};
        }) > 3);
}

TEST_CASE("random numbers, functions of the host and their tensors") {
  struct drawn {
    nn::linear layer{16, 16};
    buffer counter{{}, initialiser::constant(0), dtype::i64};
    state<int> seen{0};
  } first;
  initialise(first.layer, 3);
  auto const f = [](drawn& d, tensor const& x) {
    step_clock clock(d.counter);
    random_scope const draws(7, clock);
    tensor const h = dropout(d.layer(x), 0.5);
    tensor const more = external([](tensor const& t) { return t * 2; }, h);
    sym<int> const n = external([](int k) { return k % 3; }, d.seen);
    ++d.seen;
    if (n == 1) return h + more;
    tensor const wide = external([](int k) { return tensor::ones({3, k % 2 + 1}); }, d.seen);
    return concat({h, wide}, 1) + sum(more);
  };
  CHECK(compare_on_device(f, first, 12, [](int i) { return std::tuple{sample(i)}; }) > 1);
}

namespace {
struct thrown_state {
  parameter w{{16, 16}, initialiser::normal(0, 1)};
  state<int> n{0};
  tensor last;
  int plain = 0;
};
int failures = 0;
}  // namespace

TEST_CASE("exceptions leave the state of plain calls, thrown by the function or by the host") {
  auto const f = [](thrown_state& s, tensor const& x, int how) {
    tensor const y = matmul(x, s.w);
    assign(s.w, s.w * 0.5 + 0.1);
    ++s.n;
    if (how == 1) throw std::out_of_range("one");
    if (how == 2 && item<float>(sum(y)) < 1e30f) throw std::out_of_range("two");
    if (how == 3) effect([](float) { throw std::runtime_error("three"); }, item<float>(mean(y)));
    if (how == 4) (void)external([](int) -> float { throw std::runtime_error("four"); }, s.n);
    if (how == 5) {
      try {
        effect([](float) { throw std::runtime_error("five"); }, item<float>(mean(y)));
      } catch (std::runtime_error const&) { assign(s.w, s.w * 0.9), ++failures; }
    }
    if (how == 6) (void)matmul(y, x);  // extents differ
    s.last = y, s.plain = how;
    ++s.n;
    assign(s.w, s.w + 1);
    return y;
  };
  simulated_device::reset(8);
  thrown_state there, plain;
  initialise(there, 2), initialise(plain, 2);
  cuda_backend backend;
  auto run = compile(f, backend);
  for (int i = 0; i < 21; ++i) {
    CAPTURE(i);
    std::string mine, its;
    tensor a, b;
    try {
      a = run(there, sample(i), i % 7);
    } catch (std::exception const& e) { mine = e.what(); }
    try {
      b = f(plain, sample(i), i % 7);
    } catch (std::exception const& e) { its = e.what(); }
    CHECK(mine == its);
    CHECK(content_of(a) == content_of(b));
    CHECK(content_of(there) == content_of(plain));
  }
  CHECK(problems() == "");
}

TEST_CASE("a path that ends by an exception is planned once, and has its effects in each call") {
  auto const f = [](thrown_state& s, tensor const& x, int how) {
    tensor const y = matmul(x, s.w);
    assign(s.w, s.w * 0.5 + 0.1);
    ++s.n;
    if (how == 1) throw std::out_of_range("one " + std::to_string((s.n % 2).value()));
    if (how == 2 && item<float>(sum(y)) < 1e30f) {
      s.last = y;
      throw std::out_of_range("two");
    }
    return y;
  };
  simulated_device::reset(8);
  thrown_state there, plain;
  initialise(there, 2), initialise(plain, 2);
  cuda_backend backend;
  int plans = 0;
  compile_options options;
  options.verify = 3;
  auto run = compile(
      f,
      [&](graph const& g) {
        ++plans;
        return plan_in_order(g);
      },
      backend, options);
  int first = 0;
  for (int i = 0; i < 18; ++i) {
    CAPTURE(i);
    auto const call = [&](auto& g, thrown_state& s) -> std::string {
      try {
        auto y = g(s, sample(i), i % 3);
        return content_of(y);
      } catch (std::out_of_range const& e) { return e.what(); }
    };
    auto const mine = call(run, there);
    CHECK(mine == call(f, plain));
    CHECK(content_of(there) == content_of(plain));
    if (i == 8) first = plans;  // `last` is there from the third call on
  }
  CHECK(plans == first);
  CHECK(run.graphs() == 7);
  CHECK(problems() == "");
}

TEST_CASE("what the device refuses is one line, and the state is as before the call") {
  simulated_device::reset(9);
  training there = new_training(), here = new_training();
  cuda_backend backend;
  for (bool const staged : {false, true})
    for (bool const captured : {true, false}) {
      CAPTURE(staged);
      CAPTURE(captured);
      compile_options options;
      options.run.graph = captured;
      auto const& f = staged ? train_scaled : train;
      auto step = compile(f, backend, options);
      auto const call = [&](int i) {
        auto [x, y] = batch(i);
        CHECK(step(there, x, y).item<float>() == f(here, x, y).item<float>());
      };
      for (int i = 0; i < 3; ++i) call(i);
      for (std::size_t nth = 1; nth <= 2; ++nth) {
        auto const before = content_of(here);
        simulated_device::fail(captured ? "cudaGraphLaunch" : "cudaMemcpyAsync", captured && staged ? nth : 1,
                               cudaErrorInvalidValue);
        auto [x, y] = batch(3);
        auto const line = message_of([&] { (void)step(there, x, y); });
        CAPTURE(line);
        CHECK(line.find("invalid argument") != std::string::npos);
        CHECK(line.find("compile.cpp:") == 0);
        CHECK(line.find('\n') == std::string::npos);
        CHECK(content_of(there) == before);
      }
      for (int i = 3; i < 6; ++i) call(i);
      CHECK(content_of(there) == content_of(here));
    }
  CHECK(problems() == "");
}

TEST_CASE("a fault of the device: one line, and the model has what was last copied back") {
  simulated_device::reset(10);
  training there = new_training();
  cuda_backend backend;
  auto step = compile(train, backend);
  auto const call = [&](int i) {
    auto [x, y] = batch(i);
    (void)step(there, x, y);
  };
  for (int i = 0; i < 3; ++i) call(i);
  auto const before = content_of(there);
  simulated_device::fail_execution(device_work::library, 3, cudaErrorIllegalAddress);
  auto const line = message_of([&] { call(3); });
  CAPTURE(line);
  CHECK(line.find("what was there is lost, the model has the data that were last copied back") != std::string::npos);
  CHECK(content_of(there) == before);
  simulated_device::reset();
}

TEST_CASE("what no graph on the device stands for is refused, never computed on the host") {
  simulated_device::reset(11);
  cuda_backend backend;
  training there = new_training();
  auto const refused = [&](auto& step, auto&... arguments) {
    auto const line = message_of([&] { (void)step(arguments...); });
    CAPTURE(line);
    CHECK(line.find("compile.cpp:") == 0);
    CHECK(line.find('\n') == std::string::npos);
    return line;
  };
  auto [x, y] = large_batch(0);
  auto const before = content_of(there);
  // No plan fits.
  auto tight = compile(train, planned_at(0.1), backend);
  for (int i = 0; i < 2; ++i)
    CHECK(refused(tight, there, x, y).find("does not run on the device: no plan runs it") != std::string::npos);
  // Too many graphs.
  compile_options one;
  one.graphs = 1;
  auto few = compile([](tensor const& t, int n) { return t * static_cast<double>(n); }, backend, one);
  int two = 2, three = 3;
  (void)few(x, two);
  CHECK(refused(few, x, three).find("the limit of 1 graphs is reached") != std::string::npos);
  // A structure that changes.
  struct grown {
    std::vector<tensor> all;
  } g;
  auto grows = compile([](grown& s, tensor const& t) { return s.all.push_back(t), t * 2; }, backend);
  CHECK(refused(grows, g, x).find("neap::tracked_vector") != std::string::npos);
  // A tensor that is no argument.
  static tensor const foreign = tensor::ones({64, 16});
  auto uses = compile([](tensor const& t) { return t * foreign; }, backend);
  CHECK(refused(uses, x).find("neither an argument nor a part of one") != std::string::npos);
  CHECK(content_of(there) == before);
  // No memory.
  simulated_device::reset(11, {.memory = 4096});
  cuda_backend small;
  auto large = compile(train, small);
  auto const line = refused(large, there, x, y);
  CHECK(line.find("bytes on the device") != std::string::npos);
  CHECK(line.find("memory_limit{") != std::string::npos);
  CHECK(content_of(there) == before);
  simulated_device::reset(11, {.devices = 0});
  CHECK(message_of([] { cuda_backend none; }).find("no GPU to be used: the driver finds no device") !=
        std::string::npos);
  simulated_device::reset();
}

TEST_CASE("prepared, verified, and beside a trainer") {
  simulated_device::reset(12);
  training there = new_training(), here = new_training();
  cuda_backend backend;
  compile_options options;
  options.verify = 2;
  auto step = compile(train, backend, options);
  for (int i = 0; i < 12; ++i) {
    auto [x, y] = batch(i);
    if (i % 5 == 0) step.prepare(there, x, y);
    CHECK(step(there, x, y).item<float>() == train(here, x, y).item<float>());
  }
  CHECK(content_of(there) == content_of(here));
  static int global;
  global = 0;
  auto depends = compile([](tensor const& t) { return t * static_cast<double>(global); }, backend, options);
  auto const [x, y] = batch(0);
  (void)depends(x);
  ++global;
  CHECK(message_of([&] { (void)depends(x), (void)depends(x); }).find("took different paths") != std::string::npos);

  auto const inputs = std::pair{sample(1, 8), sum(sample(1, 8), {1}, true)};
  auto const made = training_step(there.model, inputs, mse{}, sgd{.rate = 0.1});
  auto const same = training_step(here.model, inputs, mse{}, sgd{.rate = 0.1});
  host_backend host(1);
  {
    trainer run(made, plan_in_order(made.program), backend);
    trainer beside(same, plan_in_order(same.program), host);
    for (int i = 12; i < 18; ++i) {
      auto [a, b] = batch(i);
      CHECK(step(there, a, b).item<float>() == train(here, a, b).item<float>());
      CHECK(run(std::pair{a, b}) == beside(std::pair{a, b}));
    }
  }
  auto [a, b] = batch(20);
  CHECK(step(there, a, b).item<float>() == train(here, a, b).item<float>());
  CHECK(content_of(there) == content_of(here));
  CHECK(problems() == "");
}
