// Plans that fuse functions of rows or channels, or reductions, and what is beside them: right ones are accepted, those
// that compute something else are refused, and so is a pinned operator inside.
#include <neap/verify/plan_verifier.hpp>

#include <neap/import/plan_reader.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/train/fuse.hpp>

#include "../support/fused_steps.hpp"
#include "../support/fusing_pass.hpp"
#include "../support/random_rows.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// Another operator in one step of a program, or another operand.
void change_steps(element_program& p, random_stream& draw) {
  if (p.empty()) return;
  auto const k = draw.below(p.step_count);
  auto const& f = *fused_steps()[draw.below(static_cast<std::uint32_t>(fused_steps().size()))];
  if (draw.below(2)) p.steps[k].row = static_cast<std::uint8_t>(f.row);
  else p.steps[k].operands[draw.below(2)] = static_cast<std::uint8_t>(draw.below(p.inputs + k));
}
/// Another number in the place of a program's first constant.
void change_constant(element_program& p) {
  if (p.constant_count > 0) p.constants[0] ^= std::int64_t{1} << 52;
}
/// Something else in one place of a function of rows: another function, program, operand of a step, or a result for
/// another.
void change_rows(op::fused& op, random_stream& draw) {
  switch (draw.below(8)) {
    case 0:
      op.middle = static_cast<anchor>(static_cast<int>(anchor::layer_norm) + static_cast<int>(draw.below(13)));
      break;
    case 1:
      if (op.eps != 0) op.eps += 1e-3;
      break;
    case 2: change_steps(op.prologue, draw); break;
    case 3: change_steps(op.epilogue, draw); break;
    case 4: std::swap(op.keeps_x, op.keeps_y); break;
    case 5: std::swap(op.prologue, op.epilogue); break;  // the steps before, behind
    case 6:
      if (op.groups != 0) op.groups = 3 - op.groups;
      else op.gives_result = !op.gives_result;
      break;
    default: change_constant(draw.below(2) ? op.prologue : op.epilogue);
  }
}
/// The same of a reduction.
void change_reduction(op::fused& op, std::vector<tensor_layout> const& in, random_stream& draw) {
  switch (draw.below(6)) {
    case 0: op.middle = static_cast<anchor>(draw.below(4)); break;
    case 1: change_steps(op.prologue, draw); break;
    case 2: op.axes = {draw.below(3)}; break;
    case 3: op.keepdim = !op.keepdim; break;
    case 4:
      if (op.dims.rank() > 0) op.dims = {1, 1, in[0].type.dims[in[0].type.rank() - 1]};
      break;
    default: change_constant(op.prologue);
  }
}
bool is_reduction(op::fused const& op) { return op.is_reduction(); }
bool is_norm(op::fused const& op) { return op.is_of_rows() || op.is_of_channels(); }
/// Another operator of one of the two kinds; none where the change makes none or the same.
std::optional<op::fused> other_operator(op::fused op, std::vector<tensor_layout> const& in, random_stream& draw) {
  auto const was = op;
  if (op.is_reduction()) change_reduction(op, in, draw);
  else change_rows(op, draw);
  bool same = true;
  for (auto const& one : op::fused::attributes()) same = same && one.get(&op) == one.get(&was);
  if (same || !op.fault(in.size()).empty()) return {};
  return op;
}

}  // namespace

TEST_CASE("plans that fuse functions of rows of the original are right, as files too") {
  std::size_t fused = 0, kept = 0, reductions = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(200u); ++seed) {
    CAPTURE(seed);
    auto const original = random_rows(seed, 6 + static_cast<std::uint32_t>(seed % 24));
    auto const fused_plan = judged_in_order(planned_from(original, fuse(original)), fusing_device);
    for (auto o : fused_ops(fused_plan.graph, is_norm)) {
      auto const& op = *fused_plan.graph.as<op::fused>(o);
      ++fused, kept += op.keeps_x || op.keeps_y;
    }
    reductions += fused_ops(fused_plan.graph, is_reduction).size();
    auto const p = make_plan(moved(fused_plan, seed), original, memory_options{});
    auto const right = verify_plan(original, p, fusing_device);
    REQUIRE_MESSAGE(right.ok(), right.message());
    plan_source from{"rows"};
    from.durations = duration_source{{}, false, fusing_device};
    auto const back = io::parse_plan(plan_json(p, from), "rows");
    REQUIRE_MESSAGE(back.ok(), back.message());
    auto const again = verify_plan(original, back->planned, fusing_device);
    REQUIRE_MESSAGE(again.ok(), again.message());
  }
  CHECK(fused > testing::cases(200));
  CHECK(kept > testing::cases(50));
  CHECK(reductions > testing::cases(5));
}

TEST_CASE("rows with other functions, programs and results are refused") {
  refusals seen, reduced;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const original = random_rows(seed, 6 + static_cast<std::uint32_t>(seed % 24), {true, false});
    auto const made = fuse(original);
    check_other_operators(original, made, seed, 12, is_norm, other_operator, seen);
    check_other_operators(original, made, seed, 6, is_reduction, other_operator, reduced);
  }
  CHECK(seen.refused > testing::cases(250));
  CHECK(4 * seen.alike < seen.refused);
  CHECK(reduced.refused > testing::cases(5));
  CHECK(4 * reduced.alike < reduced.refused);
}

TEST_CASE("rows fused by hand: wrong operands and results are refused, and pinned operators inside") {
  struct fault {
    char const* name;
    int change;
    bool right;
  };
  for (auto const& f : {fault{"none", 0, true}, fault{"another row", 1, false},
                        fault{"scale and shift exchanged", 2, false}, fault{"results exchanged", 3, false},
                        fault{"the sum of one operand twice", 4, false}, fault{"pinned", 5, false}}) {
    CAPTURE(f.name);
    tensor_type const whole{dtype::f32, {4, 8}}, vector{dtype::f32, {8}};
    graph_editor edit{operator_table(standard_operators::facets)}, other = edit;
    auto const sources = [&](graph_editor& e) {
      return std::vector{e.add_source(role::input, whole), e.add_source(role::input, whole),
                         e.add_source(role::input, whole), e.add_source(role::weight, vector),
                         e.add_source(role::weight, vector)};
    };
    auto in = sources(edit);
    auto const sum = edit.add(op::add{}, {in[0], in[1]})[0];
    auto const y = edit.add(op::layer_norm{}, {sum, in[3], in[4]})[0];
    if (f.change == 5) edit.add_pins(edit.graph().producer(sum), pin_set(pin::run_once));
    edit.keep(y, role::output), edit.keep(sum, role::output), edit.keep(in[2], role::output);
    auto const original = graph(std::move(edit).finish());

    auto op = op::fused::of(op::layer_norm{});
    element_program make(2);
    make.add(op::add{}, dtype::f32, {0, 1});
    op.prologue = make;
    op.keeps_x = true;
    in = sources(other);
    std::vector<value_id> operands{in[0], in[1], in[3], in[4]};
    if (f.change == 1) operands[1] = in[2];
    if (f.change == 2) std::swap(operands[2], operands[3]);
    if (f.change == 4) operands[1] = in[0];
    auto const made = other.add(op, std::span<value_id const>(operands));
    other.set_origin(other.graph().producer(made[0]), op_id{2});
    other.set_origin_count(3);
    other.set_rewritten(other.graph().producer(made[0]));
    bool const exchanged = f.change == 3;
    other.keep(made[exchanged ? 1 : 0], role::output), other.keep(made[exchanged ? 0 : 1], role::output);
    other.keep(in[2], role::output);
    auto const v = verdict_on(original, judged_in_order(graph(std::move(other).finish()), fusing_device));
    CHECK_MESSAGE(v.ok() == f.right, v.message());
    if (f.change == 5) CHECK(tells_of_pinned_step(v));
  }
}

TEST_CASE("norms of channels fused by hand: other axes, programs, operands and results are refused") {
  enum class fault {
    none,
    another_axis,
    no_activation,
    another_step,
    another_residual,
    scale_and_shift,
    results,
    statistics,
    another_epsilon,
    groups,
    before_for_after,
    pinned,
    count
  };
  for (int k = 0; k < static_cast<int>(fault::count); ++k) {
    CAPTURE(k);
    auto const change = static_cast<fault>(k);
    tensor_type const whole{dtype::f32, {4, 8, 8}}, vector{dtype::f32, {8}};
    graph_editor edit{operator_table(standard_operators::facets)}, other = edit;
    auto const sources = [&](graph_editor& e) {
      return std::vector{e.add_source(role::input, whole), e.add_source(role::input, whole),
                         e.add_source(role::input, whole), e.add_source(role::weight, vector),
                         e.add_source(role::weight, vector)};
    };
    // Statistics along another axis have other types: then they are not kept.
    bool const keeps_statistics = change != fault::another_axis && change != fault::groups;
    auto in = sources(edit);
    auto const normed = edit.add(op::batch_norm{}, {in[0], in[3], in[4]});
    auto const sum = edit.add(op::add{}, {normed[0], in[1]})[0];
    edit.keep(edit.add(op::relu{}, {sum})[0], role::output);
    edit.keep(normed[0], role::output), edit.keep(in[2], role::output);
    if (change == fault::pinned) edit.add_pins(edit.graph().producer(sum), pin_set(pin::run_once));
    if (keeps_statistics) edit.keep(normed[1], role::output), edit.keep(normed[2], role::output);
    auto const original = graph(std::move(edit).finish());

    auto op = op::fused::of(op::batch_norm{});
    if (change == fault::another_axis) op = op::fused::of(op::layer_norm{});
    if (change == fault::groups) op = op::fused::of(op::group_norm{2});
    if (change == fault::another_epsilon) op.eps *= 2;
    element_program make(2);
    auto const made_sum = change == fault::another_step ? *make.add(op::sub{}, dtype::f32, {0, 1})
                                                        : *make.add(op::add{}, dtype::f32, {0, 1});
    if (change != fault::no_activation) make.add(op::relu{}, dtype::f32, {made_sum});
    if (change == fault::before_for_after) op.prologue = make, op.keeps_x = true;
    else op.epilogue = make, op.keeps_y = true;
    in = sources(other);
    std::vector<value_id> operands{in[0], in[3], in[4], in[1]};
    if (change == fault::another_residual) operands[3] = in[2];
    if (change == fault::scale_and_shift) std::swap(operands[1], operands[2]);
    if (change == fault::before_for_after) operands = {in[0], in[1], in[3], in[4]};
    auto made = other.add(op, std::span<value_id const>(operands));
    other.set_origin(other.graph().producer(made[0]), op_id{3});
    other.set_origin_count(4);
    other.set_rewritten(other.graph().producer(made[0]));
    if (change == fault::results) std::swap(made[0], made[1]);
    if (change == fault::statistics) std::swap(made[2], made[3]);
    other.keep(made[0], role::output), other.keep(made[1], role::output), other.keep(in[2], role::output);
    if (keeps_statistics) other.keep(made[2], role::output), other.keep(made[3], role::output);
    auto const v = verdict_on(original, judged_in_order(graph(std::move(other).finish()), fusing_device));
    CHECK_MESSAGE(v.ok() == (change == fault::none), v.message());
    if (change == fault::pinned) CHECK(tells_of_pinned_step(v));
  }
}

TEST_CASE("fused functions of rows run in parts, and the plans are right") {
  std::size_t parts = 0, reduced = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(200u); ++seed) {
    CAPTURE(seed);
    auto const g = fuse(random_rows(seed, 8 + static_cast<std::uint32_t>(seed % 16))).program;
    parts += check_fused_parts(g, seed, is_norm);
    reduced += check_fused_parts(g, seed + 1000, is_reduction);
  }
  CHECK(parts > (testing::sanitized ? 0u : 40u));  // few of the first draws run in parts
  if (!testing::sanitized) CHECK(reduced > 2);
}
