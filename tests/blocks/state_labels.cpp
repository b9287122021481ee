#include <neap/blocks/state_labels.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

using namespace neap;
using set = detail::value_set<2>;

TEST_CASE("an index of labels finds each state, and room for a new one") {
  std::mt19937_64 rng(4);
  detail::state_labels<2> labels;
  detail::label_index index;
  index.clear(10);
  for (int k = 0; k < 400; ++k) {
    set alive;
    alive.words = {rng() % 50, rng() % 9};
    auto& slot = index.find(labels, alive);
    std::uint32_t known = 0;
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i].alive == alive) known = static_cast<std::uint32_t>(i + 1);
    REQUIRE(slot == known);
    if (known != 0) continue;
    labels.push_back({});
    labels.back().alive = alive;
    slot = static_cast<std::uint32_t>(labels.size());
  }
  CHECK(labels.size() > 200);
}

TEST_CASE("a label is beaten by one with as much alive in no more time") {
  std::mt19937_64 rng(5);
  int beaten = 0;
  for (int round = 0; round < 2000; ++round) {
    detail::state_labels<2> labels(4);
    for (auto& l : labels) l.alive.words = {rng() % 16, 0}, l.time = static_cast<double>(rng() % 4);
    bool expected = false;
    for (std::size_t i = 0; i < 3; ++i)
      expected |= labels[i].time <= labels[3].time && (labels[3].alive.words[0] & ~labels[i].alive.words[0]) == 0;
    REQUIRE(detail::beaten(labels, 3, labels[3]) == expected);
    REQUIRE(!detail::beaten(labels, 0, labels[3]));
    beaten += expected;
  }
  CHECK(beaten > 100);
}

TEST_CASE("reached places: never a false answer, and one reached more slowly is no news") {
  std::mt19937_64 rng(6);
  detail::reached_places<2> places(6, 1000);
  struct known {
    double time;
    set ahead, asleep;
  };
  std::map<std::vector<std::uint64_t>, std::vector<known>> all;
  int seen = 0;
  for (int k = 0; k < 5000; ++k) {
    detail::reached_places<2>::place p;
    p.alive.words = {rng() % 8, 0}, p.ahead.words = {rng() % 4, 0}, p.asleep.words = {rng() % 4, 0};
    p.time = static_cast<double>(rng() % 5), p.pass = 1, p.phase = static_cast<std::uint32_t>(rng() % 3);
    p.op = static_cast<std::uint32_t>(rng() % 3);
    auto& before = all[{p.alive.words[0], p.phase, p.op}];
    bool possible = false;
    for (auto const& b : before) possible |= b.time <= p.time && p.ahead.holds(b.ahead) && p.asleep.holds(b.asleep);
    bool const said = places.seen(p);
    if (said) REQUIRE(possible);
    if (!said) before.push_back({p.time, p.ahead, p.asleep});
    seen += said;
  }
  CHECK(seen > 60);
}
