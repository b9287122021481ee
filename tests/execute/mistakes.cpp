// Mistakes that users of the DSL and the trainer make at run time: the message names the line of the user's program, never
// one of the library, and says what is wrong and what to do. (Mistakes that the compiler tells are in tests/house/errors.)
#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_file.hpp>

#include "../support/files.hpp"
#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

struct network {
  nn::linear in{6, 16}, out{16, 5};
  static constexpr int line = __LINE__ + 1;
  tensor operator()(tensor const& x) const { return out(gelu(in(x))); }
};
std::pair<tensor, tensor> batch(std::int64_t n = 8) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < n; ++i) labels.push_back(i % 5);
  return {tensor::randn({n, 6}, 1), tensor::from(labels, {n})};
}

/// A module with a private part, which tells one weight and keeps another one to itself.
class forgetful {
 public:
  tensor operator()(tensor const& x) const { return seen_(x) + unseen_(x); }
  friend auto neap_fields(forgetful& self) { return std::tie(self.seen_); }

 private:
  nn::linear seen_{6, 5}, unseen_{6, 5};
};
/// Layers that are copied before they are used.
struct copying {
  std::vector<nn::linear> layers{{6, 5}, {5, 5}};
  static constexpr int line = __LINE__ + 2;
  tensor operator()(tensor x) const {
    for (auto layer : layers) x = layer(x);  // NOLINT(performance-for-range-copy)
    return x;
  }
};
/// One that names none of its parts, which are used on two lines.
class silent {
 public:
  static constexpr int line = __LINE__ + 1;
  tensor operator()(tensor const& x) const { return b_(relu(a_(x))); }
  friend auto neap_fields(silent& self) { return std::tie(self.named_); }

 private:
  nn::linear named_{6, 5}, a_{6, 6}, b_{6, 5};
};
/// One whose module was never made.
struct unmade {
  std::unique_ptr<nn::linear> head;
  std::vector<nn::linear> layers;
  tensor operator()(tensor x) const {
    for (auto const& l : layers) x = l(x);
    return head ? (*head)(x) : x;
  }
};
struct sequences {
  nn::gru cells{6, 5};
  tensor operator()(tensor const& x) const { return select(cells(x).output, 1, -1); }
};
struct counting {
  nn::linear a{6, 5};
  parameter n{{5}, initialiser::constant(2), dtype::i64};
  tensor operator()(tensor const& x) const { return a(x) + cast(n, dtype::f32); }
};
struct word_model {
  nn::embedding words{10, 6};
  nn::linear out{6, 5};
  tensor operator()(tensor const& ids) const { return out(words(ids)); }
};
/// Models that go on from what they have stored in plain tensors: one that was given at first, one that grows.
struct recurrent {
  nn::linear in{6, 5}, again{5, 5};
  mutable tensor last = tensor::zeros({8, 5});
  static constexpr int line = __LINE__ + 2;
  tensor operator()(tensor const& x) const {
    tensor const h = tanh(in(x) + again(last));
    last = h.detach();
    return h;
  }
};
struct growing {
  nn::linear in{6, 5};
  mutable std::vector<tensor> seen;
  static constexpr int line = __LINE__ + 3;
  tensor operator()(tensor const& x) const {
    seen.push_back(in(x));
    return mean(stack(seen), {0});
  }
};
struct telling {
  tensor loss, logits;
};
struct mse_of_everything {
  tensor operator()(network& net, std::pair<tensor, tensor> const& s) const { return mean(square(net(s.first))); }
};

/// A step, planned in order and bound.
struct running {
  network model;
  host_backend backend{1};
  training_program step;
  trainer<> run;

  running() : step(make(model)), run(step, plan_in_order(step.program), backend) {}
  static training_program make(network& m) {
    auto const loss = [](network& net, std::pair<tensor, tensor> const& s) {
      tensor const logits = net(s.first);
      return telling{cross_entropy{}(logits, s.second), logits};
    };
    return training_step(m, batch(), loss, sgd{});
  }
};

/// An operator whose kernel knows f32 alone.
struct halved {
  static constexpr std::string_view name = "halved";
  static constexpr bool f32_or_f64 = true;
  void infer(shape_context& c) const { c.fresh(c.in(0)); }
  void relate(dim_context& c) const { c.aligned(0, 0); }
};
template <class Backend>
void run(Backend& b, halved const&, kernel_arguments const& a) {
  auto const* const x = a.in[0].as<float const>();
  auto* const y = a.out[0].as<float>();
  b.elementwise(a.in[0].count(), [=](std::int64_t i) { y[i] = x[i] / 2; });
}

int line = 0;  // where the mistake is

/// One row of the table: what f throws begins with file and line, and has each of the texts.
template <class F>
void mistake(char const* what, std::initializer_list<char const*> texts, F const& f) {
  INFO(what);
  auto const told = message_of(f);
  CAPTURE(told);
  CHECK(told.starts_with("mistakes.cpp:" + std::to_string(line) + ": "));
  for (auto const* text : texts) CHECK_MESSAGE(told.find(text) != std::string::npos, text);
  CHECK(told.find('\n') == std::string::npos);
  CHECK(tracer::active() == nullptr);
}
/// The same mistake in an eager step and in a traced one.
template <class Model, class Sample, class Loss, class Optimizer = sgd>
void mistake_in_step(char const* what, std::initializer_list<char const*> texts, Model& model, Sample const& sample,
                     Loss const& loss, Optimizer const& optimizer = {}, training_options const& options = {},
                     bool own_line = true) {
  mistake(what, texts, [&] {
    if (own_line) line = __LINE__ + 1;
    training_step(model, sample, loss, optimizer, options);
  });
  training_state state;
  mistake(what, texts, [&] {
    if (own_line) line = __LINE__ + 1;
    eager_step(model, sample, loss, optimizer, state, options);
  });
}

}  // namespace

TEST_CASE("mistakes in models and losses") {
  network model;
  auto const [x, labels] = batch();
  mistake("an input of another width", {"inner extents differ", "[8,4] x [16,6]"}, [&] {
    line = __LINE__ + 1;
    model.in(tensor::ones({8, 4}));
  });
  mistake("two element types", {"add: element types differ, f32[8,6] and f64[6]", "cast"}, [&] {
    line = __LINE__ + 1;
    x + tensor::ones({6}, dtype::f64);
  });
  mistake("shapes that do not broadcast", {"shapes do not broadcast, [8,6] and [8]"}, [&] {
    line = __LINE__ + 1;
    x* tensor::ones({8});
  });
  mistake("a layer that was never made", {"this tensor is empty: it has no value"}, [&] {
    nn::linear const unmade;
    line = __LINE__ + 1;
    unmade(x);
  });
  mistake("a word beyond the table", {"embedding", "12", "10"}, [&] {
    nn::embedding const words(10, 4);
    line = __LINE__ + 1;
    words(tensor::from(std::vector<std::int64_t>{3, 12}, {2}));
  });
  mistake("words that are not whole numbers", {"embedding", "i64", "f32[8,6]", "cast"}, [&] {
    nn::embedding const words(10, 4);
    line = __LINE__ + 1;
    words(x);
  });
  mistake("a probability that is none", {"dropout", "1.5"}, [&] {
    line = __LINE__ + 1;
    dropout(x, 1.5);
  });
  mistake("a tensor of a trace that is over", {"belongs to a trace that has ended", "an output of the loss"}, [&] {
    tensor kept;
    (void)trace([&](tensor const& t) { return kept = t * 2; }, x);
    line = __LINE__ + 1;
    kept + 1;
  });
  mistake("a gradient of several numbers", {"the loss must be one number, this is f32[8,6]", "mean() or sum()"}, [&] {
    tensor const w = x.with_gradient();
    line = __LINE__ + 1;
    (void)grad(w * w, {w});
  });
  mistake("a gradient of what was not asked to have one", {"grad: ", "f32[8,6]", "with_gradient()"}, [&] {
    tensor const l = sum(x * x);
    line = __LINE__ + 1;
    (void)grad(l, {x});
  });
  mistake("what a gradient needs is changed", {"was changed in place", "copy"}, [&] {
    tensor const w = tensor::ones({3}).with_gradient(), state = tensor::ones({3});
    tensor const l = sum(w * state);
    apply(op::accumulate{}, {state, state});
    line = __LINE__ + 1;
    (void)grad(l, {w});
  });
}

TEST_CASE("mistakes in steps, eager and traced") {
  network model;
  auto const b = batch();
  auto const [x, labels] = b;
  mistake_in_step("an input of another width", {"inner extents differ, [8,4] x [16,6]"}, model.in,
                  std::pair{tensor::ones({8, 4}), tensor::ones({8, 16})}, mse{});
  mistake_in_step("targets of another type", {"cross_entropy: targets must be i64, got f32[8]"}, model,
                  std::pair{x, tensor::ones({8})}, cross_entropy{});
  mistake_in_step("targets of another shape", {"targets [4] do not go with logits [8,5]"}, model,
                  std::pair{x, slice(labels, 0, 0, 4)}, cross_entropy{});
  mistake_in_step("a loss that is no number", {"the loss must be one number, this is f32[8,5]", "mean() or sum()"},
                  model, b, [](network& m, auto const& s) { return m(s.first); });
  mistake_in_step("a loss without weights", {"the loss depends on no weight of the model", "detach"}, model, b,
                  [](network& m, auto const& s) { return mean(m(s.first).detach()); });
  mistake_in_step("a loss that is no tensor", {"the loss returns an empty tensor"}, model, b,
                  [](network&, auto const&) { return tensor(); });
  counting whole;
  mistake_in_step("a weight of whole numbers", {"the weight n is i64[5]", "make it a neap::buffer"}, whole, b,
                  cross_entropy{});
  forgetful some;
  mistake_in_step("a weight that neap_fields does not tell", {"the program reads a weight f32[5", "neap_fields"}, some,
                  b, cross_entropy{});
  silent all;
  auto const where = "mistakes.cpp:" + std::to_string(silent::line);
  mistake_in_step("two modules that neap_fields does not name",
                  {("the program reads a weight f32[6,6] at " + where).c_str(), ("f32[5,6] at " + where).c_str(),
                   ("f32[6] at " + where).c_str(), ("f32[5] at " + where).c_str(), "list it in neap_fields"},
                  all, b, cross_entropy{});
  unmade none;
  mistake_in_step("modules that were never made",
                  {"the model has no weights, of its parts head is null, layers is empty: make its modules"}, none, b,
                  cross_entropy{});
  none.layers.emplace_back(3, 3);
  none.layers.pop_back();
  struct half_made {
    unmade part;
    nn::linear unused{6, 5};
    tensor operator()(tensor const& input) const { return part(input); }
  } half;
  mistake_in_step("modules that were never made, beside one that is not used",
                  {"on no weight of the model", "Or was a module never made: part.head is null, part.layers is empty?"},
                  half, b, cross_entropy{});
  std::pair const swapped{b.second, b.first};
  network fine;
  mistake_in_step("the batch's parts swapped",
                  {"the parts of the batch seem to be swapped: the model got i64[8], the target is f32[8,6]"}, fine,
                  swapped, cross_entropy{});
  word_model words;
  std::pair const words_swapped{tensor::randn({8, 5}, 1), tensor::from<std::int64_t>({1, 2, 3, 4, 5, 6, 7, 8}, {8})};
  mistake_in_step("numbers where ids belong",
                  {"the parts of the batch seem to be swapped: the model got f32[8,5], the target is i64[8]"}, words,
                  words_swapped, mse{});
  sequences recurrent;
  std::pair const wide{tensor::randn({8, 3, 7}, 1), b.second};
  mistake("a width that a GRU does not take", {"gru: takes inputs of width 6, got f32[8,3,7]"}, [&] {
    line = __LINE__ + 1;
    recurrent.cells(wide.first);
  });
  mistake("a cell of another width", {"lstm: takes inputs of width 6, got f32[8,7]"}, [&] {
    nn::lstm_cell const cell(6, 5);
    line = __LINE__ + 1;
    cell(tensor::ones({8, 7}), cell.start(8));
  });
  mistake("a recurrent net that was never made", {"gru: this module was never made"}, [&] {
    line = __LINE__ + 1;
    nn::gru()(wide.first);
  });
  copying copies;
  mistake("layers that are copied, eagerly", {"the program reads a weight f32[5", "by reference (a copy has"}, [&] {
    training_state state;
    line = __LINE__ + 1;
    eager_step(copies, b, cross_entropy{}, sgd{}, state);
  });
  mistake("layers that are copied, traced", {"a copy of a weight, f32[5,6]", "by reference (auto const&)"}, [&] {
    line = copying::line;
    training_step(copies, b, cross_entropy{}, sgd{});
  });
  mistake_in_step("a scale of the loss without end", {"the loss scale must be a finite number above 0, got inf"}, model,
                  b, cross_entropy{}, sgd{}, {.loss_scale = std::numeric_limits<double>::infinity()});
  mistake_in_step("a scale of the loss below nothing", {"the loss scale must be a finite number above 0, got -2"},
                  model, b, cross_entropy{}, sgd{}, {.loss_scale = -2});
  mistake_in_step("no parts", {"micro_batches must be at least 1, got -3"}, model, b, cross_entropy{}, sgd{},
                  {.micro_batches = -3});
  mistake_in_step("a group of nobody", {"no weight of the model is in the group \"encoder.*\"", "in.weight"}, model, b,
                  cross_entropy{}, sgd{}, {.groups = {{.match = "encoder.*"}}});
  mistake_in_step("a rate below nothing", {"the optimizer's rate is -0.1", "at least 0"}, model, b, cross_entropy{},
                  sgd{.rate = -0.1});
  mistake_in_step("a beta of 1", {"the optimizer's beta1 is 1", "below 1"}, model, b, cross_entropy{},
                  adam{.beta1 = 1});
  mistake_in_step("a bound on gradients below nothing", {"clip_norm", "-1"}, model, b, cross_entropy{}, sgd{},
                  {.clip_norm = -1});
}

TEST_CASE("mistakes in traced steps alone") {
  network model;
  auto const b = batch();
  tensor const external = tensor::randn({8, 5}, 1);
  mistake("a look at data", {"neap::where(condition, a, b)"}, [&] {
    training_step(
        model, b,
        [](network& m, auto const& s) {
          tensor l = cross_entropy{}(m(s.first), s.second);
          line = __LINE__ + 1;
          if (l.template item<float>() > 1) l = l * 2;
          return l;
        },
        sgd{});
  });
  mistake("a look at a weight's memory", {"f32[16,6]", "may be others in each step"}, [&] {
    training_step(
        model, b,
        [](network& m, auto const& s) {
          line = __LINE__ + 1;
          return cross_entropy{}(m(s.first), s.second) * m.in.weight.template data<float>()[0];
        },
        sgd{});
  });
  mistake("a look at the sample's memory", {"f32[8,6]", "may be others in each step"}, [&] {
    training_step(
        model, b,
        [&](network& m, auto const& s) {
          line = __LINE__ + 1;
          return cross_entropy{}(m(s.first), s.second) * b.first.ref().template as<float>()[0];
        },
        sgd{});
  });
  mistake("a tensor from outside", {"neither an argument nor a part of the model", "neap::constant"}, [&] {
    training_step(
        model, b,
        [&](network& m, auto const& s) {
          line = __LINE__ + 1;
          return mean(m(s.first) * external);
        },
        sgd{});
  });
  struct centred {
    nn::linear a{6, 5};
    buffer mean{{5}, initialiser::constant(0)};
  } centre;
  mistake("a buffer that is copied", {"a copy of a buffer, f32[5]", "by reference (auto const&)"}, [&] {
    training_step(
        centre, b,
        [](centred& m, auto const& s) {
          auto const before = m.mean;  // NOLINT(performance-unnecessary-copy-initialization)
          line = __LINE__ + 1;
          return cross_entropy{}(m.a(s.first) - before, s.second);
        },
        sgd{});
  });
  recurrent from_before;
  char const *stored = "was made by an earlier trace", *remedy = "Keep it in a neap::buffer, which neap::assign writes";
  mistake("a tensor that is carried from step to step", {"f32[8,5]", stored, remedy, "a part of the next batch"}, [&] {
    line = recurrent::line;
    training_step(from_before, b, cross_entropy{}, sgd{});
  });
  recurrent from_evaluation;
  mistake("the same in evaluation", {"f32[8,5]", stored, remedy}, [&] {
    line = recurrent::line;
    evaluation_step(from_evaluation, b.first);
  });
  growing more;
  mistake("tensors that gather from step to step", {"f32[8,5]", stored, remedy}, [&] {
    line = growing::line;
    training_step(more, b, cross_entropy{}, sgd{});
  });
  tensor outside = tensor::full({}, 1);
  mistake("a loss that goes on from the last one", {"f32[]", stored, remedy}, [&] {
    training_step(
        model, b,
        [&](network& m, auto const& s) {
          line = __LINE__ + 1;
          tensor const l = cross_entropy{}(m(s.first), s.second) + outside * 0.5;
          outside = l;
          return l;
        },
        sgd{});
  });
  mistake("a step within a step", {"a trace is active on this thread already"}, [&] {
    training_step(
        model, b,
        [&](network& m, auto const& s) {
          line = __LINE__ + 1;
          training_step(m, b, cross_entropy{}, sgd{});
          return mean(m(s.first));
        },
        sgd{});
  });
}

TEST_CASE("mistakes with a trainer and an evaluator") {
  running r;
  auto const [x, labels] = batch();
  struct storing {
    nn::linear a{6, 5};
    mutable tensor seen;
    tensor operator()(tensor const& input) const { return seen = a(input); }
  } model;
  auto const stored = training_step(model, batch(), cross_entropy{}, sgd{});
  trainer(stored, plan_in_order(stored.program), r.backend)(batch());
  mistake("a tensor that a planned step was seen to store", {"a trace that has ended", "an output of the loss"}, [&] {
    line = __LINE__ + 1;
    (void)model.seen.values<float>();
  });
  mistake("outputs before the first step", {"no step has run"}, [&] {
    line = __LINE__ + 1;
    (void)r.run.output("logits");
  });
  r.run(batch());
  for (auto t : {dtype::bf16, dtype::f16}) {
    network half;
    set_element(half, t);
    auto const forward =
        evaluation_step(half, cast(x, t), [](network& m, tensor const& in) { return apply(halved{}, {m(in)}); });
    auto const said = "the host computes in f32 and f64, not in " + std::string(name_of(t));
    mistake("an operator that knows no such type", {"halved", said.c_str(), "set_element"}, [&] {
      line = __LINE__ + 1;
      evaluator(forward, plan_in_order(forward.program), r.backend);
    });
  }
  mistake("a batch of other axes", {"tensor 0 of the batch is f32[8,2,3], the sample's was f32[8,6]"}, [&] {
    line = __LINE__ + 1;
    r.run(std::pair{reshape(x, {8, 2, 3}), labels});
  });
  mistake("a batch of another width",
          {"tensor 0 of the batch is f32[8,4], the sample's was f32[8,6]: mistakes.cpp:",
           "inner extents differ, [8,4] x [16,6]"},
          [&] {
            line = __LINE__ + 1;
            r.run(std::pair{tensor::ones({8, 4}), labels});
          });
  mistake("a batch of other elements", {"tensor 1 of the batch is f32[8], the sample's was i64[8]", "cast"}, [&] {
    line = __LINE__ + 1;
    r.run(std::pair{x, tensor::ones({8})});
  });
  mistake("a batch of too few tensors", {"the batch has 1 tensors, the sample had 2"}, [&] {
    line = __LINE__ + 1;
    r.run(x);
  });
  mistake("a larger batch than planned", {"plan the largest batch first"}, [&] {
    line = __LINE__ + 1;
    r.run(batch(4096));
  });
  mistake("a class that is none", {"cross_entropy: target 7 at row 2", "5"}, [&] {
    std::vector<std::int64_t> wrong(8);
    wrong[2] = 7;
    line = __LINE__ + 1;
    r.run(std::pair{x, tensor::from(wrong, {8})});
  });
  mistake("an output that is none", {"no output \"logit\"; it has logits"}, [&] {
    line = __LINE__ + 1;
    (void)r.run.output("logit");
  });
  mistake("a momentum that is none", {"the optimizer of this step has no momentum"}, [&] {
    line = __LINE__ + 1;
    r.run(batch(), {.momentum = 0.5});
  });
  mistake("a rate below nothing", {"the optimizer's rate is -1", "at least 0"}, [&] {
    line = __LINE__ + 1;
    r.run(batch(), {.rate = -1});
  });
  mistake("a scale of the loss that is none", {"training_options{.loss_scale = ...}"}, [&] {
    line = __LINE__ + 1;
    r.run(batch(), {.loss_scale = 8});
  });
  network other;
  auto const another = training_step(other, batch(), mse_of_everything{}, sgd{});
  mistake("a plan of another step", {"the plan is not one of this program", "optimize"}, [&] {
    line = __LINE__ + 1;
    trainer(r.step, plan_in_order(another.program), r.backend);
  });
  mistake("memory that begins anywhere", {"does not begin at a multiple of 64 bytes"}, [&] {
    std::vector<std::byte> memory(1 << 16);
    auto const begin = reinterpret_cast<std::uintptr_t>(memory.data()) % 64 == 0 ? 16u : 0u;
    line = __LINE__ + 1;
    trainer(r.step, plan_in_order(r.step.program), r.backend, {.memory = std::span(memory).subspan(begin)});
  });
  auto const stateless = training_step(r.model, batch(4), mse_of_everything{}, sgd{});
  mistake("a step of other states is added", {"add() takes a step of the model and the states", ".state = &state"},
          [&] {
            line = __LINE__ + 1;
            r.run.add(stateless, plan_in_order(stateless.program));
          });
  evaluator eval(r.model, x, r.backend);
  mistake("an evaluation of other axes", {"tensor 0 of the batch is f32[6], the sample's was f32[8,6]"}, [&] {
    line = __LINE__ + 1;
    eval(tensor::ones({6}));
  });
}

TEST_CASE("mistakes with files") {
  scratch const at;
  network model;
  training_state state;
  eager_step(model, batch(), cross_entropy{}, momentum{}, state);
  REQUIRE(save(model, state, at / "f").ok());
  mistake("a file of another model", {"does not fit the model", "\"in.weight\" is f32[16,6] in the file"}, [&] {
    struct wider {
      nn::linear in{6, 20}, out{20, 5};
    } other;
    line = __LINE__ + 1;
    load(other, at / "f").value();
  });
  mistake("a file of another optimizer", {"has 1 states of \"in.weight\", the optimizer 2"}, [&] {
    training_state moments;
    network other;
    eager_step(other, batch(), cross_entropy{}, adamw{}, moments);
    line = __LINE__ + 1;
    load(other, moments, at / "f").value();
  });
  mistake("a model's file where a training's is needed", {"has no training, weights alone: load(model, path)"}, [&] {
    REQUIRE(save(model, at / "g").ok());
    line = __LINE__ + 1;
    load(model, state, at / "g").value();
  });
  mistake("no file", {"nowhere"}, [&] {
    line = __LINE__ + 1;
    load(model, at / "nowhere").value();
  });
  mistake("no folder", {"nowhere"}, [&] {
    line = __LINE__ + 1;
    save(model, at / "nowhere/f").value();
  });
}
