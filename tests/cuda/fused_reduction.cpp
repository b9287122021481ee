// Reductions of programs on a device give the host's results, interpreted from PTX and on shuffled blocks; and the bits of
// the program and the reduction one after the other, in one launch.
#include "../support/fused_on_device.hpp"
#include "../support/fused_reduction_cases.hpp"
#include "../support/interpreted_check.hpp"
#include "../support/operator_cases.hpp"
#include "../support/random_fused.hpp"
#include "../support/shuffled_check.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

/// A reduction of a program on operands of a case: y, and x if it is kept.
template <class B>
std::vector<tensor_ref> run_reduction(B& b, case_memory& m, op::fused const& op, std::vector<tensor_ref> const& in) {
  std::vector<tensor_layout> from, to;
  for (auto const& x : in) from.push_back(tensor_layout::dense({x.element, x.dims}));
  shape_context c("fused", from);
  op.infer(c);
  std::vector<tensor_ref> out;
  for (auto const& rule : c.outputs()) {
    to.push_back(rule.layout);
    out.push_back(m.unwritten(rule.layout.type.element, rule.layout.type.dims));
  }
  run_fused(b, op, {in, out, m.work(op.workspace({from, to}))});
  return out;
}

/// Every `of`-th reduction from number `first` on.
struct reductions_of_programs {
  static constexpr bool same_order = false;
  int first = 0, of = 1;

  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const x{2, e.rows, e.columns};
    int number = 0;
    each_reduction(x, t, [&](op::fused const& op) {
      int const now = number++;
      if (now % of != first) return;
      std::vector<tensor_ref> in;
      for (auto const& o : operands_of_reduction(x, now % 2 == 0)) in.push_back(m.random(t, o.dims, -1, 1));
      run_reduction(b, m, op, in);
    });
  }
};

/// Of operands that are transposed, that begin within a tensor, and that are booleans and one number.
struct reductions_of_views {
  static constexpr bool same_order = false;

  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto const back = transposed(m.random(t, {e.columns, e.rows}, -1, 1)), one = m.random(t, {}, -1, 1),
               part = slice_view(m.random(t, {e.rows, 2 * e.columns}, -1, 1), 1, 1, e.columns),
               yes = m.random(dtype::boolean, s, -1, 1);
    element_program make(4);  // yes ? part * one : back
    make.add(op::where{}, t, {3, *make.add(op::mul{}, t, {0, 2}), 1});
    auto const run_all = [&](auto const& reduction) {
      auto op = op::fused::of(reduction);
      op.prologue = make;
      op.keeps_x = true;
      run_reduction(b, m, op, {part, back, one, yes});
    };
    run_all(op::sum{{1}, false});
    run_all(op::sum{{0}, false});
    run_all(op::max_reduce{{}, false});
  }
};

bool same_bits(tensor_ref const& a, tensor_ref const& b) {
  return a.dims == b.dims && std::memcmp(a.data, b.data, static_cast<std::size_t>(a.count() * size_of(a.element))) == 0;
}

/// The kernels of reductions of programs, of programs and of reductions.
struct three_modules {
  std::optional<interpreted_module> both = interpreted_kernels("fused_reduction"),
                                    programs = interpreted_kernels("elementwise"),
                                    reductions = interpreted_kernels("operators");
};

/// Compares the kernel's bits with the program's and the reduction's on the same operands, and its launches with the
/// reduction's.
void check_beside_two_launches(three_modules& kernels, op::fused const& op, std::vector<tensor_type> const& inputs) {
  case_memory memory({1, 1}, random_stream{11});
  interpreted_backend both(*kernels.both, memory, 0), program(*kernels.programs, memory, 0),
      reduction(*kernels.reductions, memory, 0);
  std::vector<tensor_ref> in;
  for (auto const& t : inputs) in.push_back(memory.random(t.element, t.dims, t.element == dtype::boolean ? -1 : -2));
  auto const type = op.x_type(in);
  auto const reduces = op.reduces(type.dims);
  auto const x = memory.unwritten(type.element, type.dims);
  neap::detail::run_program(program, op.prologue, {in, {&x, 1}});
  auto const out = run_reduction(both, memory, op, in);
  auto const y = memory.unwritten(out[0].element, out[0].dims);
  neap::detail::reduce_on_device(reduction, op.kind(), y, x, reduces.data());
  CHECK(same_bits(out[0], y));
  if (op.keeps_x) CHECK(same_bits(out[1], x));
  CHECK(both.launches == reduction.launches);  // 1, or 2 with splits
  CHECK(both.faults + program.faults + reduction.faults == "");
}

}  // namespace

TEST_CASE("reductions of programs interpreted from PTX give the host's results, without a fault") {
  auto kernels = interpreted_kernels("fused_reduction");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  constexpr int all = 28, pairs = all / 2;  // the second half keeps x
  for (int k = 0; k < pairs; ++k)
    check_interpreted(*kernels, reductions_of_programs{k, pairs}, k % 2 == 0 ? dtype::f32 : dtype::bf16, {3, 37});
  int turn = 0;
  auto const check = [&](dtype t, case_extents e, interpreted_layout layout = interpreted_layout::by_rule) {
    turn = (turn + 5) % all;
    check_interpreted(*kernels, reductions_of_programs{turn, all}, t, e, layout);
  };
  for (case_extents e : {case_extents{1, 1},
                         {9, 1},
                         {0, 7},
                         {3, 0},
                         {3, 16},
                         {3, 16, 1},
                         {1, 300},  // several tiles
                         {5, 4, 0, true}})
    for (dtype t : {dtype::f32, dtype::bf16, dtype::f16}) check(t, e);
  for (auto layout : {interpreted_layout::warps, interpreted_layout::blocks, interpreted_layout::warps_one_at_once,
                      interpreted_layout::blocks_one_at_once})
    for (dtype t : {dtype::f32, dtype::f64}) check(t, {6, 19}, layout);
  for (dtype t : {dtype::f32, dtype::bf16, dtype::f64}) check_interpreted(*kernels, reductions_of_views{}, t, {3, 16});
  check_interpreted(*kernels, reductions_of_views{}, dtype::f16, {5, 11});
  // Several splits, of columns and of all elements.
  check_interpreted(*kernels, reductions_of_programs{12, pairs}, dtype::f32, {70, 3});
  check_interpreted(*kernels, reductions_of_programs{11, all}, dtype::f64, {70, 3});
  check_interpreted(*kernels, reductions_of_programs{0, all}, dtype::bf16, {1, 4100});
  for (dtype t : {dtype::f32, dtype::f64})
    check_interpreted(*kernels, reductions_of_programs{0, all}, t, {1, 4100}, interpreted_layout::blocks);
  CHECK(kernels->not_launched() == "");
}

TEST_CASE("a reduction of a program has the bits of the program and the reduction on a device, in one launch") {
  three_modules kernels;
  if (!kernels.both) return;
  random_stream draw(21);
  for (int compared = 0; compared < 30;) {
    auto const r = random_fused::draw(draw, false, 6);
    auto const element = r.program.step(r.program.step_count - 1).element;
    bool whole = false;  // an input has x's shape
    for (auto const& t : r.inputs) whole = whole || t.dims == r.dims;
    if (!whole || !is_floating(element) || elements(r.dims) > 2000 || r.dims.rank() == 0) continue;
    auto op = compared % 3 == 0   ? op::fused::of(op::sum{{-1}, false})
              : compared % 3 == 1 ? op::fused::of(op::mean{{0}, true})
                                  : op::fused::of(op::max_reduce{{}, false});
    op.prologue = r.program;
    op.keeps_x = compared % 2 == 0;
    CAPTURE(to_string(r.program));
    CAPTURE(to_string(r.dims));
    if (elements(r.dims) > 0) check_beside_two_launches(kernels, op, r.inputs);
    ++compared;
  }
  // Splits of rows and of columns: a launch more.
  for (dtype t : {dtype::f32, dtype::bf16})
    for (shape const& s : {shape{2, 8200}, shape{1, 9001}})
      check_beside_two_launches(kernels, reduction_with_steps(op::sum{{1}, false}, t, false),
                                {{t, s}, {t, {s[1]}}, {t, s}});
  check_beside_two_launches(kernels, reduction_with_steps(op::sum_to{{13}}, dtype::bf16, true),
                            {{dtype::bf16, {90, 13}}, {dtype::bf16, {13}}, {dtype::bf16, {90, 13}}});
}

TEST_CASE("reductions of programs give the host's results on shuffled blocks, in any order") {
  for (dtype t : {dtype::f32, dtype::bf16})
    for (case_extents e : {case_extents{3, 37}, {40, 16}, {2, 600}, {0, 7}, {3, 0}})
      check_shuffled(reductions_of_programs{}, t, e);
}
