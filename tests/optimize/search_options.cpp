#include <neap/optimize/search_options.hpp>

#include <neap/ir/standard_operators.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

using namespace neap;

namespace {

/// An answer that misses what its numbers say.
optimized answer(bytes_t limit, bytes_t needs, seconds_t latency_limit, seconds_t takes) {
  optimized a;
  a.memory_limit_bytes = limit, a.placed.arena_bytes = needs;
  a.latency_limit_seconds = latency_limit, a.best.result.latency = takes;
  a.lower_bound_bytes = 7;
  return a;
}

}  // namespace

TEST_CASE("times that differ are told apart, in one unit, and are what they are") {
  std::mt19937_64 r(1);
  for (int i = 0; i < 2000; ++i) {
    double const a = std::pow(10.0, static_cast<double>(r() % 30) - 20) * (1 + static_cast<double>(r() % 1000) / 999);
    double const b = a * (1 + std::pow(10.0, -static_cast<double>(r() % 14)));
    CAPTURE(a);
    CAPTURE(b);
    auto const [x, y] = detail::distinct_times(a, b);
    CHECK(x != y);
    auto const unit = x.substr(x.find(' '));
    CHECK(unit == y.substr(y.find(' ')));
    double const scale = unit == " us" ? 1e-6 : unit == " ms" ? 1e-3 : 1;
    CHECK(std::atof(x.c_str()) * scale == doctest::Approx(a).epsilon(0.01));
    CHECK(std::atof(y.c_str()) * scale == doctest::Approx(b).epsilon(0.01));
    CHECK(detail::distinct_times(a, a).first == detail::distinct_times(a, a).second);
  }
  CHECK(detail::distinct_times(1e-9, 3.75e-4) == std::pair<std::string, std::string>{"0.001 us", "375 us"});
}

TEST_CASE("why_not names each limit that is missed, and what forces the bound") {
  double const inf = std::numeric_limits<double>::infinity();
  CHECK(answer(100, 200, inf, 1).why_not() ==
        "no plan fits: the limit is 100 bytes, the best plan found needs 200, proved to be at least 7");
  CHECK(answer(300, 200, 0.25, 0.5).why_not() == "no plan fits: the limit is 250 ms, the best plan found takes 500 ms");
  auto both = answer(100, 200, 0.25, 0.2500001);
  both.forcing = {{op_id{0}, "matmul #0", 9}, {op_id{1}, "add #1", 8}};
  CHECK(
      both.why_not() ==
      "no plan fits: the limit is 100 bytes, the best plan found needs 200, proved to be at least 7; forced by matmul "
      "#0 (9 bytes), add #1 (8 bytes); and the latency limit is 250 ms, the best plan found takes 250.0001 ms");
  auto given = answer(100, 200, inf, 1);
  given.placed.resident_bytes = 200;
  CHECK(given.why_not().ends_with("at least 7; forced by what is always there: weights, inputs, states"));
  given.fits = true;
  CHECK(given.why_not() == "");
  auto addresses = answer(100, 200, inf, 1);
  addresses.placed.peak_bytes = 99;
  addresses.reasons = {"all_reduce grads.0 runs once: it has an effect"};
  CHECK(addresses.why_not() ==
        "no plan fits: the limit is 100 bytes, the best plan found needs 200 (the peak of 99 fits, addresses do not), "
        "proved to be at least 7; all_reduce grads.0 runs once: it has an effect");
}

TEST_CASE("options may be named where they are made") {
  search_options const few{.iterations = 40};  // compiles without a warning
  CHECK(few.memory_at_most.resolve(7) > 7);
  CHECK(!few.strategy);
}
