#include <neap/ir/digests.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/verify.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace neap;
using neap::testing::random_graph;
using neap::testing::renumbered;
using neap::testing::toy_operators;
namespace toy = neap::testing::toy;

namespace {

digest from_scratch(op_graph const& g) {
  graph_editor edit(g);
  edit.derive_all();
  return std::move(edit).finish().digest();
}

std::uint32_t below(random_stream& draw, std::size_t n) { return draw.below(static_cast<std::uint32_t>(n)); }

/// One edit of any kind; whether the result can still be ordered is for the caller to see.
void edit_once(graph_editor& edit, random_stream& draw) {
  auto const& g = edit.graph();
  auto const op = [&] { return id_at<op_id>(below(draw, g.op_count())); };
  auto const value = [&] { return id_at<value_id>(below(draw, g.value_count())); };
  auto const is_source = [&](value_id v) { return g.producer(v) == nothing<op_id>; };
  switch (draw.below(9)) {
    case 0: {  // recompute for some readers
      auto const o = op();
      if (!graph_traits<op_graph>::is_recomputable(g, o) || g.outputs(o).empty()) return;
      auto const j = below(draw, g.outputs(o).size());
      auto const copy = edit.clone(o);
      std::vector<op_id> readers;
      for (auto u : g.ops())
        if (u != copy && draw.below(2)) readers.push_back(u);
      edit.replace_uses(g.outputs(o)[j], edit.output(copy, static_cast<int>(j)), readers);
      return;
    }
    case 1: {  // read another value of the type
      auto const o = op();
      if (g.inputs(o).empty()) return;
      auto const i = below(draw, g.inputs(o).size());
      auto const v = value();
      if (g.layout(v) == g.layout(g.inputs(o)[i]) && v < g.outputs(o)[0]) edit.set_input(o, i, v);
      return;
    }
    case 2: {
      auto const v = value();
      return is_source(v) ? edit.set_role(v, draw.below(2) ? role::weight : role::state)
                          : edit.set_role(v, draw.below(2) ? role::gradient : role::activation);
    }
    case 3: return edit.keep(value(), role::output);
    case 4: return edit.drop(value());
    case 5: edit.add(toy::unary{7}, {value()}); return;
    case 6: edit.add_source(role::weight, {dtype::f32, {static_cast<std::int64_t>(1 + draw.below(3))}}); return;
    case 7: edit.replace_uses(value(), value()); return;
    default: {  // remove an op nobody needs
      auto const o = op();
      for (auto v : g.outputs(o)) {
        if (g.is_kept(v)) return;
        for (auto u : g.ops())
          for (auto x : g.inputs(u))
            if (x == v) return;
      }
      edit.remove(o);
    }
  }
}

}  // namespace

TEST_CASE("after any edits the digest is that of the graph built anew, in any numbering") {
  std::size_t kept = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    op_graph g = random_graph(seed, {.max_ops = 40, .copies = 2});
    random_stream draw(seed, 5);
    CHECK(renumbered(g, seed + 1).digest() == g.digest());
    for (int step = 0; step < 12; ++step) {
      CAPTURE(seed);
      CAPTURE(step);
      op_graph next;
      graph_editor edit(g);
      for (auto n = 1 + draw.below(4); n > 0; --n) edit_once(edit, draw);
      try {
        next = std::move(edit).finish();
      } catch (error const&) {
        continue;  // what was removed is read by something added later
      }
      auto const sound = verify(next);
      if (!sound) {  // edits at random may make cycles, second updates of a version or wrong types, but no stale tables
        auto const& why = sound.message();
        bool const expected = why.find("wait for each other") != why.npos || why.find("updated twice") != why.npos ||
                              why.find("shape rule") != why.npos || why.find("should be") != why.npos ||
                              why.find("shares its storage otherwise") != why.npos ||
                              why.find("at other strides") != why.npos || why.find("but its role is") != why.npos;
        CHECK_MESSAGE(expected, why);
        continue;
      }
      REQUIRE(next.digest() == from_scratch(next));
      REQUIRE(renumbered(next, seed * 31 + static_cast<std::uint64_t>(step)).digest() == next.digest());
      g = std::move(next);
      ++kept;
    }
  }
  CHECK(kept > 500);
}

TEST_CASE("an edit and its undoing give the digest back") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const g = random_graph(seed);
    for (auto o : g.ops()) {
      if (!graph_traits<op_graph>::is_recomputable(g, o)) continue;
      auto const v = g.outputs(o)[0];
      if (g.uses(v).empty()) continue;
      std::vector<op_id> const late{g.uses(v).back().op};
      graph_editor edit(g);
      auto const copy = edit.clone(o);
      auto const again = edit.output(copy);
      edit.replace_uses(v, again, late);
      op_graph const h = std::move(edit).finish();
      REQUIRE(h.digest() != g.digest());
      CHECK(h.digest(copy) == h.digest(o));
      graph_editor undo(h);
      undo.replace_uses(again, v);
      undo.remove(copy);
      op_graph const back = std::move(undo).finish();
      REQUIRE(back.digest() == g.digest());
      REQUIRE(back == g);
    }
  }
}

namespace {

struct choices {
  std::int32_t which = 0;
  double scale = 1;
  std::int64_t key = 5;
  dtype element = dtype::f32;
  std::int64_t columns = 4;
  role source = role::weight, result = role::output;
  bool other_use = false, swap_arguments = false, other_weight = false, keep_hidden = false;
  bytes_t bytes = -1;
  std::int64_t part = -1, parts = 2;
  bool nested = false;
  int of = 0;
  double seconds = 1;
  char const* target = "lib::f";
  char const* details = "";
};

digest digest_of(choices const& c) {
  graph_editor edit(toy_operators::facets);
  tensor_type const t{c.element, {4, c.columns}};
  auto const x = edit.add_source(role::input, t);
  value_id const w[] = {edit.add_source(c.source, t), edit.add_source(c.source, t)};
  auto const a = edit.add(toy::unary{c.which}, {x})[0];
  auto const b = edit.add(toy::drop{c.key, 0.5}, {c.other_use ? x : a})[0];
  auto const d = c.swap_arguments ? edit.add(toy::binary{0, c.scale}, {b, w[c.other_weight]})[0]
                                  : edit.add(toy::binary{0, c.scale}, {w[c.other_weight], b})[0];
  op::opaque f;
  f.seconds = c.seconds;
  output_rule const out[] = {{tensor_layout::dense(t), alias_kind::fresh, -1, c.bytes},
                             {tensor_layout::dense(t), alias_kind::view, c.of, -1}};
  value_id const in[] = {d, a};
  auto const o = edit.add_opaque(c.target, f, in, out, {}, c.details);
  edit.keep(edit.output(o), c.result);
  if (c.keep_hidden) edit.keep(d, role::activation);
  if (c.part >= 0)
    edit.set_part(o, edit.part_row({c.part, c.parts, c.nested ? edit.part_row({1, 5}) : nothing<part_id>}));
  return std::move(edit).finish().digest();
}

}  // namespace

TEST_CASE("graphs that differ in one thing have different digests") {
  std::vector<choices> const all{{},
                                 {.which = 1},
                                 {.scale = 2},
                                 {.scale = -1},
                                 {.key = 6},
                                 {.element = dtype::f16},
                                 {.columns = 8},
                                 {.source = role::constant},
                                 {.result = role::gradient},
                                 {.other_use = true},
                                 {.swap_arguments = true},
                                 {.other_weight = true},
                                 {.keep_hidden = true},
                                 {.part = 0},
                                 {.part = 1},
                                 {.part = 1, .parts = 3},
                                 {.part = 1, .nested = true},
                                 {.bytes = 1000},
                                 {.of = 1},
                                 {.seconds = 2},
                                 {.target = "lib::g"},
                                 {.details = "{\"dim\":0}"},
                                 {.details = "{\"dim\":1}"}};
  std::set<digest> met;
  for (auto const& c : all) CHECK(met.insert(digest_of(c)).second);
  CHECK(digest_of({}) == digest_of({}));
}

TEST_CASE("copies are told apart by who reads them") {
  // Two chains a -> b that compute the same; c reads one b, d the other, e reads one of the a.
  auto const make = [](int e_reads, int c_reads) {
    graph_editor edit(toy_operators::facets);
    auto const x = edit.add_source(role::input, {dtype::f32, {4}});
    value_id a[2], b[2];
    for (int i = 0; i < 2; ++i) {
      a[i] = edit.add(toy::unary{1}, {x})[0];
      b[i] = edit.add(toy::unary{2}, {a[i]})[0];
    }
    edit.keep(edit.add(toy::unary{3}, {b[c_reads]})[0], role::output);
    edit.keep(edit.add(toy::unary{4}, {b[1 - c_reads]})[0], role::output);
    edit.keep(edit.add(toy::unary{5}, {a[e_reads]})[0], role::output);
    return std::move(edit).finish().digest();
  };
  CHECK(make(0, 0) == make(1, 1));  // only the names of the chains differ
  CHECK(make(0, 1) == make(1, 0));
  CHECK(make(0, 0) != make(0, 1));
}

TEST_CASE("every other argument gives another digest") {
  std::size_t tried = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const g = random_graph(seed, {.updates = false});
    for (auto o : g.ops())
      for (std::size_t i = 0; i < g.inputs(o).size(); ++i)
        for (auto v : g.values()) {
          auto const old = g.inputs(o)[i];
          if (v == old || !(g.layout(v) == g.layout(old)) || v >= g.outputs(o)[0]) continue;
          auto const p = g.producer(v), q = g.producer(old);
          if (p != nothing<op_id> && q != nothing<op_id> && g.digest(p) == g.digest(q)) continue;  // computes the same
          graph_editor edit(g);
          edit.set_input(o, i, v);
          CHECK(std::move(edit).finish().digest() != g.digest());
          ++tried;
        }
  }
  CHECK(tried > 1000);
}

namespace {
struct some_operators : operator_set<op::add, op::relu> {};
struct other_operators : operator_set<op::relu, op::mul, op::add> {};
struct no_operators : operator_set<> {};
}  // namespace

TEST_CASE("the order of the operators of a set changes no digest") {
  auto const made = [](operator_table operators) {
    graph_editor edit(operators);
    auto const x = edit.add_source(role::input, {dtype::f32, {4}});
    element_program make(2);
    make.add(op::relu{}, dtype::f32, {*make.add(op::add{}, dtype::f32, {0, 1})});
    auto const y = edit.add(op::relu{}, {edit.add(op::add{}, {x, x})[0]})[0];
    edit.keep(edit.add(op::fused{make}, {x, y})[0], role::output);
    return std::move(edit).finish().digest();
  };
  auto const digest = made(table_of<standard_operators>());
  CHECK(digest == made(some_operators::facets));
  CHECK(digest == made(other_operators::facets));
  CHECK(digest == made(no_operators::facets));
  // A name's digest, and so every graph's, is a function of the name alone: plan files refer to graphs by it.
  static_assert(detail::name_digest("add") == 0xe7ea26aa611077a0);
}

TEST_CASE("different graphs have different digests") {
  std::set<digest> met;
  std::size_t n = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed, ++n) met.insert(random_graph(seed, {.least_ops = 8}).digest());
  CHECK(met.size() == n);
}
