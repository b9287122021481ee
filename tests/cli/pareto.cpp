#include "../../examples/cli/pareto.hpp"

#include "../support/svg.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// Points on 1 / x, the original at the quick end.
pareto_report curve(int points) {
  pareto_report r;
  for (int i = 0; i < points; ++i) {
    double const latency = 0.010 * (1 + static_cast<double>(points - 1 - i) / points);
    r.front.push_back({static_cast<bytes_t>(1e7 / latency), latency});
  }
  r.original = {1'200'000'000, 0.010};
  r.chosen = r.front[static_cast<std::size_t>(points) / 2];
  return r;
}

std::vector<std::vector<double>> rows(std::string const& csv) {
  std::vector<std::vector<double>> all;
  std::istringstream lines(csv);
  std::string line, cell;
  std::getline(lines, line);
  CHECK(line == "peak_bytes,latency_us,memory_ratio,latency_ratio,meets_limits,plan");
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    all.emplace_back();
    while (std::getline(cells, cell, ',')) all.back().push_back(std::stod(cell));
    CHECK(all.back().size() == 6);
  }
  return all;
}

std::size_t occurrences(std::string const& text, std::string const& what) {
  std::size_t n = 0;
  for (auto i = text.find(what); i != text.npos; i = text.find(what, i + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the table has a row a point, what meets the limits, and one plan") {
  auto r = curve(40);
  r.memory_limit = r.front[25].peak_bytes;
  r.latency_limit = r.front[10].latency;
  auto const table = rows(pareto_csv(r));
  REQUIRE(table.size() == 40);
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(table[i][0] == static_cast<double>(r.front[i].peak_bytes));
    CHECK(table[i][1] == doctest::Approx(r.front[i].latency * 1e6).epsilon(1e-15));
    CHECK(table[i][2] == doctest::Approx(table[i][0] / 1.2e9));
    CHECK(table[i][3] == doctest::Approx(r.front[i].latency / 0.010));
    CHECK(table[i][4] == (i >= 10 && i <= 25));
    CHECK(table[i][5] == (i == 20));
  }
  // A plan behind the front has its row, in its place.
  r.chosen = {r.front[30].peak_bytes + 1, r.front[30].latency};
  auto const more = rows(pareto_csv(r));
  REQUIRE(more.size() == 41);
  CHECK(more[31][5] == 1);
  CHECK(more[31][0] == more[30][0] + 1);
  CHECK(std::is_sorted(more.begin(), more.end(), [](auto const& a, auto const& b) { return a[0] < b[0]; }));
  // Nothing asked: everything meets it.
  r.memory_limit = -1, r.latency_limit = -1;
  for (auto const& row : rows(pareto_csv(r))) CHECK(row[4] == 1);
}

TEST_CASE("the picture marks the plan, the original, limits and bound, and keeps its texts inside") {
  auto r = curve(60);
  auto const plain = pareto_svg("What memory costs", r);
  CHECK(is_xml(plain));
  CHECK(has_text(plain, "What memory costs"));
  CHECK(!has_text(plain, "memory limit"));
  CHECK(!has_text(plain, "proved bound"));
  CHECK(plain.find("latency limit") == plain.npos);
  CHECK(plain.find("60 points") != plain.npos);

  r.memory_limit = 700'000'000, r.latency_limit = 0.0145, r.lower_bound_bytes = 300'000'000;
  auto const svg = pareto_svg("<graph> & co", r);
  CHECK(is_xml(svg));
  CHECK(has_text(svg, "<graph> & co"));
  CHECK(has_text(svg, "memory limit"));
  CHECK(has_text(svg, "latency limit, 14.5 ms"));
  CHECK(has_text(svg, "proved bound"));
  CHECK(has_text(svg, "as it came, 10 ms"));
  CHECK(has_text(svg, "the plan, " + readable_seconds(r.chosen.latency)));
  CHECK(texts_outside(svg).empty());
  auto const told = titles(svg);
  CHECK(std::find(told.begin(), told.end(),
                  "the plan: " + readable_bytes(static_cast<double>(r.chosen.peak_bytes)) + ", " +
                      readable_seconds(r.chosen.latency)) != told.end());
  r.latency_limit = 10, r.memory_limit = 1'000'000'000'000;  // far away: the picture stays with the points
  auto const far = pareto_svg("far", r);
  CHECK(has_text(far, "latency limit, 10 s, outside the picture"));
  CHECK(has_text(far, "limit, above the picture"));
  CHECK(texts_outside(far).empty());
}

TEST_CASE("the staircase goes through every point, in the plot, and stays small however many there are") {
  auto const r = curve(30);
  auto const svg = pareto_svg("t", r);
  detail::pareto_plot const plot(r);
  for (auto const& p : r.front) {
    auto const corner = detail::print("H%.1fV%.1f", plot.x(p.latency), plot.y(static_cast<double>(p.peak_bytes)));
    CHECK_MESSAGE(occurrences(svg, corner) == 2, corner);  // line and area
    CHECK(plot.x(p.latency) >= plot.left);
    CHECK(plot.x(p.latency) <= plot.right);
    CHECK(plot.y(static_cast<double>(p.peak_bytes)) >= plot.top);
    CHECK(plot.y(static_cast<double>(p.peak_bytes)) <= plot.bottom);
  }
  CHECK(pareto_svg("many", curve(100'000)).size() < 200'000);
}

TEST_CASE("pictures of next to nothing") {
  pareto_report one;
  one.front = {{0, 0}};
  CHECK(is_xml(pareto_svg("nothing", one)));
  one.front = {{100, 1e-3}}, one.original = one.chosen = {100, 1e-3};
  one.memory_limit = 1'000'000'000'000;
  auto const svg = pareto_svg("one", one);
  CHECK(is_xml(svg));
  CHECK(svg.find("nan") == svg.npos);
  CHECK(svg.find("inf") == svg.npos);
  one.front = {{50, 1e-3}, {100, 0}};  // an axis that begins just below 0
  for (auto const& t : texts(pareto_svg("from 0", one))) CHECK(!t.text.starts_with("-0"));
  one.front = {{100, 1e-3}};
  CHECK(pareto_csv(one) == "peak_bytes,latency_us,memory_ratio,latency_ratio,meets_limits,plan\n100,1000,1,1,1,1\n");
}
