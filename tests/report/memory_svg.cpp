#include <neap/report/memory_svg.hpp>

#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;

namespace {

memory_curve steps(std::string label, std::vector<bytes_t> bytes, bytes_t resident = 0) {
  memory_curve c{std::move(label), std::move(bytes), {}, {}, resident};
  for (std::size_t i = 0; i < c.bytes_at.size(); ++i) {
    c.start.push_back(static_cast<double>(i) * 1e-3);
    c.end.push_back(static_cast<double>(i + 1) * 1e-3);
  }
  return c;
}

/// Heights of the names beside the plot.
std::vector<double> name_heights(std::string const& svg) {
  std::vector<double> at;
  std::string const mark = "<text x=\"903.0\" y=\"";
  for (auto i = svg.find(mark); i != svg.npos; i = svg.find(mark, i + 1))
    at.push_back(std::stod(svg.substr(i + mark.size())));
  return at;
}

/// Corner points of the first path.
std::vector<std::pair<double, double>> corners(std::string const& svg) {
  auto const begin = svg.find("<path d=\"") + 9;
  auto const d = svg.substr(begin, svg.find('"', begin) - begin);
  std::vector<std::pair<double, double>> points;
  double x = 0, y = 0;
  for (std::size_t i = 0; i < d.size();) {
    char const c = d[i++];
    std::size_t used = 0;
    if (c == 'M') {
      x = std::stod(d.substr(i), &used), i += used;
      y = std::stod(d.substr(i), &used), i += used;
    } else if (c == 'H') {
      x = std::stod(d.substr(i), &used), i += used;
    } else if (c == 'V') {
      y = std::stod(d.substr(i), &used), i += used;
    } else {
      CHECK(c == 'Z');
      continue;
    }
    points.emplace_back(x, y);
  }
  return points;
}

}  // namespace

TEST_CASE("readable numbers") {
  CHECK(readable_bytes(0) == "0 B");
  CHECK(readable_bytes(1023) == "1023 B");
  CHECK(readable_bytes(1536) == "1.50 KiB");
  CHECK(readable_bytes(1024.0 * 1024 * 100) == "100.0 MiB");
  CHECK(readable_bytes(9e18).ends_with(" PiB"));
  CHECK(readable_seconds(2.5e-6) == "2.5 us");
  CHECK(readable_seconds(0.0123) == "12.3 ms");
  CHECK(readable_seconds(90) == "90 s");
}

TEST_CASE("the picture says what is to be seen") {
  auto const svg = memory_svg("a <net> & more",
                              {steps("without a plan", {10 << 20, 200 << 20, 20 << 20}, 5 << 20),
                               steps("with the plan", {10 << 20, 90 << 20, 80 << 20, 20 << 20}, 5 << 20)},
                              100 << 20);
  for (auto const* text :
       {"a &lt;net&gt; &amp; more", "With the plan: 90.0 MiB at the peak instead of 200.0 MiB (45 %)",
        "4 ms instead of 3 ms (133 %)", "peak, without a plan", "peak, with the plan", ">limit<", ">100.0 MiB<",
        "always there", ">200 MiB<", ">4 ms<"})
    CHECK_MESSAGE(svg.find(text) != svg.npos, text);
}

TEST_CASE("the curve: a staircase to scale, within the frame, its highest step at the peak") {
  auto const points = corners(memory_svg("t", {steps("x", {100, 400, 200, 300})}));
  REQUIRE(points.size() > 8);
  double least = 1e9;
  for (auto [x, y] : points) {
    CHECK(x >= 92);
    CHECK(x <= 880);
    CHECK(y >= 104);
    CHECK(y <= 470);
    least = std::min(least, y);
  }
  auto const height = [&](double x) {  // of the curve at a pixel
    double y = 470;
    for (auto const& p : points)
      if (p.first <= x) y = p.second;
    return 470 - y;
  };
  double const quarter = (880 - 92) / 4.0, full = 470 - least;
  CHECK(height(92 + 0.5 * quarter) == doctest::Approx(full / 4).epsilon(0.01));
  CHECK(height(92 + 1.5 * quarter) == doctest::Approx(full).epsilon(0.01));
  CHECK(height(92 + 2.5 * quarter) == doctest::Approx(full / 2).epsilon(0.01));
  CHECK(height(92 + 3.5 * quarter) == doctest::Approx(full * 3 / 4).epsilon(0.01));
}

TEST_CASE("transfers that run late or early do not fold the curve") {
  auto c = steps("x", {100, 200, 300, 400, 500});
  c.start[1] = 4.5e-3, c.end[1] = 6e-3;  // a load whose stream was busy
  auto const points = corners(memory_svg("t", {c}));
  for (std::size_t i = 2; i + 1 < points.size(); ++i) CHECK(points[i].first >= points[i - 1].first);
}

TEST_CASE("a peak narrower than a pixel is drawn") {
  std::vector<bytes_t> bytes(100000, 100);
  bytes[77777] = 1000;
  double least = 1e9;
  auto const svg = memory_svg("t", {steps("x", bytes)});
  for (auto const& p : corners(svg)) least = std::min(least, p.second);
  CHECK(least == doctest::Approx(470 - 366 / 1.03).epsilon(0.001));
  CHECK(svg.size() < 20000);
}

TEST_CASE("names beside the plot do not lie on one another") {
  for (bytes_t limit : {1, 40, 99, 100, 101, 200}) {
    auto const at = name_heights(memory_svg("t", {steps("a", {10, 100}, 98), steps("b", {10, 99}, 98)}, limit));
    std::vector<double> numbers;
    for (std::size_t i = 0; i < at.size(); i += 2) numbers.push_back(at[i]);
    REQUIRE(numbers.size() == 4);
    for (std::size_t i = 1; i < numbers.size(); ++i) CHECK(numbers[i] - numbers[i - 1] >= 31.9);
    CHECK(numbers.front() > 80);
    CHECK(numbers.back() < 500);
  }
}

TEST_CASE("nothing, zeros, one position, the largest sizes") {
  CHECK(memory_svg("", {}).ends_with("</svg>\n"));
  CHECK(memory_svg("t", {memory_curve{}}).ends_with("</svg>\n"));
  CHECK(memory_svg("t", {steps("x", {0})}).ends_with("</svg>\n"));
  auto still = steps("x", {5, 6});
  still.start = still.end = {0, 0};
  CHECK(memory_svg("t", {still}).ends_with("</svg>\n"));
  auto const large = memory_svg("t", {steps("x", {INT64_MAX, 1})}, INT64_MAX);
  CHECK(large.find("nan") == large.npos);
  CHECK(large.find("inf") == large.npos);
  CHECK(std::count(large.begin(), large.end(), '\n') < 60);
}
