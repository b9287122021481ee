#include <neap/train/fuse.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/schedule/order.hpp>

#include "../support/fused_plans.hpp"
#include "../support/fused_products.hpp"
#include "../support/message.hpp"
#include "../support/random_products.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::launches, neap::testing::message_of, neap::testing::random_products;

namespace {

constexpr std::array names{"bias", "bias_relu", "bias_gelu", "gelu_grad", "sums_of_a", "sums_of_b", "gelu_grad_sums"};

/// "bias bias_gelu+": the epilogues of a graph in order; +: what the activation reads is kept.
std::string epilogues_of(op_graph const& g) {
  std::string s;
  for (auto o : g.ops())
    if (auto const* e = g.as<op::fused>(o); e && e->is_product())
      s += (s.empty() ? "" : " ") + std::string(names[static_cast<std::size_t>(testing::kind_of_product(*e))]) +
           (e->keeps_step ? "+" : "");
  return s;
}
std::string fused(graph_editor&& edit) {
  auto const made = fuse(graph(std::move(edit).finish()));
  if (auto const s = verify(made.program); !s.ok()) FAIL(s.message());
  return epilogues_of(made.program);
}
graph_editor editor() { return graph_editor(operator_table(standard_operators::facets)); }

std::pair<tensor, tensor> text() {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 16; ++i) ids.push_back((i * 5 + 3) % 16);
  return {tensor::from(ids, {2, 8}), tensor::from(ids, {2, 8})};
}

}  // namespace

TEST_CASE("graphs with fused epilogues have the bits of the operators, and fewer of them") {
  host_backend backend(2);
  std::array<std::size_t, names.size()> seen{};
  std::size_t kept = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    auto const g = random_products(seed, 5 + static_cast<std::uint32_t>(seed % 30));
    auto const made = fuse(g);
    testing::check_fused_program(g, made, seed, backend);
    for (auto o : made.program.ops())
      if (auto const* e = made.program.as<op::fused>(o); e && e->is_product()) {
        ++seen[static_cast<std::size_t>(testing::kind_of_product(*e))];
        kept += e->keeps_step;
      }
  }
  for (auto n : seen) CHECK(n > 12);
  CHECK(kept > 10);
}

TEST_CASE("a product takes the bias and the activation that follow it") {
  auto e = editor();
  tensor_type const square{dtype::f32, {8, 8}};
  auto const x = e.add_source(role::input, square), w = e.add_source(role::weight, square),
             bias = e.add_source(role::weight, {dtype::f32, {8}});
  auto const y = e.add(op::matmul{}, {x, w})[0];
  SUBCASE("a bias") {
    e.keep(e.add(op::add{}, {y, bias})[0], role::output);
    CHECK(fused(std::move(e)) == "bias");
  }
  SUBCASE("a bias in front of the product") {
    e.keep(e.add(op::add{}, {bias, y})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("a matrix is no bias") {
    e.keep(e.add(op::add{}, {y, x})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("a product that is read elsewhere") {
    e.keep(e.add(op::add{}, {y, bias})[0], role::output);
    e.keep(e.add(op::neg{}, {y})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("a product that is kept") {
    e.keep(e.add(op::add{}, {y, bias})[0], role::output);
    e.keep(y, role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("a product that is pinned") {
    e.keep(e.add(op::add{}, {y, bias})[0], role::output);
    e.add_pins(y, pin::keep);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("an activation") {
    e.keep(e.add(op::relu{}, {e.add(op::add{}, {y, bias})[0]})[0], role::output);
    CHECK(fused(std::move(e)) == "bias_relu");
  }
  SUBCASE("gelu by tanh, and what it reads is read again") {
    auto const sum = e.add(op::add{}, {y, bias})[0];
    e.keep(e.add(op::gelu{true}, {sum})[0], role::output);
    e.keep(e.add(op::neg{}, {sum})[0], role::output);
    CHECK(fused(std::move(e)) == "bias_gelu+");
  }
  SUBCASE("what reads the sum waits for the activation") {
    auto const sum = e.add(op::add{}, {y, bias})[0];
    auto const other = e.add(op::neg{}, {sum})[0];
    e.keep(e.add(op::mul{}, {other, e.add(op::gelu{true}, {sum})[0]})[0], role::output);
    CHECK(fused(std::move(e)) == "bias_gelu+");
  }
  SUBCASE("gelu by erf") {
    e.keep(e.add(op::gelu{false}, {e.add(op::add{}, {y, bias})[0]})[0], role::output);
    CHECK(fused(std::move(e)) == "bias");
  }
  SUBCASE("a gradient of gelu") {
    e.keep(e.add(op::gelu_grad{true}, {y, x})[0], role::output);
    CHECK(fused(std::move(e)) == "gelu_grad");
  }
  SUBCASE("a gradient of gelu and its sums") {
    auto const slope = e.add(op::gelu_grad{true}, {y, x})[0];
    e.keep(e.add(op::matmul{true, false}, {slope, x})[0], role::output);
    e.keep(e.add(op::sum_to{{8}}, {slope})[0], role::output);
    CHECK(fused(std::move(e)) == "gelu_grad_sums");
  }
  SUBCASE("sums of a gradient of gelu that are read for the product") {
    auto const slope = e.add(op::gelu_grad{true}, {x, w})[0];
    auto const z = e.add(op::matmul{}, {x, e.add(op::add{}, {w, e.add(op::sum_to{{8}}, {slope})[0]})[0]})[0];
    e.keep(e.add(op::gelu_grad{true}, {z, slope})[0], role::output);
    e.keep(y, role::output);
    CHECK(fused(std::move(e)) == "gelu_grad");
  }
  SUBCASE("a gradient of gelu at the product") {
    e.keep(e.add(op::gelu_grad{true}, {x, y})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("the weight is written before the bias is added") {
    auto const now = e.add(op::accumulate{}, {w, x})[0];
    e.keep(now, role::weight);
    e.keep(e.add(op::add{}, {y, e.add(op::sum_to{{8}}, {now})[0]})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
}

TEST_CASE("gradients of a weight and of a bias are one operator") {
  auto e = editor();
  auto const x = e.add_source(role::input, {dtype::f32, {6, 4}}),
             g = e.add_source(role::input, {dtype::f32, {2, 3, 8}});
  auto const rows = e.add(op::reshape{{6, 8}}, {g})[0];
  SUBCASE("of a") {
    e.keep(e.add(op::sum_to{{8}}, {g})[0], role::output);
    e.keep(e.add(op::matmul{true, false}, {rows, x})[0], role::output);
    CHECK(fused(std::move(e)) == "sums_of_a");
  }
  SUBCASE("of b, the sums behind") {
    e.keep(e.add(op::matmul{true, false}, {x, rows})[0], role::output);
    e.keep(e.add(op::sum_to{{8}}, {g})[0], role::output);
    CHECK(fused(std::move(e)) == "sums_of_b");
  }
  SUBCASE("sums of another value") {
    e.keep(e.add(op::sum_to{{8}}, {e.add(op::neg{}, {g})[0]})[0], role::output);
    e.keep(e.add(op::matmul{true, false}, {rows, x})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("sums over other axes") {
    e.keep(e.add(op::sum_to{{3, 8}}, {g})[0], role::output);
    e.keep(e.add(op::matmul{true, false}, {rows, x})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("what reads the sums waits for the product") {
    auto const sums = e.add(op::sum_to{{8}}, {g})[0];
    auto const other = e.add(op::reshape{{8, 1}}, {e.add(op::neg{}, {sums})[0]})[0];
    auto const y = e.add(op::matmul{true, false}, {rows, x})[0];
    e.keep(e.add(op::mul{}, {y, other})[0], role::output);
    CHECK(fused(std::move(e)) == "sums_of_a");
  }
  SUBCASE("the product reads what the sums make") {
    auto const sums = e.add(op::sum_to{{8}}, {g})[0];
    e.keep(e.add(op::matmul{true, false}, {rows, e.add(op::add{}, {rows, sums})[0]})[0], role::output);
    CHECK(fused(std::move(e)) == "");
  }
  SUBCASE("two that wait for one another") {  // the sums of each are read by the product of the other
    auto const h = e.add_source(role::input, {dtype::f32, {6, 8}});
    auto const one = e.add(op::sum_to{{8}}, {rows})[0], two = e.add(op::sum_to{{8}}, {h})[0];
    e.keep(e.add(op::matmul{true, false}, {rows, e.add(op::add{}, {rows, two})[0]})[0], role::output);
    e.keep(e.add(op::matmul{true, false}, {h, e.add(op::add{}, {h, one})[0]})[0], role::output);
    CHECK(fused(std::move(e)) == "sums_of_a");
  }
}

TEST_CASE("training steps with fused epilogues give the bits of the plain ones, in fewer operators") {
  for (bool const low : {false, true})
    for (bool const recovers : {true, false}) {
      zoo::gpt plain(zoo::gpt_config::toy());
      initialise(plain, 3);
      auto apart = plain;
      auto const batch = text();
      training_options options;
      options.recover_activations = recovers;
      if (low) options.precision = mixed{dtype::bf16};
      auto const one = training_step(plain, batch, cross_entropy{}, adamw{.rate = 1e-2}, options);
      auto const two = fuse(training_step(apart, batch, cross_entropy{}, adamw{.rate = 1e-2}, options));
      if (auto const s = verify(two.program); !s.ok()) FAIL(s.message());
      auto const found = epilogues_of(two.program);
      CAPTURE(found);
      // Of each of two blocks: four linear layers, one before a gelu.
      CHECK(found.starts_with("bias bias bias_gelu+ bias bias bias bias_gelu+ bias"));
      CHECK((found.find("gelu_grad") != found.npos) != recovers);
      CHECK(found.find("sums_of_a") != found.npos);
      CHECK(launches(two.program) + 18 <= launches(one.program));
      support::program_runner run_one(one), run_two(two);
      for (int i = 0; i < 3; ++i) CHECK(run_one({batch.first, batch.second}) == run_two({batch.first, batch.second}));
      auto const p = parameters(plain), q = parameters(apart);
      for (std::size_t k = 0; k < p.size(); ++k) CHECK(p[k].values<double>() == q[k].values<double>());
    }
}

TEST_CASE("graphs in parts are refused") {
  auto e = editor();
  auto const x = e.add_source(role::input, {dtype::f32, {8, 8}});
  auto const y = e.add(op::tanh{}, {x})[0];
  op_part part;
  part.number = 0, part.count = 2;
  e.set_part(e.graph().producer(y), e.part_row(part));
  e.keep(y, role::output);
  auto const g = graph(std::move(e).finish());
  CHECK(message_of([&] { fuse(g); }) == "fuse: the graph has parts");
}
