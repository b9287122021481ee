#include <neap/report/memory_svg.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/svg.hpp"

#include <doctest/doctest.h>

#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <cmath>
#include <set>

using namespace neap;
using namespace neap::testing;

namespace {

memory_curve steps(std::string label, std::vector<bytes_t> bytes, bytes_t resident = 0) {
  memory_curve c{std::move(label), std::move(bytes), {}, {}, resident, {}};
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

TEST_CASE("a limit is a line; one far above is named and leaves the curves their height") {
  auto const c = steps("x", {100, 400, 200, 300});
  auto const near = memory_svg("t", {c}, 500), far = memory_svg("t", {c}, 100000);
  CHECK(near.find("stroke=\"#c0392b\" stroke-width=\"1.6\"") != near.npos);
  CHECK(has_text(near, "limit"));
  CHECK(far.find("stroke=\"#c0392b\" stroke-width=\"1.6\"") == far.npos);
  CHECK(has_text(far, "limit, above the picture"));
  CHECK(corners(far) == corners(memory_svg("t", {c})));
  CHECK(memory_svg("t", {c}).find("limit") == near.npos);
}

TEST_CASE("the table of the peak: largest first, all bytes told, the sum is the peak") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    auto const g = opaque_graph(seed, 30);
    auto const order = given_order{}(g);
    auto const s = simulate(g, order, given_latencies{});
    auto const c = curve_of("as it came", g, order, s);
    auto const svg = memory_svg("t", {c});
    CHECK(is_xml(svg));
    CHECK(texts_outside(svg) == std::vector<std::string>{});
    auto const all = texts(svg);
    std::size_t i = 0;
    while (i < all.size() && !all[i].text.starts_with("At the peak, as it came")) ++i;
    REQUIRE(i < all.size());
    // rows of bytes, name, about; the last is the sum
    std::vector<std::string> rows;
    for (++i; i + 1 < all.size() && (rows.empty() || all[i - 2].text != "in all"); i += 3)
      rows.push_back(all[i].text + " " + all[i + 1].text);
    for (std::size_t k = 0; k + 2 < rows.size() && k < c.notes.peak.size(); ++k)
      CHECK(rows[k] == readable_bytes(static_cast<double>(c.notes.peak[k].bytes)) + " " +
                           detail::fitted(c.notes.peak[k].name, 150, 11));
    CHECK(rows.back() == readable_bytes(static_cast<double>(s.peak_bytes)) + " in all");
    CHECK(rows.size() <= 15);
    if (c.notes.peak.size() > 14)
      CHECK(rows[rows.size() - 2].find("and " + std::to_string(c.notes.peak.size() - 13) + " smaller ones") !=
            std::string::npos);
  }
}

TEST_CASE("every recomputed op and transfer is told where it happens; what is narrow shares a mark and is counted") {
  auto c = steps("planned", std::vector<bytes_t>(40, 100));
  for (std::uint32_t i = 10; i < 40; i += 3)
    c.notes.events.push_back({static_cast<memory_event::kind>(i % 2 + (i > 30)), "<t" + std::to_string(i) + ">", "op",
                              10 + i, i, c.start[i], c.end[i]});
  c.notes.peak.push_back({peak_part::kind::tensor, "x & y", "op", 100});
  c.notes.parts.assign(40, step_part::forward);
  for (std::size_t i = 20; i < 40; ++i) c.notes.parts[i] = step_part::backward;
  auto svg = memory_svg("t", {steps("as it came", {100}), c});
  CHECK(is_xml(svg));
  CHECK(texts_outside(svg) == std::vector<std::string>{});
  std::multiset<std::string> told;
  for (auto const& t : titles(svg)) told.insert(t);
  for (auto const& e : c.notes.events) CHECK(told.count(detail::event_text(e)) == 1);
  CHECK(told.size() == c.notes.events.size() + 2);
  CHECK(told.count("forward") == 1);
  CHECK(told.count("backward") == 1);
  CHECK(has_text(svg, "<t10>"));
  CHECK(has_text(svg, "x & y"));
  CHECK(!has_text(svg, "waiting"));
  c.notes.events.push_back({memory_event::kind::waited, "late", "f32[2], until it has left", 8, 39, 0.035, 0.0375});
  c.notes.events.push_back({memory_event::kind::waited, "later", "f32[2], until it is back", 8, 39, 0.0375, 0.039});
  svg = memory_svg("t", {steps("as it came", {100}), c});
  CHECK(is_xml(svg));
  CHECK(texts_outside(svg) == std::vector<std::string>{});
  CHECK(has_text(svg, "waiting"));
  CHECK(has_text(svg, "2 times, " + readable_seconds(0.004)));
  for (auto const& t : titles(svg)) told.erase(t);
  CHECK(told.empty());
  auto const shown = titles(svg);
  CHECK(std::count(shown.begin(), shown.end(), detail::event_text(c.notes.events.back())) == 1);

  auto many = steps("planned", std::vector<bytes_t>(100000, 100));
  for (std::uint32_t i = 0; i < 100000; i += 2)
    many.notes.events.push_back(
        {memory_event::kind::recomputed, "t" + std::to_string(i), "op", 1 + i % 7, i, many.start[i], many.end[i]});
  svg = memory_svg("t", {many});
  CHECK(svg.size() < 700000);
  CHECK(has_text(svg, "50000 ops, " + readable_bytes(199996)));
  std::size_t counted = 0;
  for (auto const& t : titles(svg)) {
    auto const more = t.rfind("; and ");
    counted += static_cast<std::size_t>(std::count(t.begin(), t.end(), ';')) +
               (more == t.npos ? 1 : std::stoul(t.substr(more + 6)));
  }
  CHECK(counted == 50000);
}

TEST_CASE("long names and long labels stay in the frame") {
  std::string const name(300, 'w');
  auto c = steps(name, {100, 200});
  c.notes.peak.push_back({peak_part::kind::tensor, name, name, 200});
  c.notes.peak_op = name;
  c.notes.events.push_back({memory_event::kind::stored, name, name, 5, 1, c.start[1], c.end[1]});
  CHECK(texts_outside(memory_svg(name, {c})) == std::vector<std::string>{});
  // Of the line that says when the peak is, the op's name is what gives way.
  c.label = "planned";
  c.notes.peak_position = 12345;
  auto const svg = memory_svg("t", {steps("as it came", {100}), c});
  auto const all = texts(svg);
  CHECK(texts_outside(svg) == std::vector<std::string>{});
  CHECK(std::count_if(all.begin(), all.end(), [](auto const& t) {
          return t.text.starts_with("At the peak, planned: while www") && t.text.ends_with("w.. runs (position 12345)");
        }) == 1);
}
