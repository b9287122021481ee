#include <neap/execute/measure.hpp>

#include <doctest/doctest.h>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>

using namespace neap;

TEST_CASE("each kind of op of a training step is measured once, and the table is a cost model") {
  struct network {
    nn::conv2d conv{3, 4, 3, {.padding = 1}};
    nn::batch_norm2d norm{4};
    nn::linear a{4, 4}, b{4, 3};
    nn::dropout drop{0.1};
    tensor operator()(tensor const& x) const { return b(drop(relu(a(mean(relu(norm(conv(x))), {2, 3}))))); }
  } m;
  std::pair const batch{tensor::randn({4, 3, 6, 6}, 1), tensor::from<std::int64_t>({0, 1, 2, 0}, {4})};
  auto const step = training_step(m, batch, cross_entropy{}, adamw{});
  host_backend backend(1);
  cost_table table;
  auto const n = measure(step.program, backend, table, {.rounds = 2, .seconds_an_op = 0.001});
  CHECK(n > 10);
  CHECK(table.size() == n);
  for (auto o : step.program.ops())
    if (!flow::is_view(step.program, o)) {
      REQUIRE_MESSAGE(table.find(cost_key(step.program, o)), step.program.facets(o).name);
      CHECK(*table.find(cost_key(step.program, o)) > 0);
    }
  CHECK(measure(step.program, backend, table) == 0);
  auto const again = cost_table::from_text(table.to_text());
  REQUIRE(again);
  CHECK(*again == table);

  auto const cost = measured_or{table, roofline::host(1)};
  search_options few;
  few.iterations = 10;
  auto const found = optimize(step, rematerialize{}, few, cost, memory_limit::of_original(0.9));
  double sum = 0;
  for (auto o : step.program.ops())
    if (auto const* t = table.find(cost_key(step.program, o)); t && !flow::is_view(step.program, o)) sum += *t;
  CHECK(found.original.latency == doctest::Approx(sum));
}
