#include <neap/train/training_file.hpp>

#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "../support/files.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

struct network {
  nn::linear up{3, 4}, down{4, 2};
  tensor operator()(tensor const& x) const { return down(dropout(gelu(up(x)), 0.5)); }
};
std::pair<tensor, tensor> batch() { return {tensor::randn({6, 3}, 1), tensor::randn({6, 2}, 2)}; }

std::vector<std::string> names(std::string const& path) {
  std::vector<std::string> all;
  auto const file = safetensors_file::open(path);
  for (auto const& e : file->header().tensors) all.push_back(e.name);
  return all;
}
std::string without(std::string const& path, std::string const& name, std::vector<named_tensor> more = {}) {
  auto all = read_safetensors(path).value();
  std::erase_if(all, [&](auto const& n) { return n.name == name; });
  for (auto& n : more) all.push_back(std::move(n));
  REQUIRE(write_safetensors(path + ".without", all).ok());
  return path + ".without";
}

}  // namespace

TEST_CASE("what a training's file holds, and that it is one of the model too") {
  scratch const at;
  network a, b;
  training_state state;
  initialise(a, 1), initialise(b, 2);
  REQUIRE(save(a, state, at / "new").ok());
  CHECK(names(at / "new") == std::vector<std::string>{"training_state/step", "training_state/random", "up.weight",
                                                      "up.bias", "down.weight", "down.bias"});
  for (int i = 0; i < 3; ++i) eager_step(a, batch(), mse{}, momentum{}, state);
  REQUIRE(save(a, state, at / "f", {{"epoch", "1"}}).ok());
  CHECK(names(at / "f") == std::vector<std::string>{"training_state/step", "training_state/random", "up.weight",
                                                    "up.bias", "down.weight", "down.bias", "training_state/0/up.weight",
                                                    "training_state/0/up.bias", "training_state/0/down.weight",
                                                    "training_state/0/down.bias"});
  auto const r = load(b, at / "f");
  REQUIRE_MESSAGE(r, r.message());
  CHECK(r->metadata == safetensors_metadata{{"epoch", "1"}});
  CHECK(b.up.weight.values<float>() == a.up.weight.values<float>());
  training_state other;
  REQUIRE(load(b, other, at / "f"));
  CHECK(other.counter().item<std::int64_t>() == 3);
  CHECK(other.of(b.up.weight)[0].values<float>() == state.of(a.up.weight)[0].values<float>());
}

TEST_CASE("what a training's file lacks is told by name, and nothing has changed") {
  scratch const at;
  network a;
  training_state state;
  initialise(a, 1);
  for (int i = 0; i < 2; ++i) eager_step(a, batch(), mse{}, adamw{}, state);
  auto const path = at / "f";
  REQUIRE(save(a, state, path).ok());
  network b;
  training_state other;
  auto const message = [&](std::string const& p, load_options const& o = {}) { return load(b, other, p, o).message(); };
  eager_step(b, batch(), mse{}, adamw{}, other);
  REQUIRE(save(b, other, at / "before").ok());

  REQUIRE(save(a, at / "model").ok());
  CHECK(message(at / "model") == at / "model" + ": has no training, weights alone: load(model, path) loads them");
  auto p = without(path, "training_state/1/up.bias");
  CHECK(message(p) == p + ": does not fit the training: it has 1 states of \"up.bias\", the optimizer 2: "
                          "load_options{.drop_states = true} leaves them out");
  p = without(path, "training_state/0/up.bias");  // the second without the first
  CHECK(message(p) == p + ": does not fit the model: not in the model \"training_state/1/up.bias\" f32[4]");
  p = without(path, "training_state/1/up.bias", {{"training_state/1/up.bias", tensor::ones({5})}});
  CHECK(message(p) ==
        p + ": does not fit the model: of another type \"training_state/1/up.bias\" is f32[5] in the file, "
            "f32[4] in the model");
  p = without(path, "up.bias", {{"training_state/0/left", tensor::ones({1})}});
  CHECK(message(p) == p + ": does not fit the model: missing \"up.bias\" f32[4]; not in the model "
                          "\"training_state/0/left\" f32[1]");
  REQUIRE(save(b, other, at / "after").ok());
  CHECK(read_bytes(at / "before") == read_bytes(at / "after"));

  // A model's file where that is allowed: the states stay.
  REQUIRE(load(b, other, at / "model", {.allow_missing = true}));
  CHECK(other.counter().item<std::int64_t>() == 1);
  CHECK(b.up.bias.values<float>() == a.up.bias.values<float>());
  auto const kept = other.of(b.up.bias)[0].values<float>();
  CHECK(kept != std::vector<float>(4));
}

TEST_CASE("another optimizer's states are refused where they are known") {
  scratch const at;
  network a, b;
  training_state state, other;
  eager_step(a, batch(), mse{}, momentum{}, state);
  REQUIRE(save(a, state, at / "f").ok());
  auto const step = training_step(b, batch(), mse{}, adamw{}, {.state = &other});
  CHECK(load(b, other, at / "f").message() ==
        at / "f" +
            ": does not fit the training: it has 1 states of \"up.weight\", the optimizer 2: "
            "load_options{.drop_states = true} leaves them out");
}

TEST_CASE("states of another optimizer are refused in any order, or left out where that is asked for") {
  scratch const at;
  network a;
  initialise(a, 1);
  training_state state;
  for (int i = 0; i < 2; ++i) eager_step(a, batch(), mse{}, adam{}, state);
  REQUIRE(save(a, state, at / "adam").ok());
  auto const said = [](auto f) -> std::string {
    try {
      f();
    } catch (error const& e) { return e.what(); }
    return {};
  };
  auto const each = [&](auto const& optimizer) {
    for (bool drop : {false, true})
      for (bool step_first : {false, true}) {
        CAPTURE(drop);
        CAPTURE(step_first);
        network b;
        training_state t;
        auto const step = [&] { (void)training_step(b, batch(), mse{}, optimizer, {.state = &t}); };
        auto const read = [&] { load(b, t, at / "adam", {.drop_states = drop}).value(); };
        auto const message = said([&] { step_first ? (step(), read()) : (read(), step()); });
        CHECK(message.empty() == drop);
        if (!drop) CHECK(message.find("drop_states") != message.npos);
        if (!drop && step_first) CHECK(t.counter().item<std::int64_t>() == 0);
        if (!drop) continue;
        CHECK(t.counter().item<std::int64_t>() == 2);
        for (auto const& w : parameters(b))
          for (auto const& s : t.of(w))
            for (double x : s.values<double>()) CHECK(x == 0);
        CHECK(said(step).empty());  // another step of the same states
        CHECK(b.up.weight.values<float>() == a.up.weight.values<float>());
      }
  };
  each(sgd{});
  each(momentum{});
  each(adafactor{});
}

TEST_CASE("a state that no step goes on with is refused, saved or loaded") {
  scratch const at;
  network a, b;
  initialise(a, 1);
  training_state state, unused;
  auto const message = [&](training_state const& s) { return save(a, s, at / "f").message(); };
  CHECK(message(unused).empty());  // nothing was trained
  for (int i = 0; i < 3; ++i) eager_step(a, batch(), mse{}, adam{}, state);
  CHECK(message(state).empty());
  auto const refused = message(unused);
  CHECK(refused.find("has taken no step, and another one has taken 3") != refused.npos);
  (void)training_step(a, batch(), mse{}, adam{}, {.state = &unused});
  CHECK(message(unused).empty());  // a step goes on with it
  REQUIRE(load(b, state, at / "f"));
  training_state other;
  auto const step = [&](training_state& s) { eager_step(b, batch(), mse{}, adam{}, s); };
  CHECK_THROWS_WITH_AS(step(other), doctest::Contains("was loaded together with a training_state that is not"), error);
  CHECK(other.counter().item<std::int64_t>() == 0);
  step(state), step(other);  // once it has gone on, another one may train, too
  REQUIRE(load(b, state, at / "f"));
  REQUIRE(load(b, at / "f"));  // weights alone
  step(other);
  set_element(a, dtype::bf16);  // states stay f32, and are the weight's still
  auto const moment = state.of(a.up.weight)[0];
  CHECK(moment.type() == tensor_type{dtype::f32, {4, 3}});
  CHECK(moment.values<float>() != std::vector<float>(12));
}

TEST_CASE("states of 16-bit weights are f32, and come back") {
  scratch const at;
  network a, b;
  set_element(a, dtype::bf16), set_element(b, dtype::bf16);
  training_state state, other;
  auto const both = [](training_state& s, tensor const& w) {
    return s.of(w, std::array{state_like(w), state_like(w)});
  };
  for (auto const& w : parameters(a)) both(state, w)[1].storage()->restart(initialiser::uniform(0, 1).with_seed(1, 2));
  REQUIRE(save(a, state, at / "f").ok());
  REQUIRE(load(b, other, at / "f"));
  for (std::size_t i = 0; i < parameters(a).size(); ++i)
    CHECK(both(state, parameters(a)[i])[1].values<float>() == both(other, parameters(b)[i])[1].values<float>());
  CHECK(both(other, parameters(b)[0])[0].element() == dtype::f32);
}

TEST_CASE("draws of this thread go on where they were") {
  scratch const at;
  network model;
  training_state state;
  auto const draw = [] { return dropout(tensor::ones({64}), 0.5).values<float>(); };
  std::vector<float> next;
  {
    eager_context const here({.seed = 5});
    (void)draw();
    REQUIRE(save(model, state, at / "f").ok());
    next = draw();
  }
  eager_context const other({.seed = 6});
  CHECK(draw() != next);
  REQUIRE(load(model, state, at / "f"));
  CHECK(draw() == next);
}

TEST_CASE("states of weights follow their weights' new names") {
  struct inner {
    nn::linear a{3, 4};
    tensor operator()(tensor const& x) const { return a(x); }
  };
  struct outer {
    inner module;
    tensor operator()(tensor const& x) const { return module(x); }
  };
  scratch const at;
  outer from;
  initialise(from, 1);
  std::pair const sample{tensor::randn({5, 3}, 1), tensor::randn({5, 4}, 2)};
  training_state state, again;
  eager_step(from, sample, mse{}, adam{}, state);
  REQUIRE(save(from, state, at / "f").ok());
  inner to;
  auto const loaded = load(to, again, at / "f", {.strip_prefix = "module."});
  REQUIRE_MESSAGE(loaded, loaded.message());
  for (int i = 0; i < 2; ++i)
    CHECK(eager_step(from, sample, mse{}, adam{}, state).item<double>() ==
          eager_step(to, sample, mse{}, adam{}, again).item<double>());
  CHECK(load(to, again, at / "f").message().find(".strip_prefix") != std::string::npos);
}
