// Options of a compiled function's graphs: swaps to a spill file, threads, times of steps; on paths of one graph and of
// several.
#include <neap/execute/compile.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/model/model.hpp>
#include <neap/mutate/swap.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::deep;
using neap::testing::in_stages;
using neap::testing::loss_of;
using neap::testing::new_deep;

namespace {

tensor straight(deep& d, tensor const& x) {
  auto const weights = parameters(d);
  tensor const loss = loss_of(d, x);
  auto const g = grad(loss, weights);
  for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - 0.5 * g[i]);
  ++d.large;
  return loss;
}
tensor batch(int i) { return tensor::randn({256, 32}, static_cast<std::uint64_t>(i)) * (i % 3 == 2 ? 0.001 : 1.0); }

/// Plans that swap, counted with their stores.
struct with_swaps {
  std::shared_ptr<std::size_t> stores = std::make_shared<std::size_t>(0);
  plan operator()(graph const& g, bytes_t) const {
    search_options few;
    few.iterations = 40;
    auto found = optimize(g, neap::swap{1e9}, few, memory_limit::of_original(0.7));
    for (auto o : found.placed.graph.ops()) *stores += found.placed.graph.as<op::store>(o) != nullptr;
    return found.placed;
  }
};

template <class F>
void check(F f, compile_options const& options, bool swaps) {
  deep mine = new_deep(), plain = new_deep();
  with_swaps const planner;
  auto step = compile(f, planner, options);
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    tensor const x = batch(i);
    CHECK(step(mine, x).template values<float>() == f(plain, x).template values<float>());
    CHECK(content_of(mine) == content_of(plain));
  }
  CHECK((*planner.stores > 0) == swaps);
}

}  // namespace

TEST_CASE("plans that swap run on paths of one graph and of several, on any number of threads") {
  for (int const threads : {1, 2, 3}) {
    CAPTURE(threads);
    compile_options options;
    options.threads = threads;
    check(&straight, options, true);
    check(&in_stages, options, true);
  }
}

TEST_CASE("without a spill file, a path runs eagerly, and says so") {
  compile_options options;
  options.run.spill_folder = "/no such folder";
  for (auto* const f : {&straight, &in_stages}) {
    deep mine = new_deep(), plain = new_deep();
    auto step = compile(f, with_swaps{}, options);
    for (int i = 0; i < 4; ++i) {
      tensor const x = batch(i);
      CHECK(step(mine, x).values<float>() == f(plain, x).values<float>());
      CHECK(content_of(mine) == content_of(plain));
      CAPTURE(step.why_missed());
      CHECK(step.why_missed().find("no plan runs it: ") == 0);
      CHECK(step.why_missed().find("compile:") == std::string::npos);
      CHECK(step.why_missed().find("/no such folder") != std::string::npos);
    }
  }
}

TEST_CASE("times of steps are those of all graphs of a call") {
  std::vector<seconds_t> seconds;
  std::size_t ops = 0;
  compile_options options;
  options.run.step_seconds = &seconds;
  auto const counted = [&](graph const& g, bytes_t) {
    auto p = plan_in_order(g);
    ops += p.steps.size();
    return p;
  };
  for (auto* const f : {&straight, &in_stages}) {
    deep m = new_deep();
    ops = 0;
    auto step = compile(f, counted, options);
    for (int i = 0; i < 2; ++i) (void)step(m, batch(i));
    CHECK(seconds.size() == ops);
    CHECK(std::ranges::count_if(seconds, [](double s) { return s > 0; }) > static_cast<std::ptrdiff_t>(ops / 2));
  }
}
