#include <neap/execute/measured.hpp>

#include <doctest/doctest.h>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/files.hpp"
#include "../support/message.hpp"

using namespace neap;
using namespace neap::testing;

namespace {

struct network {
  nn::linear a{6, 8}, b{8, 8}, c{8, 3};
  tensor operator()(tensor const& x) const { return c(gelu(b(gelu(a(x))))); }
};
auto batch_of(std::int64_t rows) { return std::pair{tensor::randn({rows, 6}, 1), tensor::zeros({rows}, dtype::i64)}; }
measured<host_backend>::options quick(std::string folder = {}) {
  return {.folder = std::move(folder), .alone = {.rounds = 2, .seconds_an_op = 0.001}, .rounds = 3};
}

}  // namespace

TEST_CASE("a step is measured where it stands, once, and the file of this machine keeps it") {
  scratch const at;
  network m;
  auto const batch = batch_of(5);
  auto const step = training_step(m, batch, cross_entropy{}, adamw{});
  host_backend backend(1);
  measured cost(backend, roofline::host(1), quick(at / "."));
  CHECK(cost.table().size() == 0);
  CHECK(cost.whole(step, batch));
  for (auto o : step.program.ops())
    if (!flow::is_view(step.program, o)) {
      REQUIRE_MESSAGE(cost.table().find(cost_key(step.program, o)), step.program.facets(o).name);
      CHECK(cost(step.program, o) == *cost.table().find(cost_key(step.program, o)));
      CHECK(cost(step.program, o) > 0);
    } else {
      CHECK(cost(step.program, o) == 0);
    }
  measured const made(backend, roofline::host(1),
                      quick(at / "new/costs"));  // the folders are there before an hour of work
  CHECK(made.save().ok());
  CHECK(message_of([&] {
          measured const none(backend, roofline::host(1), quick(made.file()));
        }).find("cannot be written: Not a directory") != std::string::npos);
  CHECK(cost.measured_alone() == 0);
  CHECK(!cost.whole(step, batch));       // all is known
  CHECK(cost.whole(step, batch, true));  // measured again
  REQUIRE(cost.save().ok());

  measured same(backend, roofline::host(1), quick(at / "."));
  CHECK(same.file() == cost.file());
  CHECK(same.table() == cost.table());
  CHECK(!same.whole(step, batch));
  // What a step of another size asks for is measured by itself, and copies of the model know it then.
  auto const copy = same;
  auto const other_batch = batch_of(7);
  auto const other = training_step(m, other_batch, cross_entropy{}, adamw{});
  auto const before = same.table().size();
  for (auto o : other.program.ops()) CHECK(same(other.program, o) >= 0);
  CHECK(same.measured_alone() > 0);
  CHECK(same.table().size() == before + same.measured_alone());
  CHECK(copy.table() == same.table());

  // Times of other numbers of threads are other times.
  host_backend two(2);
  measured apart(two, roofline::host(2), quick(at / "."));
  CHECK(apart.file() != cost.file());
  CHECK(apart.table().size() == 0);
  write_bytes(cost.file(), "neap-costs 1\nnonsense\n");
  auto const why = message_of([&] { measured damaged(backend, roofline::host(1), quick(at / ".")); });
  CHECK(why.find(cost.file()) != why.npos);
  CHECK(why.find("line 2") != why.npos);
}

TEST_CASE("measured costs lead a search, and the verifier comes to the same times") {
  network m;
  auto const batch = batch_of(64);
  auto const step = training_step(m, batch, cross_entropy{}, adamw{});
  host_backend backend(1);
  measured cost(backend, roofline::host(1), quick());
  CHECK(cost.file().empty());
  CHECK(cost.save().ok());  // nothing to do
  cost.whole(step, batch);
  search_options few;
  few.iterations = 60;
  auto const found = optimize(step, rematerialize{}, few, cost, memory_limit::of_original(0.9));
  double sum = 0;
  for (auto o : step.program.ops()) sum += cost(step.program, o);
  CHECK(found.original.latency == doctest::Approx(sum));
  CHECK(verify_plan(step.program, found.placed, cost).ok());
  // As a table with something to fall back on, which is what files of plans name.
  CHECK(verify_plan(step.program, found.placed, measured_or{cost.table(), roofline::host(1)}).ok());
}

TEST_CASE("steps are timed where a run is asked to") {
  network m;
  auto const batch = batch_of(5);
  auto const step = training_step(m, batch, cross_entropy{}, sgd{});
  host_backend backend(1);
  auto const order = given_order{}(step.program);
  auto const p = make_plan({step.program, order, simulate(step.program, order, no_cost{})}, step.program);
  std::vector<seconds_t> seconds;
  trainer run(step, p, backend, {.step_seconds = &seconds});
  run(batch);
  REQUIRE(seconds.size() == order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) CHECK((seconds[i] > 0) == !flow::is_view(step.program, order[i]));
}
