// Elementwise kernels of devices, interpreted and on shuffled blocks, give the host's results for all layouts and types.
#include "../support/elementwise_cases.hpp"
#include "../support/fused_cases.hpp"
#include "../support/interpreted_check.hpp"
#include "../support/shuffled_check.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

using namespace neap;
using namespace neap::testing;

TEST_CASE("elementwise kernels interpreted from PTX give the host's results, without a fault") {
  auto kernels = interpreted_kernels("elementwise");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for_each_functor_case([&](auto const& run, char const* name) {
    CAPTURE(name);
    for (dtype t : {dtype::f32, dtype::bf16})
      for (case_extents e : {case_extents{3, 37}, {2, 8}, {5, 4, 0, true}}) check_interpreted(*kernels, run, t, e);
  });
  for (dtype t : {dtype::f32, dtype::bf16, dtype::f16})
    for (case_extents e : {case_extents{3, 37},
                           {1, 1},
                           {9, 1},
                           {0, 7},
                           {3, 0},
                           {3, 16},
                           {3, 16, 1},
                           {2, 24, 4},
                           {2, 520},
                           {5, 1100},  // several blocks
                           {70, 67},   // several tiles of a transpose
                           {5, 8, 0, true}}) {
      check_interpreted(*kernels, layouts_case{}, t, e);
      if (t != dtype::f16) check_interpreted(*kernels, copy_case{}, t, e);
    }
  for (case_extents e : {case_extents{3, 37}, {2, 8}, {5, 4, 0, true}, {3, 16, 1}})
    check_interpreted(*kernels, types_case{}, dtype::f32, e);
  {
    functor_case<neap::detail::adam_step, 4, 3> const adam{0.1, 2};
    for (case_extents e : {case_extents{3, 37}, {2, 8}, {3, 0}}) check_interpreted(*kernels, adam, dtype::f64, e);
  }
  for (dtype t : {dtype::f32, dtype::bf16, dtype::f16, dtype::f64})
    for (case_extents e : {case_extents{3, 37}, {1, 1}, {0, 7}, {3, 16}, {3, 16, 1}, {2, 1100}, {5, 8, 0, true}})
      check_interpreted(*kernels, fused_case{}, t, e);
  CHECK(kernels->not_launched() == "");
}

TEST_CASE("fused programs on a device have the bits of the operators' own kernels there") {
  auto kernels = interpreted_kernels("elementwise");
  if (!kernels) return;
  random_stream draw(9);
  int compared = 0;
  while (compared < 60) {
    auto const r = random_fused::draw(draw, false, 6);
    if (elements(r.dims) > 120 || program_case{r, true}.has_whole_numbers()) continue;
    CAPTURE(to_string(r.program));
    CAPTURE(to_string(r.dims));
    case_memory one({1, 1}, random_stream{7}), apart({1, 1}, random_stream{7});
    interpreted_backend fused(*kernels, one, 0), plain(*kernels, apart, 0);
    auto const a = program_case{r, true}(fused, one), b = program_case{r, false}(plain, apart);
    CHECK(fused.faults == "");
    CHECK(plain.faults == "");
    CHECK(fused.launches == (elements(r.dims) > 0 ? 1 : 0));
    CHECK(std::memcmp(a.data, b.data, static_cast<std::size_t>(a.count() * size_of(a.element))) == 0);
    ++compared;
  }
}

TEST_CASE("elementwise kernels of devices give the host's results on shuffled blocks") {
  for (dtype t : {dtype::f32, dtype::bf16})
    for (case_extents e : {case_extents{3, 37}, {3, 16}, {3, 16, 1}, {0, 7}}) {
      check_shuffled(layouts_case{}, t, e);
      check_shuffled(copy_case{}, t, e);
      check_shuffled(fused_case{}, t, e);
      check_shuffled(functor_case<neap::detail::adam_step, 4, 3>{0.1, 2}, t, e);
    }
  check_shuffled(types_case{}, dtype::f32, {3, 21});
}

TEST_CASE("a map's bits depend on no layout of its operands") {
  auto kernels = interpreted_kernels("elementwise");
  if (!kernels) return;
  for (dtype t : {dtype::f32, dtype::bf16}) {
    case_extents const aligned{4, 48}, shifted{4, 48, 1};
    case_memory a(aligned, random_stream{7}), c(shifted, random_stream{7});
    functor_case<op::detail::gelu_function<true>, 2, 1> const gelu{-2, 2};
    functor_case<neap::detail::adam_step, 4, 3> const adam{0.1, 2};
    interpreted_backend by_packs(*kernels, a, 0), one_by_one(*kernels, c, 0);
    gelu(by_packs, a, t, aligned), gelu(one_by_one, c, t, shifted);
    adam(by_packs, a, t, aligned), adam(one_by_one, c, t, shifted);
    for (std::size_t k = 0; k < a.places.size(); ++k)
      CHECK(std::memcmp(a.places[k].data(), c.places[k].data() + c.places[k].prefix, a.places[k].bytes) == 0);
    CHECK(by_packs.instructions < one_by_one.instructions);
  }
}
