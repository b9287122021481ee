// Operators whose kernels have a form of their own on devices give the host's results: interpreted from PTX, and on shuffled
// blocks.
#include "../support/channel_chain_cases.hpp"
#include "../support/interpreted_check.hpp"
#include "../support/norm_sum_cases.hpp"
#include "../support/operator_cases.hpp"
#include "../support/shuffled_check.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using namespace neap;
using namespace neap::testing;

template <class F>
void for_each_operator_case(F const& f) {
  f(update_case{}, "updates"), f(dropout_case{}, "dropout"), f(reduction_case{}, "reductions"),
      f(picking_case{}, "picking");
  f(line_case{}, "lines"), f(running_sum_case{}, "running sums");
  f(norm_sum_case{}, "norms between sums");
}

}  // namespace

TEST_CASE("operators' kernels interpreted from PTX give the host's results, without a fault") {
  auto kernels = interpreted_kernels("operators");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for_each_operator_case([&](auto const& run, char const* name) {
    CAPTURE(name);
    for (dtype t : {dtype::f32, dtype::bf16})
      for (case_extents e : {case_extents{3, 37},
                             {1, 1},
                             {9, 1},
                             {0, 7},
                             {3, 0},
                             {3, 16},
                             {3, 16, 1},
                             {70, 67},  // several splits of a column
                             {2, 600},
                             {5, 4, 0, true}})
        check_interpreted(*kernels, run, t, e);
    for (dtype t : {dtype::f32, dtype::bf16})
      for (auto layout : {interpreted_layout::warps, interpreted_layout::blocks, interpreted_layout::warps_one_at_once,
                          interpreted_layout::blocks_one_at_once})
        check_interpreted(*kernels, run, t, {6, 19}, layout);
  });
  for (dtype t : {dtype::f32, dtype::bf16})
    for (case_extents e : {case_extents{3, 37}, {1, 1}, {0, 6}, {3, 16}, {2, 66}, {2, 602}})
      check_interpreted(*kernels, channel_chain_case{}, t, e);
  // several splits of a row
  check_interpreted(*kernels, reduction_case{}, dtype::f32, {3, 4100});
  check_interpreted(*kernels, reduction_case{}, dtype::bf16, {3, 4100, 1});
  check_interpreted(*kernels, reduction_case{}, dtype::f32, {3, 4100}, interpreted_layout::blocks);
  for (case_extents e : {case_extents{3, 8}, {1, 1}, {4, 5}}) check_interpreted(*kernels, image_case{}, dtype::f32, e);
  CHECK(kernels->not_launched() == "");
}

TEST_CASE("operators' kernels for devices give the host's results on shuffled blocks, in any order") {
  for_each_operator_case([](auto const& run, char const* name) {
    CAPTURE(name);
    for (dtype t : {dtype::f32, dtype::bf16})
      for (case_extents e : {case_extents{3, 37}, {9, 1}, {2, 600}, {0, 7}}) check_shuffled(run, t, e);
  });
  check_shuffled(image_case{}, dtype::f32, {3, 8});
  for (dtype t : {dtype::f32, dtype::bf16})
    for (case_extents e : {case_extents{3, 37}, {9, 6}, {2, 600}, {0, 6}, {3, 0}})
      check_shuffled(channel_chain_case{}, t, e), check_shuffled(norm_of_part_case{}, t, e);
  for (dtype t : {dtype::f32, dtype::bf16})
    for (case_extents e : {case_extents{3, 37}, {40, 16}, {2, 600}, {0, 7}}) check_shuffled(rows_program_case{}, t, e);
}

TEST_CASE("numbers that are out of range touch no memory but their operands'") {
  auto kernels = interpreted_kernels("operators");
  if (!kernels) return;
  case_extents const e{6, 5};
  case_memory m(e, random_stream{1});
  interpreted_backend b(*kernels, m, 0);
  auto const table = m.random(dtype::f32, {6, 5}), index = m.numbers({4}, 6), places = m.numbers({6, 5}, 5),
             dy = m.random(dtype::f32, {4, 5});
  auto* const at = index.as<std::int64_t>();
  at[0] = -1, at[1] = 6, at[2] = INT64_MAX, at[3] = INT64_MIN;
  for (std::int64_t i = 0; i < 30; i += 3) places.as<std::int64_t>()[i] = i % 2 ? -i - 1 : 5 + i;
  auto const picked = m.unwritten(dtype::f32, {4, 5}), grad = m.unwritten(dtype::f32, {6, 5}),
             sums = m.unwritten(dtype::f32, {6, 5}), added = m.unwritten(dtype::f32, {6, 5});
  run_operator(b, m, op::embedding{}, {table, index}, {picked});
  run_operator(b, m, op::embedding_grad{6}, {dy, index}, {grad});
  run_operator(b, m, op::gather{1}, {table, places}, {m.unwritten(dtype::f32, {6, 5})});
  run_operator(b, m, op::scatter_add{1, 5}, {table, places}, {sums});
  run_operator(b, m, op::index_add{0}, {table, index, dy}, {added});
  run_operator(b, m, op::one_hot{5, dtype::f32}, {index}, {m.unwritten(dtype::f32, {4, 5})});
  CHECK(b.faults == "");
  CHECK(b.badly_written() == "");
  for (std::int64_t k = 0; k < 5; ++k) {  // the nearest row is picked
    CHECK(picked.as<float>()[k] == table.as<float>()[k]);
    CHECK(picked.as<float>()[5 + k] == table.as<float>()[25 + k]);
  }
  for (std::int64_t i = 0; i < 30; ++i) {  // nothing is added
    CHECK(grad.as<float>()[i] == 0);
    CHECK(added.as<float>()[i] == table.as<float>()[i]);
  }
}
