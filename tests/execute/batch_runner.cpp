// Batches of other sizes than the sample's: sequences of all lengths, batches and images of all sizes, in the arena of
// the largest one. Each runs with the bits of an eager step; where no plan fits, it is refused and nothing has changed.
#include <neap/execute/batch_runner.hpp>

#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/optimize/optimize.hpp>

#include "../support/message.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::message_of;
using neap::testing::sanitized;

namespace {

using batch = std::pair<tensor, tensor>;

struct with_rnn {
  nn::linear in{6, 8}, state{8, 8}, head{8, 3};
  tensor operator()(tensor const& x) const {
    tensor h = tensor::zeros({x.size(0), 8});
    std::vector<tensor> all;
    for (std::int64_t t = 0; t < x.size(1); ++t) {
      h = tanh(in(select(x, 1, t)) + state(h));
      all.push_back(reshape(head(h), {x.size(0), 1, 3}));
    }
    return concat(all, 1);
  }
};
struct with_gru {
  nn::gru layer{6, 8, {.layers = 2}};
  nn::linear head{8, 3};
  tensor operator()(tensor const& x) const { return head(layer(x).output); }
};
struct with_lstm {
  nn::lstm layer{6, 8};
  nn::linear head{8, 3};
  tensor operator()(tensor const& x) const { return head(layer(x).output); }
};
struct with_attention {
  nn::linear in{6, 8};
  std::vector<nn::transformer_block> blocks = std::vector<nn::transformer_block>(2, nn::transformer_block(8, 2, 16));
  nn::linear head{8, 3};
  tensor operator()(tensor const& x) const {
    tensor y = in(x);
    for (auto const& b : blocks) y = b(y);
    return head(y);
  }
};
batch sequence(std::int64_t n, std::int64_t length, std::uint64_t seed) {
  return {tensor::randn({n, length, 6}, seed), tensor::randn({n, length, 3}, seed + 1)};
}

struct with_convolutions {
  nn::conv2d a{3, 4, 3, {.padding = 1}}, b{4, 4, 3, {.padding = 1}};
  nn::linear head{4, 3};
  tensor operator()(tensor const& x) const { return head(mean(relu(b(relu(a(x)))), {2, 3})); }
};
batch images(std::int64_t n, std::int64_t size, std::uint64_t seed) {
  return {tensor::randn({n, 3, size, size}, seed), tensor::randn({n, 3}, seed + 1)};
}

template <class Model>
std::vector<std::vector<float>> weights_of(Model& m) {
  std::vector<std::vector<float>> all;
  for (auto const& w : named_tensors(m, role::weight)) all.push_back(w.tensor.template values<float>());
  return all;
}

struct tally {
  int ran = 0, refused = 0;
};

/// Trains on batches of sizes in turn, planned for the first one, beside eager steps.
template <class Model, class Make>
void check_sizes(double limit, std::vector<std::int64_t> const& sizes, Make const& make, tally& seen) {
  Model planned, eager;
  initialise(planned, 3), initialise(eager, 3);
  adam const optimizer{.rate = 0.01};
  training_options const options{.clip_norm = 0.5};
  auto const step = training_step(planned, make(sizes.front(), 0), mse{}, optimizer, options);
  search_options o;
  o.iterations = sanitized ? 60 : 400;
  auto const found = optimize(step, default_moves, o, memory_limit::of_original(limit));
  host_backend backend(1);
  trainer run(step, found.placed, backend,
              {.sizes = {.search = time_budget{std::chrono::seconds(sanitized ? 60 : 20)}}});
  training_state state;
  std::uint64_t seed = 0;
  for (auto n : sizes) {
    CAPTURE(n);
    CAPTURE(limit);
    auto const b = make(n, ++seed);
    auto const before = weights_of(planned);
    double loss = 0;
    auto const what = message_of([&] { loss = run(b); });
    if (what != "no error") {
      ++seen.refused;
      MESSAGE(what);
      CHECK(what.find("trainer: a batch of this size needs ") != std::string::npos);
      CHECK(what.find('\n') == std::string::npos);
      CHECK(weights_of(planned) == before);
      continue;
    }
    ++seen.ran;
    CHECK(loss == eager_step(eager, b, mse{}, optimizer, state, options).template item<double>());
    CHECK(weights_of(planned) == weights_of(eager));
  }
  CHECK(run.program().high_water_bytes() <= found.placed.arena_bytes);
}

std::vector<std::int64_t> falling(std::int64_t from) {
  std::vector<std::int64_t> all;
  for (auto n = from; n > 0; --n) all.push_back(n);
  all.push_back(from);
  return all;
}

}  // namespace

TEST_CASE("sequences of all lengths, batches and images of all sizes run in the arena of the largest, bit for bit") {
  eager_context const context{{.threads = 1}};
  tally seen;
  for (double limit : {0.7, 0.5, 0.4}) {
    auto const of_length = [](std::int64_t t, std::uint64_t seed) { return sequence(4, t, seed); };
    auto const of_samples = [](std::int64_t n, std::uint64_t seed) { return sequence(n, 5, seed); };
    SUBCASE("rnn") { check_sizes<with_rnn>(limit, falling(9), of_length, seen); }
    SUBCASE("gru") { check_sizes<with_gru>(limit, falling(9), of_length, seen); }
    SUBCASE("lstm") { check_sizes<with_lstm>(limit, falling(9), of_length, seen); }
    SUBCASE("attention") { check_sizes<with_attention>(limit, falling(9), of_length, seen); }
    SUBCASE("batches") { check_sizes<with_gru>(limit, falling(8), of_samples, seen); }
    SUBCASE("batches and attention") { check_sizes<with_attention>(limit, falling(8), of_samples, seen); }
    SUBCASE("images") {
      check_sizes<with_convolutions>(
          limit, falling(10), [](std::int64_t s, std::uint64_t seed) { return images(2, s, seed); }, seen);
    }
  }
  CHECK(seen.refused == 0);
}

TEST_CASE(
    "a batch that is larger than the planned one is planned within the arena, or refused before anything changes") {
  eager_context const context{{.threads = 1}};
  with_gru planned, eager;
  initialise(planned, 3), initialise(eager, 3);
  auto const step = training_step(planned, sequence(4, 8, 0), mse{}, sgd{.rate = 0.1});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend, {.sizes = {.search = time_budget{std::chrono::seconds(20)}}});
  training_state state;
  CHECK(run(sequence(4, 8, 1)) == eager_step(eager, sequence(4, 8, 1), mse{}, sgd{.rate = 0.1}, state).item<double>());
  CHECK(run(sequence(4, 10, 2)) ==
        eager_step(eager, sequence(4, 10, 2), mse{}, sgd{.rate = 0.1}, state).item<double>());
  auto const before = weights_of(planned);
  auto const large = sequence(400, 10, 2);
  for (int i = 0; i < 2; ++i) {
    auto const what = message_of([&] { i == 0 ? (void)run(large) : run.prepare(large); });
    CHECK(what.find("trainer: a batch of this size needs at least ") != std::string::npos);
    CHECK(what.find("plan the largest batch first") != std::string::npos);
    CHECK(what.find('\n') == std::string::npos);
  }
  CHECK(weights_of(planned) == before);
  CHECK(run.size_count() == 2);
  CHECK(run(sequence(4, 8, 3)) == eager_step(eager, sequence(4, 8, 3), mse{}, sgd{.rate = 0.1}, state).item<double>());
  CHECK(weights_of(planned) == weights_of(eager));
}

TEST_CASE("larger batches than the sample are planned in the room that sizes.limit gives, and none beyond it") {
  eager_context const context{{.threads = 1}};
  with_gru planned, eager;
  initialise(planned, 3), initialise(eager, 3);
  auto const step = training_step(planned, sequence(2, 6, 0), mse{}, sgd{.rate = 0.1});
  auto const large = training_step(eager, sequence(64, 12, 0), mse{}, sgd{.rate = 0.1});
  auto const in_order = plan_in_order(large.program);
  host_backend backend(1);
  auto const small = plan_in_order(step.program);
  trainer run(step, small, backend,
              {.sizes = {.search = time_budget{std::chrono::seconds(20)}, .limit = in_order.arena_bytes * 8 / 10}});
  REQUIRE(small.arena_bytes < in_order.arena_bytes / 4);
  training_state state;
  for (auto const& [n, t] : {std::pair{2, 6}, {64, 12}, {32, 12}, {64, 9}, {2, 6}, {64, 12}})
    CHECK(run(sequence(n, t, 1)) ==
          eager_step(eager, sequence(n, t, 1), mse{}, sgd{.rate = 0.1}, state).item<double>());
  CHECK(weights_of(planned) == weights_of(eager));
  CHECK(message_of([&] { run.prepare(sequence(6400, 12, 1)); }).find(".limit") != std::string::npos);
  CHECK(run(sequence(2, 6, 2)) == eager_step(eager, sequence(2, 6, 2), mse{}, sgd{.rate = 0.1}, state).item<double>());

  // A limit below what the given plan needs, and one behind which no system has memory.
  trainer less(step, small, backend, {.sizes = {.limit = 1}});
  CHECK_NOTHROW(less.prepare(sequence(2, 6, 1)));
  if (!sanitized)  // the address sanitizer ends a program that asks for so much
    CHECK(message_of([&] { trainer(step, small, backend, {.sizes = {.limit = bytes_t{1} << 60}}); }).find("bytes") !=
          std::string::npos);
}

TEST_CASE("no search runs longer than it may, and none does beyond what is proved") {
  eager_context const context{{.threads = 1}};
  with_gru m;
  auto const step = training_step(m, sequence(8, 24, 0), mse{}, adam{}, {.clip_norm = 0.5});
  search_options o;
  o.iterations = 200;
  auto const found = optimize(step, rematerialize{} | truncate(24), o, memory_limit::of_original(0.05));
  REQUIRE(!found.fits);
  host_backend backend(1);
  trainer run(step, found.placed, backend,
              {.sizes = {.search = time_budget{std::chrono::milliseconds(200)}, .transfers = false}});
  auto const begin = std::chrono::steady_clock::now();
  auto const what = message_of([&] { run.prepare(sequence(8, 23, 0)); });
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < (sanitized ? 60 : 10));
  if (what != "no error") CHECK(what.find("found in 0.2 s") != std::string::npos);
}

TEST_CASE("of planned sizes a number is kept, and the least recently used goes first") {
  eager_context const context{{.threads = 1}};
  with_attention planned, eager;
  initialise(planned, 3), initialise(eager, 3);
  auto const make = [](std::int64_t t, std::uint64_t seed) { return sequence(2, t, seed); };
  auto const step = training_step(planned, make(20, 0), mse{}, sgd{.rate = 0.1}, {.keep_prediction = true});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend, {.sizes = {.kept = 3}});
  training_state state;
  auto const check = [&](std::int64_t t) {
    auto const b = make(t, static_cast<std::uint64_t>(t));
    CHECK(run(b) == eager_step(eager, b, mse{}, sgd{.rate = 0.1}, state).item<double>());
    CHECK(weights_of(planned) == weights_of(eager));
  };
  for (std::int64_t t = 1; t < 20; ++t) {
    check(t);
    CHECK(run.size_count() <= 4);
    check(19), check(20);
  }
  CHECK(run.size_count() == 4);
  // What ran last can be read, whatever is prepared afterwards.
  check(7);
  auto const told = run.output("prediction").values<float>();
  for (std::int64_t t = 8; t < 16; ++t) run.prepare(make(t, 0));
  CHECK(run.output("prediction").values<float>() == told);
  CHECK(run.last_program().planned().graph.op_count() > 0);
  check(7);

  auto const forward = evaluation_step(planned, make(20, 0).first);
  evaluator eval(forward, plan_in_order(forward.program), backend, {.sizes = {.kept = 2}});
  for (int i = 0; i < 3; ++i)
    for (std::int64_t t = 1; t < 9; ++t) {
      auto const x = make(t, 1).first;
      evaluation const off;
      CHECK(eval(x).values<float>() == planned(x).values<float>());
      CHECK(eval.size_count() <= 3);
    }
}
