#include "../support/graph_text.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace neap;
using neap::testing::random_graph;
using neap::testing::toy_operators;
namespace toy = neap::testing::toy;

static_assert(neap::detail::is_word("relu_2") && neap::detail::is_word("X"));  // what an operator may be called
static_assert(!neap::detail::is_word("my-twice") && !neap::detail::is_word("") && !neap::detail::is_word("a.b"));

TEST_CASE("print, then parse, gives the same graph") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    auto const g = random_graph(seed, {.parts = seed % 2 == 0, .copies = 3, .swaps = 2});
    auto const text = to_text(g);
    auto const back = parse_graph(toy_operators::facets, text);
    REQUIRE_MESSAGE(back, back.message());
    CHECK(*back == g);
    CHECK(back->digest() == g.digest());
    CHECK(back->origin_count() == g.origin_count());
    CHECK(to_text(*back) == text);
  }
}

TEST_CASE("the same after edits that remove and renumber") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const g = random_graph(seed);
    graph_editor edit(g);
    for (auto o : g.ops()) {
      bool needed = false;
      for (auto v : g.outputs(o)) needed = needed || !g.uses(v).empty() || g.is_kept(v);
      if (!needed) edit.remove(o);
      else if (graph_traits<op_graph>::is_recomputable(g, o) && index(o) % 3 == 0)
        edit.keep(edit.output(edit.clone(o)), role::output);
    }
    op_graph const h = std::move(edit).finish();
    REQUIRE(verify(h));
    auto const back = parse_graph(toy_operators::facets, to_text(h));
    REQUIRE_MESSAGE(back, back.message());
    CHECK(*back == h);
  }
}

TEST_CASE("the text of a small graph") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 2}}, "x");
  auto const t = edit.add(toy::transpose{}, {x})[0];
  auto const y = edit.add(toy::drop{7, 0.1}, {t})[0];
  edit.set_name(op_id{1}, "say \"hi\"\n");
  edit.keep(y, role::loss);
  std::string const expected =
      "neap graph 1\n"
      "origins 2\n"
      "source v0 input f32[4,2] \"x\"\n"
      "op o0 transpose (v0)\n"
      "  v1 view 0 f32[2,4] strides [1,2]\n"
      "op o1 drop {key=7 rate=0.1} (v1) \"say \\\"hi\\\"\\x0a\"\n"
      "  v2 f32[2,4] loss\n"
      "  v3 u8[2,4]\n"
      "keep v2\n";
  CHECK(to_text(std::move(edit).finish()) == expected);
}

TEST_CASE("numbers that are none, and others at the edges, come back bit by bit") {
  for (double rate : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -0.0, 5e-324,
                      0.1, 1e300, -1.0 / 3})
    for (std::int64_t key : {std::int64_t{0}, INT64_MIN, INT64_MAX}) {
      graph_editor edit(toy_operators::facets);
      edit.add(toy::drop{key, rate}, {edit.add_source(role::input, {dtype::f16, {}})});
      op_graph const g = std::move(edit).finish();
      auto const back = parse_graph(toy_operators::facets, to_text(g));
      REQUIRE_MESSAGE(back, back.message());
      CHECK(*back == g);
    }
}

TEST_CASE("what is wrong is told with line and column") {
  struct bad {
    std::string_view text, says;
  };
  std::string const head = "neap graph 1\nsource v0 input f32[4,4]\n";
  std::vector<std::pair<std::string, std::string>> const all{
      {"", "graph text:1:1: expected 'neap'"},
      {"neap graph 2", "graph text:1:12: only version 1 can be read"},
      {head + "sauce", "graph text:3:1: expected source, op, keep or origins"},
      {head + "source v2 input f32[4]", "graph text:3:8: a value out of order, expected v1"},
      {head + "source v1 output f32[4]", "expected weight, state"},
      {head + "source v1 input f33[4]", "graph text:3:17: unknown element type 'f33'"},
      {head + "source v1 input f32[4,-1]", "an extent is negative"},
      {head + "source v1 input f32[1,1,1,1,1,1,1,1,1]", "more than 8 axes"},
      {head + "source v1 input f32[99999999999,99999999999]", "size overflows 64 bits"},
      {head + "source v1 input f32[0,9999999999,9999999999]", "size overflows 64 bits"},
      {head + "source v1 input f32[99999999999999999999]", "an integer is out of range"},
      {head + "source v1 input f32[4] bytes -1", "negative bytes"},
      {head + "source v1 input f32[4] strides [1,1]", "as many strides as axes"},
      {head + "source v1 view v3 input f32[4]", "comes later"},
      {head + "source v1 input f32[4] \"abc", "the text is not closed"},
      {head + "source v1 input f32[4] \"a\\q\"", "an escape is"},
      {head + "op o0 nary (v0)", "graph text:3:7: unknown operator 'nary'"},
      {head + "op o0 unary {wich=1} (v0)", "'unary' has no attribute 'wich'"},
      {head + "op o0 unary {which=99999999999} (v0)", "cannot have this value"},
      {head + "op o0 unary {which=true} (v0)", "expected an integer"},
      {head + "op o0 drop {rate=x} (v0)", "expected a number"},
      {head + "op o0 unary (v7)\n  v1 f32[4,4]", "graph text:3:14: v7 does not exist"},
      {head + "op o0 unary (v0)\n  v1 view 1 f32[4,4]", "no such argument"},
      {head + "op o0 unary (v0)\n  v1 view own 0 f32[4,4]", "no such output yet"},
      {head + "op o0 unary (v0)\n  v1 f32[4,5]", "should be f32[4,4], is f32[4,5]"},
      {head + "op o0 unary (v0)", "another number of outputs"},
      {head + "op o0 unary (v0) part 2/2\n  v1 f32[4,4]", "there is no such part"},
      {head + "op o0 unary (v0) part 0/2 -1/3\n  v1 f32[4,4]", "graph text:3:27: expected source"},
      {head + "op o0 unary (v0) part 1\n  v1 f32[4,4]", "expected '/'"},
      {head + "origins 1\nop o0 unary (v0) origin o9\n  v1 f32[4,4]", "not among the origins"},
      {head + "op o0 opaque \"f\" (v1)\n  v1 view 0 f32[4]", "views form a cycle"},
      {head + "op o0 unary (v1)\n  v1 f32[4,4]", "wait for each other"},
      {head + "keep v4", "v4 does not exist"},
      {head + "keep v0 v0", "is kept twice"},
      {head + "op o4294967295 unary (v0)", "out of range"},
  };
  for (auto const& [text, says] : all) {
    auto const g = parse_graph(toy_operators::facets, text);
    CAPTURE(text);
    CHECK_FALSE(g);
    CHECK_MESSAGE(g.message().find(says) != std::string::npos, g.message());
    CHECK(g.message().starts_with("graph text:"));
  }
}

TEST_CASE("comments and white space are free") {
  auto const g =
      parse_graph(toy_operators::facets,
                  "neap graph 1 # one\n#two\n\tsource v0 input f32 [ 4 , 4 ]\r\n op o0 unary(v0)v1 f32[4,4] #end");
  REQUIRE_MESSAGE(g, g.message());
  CHECK(g->op_count() == 1);
}

TEST_CASE("damaged texts are refused or read, never more") {
  random_stream draw(3);
  std::size_t read = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const text = to_text(random_graph(seed, {.max_ops = 15, .parts = true, .copies = 1}));
    for (int i = 0; i < 150; ++i) {
      auto damaged = text;
      for (auto n = 1 + draw.below(3); n > 0; --n) {
        auto const at = draw.below(static_cast<std::uint32_t>(damaged.size()));
        switch (draw.below(5)) {
          case 0: damaged[at] = static_cast<char>(draw.below(256)); break;
          case 1: damaged[at] = "0123456789[]{}()\"=,v"[draw.below(20)]; break;
          case 2: damaged.erase(at, 1 + draw.below(8)); break;
          case 3: damaged.insert(at, damaged.substr(draw.below(static_cast<std::uint32_t>(damaged.size())), 6)); break;
          default: damaged.resize(at); damaged += ' ';
        }
      }
      auto const g = parse_graph(toy_operators::facets, damaged);
      if (!g) {
        CHECK_FALSE(g.message().empty());
        continue;
      }
      ++read;
      CHECK(verify(*g));
      auto const again = parse_graph(toy_operators::facets, to_text(*g));
      REQUIRE_MESSAGE(again, again.message());
      CHECK(*again == *g);
    }
  }
  CHECK(read > 0);
}
