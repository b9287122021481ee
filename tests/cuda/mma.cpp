// Fragments of tensor cores and what loads them, as nvcc compiled them: products by the interpreter of PTX are those by
// definition.
#include "mma.hpp"
#include "../support/interpreted_backend.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

using namespace neap;
using namespace neap::testing;

template <class T, int Matrices>
void check(interpreted_module& kernels, int valid) {
  using kernel = mma_product<T, Matrices>;
  CAPTURE(name_of(dtype_of<T>));
  CAPTURE(Matrices);
  CAPTURE(valid);
  constexpr int k = kernel::depth;
  bool const transposed = sizeof(T) == 4;
  case_memory m({0, 0}, random_stream{5});
  auto const a = m.random(dtype_of<T>, {16, k}), b = m.random(dtype_of<T>, {transposed ? 8 : k, transposed ? k : 8}),
             c = m.unwritten(dtype::f32, {16, 8});
  auto const va = neap_test::values(a), vb = neap_test::values(b);
  interpreted_backend run(kernels, m, 1);
  run.launch_blocks(1, kernel{a.template as<T const>(), b.template as<T const>(), c.template as<float>(), valid});
  CHECK(run.faults == "");
  CHECK(run.badly_written() == "");
  int const columns = valid / static_cast<int>(sizeof(T));
  constexpr double within = 1e-6;
  for (int r = 0; r < 16; ++r)
    for (int q = 0; q < 8; ++q) {
      double sum = 0, of_sizes = 0;
      for (int j = 0; j < std::min(k, columns); ++j) {
        auto const at = static_cast<std::size_t>(transposed ? q * k + j : j * 8 + q);
        double const product = va[static_cast<std::size_t>(r * k + j)] * vb[at];
        sum += product, of_sizes += std::abs(product);
      }
      CAPTURE(r);
      CAPTURE(q);
      CHECK(std::abs(c.template as<float>()[r * 8 + q] - sum) <= within * (of_sizes + 1e-3));
    }
}

template <class T>
void check_pack(interpreted_module& kernels) {
  case_memory m({0, 0}, random_stream{6});
  auto const x = m.random(dtype::f32, {64}), y = m.unwritten(dtype_of<T>, {64});
  interpreted_backend run(kernels, m, 0);
  run.launch_blocks(1, mma_pack<T>{x.template as<float const>(), y.template as<std::uint32_t>()});
  CHECK(run.faults == "");
  for (int i = 0; i < 64; ++i) CHECK(y.template as<T>()[i].bits == T(x.template as<float>()[i]).bits);
}

// Eight rows of a chunk, from any multiple of 8 on, lie in different banks; a tile's chunks in different places.
template <int Chunks>
constexpr bool is_swizzle() {
  bool taken[64 * Chunks] = {};
  for (int row = 0; row < 64; ++row)
    for (int chunk = 0; chunk < Chunks; ++chunk) {
      int const at = detail::swizzled<Chunks>(row, chunk);
      if (at < row * Chunks || at >= (row + 1) * Chunks || taken[at]) return false;
      taken[at] = true;
    }
  for (int chunk = 0; chunk < Chunks; ++chunk)
    for (int row = 0; row < 64; row += 8) {
      unsigned banks = 0;  // of 16 bytes
      for (int r = row; r < row + 8; ++r) banks |= 1u << (detail::swizzled<Chunks>(r, chunk) % 8);
      if (banks != 0xff) return false;
    }
  return true;
}
static_assert(is_swizzle<4>() && is_swizzle<8>() && is_swizzle<12>() && is_swizzle<16>() && is_swizzle<24>() &&
              is_swizzle<32>() && is_swizzle<64>());

}  // namespace

TEST_CASE("products on tensor cores are those by definition, interpreted from PTX") {
  auto kernels = interpreted_kernels("mma");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for (int valid : {32, 20, 8, 0}) {
    check<bf16, 1>(*kernels, valid);
    check<bf16, 2>(*kernels, valid);
    check<bf16, 4>(*kernels, valid);
    check<f16, 1>(*kernels, valid);
    check<f16, 4>(*kernels, valid);
    check<float, 2>(*kernels, valid);
    check<float, 4>(*kernels, valid);
  }
  check_pack<bf16>(*kernels);
  check_pack<f16>(*kernels);
  CHECK(kernels->not_launched() == "");
}
