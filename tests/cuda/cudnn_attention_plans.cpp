// Attention's graphs given to the real cuDNN for an H100, without one: it compiles a fused kernel for them. A driver would
// load it; the toolkit's stub of the driver does not.
#include <neap/cuda/cudnn.hpp>

#include "../support/h100_properties.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstdint>
#include <string>

using namespace neap;
using namespace neap::testing;

namespace {

struct heads {
  std::int64_t batch, heads, key_heads, queries, keys, depth;
  bool inside = false;  // [B, T, H, D] in memory

  cuda_attention operator()(dtype t, bool causal, bool backward) const {
    auto const of = [&](std::int64_t h, std::int64_t rows) {
      return inside ? library_tensor{{batch, h, rows, depth}, {h * rows * depth, depth, h * depth, 1}}
                    : library_tensor{{batch, h, rows, depth}, {h * rows * depth, rows * depth, depth, 1}};
    };
    auto const q = of(heads, queries), k = of(key_heads, keys);
    library_tensor const lse{{batch, heads, queries, 1}, {heads * queries, queries, 1, 1}};
    cuda_attention a{backward, t, causal, 0.125f, q, k, k, q, lse, {}, {}, {}, {}};
    if (backward) a.dy = q, a.dq = q, a.dk = k, a.dv = k;
    return a;
  }
};

}  // namespace

TEST_CASE("cuDNN has a fused kernel for attention and its gradients") {
  if (!dlopen("libcuda.so.1", RTLD_NOW)) {
    MESSAGE("this test is skipped: neither a driver nor the toolkit's stub of it");
    return;
  }
  cudnn library{std::string(h100_properties)};
  // Each takes seconds: every shape in both directions, every type with the mask and without, and lengths that differ too.
  struct {
    heads h;
    dtype type;
    bool masked;
  } const cases[] = {{{8, 12, 12, 1024, 1024, 64, true}, dtype::bf16, true},
                     {{4, 16, 16, 1024, 1024, 64}, dtype::f16, false},
                     {{2, 4, 4, 77, 77, 32}, dtype::bf16, false},
                     {{2, 4, 4, 64, 128, 128}, dtype::f16, true},
                     {{2, 4, 4, 64, 128, 128}, dtype::bf16, false},
                     {{2, 4, 2, 128, 128, 64}, dtype::bf16, true}};
  for (auto const& [h, type, masked] : cases)
    for (bool const backward : {false, true}) {
      auto const way = library.way(h(type, masked, backward));
      CAPTURE(library.text());
      if (backward && h.heads != h.key_heads)
        CHECK(way.reason == "cuDNN's gradients are of as many heads of keys as of queries");
      else if (!way.by_library) CHECK(way.reason == "cuDNN's algorithm for it is not loaded by the driver");
    }
  CHECK(library.way(heads{2, 4, 4, 64, 64, 63}(dtype::bf16, true, false)).reason == "cuDNN has no algorithm for it");
  CHECK(library.way(heads{2, 4, 4, 64, 64, 64}(dtype::f32, true, false)).reason ==
        "cuDNN's attention is of f16 and bf16");
}
