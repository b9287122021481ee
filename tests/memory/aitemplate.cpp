#include <neap/memory/greedy/aitemplate.hpp>

#include <neap/memory/check/check.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

using namespace neap;
using aitemplate::graph;
using aitemplate::index;

namespace {

aitemplate::tensor named(std::string name, std::int64_t bytes, std::vector<index> src_ops) {
  aitemplate::tensor t;
  t.name = std::move(name);
  t.shape = {bytes};
  t.element_bytes = 1;
  t.src_ops = std::move(src_ops);
  return t;
}

/// x -> a -> b -> y, 128 bytes each.
graph chain() {
  graph g;
  g.tensors = {named("x", 128, {}), named("a", 128, {0}), named("b", 128, {1}), named("y", 128, {2})};
  g.tensors[3].is_output = true;
  for (index i = 0; i < 3; ++i) g.ops.push_back({.inputs = {i}, .outputs = {i + 1}});
  return g;
}

/// The rules of the original in the plainest words: maps by name, lists, inclusive lives.
struct restated {
  struct use {
    std::int64_t first, last, size;
  };
  std::map<std::string, use> uses;
  std::vector<std::string> order;
  std::map<std::string, std::int64_t> offset;
  std::int64_t blob = 0, constants = 0, shared = 0, unique = 0;
  bool asserts = false;

  explicit restated(graph const& g, std::int64_t parallel) {
    auto const name = [&](index t) { return g.tensors[static_cast<std::size_t>(t)].name; };
    std::vector<std::vector<index>> steps;
    std::vector<index> unique_ops;
    for (auto const& t : g.tensors)
      for (auto o : t.src_ops) {
        if (parallel == 0) steps.push_back({o});
        if (std::find(unique_ops.begin(), unique_ops.end(), o) == unique_ops.end()) unique_ops.push_back(o);
      }
    if (parallel > 0) {
      std::map<index, int> made;  // op -> its wave
      std::map<int, std::vector<index>> waves;
      for (auto o : unique_ops) {
        int wave = 1;
        for (auto t : g.ops[static_cast<std::size_t>(o)].inputs)
          for (index at = t; at != aitemplate::nowhere; at = g.tensors[static_cast<std::size_t>(at)].view_of)
            for (auto s : g.tensors[static_cast<std::size_t>(at)].src_ops) wave = std::max(wave, made[s] + 1);
        made[o] = wave;
        waves[wave].push_back(o);
      }
      for (auto const& [wave, ops] : waves)
        for (std::size_t from = 0; from < ops.size(); from += static_cast<std::size_t>(parallel))
          steps.emplace_back(ops.begin() + static_cast<std::ptrdiff_t>(from),
                             ops.begin() + static_cast<std::ptrdiff_t>(
                                               std::min(ops.size(), from + static_cast<std::size_t>(parallel))));
    }
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (auto o : steps[s]) {
        auto touched = g.ops[static_cast<std::size_t>(o)].inputs;
        auto const& outs = g.ops[static_cast<std::size_t>(o)].outputs;
        touched.insert(touched.end(), outs.begin(), outs.end());
        for (auto t : touched) {
          auto const& x = g.tensors[static_cast<std::size_t>(t)];
          if (x.is_param) continue;
          auto const step = static_cast<std::int64_t>(s);
          std::int64_t bytes = x.element_bytes;
          for (auto d : x.shape) bytes *= d;
          while (bytes % 64 != 0) ++bytes;
          if (uses.count(x.name) == 0) order.push_back(x.name), uses[x.name] = {step, step, bytes};
          uses[x.name].first = std::min(uses[x.name].first, step);
          uses[x.name].last = std::max(uses[x.name].last, step);
          if (x.is_output) uses[x.name].last = static_cast<std::int64_t>(steps.size()) - 1;
        }
      }
    for (std::size_t t = 0; t < g.tensors.size(); ++t) {
      if (g.tensors[t].view_of == aitemplate::nowhere || uses.count(g.tensors[t].name) == 0) continue;
      index root = static_cast<index>(t);
      while (g.tensors[static_cast<std::size_t>(root)].view_of != aitemplate::nowhere)
        root = g.tensors[static_cast<std::size_t>(root)].view_of;
      if (g.tensors[static_cast<std::size_t>(root)].is_param) continue;
      if (uses.count(name(root)) == 0) {
        asserts = true;
        return;
      }
      uses[name(root)].last = std::max(uses[name(root)].last, uses[g.tensors[t].name].last);
      order.erase(std::find(order.begin(), order.end(), g.tensors[t].name));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](auto const& a, auto const& b) { return uses[a].size > uses[b].size; });
    std::vector<std::string> placed;
    for (auto const& r : order) {
      std::int64_t previous = 0, best = -1, smallest = std::numeric_limits<std::int64_t>::max();
      for (auto const& p : placed) {
        if (std::max(uses[p].first, uses[r].first) > std::min(uses[p].last, uses[r].last)) continue;
        std::int64_t const gap = offset[p] - previous;
        if (gap >= uses[r].size && gap < smallest) smallest = gap, best = previous;
        previous = std::max(previous, offset[p] + uses[p].size);
      }
      offset[r] = best >= 0 ? best : previous;
      blob = std::max(blob, offset[r] + uses[r].size);
      std::size_t at = 0;
      while (at < placed.size() && offset[placed[at]] <= offset[r]) ++at;
      placed.insert(placed.begin() + static_cast<std::ptrdiff_t>(at), r);
    }
    for (auto const& t : g.tensors) {
      std::int64_t bytes = t.element_bytes;
      for (auto d : t.shape) bytes *= d;
      while (bytes % 64 != 0) ++bytes;
      if (t.is_constant) offset[t.name] = constants, constants += bytes;
      if (t.view_of != aitemplate::nowhere) {
        if (offset.count(name(t.view_of)) != 0) offset[t.name] = offset[name(t.view_of)];
        else offset.erase(t.name);
      }
    }
    for (auto o : unique_ops) {
      shared = std::max(shared, g.ops[static_cast<std::size_t>(o)].workspace);
      unique += g.ops[static_cast<std::size_t>(o)].unique_workspace;
    }
  }
};

graph random_graph(std::mt19937_64& rng) {
  graph g;
  auto const add = [&](std::vector<index> src) {
    auto t = named("t" + std::to_string(g.tensors.size()), static_cast<std::int64_t>(rng() % 400), std::move(src));
    g.tensors.push_back(std::move(t));
    return static_cast<index>(g.tensors.size() - 1);
  };
  auto const any = [&] { return static_cast<index>(rng() % g.tensors.size()); };
  for (std::uint64_t i = 0; i < 1 + rng() % 4; ++i) {
    auto& t = g.tensors[static_cast<std::size_t>(add({}))];
    t.is_param = rng() % 3 == 0;
    t.is_constant = rng() % 4 == 0;
  }
  for (index o = 0; o < static_cast<index>(1 + rng() % 14); ++o) {
    aitemplate::op it;
    for (std::uint64_t k = 0; k < 1 + rng() % 3; ++k) it.inputs.push_back(any());
    it.workspace = static_cast<std::int64_t>(rng() % 11);
    it.unique_workspace = static_cast<std::int64_t>(rng() % 11);
    g.ops.push_back(it);
    for (std::uint64_t k = 0; k < 1 + rng() % 3; ++k) g.ops[static_cast<std::size_t>(o)].outputs.push_back(add({o}));
    if (rng() % 3 == 0) {  // a view made by no op
      index const base = any();
      index const view = add({});
      g.tensors[static_cast<std::size_t>(view)].view_of = base;
      g.tensors[static_cast<std::size_t>(view)].shape = {0};
    }
  }
  for (auto& t : g.tensors)
    if (!t.src_ops.empty() && rng() % 5 == 0) t.is_output = true;
  return g;
}

}  // namespace

TEST_CASE("with its flaws, AITemplate's offsets bit for bit") {
  std::mt19937_64 rng(1);
  int asserted = 0, reached = 0;
  for (int round = 0; round < 4000; ++round) {
    auto const g = random_graph(rng);
    std::int64_t const parallel = round % 3 == 0 ? 0 : round % 3 == 1 ? 2 : 99999999;
    restated const rules(g, parallel);
    aitemplate::options how{.flaws = aitemplate::flaws::all()};
    if (parallel > 0) how.mode = aitemplate::run_mode::multi_stream, how.max_parallel_ops = parallel;
    auto const ours = aitemplate::plan_memory(g, how);
    if (rules.asserts) {
      ++asserted;
      REQUIRE(!ours);
      continue;
    }
    ++reached;
    REQUIRE_MESSAGE(ours.ok(), ours.message());
    REQUIRE(ours->arena_bytes == rules.blob);
    REQUIRE(ours->constant_bytes == rules.constants);
    REQUIRE(ours->shared_workspace == rules.shared);
    REQUIRE(ours->unique_workspace == rules.unique);
    for (std::size_t t = 0; t < g.tensors.size(); ++t) {
      auto const theirs = rules.offset.find(g.tensors[t].name);
      REQUIRE(ours->offsets[t] == (theirs == rules.offset.end() ? -1 : theirs->second));
    }
  }
  CHECK(asserted > 20);
  CHECK(reached > 1000);
}

TEST_CASE("without its flaws: right plans, most of them smaller") {
  std::mt19937_64 rng(2);
  int smaller = 0;
  for (int round = 0; round < 2000; ++round) {
    auto const g = random_graph(rng);
    auto const ours = aitemplate::plan_memory(g);
    REQUIRE_MESSAGE(ours.ok(), ours.message());
    memory_plan plan = greedy_by_size{}(ours->records);
    CHECK(verify(ours->records, plan).ok());
    for (std::size_t t = 0; t < g.tensors.size(); ++t)
      if (g.tensors[t].view_of != aitemplate::nowhere)
        CHECK(ours->offsets[t] == ours->offsets[static_cast<std::size_t>(g.tensors[t].view_of)]);
    auto const theirs = aitemplate::plan_memory(g, {.flaws = aitemplate::flaws::all()});
    if (theirs) smaller += ours->arena_bytes < theirs->arena_bytes;
  }
  CHECK(smaller > 500);
}

TEST_CASE("the chain of the specification: 256 with the inputs in the arena, 512 naively") {
  auto g = chain();
  auto const flawed = aitemplate::plan_memory(g, {.flaws = aitemplate::flaws::all()});
  CHECK(flawed->arena_bytes == 256);
  CHECK(flawed->offsets[0] == 0);
  CHECK(flawed->offsets[3] == 128);
  CHECK(aitemplate::plan_memory(g, {.mode = aitemplate::run_mode::naive, .flaws = aitemplate::flaws::all()})
            ->arena_bytes == 512);
  CHECK(aitemplate::plan_memory(g)->offsets[0] == -1);
  CHECK(aitemplate::plan_memory(g)->arena_bytes == 256);
}

TEST_CASE("an op with two outputs counts once, twice with the flaw") {
  graph g;  // x -> op0 -> (a, b); a -> op1 -> c; (c, b) -> op2 -> y, in the order x, a, c, b, y
  g.tensors = {named("x", 64, {}), named("a", 64, {0}), named("c", 64, {1}), named("b", 64, {0}), named("y", 64, {2})};
  g.tensors[4].is_output = true;
  g.ops = {{.inputs = {0}, .outputs = {1, 3}}, {.inputs = {1}, .outputs = {2}}, {.inputs = {2, 3}, .outputs = {4}}};
  auto const flawed = aitemplate::plan_memory(g, {.flaws = aitemplate::flaws::all()});
  std::vector<std::pair<std::int64_t, std::int64_t>> lives;
  for (auto const& r : flawed->records) lives.push_back({r.lower, r.upper - 1});
  CHECK(lives == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 2}, {0, 2}, {0, 3}, {1, 3}, {3, 3}});
  CHECK(aitemplate::plan_memory(g)->arena_bytes == 192);
}

TEST_CASE(
    "workspaces: the shared one is the largest, unique ones lie one after another; planning again gives the same") {
  auto g = chain();
  g.ops[0].workspace = 100, g.ops[2].workspace = 30;
  g.ops[0].unique_workspace = 10, g.ops[2].unique_workspace = 7;
  auto const first = aitemplate::plan_memory(g);
  CHECK(first->shared_workspace == 128);
  CHECK(first->unique_workspace == 128);
  CHECK(first->workspace_offsets == std::vector<std::int64_t>{0, -1, 64});
  auto const again = aitemplate::plan_memory(g);
  CHECK(again->unique_workspace == 128);
}

TEST_CASE("waves are cut to the limit of parallel ops") {
  graph g;
  g.tensors.push_back(named("x", 64, {}));
  auto const add = [&](std::vector<index> inputs) {
    auto const o = static_cast<index>(g.ops.size());
    g.tensors.push_back(named("t" + std::to_string(o), 64, {o}));
    g.ops.push_back({.inputs = std::move(inputs), .outputs = {static_cast<index>(g.tensors.size() - 1)}});
  };
  for (int i = 0; i < 3; ++i) add({0});
  add({1}), add({2});
  for (int i = 0; i < 4; ++i) add({4});
  using chunks = std::vector<std::vector<index>>;
  CHECK(aitemplate::detail::waves_of(g, 2) == chunks{{0, 1}, {2}, {3, 4}, {5, 6}, {7, 8}});
  CHECK(aitemplate::detail::waves_of(g, 99) == chunks{{0, 1, 2}, {3, 4}, {5, 6, 7, 8}});
}

TEST_CASE("run modes by name, and what is refused") {
  CHECK(*aitemplate::run_mode_of("greedy") == aitemplate::run_mode::greedy);
  CHECK(*aitemplate::run_mode_of("1") == aitemplate::run_mode::multi_stream);
  CHECK(aitemplate::run_mode_of("7").message() == "unknown run mode '7': greedy, multi-stream or naive");
  auto g = chain();
  CHECK(aitemplate::plan_memory(g, {.mode = aitemplate::run_mode::multi_stream, .max_parallel_ops = 0}).message() ==
        "max_parallel_ops must be at least 1");
  g.tensors[2].name = "a";
  CHECK(aitemplate::plan_memory(g).message() == "two tensors are named 'a'");
  g = chain();
  g.tensors[1].view_of = 2;
  CHECK(aitemplate::plan_memory(g).message() == "tensor 'a': what it views must come before it");
  g = chain();
  g.tensors[1].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  CHECK(aitemplate::plan_memory(g).message() == "tensor 'a': its size is negative or beyond 2^59 bytes");
}
