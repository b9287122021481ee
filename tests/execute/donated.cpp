// Training with a donated batch: the same numbers in less memory, and the caller's batch stays as it is.
#include <neap/execute/trainer.hpp>
#include <neap/import/plan_reader.hpp>
#include <neap/ir/donate.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

using namespace neap;

namespace {

struct network {
  nn::linear in{24, 24}, out{24, 5};
  tensor operator()(tensor const& x) const { return out(relu(in(gelu(x)))); }
};

std::pair<tensor, tensor> batch(std::uint64_t seed) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 64; ++i) labels.push_back((i * 7 + static_cast<std::int64_t>(seed)) % 5);
  return {tensor::randn({64, 24}, seed), tensor::from(labels, {64})};
}

}  // namespace

TEST_CASE(
    "a trainer copies a donated batch into its arena: the numbers are the same, the caller's batch is only read") {
  eager_context const context{{.threads = 1}};
  network first, second, third;
  initialise(first, 3), initialise(second, 3), initialise(third, 3);
  auto const plainly = training_step(first, batch(0), cross_entropy{}, sgd{.rate = 0.1});
  auto step = training_step(second, batch(0), cross_entropy{}, sgd{.rate = 0.1});
  step.program = donated(std::move(step.program), {"*"});
  search_options few;
  few.iterations = 60;
  auto const as_it_is = optimize(plainly, rematerialize{}, few, memory_limit::of_original(0.8));
  auto const found = optimize(step, rematerialize{}, few, memory_limit::of_original(0.8));
  CHECK(verify_plan(step.program, found.placed).ok());
  CHECK(found.placed.resident_bytes < as_it_is.placed.resident_bytes);
  CHECK(found.placed.arena_bytes <= as_it_is.placed.arena_bytes);
  auto other = training_step(third, batch(0), cross_entropy{}, sgd{.rate = 0.1});
  other.program = donated(std::move(other.program), {"*"});
  auto const file = io::parse_plan(plan_json(found.placed, {}), "donated");
  REQUIRE_MESSAGE(file.ok(), file.message());
  host_backend backend(1);
  trainer a(plainly, as_it_is.placed, backend), b(step, found.placed, backend), c(other, file->planned, backend);
  for (std::uint64_t i = 0; i < 4; ++i) {
    auto const given = batch(i);
    auto const before = given.first.values<float>();
    double const loss = a(given);
    CHECK(b(given) == loss);
    CHECK(c(given) == loss);
    CHECK(given.first.values<float>() == before);
  }
}
