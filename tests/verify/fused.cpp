// Plans that fuse elementwise operators of the original: right ones are accepted, those whose programs differ from the
// operators that they replace are refused, and so is a pinned operator as a step.
#include <neap/verify/plan_verifier.hpp>

#include <neap/import/plan_reader.hpp>
#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/fuse_elementwise.hpp>

#include "../support/fused_plans.hpp"
#include "../support/judged.hpp"
#include "../support/plain_run.hpp"
#include "../support/random_elementwise.hpp"
#include "../support/random_fission.hpp"
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

/// Something else in one place of a program: another operator, type, operand or constant. None if it is no program then.
std::optional<op::fused> changed(op::fused p, std::vector<tensor_layout> const& in, random_stream& draw) {
  auto const k = static_cast<int>(draw.below(static_cast<std::uint32_t>(p.step_count())));
  auto& bits = k < p.steps.rank() ? p.steps[k] : p.more_steps[k - p.steps.rank()];
  switch (draw.below(4)) {
    case 0: {
      auto const& f = op::detail::step_operators[draw.below(op::detail::step_operators.size())];
      bits = (bits & ~std::int64_t{0xffff}) | f.row;
      break;
    }
    case 1: {
      int const at = 24 + 8 * static_cast<int>(draw.below(3));
      bits = (bits & ~(std::int64_t{0xff} << at)) | std::int64_t{draw.below(static_cast<std::uint32_t>(p.inputs + k))}
                                                        << at;
      break;
    }
    case 2: bits = (bits & ~(std::int64_t{0xff} << 16)) | std::int64_t{draw.below(8)} << 16; break;
    default:
      if (p.constants.rank() == 0) return {};
      p.constants[static_cast<int>(draw.below(static_cast<std::uint32_t>(p.constants.rank())))] ^=
          std::int64_t{1} << (draw.below(2) ? 52 : 0);
  }
  try {
    shape_context c("fused", in);
    p.infer(c);
  } catch (error const&) { return {}; }
  return p;
}

}  // namespace

TEST_CASE("plans that fuse operators of the original are right, as files too") {
  std::size_t fused = 0, steps = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(200u); ++seed) {
    CAPTURE(seed);
    auto const original = random_elementwise(seed, 6 + static_cast<std::uint32_t>(seed % 24));
    auto c = judged_in_order(planned_from(original, fuse_elementwise(original)), device);
    for (auto o : c.graph.ops())
      if (auto const* p = c.graph.as<op::fused>(o)) ++fused, steps += static_cast<std::size_t>(p->step_count());
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
    auto const p = make_plan(c, original, memory_options{});
    auto const right = verify_plan(original, p, device);
    REQUIRE_MESSAGE(right.ok(), right.message());
    plan_source from{"fused"};
    from.durations = duration_source{{}, false, device};
    auto const back = io::parse_plan(plan_json(p, from), "fused");
    REQUIRE_MESSAGE(back.ok(), back.message());
    auto const again = verify_plan(original, back->planned, device);
    REQUIRE_MESSAGE(again.ok(), again.message());
  }
  CHECK(fused > testing::cases(150));
  CHECK(steps > 2 * fused);
}

TEST_CASE("programs that differ from the operators they replace are refused") {
  std::size_t refused = 0, alike = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const original = random_elementwise(seed, 6 + static_cast<std::uint32_t>(seed % 24), {true, false});
    auto const right = planned_from(original, fuse_elementwise(original));
    std::vector<op_id> fused;
    for (auto o : right.ops())
      if (right.as<op::fused>(o)) fused.push_back(o);
    if (fused.empty()) continue;
    random_stream draw(seed, 5);
    auto const sources = random_sources(original, seed);
    auto const expected = run_plainly(original, given_order{}(original), sources, backend);
    for (int tries = 0; tries < 20; ++tries) {
      auto const o = fused[draw.below(static_cast<std::uint32_t>(fused.size()))];
      std::vector<tensor_layout> in;
      for (auto v : right.inputs(o)) in.push_back(right.layout(v));
      auto const& was = *right.as<op::fused>(o);
      auto const other = changed(was, in, draw);
      if (!other || to_string(*other) == to_string(was)) continue;
      INFO(to_string(was), " -> ", to_string(*other));
      std::optional<graph> wrong;
      try {
        wrong = with_operator(right, o, view_of(*other));
      } catch (error const&) { continue; }  // another type than readers take
      if (!verify(static_cast<op_graph const&>(*wrong)).ok()) continue;
      auto const v = verdict(original, judged_in_order(*wrong, device));
      if (!v.ok()) {
        ++refused;
        continue;
      }
      // the same by algebra (x + y is y + x), or dead
      ++alike;
      auto const got = run_plainly(*wrong, given_order{}(*wrong), sources, backend);
      CHECK(error_of(original, expected.kept, got.kept) < 1e-2);
    }
  }
  CHECK(refused > testing::cases(500));
  CHECK(alike < refused / 4);
}

TEST_CASE("a pinned operator is no step, in its place or once more") {
  for (bool const beside : {false, true})
    for (auto const pins : {pin_set(), pin_set(pin::run_once), pin_set(pin::keep)}) {
      graph_editor edit{operator_table(standard_operators::facets)}, other = edit;
      auto const x = edit.add_source(role::input, {dtype::f32, {8}});
      auto const bent = edit.add(op::tanh{}, {x})[0];
      auto const result = edit.add(op::neg{}, {bent})[0];
      if (pins.has(pin::keep)) edit.add_pins(bent, pins);
      else if (!pins.empty()) edit.add_pins(edit.graph().producer(bent), pins);
      if (beside) edit.keep(bent, role::output);
      edit.keep(result, role::output);
      auto const original = graph(std::move(edit).finish());

      auto const y = other.add_source(role::input, {dtype::f32, {8}});
      if (beside) other.keep(other.add(op::tanh{}, {y})[0], role::output);
      op::fused_maker make(1);
      make.add(op::neg{}, dtype::f32, {*make.add(op::tanh{}, dtype::f32, {0})});
      auto const made = other.add(make.made(), {y})[0];
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
        told = told ||
               (broken.kind == violation_kind::broken_pin && broken.message.find("as a step") != std::string::npos);
      CHECK(told);
    }
}

TEST_CASE("fused operators run in parts, and the plans are right") {
  std::size_t parts = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(150u); ++seed) {
    CAPTURE(seed);
    auto const original = fuse_elementwise(random_elementwise(seed, 8 + static_cast<std::uint32_t>(seed % 16))).program;
    auto c = judged_in_order(original, device);
    random_stream draw(seed, 6);
    for (int tries = 0; tries < 12; ++tries)
      if (auto const f = random_fission_of_some(c, dimension_graph(c.graph), draw))
        if (auto e = f->apply(c)) {
          c = judged(std::move(e->graph), std::move(e->order), device);
          break;
        }
    for (auto o : c.graph.ops()) parts += c.graph.as<op::fused>(o) && c.graph.record(o).part != nothing<part_id>;
    auto const v = verdict(original, c);
    REQUIRE_MESSAGE(v.ok(), v.message());
    auto const sources = random_sources(original, seed);
    auto const expected = run_plainly(original, given_order{}(original), sources, backend),
               got = run_plainly(c.graph, c.order, sources, backend);
    CHECK(error_of(original, expected.kept, got.kept) < 1e-2);
  }
  CHECK(parts > testing::cases(50));
}
