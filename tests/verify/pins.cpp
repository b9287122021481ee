// Plans that break a pin are refused, each way by its violation; plans of the same edits that break none are right.
#include <neap/verify/pins.hpp>

#include <neap/ir/pin_rules.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/fission.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/graph_maker.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using kind = violation_kind;

namespace {

/// x -> a = tanh(x) -> b = tanh(a) -> c = tanh(b) -> view of c -> e = view * broadcast... with a late reader of a, b and c.
struct net {
  graph g;
  op_id a{}, b{}, c{}, view{}, late{};
  value_id va{}, vb{}, vc{};
};
net make_net() {
  graph_editor edit{operator_table(standard_operators::facets)};
  net n;
  auto const x = edit.add_source(role::input, {dtype::f32, {8, 64}}, "x");
  auto const made = [&](value_id v) { return edit.graph().producer(v); };
  n.va = edit.add(op::tanh{}, {x})[0], n.a = made(n.va);
  n.vb = edit.add(op::tanh{}, {n.va})[0], n.b = made(n.vb);
  n.vc = edit.add(op::tanh{}, {n.vb})[0], n.c = made(n.vc);
  auto const seen = edit.add(op::reshape{{512}}, {n.vc})[0];
  n.view = made(seen);
  auto d = edit.add(op::reshape{{8, 64}}, {seen})[0];
  for (int i = 0; i < 4; ++i) d = edit.add(op::square{}, {d})[0];
  for (auto v : {n.vc, n.vb, n.va}) d = edit.add(op::mul{}, {d, v})[0];
  n.late = made(d);
  edit.keep(d, role::output);
  n.g = graph(std::move(edit).finish());
  return n;
}

candidate judged(graph g, schedule order, memory_options o = {}) {
  auto result = simulate(g, order, given_or<roofline>{roofline::host(2)}, o);
  return {std::move(g), std::move(order), std::move(result)};
}
candidate as_it_came(graph const& g) { return judged(g, given_order{}(g)); }

/// A plan of the edit, which knows nothing of the pins, of the pinned original.
verification verdict(graph const& pinned, edited e) {
  return verify_plan(pinned, make_plan(judged(std::move(e.graph), std::move(e.order)), pinned, {}));
}

std::optional<edited> again(candidate const& c, value_id v) {
  recompute m{c.graph.storage(v), 9};
  m.keep_ratio = 0;
  return apply_mutation(m, c);
}
std::optional<edited> out(candidate const& c, value_id v) {
  swap_out m{c.graph.storage(v)};
  m.left = 6, m.resume = 9;
  return apply_mutation(m, c);
}
std::optional<edited> in_parts(candidate const& c, value_id along, std::uint32_t first, std::uint32_t last) {
  return fission_of{{along, 0}, first, last, 2}.apply(c);
}

}  // namespace

TEST_CASE("what each pin forbids is found, and what it allows is right") {
  auto const n = make_net();
  auto const c = as_it_came(n.g);
  struct trial {
    char const* what;
    std::optional<edited> made;
    op_id op;
    pin_set forbidden_by;
  };
  std::vector<trial> trials;
  trials.push_back({"a runs again", again(c, n.va), n.a, pin::keep | pin::run_once});
  trials.push_back({"b leaves memory", out(c, n.vb), n.b, pin::keep | pin::never_out});
  trials.push_back(
      {"a and b run in parts", in_parts(c, n.va, 0, 1), n.b, pin::keep | pin::run_once | pin::never_in_parts});
  for (auto const& t : trials) {
    CAPTURE(t.what);
    REQUIRE(t.made);
    for (auto p : {pin::keep, pin::run_again, pin::run_once, pin::never_in_parts, pin::never_out}) {
      CAPTURE(name_of(p));
      auto const original = pinned(n.g, {{p, t.op}});
      auto const v = verdict(original, *t.made);
      if (!t.forbidden_by.has(p)) CHECK(v.message() == "");
      else CHECK_MESSAGE(v.has(kind::broken_pin), v.message());
      if (t.forbidden_by.has(p)) CHECK(v.message().find(name_of(p)) != std::string::npos);
    }
  }
}

TEST_CASE("a pin of a view pins what it is a view of") {
  auto const n = make_net();
  auto const c = as_it_came(n.g);
  for (auto const& [p, e] : {std::pair{pin::keep, again(c, n.vc)}, std::pair{pin::never_out, out(c, n.vc)}}) {
    REQUIRE(e);
    auto const original = pinned(n.g, {{p, n.view}});
    CHECK(original.pins(n.vc) == pin_set(p));
    CHECK(verdict(original, *e).has(kind::broken_pin));
  }
}

TEST_CASE("a pinned op that is left out is found, though its result is dead") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {8}});
  auto const log = edit.add(op::tanh{}, {x})[0];
  edit.keep(edit.add(op::square{}, {x})[0], role::output);
  auto const g = graph(std::move(edit).finish());
  graph_editor without{g};
  without.remove(g.producer(log));
  edited e{graph(std::move(without).finish()), {}};
  e.order = given_order{}(e.graph);
  CHECK(verdict(g, e).message() == "");
  for (auto p : {pin::keep, pin::run_once, pin::never_in_parts, pin::never_out})
    CHECK(verdict(pinned(g, {{p, log}}), e).has(kind::broken_pin));
  CHECK(verdict(pinned(g, {{pin::run_again, log}}), e).message() == "");
}

TEST_CASE("a second run of a pinned op under another origin is found") {
  auto const n = make_net();
  graph_editor edit{n.g};
  auto const twin = edit.add(op::tanh{}, {n.g.sources()[0]})[0];  // computes a, and is no op of the original
  edit.set_rewritten(edit.graph().producer(twin));
  edit.replace_uses(n.va, twin, {&n.late, 1});
  edited e{graph(std::move(edit).finish()), {}};
  for (auto o : e.graph.ops())
    if (o != n.late && index(o) < n.g.op_count()) e.order.order.push_back(o);
  e.order.order.push_back(id_at<op_id>(n.g.op_count()));
  e.order.order.push_back(n.late);
  CHECK(verdict(n.g, e).message() == "");
  for (auto p : {pin::keep, pin::run_once}) {
    CHECK(verdict(pinned(n.g, {{p, n.a}}), e).has(kind::broken_pin));
    CHECK(verdict(pinned(n.g, {{p, n.b}}), e).message() == "");
  }
}

TEST_CASE("nothing stands for the result of a pinned op, though it has the same elements") {
  auto const n = make_net();
  using edit_of = std::function<value_id(graph_editor&, value_id)>;
  std::vector<std::pair<char const*, edit_of>> const ways{
      {"negated twice", [](graph_editor& e, value_id v) { return e.add(op::neg{}, {e.add(op::neg{}, {v})[0]})[0]; }},
      {"cast", [](graph_editor& e, value_id v) { return e.add(op::cast{dtype::f32}, {v})[0]; }},
      {"padded",
       [](graph_editor& e, value_id v) {
         return e.add(op::pad{0, 0, 0, 0}, {v})[0];
       }},
      {"of pieces", [](graph_editor& e, value_id v) {
         auto const x = e.graph().inputs(e.graph().producer(v))[0];
         std::vector<value_id> pieces;
         for (std::int64_t k : {0, 4}) pieces.push_back(e.add(op::tanh{}, {e.add(op::slice{0, k, k + 4}, {x})[0]})[0]);
         return e.emit(view_of(op::concat{0}), span_of(pieces)).front();
       }}};
  for (auto const& [what, way] : ways)
    for (bool const stored : {false, true}) {
      CAPTURE(what);
      CAPTURE(stored);
      graph_editor edit{n.g};
      auto v = way(edit, n.va);
      auto const made = edit.graph().op_count();
      for (auto o = n.g.op_count(); o < made; ++o) edit.set_rewritten(id_at<op_id>(o));
      if (stored) v = edit.add(op::load{}, {edit.add(op::store{}, {v})[0]})[0];
      edit.replace_uses(n.va, v, {&n.late, 1});
      edited e{graph(std::move(edit).finish()), {}};
      for (auto o : e.graph.ops())
        if (o != n.late) e.order.order.push_back(o);
      e.order.order.push_back(n.late);
      CHECK(verdict(n.g, e).message() == "");
      for (auto p : {pin::keep, pin::run_once, pin::never_in_parts, pin::never_out})
        CHECK(verdict(pinned(n.g, {{p, n.a}}), e).has(kind::broken_pin));
      CHECK(verdict(pinned(n.g, {{pin::run_again, n.a}}), e).message() == "");
      CHECK(verdict(pinned(n.g, {{pin::keep, n.b}}), e).message() == "");
    }
}

TEST_CASE("what was put together from parts, and its parts, are not swapped out where the whole may not be") {
  auto const n = make_net();
  auto const parts = in_parts(as_it_came(n.g), n.va, 0, 1);
  REQUIRE(parts);
  auto const c = judged(parts->graph, parts->order);
  std::size_t found = 0, tried = 0;
  auto const of_b = pinned(n.g, {{pin::never_out, n.b}});
  for (auto s : c.graph.storages())
    for (std::uint32_t left = 0; left + 2 < c.order.size(); ++left) {
      swap_out const m{s, left, left + 2};
      if (c.graph.is_resident(s) || positions(c.order)[c.graph.producer(c.graph.record(s).first)] > left) continue;
      bool late = false, early = true;
      for (auto v : c.graph.values())
        if (c.graph.storage(v) == s) {
          early = early && positions(c.order)[c.graph.producer(v)] <= left;
          for (auto const& u : c.graph.uses(v)) late = late || positions(c.order)[u.op] >= left + 2;
        }
      if (!late || !early || c.graph.record(s).updates != 0) continue;
      auto const e = apply_mutation(m, c);
      if (!e) continue;
      ++tried;
      bool is_b = false;
      for (auto v : c.graph.values())
        if (c.graph.storage(v) == s && c.graph.origin(c.graph.producer(v)) == n.b) is_b = true;
      auto const v = verdict(of_b, *e);
      CHECK(v.has(kind::broken_pin) == is_b);
      found += is_b;
    }
  CHECK(tried > 0);
  CHECK(found > 0);
  // The library's own fission of the pinned graph gives parts and whole the pin.
  auto const own = in_parts(as_it_came(of_b), n.va, 0, 1);
  REQUIRE(own);
  std::size_t pinned_values = 0;
  for (auto v : own->graph.values()) pinned_values += own->graph.pins(v).has(pin::never_out);
  CHECK(pinned_values >= 5);  // two parts, the room for the whole, and the whole with one and two of them
  CHECK(verdict(of_b, *own).message() == "");
}
