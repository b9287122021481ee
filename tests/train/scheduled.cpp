#include <neap/train/scheduled.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace neap;

TEST_CASE("schedules as their formulas say") {
  CHECK(scheduled(0.3).at(1) == 0.3);
  CHECK(scheduled(0.3).at(1'000'000) == 0.3);
  auto const c = scheduled::cosine(1, 0.2, 100);
  CHECK(c.at(50) == doctest::Approx(0.6));
  CHECK(c.at(25) == doctest::Approx(0.2 + 0.8 * 0.5 * (1 + std::cos(3.14159265358979 / 4))));
  CHECK(c.at(100) == 0.2);
  CHECK(c.at(1000) == 0.2);
  CHECK(scheduled::linear(1, 0, 10).at(4) == doctest::Approx(0.6));
  CHECK(scheduled::polynomial(1, 0, 10, 2).at(4) == doctest::Approx(0.36));
  auto const s = scheduled::staircase(1, 0.5, 3);
  double const expected[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.25};
  for (int i = 0; i < 7; ++i) CHECK(s.at(i + 1) == expected[i]);
  auto const w = scheduled(2).warm_up(4);
  CHECK(w.at(1) == 0.5);
  CHECK(w.at(3) == 1.5);
  CHECK(w.at(4) == 2);
  CHECK(w.at(5) == 2);
  auto const f = scheduled([](std::int64_t step) { return 1.0 / static_cast<double>(step); });
  CHECK(f.at(4) == 0.25);
  CHECK(f.warm_up(2).at(1) == 0.5);
}
TEST_CASE("steps of none or less do not divide by nothing") {
  CHECK(scheduled::cosine(1, 0.5, 0).at(1) == 0.5);
  CHECK(scheduled::staircase(1, 0.5, 0).at(7) == 1);
  CHECK(scheduled(1).warm_up(0).at(1) == 1);
}
TEST_CASE("schedules without a meaning are refused, with their place") {
  auto const refused = [](auto const& make) {
    try {
      make();
    } catch (error const& e) { return std::string(e.what()); }
    return std::string();
  };
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused([] { scheduled::cosine(1, 0, -5); }).find("-5 steps") != std::string::npos);
  CHECK(refused([&] { scheduled::linear(nan, 0, 5); }).find("nan") != std::string::npos);
  CHECK(refused([&] { scheduled::staircase(1, nan, 5); }).find("nan") != std::string::npos);
  CHECK(refused([] { scheduled(1).warm_up(-1); }).find("-1 steps") != std::string::npos);
  auto const longer = refused([] { scheduled::cosine(1, 0, 100).warm_up(500); });
  CHECK(longer.find("500 steps, and the schedule has 100") != std::string::npos);
  CHECK(longer.find("scheduled.cpp") != std::string::npos);
  CHECK(refused([] { scheduled::cosine(1, 0, 100).warm_up(100); }).empty());
  CHECK(refused([] { scheduled(1).warm_up(500); }).empty());
  CHECK(refused([] { scheduled::staircase(1, 0.5, 3).warm_up(500); }).empty());
}
