// Edits that are data: what is built of them, and what is dead in them.
#include <neap/mutate/build_edit.hpp>

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/verify.hpp>
#include <neap/schedule/order.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;

namespace {

/// a = relu(x), b = tanh(a), c = b + a, which is kept.
struct three_ops {
  graph program = [] {
    graph_editor edit{table_of<standard_operators>()};
    auto const x = edit.add_source(role::input, {dtype::f32, {4}});
    auto const first = edit.add(op::relu{}, {x})[0];
    auto const second = edit.add(op::tanh{}, {first})[0];
    edit.keep(edit.add(op::add{}, {second, first})[0], role::output);
    return graph(std::move(edit).finish());
  }();
  schedule order = given_order{}(program);
  op_id a{0}, b{1}, c{2};
  value_id of(op_id o) const { return program.output(o); }
};

/// Ops in their order, each with what makes its inputs: "0:relu() 1:tanh(0)".
std::string text(edited const& e) {
  std::string all;
  REQUIRE(verify(e.graph).ok());
  REQUIRE(check_order(e.graph, e.order).ok());
  for (auto o : e.order) {
    all += (all.empty() ? "" : " ") + std::to_string(index(o)) + ":" + std::string(e.graph.facets(o).name) + "(";
    for (auto v : e.graph.inputs(o))
      if (auto const p = e.graph.producer(v); p != nothing<op_id>)
        all += (all.back() == '(' ? "" : ",") + std::to_string(index(p));
    all += ")";
  }
  return all;
}

}  // namespace

TEST_CASE("an edit that says nothing gives the graph and its order") {
  three_ops const t;
  auto const e = build(t.program, t.order, {});
  CHECK(e.graph == t.program);
  CHECK(e.order == t.order);
}

TEST_CASE("a copy runs where the edit says, and its reader reads it") {
  three_ops const t;
  graph_edit what;
  auto const again = what.run_again(t.program, t.a, 2);
  for (auto v : t.program.inputs(t.a)) what.reads.push_back(v);
  what.read_instead(t.c, t.of(t.a), again);
  CHECK(text(build(t.program, t.order, what)) == "0:relu() 1:tanh(0) 3:relu() 2:add(1,3)");
}

TEST_CASE("transfers run in the edit's sequence where it has one") {
  three_ops const t;
  graph_edit what;
  using kind = graph_edit::kind;
  auto const store = what.transfer(t.program, kind::store, t.of(t.a), t.of(t.a), 1);
  auto const wait = what.transfer(t.program, kind::wait, t.of(t.a), store, 2);
  what.read_instead(t.c, t.of(t.a), what.transfer(t.program, kind::load, t.of(t.a), wait, 2));
  CHECK(what.new_values == 3);
  CHECK(text(build(t.program, t.order, what)) == "0:relu() 3:store(0) 1:tanh(0) 4:wait(3) 5:load(4) 2:add(1,5)");
  // Another run, of the lowest position, numbered last.
  auto const first = what.run_again(t.program, t.a, 1);
  what.reads.push_back(t.program.inputs(t.a)[0]);
  what.read_instead(t.b, t.of(t.a), first);
  for (auto k : {3u, 0u, 1u, 2u}) what.sequence.push_back(k);
  CHECK(text(build(t.program, t.order, what)) ==
        "0:relu() 6:relu() 3:store(0) 1:tanh(6) 4:wait(3) 5:load(4) 2:add(1,5)");
}

TEST_CASE("of several rereads of one value by one op the last one counts") {
  graph_edit what;
  value_id const v{3}, w{5};
  what.rereads.push_back({op_id{2}, v, value_id{10}});
  what.rereads.push_back({op_id{1}, v, value_id{11}});
  what.rereads.push_back({op_id{2}, w, value_id{12}});
  what.rereads.push_back({op_id{2}, v, value_id{13}});
  what.sort_rereads();
  REQUIRE(what.rereads.size() == 3);
  CHECK(what.rereads[0].to == value_id{11});
  CHECK(what.rereads[1].to == value_id{13});
  CHECK(what.rereads[2].to == value_id{12});
  what.read_instead(op_id{2}, v, value_id{14});
  CHECK(what.rereads[1].to == value_id{14});
  CHECK(what.rereads.size() == 3);
}

TEST_CASE("what nobody reads any more is left out, back to what only that has read") {
  three_ops const t;
  graph_edit what;
  what.read_instead(t.c, t.of(t.b), t.of(t.a));
  remove_dead(t.program, what, {t.b});
  REQUIRE(what.left_out.size() == 1);
  CHECK(what.left_out[0] == t.b);
  CHECK(text(build(t.program, t.order, what)) == "0:relu() 1:add(0,0)");

  graph_edit all;  // c is kept, and needs all the others
  remove_dead(t.program, all, {t.a, t.b, t.c});
  CHECK(all.left_out.empty());
}

TEST_CASE("new ops that are dead do not run, and the others are numbered anew") {
  three_ops const t;
  graph_edit what;
  using kind = graph_edit::kind;
  auto const store = what.transfer(t.program, kind::store, t.of(t.b), t.of(t.b), 2);
  (void)what.transfer(t.program, kind::load, t.of(t.b), store, 2);  // read by none
  auto const again = what.run_again(t.program, t.a, 2);
  what.reads.push_back(t.program.inputs(t.a)[0]);
  what.read_instead(t.c, t.of(t.a), again);
  for (auto k : {0u, 1u, 2u}) what.sequence.push_back(k);
  remove_dead(t.program, what, {op_id{4}});  // the load, then the store that it has read
  CHECK(what.runs.size() == 1);
  CHECK(what.new_values == 1);
  CHECK(what.reads.size() == 1);
  CHECK(what.sequence.size() == 1);
  CHECK(text(build(t.program, t.order, what)) == "0:relu() 1:tanh(0) 3:relu() 2:add(1,3)");
}

TEST_CASE("pins keep what is dead, unless it may run again and does elsewhere") {
  three_ops const t;
  auto const pinned = [&](pin p) {
    graph_editor edit{t.program};
    edit.add_pins(t.b, pin_set(p));
    return graph(std::move(edit).finish());
  };
  auto const left_out = [&](graph const& g, bool again) {
    graph_edit what;
    auto in_place = t.of(t.a);
    if (again) in_place = what.run_again(g, t.b, 2), what.reads.push_back(t.of(t.a));
    what.read_instead(t.c, t.of(t.b), in_place);
    remove_dead(g, what, {t.b});
    return what.left_out.size();
  };
  CHECK(left_out(t.program, false) == 1);
  CHECK(left_out(pinned(pin::run_once), false) == 0);
  CHECK(left_out(pinned(pin::never_out), false) == 0);
  CHECK(left_out(pinned(pin::never_out), true) == 1);
}
