#include <neap/optimize/open_list.hpp>

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
  double excess = 0, gained = 0;
  bool how = false;  // an outline
  std::shared_ptr<node> from;
};
using node_ptr = std::shared_ptr<node>;
node_ptr with_excess(double excess) {
  auto n = std::make_shared<node>();
  n->excess = excess;
  return n;
}
auto const by_excess = [](node const& n) { return n.excess; };

}  // namespace

TEST_CASE("room falls with the size of graphs, between its ends") {
  search_policy::open_list_numbers const numbers;
  std::size_t last = SIZE_MAX;
  for (std::size_t ops = 0; ops < 500'000; ops = ops * 5 / 4 + 1) {
    auto const room = detail::open_list_room(numbers, ops);
    CHECK(room <= last);
    CHECK(room >= numbers.least);
    CHECK(room <= numbers.most);
    if (room > numbers.least) CHECK(room * (ops + 1) <= numbers.max_ops);
    last = room;
  }
  CHECK(last == numbers.least);
}

TEST_CASE("an estimate is rounded once, with and without contraction") {
  double const latency = 1, excess = 1 + 0x1p-30;
  double const price = -(1 - 0x1p-30);  // times excess: 2^-60 - 1, which is rounded to -1
  CHECK(detail::estimated_cost(latency, price, excess) == 0x1p-60);
  CHECK(detail::estimated_cost(latency, 0, excess) == latency);
}

TEST_CASE("seeds of large graphs: the farthest goes, a few stay in any case") {
  search_policy::open_list_numbers numbers;
  numbers.max_seed_ops = 1000, numbers.few_seeds = 4;
  for (std::size_t const ops : {9, 99, 9999}) {
    std::vector<node_ptr> open;
    random_stream draw(ops);
    std::vector<double> all;
    for (int k = 0; k < 300; ++k) {
      all.push_back(draw.uniform());
      detail::add_seed(open, with_excess(all.back()), numbers, ops);
    }
    CHECK(open.size() == std::max<std::size_t>(numbers.few_seeds, numbers.max_seed_ops / (ops + 1)));
    std::sort(all.begin(), all.end());
    for (auto const& n : open) CHECK(n->excess <= all[open.size() - 1]);
  }
}

TEST_CASE("excess follows the target: of whole candidates exactly, of outlines by what they gain") {
  auto const whole = std::make_shared<node>(), outline = std::make_shared<node>(), fits = std::make_shared<node>();
  whole->state.result.bytes_at = {10, 30, 20};
  outline->how = fits->how = true;
  outline->from = fits->from = whole;
  outline->gained = 4, outline->state.result.peak_bytes = 28;
  fits->gained = 1000, fits->state.result.peak_bytes = 12;
  std::vector<node_ptr> const open{whole, outline, fits};
  detail::aim_open_list(open, 15);
  CHECK(whole->excess == 20);
  CHECK(outline->excess == 16);
  CHECK(fits->excess == 0);
  detail::aim_open_list(open, 11);
  CHECK(whole->excess == 28);
  CHECK(fits->excess == 1);  // its peak is above the target
}

TEST_CASE("the best leaves the list, those without hope do not stay, trimming keeps the best") {
  random_stream draw(4);
  for (int tries = 0; tries < 300; ++tries) {
    std::vector<node_ptr> open;
    std::vector<double> alive;
    auto const count = draw.below(30);
    for (std::uint32_t k = 0; k < count; ++k) {
      open.push_back(with_excess(draw.below(1000)));
      if (open.back()->excess >= 300) alive.push_back(open.back()->excess);
    }
    auto trimmed = open;
    if (auto const room = std::min<std::size_t>(5, open.size()); room > 0 && room < open.size()) {
      detail::trim_open_list(trimmed, room, by_excess);
      auto sorted = open;
      std::sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a->excess < b->excess; });
      CHECK(trimmed.size() == room);
      for (auto const& n : trimmed) CHECK(n->excess <= sorted[room - 1]->excess);
    }
    auto const n = detail::take_from_open_list(
        open, [](node_ptr const& x) { return x->excess < 300; }, by_excess);
    CHECK((n == nullptr) == alive.empty());
    if (n) CHECK(n->excess == *std::min_element(alive.begin(), alive.end()));
    CHECK(open.size() + (n ? 1 : 0) == alive.size());
  }
}
