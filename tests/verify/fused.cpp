// Plans that fuse elementwise operators of the original: right ones are accepted, those whose programs differ from the
// operators that they replace are refused, and so is a pinned operator as a step.
#include <neap/verify/plan_verifier.hpp>

#include <neap/import/plan_reader.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/train/fuse.hpp>

#include "../support/fused_steps.hpp"
#include "../support/fusing_pass.hpp"
#include "../support/random_elementwise.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

bool is_chain(op::fused const& op) { return !op.has_anchor(); }
/// Something else in one place of a program: another operator, type, operand or constant. None if it is no program then.
std::optional<op::fused> changed(op::fused op, std::vector<tensor_layout> const& /*in*/, random_stream& draw) {
  auto& p = op.prologue;
  auto const was = p;
  auto const k = draw.below(p.step_count);
  auto& step = p.steps[k];
  switch (draw.below(4)) {
    case 0: {
      auto const& f = *fused_steps()[draw.below(static_cast<std::uint32_t>(fused_steps().size()))];
      step.row = static_cast<std::uint8_t>(f.row);
      break;
    }
    case 1: {
      auto& operand = step.operands[draw.below(3)];
      operand = static_cast<std::uint8_t>(draw.below(p.inputs + k));
      break;
    }
    case 2: step.element = static_cast<dtype>(draw.below(8)); break;
    default:
      if (p.constant_count == 0) return {};
      p.constants[draw.below(p.constant_count)] ^= std::int64_t{1} << (draw.below(2) ? 52 : 0);
  }
  if (!p.fault(p.inputs).empty() || to_string(p) == to_string(was)) return {};
  return op;
}

}  // namespace

TEST_CASE("plans that fuse operators of the original are right, as files too") {
  std::size_t fused = 0, steps = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(200u); ++seed) {
    CAPTURE(seed);
    auto const original = random_elementwise(seed, 6 + static_cast<std::uint32_t>(seed % 24));
    auto const fused_plan = judged_in_order(planned_from(original, fuse(original)), fusing_device);
    for (auto o : ops_that_are<op::fused>(fused_plan.graph))
      ++fused, steps += static_cast<std::size_t>(fused_plan.graph.as<op::fused>(o)->prologue.step_count);
    auto const c = moved(fused_plan, seed);
    auto const p = make_plan(c, original, memory_options{});
    auto const right = verify_plan(original, p, fusing_device);
    REQUIRE_MESSAGE(right.ok(), right.message());
    plan_source from{"fused"};
    from.durations = duration_source{{}, false, fusing_device};
    auto const back = io::parse_plan(plan_json(p, from), "fused");
    REQUIRE_MESSAGE(back.ok(), back.message());
    auto const again = verify_plan(original, back->planned, fusing_device);
    REQUIRE_MESSAGE(again.ok(), again.message());
  }
  CHECK(fused > testing::cases(150));
  CHECK(steps > 2 * fused);
}

TEST_CASE("programs that differ from the operators they replace are refused") {
  refusals seen;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const original = random_elementwise(seed, 6 + static_cast<std::uint32_t>(seed % 24), {true, false});
    check_other_operators(original, fuse(original), seed, 20, is_chain, changed, seen);
  }
  CHECK(seen.refused > testing::cases(500));
  CHECK(seen.alike < seen.refused / 4);
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
      element_program make(1);
      make.add(op::neg{}, dtype::f32, {*make.add(op::tanh{}, dtype::f32, {0})});
      auto const made = other.add(op::fused{make}, {y})[0];
      other.set_origin(other.graph().producer(made), op_id{2});
      other.set_origin_count(3);
      other.set_rewritten(other.graph().producer(made));
      other.keep(made, role::output);
      auto const v = verdict_on(original, judged_in_order(graph(std::move(other).finish()), fusing_device));
      if (pins.empty()) {
        CHECK_MESSAGE(v.ok(), v.message());
        continue;
      }
      CHECK(!v.ok());
      CHECK(tells_of_pinned_step(v));
    }
}

TEST_CASE("fused operators run in parts, and the plans are right") {
  std::size_t parts = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(150u); ++seed) {
    CAPTURE(seed);
    parts += check_fused_parts(fuse(random_elementwise(seed, 8 + static_cast<std::uint32_t>(seed % 16))).program, seed,
                               is_chain);
  }
  CHECK(parts > testing::cases(50));
}
