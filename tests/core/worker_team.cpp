#include <neap/core/worker_team.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace neap;

TEST_CASE("each item is worked on once, by a worker of the team, list after list") {
  for (unsigned threads : {0u, 1u, 2u, 4u, 7u}) {
    worker_team team(threads);
    CHECK(team.size() == (threads == 0 ? 1 : threads));
    for (std::size_t list = 0; list < 300; ++list) {
      std::size_t const count = list % 17;
      std::vector<int> times(count);
      std::vector<unsigned> by(count);
      team.run(count, [&](unsigned worker, std::size_t item) { ++times[item], by[item] = worker; });
      for (auto n : times) CHECK(n == 1);
      for (auto w : by) CHECK(w < team.size());
    }
  }
}

TEST_CASE("of several exceptions the least item's is thrown, and all other items are done") {
  worker_team team(3);
  for (int list = 0; list < 100; ++list) {
    std::vector<int> times(20);
    std::string what;
    try {
      team.run(times.size(), [&](unsigned, std::size_t item) {
        ++times[item];
        if (item % 7 == 5) throw std::runtime_error(std::to_string(item));
      });
    } catch (std::runtime_error const& e) { what = e.what(); }
    CHECK(what == "5");
    for (auto n : times) CHECK(n == 1);
  }
  std::vector<int> sum(3);
  auto const work = [&sum](unsigned worker, std::size_t) { ++sum[worker]; };  // a constant function is one, too
  team.run(50, work);
  CHECK(sum[0] + sum[1] + sum[2] == 50);
}
