// Attention's kernels for GPUs as nvcc compiled them, run by the interpreter of PTX: the host's results, forward and
// backward, without a fault, and the same bits in any order of threads. f32 within 1e-5 of the largest result, f64 within
// 1e-12, bf16 and f16 within their rounding of probabilities and results.
#include "attention.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

double within(dtype t) {
  return t == dtype::bf16 ? 1.0 / 64 : t == dtype::f16 ? 1.0 / 512 : t == dtype::f32 ? 1e-5 : 1e-12;
}

void check(interpreted_module& kernels, attention_case const& c, dtype t, bool by_operators = false, double times = 1) {
  double const within_this = times * within(t);
  CAPTURE(name_of(t));
  CAPTURE(c.heads);
  CAPTURE(c.key_heads);
  CAPTURE(c.queries);
  CAPTURE(c.keys);
  CAPTURE(c.depth);
  CAPTURE(c.value_depth);
  CAPTURE(c.causal);
  CAPTURE(c.packed);
  auto const got = attention_on_device(kernels, c, t, 0, within_this, by_operators);
  CHECK(got.wrong == "");
  // Tiles have no bank conflicts; those of rows that do not begin at multiples of 16 bytes are not counted.
  bool const tiled = t != dtype::f64 && c.depth <= 256 && c.value_depth <= 256;
  if (tiled && c.depth % 8 == 0 && c.value_depth % 8 == 0) CHECK(got.bank_conflicts == 0);
  auto const again = attention_on_device(kernels, c, t, 1, within_this, by_operators);
  CHECK(again.wrong == "");
  CHECK(got.bits == again.bits);
}

attention_case of(std::int64_t length, std::int64_t depth, bool causal) {
  return {.heads = 1,
          .key_heads = 1,
          .queries = length,
          .keys = length,
          .depth = depth,
          .value_depth = depth,
          .causal = causal};
}

}  // namespace

TEST_CASE("attention on a GPU gives the host's results, interpreted from PTX") {
  auto kernels = interpreted_kernels("attention");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for (dtype t : {dtype::bf16, dtype::f32}) {
    // lengths below, at and above the extents of tiles
    for (std::int64_t length : {1, 5, 16, 17, 64, 70})
      for (bool causal : {false, true}) {
        auto c = of(length, length % 2 == 0 ? 64 : 32, causal);
        c.packed = length == 17;
        check(*kernels, c, t);
      }
    // several tiles of queries and of keys
    check(*kernels, of(150, 32, false), t);
    check(*kernels, of(150, 32, true), t);
    // other widths
    for (std::int64_t depth : {16, 80, 128, 160}) check(*kernels, of(33, depth, true), t);

    // Batches and heads; heads of keys that serve several of queries; more keys than queries, and fewer; depths that
    // differ; a gradient to lse.
    attention_case c{.batch = 2,
                     .heads = 4,
                     .key_heads = 2,
                     .queries = 18,
                     .keys = 41,
                     .depth = 32,
                     .value_depth = 16,
                     .gradient_of_sums = true};
    check(*kernels, c, t);
    c.queries = 41, c.keys = 35, c.key_heads = 1, c.causal = true;
    check(*kernels, c, t);
    c.queries = 35, c.keys = 41;
    check(*kernels, c, t);
    // Scales; scores of hundreds.
    c = of(20, 32, true);
    c.scale = -0.3;
    check(*kernels, c, t);
    // A rounding of such a score is a part in 10^5 of its exponential.
    c.scale = 1, c.range = 8;
    if (t == dtype::f32) check(*kernels, c, t, false, 10);
    c = of(70, 32, false);
    c.keys = 1, c.scale = 1, c.range = 8;  // lse down to -300
    check(*kernels, c, t, false, t == dtype::f32 ? 50 : 1);
  }
}

TEST_CASE("attention on a GPU: rows at any address, interpreted from PTX") {
  auto kernels = interpreted_kernels("attention");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for (dtype t : {dtype::bf16, dtype::f32})
    for (std::int64_t depth : {0, 1, 7, 12, 20, 34}) {
      auto c = of(19, depth, depth % 2 == 0);
      c.heads = c.key_heads = 2;
      c.packed = depth > 0 && depth != 20;
      check(*kernels, c, t);
    }
  attention_case const no_values{.queries = 3, .keys = 4, .depth = 8, .value_depth = 0};
  check(*kernels, no_values, dtype::f32);
  attention_case const no_queries{.queries = 0, .keys = 4, .depth = 8, .value_depth = 8};
  check(*kernels, no_queries, dtype::bf16);
}

TEST_CASE("attention on a GPU: each kernel gives the host's results, interpreted from PTX") {
  auto kernels = interpreted_kernels("attention");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for (dtype t : {dtype::bf16, dtype::f16, dtype::f32, dtype::f64}) {
    for (std::int64_t depth : {32, 64, 96, 128, 256}) check(*kernels, of(9, depth, true), t, true);
    attention_case wide{.heads = 2, .key_heads = 1, .queries = 5, .keys = 4, .depth = 264, .value_depth = 520};
    check(*kernels, wide, t, true);
    wide.depth = 3, wide.value_depth = 258, wide.gradient_of_sums = true;
    check(*kernels, wide, t, true);
    wide = of(140, 2, true), wide.value_depth = 257;
    if (t == dtype::f32) check(*kernels, wide, t);
  }
  CHECK(kernels->not_launched() == "");
}

TEST_CASE("attention on a GPU: what is not finite stays in its column") {
  auto kernels = interpreted_kernels("attention");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  attention_case const c = of(20, 32, true);
  attention_data d(c, dtype::f32, 3);
  d.v.as<float>()[17 * 32 + 5] = std::numeric_limits<float>::infinity();
  interpreted_device device(*kernels, d.memory, 1);
  attention(device, d.q, d.k, d.v, d.y, d.lse, {.causal = true});
  CHECK(device.faults == "");
  for (int r = 0; r < 20; ++r)
    for (int column = 0; column < 32; ++column) {
      bool const finite = std::isfinite(d.y.as<float>()[r * 32 + column]);
      if (column != 5) CHECK(finite);
      else if (r >= 17) CHECK(!finite);
    }
}

TEST_CASE("attention on a GPU refuses what does not fit") {
  attention_data d(of(4, 8, false), dtype::bf16, 1);
  auto kernels = interpreted_kernels("attention");
  if (!kernels) return;
  interpreted_device device(*kernels, d.memory, 0);
  auto const message = [&](auto const& call) -> std::string {
    try {
      call();
    } catch (error const& e) { return e.what(); }
    return "none";
  };
  tensor_ref lse = d.lse, k = d.k, q = d.q;
  lse.element = dtype::bf16;
  CHECK(message([&] { attention(device, d.q, d.k, d.v, d.y, lse, {}); }).find("do not fit") != std::string::npos);
  k.dims[3] = 7;
  CHECK(message([&] { attention(device, d.q, k, d.v, d.y, d.lse, {}); }).find("q, k, v must be") != std::string::npos);
  q.strides[3] = 2;
  CHECK(message([&] { attention(device, q, d.k, d.v, d.y, d.lse, {}); }).find("not dense") != std::string::npos);
  CHECK(device.launches == 0);
}
