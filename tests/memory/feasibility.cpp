#include <neap/memory/exact/feasibility.hpp>

#include <neap/memory/exact/feasibility_search.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

using namespace neap;
using detail::stop_condition;

TEST_CASE("stop conditions: nodes, time and flags, one within another") {
  stop_condition const never;
  CHECK(!never.passed());
  CHECK(!never(std::numeric_limits<std::int64_t>::max() - 1));
  auto const some = stop_condition::after_nodes(100);
  CHECK(!some(99));
  CHECK(some(100));
  CHECK(!some.passed());  // that of the nodes only is a search's own
  auto const over = stop_condition::after_seconds(0);
  CHECK(over.passed());
  CHECK(!stop_condition::after_seconds(std::numeric_limits<double>::infinity()).passed());
  CHECK(!stop_condition::after_seconds(1e300).passed());
  std::atomic<bool> raised{false};
  auto const flag = stop_condition::after_nodes(1000, nullptr, &raised);
  auto const inner = stop_condition::after_nodes(500, &flag);
  CHECK(!inner.passed());
  raised = true;
  CHECK(flag.passed());
  CHECK(inner.passed());
  int until = 0;
  while (!inner(until)) ++until;
  CHECK(until <= 64);  // the flag is read now and then
  CHECK(stop_condition::after_nodes(500, &over).passed());
}

TEST_CASE("the first that decides is the same in turn and side by side, and those behind it are stopped") {
  for (unsigned threads : {0u, 1u, 2u, 4u}) {
    std::optional<worker_team> team;
    if (threads > 0) team.emplace(threads);
    for (std::size_t decisive = 0; decisive <= 5; ++decisive) {
      std::vector<std::atomic<int>> calls(5);
      auto const first =
          detail::first_decided(team ? &*team : nullptr, 5, {}, [&](std::size_t k, stop_condition const& stop) {
            ++calls[k];
            // What lies behind the first would go on for ever.
            while (k > decisive && !stop.passed()) {}
            return k == decisive || (k > decisive && k % 2 == 0);
          });
      CHECK(first == decisive);
      for (std::size_t k = 0; k < 5; ++k) CHECK(calls[k] <= 1);
      for (std::size_t k = 0; k < 5 && k <= decisive; ++k) CHECK(calls[k] == 1);
    }
  }
}
