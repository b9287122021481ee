// Plans that fuse products and what follows them: right ones are accepted, those that compute something else are refused,
// and so is a pinned operator inside.
#include <neap/verify/plan_verifier.hpp>

#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/fuse_epilogues.hpp>

#include "../support/fused_plans.hpp"
#include "../support/judged.hpp"
#include "../support/plain_run.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_products.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

roofline const device = roofline::h100_like();

verification verdict(graph const& original, candidate<graph> const& c) {
  return verify_plan(original, make_plan(c, original, memory_options{}), device);
}
std::vector<op_id> epilogues_in(graph const& g) {
  std::vector<op_id> all;
  for (auto o : g.ops())
    if (g.as<op::matmul_epilogue>(o)) all.push_back(o);
  return all;
}

}  // namespace

TEST_CASE("plans that fuse epilogues of the original are right, and recomputed and swapped ones") {
  std::size_t fused = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(200u); ++seed) {
    CAPTURE(seed);
    auto const original = random_products(seed, 6 + static_cast<std::uint32_t>(seed % 24));
    auto c = judged_in_order(planned_from(original, fuse_epilogues(original)), device);
    fused += epilogues_in(c.graph).size();
    random_stream draw(seed, 3);
    constexpr auto moves = chain(rematerialize{}, neap::swap{});
    for (int step = 0; step < 3; ++step) {
      std::vector<mutation_of<stream_of<std::remove_const_t<decltype(moves)>, graph>>> all;
      auto stream = moves(c);
      while (auto m = stream.next()) all.push_back(*m);
      if (all.empty()) break;
      auto e = apply_mutation(all[draw.below(static_cast<std::uint32_t>(all.size()))], c);
      if (e) c = judged(std::move(e->graph), std::move(e->order), device);
    }
    auto const right = verdict(original, c);
    REQUIRE_MESSAGE(right.ok(), right.message());
  }
  CHECK(fused > testing::cases(60));
}

TEST_CASE("operators that differ from those they replace are refused") {
  std::size_t refused = 0, alike = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const original = random_products(seed, 6 + static_cast<std::uint32_t>(seed % 24), {true, false});
    auto const right = planned_from(original, fuse_epilogues(original));
    auto const fused = epilogues_in(right);
    if (fused.empty()) continue;
    random_stream draw(seed, 5);
    auto const sources = random_sources(original, seed);
    auto const expected = run_plainly(original, given_order{}(original), sources, backend);
    for (int tries = 0; tries < 8; ++tries) {
      auto const o = fused[draw.below(static_cast<std::uint32_t>(fused.size()))];
      auto other = *right.as<op::matmul_epilogue>(o);
      switch (draw.below(3)) {
        case 0: other.transpose_a = !other.transpose_a; break;
        case 1: other.transpose_b = !other.transpose_b; break;
        default: other.kind = draw.below(7);
      }
      if (other.kind == right.as<op::matmul_epilogue>(o)->kind &&
          other.transpose_a == right.as<op::matmul_epilogue>(o)->transpose_a &&
          other.transpose_b == right.as<op::matmul_epilogue>(o)->transpose_b)
        continue;
      std::optional<graph> wrong;
      try {
        wrong = with_operator(right, o, view_of(other));
      } catch (error const&) { continue; }  // another type than readers take
      if (!verify(static_cast<op_graph const&>(*wrong)).ok()) continue;
      CAPTURE(other.kind);
      auto const v = verdict(original, judged_in_order(*wrong, device));
      if (!v.ok()) {
        ++refused;
        continue;
      }
      ++alike;  // dead, or the same values
      auto const got = run_plainly(*wrong, given_order{}(*wrong), sources, backend);
      CHECK(error_of(original, expected.kept, got.kept) < 1e-2);
    }
  }
  CHECK(refused > testing::cases(60));
  CHECK(alike < refused / 4);
}

TEST_CASE("a pinned operator is not inside another one") {
  for (auto const pins : {pin_set(), pin_set(pin::run_once), pin_set(pin::keep)}) {
    graph_editor edit{operator_table(standard_operators::facets)}, other = edit;
    auto const sources = [](graph_editor& e) {
      return std::vector{e.add_source(role::input, {dtype::f32, {4, 4}}),
                         e.add_source(role::weight, {dtype::f32, {4, 4}}),
                         e.add_source(role::weight, {dtype::f32, {4}})};
    };
    auto const in = sources(edit);
    auto const y = edit.add(op::matmul{}, {in[0], in[1]})[0];
    auto const result = edit.add(op::add{}, {y, in[2]})[0];
    if (pins.has(pin::keep)) edit.add_pins(y, pins);
    else if (!pins.empty()) edit.add_pins(edit.graph().producer(y), pins);
    edit.keep(result, role::output);
    auto const original = graph(std::move(edit).finish());

    auto const made = other.add(op::matmul_epilogue{}, std::span<value_id const>(sources(other)))[0];
    other.set_origin(other.graph().producer(made), op_id{2});
    other.set_origin_count(3);
    other.set_rewritten(other.graph().producer(made));
    other.keep(made, role::output);
    auto const v = verdict(original, judged_in_order(graph(std::move(other).finish()), device));
    if (pins.empty()) {
      CHECK_MESSAGE(v.ok(), v.message());
      continue;
    }
    CHECK(!v.ok());
    bool told = false;
    for (auto const& broken : v.violations())
      told =
          told || (broken.kind == violation_kind::broken_pin && broken.message.find("as a step") != std::string::npos);
    CHECK(told);
  }
}

TEST_CASE("products with an epilogue run in parts, and the plans are right") {
  std::size_t parts = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < (testing::sanitized ? 90u : 240u); ++seed) {
    CAPTURE(seed);
    auto const original = fuse_epilogues(random_products(seed, 8 + static_cast<std::uint32_t>(seed % 16))).program;
    auto c = judged_in_order(original, device);
    random_stream draw(seed, 6);
    for (int tries = 0; tries < 12; ++tries)
      if (auto const f = random_fission_of_some(c, dimension_graph(c.graph), draw))
        if (auto e = f->apply(c)) {
          c = judged(std::move(e->graph), std::move(e->order), device);
          break;
        }
    for (auto o : epilogues_in(c.graph)) parts += c.graph.record(o).part != nothing<part_id>;
    auto const v = verdict(original, c);
    REQUIRE_MESSAGE(v.ok(), v.message());
    auto const sources = random_sources(original, seed);
    auto const expected = run_plainly(original, given_order{}(original), sources, backend),
               got = run_plainly(c.graph, c.order, sources, backend);
    CHECK(error_of(original, expected.kept, got.kept) < 1e-2);
  }
  CHECK(parts > (testing::sanitized ? 4 : 20));
}
