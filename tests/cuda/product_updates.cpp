// Updates with products of matrices in them, interpreted from PTX: the host's results but for rounding, without a fault.
#include "../support/interpreted_check.hpp"
#include "../support/product_update_cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>

namespace {

using namespace neap;
using namespace neap::testing;

interpreted_module* kernels() {
  static auto module = interpreted_kernels("product_updates");
  if (!module) MESSAGE("this test is skipped: no nvcc");
  return module ? &*module : nullptr;
}

}  // namespace

TEST_CASE("muon's kernels interpreted from PTX give the host's results: wide and tall matrices, odd and empty ones") {
  auto* const module = kernels();
  if (!module) return;
  for (case_extents e : {case_extents{5, 9}, {9, 5}, {1, 7}, {33, 2, 1}, {17, 17}, {3, 0}})
    for (dtype t : {dtype::f32, dtype::bf16}) check_interpreted(*module, muon_case{}, t, e);
  for (auto layout : {interpreted_layout::warps, interpreted_layout::blocks})
    check_interpreted(*module, muon_case{}, dtype::f32, {5, 9}, layout);
}

TEST_CASE("updates by products, interpreted from PTX, give the host's results, in one part and in several") {
  auto* const module = kernels();
  if (!module) return;
  for (case_extents e : {case_extents{5, 9}, {66, 33}, {1, 1}, {8, 80, 1}, {0, 4}})
    for (dtype t : {dtype::f32, dtype::bf16}) check_interpreted(*module, product_update_case{}, t, e);
  CHECK(module->not_launched() == "");
}
