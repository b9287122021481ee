#include <neap/optimize/search_budget.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

using namespace neap;

TEST_CASE("what is left of a budget is what can be judged one by one until it is used up, parts and hunts included") {
  random_stream draw(3);
  for (int tries = 0; tries < 20000; ++tries) {
    search_options o;
    o.iterations = draw.below(400);
    o.time = time_budget(std::chrono::seconds(100000));
    detail::search_budget budget(o);
    auto const kind = draw.below(3);
    if (kind == 1) budget.begin_hunt(draw.below(200));
    if (kind == 2)
      budget.begin_short_hunt(draw.below(static_cast<std::uint32_t>(o.iterations) / 2 + 1), 0.1 + 0.9 * draw.uniform());
    double const part = draw.below(3) ? draw.uniform() : 0.9;
    std::size_t const judged = draw.below(400), most = draw.below(40);
    std::size_t one_by_one = 0;
    while (one_by_one < most && !budget.is_used_up(part, judged + one_by_one, 1)) ++one_by_one;
    CHECK(budget.left(part, judged, most) == one_by_one);
    if (double const used = budget.used(judged); std::abs(used - part) > 1e-6)
      CHECK((used > part) == budget.is_used_up(part, judged, 1));
  }
}
