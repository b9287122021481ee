#include <neap/train/fuse.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/schedule/order.hpp>

#include "../support/fused_plans.hpp"
#include "../support/message.hpp"
#include "../support/random_elementwise.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

using namespace neap;
using neap::testing::message_of, neap::testing::random_elementwise;

namespace {

std::size_t fused_in(op_graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.as<op::fused>(o) != nullptr;
  return n;
}
graph_editor editor() { return graph_editor(operator_table(standard_operators::facets)); }
tensor_type const eight_rows{dtype::f32, {8, 8}};

/// The one program of a graph.
std::string program_of(op_graph const& g) {
  std::string s;
  for (auto o : g.ops())
    if (auto const* p = g.as<op::fused>(o)) s += (s.empty() ? "" : " | ") + to_string(p->prologue);
  return s;
}
std::string fused(graph_editor&& edit) {
  auto const made = fuse(graph(std::move(edit).finish()));
  if (auto const s = verify(made.program); !s.ok()) FAIL(s.message());
  CHECK(made.groups.size() == fused_in(made.program));
  return program_of(made.program);
}

}  // namespace

TEST_CASE("fused graphs have the bits of the operators, and fewer of them") {
  host_backend backend(2);
  std::size_t groups = 0, steps = 0, largest = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto const g = random_elementwise(seed, 5 + static_cast<std::uint32_t>(seed % 40));
    if (auto const s = verify(g); !s.ok()) FAIL(s.message());
    auto const made = fuse(g);
    CHECK(made.groups.size() == fused_in(made.program));
    groups += made.groups.size();
    steps += testing::check_fused_program(g, made, seed, backend);
    for (auto o : made.program.ops())
      if (auto const* p = made.program.as<op::fused>(o))
        largest = std::max(largest, static_cast<std::size_t>(p->prologue.step_count));
  }
  CHECK(groups > 300);
  CHECK(steps > 3 * groups / 2);
  CHECK(largest > 4);
}

TEST_CASE("a chain is one program, a value that is read elsewhere ends it") {
  auto e = editor();
  auto const x = e.add_source(role::input, eight_rows), y = e.add_source(role::input, eight_rows);
  auto const sum = e.add(op::add{}, {x, y})[0];
  auto const bent = e.add(op::tanh{}, {sum})[0];
  e.keep(e.add(op::mul{}, {bent, y})[0], role::output);
  SUBCASE("a chain") { CHECK(fused(std::move(e)) == "t0 = add(x0, x1); t1 = tanh(t0); t2 = mul(t1, x1)"); }
  SUBCASE("an inner value is kept") {
    e.keep(sum, role::output);
    CHECK(fused(std::move(e)) == "t0 = tanh(x0); t1 = mul(t0, x1)");
  }
  SUBCASE("an inner value is pinned") {
    e.add_pins(bent, pin::keep);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("an op is to run once") {
    e.add_pins(e.graph().producer(bent), pin::run_once);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("an inner value is looked at") {
    e.keep(e.add(op::sum{{1}, false}, {e.add(op::reshape{{4, 16}}, {bent})[0]})[0], role::output);
    CHECK(fused(std::move(e)) == "t0 = add(x0, x1); t1 = tanh(t0)");
  }
}
TEST_CASE("operators of smaller results are inputs, smaller operands are broadcast") {
  auto e = editor();
  auto const x = e.add_source(role::input, eight_rows), b = e.add_source(role::weight, {dtype::f32, {8}});
  auto const scaled = e.add(op::mul_scalar{2}, {b})[0];
  auto const sum = e.add(op::add{}, {x, scaled})[0];
  e.keep(e.add(op::relu{}, {sum})[0], role::output);
  CHECK(fused(std::move(e)) == "t0 = add(x0, x1); t1 = relu(t0)");
}
TEST_CASE("casts join, whole numbers and two widths do not") {
  auto e = editor();
  auto const x = e.add_source(role::input, {dtype::bf16, {8}});
  SUBCASE("f32 and bf16") {
    auto const wide = e.add(op::cast{dtype::f32}, {x})[0];
    auto const bent = e.add(op::exp{}, {wide})[0];
    e.keep(e.add(op::cast{dtype::bf16}, {bent})[0], role::output);
    CHECK(fused(std::move(e)) == "t0 = cast(x0) {to f32}; t1 = exp(t0); t2 = cast(t1) {to bf16}");
  }
  SUBCASE("f64") {
    auto const bent = e.add(op::exp{}, {x})[0];
    auto const wide = e.add(op::cast{dtype::f64}, {bent})[0];
    e.keep(e.add(op::exp{}, {wide})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("whole numbers") {
    auto const n = e.add(op::cast{dtype::i64}, {x})[0];
    e.keep(e.add(op::add{}, {n, n})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
}
TEST_CASE("what must run before an update does not join a group behind it") {
  auto e = editor();
  auto const x = e.add_source(role::input, eight_rows), w = e.add_source(role::weight, eight_rows);
  auto const old = e.add(op::square{}, {w})[0];
  auto const now = e.add(op::accumulate{}, {w, x})[0];
  e.keep(e.add(op::add{}, {old, now})[0], role::output);
  e.keep(now, role::weight);
  CHECK(fused(std::move(e)) == "");
}
TEST_CASE("an operator waits for its reader only if no more bytes wait with it") {
  auto e = editor();
  auto const x = e.add_source(role::input, eight_rows);
  auto const far = [&](value_id v) {  // what is computed in between
    auto const y = e.add(op::matmul{}, {x, x})[0];
    e.keep(y, role::output);
    return v;
  };
  SUBCASE("one of its size") {
    auto const a = e.add(op::matmul{}, {x, x})[0];
    auto const bent = far(e.add(op::tanh{}, {a})[0]);
    e.keep(e.add(op::mul_scalar{2}, {bent})[0], role::output);
    CHECK(fused(std::move(e)) == "t0 = tanh(x0); t1 = mul_scalar(t0) {value 2}");
  }
  SUBCASE("two of its size") {
    auto const a = e.add(op::matmul{}, {x, x})[0], b = e.add(op::matmul{}, {x, x})[0];
    auto const product = far(e.add(op::mul{}, {a, b})[0]);
    e.keep(e.add(op::mul_scalar{2}, {product})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("two of its size, at once") {
    auto const a = e.add(op::matmul{}, {x, x})[0], b = e.add(op::matmul{}, {x, x})[0];
    auto const product = e.add(op::mul{}, {a, b})[0];
    e.keep(e.add(op::mul_scalar{2}, {product})[0], role::output);
    CHECK(fused(std::move(e)) == "t0 = mul(x0, x1); t1 = mul_scalar(t0) {value 2}");
  }
  SUBCASE("two that stay all the same") {
    auto const y = e.add_source(role::input, eight_rows);
    auto const product = far(e.add(op::mul{}, {x, y})[0]);
    e.keep(e.add(op::mul_scalar{2}, {product})[0], role::output);
    CHECK(fused(std::move(e)) == "t0 = mul(x0, x1); t1 = mul_scalar(t0) {value 2}");
  }
}
TEST_CASE("programs of more steps, inputs or constants than there may be are cut") {
  auto e = editor();
  auto v = e.add_source(role::input, eight_rows);
  SUBCASE("steps") {
    for (int i = 0; i < 3 * element_program::max_steps; ++i) v = e.add(op::tanh{}, {v})[0];
  }
  SUBCASE("constants") {
    for (int i = 0; i < 3 * element_program::max_constants; ++i) v = e.add(op::mul_scalar{2}, {v})[0];
  }
  SUBCASE("inputs") {
    for (int i = 0; i < 40; ++i) v = e.add(op::add{}, {v, e.add_source(role::input, eight_rows)})[0];
  }
  e.keep(v, role::output);
  auto const made = fuse(graph(std::move(e).finish()));
  if (auto const s = verify(made.program); !s.ok()) FAIL(s.message());
  CHECK(made.groups.size() >= 3);
  CHECK(made.program.op_count() <= 10);
}

TEST_CASE("fused training steps give the bits of the plain ones") {
  for (bool const low : {false, true}) {
    zoo::gpt plain(zoo::gpt_config::toy());
    initialise(plain, 3);
    auto apart = plain;
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < 16; ++i) ids.push_back((i * 5 + 3) % 16);
    std::pair const batch{tensor::from(ids, {2, 8}), tensor::from(ids, {2, 8})};
    training_options options;
    if (low) options.precision = mixed{dtype::bf16};
    auto const one = training_step(plain, batch, cross_entropy{}, adamw{.rate = 1e-2}, options);
    auto const two = fuse(training_step(apart, batch, cross_entropy{}, adamw{.rate = 1e-2}, options));
    if (auto const s = verify(two.program); !s.ok()) FAIL(s.message());
    CHECK(fused_in(two.program) > 0);
    CHECK(one.weights.size() == two.weights.size());
    support::program_runner run_one(one), run_two(two);
    for (int i = 0; i < 3; ++i) CHECK(run_one({batch.first, batch.second}) == run_two({batch.first, batch.second}));
    auto const p = parameters(plain), q = parameters(apart);
    for (std::size_t k = 0; k < p.size(); ++k) CHECK(p[k].values<double>() == q[k].values<double>());
  }
}

TEST_CASE("graphs in parts are not fused") {
  auto e = editor();
  auto const x = e.add_source(role::input, eight_rows);
  auto const y = e.add(op::tanh{}, {x})[0];
  op_part part;
  part.number = 0, part.count = 2;
  e.set_part(e.graph().producer(y), e.part_row(part));
  e.keep(y, role::output);
  auto const g = graph(std::move(e).finish());
  CHECK(message_of([&] { fuse(g); }) == "fuse: the graph has parts");
}
