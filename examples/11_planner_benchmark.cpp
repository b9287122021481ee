// Lesson 11: a planner of one's own is measured beside the library's, part by part, in ten lines.
#include <neap/neap.hpp>
#include <neap/report/planner_benchmark.hpp>

#include <cstdio>

struct network {
  std::vector<neap::nn::linear> layers{{64, 64}, {64, 64}, {64, 64}, {64, 8}};
  neap::tensor operator()(neap::tensor x) const {
    for (auto const& l : layers) x = neap::gelu(l(x));
    return x;
  }
};

// An allocator of one's own: every record in a place of its own.
struct side_by_side {
  neap::memory_plan operator()(neap::memory_problem const& p) const { return neap::naive{}(p); }
};

int main() {
  network model;
  auto const x = neap::tensor::randn({256, 64}, 1);
  auto const step = neap::training_step(model, std::pair{x, neap::tensor::zeros({256, 8})}, neap::mse{}, neap::sgd{});

  neap::planner_benchmark bench{"four layers", step.program, {.seconds = 0.02, .candidates = 20}};
  bench.allocator("side by side", side_by_side{});
  bench.moves("two recomputations", neap::rematerialize{} | neap::truncate(2));
  auto const& rows = bench.run();
  std::fputs(bench.table().c_str(), stdout);

  bool right = rows.size() > 10;
  for (auto const& r : rows) right = right && r.least > 0 && r.least <= r.median && r.result > 0;
  return right ? 0 : 1;
}
