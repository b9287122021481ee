#include <neap/optimize/search_budget.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

using namespace neap;

namespace {
search_options endless() {
  search_options o;
  o.time = time_budget(std::chrono::hours(1000));
  return o;
}
void spend(double seconds) { work_meter::add(static_cast<std::uint64_t>(1e9 * seconds)); }
}  // namespace

TEST_CASE("a part of an epoch is used up by so much work, parts of hunts included") {
  random_stream draw(3);
  auto const o = endless();
  for (int tries = 0; tries < 20000; ++tries) {
    detail::search_budget budget(o);
    double const epoch = 0.01 + draw.uniform();
    budget.begin_epoch(epoch);
    double const before = 0.5 * epoch * draw.uniform(), part = draw.below(3) ? draw.uniform() : 0.9;
    spend(before);
    auto const kind = draw.below(3);
    double from = 0, to = 1, begins = before;
    if (kind == 1) budget.begin_reserved_budget(), from = 0.35, begins = std::max(before, from * epoch);
    double const some = 0.1 + 0.9 * draw.uniform();
    if (kind == 2) budget.begin_sub_budget(some), from = before / epoch, to = from + some * (1 - from);
    double const spent = epoch * draw.uniform();
    spend(spent);
    double const left = (from + (to - from) * part) * epoch - begins - spent;
    CHECK(std::abs(budget.work_left(part) - left) < 1e-8);  // the meter counts nanoseconds
    if (std::abs(left) < 1e-6) continue;
    CHECK(budget.is_used_up(part) == (left <= 0));
    CHECK((budget.used() >= part) == (left <= 0));
    CHECK(budget.ran_out() == (left <= 0));
    budget.begin_epoch(epoch);
    CHECK_FALSE(budget.ran_out());
    CHECK_FALSE(budget.has_sub_budget());
    CHECK(budget.work_left(1) == doctest::Approx(epoch));
  }
}

TEST_CASE("a longer epoch is worth it where a share ran out, and not where a share of 0 did") {
  auto const o = endless();
  detail::search_budget budget(o);
  budget.begin_epoch(1);
  CHECK_FALSE(budget.is_used_up(0.5));
  CHECK_FALSE(budget.ran_out());
  CHECK(budget.is_used_up(0));
  CHECK_FALSE(budget.ran_out());
  spend(0.5);
  CHECK(budget.is_used_up(0.5));
  CHECK(budget.ran_out());
}

TEST_CASE("limits of the user end a search wherever it is") {
  auto o = endless();
  o.iterations = 10;
  detail::search_budget budget(o);
  CHECK_FALSE(budget.is_over(9, 1));
  CHECK(budget.is_over(10, 1));
  CHECK(budget.left(4, 20) == 6);
  CHECK(budget.left(4, 3) == 3);
  std::stop_source stop;
  o.stop = stop.get_token();
  detail::search_budget stoppable(o);
  CHECK_FALSE(stoppable.is_over(0, 1));
  stop.request_stop();
  CHECK(stoppable.is_over(0, 1));
  o.stop = {};
  o.time = time_budget(std::chrono::seconds(1));
  detail::search_budget timed(o);
  timed.keep_back(0.1);
  CHECK_FALSE(timed.is_over(0, 5));
  CHECK(timed.is_over(0, 20));  // an answer of so many ops takes two seconds
  CHECK(timed.seconds_left(5) < 0.5);
}
