// The library's kernels as nvcc compiles them, run by the interpreter of PTX, give the host's results without a fault.
#include "../support/interpreted_check.hpp"

namespace {

using namespace neap;
using namespace neap::testing;

constexpr case_extents all_extents[] = {
    // odd extents, one row, one column, none
    {3, 37},
    {1, 1},
    {9, 1},
    {1, 5},
    {0, 7},
    {3, 0},
    // two and three groups of rows
    {17, 3},
    {40, 2},
    // accesses of 16 bytes: aligned, not, aligned for f32 alone
    {3, 16},
    {3, 16, 1},
    {2, 24, 4},
    // the longest row of a warp, and longer ones
    {1, 512},
    {1, 513},
    {2, 520},
    {2, 520, 1},
    // several chunks, tiles and parts of a row
    {5, 4100},
    // infinities, NaN, zeros of both signs; a row of nothing but -inf
    {5, 4, 0, true},
    {3, 67, 0, true},
    {2, 600, 0, true}};

}  // namespace

TEST_CASE("kernels interpreted from PTX give the host's results, without a fault") {
  auto kernels = interpreted_kernels("kernels");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for_each_kernel_case([&](auto const& run, int number) {
    CAPTURE(number);
    for (dtype t : {dtype::f32, dtype::bf16}) {
      for (case_extents e : all_extents) check_interpreted(*kernels, run, t, e);
      for (auto layout : {interpreted_layout::warps, interpreted_layout::blocks, interpreted_layout::parts})
        check_interpreted(*kernels, run, t, {2, 19}, layout);
      for (auto layout : {interpreted_layout::warps_one_at_once, interpreted_layout::blocks_one_at_once})
        check_interpreted(*kernels, run, t, {19, 6}, layout);
    }
  });
  // A new kernel in kernels.cu needs a case in tests/support/kernel_cases.hpp.
  CHECK(kernels->not_launched() == "");
}
