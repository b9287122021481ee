#include <neap/blocks/option_gaps.hpp>

#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/core/philox.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;

namespace {

using action = block_graph_step::action;

/// A few blocks with options and data at random.
block_graph random_graph(random_stream& draw, std::uint32_t max_blocks) {
  block_graph g;
  auto const some = [&](std::uint32_t n) { return static_cast<std::int64_t>(draw.below(n)); };
  auto const blocks = 1 + draw.below(max_blocks);
  for (std::uint32_t k = 0; k < blocks; ++k) {
    graph_block b;
    auto const before = static_cast<std::uint32_t>(g.bytes.size());
    auto const choose = [&](std::uint32_t count, std::uint32_t one_in) {
      std::vector<std::uint32_t> list;
      for (std::uint32_t d = count > 6 ? count - 6 : 0; d < count; ++d)
        if (draw.below(one_in) == 0) list.push_back(d);
      return list;
    };
    b.reads = choose(before, 2);
    std::int64_t own = 0;
    for (auto n = draw.below(3); n > 0; --n) {
      b.makes.push_back(static_cast<std::uint32_t>(g.bytes.size()));
      g.bytes.push_back(1 + some(10)), own += g.bytes.back();
    }
    b.pass_time = 1 + static_cast<double>(draw.below(9));
    b.once_time = draw.below(4) ? 0 : 0.5;
    b.pass_peak = own + some(4);
    for (auto n = 1 + draw.below(3); n > 0; --n) {
      graph_block_option o;
      o.forward_time = b.pass_time + static_cast<double>(draw.below(3));
      o.backward_time = 1 + static_cast<double>(draw.below(18));
      o.saved = some(12);
      o.forward_peak = b.pass_peak + o.saved + some(4);
      o.backward_peak = o.saved + some(10);
      o.again_time = b.pass_time * 0.5;
      o.again_peak = own + some(3);
      o.again_reads = b.reads;
      if (!o.again_reads.empty() && draw.below(2)) o.again_reads.pop_back();
      o.backward_reads = choose(static_cast<std::uint32_t>(g.bytes.size()), 3);
      b.options.push_back(std::move(o));
    }
    g.blocks.push_back(std::move(b));
  }
  if (draw.below(2))
    for (std::size_t d = 0; d < g.bytes.size(); ++d)
      g.move_time.push_back(draw.below(4) ? static_cast<double>(draw.below(12)) : -1);
  for (std::uint32_t t = 0; t < 2 * blocks; ++t) g.before.push_back(some(5)), g.during.push_back(some(5));
  return g;
}

/// Plays an answer step by step. Empty if it is what it says; its time and peak in `time` and `peak`.
std::string play(block_graph const& g, block_graph_answer const& a, double& time, std::int64_t& peak, int& loads) {
  auto const n = static_cast<std::uint32_t>(g.blocks.size());
  std::vector<bool> there(g.bytes.size()), made(g.bytes.size()), ran(n), done(n);
  std::vector<int> saved(n, -1);
  std::uint32_t phase = 0;
  time = 0, peak = 0;
  for (auto const& s : a.steps) {
    if (s.what == action::drop) {
      if (!there[s.index]) return "drops what is not there";
      there[s.index] = false;
      continue;
    }
    if (s.what == action::load) {
      if (!made[s.index] || there[s.index]) return "loads what was not made, or is there";
      if (g.move_time.empty() || g.move_time[s.index] < 0) return "loads what stays";
      there[s.index] = true, time += g.move_time[s.index], ++loads;
      continue;
    }
    if (phase == 2 * n) return "goes on behind the end";
    auto const& b = g.blocks[s.index];
    auto const& o = b.options[s.option];
    auto const main = phase < n ? phase : 2 * n - 1 - phase;
    bool const back = s.what == action::backward;
    bool const first = back || !ran[s.index];
    if (first && s.index != main) return "out of its phase";
    if (back && (phase < n || saved[s.index] != static_cast<int>(s.option))) return "backward without what it needs";
    if (s.what == action::again && saved[s.index] != static_cast<int>(s.option)) return "again from nothing";
    if (s.what == action::save && saved[s.index] >= 0) return "saves twice";
    auto const& reads = s.what == action::again ? o.again_reads : back ? o.backward_reads : b.reads;
    for (auto d : reads)
      if (!there[d]) return "reads what is not there";
    std::int64_t bytes = first ? g.during[phase] : g.before[phase];
    for (std::uint32_t d = 0; d < g.bytes.size(); ++d) {
      bool const own = std::find(b.makes.begin(), b.makes.end(), d) != b.makes.end();
      if (there[d] && !(back && own)) bytes += g.bytes[d];
    }
    for (std::uint32_t k = 0; k < n; ++k)
      if (saved[k] >= 0) bytes += g.blocks[k].options[static_cast<std::size_t>(saved[k])].saved;
    switch (s.what) {
      case action::pass: time += b.pass_time, bytes += b.pass_peak; break;
      case action::save: time += o.forward_time, bytes += o.forward_peak; break;
      case action::again: time += o.again_time, bytes += o.again_peak; break;
      default: time += o.backward_time, bytes += o.backward_peak - o.saved;
    }
    if (!first && s.what != action::again) time -= b.once_time;
    peak = std::max(peak, bytes);
    if (s.what == action::save) saved[s.index] = static_cast<int>(s.option);
    if (back) saved[s.index] = -1, done[s.index] = true;
    else
      for (auto d : b.makes) there[d] = made[d] = true;
    ran[s.index] = true;
    phase += first;
  }
  if (phase != 2 * n) return "ends too early";
  return "";
}

}  // namespace

TEST_CASE("random graphs of blocks: answers can be played, keep their limits, and cost what they say") {
  random_stream draw(3);
  int answers = 0, loads = 0;
  for (int round = 0; round < neap::testing::cases(400); ++round) {
    CAPTURE(round);
    auto const g = random_graph(draw, round % 2 ? 4 : 10);
    auto const right = check(g);
    REQUIRE_MESSAGE(right.ok(), right.message());
    option_gaps search(g, static_cast<std::uint64_t>(round));
    auto const widest = search.best(remat_limits::none);
    REQUIRE(widest);
    double once = 0;
    for (auto const& b : g.blocks) {
      double least = 1e30;
      for (auto const& o : b.options) least = std::min(least, o.forward_time + o.backward_time);
      once += least;
    }
    CHECK(widest->time >= once - 1e-9);
    auto const extremes = search.front();
    for (int part : {100, 85, 70, 55, 40}) {
      auto const limit = widest->peak * part / 100;
      auto const a = search.solve(limit, {.work = 500});
      for (auto const& [peak, time] : extremes)  // what it began with is not forgotten
        if (peak <= limit) CHECK((a && a->time <= time + 1e-9));
      if (!a) continue;
      ++answers;
      CHECK(a->peak <= limit);
      double time = 0;
      std::int64_t peak = 0;
      auto const wrong = play(g, *a, time, peak, loads);
      REQUIRE_MESSAGE(wrong.empty(), wrong);
      CHECK(time == doctest::Approx(a->time));
      CHECK(peak == a->peak);
    }
    auto const front = search.front();
    for (std::size_t i = 1; i < front.size(); ++i) {
      CHECK(front[i].first > front[i - 1].first);
      CHECK(front[i].second < front[i - 1].second);
    }
  }
  CHECK(answers > neap::testing::cases(800));
  CHECK(loads > neap::testing::cases(200));
}

TEST_CASE("data that may leave by a free link: no slower at the same limit") {
  random_stream draw(12);
  int compared = 0, quicker = 0;
  for (int round = 0; round < neap::testing::cases(100); ++round) {
    CAPTURE(round);
    auto stays = random_graph(draw, 8);
    stays.move_time.clear();
    auto leaves = stays;
    leaves.move_time.assign(leaves.bytes.size(), 0);
    option_gaps a(stays), b(leaves);
    auto const most = a.front().back().first;
    for (int part : {85, 70, 55}) {
      auto const without = a.solve(most * part / 100, {.work = 4000});
      auto const with = b.solve(most * part / 100, {.work = 4000});
      if (!without) continue;
      ++compared;
      CHECK(with);
      quicker += with && with->time <= without->time;
    }
  }
  MESSAGE(quicker, " of ", compared);
  CHECK(compared > neap::testing::cases(100));
  CHECK(quicker * 100 >= compared * 95);
}

TEST_CASE("blocks of one op: near the exact optimum of the same problem of ops") {
  random_stream draw(8);
  int compared = 0, met = 0;
  for (int round = 0; round < (neap::testing::sanitized ? 12 : 60); ++round) {
    CAPTURE(round);
    std::uint32_t const n = 4 + draw.below(4);
    block_graph g;
    remat_problem p;
    for (std::uint32_t k = 0; k < n; ++k) {
      graph_block b;
      graph_block_option o;
      if (k > 0) b.reads = {k - 1};
      if (k > 1 && draw.below(2)) b.reads.insert(b.reads.begin(), draw.below(k - 1));
      b.makes = {k};
      g.bytes.push_back(1 + draw.below(9));
      b.pass_time = o.forward_time = o.again_time = 1 + draw.below(9);
      b.pass_peak = o.forward_peak = o.again_peak = g.bytes[k];
      o.again_reads = b.reads;
      o.backward_time = 1 + draw.below(9);
      o.backward_reads = b.reads;
      if (draw.below(2)) o.backward_reads.push_back(k);
      p.values.push_back({.bytes = g.bytes[k]});
      p.ops.push_back({.time = b.pass_time, .inputs = b.reads, .outputs = {k}});
      // The data of a block count in its backward, whether that reads them or not.
      o.backward_peak = o.backward_reads.size() > b.reads.size() ? g.bytes[k] : 0;
      b.options.push_back(o);
      g.blocks.push_back(b);
    }
    for (auto k = n; k-- > 0;)
      p.ops.push_back({.time = g.blocks[k].options[0].backward_time,
                       .inputs = g.blocks[k].options[0].backward_reads,
                       .again = false});
    g.before.assign(2 * n, 0), g.during = g.before;
    option_gaps search(g);
    auto const most = search.front().back().first;
    for (int part : {80, 65, 50}) {
      auto const limit = most * part / 100;
      auto const exact = remat_branch_and_bound{}(p, {.peak_bytes = limit});
      auto const a = search.solve(limit, {.work = 20000});
      if (exact.status == remat_status::infeasible) CHECK(!a);
      if (exact.status != remat_status::optimal) continue;
      ++compared;
      if (!a) continue;
      CHECK(a->time >= exact.time - 1e-9);
      met += a->time <= exact.time + 1e-9;
    }
  }
  MESSAGE(met, " of ", compared, " met the optimum");
  CHECK(compared > (neap::testing::sanitized ? 6 : 60));
  CHECK(met * 100 >= compared * 90);
}

TEST_CASE("towards a limit out of reach: where bytes over it are dearer, smaller peaks are found") {
  random_stream draw(31);
  int smaller = 0, larger = 0;
  for (int round = 0; round < neap::testing::cases(40); ++round) {
    CAPTURE(round);
    // Skips within skips: each block on the way up reads what its counterpart on the way down has made.
    block_graph g;
    std::uint32_t const blocks = 24;
    for (std::uint32_t k = 0; k < blocks; ++k) {
      graph_block b;
      if (k > 0) b.reads.push_back(k - 1);
      if (k > blocks / 2) b.reads.insert(b.reads.begin(), blocks - 1 - k);
      b.makes.push_back(k);
      auto const bytes = 1 + static_cast<std::int64_t>(draw.below(30));
      g.bytes.push_back(bytes);
      b.pass_time = 1 + static_cast<double>(draw.below(9)), b.pass_peak = bytes;
      for (std::int64_t saved : {30, 10, 0})
        b.options.push_back({.forward_time = b.pass_time,
                             .backward_time = 2 * b.pass_time + static_cast<double>(30 - saved) / 10,
                             .saved = saved,
                             .forward_peak = bytes + saved,
                             .backward_peak = 40,
                             .again_time = b.pass_time,
                             .again_peak = bytes,
                             .again_reads = b.reads,
                             .backward_reads = b.reads});
      g.blocks.push_back(std::move(b));
    }
    g.before.assign(2 * blocks, 0), g.during = g.before;
    REQUIRE(check(g).ok());
    auto const smallest = [&](double dearer) {
      option_gaps search(g, 7);
      for (int k = 0; k < 3; ++k) (void)search.solve(search.front().front().first / 32 * 31, {.work = 8000}, dearer);
      return search.front().front().first;
    };
    auto const cheap = smallest(1), dear = smallest(4);
    smaller += dear<cheap, larger += dear> cheap;
  }
  CHECK(smaller > larger);
}

TEST_CASE("the same seed and work give the same answer") {
  random_stream draw(5);
  auto const g = random_graph(draw, 12);
  option_gaps a(g, 9), b(g, 9);
  auto const limit = a.front().back().first * 7 / 10;
  CHECK(a.solve(limit, {.work = 3000}) == b.solve(limit, {.work = 3000}));
  CHECK(a.front() == b.front());
}

TEST_CASE("what is no graph of blocks is refused in one line") {
  random_stream draw(6);
  auto const good = random_graph(draw, 6);
  CHECK(check(good).ok());
  auto const refused = [&](auto&& spoil) {
    auto g = good;
    spoil(g);
    return check(g).message();
  };
  CHECK(refused([](auto& g) { g.blocks.clear(); }) == "the graph has no blocks");
  CHECK(refused([](auto& g) { g.before.pop_back(); }) == "there must be two phases a block");
  CHECK(refused([](auto& g) { g.during[0] = -1; }) == "sizes must be from 0 to 2^50");
  CHECK(refused([](auto& g) { g.blocks[0].options.clear(); }) == "block 0: has no options");
  CHECK(refused([](auto& g) { g.blocks[0].pass_time = -1; }) == "block 0: times must be from 0 to 1e30");
  CHECK(refused([](auto& g) { g.blocks[0].reads = {999}; }) == "block 0: it reads data that no earlier block makes");
  CHECK(refused([](auto& g) { g.bytes.push_back(1); }) == "there are data that no block makes");
  CHECK(refused([](auto& g) { g.move_time.assign(g.bytes.size() + 1, 1); }) ==
        "there must be a time to move for each of the data, or for none");
  CHECK(refused([](auto& g) { g.move_time.assign(g.bytes.size(), 1e31); }) == "times must be from 0 to 1e30");
}
