#include <neap/train/fuse_updates.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "../support/message.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

using namespace neap;
using neap::testing::message_of;

namespace {

// Layers wide enough for their gradients to come in parts, of both shapes and with any gemm, and small ones.
struct model {
  nn::linear in, down, out;
  tensor operator()(tensor const& x) const { return out(relu(down(relu(in(x))))); }
};
model make_model() {
  model m{nn::linear(512, 1024), nn::linear(1024, 160), nn::linear(160, 5)};
  initialise(m, 7);
  return m;
}
std::pair<tensor, tensor> batch(int i, std::int64_t n = 64) {
  std::vector<std::int64_t> labels;
  for (std::int64_t k = 0; k < n; ++k) labels.push_back((k * 3 + i) % 5);
  return {tensor::randn({n, 512}, 100 + static_cast<std::uint64_t>(i)), tensor::from(labels, {n})};
}

std::size_t fused_in(op_graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.facets(o).name.starts_with("matmul_") ? 1 : 0;
  return n;
}

template <class Optimizer>
void check_equal_bits(Optimizer const& optimizer, training_options options, std::size_t expected) {
  auto together = make_model(), apart = together;
  auto const one = training_step(together, batch(0), cross_entropy{}, optimizer, options);
  options.fuse_updates = false;
  training_state state;
  options.state = &state;
  auto const two = training_step(apart, batch(0), cross_entropy{}, optimizer, options);
  if (auto const s = verify(one.program); !s.ok()) FAIL(s.message());
  CHECK(fused_in(one.program) == expected);
  CHECK(fused_in(two.program) == 0);
  CHECK(one.program.op_count() == two.program.op_count() - expected);
  CHECK(one.weights.size() == two.weights.size());
  for (std::size_t i = 0; i < one.weights.size(); ++i)
    CHECK(one.program.name(one.weights[i]) == two.program.name(two.weights[i]));
  support::program_runner run_one(one), run_two(two);
  for (int i = 0; i < 4; ++i) {
    auto const b = batch(i);
    CHECK(run_one({b.first, b.second}) == run_two({b.first, b.second}));
    auto const p = parameters(together), q = parameters(apart);
    for (std::size_t k = 0; k < p.size(); ++k) CHECK(p[k].template values<double>() == q[k].template values<double>());
  }
}

}  // namespace

TEST_CASE("fused updates give the bits of the gradient and its update") {
  SUBCASE("sgd") { check_equal_bits(sgd{.rate = 0.1, .weight_decay = 0.01}, {}, 2); }
  SUBCASE("momentum") { check_equal_bits(momentum{.rate = 0.1, .nesterov = true}, {}, 2); }
  SUBCASE("adam") { check_equal_bits(adam{.rate = 0.01}, {}, 2); }
  SUBCASE("adamw") { check_equal_bits(adamw{.rate = 0.01}, {}, 2); }
  // Muon needs whole gradients; weights that are left to its adamw do not.
  SUBCASE("muon") { check_equal_bits(muon{}, {}, 0); }
  SUBCASE("muon's others") { check_equal_bits(muon{.use_adamw_for = {"in.*"}}, {}, 1); }
  SUBCASE("adafactor") { check_equal_bits(adafactor{}, {}, 0); }
  // Somebody else reads the gradients.
  SUBCASE("clipped") { check_equal_bits(adamw{.rate = 0.01}, {.clip_norm = 0.1}, 0); }
  SUBCASE("accumulated") { check_equal_bits(sgd{}, {.micro_batches = 2}, 0); }
  SUBCASE("kept") { check_equal_bits(sgd{}, {.keep_gradients = true}, 0); }
}

namespace {
// w [1024, 512] -> its gradient from x [64, 1024] and y [64, 512], updated.
struct fixture {
  graph_editor edit{graph{}.facet_table()};
  value_id w, x, y, gradient, after;
  fixture() {
    w = edit.add_source(role::weight, {dtype::f32, {1024, 512}}, "w");
    x = edit.add_source(role::input, {dtype::f32, {64, 1024}}, "x");
    y = edit.add_source(role::input, {dtype::f32, {64, 512}}, "y");
  }
  void product() { gradient = edit.add(op::matmul{true, false}, {x, y})[0]; }
  void update() { after = edit.add(op::sgd{0.5, 0.25}, {w, gradient})[0]; }
  fused_updates fused() { return fuse_updates(graph(std::move(edit).finish())); }
};
}  // namespace

TEST_CASE("the fused operator: attributes, name, place, memory") {
  fixture f;
  f.product();
  auto const between = f.edit.add(op::relu{}, {f.y})[0];
  auto const reader = f.edit.add(op::matmul{}, {f.x, f.w})[0];
  auto const late = f.edit.add(op::exp{}, {between})[0];
  f.edit.keep(late, role::output), f.edit.keep(reader, role::output);
  f.update();
  auto const r = f.fused();
  auto const& g = r.program;
  CHECK(verify(g).ok());
  CHECK(r.fused.size() == 1);
  CHECK(r.value[f.gradient] == nothing<value_id>);
  op_id const o = g.producer(r.value[f.after]);
  auto const* u = g.as<op::matmul_update<op::sgd>>(o);
  REQUIRE(u);
  CHECK(g.facets(o).name == "matmul_sgd");
  CHECK(u->transpose_a);
  CHECK(!u->transpose_b);
  CHECK(u->parts > 1);
  CHECK(u->update.rate == 0.5);
  CHECK(g.facets(o).attributes[1].name == "weight_decay");
  CHECK(std::get<double>(g.facets(o).attributes[1].get(g.attributes(o))) == 0.25);
  // As soon as the last reader of the old weight has run, which is before `late`.
  CHECK(g.producer(r.value[reader]) < o);
  CHECK(o < g.producer(r.value[late]));
  CHECK(g.kept().size() == 2);
  CHECK(g.type(r.value[f.after]).dims == shape{1024, 512});
  CHECK(g.storage(r.value[f.after]) == g.storage(r.value[f.w]));
  auto const whole = g.bytes(g.storage(r.value[f.w]));
  std::vector<tensor_layout> in, out{g.layout(r.value[f.after])};
  for (auto v : g.inputs(o)) in.push_back(g.layout(v));
  auto const part = g.facets(o).workspace(g.attributes(o), {in, out});
  CHECK(part > 0);
  CHECK(part <= whole / 2);
}

TEST_CASE("gradients that are not fused") {
  SUBCASE("another reader") {
    fixture f;
    f.product();
    f.edit.keep(f.edit.add(op::relu{}, {f.gradient})[0], role::output);
    f.update();
    CHECK(f.fused().fused.empty());
  }
  SUBCASE("kept") {
    fixture f;
    f.product();
    f.update();
    f.edit.keep(f.gradient, role::gradient);
    CHECK(f.fused().fused.empty());
  }
  SUBCASE("the product reads the weight") {
    fixture f;
    auto const rows = f.edit.add(op::slice{0, 0, 64}, {f.w})[0];  // what it reads is smaller than the weight
    f.gradient = f.edit.add(op::matmul{true, false}, {f.x, rows})[0];
    f.update();
    CHECK(f.fused().fused.empty());
  }
  SUBCASE("smaller than its operands") {
    fixture f;
    auto const long_x = f.edit.add_source(role::input, {dtype::f32, {4096, 1024}});
    auto const long_y = f.edit.add_source(role::input, {dtype::f32, {4096, 512}});
    f.gradient = f.edit.add(op::matmul{true, false}, {long_x, long_y})[0];
    f.update();
    CHECK(f.fused().fused.empty());
  }
  SUBCASE("too small to come in parts") {
    fixture f;
    f.w = f.edit.add_source(role::weight, {dtype::f32, {64, 64}}, "small");
    auto const few = f.edit.add_source(role::input, {dtype::f32, {8, 64}});
    f.gradient = f.edit.add(op::matmul{true, false}, {few, few})[0];
    f.update();
    CHECK(f.fused().fused.empty());
  }
}

TEST_CASE(
    "a counter that is counted up late comes before the first fused update, unless its old number is still read") {
  for (bool const read : {false, true}) {
    fixture f;
    auto const step = f.edit.add_source(role::state, {dtype::i64, {}}, "step");
    auto const m = f.edit.add_source(role::state, {dtype::f32, {1024, 512}}, "m");
    auto const v = f.edit.add_source(role::state, {dtype::f32, {1024, 512}}, "v");
    f.product();
    auto const other = f.edit.add(op::relu{}, {f.y})[0];
    f.edit.keep(other, role::output);
    if (read) f.edit.keep(f.edit.add(op::copy{}, {step})[0], role::output);
    auto const now = f.edit.add(op::increment{}, {step})[0];
    f.after = f.edit.add(op::adamw{}, {f.w, f.gradient, m, v, now})[0];
    auto const r = f.fused();
    CHECK(verify(r.program).ok());
    CHECK(r.fused.size() == 1);
    auto const update = r.program.producer(r.value[f.after]);
    CHECK(r.program.producer(r.value[now]) < update);
    CHECK((update < r.program.producer(r.value[other])) == !read);
  }
}

TEST_CASE("graphs that cannot be fused are refused") {
  fixture f;
  f.product();
  f.update();
  (void)f.edit.part_row({0, 2});
  CHECK(message_of([&] { f.fused(); }) == "fuse_updates: the graph has parts");
}
