#include <neap/train/training_step.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>

#include "../support/message.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <new>

using namespace neap;
using neap::testing::message_of;

// Allocations of this program: how many bytes in pieces of at least 64 KiB.
namespace {
std::size_t large_bytes = 0;
void* allocate(std::size_t n, std::size_t alignment) {
  if (n >= 65536) large_bytes += n;
  void* p = std::aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment);
  if (!p) throw std::bad_alloc();
  return p;
}
}  // namespace
// Not inlined: g++ would take the pairs of malloc and delete that it sees then for mistakes.
#define NEAP_TEST_OUTLINE __attribute__((noinline))
NEAP_TEST_OUTLINE void* operator new(std::size_t n) { return allocate(n ? n : 1, alignof(std::max_align_t)); }
NEAP_TEST_OUTLINE void* operator new(std::size_t n, std::align_val_t a) {
  return allocate(n ? n : 1, static_cast<std::size_t>(a));
}
NEAP_TEST_OUTLINE void operator delete(void* p) noexcept { std::free(p); }
NEAP_TEST_OUTLINE void operator delete(void* p, std::size_t) noexcept { std::free(p); }
NEAP_TEST_OUTLINE void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
NEAP_TEST_OUTLINE void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

struct block {
  nn::layer_norm norm;
  nn::linear up, down;
  nn::dropout drop{0.2};
  tensor operator()(tensor const& x) const { return x + drop(down(gelu(up(norm(x))))); }
};
struct model {
  nn::linear in;
  std::vector<block> blocks;
  nn::linear out;
  tensor operator()(tensor x) const {
    x = in(x);
    for (auto const& b : blocks) x = b(x);
    return out(x);
  }
};

model make_model(std::int64_t in = 6, std::int64_t width = 16, std::int64_t out = 5) {
  model m{nn::linear(in, width), {}, nn::linear(width, out)};
  for (int i = 0; i < 2; ++i)
    m.blocks.push_back({nn::layer_norm(width), nn::linear(width, 2 * width), nn::linear(2 * width, width)});
  initialise(m, 11);
  return m;
}

std::pair<tensor, tensor> batch(int i, std::int64_t n = 8) {
  std::vector<std::int64_t> labels;
  for (std::int64_t k = 0; k < n; ++k) labels.push_back((k * 3 + i) % 5);
  return {tensor::randn({n, 6}, 100 + static_cast<std::uint64_t>(i)), tensor::from(labels, {n})};
}

// The program and the eager step agree to the last bit: losses, gradients' effects, weights, for several steps.
template <class Optimizer>
void check_equal_bits(Optimizer const& optimizer, training_options options = {}) {
  auto planned = make_model();
  auto eager = planned;
  auto const program = training_step(planned, batch(0), cross_entropy{}, optimizer, options);
  if (auto const s = verify(program.program); !s.ok()) FAIL(s.message());
  support::program_runner run(program);
  training_state state;
  double first = 0, last = 0;
  for (int i = 0; i < 5; ++i) {
    auto const b = batch(i);
    double const a = run({b.first, b.second});
    double const e = eager_step(eager, b, cross_entropy{}, optimizer, state, options).template item<double>();
    CHECK(a == e);
    (i == 0 ? first : last) = a;
    auto const pa = parameters(planned), pe = parameters(eager);
    for (std::size_t k = 0; k < pa.size(); ++k)
      CHECK(pa[k].template values<double>() == pe[k].template values<double>());
  }
  CHECK(std::isfinite(last));
}

}  // namespace

TEST_CASE("a traced step, run op by op, gives the eager step's bits") {
  SUBCASE("sgd") { check_equal_bits(sgd{.rate = 0.1, .weight_decay = 0.01}); }
  SUBCASE("momentum") { check_equal_bits(momentum{.rate = 0.1, .nesterov = true}); }
  SUBCASE("adam") { check_equal_bits(adam{.rate = 0.01}); }
  SUBCASE("adamw") { check_equal_bits(adamw{.rate = 0.01}); }
  SUBCASE("clipped") { check_equal_bits(adamw{.rate = 0.01}, {.clip_norm = 0.1}); }
  SUBCASE("accumulated") { check_equal_bits(adamw{.rate = 0.01}, {.micro_batches = 4}); }
  SUBCASE("clipped, accumulated") { check_equal_bits(momentum{}, {.clip_norm = 0.5, .micro_batches = 2, .seed = 3}); }
}

TEST_CASE("what a program says of itself") {
  auto m = make_model();
  auto const p = training_step(m, batch(0), cross_entropy{}, adamw{}, {.keep_gradients = true});
  auto const& g = p.program;
  CHECK(p.inputs.size() == 2);
  CHECK(g.type(p.inputs[0]).dims == shape{8, 6});
  CHECK(g.role(p.inputs[1]) == role::input);
  CHECK(g.type(p.loss).dims.rank() == 0);
  CHECK(g.role(p.loss) == role::loss);
  auto const weights = named_tensors(m, role::weight);
  CHECK(p.weights.size() == weights.size());
  CHECK(p.gradients.size() == weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    CHECK(g.name(p.weights[i]) == weights[i].name);
    CHECK(g.type(p.weights[i]) == g.type(p.gradients[i]));
    CHECK(g.role(p.gradients[i]) == role::gradient);
  }
  std::size_t of_role[5]{};
  bool step = false;
  for (auto const& r : p.residents) {
    CHECK(g.is_resident(g.storage(r.value)));
    CHECK(g.name(r.value) == r.name);
    CHECK(g.bytes(g.storage(r.value)) == r.holder.type().bytes());
    ++of_role[static_cast<std::size_t>(g.role(r.value))];
    step = step || r.name == "step";
  }
  CHECK(step);
  CHECK(of_role[static_cast<std::size_t>(role::weight)] == weights.size());
  CHECK(of_role[static_cast<std::size_t>(role::state)] == 2 * weights.size() + 3);  // step, numbers, seed of the draws
  CHECK(g.name(p.residents[0].value) == "in.weight");
  bool found = false;
  for (auto const& r : p.residents) found = found || r.name == "blocks.1.up.weight.second_moment";
  CHECK(found);
  // Weights' memory is the model's own.
  for (auto const& r : p.residents)
    if (r.name == "out.bias") CHECK(r.memory() == m.out.bias.data<float>());
  // Nothing in it is computed in vain.
  for (auto o : g.ops()) {
    bool used = false;
    for (auto v : g.outputs(o)) {
      used = used || !g.uses(v).empty() || g.record(v).alias == alias_kind::update;
      for (auto k : g.kept()) used = used || k == v;
    }
    CHECK_MESSAGE(used, g.facets(o).name);
  }
  // Nobody draws numbers: there is no seed.
  struct plain {
    nn::linear l;
    tensor operator()(tensor const& x) const { return l(x); }
  } q{nn::linear(6, 5)};
  auto const without = training_step(q, batch(0), cross_entropy{}, sgd{});
  CHECK(without.residents.size() == 4);  // weight, bias, numbers, step
  CHECK(without.gradients.empty());
}

TEST_CASE("equal models give equal programs") {
  auto a = make_model(), b = make_model();
  CHECK(training_step(a, batch(0), cross_entropy{}, adamw{}).program ==
        training_step(b, batch(1), cross_entropy{}, adamw{}).program);
}

TEST_CASE("tracing takes no memory, whatever the model's size") {
  large_bytes = 0;
  auto m = make_model(6, 2048);  // 2 x 2 x 16 MiB of weights and more
  auto const x = tensor::lazy({dtype::f32, {100'000, 6}}), y = tensor::lazy({dtype::i64, {100'000}});
  auto const p = training_step(m, std::pair{x, y}, cross_entropy{}, adamw{});
  CHECK(large_bytes < 1'000'000);  // the graph's tables
  CHECK(p.program.resident_bytes() > 200'000'000);
  for (auto const& r : p.residents) CHECK((!r.holder.has_data() || r.holder.type().bytes() <= 64));  // a few numbers
  (void)p.residents[0].memory();
  CHECK(p.residents[0].holder.has_data());
}

TEST_CASE("clipping bounds the length of all gradients") {
  auto m = make_model();
  auto const b = batch(0);
  for (auto& l : m.blocks) l.drop.p = 0;
  auto const gradients = [&](double bound) {
    auto g = grad(cross_entropy{}(m(b.first) * 100.0, b.second), parameters(m));
    if (bound > 0) g = clip_by_norm(g, bound);
    double total = 0;
    for (auto const& t : g)
      for (auto x : t.values<double>()) total += x * x;
    return std::sqrt(total);
  };
  double const whole = gradients(0);
  CHECK(whole > 1);
  CHECK(gradients(0.5) == doctest::Approx(0.5).epsilon(1e-4));
  CHECK(gradients(10 * whole) == doctest::Approx(whole).epsilon(1e-5));
}

TEST_CASE("accumulated gradients are the whole batch's to rounding") {
  auto m = make_model();
  for (auto& b : m.blocks) b.drop.p = 0;
  auto const b = batch(0);
  auto const whole = accumulated(cross_entropy{}, m, b, parameters(m));
  for (std::int64_t parts : {2, 4, 8}) {
    auto const sum = accumulated(cross_entropy{}, m, b, parameters(m), {.parts = parts});
    CHECK(sum.loss.item<double>() == doctest::Approx(whole.loss.item<double>()).epsilon(1e-5));
    for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
      auto const x = whole.gradients[i].values<double>(), y = sum.gradients[i].values<double>();
      for (std::size_t k = 0; k < x.size(); ++k) CHECK(std::abs(x[k] - y[k]) < 1e-6 + 1e-4 * std::abs(x[k]));
    }
  }
}

TEST_CASE("a number among the sample's tensors goes with every part") {
  struct weighted {
    tensor x, y, weight;
  };
  auto m = make_model();
  for (auto& b : m.blocks) b.drop.p = 0;
  auto const b = batch(0);
  weighted const s{b.first, b.second, tensor::full({}, 3)};
  auto const loss = [](auto const& net, weighted const& part) {
    return cross_entropy{}(net(part.x), part.y) * part.weight;
  };
  auto const whole = accumulated(loss, m, s, parameters(m)), sum = accumulated(loss, m, s, parameters(m), {.parts = 4});
  CHECK(sum.loss.item<double>() == doctest::Approx(whole.loss.item<double>()).epsilon(1e-5));
  auto const x = whole.gradients[0].values<double>(), y = sum.gradients[0].values<double>();
  for (std::size_t k = 0; k < x.size(); ++k) CHECK(std::abs(x[k] - y[k]) < 1e-6 + 1e-4 * std::abs(x[k]));
}

TEST_CASE("losses may take the model and a struct of tensors") {
  struct sample {
    tensor x, y;
    int scale = 2;
  };
  auto const b = batch(0);
  sample const s{b.first, b.second};
  auto const loss = [](auto const& net, sample const& part) {
    return cross_entropy{}(net(part.x), part.y) * part.scale;
  };
  auto m = make_model();
  auto eager = m;
  auto const p = training_step(m, s, loss, sgd{});
  CHECK(p.inputs.size() == 2);
  support::program_runner run(p);
  training_state state;
  CHECK(run({b.first, b.second}) == eager_step(eager, s, loss, sgd{}, state).item<double>());
}

TEST_CASE("a training goes on with its states") {
  auto a = make_model();
  auto b = a;
  training_state state;
  (void)eager_step(a, batch(0), cross_entropy{}, adamw{.rate = 0.01}, state);
  auto const p = training_step(a, batch(0), cross_entropy{}, adamw{.rate = 0.01}, {.state = &state});
  support::program_runner run(p);
  auto const second = batch(1);
  run({second.first, second.second});
  training_state other;
  for (int i = 0; i < 2; ++i) (void)eager_step(b, batch(i), cross_entropy{}, adamw{.rate = 0.01}, other);
  auto const pa = parameters(a), pb = parameters(b);
  for (std::size_t k = 0; k < pa.size(); ++k) CHECK(pa[k].values<float>() == pb[k].values<float>());
  CHECK(state.counter().item<int>() == 2);
}

namespace {

struct tied {  // one table, halved and turned
  tensor turned;
  parameter w{{5, 6}, initialiser::uniform(-1, 1)};
  tensor half = slice(w, 0, 1, 3);
  nn::linear l{2, 6};
  tied() { turned = transpose(w); }
  tied(tied const&) = delete;
  tensor operator()(tensor const& x) const {
    tensor const h = matmul(x, half, {.transpose_b = true});  // (8, 2)
    return matmul(tanh(l(h)), turned);
  }
  friend auto neap_fields(tied& self) { return std::tie(self.turned, self.w, self.half, self.l); }
};

// Steps of two equal models, one traced and run, one eager.
template <class Model>
void check_equal_steps(Model& planned, Model& eager, training_options const& options = {}) {
  initialise(planned, 5), initialise(eager, 5);
  auto const optimizer = adamw{.rate = 0.1};
  auto const program = training_step(planned, batch(0), cross_entropy{}, optimizer, options);
  if (auto const s = verify(program.program); !s.ok()) FAIL(s.message());
  support::program_runner run(program);
  training_state state;
  for (int i = 0; i < 4; ++i) {
    auto const b = batch(i);
    double const e = eager_step(eager, b, cross_entropy{}, optimizer, state, options).template item<double>();
    CHECK(run({b.first, b.second}) == e);
    auto const pw = named_tensors(planned, role::weight), ew = named_tensors(eager, role::weight);
    auto const pb = named_tensors(planned, role::buffer), eb = named_tensors(eager, role::buffer);
    REQUIRE(pw.size() == ew.size());
    for (std::size_t k = 0; k < pw.size(); ++k)
      CHECK_MESSAGE(pw[k].tensor.template values<double>() == ew[k].tensor.template values<double>(), pw[k].name);
    for (std::size_t k = 0; k < pb.size(); ++k)
      CHECK_MESSAGE(pb[k].tensor.template values<double>() == eb[k].tensor.template values<double>(), pb[k].name);
  }
}

}  // namespace

TEST_CASE("views of weights that were made with the model train like those made in the step") {
  tied planned, eager;
  check_equal_steps(planned, eager);
  CHECK(parameters(planned).size() == 3);
  auto const before = planned.w.values<double>();
  initialise(planned, 5);
  auto const first = planned.w.values<double>();
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(before[i] != first[i]);  // all of it was trained
}

TEST_CASE("weights that do not reach the loss are left alone in both modes") {
  struct partly {
    nn::linear a{6, 5}, nobody_reads{6, 5}, in_vain{6, 5}, ends_in_integers{6, 5}, fixed{6, 6};
    tensor operator()(tensor const& x) const {
      (void)in_vain(x);
      tensor const places = cast(arg_max(ends_in_integers(x)), dtype::f32);
      tensor h;
      {
        no_gradient const here;
        h = tanh(fixed(x));
      }
      return a(h) * unsqueeze(places, 1);
    }
  } planned, eager, untouched;
  initialise(untouched, 5);
  for (auto const& options : {training_options{}, training_options{.clip_norm = 0.1, .micro_batches = 2}}) {
    check_equal_steps(planned, eager, options);
    auto const now = named_tensors(planned, role::weight), first = named_tensors(untouched, role::weight);
    for (std::size_t k = 0; k < now.size(); ++k)
      CHECK_MESSAGE(
          (now[k].tensor.values<float>() == first[k].tensor.values<float>()) == !now[k].name.starts_with("a."),
          now[k].name);
  }
  auto const b = batch(0);
  auto const program = training_step(planned, b, cross_entropy{}, adamw{});
  CHECK(program.weights.size() == 2);
  for (auto const& g : grad(cross_entropy{}(eager(b.first), b.second), parameters(eager))) CHECK_FALSE(g.is_empty());
}

TEST_CASE("a loss that was made where nothing is recorded trains nothing, in both modes") {
  auto m = make_model();
  auto const loss = [](auto const& net, auto const&) {
    no_gradient const here;
    return sum(net.out.weight);
  };
  auto const text =
      "training_step: the loss depends on no weight of the model: was it detached, or made under no_gradient or evaluation?";
  CHECK(message_of([&] { training_step(m, batch(0), loss, sgd{}); }).ends_with(text));
  training_state state;
  CHECK(message_of([&] { eager_step(m, batch(0), loss, sgd{}, state); }).ends_with(text));
}

TEST_CASE("a detached weight is a constant in both modes") {
  struct detached {
    nn::linear a{6, 6}, out{6, 5};
    tensor operator()(tensor const& x) const { return out(x + linear(tanh(a(x)), a.weight.detach(), {})); }
  } planned, eager;
  check_equal_steps(planned, eager);
}

TEST_CASE("a buffer that the model updates is read as updated, in both modes") {
  struct counting {
    nn::linear a{6, 5};
    buffer n{{5}, initialiser::constant(0)};
    tensor operator()(tensor const& x) const {
      tensor const y = a(x);
      (void)apply(op::accumulate{}, {n, tensor::ones({5})});
      return y * n;
    }
  } planned, eager;
  check_equal_steps(planned, eager);
  CHECK(planned.n.values<float>() == std::vector<float>(5, 4));
}

TEST_CASE("a buffer that a gradient reads, updated before the loss reads it again: the gradient sees what it was") {
  struct averaging {
    nn::linear a{6, 6}, out{6, 5};
    buffer seen{{6}, initialiser::constant(1)};
    tensor operator()(tensor const& x) const {
      tensor const y = gelu(a(x) * seen);  // its gradient needs what was seen before
      {
        no_gradient const unrecorded;
        (void)apply(op::accumulate{}, {seen, mean(y, {0})});
      }
      return out(y + seen);
    }
  };
  averaging planned;
  initialise(planned, 1);
  averaging eager = planned;
  check_equal_steps(planned, eager);
  CHECK(planned.seen.values<float>() == eager.seen.values<float>());
}

TEST_CASE("mistakes are told with the user's place") {
  auto const place = [](int line) { return "training_step.cpp:" + std::to_string(line) + ": "; };
  struct bad {
    nn::linear l{6, 5};
    int line = 0;
    tensor operator()(tensor const& x) {
      line = __LINE__ + 1;
      return l(l(x));
    }
  } m;
  auto const b = batch(0);
  auto what = message_of([&] { training_step(m, b, cross_entropy{}, sgd{}); });
  CHECK(what == place(m.line) + "linear: inner extents differ, [8,5] x [5,6] transposed");
  CHECK(tracer::active() == nullptr);

  auto good = make_model();
  tensor const external = tensor::randn({8, 5}, 1);
  int line = 0;
  auto const loss = [&](auto const& net, auto const& s) {
    line = __LINE__ + 1;
    return mse{}(net(s.first), external);
  };
  what = message_of([&] { training_step(good, b, loss, sgd{}); });
  CHECK(what.find("reads a tensor that is neither an argument nor a part of the model") != std::string::npos);
  constant(external);
  CHECK(message_of([&] { training_step(good, b, loss, sgd{}); }) == "no error");

  auto const looks = [&](auto const& net, auto const& s) {
    tensor l = mse{}(net(s.first), external);
    line = __LINE__ + 1;
    if (l.template item<float>() > 1) return l * 0.5;
    return l;
  };
  what = message_of([&] { training_step(good, b, looks, sgd{}); });
  CHECK(what.starts_with(place(line)));
  CHECK(what.find("A choice by data is neap::where(condition, a, b)") != std::string::npos);

  CHECK(message_of([&] { training_step(good, b, cross_entropy{}, sgd{}, {.micro_batches = 3}); }) == "no error");
  what = message_of([&] {
    line = __LINE__ + 1;
    training_step(
        good, b, [](auto&, auto const& s) { return mean(s.first); }, sgd{});
  });
  CHECK(
      what ==
      place(line) +
          "training_step: the loss depends on no weight of the model: was it detached, or made under no_gradient or evaluation?");
  what = message_of([&] {
    line = __LINE__ + 1;
    accumulated(cross_entropy{}, good, std::pair{b.first, b.first}, parameters(good));
  });
  CHECK(what.starts_with(place(line) + "cross_entropy: "));
  tensor kept;
  (void)trace([&](tensor const& x) { return kept = x * 2; }, b.first);
  what = message_of([&] {
    line = __LINE__ + 1;
    kept + 1;
  });
  CHECK(what ==
        place(line) +
            "this tensor belongs to a trace that has ended, and has no data: make it an output of the loss, or of the "
            "traced function");
}

TEST_CASE("a loss may go through another model's weights where that is said, and where they cannot learn") {
  struct network {
    nn::linear a{6, 5};
    tensor operator()(tensor const& x) const { return a(x); }
  } model, teacher;
  std::pair const sample{tensor::randn({8, 6}, 1), tensor::randn({8, 5}, 2)};
  enum class way { plain, under_no_gradient, detached, compared };
  auto const with = [&](way how) {
    return [&teacher, how](network& net, std::pair<tensor, tensor> const& s) {
      tensor other;
      if (how == way::under_no_gradient) {
        no_gradient const still;
        other = teacher(s.first);
      } else if (how == way::detached) {
        other = teacher(s.first).detach();
      } else {
        other = teacher(s.first);
      }
      if (how == way::compared) other = cast(greater(other, 0), dtype::f32);  // no slope goes through
      return mse{}(net(s.first), other);
    };
  };
  for (auto how : {way::plain, way::under_no_gradient, way::detached, way::compared}) {
    CAPTURE(static_cast<int>(how));
    training_state state;
    auto const traced = message_of([&] { training_step(model, sample, with(how), sgd{}); });
    auto const eager = message_of([&] { eager_step(model, sample, with(how), sgd{}, state); });
    auto const text = "that is no part of the model and would never learn";
    CHECK((traced.find(text) != std::string::npos) == (how == way::plain));
    CHECK((eager.find(text) != std::string::npos) == (how == way::plain));
    if (how != way::plain) CHECK((traced == "no error" && eager == "no error"));
  }
  training_options const meant{.other_weights = true};
  initialise(model, 1), initialise(teacher, 2);
  network again = model;
  auto const before = teacher.a.weight.values<float>();
  auto const step = training_step(model, sample, with(way::plain), sgd{.rate = 0.1}, meant);
  support::program_runner run(step);
  training_state state;
  for (int i = 0; i < 2; ++i) {
    double const loss = eager_step(again, sample, with(way::plain), sgd{.rate = 0.1}, state, meant).item<double>();
    CHECK(run({sample.first, sample.second}) == loss);
  }
  CHECK(model.a.weight.values<float>() == again.a.weight.values<float>());
  CHECK(teacher.a.weight.values<float>() == before);
}

TEST_CASE("mistakes in samples and models of the library are told with the line of the step") {
  struct user {
    nn::linear a{6, 5};
    tensor operator()(tensor const& x) const { return a(x); }
  } m;
  struct counting {
    nn::linear a{6, 5};
    parameter n{{5}, initialiser::constant(2), dtype::i64};
    tensor operator()(tensor const& x) const { return a(x) + cast(n, dtype::f32); }
  } integers;
  nn::linear library(7, 5);
  nn::sequential several{nn::linear(7, 8), nn::relu(), nn::linear(8, 5)};
  auto const [x, labels] = batch(0);
  int line = 0;
  auto const check = [&](auto& model, auto const& sample, std::string_view text) {
    auto const traced = message_of([&] {
      line = __LINE__ + 1;
      training_step(model, sample, cross_entropy{}, sgd{});
    });
    CAPTURE(traced);
    CHECK(traced.starts_with("training_step.cpp:" + std::to_string(line) + ": "));
    CHECK(traced.find(text) != std::string::npos);
    training_state state;
    auto const eager = message_of([&] {
      line = __LINE__ + 1;
      eager_step(model, sample, cross_entropy{}, sgd{}, state);
    });
    CAPTURE(eager);
    CHECK(eager.starts_with("training_step.cpp:" + std::to_string(line) + ": "));
    CHECK(eager.find(text) != std::string::npos);
  };
  check(m, std::pair{x, tensor::zeros({5}, dtype::i64)}, "cross_entropy: targets [5] do not go with logits [8,5]");
  check(m, std::pair{x, x}, "cross_entropy: ");
  check(m, std::pair{x, tensor()}, "this tensor is empty");
  check(library, std::pair{x, labels}, "linear: inner extents differ, [8,6] x [5,7] transposed");
  check(several, std::pair{x, labels}, "linear: inner extents differ, [8,6] x [8,7] transposed");
  check(integers, std::pair{x, labels}, "the weight n is i64[5], which cannot be trained: make it a neap::buffer");
}

TEST_CASE("an eager step gives the loss, its other outputs and, on request, gradients") {
  struct given {
    tensor loss, logits, penalty;
  };
  auto m = make_model();
  auto const loss = [](model& net, std::pair<tensor, tensor> const& s) {
    tensor const logits = net(s.first);
    tensor const penalty = mean(square(net.out.weight));
    return given{cross_entropy{}(logits, s.second) + penalty, logits, penalty};
  };
  auto planned = m;
  training_state state;
  auto const r = eager_step(m, batch(0), loss, sgd{.rate = 0.1}, state, {.keep_gradients = true});
  auto const p = training_step(planned, batch(0), loss, sgd{.rate = 0.1}, {.keep_gradients = true});
  support::program_runner run(p);
  CHECK(run({batch(0).first, batch(0).second}) == r.item<double>());
  REQUIRE(r.outputs().size() == p.outputs.size());
  for (auto const& o : p.outputs) CHECK(r.output(o.name).values<double>() == run.value(o.value));
  auto const named = named_tensors(planned, role::weight);
  for (std::size_t i = 0; i < named.size(); ++i)
    CHECK(r.gradient(named[i].name).values<double>() == run.value(p.gradients[i]));
  CHECK_FALSE(r.output("logits").wants_gradient());
  CHECK(message_of([&] { r.output("logit"); }).find("no output \"logit\"; it has logits, penalty") !=
        std::string::npos);
  CHECK(message_of([&] { r.gradient("x"); }).find("the gradient of \"x\" is not known: no weight") !=
        std::string::npos);
  auto const plain = eager_step(m, batch(0), cross_entropy{}, sgd{}, state, {.keep_prediction = true});
  CHECK(plain.output("prediction").shape() == shape{8, 5});
  CHECK(message_of([&] { plain.gradient("out.weight"); }).find(".keep_gradients = true") != std::string::npos);
  tensor const number = eager_step(m, batch(0), cross_entropy{}, sgd{}, state);  // the loss alone
  CHECK(number.count() == 1);
}
