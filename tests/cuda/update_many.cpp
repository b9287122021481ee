// Updates of several tensors in one launch, interpreted from PTX: the host's results but for rounding, the bits of a launch
// each, in few launches.
#include "../support/update_many_cases.hpp"

#include "../support/interpreted_check.hpp"
#include "../support/shuffled_block.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

constexpr case_extents extents_of_cases[] = {{5, 9}, {1, 1}, {33, 130}, {16, 16, 1}, {0, 3}};

}  // namespace

TEST_CASE("updates of several tensors in one launch give the host's results, without a fault") {
  auto kernels = interpreted_kernels("update_many");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  for (case_extents e : extents_of_cases)
    for (dtype t : {dtype::f32, dtype::bf16}) check_interpreted(*kernels, update_many_case{}, t, e);
  CHECK(kernels->not_launched() == "");
}

TEST_CASE("one launch gives the bits of a launch each, and is one") {
  auto together = interpreted_kernels("update_many"), single = interpreted_kernels("product_updates");
  if (!together || !single) return;
  for (case_extents e : extents_of_cases)
    for (dtype t : {dtype::f32, dtype::bf16}) {
      CAPTURE(e.rows);
      CAPTURE(name_of(t));
      case_memory a(e, random_stream{3}), b(e, random_stream{3});
      interpreted_backend many(*together, a, 1), each(*single, b, 2);
      update_many_case{}(many, a, t, e);
      update_many_case{true}(each, b, t, e);
      CHECK(first_difference(a, b, 0) == -1);
      CHECK(many.faults + each.faults == "");
      // Four kinds with two settings each, one with one, and a launch for the tensor with gaps of each kind.
      if (e.rows > 1) {
        CHECK(many.launches == 4 * 2 + 1 + 5);
        CHECK(each.launches >= 5 * 8);
      }
    }
}

TEST_CASE("more tensors than a launch takes are in several, each updated once") {
  constexpr std::size_t count = 300;
  host_backend host(1);
  case_memory a({}, random_stream{5}), b({}, random_stream{5});
  shuffled_backend device(3);
  auto const make = [&](case_memory& m) {
    std::vector<std::vector<tensor_ref>> in;
    for (std::size_t k = 0; k < count; ++k)
      in.push_back({m.random(dtype::f32, {static_cast<std::int64_t>(k % 7)}),
                    m.random(dtype::f32, {static_cast<std::int64_t>(k % 7)})});
    return in;
  };
  op::sgd const op{0.5, 0.1};
  auto const x = make(a), y = make(b);
  std::vector<neap::detail::update_call> calls;
  for (auto const& in : x) calls.push_back({&op, {in, {in.data(), 1}, nullptr}});
  run_updates<op::sgd>(device, calls);
  for (auto const& in : y) run(host, op, kernel_arguments{in, {in.data(), 1}, nullptr});
  CHECK(first_difference(a, b, 8 * neap_test::tolerance(dtype::f32)) == -1);
}
