#include <neap/optimize/search_record.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using namespace neap;

namespace {

/// A record with what it is of; progress is collected.
struct record_of_search {
  search_options options;
  search_outcome out;
  std::vector<search_progress> reported;
  detail::search_budget budget{options};
  detail::search_record record{options, budget, out};

  explicit record_of_search(double every = 0) {
    options.time = time_budget(std::chrono::hours(1000));
    options.progress = [this](search_progress const& p) { reported.push_back(p); };
    options.progress_every = every;
    out.lower_bound_bytes = 7;
  }
};

}  // namespace

TEST_CASE("counted candidates are in number, trail and front; what is noted beside them in the front alone") {
  random_stream draw(11);
  record_of_search a, b, c;
  std::vector<plan_cost> all;
  for (int i = 0; i < 100; ++i) {
    plan_cost const p{100 + draw.below(40), 1 + static_cast<double>(draw.uniform())};
    all.push_back(p);
    a.record.count(p), b.record.count(p);
    c.record.count(i == 60 ? plan_cost{1000, 1000} : p);
  }
  b.record.note({1, 0.5});
  a.record.end(), b.record.end(), c.record.end();
  CHECK(a.out.candidates == 100);
  CHECK(a.out.trail.size() == 7);  // after 1, 2, 4... 64
  CHECK(a.out.trail == b.out.trail);
  CHECK(b.out.candidates == 100);
  CHECK(b.out.front == std::vector{plan_cost{1, 0.5}});
  // A search that differs at its 61st candidate has the trail of the other one up to the 32nd.
  REQUIRE(c.out.trail.size() == 7);
  for (std::size_t i = 0; i < 7; ++i) CHECK((a.out.trail[i] == c.out.trail[i]) == (i < 6));
  for (auto const& f : a.out.front)
    for (auto const& p : all) CHECK_FALSE((p.peak_bytes <= f.peak_bytes && p.latency < f.latency * (1 - 1e-9)));
}

TEST_CASE("the history has each better candidate, and a worse one is none") {
  record_of_search r;
  objective limits;
  limits.memory = 100, limits.limits_memory = true;
  r.record.count({120, 1});
  r.record.best_is({120, 1}, limits);
  r.record.count({90, 3});
  r.record.best_is({90, 3}, limits);
  r.record.best_is({110, 1}, limits);  // does not fit: a sub-search began with less
  r.record.best_is({95, 2}, limits);
  REQUIRE(r.out.history.size() == 3);
  CHECK(r.reported.size() == 3);
  CHECK_FALSE(r.out.history[0].fits);
  CHECK(r.out.history[1].fits);
  CHECK(r.out.history[2].peak_bytes == 95);
  CHECK(r.out.history[2].lower_bound_bytes == 7);
  CHECK(r.out.history[2].candidates == 2);
}

TEST_CASE("progress is reported between improvements where a time for it is set") {
  for (double const every : {0.0, 1e-9}) {
    record_of_search r(every);
    objective limits;
    r.record.count({5, 5});
    CHECK(r.reported.empty());  // nothing is the best so far
    r.record.best_is({5, 5}, limits);
    for (int i = 0; i < 10; ++i) r.record.count({9, 9});
    CHECK((r.reported.size() > 1) == (every > 0));
    CHECK(r.reported.back().peak_bytes == 5);
  }
}
