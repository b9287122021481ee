#include <neap/report/offsets_svg.hpp>

#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <neap/memory/planner.hpp>

#include <cmath>
#include <random>
#include <vector>

using namespace neap;

namespace {

struct box {
  double x, y, width, height;
};

/// Rectangles of records, which are those that carry a title.
std::vector<box> boxes(std::string const& svg) {
  std::vector<box> found;
  std::string const mark = "<rect x=\"";
  for (auto i = svg.find(mark); i != svg.npos; i = svg.find(mark, i + 1)) {
    auto const end = svg.find('>', i);
    if (svg.compare(end + 1, 7, "<title>") != 0) continue;
    auto const number = [&](std::string const& name) {
      return std::stod(svg.substr(svg.find(name + "=\"", i) + name.size() + 2));
    };
    found.push_back({number(" x"), number(" y"), number("width"), number("height")});
  }
  return found;
}

memory_plan at(std::vector<std::int64_t> offsets, std::int64_t arena, std::int64_t bound) {
  memory_plan plan;
  plan.offsets = std::move(offsets);
  plan.arena_bytes = arena, plan.lower_bound_bytes = bound;
  return plan;
}

}  // namespace

TEST_CASE("every record to scale: lives across, bytes up, gaps left open, windows in part") {
  std::vector<usage_record> const records{{.lower = 10, .upper = 20, .size = 400},
                                          {.lower = 15, .upper = 50, .size = 600, .gaps = {{20, 30, 0, 0}}},
                                          {.lower = 20, .upper = 30, .size = 100, .offset = 500},
                                          {.lower = 30, .upper = 50, .size = 400, .gaps = {{40, 50, 100, 300}}}};
  auto const svg = offsets_svg({.title = "t"}, records, at({0, 400, 500, 0}, 1000, 1000));
  auto const b = boxes(svg);
  REQUIRE(b.size() == 6);
  double const across = (872 - 92) / 40.0, up = (566 - 128) / (1000 * 1.03);
  auto const drawn = [&](double lo, double hi, double from, double to) {
    for (auto const& r : b)
      if (std::abs(r.x - (92 + across * (lo - 10))) < 0.02 && std::abs(r.width - across * (hi - lo)) < 0.02 &&
          std::abs(r.y - (566 - up * to)) < 0.02 && std::abs(r.height - up * (to - from)) < 0.02)
        return true;
    return false;
  };
  CHECK(drawn(10, 20, 0, 400));
  CHECK(drawn(15, 20, 400, 1000));
  CHECK(drawn(30, 50, 400, 1000));
  CHECK(drawn(20, 30, 500, 600));
  CHECK(drawn(30, 40, 0, 400));
  CHECK(drawn(40, 50, 100, 300));
  for (auto const* text : {"gap in a life", ">fixed<", "below 1 KiB", "free below something in use", "4 records",
                           "offset in the arena", "time, in moments", ">1000 B<", ">50<"})
    CHECK_MESSAGE(svg.find(text) != svg.npos, text);
}

TEST_CASE("what the picture says of the plan") {
  std::vector<usage_record> const records{{.upper = 2, .size = 3 << 20}, {.lower = 1, .upper = 3, .size = 1 << 10}};
  auto const lost = offsets_svg({.title = "a <b> & c", .names = {"one&", "two"}, .resident_bytes = 7 << 20}, records,
                                at({0, 4 << 20}, (4 << 20) + 1024, 3 << 20));
  for (auto const* text : {"a &lt;b&gt; &amp; c", "one&amp;", "no arena can be below 3.00 MiB",
                           "1.00 MiB (33 %) are lost to fragmentation", "Beneath lie 7.00 MiB of weights and inputs",
                           "1 KiB to 8 KiB", "512 KiB to 4 MiB", "proved: no arena is smaller", "most in use at once"})
    CHECK_MESSAGE(lost.find(text) != lost.npos, text);
  auto tight = at({0, 3 << 20}, (3 << 20) + 1024, (3 << 20) + 1024);
  tight.status = plan_status::optimal;
  auto const full = offsets_svg({.title = "t"}, records, tight);
  CHECK(full.find("proved the least possible; it equals the largest load") != full.npos);
  CHECK(full.find("gap in a life") == full.npos);
  CHECK(full.find(">fixed<") == full.npos);
  memory_plan none;
  none.status = plan_status::infeasible;
  none.why = {"its size is negative", 3};
  CHECK(offsets_svg({.title = "t"}, records, none).find("No plan: record 3: its size is negative") != full.npos);
}

TEST_CASE("size classes keep their colours from one picture to another") {
  auto const picture = [](std::int64_t size) {
    std::vector<usage_record> const r{{.upper = 1, .size = size}};
    return offsets_svg({.title = "t"}, r, at({0}, size, size));
  };
  auto const color = [&](std::int64_t size) {
    auto const svg = picture(size);
    return svg.substr(svg.find("<g fill=\"") + 9, 7);
  };
  CHECK(color(1) == color(1023));
  CHECK(color(1023) != color(1024));
  CHECK(color(1024) == color(8191));
  CHECK(color(8191) != color(8192));
  CHECK(color(std::int64_t{1} << 25) == color(std::int64_t{1} << 50));
}

TEST_CASE("random plans: within the frame, numbers that are numbers; nothing, one moment, negative times") {
  std::mt19937_64 rng(9);
  for (int round = 0; round < 200; ++round) {
    std::vector<usage_record> records(rng() % 12);
    for (auto& r : records) {
      r.lower = static_cast<std::int64_t>(rng() % 1000) - 500;
      r.upper = r.lower + static_cast<std::int64_t>(rng() % 300);
      r.size = static_cast<std::int64_t>(rng() % (std::uint64_t{1} << (rng() % 50)));
    }
    auto const svg = offsets_svg({.title = "t"}, records, default_planner{}(records));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(svg.find("nan") == svg.npos);
    CHECK(svg.find("inf") == svg.npos);
    std::size_t living = 0;
    for (auto const& r : records) living += r.size > 0 && r.upper > r.lower;
    auto const drawn = boxes(svg);
    CHECK(drawn.size() == living);
    for (auto const& b : drawn) {
      CHECK(b.x >= 91.98);
      CHECK(b.x + b.width <= 872.02);
      CHECK(b.y >= 128);
      CHECK(b.y + b.height <= 566.02);
    }
  }
}
