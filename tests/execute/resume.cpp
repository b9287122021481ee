// A training that stops after some steps, and goes on from its file in a model made anew, gives the bits of one that never
// stopped: losses, weights, running statistics and states, with dropout's draws, eager and planned, and from one to the
// other.
#include <neap/train/training_file.hpp>

#include <neap/capture/state.hpp>
#include <neap/execute/trainer_file.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/fuse.hpp>
#include <neap/train/training_step.hpp>

#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>

using namespace neap;
using namespace neap::testing;

namespace {

struct network {
  nn::conv2d conv{3, 8, 3, {.padding = 1}};
  nn::batch_norm2d norm{8};
  nn::dropout drop{0.3};
  nn::linear out{8 * 6 * 6, 4};
  tensor operator()(tensor const& x) const { return out(drop(flatten(relu(norm(conv(x))), 1))); }
};

struct counted {
  nn::linear only{3, 2};
  state<int> calls{0};
  std::optional<state<double>> rate{0.5};
  tensor operator()(tensor const& x) const { return only(x); }
};

std::pair<tensor, tensor> batch(int i) {
  std::vector<std::int64_t> classes;
  for (int k = 0; k < 8; ++k) classes.push_back((3 * k + i) % 4);
  return {tensor::randn({8, 3, 6, 6}, 100 + static_cast<std::uint64_t>(i)), tensor::from(classes, {8})};
}

/// A run of steps, in one of two ways.
template <class Optimizer>
struct training {
  network model;
  training_state state;
  Optimizer optimizer;
  training_options options;
  bool planned;
  std::unique_ptr<trainer<>> run;

  training(Optimizer const& o, bool with_plan, std::uint64_t seed) : optimizer(o), planned(with_plan) {
    initialise(model, seed);
    options = {.clip_norm = 1, .seed = 9, .state = &state};
  }
  double step(int i) {
    if (!planned)
      return eager_step(model, batch(i), cross_entropy{}, optimizer, state, options).template item<double>();
    if (!run) make();
    return (*run)(batch(i));
  }
  void make() {
    auto const step = training_step(model, batch(0), cross_entropy{}, optimizer, options);
    search_options search;
    search.memory_at_most = memory_limit::of_original(0.7);
    search.iterations = 60;
    auto const found = optimize(step, zip(rematerialize{} | truncate(8), neap::swap{1e9} | truncate(4)), search);
    run = std::make_unique<trainer<>>(step, found.placed, eager_context::current().backend());
  }
};

/// 4 steps, saved after each; each of the files goes on in the other way too, the trainer made before the load or after.
template <class Optimizer>
void check_resume(Optimizer const& optimizer) {
  scratch const at;
  for (bool planned : {false, true}) {
    eager_context const here({.seed = 3});  // its draws are in the files
    std::vector<double> losses;
    training<Optimizer> whole(optimizer, planned, 1);
    auto const file = [&](int k) { return at / (planned ? "planned" : "eager") + std::to_string(k); };
    for (int i = 0; i < 4; ++i) {
      REQUIRE(save(whole.model, whole.state, file(i)).ok());
      losses.push_back(whole.step(i));
    }
    REQUIRE(save(whole.model, whole.state, file(4)).ok());
    auto const end = read_bytes(file(4));
    for (int k = 0; k < 4; ++k)
      for (bool planned_then : {false, true})
        for (bool make_first : {false, true}) {
          if (make_first && !planned_then) continue;
          CAPTURE(planned);
          CAPTURE(k);
          CAPTURE(planned_then);
          CAPTURE(make_first);
          training<Optimizer> again(optimizer, planned_then, 2);
          if (make_first) again.make();
          auto const loaded = load(again.model, again.state, file(k));
          REQUIRE_MESSAGE(loaded, loaded.message());
          for (int i = k; i < 4; ++i) CHECK(again.step(i) == losses[static_cast<std::size_t>(i)]);
          REQUIRE(save(again.model, again.state, at / "end").ok());
          CHECK((read_bytes(at / "end") == end));
        }
  }
  CHECK((read_bytes(at / "eager4") == read_bytes(at / "planned4")));
}

}  // namespace

TEST_CASE("a resumed run gives the bits of one that went on") {
  SUBCASE("adamw") { check_resume(adamw{.rate = 0.01}); }
  SUBCASE("momentum") { check_resume(momentum{.rate = 0.05}); }
  SUBCASE("muon") { check_resume(muon{.rate = 0.01, .use_adamw_for = {"out.*"}}); }
  SUBCASE("adafactor") { check_resume(adafactor{.rate = 0.02}); }
  SUBCASE("sgd") { check_resume(sgd{.rate = 0.05}); }
  SUBCASE("rates by step") { check_resume(adamw{.rate = scheduled::cosine(0.02, 0.001, 4)}); }
}

TEST_CASE("a trainer goes on from a file where it is, and so does a program that was given no state") {
  scratch const at;
  network model;
  initialise(model, 1);
  auto const step = training_step(model, batch(0), cross_entropy{}, adamw{.rate = 0.01}, {.seed = 9});
  search_options search;
  search.iterations = 5;
  auto const found = optimize(step, rematerialize{} | truncate(2), search);
  trainer run(step, found.placed, eager_context::current().backend());
  run(batch(0));
  REQUIRE(save(model, step.state, at / "f").ok());
  std::vector<double> losses;
  for (int i = 1; i < 4; ++i) losses.push_back(run(batch(i)));
  auto state = step.state;
  REQUIRE(load(model, state, at / "f"));
  for (int i = 1; i < 4; ++i) CHECK(run(batch(i)) == losses[static_cast<std::size_t>(i) - 1]);
  // back to the beginning: states that the file has not are zeros again
  network first;
  initialise(first, 1);
  REQUIRE(save(first, training_state{}, at / "first").ok());
  training<adamw> eager(adamw{.rate = 0.01}, false, 1);
  eager.options = {.seed = 9};
  REQUIRE(load(model, state, at / "first"));
  for (int i = 0; i < 3; ++i) CHECK(run(batch(i)) == eager.step(i));
}

TEST_CASE("a trainer saves and loads its own state, whoever made it") {
  scratch const at;
  for (bool own : {true, false}) {
    network model, again;
    initialise(model, 1), initialise(again, 2);
    requires_gradient(model.conv, false), requires_gradient(again.conv, false);
    training_state state, state_again;
    auto& backend = eager_context::current().backend();
    auto const made = [&](network& m, training_state& s) {
      return training_step(m, batch(0), cross_entropy{}, adamw{.rate = scheduled::cosine(0.02, 0.001, 9)},
                           {.seed = 9, .state = own ? nullptr : &s});
    };
    auto const step = fuse(made(model, state)), step_again = made(again, state_again);
    trainer run(step, plan_in_order(step.program), backend);
    trainer resumed(step_again, plan_in_order(step_again.program), backend);
    for (int i = 0; i < 3; ++i) run(batch(i));
    REQUIRE(save(run, at / "f", {{"epoch", "1"}}).ok());
    auto const loaded = load(resumed, at / "f");
    REQUIRE_MESSAGE(loaded, loaded.message());
    CHECK(loaded->metadata == safetensors_metadata{{"epoch", "1"}});
    CHECK(resumed.state().counter().item<std::int64_t>() == 3);
    for (int i = 3; i < 6; ++i) CHECK(run(batch(i)) == resumed(batch(i)));
    // as the page had it: a state that the trainer does not use
    if (own) CHECK(save(model, state, at / "g").message().find("save(run, path)") != std::string::npos);
    training_state other;
    REQUIRE(load(again, other, at / "f"));
    CHECK_THROWS_WITH_AS(resumed(batch(0)), doctest::Contains("loaded together with a training_state that is not"),
                         error);
    REQUIRE(load(resumed, at / "f"));
    CHECK(resumed(batch(3)) > 0);
  }
}

TEST_CASE("numbers that a model keeps are in a training's file") {
  scratch const at;
  counted a, b, c;
  for (auto* m : {&a, &b, &c}) initialise(*m, 1);
  a.calls = 7, *a.rate = 0.25;
  std::pair const batch{tensor::randn({4, 3}, 1), tensor::randn({4, 2}, 2)};
  training_state state;
  eager_step(a, batch, mse{}, adam{}, state);
  REQUIRE(save(a, state, at / "run").ok());
  training_state other;
  REQUIRE(load(b, other, at / "run"));
  CHECK(b.calls.plain() == 7);
  CHECK(b.rate->plain() == 0.25);
  // A trainer's file, and one without such numbers.
  auto const step = training_step(c, batch, mse{}, adam{});
  host_backend backend;
  trainer run(step, plan_in_order(step.program), backend);
  REQUIRE(load(run, at / "run"));
  CHECK(c.calls.plain() == 7);
  c.calls = 8;
  REQUIRE(save(run, at / "of_trainer").ok());
  REQUIRE(load(a, state, at / "of_trainer"));
  CHECK(a.calls.plain() == 8);
  auto all = read_safetensors(at / "run").value();
  std::erase_if(all, [](auto const& n) { return n.name == "calls" || n.name == "rate"; });
  REQUIRE(write_safetensors(at / "without", all).ok());
  REQUIRE(load(a, state, at / "without"));
  CHECK(a.calls.plain() == 8);
}
