#include <neap/optimize/incumbent.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

using namespace neap;

namespace {

struct node {
  struct {
    simulation result;
  } state;
};
using node_ptr = std::shared_ptr<node>;
node_ptr made(bytes_t peak, seconds_t latency) {
  auto n = std::make_shared<node>();
  n->state.result.peak_bytes = peak, n->state.result.latency = latency;
  return n;
}

}  // namespace

TEST_CASE("of each headroom the quickest is kept") {
  search_policy::incumbent_numbers const numbers;
  random_stream draw(7);
  objective limits;
  limits.limits_memory = true, limits.memory = 1'000, limits.latency = 50;
  for (int tries = 0; tries < 200; ++tries) {
    detail::incumbent_alternatives<node_ptr> kept(numbers);
    std::vector<node_ptr> all;
    for (int k = 0; k < 20; ++k) {
      all.push_back(made(700 + draw.below(400), 30 + draw.below(30)));
      kept.add_with_headroom(all.back(), limits);
    }
    std::vector<node_ptr> expected;
    for (auto const part : numbers.headroom) {
      node_ptr best;
      for (auto const& n : all)
        if (n->state.result.peak_bytes <= limits.memory - ratio_of(part, limits.memory) &&
            n->state.result.latency <= 50 && (!best || n->state.result.latency < best->state.result.latency))
          best = n;
      if (best) expected.push_back(best);
    }
    CHECK(kept.all() == expected);
  }
  detail::incumbent_alternatives<node_ptr> none(numbers);
  none.add_with_headroom(made(1, 1), {});  // no limit of memory
  CHECK(none.all().empty());
}

TEST_CASE("the last surpassed ones are kept, the last first") {
  search_policy::incumbent_numbers numbers;
  numbers.max_surpassed = 3;
  detail::incumbent_alternatives<node_ptr> kept(numbers);
  std::vector<node_ptr> all;
  for (int k = 0; k < 5; ++k) all.push_back(made(k, k)), kept.add_surpassed(all.back());
  CHECK(kept.all() == std::vector<node_ptr>{all[4], all[3], all[2]});
}

TEST_CASE(
    "near the smallest peak: none beats another, within a hundredth of the smallest, no more than there is room for") {
  search_policy::incumbent_numbers const numbers;
  random_stream draw(9);
  for (int tries = 0; tries < 500; ++tries) {
    detail::incumbent_alternatives<node_ptr> kept(numbers);
    auto const room = 2 + draw.below(8);
    bytes_t smallest = INT64_MAX;
    for (int k = 0; k < 40; ++k) {
      auto const n = made(10'000 + draw.below(300), 1 + draw.below(100));
      smallest = std::min(smallest, n->state.result.peak_bytes);
      kept.add_near_smallest(n, room);
      auto const& near = kept.near_smallest_peak();
      REQUIRE_FALSE(near.empty());
      CHECK(near.size() <= std::min<std::size_t>(room, numbers.max_near));
      CHECK(near.front()->state.result.peak_bytes == smallest);
      CHECK(near.back()->state.result.peak_bytes <= kept.as_small_as(smallest));
      for (std::size_t i = 1; i < near.size(); ++i) {
        CHECK(near[i - 1]->state.result.peak_bytes < near[i]->state.result.peak_bytes);
        CHECK(near[i - 1]->state.result.latency > near[i]->state.result.latency);
      }
    }
  }
}
