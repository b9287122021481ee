#include <neap/blocks/rotor.hpp>

#include "../support/random_chain.hpp"
#include "../support/sanitized.hpp"

#include <neap/blocks/chain_simulator.hpp>
#include <neap/import/chain.hpp>
#include <neap/import/file.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

using namespace neap;
using neap::testing::random_chain;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

bool close(double a, double b) { return a == b || std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)}); }

rotor solved(chain_profile const& chain, slots_t largest, rotor_options options = {}) {
  auto r = rotor::solve(chain, largest, options);
  REQUIRE_MESSAGE(r.ok(), r.message());
  return std::move(r).value();
}

slots_t peak_without_recomputation(chain_profile const& chain) {
  slots_t sum = 0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    slots_t most = 0;
    for (auto const& o : chain.blocks[i].options)
      most = std::max(most, o.saved + o.forward_temporary + o.backward_temporary);
    sum += most + 2 * chain.input(i) + chain.input(i + 1) + chain.blocks[i].left;
  }
  return sum;
}

/// The least time over all sequences of a small chain within a budget in which an input that is kept stays until its
/// backward: Dijkstra over what is in memory. Nothing here knows of sub-chains.
double exhaustive(chain_profile const& chain, slots_t budget) {
  struct state {
    std::vector<char> kept;   // x_i
    std::vector<char> saved;  // of block i: option + 1
    std::size_t gradient;     // of what: n + 1 before the loss
    std::size_t fresh;        // the x_i that the last step made, or nothing: it alone may be dropped
    auto operator<=>(state const&) const = default;
  };
  std::size_t const n = chain.size();
  state begin{std::vector<char>(n + 1, 0), std::vector<char>(n, 0), n + 1, SIZE_MAX};
  begin.kept[0] = 1;
  auto const in_use = [&](state const& s) {
    slots_t sum = s.gradient <= n ? chain.input(s.gradient) : 0;
    for (std::size_t i = s.gradient; i < n; ++i) sum += chain.blocks[i].left;
    for (std::size_t i = 0; i <= n; ++i) {
      if (s.kept[i]) sum += chain.input(i);
      if (i < n && s.saved[i]) sum += chain.blocks[i].options[static_cast<std::size_t>(s.saved[i] - 1)].saved;
    }
    return sum;
  };
  auto const has = [](state const& s, std::size_t i) { return s.kept[i] || (i > 0 && s.saved[i - 1]); };
  slots_t const most = budget + chain.input(0);
  if (in_use(begin) > most) return never;
  std::map<state, double> best{{begin, 0.0}};
  using entry = std::pair<double, state>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> open;
  open.push({0, begin});
  while (!open.empty()) {
    auto const [time, s] = open.top();
    open.pop();
    if (time > best[s]) continue;
    if (s.gradient == 0) return time;
    auto const go = [&](state const& during, slots_t temporary, state const& after, double took) {
      if (in_use(during) + temporary > most) return;
      auto const [at, is_new] = best.try_emplace(after, never);
      if (time + took < at->second) open.push({at->second = time + took, after});
    };
    if (s.gradient == n + 1 && has(s, n)) {
      auto next = s;
      next.gradient = n;
      next.fresh = SIZE_MAX;
      go(next, 0, next, 0);
    }
    for (std::size_t i = 0; i < n; ++i) {
      auto const& b = chain.blocks[i];
      if (!has(s, i)) continue;
      if (!has(s, i + 1)) {
        auto next = s;
        next.kept[i + 1] = 1;
        next.fresh = i + 1;
        go(next, b.pass_temporary, next, b.pass_time);
        if (s.fresh == i) {
          auto after = next;
          after.kept[i] = 0;
          go(next, b.pass_temporary, after, b.pass_time);
        }
      }
      if (!s.saved[i] && (!s.kept[i + 1] || i + 1 == n))
        for (std::size_t k = 0; k < b.options.size(); ++k) {
          auto next = s;
          next.saved[i] = static_cast<char>(k + 1);
          next.fresh = SIZE_MAX;
          go(next, b.options[k].forward_temporary, next, b.options[k].forward_time);
        }
      if (s.saved[i] && s.gradient == i + 1) {
        auto const& o = b.options[static_cast<std::size_t>(s.saved[i] - 1)];
        auto after = s;
        after.gradient = i;
        after.fresh = SIZE_MAX;
        after.saved[i] = 0;
        after.kept[i] = 0;
        if (in_use(s) + chain.input(i) + o.backward_temporary > most) continue;
        auto const [at, is_new] = best.try_emplace(after, never);
        if (time + o.backward_time < at->second) open.push({at->second = time + o.backward_time, after});
      }
    }
  }
  return never;
}

/// The recurrence with Rockmate's limits, as its authors write it: total times, one m at a time.
class peer_recurrence {
 public:
  explicit peer_recurrence(chain_profile const& c) : chain(c), n(c.size()) {}
  double operator()(slots_t m) { return opt(0, n, m); }

 private:
  slots_t x(std::size_t i) const { return i <= n ? chain.input(i) : 0; }
  double opt(std::size_t a, std::size_t b, slots_t m) {
    if (m < 0) return never;
    auto const key = std::tuple(a, b, m);
    if (auto const at = known.find(key); at != known.end()) return at->second;
    static std::vector<block_option> const loss(1);
    auto const& options = a < n ? chain.blocks[a].options : loss;
    double best = never;
    if (a == b) {
      for (auto const& o : options)
        if (m >= x(a) + o.saved + std::max(o.forward_temporary, o.backward_temporary))
          best = std::min(best, o.forward_time + o.backward_time);
    } else {
      slots_t need = x(a + 1) + chain.blocks[a].pass_temporary;
      for (std::size_t j = a + 1; j < b; ++j) need = std::max(need, x(j) + x(j + 1) + chain.blocks[j].pass_temporary);
      if (m >= need + x(b + 1)) {
        double passes = 0;
        for (std::size_t j = a + 1; j <= b; ++j) {
          passes += chain.blocks[j - 1].pass_time;
          if (m >= x(j)) best = std::min(best, passes + opt(j, b, m - x(j)) + opt(a, j - 1, m));
        }
        for (auto const& o : options)
          if (m >= std::max({o.saved, x(a + 1) + o.saved + o.forward_temporary, x(a) + o.saved + o.backward_temporary}))
            best = std::min(best, o.forward_time + o.backward_time + opt(a + 1, b, m - o.saved));
      }
    }
    return known[key] = best;
  }
  chain_profile const& chain;
  std::size_t n;
  std::map<std::tuple<std::size_t, std::size_t, slots_t>, double> known;
};

/// What the simulator says of an answer; fails the test if it is not what the solver says.
chain_simulation confirmed(chain_profile const& chain, rotor const& r, slots_t budget) {
  auto const sequence = r.sequence(budget);
  auto const seen = simulate(chain, sequence);
  CAPTURE(to_string(sequence));
  REQUIRE_MESSAGE(seen.ok(), seen.message());
  CHECK(close(seen->time, r.time(budget)));
  return *seen;
}

}  // namespace

TEST_CASE("rotor: the optimum of small chains, as an exhaustive search finds it, under every budget") {
  random_stream draw(1);
  int feasible = 0, recomputing = 0;
  for (int round = 0; round < (testing::sanitized ? 60 : 500); ++round) {
    auto const chain = random_chain(draw, {.blocks = 4,
                                           .options = 2,
                                           .kinds = 4,
                                           .size = 4,
                                           .left = round % 3 == 1 ? 6u : 0u,
                                           .pass_temporary = round % 5 < 2 ? 30u : 0u,
                                           .wild = round % 2 == 0});
    CAPTURE(round);
    slots_t const enough = peak_without_recomputation(chain);
    auto const r = solved(chain, enough);
    auto const plain = solved(chain, enough, {.bounds = false});
    std::set<slots_t> budgets{0, enough};
    for (auto const& p : r.front()) {  // where the time falls, and just before
      budgets.insert(p.budget);
      if (p.budget > 0) budgets.insert(p.budget - 1);
    }
    for (auto const m : budgets) {
      CAPTURE(m);
      double const best = exhaustive(chain, m);
      CHECK(close(r.time(m), best));
      CHECK(close(plain.time(m), best));
      CHECK(r.feasible(m) == (best < never));
      if (!r.feasible(m)) {
        CHECK(r.sequence(m).empty());
        continue;
      }
      ++feasible;
      recomputing += best > least_time(chain) + 1e-9;
      CHECK(confirmed(chain, r, m).peak <= m + chain.input(0));
    }
  }
  CHECK(feasible > (testing::sanitized ? 60 : 500));
  CHECK(recomputing > feasible / 10);
}

TEST_CASE("rotor: a few blocks that take much beside many that take little or nothing") {
  // What the runs of some blocks ask for is asked for by all that run them, those too that bounds have passed over.
  chain_profile known{.blocks = {{.options = {{.saved = 29}}},
                                 {.input = 37, .pass_temporary = 48, .options = {{}}},
                                 {.input = 36, .options = {{.saved = 3}}},
                                 {.options = {{.forward_temporary = 96}}}}};
  auto const check = [](chain_profile const& chain, slots_t largest, bool small) {
    auto const r = solved(chain, largest);
    auto const plain = solved(chain, largest, {.bounds = false});
    std::set<slots_t> budgets{0, largest};
    for (auto const* x : {&r, &plain})
      for (auto const& p : x->front()) budgets.insert({std::max<slots_t>(p.budget - 1, 0), p.budget});
    for (auto const m : budgets) {
      CAPTURE(m);
      REQUIRE(close(r.time(m), plain.time(m)));
      if (small) CHECK(close(r.time(m), exhaustive(chain, m)));
      if (r.feasible(m)) CHECK(confirmed(chain, r, m).peak <= m + chain.input(0));
    }
  };
  check(known, 128, true);
  random_stream draw(6);
  for (int round = 0; round < (testing::sanitized ? 200 : 4'000); ++round) {
    CAPTURE(round);
    bool const small = round % 8 == 0;
    auto const n = small ? 1 + draw.below(4) : 5 + draw.below(12);
    auto const size = [&] {
      auto const kind = draw.below(4);
      return static_cast<slots_t>(kind == 0 ? draw.below(100) : kind == 1 ? draw.below(5) : 0);
    };
    auto const time = [&] { return static_cast<double>(draw.below(3)); };
    chain_profile chain{.output = size()};
    for (std::uint32_t i = 0; i < n; ++i) {
      chain_block b{.input = size(), .pass_time = time(), .pass_temporary = size(), .left = draw.below(2) ? size() : 0};
      for (auto k = 1 + draw.below(2); k > 0; --k) b.options.push_back({b.pass_time, time(), size(), size(), size()});
      chain.blocks.push_back(b);
    }
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      for (auto& o : chain.blocks[i].options) o.saved += chain.input(i + 1);
    check(chain, std::min<slots_t>(peak_without_recomputation(chain), 600), small);
  }
}

TEST_CASE("rotor: the peer's limits give the peer's optimum, with bounds and without") {
  random_stream draw(2);
  for (int round = 0; round < (testing::sanitized ? 40 : 400); ++round) {
    auto const chain = random_chain(draw, {.blocks = 9, .options = 3, .kinds = 9, .size = 5, .wild = round % 2 == 0});
    CAPTURE(round);
    slots_t const enough = peak_without_recomputation(chain);
    auto const r = solved(chain, enough, {.limits = chain_limits::peer});
    auto const plain = solved(chain, enough, {.limits = chain_limits::peer, .bounds = false});
    peer_recurrence peer(chain);
    for (slots_t m = 0; m <= enough; m += 1 + m / 8) {
      CAPTURE(m);
      CHECK(close(r.time(m), peer(m)));
      CHECK(close(plain.time(m), peer(m)));
      if (r.feasible(m)) confirmed(chain, r, m);
    }
  }
}

TEST_CASE("rotor: bounds change no time, one run answers what many do, and more memory never costs time") {
  random_stream draw(3);
  for (int round = 0; round < (testing::sanitized ? 8 : 60); ++round) {
    auto const chain = random_chain(draw, {.blocks = 60,
                                           .options = 3,
                                           .kinds = round % 3 == 0 ? 3u : 1000u,
                                           .size = round % 4 == 0 ? 40u : 6u,
                                           .left = round % 5 < 2 ? 4u : 0u,
                                           .pass_temporary = round % 7 < 3 ? 40u : 0u,
                                           .wild = round % 2 == 0});
    CAPTURE(round);
    slots_t const largest = 20 + draw.below(600);
    auto const r = solved(chain, largest);
    auto const plain = solved(chain, largest, {.bounds = false});
    double last = never;
    for (slots_t m = -1; m <= largest; ++m) {
      CAPTURE(m);
      CHECK(close(r.time(m), plain.time(m)));
      CHECK(r.time(m) <= last);
      last = r.time(m);
    }
    for (int k = 0; k < 5; ++k) {
      slots_t const m = draw.below(static_cast<std::uint32_t>(largest) + 1);
      CHECK(close(solved(chain, m).time(m), r.time(m)));
      CHECK(solved(chain, m).sequence(m).empty() == !r.feasible(m));
      CHECK(close(solved(chain, m).time(m + 100), r.time(m)));  // a larger budget than asked for is that one
    }
    // The front: every fall, and nothing else.
    auto const front = r.front();
    std::vector<slots_t> falls;
    for (slots_t m = 0; m <= largest; ++m)
      if (r.time(m) < r.time(m - 1)) falls.push_back(m);
    REQUIRE(front.size() == falls.size());
    for (std::size_t i = 0; i < front.size(); ++i) {
      CHECK(front[i].budget == falls[i]);
      CHECK(front[i].time == r.time(falls[i]));
    }
  }
}

TEST_CASE("rotor: under tight budgets bounds leave out sub-chains, and change no time") {
  random_stream draw(4);
  for (int round = 0; round < (testing::sanitized ? 10 : 100); ++round) {
    auto const chain = random_chain(draw, {.blocks = 80,
                                           .options = 3,
                                           .kinds = round % 3 == 0 ? 2u : 1000u,
                                           .size = 6,
                                           .left = round % 5 < 2 ? 1u : 0u,
                                           .pass_temporary = round % 7 < 3 ? 10u : 0u,
                                           .wild = round % 2 == 0});
    slots_t const largest = 10 + draw.below(110);
    for (auto const limits : {chain_limits::exact, chain_limits::peer}) {
      CAPTURE(round);
      auto const r = solved(chain, largest, {.limits = limits});
      auto const plain = solved(chain, largest, {.limits = limits, .bounds = false});
      for (slots_t m = -1; m <= largest; ++m) {
        CAPTURE(m);
        CHECK(close(r.time(m), plain.time(m)));
        CHECK(r.sequence(m).empty() == !plain.feasible(m));
        if (auto const seen = simulate(chain, r.sequence(m)); plain.feasible(m)) {
          REQUIRE_MESSAGE(seen, seen.message());
          CHECK(close(seen->time, r.time(m)));
        }
      }
    }
  }
}

TEST_CASE("rotor: no plan of 10,000 random chains is over its budget") {
  random_stream draw(4);
  int feasible = 0, over_with_peer = 0;
  int const rounds = testing::sanitized ? 500 : 10'000;
  for (int round = 0; round < rounds; ++round) {
    auto const chain = random_chain(draw, {.blocks = round % 100 == 0 ? 80u : 16u,
                                           .options = 4,
                                           .kinds = round % 3 == 0 ? 3u : 1000u,
                                           .size = round % 5 == 0 ? 50u : 8u,
                                           .left = round % 7 < 3 ? 10u : 0u,
                                           .wild = round % 2 == 0});
    CAPTURE(round);
    auto const m = static_cast<slots_t>(
        draw.below(static_cast<std::uint32_t>(std::min<slots_t>(peak_without_recomputation(chain) + 1, 2000))));
    auto const r = solved(chain, m);
    auto const front = r.front();
    if (front.empty()) {
      CHECK(!r.feasible(m));
      continue;
    }
    ++feasible;
    slots_t const between = front[0].budget + draw.below(static_cast<std::uint32_t>(m - front[0].budget + 1));
    for (auto const budget : {m, front[0].budget, between})
      CHECK(confirmed(chain, r, budget).peak <= budget + chain.input(0));
    auto const peer = solved(chain, m, {.limits = chain_limits::peer});
    if (peer.feasible(m)) over_with_peer += confirmed(chain, peer, m).peak > m + chain.input(0);
  }
  CHECK(feasible > rounds / 2);
  CHECK(over_with_peer > rounds / 50);  // the checks above can fail
}

TEST_CASE("rotor: what Rockmate's solver answers under its limits, and the optimum under those that hold") {
  for (std::string const name : {"uniform64", "gpt24x2_o12", "resnet52", "random100_o4", "random200_o1"}) {
    auto const path = std::string(NEAP_SOURCE_DIR) + "/tests/blocks/chains/" + name + ".json.gz";
    auto const chain = io::read_chain(path);
    REQUIRE_MESSAGE(chain.ok(), chain.message());
    auto const& profile = chain->profile;
    auto const document = io::parse_json(*io::read_file(path), path);
    for (bool const exact : {true, false}) {
      auto const& rows = (*document)[exact ? "exact_results" : "peer_results"];
      slots_t largest = 0;
      for (auto const& row : rows) largest = std::max(largest, row["budget"].get<slots_t>());
      if (testing::sanitized && profile.size() > 100) continue;
      auto const r = solved(profile, largest, {.limits = exact ? chain_limits::exact : chain_limits::peer});
      for (auto const& row : rows) {
        slots_t const budget = row["budget"];
        double const time = row[exact ? "opt_exact" : "opt"];
        CAPTURE(name);
        CAPTURE(budget);
        CAPTURE(exact);
        CHECK(close(r.time(budget), time));
        auto const seen = confirmed(profile, r, budget);
        if (exact) CHECK(seen.peak <= budget + profile.input(0));
        // Their sequence, as the simulator sees it, is what theirs said of it.
        auto const theirs = parse_chain_sequence(row["seq"].get<std::string>());
        REQUIRE(theirs.ok());
        auto const played = simulate(profile, *theirs);
        REQUIRE_MESSAGE(played.ok(), played.message());
        CHECK(played->peak == row[exact ? "sim_peak" : "peer_sim_peak"].get<slots_t>());
        CHECK(close(played->time, time));
      }
    }
  }
}

TEST_CASE("rotor: a forward that takes ages takes nothing from the precision of the others") {
  // The optimum is the same with ages of any length, once no plan runs that forward without saving.
  random_stream draw(8);
  for (int round = 0; round < 300; ++round) {
    auto chain = random_chain(draw, {.blocks = 9, .options = 3});
    auto const which = draw.below(static_cast<std::uint32_t>(chain.size()));
    auto const largest = peak_without_recomputation(chain);
    chain.blocks[which].pass_time = 1e4;
    auto const modest = solved(chain, largest);
    chain.blocks[which].pass_time = 1e30;
    for (bool const bounds : {true, false}) {
      auto const solver = solved(chain, largest, {.bounds = bounds});
      for (auto const& point : solver.front()) {
        CAPTURE(round);
        auto const seen = simulate(chain, solver.sequence(point.budget));
        REQUIRE(seen.ok());
        CHECK(close(seen->time, point.time));
        if (modest.time(point.budget) < 1e4) CHECK(close(point.time, modest.time(point.budget)));
      }
    }
  }
}

TEST_CASE("rotor: sizes in bytes are as good as in their largest common unit") {
  random_stream draw(5);
  for (int round = 0; round < 30; ++round) {
    auto const chain = random_chain(draw, {.blocks = 12, .options = 2, .size = 5});
    auto bytes = chain;
    slots_t const unit = slots_t{1} << 20;
    bytes.output *= unit;
    for (auto& b : bytes.blocks) {
      b.input *= unit, b.pass_temporary *= unit;
      for (auto& o : b.options) o.saved *= unit, o.forward_temporary *= unit, o.backward_temporary *= unit;
    }
    slots_t const largest = peak_without_recomputation(chain);
    auto const small = solved(chain, largest), large = solved(bytes, largest * unit + unit / 2);
    for (slots_t m = 0; m <= largest; ++m) {
      CHECK(large.time(m * unit) == small.time(m));
      CHECK(large.time(m * unit + unit - 1) == small.time(m));
      CHECK(large.sequence(m * unit) == small.sequence(m));
    }
  }
}

TEST_CASE("rotor: a plan found in larger slots fits in the chain's own") {
  random_stream draw(7);
  int feasible = 0;
  for (int round = 0; round < 300; ++round) {
    auto const chain = random_chain(draw, {.blocks = 12, .options = 3, .size = 90});
    slots_t const slot = 1 + draw.below(40), limit = draw.below(2000);
    auto const coarse = solved(in_slots(chain, slot), limit / slot);
    if (!coarse.feasible(limit / slot)) continue;
    ++feasible;
    CHECK(confirmed(chain, coarse, limit / slot).peak <= limit + chain.input(0));
    CHECK(coarse.time(limit / slot) >= solved(chain, limit).time(limit) - 1e-9);
  }
  CHECK(feasible > 50);
}

TEST_CASE("rotor: what cannot be solved is refused in one line") {
  random_stream draw(6);
  auto const chain = random_chain(draw, {.blocks = 5, .wild = false});
  CHECK(rotor::solve({}, 10).message() == "the chain has no blocks");
  auto wrong = chain;
  wrong.blocks[0].options[0].backward_time = std::nan("");
  CHECK(rotor::solve(wrong, 10).message() == "block 0: option 0: times must be from 0 to 1e30");
  // Nothing fits, whatever the budget is called.
  for (slots_t m : {slots_t{0}, slots_t{-1}, slots_t{-1'000'000}}) {
    auto const r = solved(chain, m);
    CHECK(!r.feasible(m));
    CHECK(r.time(m) == never);
    CHECK(r.front().empty());
  }
  // All the memory in the world is no larger a table than what can be used.
  CHECK(solved(chain, INT64_MAX).time(INT64_MAX) == least_time(chain));
  // Odd sizes of a million million slots would need a table of as many times.
  auto vast = chain;
  for (std::size_t i = 0; i < vast.size(); ++i)
    for (auto& o : vast.blocks[i].options) o.saved = max_slots - static_cast<slots_t>(i);
  auto const said = rotor::solve(vast, INT64_MAX, {.max_table_bytes = 1 << 24}).message();
  CHECK(said == "the solver's table would take more than 16777216 bytes: take a smaller limit, or larger slots");
  chain_profile deep;
  deep.blocks.assign(100'000, chain.blocks[0]);
  CHECK(rotor::solve(deep, 10).message() ==
        "the solver's table for 100000 blocks would take more than 4294967296 bytes, whatever the limit");
  auto const odd = random_chain(draw, {.blocks = 500, .kinds = 500});
  CHECK(rotor::solve(odd, 10, {.max_table_bytes = 1 << 10}).message() ==
        "the solver's table for " + std::to_string(odd.size()) +
            " blocks would take more than 1024 bytes, whatever the limit");
}
