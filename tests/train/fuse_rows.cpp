#include <neap/train/fuse.hpp>

#include <neap/ir/dataflow.hpp>
#include <neap/model/model.hpp>

#include "../support/bytes_moved.hpp"
#include "../support/fused_plans.hpp"
#include "../support/message.hpp"
#include "../support/random_rows.hpp"
#include "../support/zoo_toys.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::launches, neap::testing::message_of, neap::testing::random_rows;

namespace {

constexpr std::array anchors{"sum",
                             "mean",
                             "max_reduce",
                             "min_reduce",
                             "sum_to",
                             "layer_norm",
                             "rms_norm",
                             "softmax",
                             "log_softmax",
                             "layer_norm_grad",
                             "rms_norm_grad",
                             "softmax_grad",
                             "log_softmax_grad",
                             "batch_norm",
                             "batch_norm_grad",
                             "batch_norm_relu_grad",
                             "group_norm",
                             "group_norm_grad"};

/// "add(x0, x1) > layer_norm: x | softmax > ...": the operators of a graph with an anchor but products, in order; behind
/// the colon what is kept.
std::string rows_of_graph(op_graph const& g) {
  std::string s;
  for (auto o : g.ops()) {
    auto const* p = g.as<op::fused>(o);
    if (!p || !p->has_anchor() || p->is_product()) continue;
    s += s.empty() ? "" : " | ";
    if (!p->prologue.empty()) s += to_string(p->prologue) + " > ";
    s += anchors[static_cast<std::size_t>(p->middle)];
    if (!p->epilogue.empty()) s += " > " + to_string(p->epilogue);
    if (p->keeps_x || p->keeps_y) s += ":";
    if (p->keeps_x) s += " x";
    if (p->keeps_y) s += " y";
  }
  return s;
}
std::string rows_fused(graph_editor&& edit) {
  auto const made = fuse(graph(std::move(edit).finish()));
  if (auto const s = verify(made.program); !s.ok()) FAIL(s.message());
  return rows_of_graph(made.program);
}
graph_editor rows_editor() { return graph_editor(operator_table(standard_operators::facets)); }

}  // namespace

TEST_CASE("graphs with fused functions of rows have the bits of the operators, and fewer of them") {
  host_backend backend(2);
  std::array<std::size_t, anchors.size()> seen{};
  std::size_t before = 0, after = 0, x = 0, y = 0, long_ones = 0, summed = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    auto const g = random_rows(seed, 5 + static_cast<std::uint32_t>(seed % 30));
    auto const made = fuse(g, {.chains = seed % 2 == 0});
    testing::check_fused_program(g, made, seed, backend);
    for (auto o : made.program.ops()) {
      auto const* p = made.program.as<op::fused>(o);
      if (!p || !p->has_anchor() || p->is_product()) continue;
      ++seen[static_cast<std::size_t>(p->middle)];
      if (p->is_reduction()) {
        summed += p->keeps_x;
        continue;
      }
      before += !p->prologue.empty(), after += !p->epilogue.empty(), x += p->keeps_x, y += p->keeps_y;
      long_ones += p->prologue.step_count > 1 || p->epilogue.step_count > 1;
    }
    auto const again = fuse(made.program);  // of what has been fused
    testing::check_fused_program(made.program, again, seed, backend);
  }
  for (std::size_t k = 0; k < seen.size(); ++k) CHECK(seen[k] > (k < 5 ? 6 : 8));
  CHECK(summed > 20);
  CHECK(before > 200);
  CHECK(after > 200);
  CHECK(x > 50);
  CHECK(y > 50);
  CHECK(long_ones > 30);
}

TEST_CASE("a norm takes the addition in front of it, and what follows") {
  auto e = rows_editor();
  tensor_type const whole{dtype::f32, {4, 8}};
  auto const x = e.add_source(role::input, whole), r = e.add_source(role::input, whole),
             w = e.add_source(role::weight, {dtype::f32, {8}});
  auto const sum = e.add(op::add{}, {x, r})[0];
  SUBCASE("the sum alone") {
    e.keep(e.add(op::rms_norm{}, {sum, w})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = add(x0, x1) > rms_norm");
  }
  SUBCASE("the sum is read again") {
    e.keep(e.add(op::mul{}, {sum, e.add(op::rms_norm{}, {sum, w})[0]})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = add(x0, x1) > rms_norm: x");
  }
  SUBCASE("the sum is kept") {
    e.keep(e.add(op::rms_norm{}, {sum, w})[0], role::output);
    e.keep(sum, role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = add(x0, x1) > rms_norm: x");
  }
  SUBCASE("the sum is pinned") {
    e.keep(e.add(op::rms_norm{}, {sum, w})[0], role::output);
    e.add_pins(sum, pin::keep);
    CHECK(rows_fused(std::move(e)) == "");
  }
  SUBCASE("the sum is the scale as well") {
    e.keep(e.add(op::softmax_grad{}, {sum, sum})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "");
  }
  SUBCASE("a chain on both sides") {
    auto const y = e.add(op::softmax{}, {e.add(op::mul_scalar{0.5}, {sum})[0]})[0];
    e.keep(e.add(op::relu{}, {e.add(op::mul{}, {y, w})[0]})[0], role::output);
    CHECK(rows_fused(std::move(e)) ==
          "t0 = add(x0, x1); t1 = mul_scalar(t0) {value 0.5} > softmax > t0 = mul(x0, x1); t1 = relu(t0)");
  }
  SUBCASE("a result with other readers") {
    auto const y = e.add(op::softmax{}, {x})[0];
    e.keep(e.add(op::mul{}, {y, r})[0], role::output);
    e.keep(e.add(op::sum{{1}, false}, {y})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "softmax > t0 = mul(x0, x1): y");
  }
  SUBCASE("a result of another type") {
    e.keep(e.add(op::cast{dtype::bf16}, {e.add(op::softmax{}, {x})[0]})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "");
  }
  SUBCASE("the gradient of a norm and that of the way around it") {
    auto const s = e.add_source(role::input, {dtype::f32, {4}});
    auto const all = e.add(op::layer_norm_grad{}, {x, r, s, s, w});
    e.keep(e.add(op::add{}, {r, all[0]})[0], role::output);
    e.keep(all[1], role::output);
    CHECK(rows_fused(std::move(e)) == "layer_norm_grad > t0 = add(x1, x0)");
  }
  SUBCASE("what follows reads what the operator makes otherwise") {
    auto const all = e.add(op::rms_norm{}, {sum, w});
    e.keep(e.add(op::add{}, {all[0], sum})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = add(x0, x1) > rms_norm: x");
  }
  SUBCASE("the scale is written in between") {
    auto const y = e.add(op::rms_norm{}, {x, w})[0];
    auto const now = e.add(op::accumulate{}, {w, e.add(op::sum_to{{8}}, {y})[0]})[0];
    e.keep(now, role::weight);
    e.keep(e.add(op::mul{}, {y, now})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "");
  }
}

TEST_CASE("a reduction takes the chain in front of it") {
  auto e = rows_editor();
  tensor_type const whole{dtype::f32, {4, 8}};
  auto const x = e.add_source(role::input, whole), r = e.add_source(role::input, whole),
             w = e.add_source(role::weight, {dtype::f32, {8}});
  auto const product = e.add(op::mul{}, {x, r})[0];
  SUBCASE("a masked sum") {
    e.keep(e.add(op::sum{{1}, false}, {product})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = mul(x0, x1) > sum");
  }
  SUBCASE("a squared error") {
    auto const error = e.add(op::square{}, {e.add(op::sub{}, {product, w})[0]})[0];
    e.keep(e.add(op::mean{}, {error})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = mul(x0, x1); t1 = sub(t0, x2); t2 = square(t1) > mean");
  }
  SUBCASE("the gradient of a bias, and what reads that of the values") {
    e.keep(e.add(op::sum_to{{8}}, {product})[0], role::output);
    e.keep(e.add(op::matmul{}, {product, e.add_source(role::input, {dtype::f32, {8, 3}})})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = mul(x0, x1) > sum_to: x");
  }
  SUBCASE("the product has an earlier reader") {
    e.keep(e.add(op::matmul{}, {product, e.add_source(role::input, {dtype::f32, {8, 3}})})[0], role::output);
    e.keep(e.add(op::sum_to{{8}}, {product})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "");
  }
  SUBCASE("nine steps") {
    auto v = product;
    for (int k = 0; k < 8; ++k) v = e.add(op::add{}, {v, w})[0];
    e.keep(e.add(op::max_reduce{{0}, true}, {v})[0], role::output);
    CHECK(rows_fused(std::move(e)).ends_with("t8 = add(t7, x2) > max_reduce"));
  }
  SUBCASE("what it adds up is pinned") {
    e.keep(e.add(op::sum{{1}, false}, {product})[0], role::output);
    e.add_pins(product, pin::keep);
    CHECK(rows_fused(std::move(e)) == "");
  }
  SUBCASE("truths are counted by themselves") {
    e.keep(e.add(op::sum{{1}, false}, {e.add(op::greater{}, {product, w})[0]})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "");
  }
  SUBCASE("what it adds up is of another shape than it reads") {
    auto const flat = e.add(op::reshape{shape{32}}, {product})[0];
    e.keep(e.add(op::sum{{0}, false}, {flat})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "");
  }
}

TEST_CASE("a norm of channels takes what is beside it") {
  auto e = rows_editor();
  tensor_type const whole{dtype::f32, {4, 6, 5}}, of_channels{dtype::f32, {6}};
  auto const x = e.add_source(role::input, whole), r = e.add_source(role::input, whole),
             w = e.add_source(role::weight, of_channels), s = e.add_source(role::input, of_channels);
  SUBCASE("an activation") {
    e.keep(e.add(op::relu{}, {e.add(op::batch_norm{}, {x, w, s})[0]})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "batch_norm > t0 = relu(x0)");
  }
  SUBCASE("the end of a residual block, whose statistics are kept") {
    auto const all = e.add(op::batch_norm{}, {x, w, s});
    e.keep(e.add(op::relu{}, {e.add(op::add{}, {all[0], r})[0]})[0], role::output);
    e.keep(all[1], role::output);
    CHECK(rows_fused(std::move(e)) == "batch_norm > t0 = add(x0, x1); t1 = relu(t0)");
  }
  SUBCASE("its gradient; the way around it reads the slope, too") {
    auto const slope = e.add(op::relu_grad{}, {e.add(op::add{}, {x, r})[0], x})[0];
    e.keep(e.add(op::batch_norm_grad{}, {slope, r, s, s, w})[0], role::output);
    e.keep(e.add(op::mul_scalar{2}, {slope})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = add(x0, x1); t1 = relu_grad(t0, x0) > batch_norm_grad: x");
  }
  SUBCASE("the gradient of a normed relu, and the relu's result") {
    auto const all = e.add(op::batch_norm_relu_grad{true}, {e.add(op::add{}, {x, r})[0], r, s, s, w, w});
    e.keep(e.add(op::mul{}, {all[0], all[3]})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = add(x0, x1) > batch_norm_relu_grad");
  }
  SUBCASE("groups, and a vector of another axis") {
    auto const y = e.add(op::group_norm{3}, {e.add(op::add{}, {x, r})[0], w, s})[0];
    e.keep(e.add(op::mul{}, {y, e.add_source(role::weight, {dtype::f32, {5}})})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "t0 = add(x0, x1) > group_norm > t0 = mul(x0, x1)");
  }
  SUBCASE("what follows reads a statistic of the same norm") {
    auto const all = e.add(op::batch_norm{}, {x, w, s});
    auto const mean = e.add(op::reshape{shape{6, 1}}, {all[1]})[0];
    e.keep(e.add(op::add{}, {all[0], mean})[0], role::output);
    CHECK(rows_fused(std::move(e)) == "");
  }
}

namespace {

/// Trains by the plain step and by the fused one: the same bits. The operators with an anchor, as text; how many launches
/// fewer there are.
template <class Model, class Batch>
std::pair<std::string, std::size_t> train_fused(Model plain, Batch const& batch, bool low, fuse_options fused) {
  initialise(plain, 3);
  auto apart = plain;
  training_options options;
  if (low) options.precision = mixed{dtype::bf16};
  auto const one = training_step(plain, batch, cross_entropy{}, adamw{.rate = 1e-2}, options);
  auto const two = fuse(training_step(apart, batch, cross_entropy{}, adamw{.rate = 1e-2}, options), fused);
  if (auto const s = verify(two.program); !s.ok()) FAIL(s.message());
  support::program_runner run_one(one), run_two(two);
  for (int i = 0; i < 3; ++i) CHECK(run_one({batch.first, batch.second}) == run_two({batch.first, batch.second}));
  auto const p = parameters(plain), q = parameters(apart);
  for (std::size_t k = 0; k < p.size(); ++k) CHECK(p[k].template values<double>() == q[k].template values<double>());
  return {rows_of_graph(two.program), launches(one.program) - launches(two.program)};
}

}  // namespace

TEST_CASE("training steps with fused rows give the bits of the plain ones, in fewer operators") {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 16; ++i) ids.push_back((i * 5 + 3) % 16);
  auto const text = std::pair{tensor::from(ids, {2, 8}), tensor::from(ids, {2, 8})};
  auto const images = std::pair{tensor::randn({2, 3, 16, 16}, 1), tensor::from(std::vector<std::int64_t>{1, 3}, {2})};
  for (bool const low : {false, true})
    for (auto const& fused :
         {fuse_options{}, {.products = false}, {.products = false, .chains = false}, {.chains = false}}) {
      CAPTURE(fused.products);
      CAPTURE(fused.chains);
      auto const [norms, fewer] = train_fused(zoo::gpt(zoo::gpt_config::toy()), text, low, fused);
      CAPTURE(norms);
      CHECK(norms.find("layer_norm: x") != norms.npos);
      CHECK(norms.find("layer_norm_grad > ") != norms.npos);
      CHECK(fewer >= 6);
      auto const [channels, less] = train_fused(zoo::resnet(zoo::resnet_config::toy()), images, low, fused);
      CAPTURE(channels);
      CHECK(channels.find("batch_norm > t0 = relu(x0)") != channels.npos);
      CHECK(channels.find("batch_norm > t0 = add(x0, x1); t1 = relu(t0)") != channels.npos);
      CHECK(channels.find("relu_grad(x0, x1) > batch_norm_grad: x") != channels.npos);
      CHECK(less >= 8);
    }
}

TEST_CASE("fused rows move no more bytes than fused chains alone, in each model of the zoo") {
  testing::for_each_zoo_toy([](char const* name, auto model, auto const& batch, auto const& loss) {
    for (bool const low : {false, true}) {
      CAPTURE(name);
      CAPTURE(low);
      training_options options;
      if (low) options.precision = mixed{dtype::bf16};
      initialise(model, 5);
      auto const step = training_step(model, batch, loss, sgd{}, options);
      double const chains = testing::bytes_moved(fuse(step, {.products = false, .rows = false}).program),
                   rows = testing::bytes_moved(fuse(step, {.products = false}).program);
      CHECK(rows <= chains);
      if (std::string_view(name) == "resnet") CHECK(rows < 0.9 * chains);
    }
  });
}
