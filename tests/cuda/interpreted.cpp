// The library's kernels as nvcc compiles them, run by the interpreter of PTX: without a fault, every output written, and
// with the host's results. Bits are the host's where additions have one order; elsewhere results differ from the host's
// by at most 8 times the rounding that tests of the host allow: partial sums are other ones, products and sums are fused,
// and exponentials are the device's.
#include "../support/interpreted_backend.hpp"
#include "../support/kernel_cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

template <class Case>
void check(interpreted_module& kernels, Case const& run, dtype t, case_extents e,
           interpreted_layout layout = interpreted_layout::by_rule) {
  CAPTURE(name_of(t));
  CAPTURE(e.rows);
  CAPTURE(e.columns);
  CAPTURE(e.shift);
  CAPTURE(e.specials);
  CAPTURE(static_cast<int>(layout));
  host_backend host(1);
  case_memory expected(e, random_stream{7});
  run(host, expected, t, e);
  std::optional<case_memory> first;
  for (std::uint64_t seed : {0, 1}) {
    CAPTURE(seed);
    case_memory got(e, random_stream{7});
    interpreted_backend b(kernels, got, seed, layout);
    run(b, got, t, e);
    CHECK(b.faults == "");
    CHECK(b.badly_written() == "");
    if (first) {
      CHECK(first_difference(got, *first, 0) == -1);
      continue;
    }
    bool const equal_bits = Case::same_order && !e.specials;  // a NaN may be another one
    CHECK(first_difference(got, expected, equal_bits ? 0 : 8 * neap_test::tolerance(t)) == -1);
    first.emplace(std::move(got));
  }
}

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
      for (case_extents e : all_extents) check(*kernels, run, t, e);
      for (auto layout : {interpreted_layout::warps, interpreted_layout::blocks, interpreted_layout::parts})
        check(*kernels, run, t, {2, 19}, layout);
      for (auto layout : {interpreted_layout::warps_one_at_once, interpreted_layout::blocks_one_at_once})
        check(*kernels, run, t, {19, 6}, layout);
    }
  });
  // A new kernel in kernels.cu needs a case in tests/support/kernel_cases.hpp.
  CHECK(kernels->not_launched() == "");
}
