#include "../../examples/cli/offsets_svg.hpp"

#include "../support/opaque_graph.hpp"
#include "../support/svg.hpp"

#include <doctest/doctest.h>

#include <neap/memory/make_plan.hpp>
#include <neap/memory/planner.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <cmath>
#include <random>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

struct box {
  double x, y, width, height;
};

/// All texts, lines joined.
std::string all_words(std::string const& svg) {
  std::string all;
  for (auto const& t : texts(svg)) all += t.text + " ";
  return all;
}

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
  double const across = (872 - 92) / 40.0, up = 438 / (1000 * 1.03);
  double bottom = 0;  // where offset 0 is
  for (auto const& r : b) bottom = std::max(bottom, r.y + r.height);
  auto const drawn = [&](double lo, double hi, double from, double to) {
    for (auto const& r : b)
      if (std::abs(r.x - (92 + across * (lo - 10))) < 0.02 && std::abs(r.width - across * (hi - lo)) < 0.02 &&
          std::abs(r.y - (bottom - up * to)) < 0.02 && std::abs(r.height - up * (to - from)) < 0.02)
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
  for (auto const* text : {"a <b> & c", "one&", "no arena can be below 3.00 MiB",
                           "1.00 MiB (33 %) are lost to fragmentation", "Beside it lie 7.00 MiB of weights and inputs",
                           "1 KiB to 8 KiB", "512 KiB to 4 MiB", "proved: no arena is smaller", "most in use at once"})
    CHECK_MESSAGE(all_words(lost).find(text) != std::string::npos, text);
  CHECK(is_xml(lost));
  auto tight = at({0, 3 << 20}, (3 << 20) + 1024, (3 << 20) + 1024);
  tight.status = plan_status::optimal;
  auto const full = offsets_svg({.title = "t"}, records, tight);
  CHECK(all_words(full).find("proved the least possible; it equals the largest load") != std::string::npos);
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
      CHECK(b.y + b.height <= frame_of(svg).height - 60);
    }
  }
}

TEST_CASE(
    "the picture of a plan: its arena and peak, residents beneath at their places, every buffer by name, the limit") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const g = opaque_graph(seed);
    auto const order = given_order{}(g);
    auto const p = make_plan(candidate{g, order, simulate(g, order, given_latencies{})}, g);
    auto const limit = p.arena_bytes + 64;
    auto const svg = offsets_svg(p, "plan <" + std::to_string(seed) + ">", limit);
    CHECK(is_xml(svg));
    CHECK(texts_outside(svg) == std::vector<std::string>{});
    CHECK(svg.find("moment") == svg.npos);
    CHECK(has_text(svg, "limit"));
    auto const text = [](bytes_t b) { return readable_bytes(static_cast<double>(b)); };
    CHECK(all_words(svg).find("The arena is " + text(p.arena_bytes)) != std::string::npos);
    auto const all = texts(svg);
    std::string arena;  // the level's number stands before its name
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i].text == "arena" || all[i].text.starts_with("arena;")) arena = all[i - 1].text;
    CHECK(arena == text(p.arena_bytes));
    std::size_t told = 0;
    auto const drawn = titles(svg);
    for (auto const& b : p.buffers) {
      auto const name = (b.resident ? std::string(name_of(p.graph.role(p.graph.record(b.storage).first))) + " " : "") +
                        value_label(p.graph, p.graph.record(b.storage).first);
      auto const at = name + ": " + text(b.bytes) + " at " + std::to_string(b.offset) + ",";
      for (auto const& t : drawn) told += t.starts_with(at);
    }
    for (auto const& t : drawn)  // low ones beside one another are drawn as one
      if (t.find(" residents from ") != t.npos) told += std::stoul(t);
    CHECK(told == p.buffers.size());
  }
}

TEST_CASE("residents that are most of the arena are drawn lower than to scale, and told so; positions still ascend") {
  std::vector<usage_record> const records{{.upper = 2, .size = 100}, {.lower = 1, .upper = 3, .size = 50}};
  offsets_picture about{.title = "t", .names = {"a", "b"}, .resident_bytes = 5000, .residents = {{"w", 0, 5000}}};
  auto const svg = offsets_svg(about, records, at({0, 100}, 150, 150));
  CHECK(svg.find("drawn lower than to scale") != svg.npos);
  auto const b = boxes(svg);
  REQUIRE(b.size() == 3);
  CHECK(b[0].height == doctest::Approx(0.3 * 438).epsilon(0.001));
  CHECK(b[1].height == doctest::Approx(2 * b[2].height).epsilon(0.001));
  CHECK(b[1].y + b[1].height == doctest::Approx(b[0].y).epsilon(0.001));
  CHECK(has_text(svg, "5.03 KiB"));  // the arena: residents and records
  about.resident_bytes = 30, about.residents = {{"w", 0, 30}};
  CHECK(offsets_svg(about, records, at({0, 100}, 150, 150)).find("drawn lower than to scale") == svg.npos);
}

TEST_CASE("all size classes at once: the legend stays in the frame; ten thousand records: names on the largest only") {
  std::vector<usage_record> records;
  offsets_picture about{.title = "t"};
  for (int i = 0; i < 10000; ++i) {
    usage_record r;
    r.lower = i, r.upper = i + 40, r.size = std::int64_t{1} << (i % 28);
    records.push_back(r);
    about.names.push_back("tensor<" + std::to_string(i) + ">");
  }
  auto const svg = offsets_svg(about, records, default_planner{}(records));
  CHECK(texts_outside(svg) == std::vector<std::string>{});
  for (std::size_t k = 0; k < detail::size_classes.size(); ++k) CHECK(has_text(svg, detail::size_class_name(k)));
  CHECK(boxes(svg).size() == 10000);
  CHECK(texts(svg).size() < 600);
  CHECK(svg.size() < 2500000);
}
