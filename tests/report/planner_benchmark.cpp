#include <neap/report/planner_benchmark.hpp>

#include <doctest/doctest.h>
#include <neap/model/model.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/train/training_step.hpp>

#include <string>

using namespace neap;

namespace {
struct slow_order {
  int* calls;
  template <class G>
  schedule operator()(G const& g) const {
    ++*calls;
    return given_order{}(g);
  }
};
}  // namespace

TEST_CASE("each part is measured for ours and the user's, and says what came out") {
  struct network {
    nn::linear a{8, 8}, b{8, 8}, c{8, 4};
    tensor operator()(tensor const& x) const { return c(gelu(b(gelu(a(x))))); }
  } m;
  auto const x = tensor::randn({32, 8}, 1);
  auto const step = training_step(m, std::pair{x, tensor::zeros({32, 4})}, mse{}, sgd{});
  int calls = 0;
  planner_benchmark bench{"a \"small\" one", step.program, {.seconds = 0.001, .rounds = 3, .candidates = 5}};
  bench.scheduler("mine, slow", slow_order{&calls}).moves("few", rematerialize{} | truncate(1));
  auto const& rows = bench.run();
  CHECK(calls >= 3);
  auto const peak = simulate(step.program, given_order{}(step.program), roofline::host(1)).peak_bytes;
  int found = 0, mine = 0;
  for (auto const& r : rows) {
    CAPTURE(r.part);
    CAPTURE(r.who);
    CHECK(r.least > 0);
    CHECK(r.least <= r.median);
    bool const known[] = {r.part == "schedule" && r.who == "given order", r.part == "facts",
                          r.part == "draw all" && r.who == "few", r.part == "search"};
    if (known[0]) CHECK(r.result == static_cast<double>(peak));
    if (known[1]) CHECK(r.result == static_cast<double>(step.program.op_count()));
    if (known[2]) CHECK(r.result <= 1);
    if (known[3]) CHECK(r.result <= static_cast<double>(peak));
    for (bool k : known) found += k;
    mine += r.who == "mine, slow";
  }
  CHECK(found == 5);
  CHECK(mine == 1);
  auto const csv = bench.csv();
  CHECK(csv.starts_with("graph,part,who,least_us,median_us,result,unit\n"));
  CHECK(csv.find("\n\"a \"\"small\"\" one\",schedule,\"mine, slow\",") != std::string::npos);
  CHECK(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) == rows.size() + 1);
}
