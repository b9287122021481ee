// Guards in flat form beside the trie that they are made of, over random programs and changes.
#include <neap/capture/guard_program.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace neap;
using namespace neap::detail;

namespace {

std::uint64_t add(std::uint64_t a, std::uint64_t b) { return a + b; }
std::uint64_t modulo(std::uint64_t a, std::uint64_t b) { return a % b; }  // traps where b is 0
std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a < b; }

/// A random program of cells: asks expressions, and depends on the answers. Leaves its path and its effect.
struct run {
  std::vector<guard> path;
  std::uint32_t effect;
};
run program(std::uint64_t seed, expression_tape& tape, std::vector<std::uint64_t> const& cells) {
  run r{};
  random_stream draw(seed, 5);
  expression_values values(tape, cells);
  std::vector<std::uint32_t> have{tape.scalar(0), tape.scalar(1), tape.constant(3)};
  auto const number = [&](std::uint32_t n) { return draw.below(n); };
  auto const of = [&](std::uint32_t k) { return expression_values(tape, cells)(k); };
  for (int depth = 0; depth < 6; ++depth) {
    auto const a = have[number(static_cast<std::uint32_t>(have.size()))];
    auto const b = number(3) ? tape.scalar(number(static_cast<std::uint32_t>(cells.size()))) : tape.constant(number(4));
    auto const sum = tape.call(&add, a, b);
    have.push_back(sum);
    if (number(3) == 0) continue;
    auto question = number(2) ? tape.call(&less, sum, tape.constant(6)) : tape.call(&modulo, sum, tape.constant(3));
    if (number(4) == 0) question = sum;
    auto const answer = of(question);
    r.path.push_back({question, answer, {}});
    if (answer != 0 && number(2)) have.push_back(tape.call(&modulo, have.back(), sum == question ? sum : question));
    draw = random_stream(seed * 31 + answer + static_cast<std::uint64_t>(depth) * 7, 5);
  }
  r.effect = have.back();
  return r;
}

}  // namespace

TEST_CASE("look-ups take the path of the program, first and again, and compute its effects") {
  std::size_t hits = 0, misses = 0, switched = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    random_stream draw(seed, 9);
    expression_tape tape;
    guard_trie trie;
    std::vector<std::vector<std::uint32_t>> effects;
    std::vector<std::vector<guard>> paths;
    std::vector<std::uint64_t> cells(5);
    auto const change = [&] { cells[draw.below(5)] = draw.below(6); };
    std::vector<std::uint64_t> values;
    std::vector<std::uint32_t> changed, scratch;
    auto flat = std::make_unique<guard_program>(tape, trie, effects, cells.size());
    std::uint32_t graph = guard_program::none;
    for (int call = 0; call < 60; ++call) {
      auto const before = cells;
      if (call > 0)
        for (auto n = draw.below(3); n > 0; --n) change();
      auto const r = program(seed, tape, cells);
      // The naive look-up: all paths whose answers hold.
      std::uint32_t expected = guard_program::none;
      for (std::uint32_t k = 0; k < paths.size(); ++k) {
        bool same = paths[k].size() == r.path.size();
        for (std::size_t i = 0; same && i < r.path.size(); ++i)
          same = paths[k][i].expr == r.path[i].expr && paths[k][i].value == r.path[i].value;
        if (same) expected = k;
      }
      auto const load = [&] {
        for (std::uint32_t c = 0; c < cells.size(); ++c)
          if (flat->scalar(c) != guard_program::none) values[flat->scalar(c)] = cells[c];
      };
      changed.clear();
      for (std::uint32_t c = 0; c < cells.size(); ++c)
        if (cells[c] != before[c]) changed.push_back(c);
      auto const last = graph;
      if (graph == guard_program::none) values = flat->first_values();
      load();
      graph = graph == guard_program::none ? flat->find(values.data()).graph
                                           : flat->find_again(graph, changed, values.data(), scratch).graph;
      REQUIRE(graph == expected);
      if (graph != guard_program::none) {
        ++hits, switched += last != guard_program::none && last != graph;
        CHECK(values[effects[graph][0]] == expression_values(tape, cells)(r.effect));
        continue;
      }
      ++misses;
      REQUIRE(trie.add(r.path, static_cast<std::uint32_t>(paths.size())) == r.path.size() + 1);
      paths.push_back(r.path), effects.push_back({r.effect});
      flat = std::make_unique<guard_program>(tape, trie, effects, cells.size());
    }
  }
  CHECK(hits > 1000);
  CHECK(misses > 1000);
  CHECK(switched > 100);
}

TEST_CASE("a path that contradicts the trie is not added") {
  expression_tape tape;
  guard_trie trie;
  auto const a = tape.scalar(0), b = tape.scalar(1);
  CHECK(trie.add({{a, 1, {}}, {b, 2, {}}}, 0) == 3);
  CHECK(trie.add({{a, 1, {}}, {a, 2, {}}}, 1) == 1);
  CHECK(trie.add({{b, 1, {}}}, 1) == 0);
  CHECK(trie.add({{a, 1, {}}}, 1) == 1);
  CHECK(trie.add({{a, 1, {}}, {b, 2, {}}, {a, 0, {}}}, 1) == 2);
  CHECK(trie.add({{a, 1, {}}, {b, 3, {}}}, 1) == 3);
  CHECK(trie.nodes().size() == 4);
}
