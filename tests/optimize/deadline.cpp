// A search ends at its deadline. What is measured is processor time: that of this process from the deadline to the return,
// so that other programs on the machine do not count.
#include <neap/optimize/optimize.hpp>

#include "../support/deep_graph.hpp"
#include "../support/quality_row.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

using namespace neap;

namespace {

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Processor time from so many seconds after now to the end of `run`; negative if that ends before.
template <class Run>
double overrun(double seconds, Run&& run) {
  using clock = std::chrono::steady_clock;
  auto const deadline =
      clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  double at_deadline = 0;
  std::thread watch([&] {
    std::this_thread::sleep_until(deadline);
    at_deadline = processor_seconds();
  });
  run();
  auto const end = processor_seconds();
  watch.join();
  return end - at_deadline;
}

}  // namespace

TEST_CASE("overrun of a deadline: at most 5 % of it or 50 ms of processor time") {
  auto graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  std::erase_if(graphs, [](auto const& g) {
    return g.name != "gpt-d256-l4-b8-t128" && g.name != "mixed120" && g.name != "nested4" &&
           g.name != "transformer24" && g.name != "random_model2";
  });
  REQUIRE(graphs.size() == 5);
  graphs.push_back({"chain1500", testing::deep_graph({.layers = 1500}).program, {}, 0});
  graphs.back().order = given_order{}(graphs.back().program);
  struct limits {
    double memory, latency;
  };
  for (auto const& g : graphs)
    for (auto const& [memory, latency] : {limits{0.5, 0}, limits{0.05, 0}, limits{0, 1.1}})
      for (double const seconds : {0.05, 0.4}) {
        CAPTURE(g.name);
        CAPTURE(memory);
        CAPTURE(latency);
        CAPTURE(seconds);
        search_options options;
        auto cost = given_or{roofline::h100_like()};
        cost.other.to_host_bytes_per_second = cost.other.to_device_bytes_per_second = std::max(g.link, 1.0);
        if (memory > 0) options.memory_at_most = memory_limit::of_original(memory);
        if (latency > 0) options.latency_at_most = latency_limit::of_original(latency);
        options.starts = solver_seeds(all_solvers);
        options.time = time_budget(std::chrono::duration<double>(seconds));
        auto const moves = default_moves_with_fission(g.link);
        auto const over = overrun(seconds, [&] { (void)optimize(g.program, moves, cost, g.order, options); });
        CHECK(over <= (testing::sanitized ? 20 : 1) * std::max(0.05 * seconds, 0.05));
      }
}

TEST_CASE("the overrun of what does not look at the deadline is seen") {
  auto const spin = [](double seconds) {
    auto const begin = processor_seconds();
    while (processor_seconds() - begin < seconds) {}
  };
  CHECK(overrun(0.02, [&] { spin(0.2); }) > 0.05);
  CHECK(overrun(0.5, [&] { spin(0.01); }) <= 0);
}
