// Plans in which ops that write in place on a temporary run again: the right replays are accepted, the wrong ones refused.
#include <neap/verify/plan_verifier.hpp>

#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using namespace neap;

namespace {

op::opaque a_second() {
  op::opaque x;
  x.seconds = 1;
  return x;
}

/// conv, bias_, relu_ on what conv makes, a reader far behind, and an update of conv's weight.
struct sample {
  graph_editor edit{operator_table(standard_operators::facets)};
  tensor_layout const layout = tensor_layout::dense({dtype::f32, {64}});
  value_id x, w, c, b, r, s, late, trained;
  op_id conv, bias, relu, other, reader, update;

  op_id add(std::string const& name, std::vector<value_id> const& in, alias_kind alias = alias_kind::fresh,
            int of = -1) {
    output_rule const rule{layout, alias, of, -1};
    return edit.add_opaque(name, a_second(), in, {&rule, 1}, name);
  }
  sample() {
    x = edit.add_source(role::input, layout.type, "x");
    w = edit.add_source(role::weight, layout.type, "w");
    c = edit.output(conv = add("conv", {x, w}));
    b = edit.output(bias = add("bias_", {c}, alias_kind::fresh, 0));
    r = edit.output(relu = add("relu_", {b}, alias_kind::fresh, 0));
    s = edit.output(other = add("other", {r}));
    late = edit.output(reader = add("late", {s, r}));
    trained = edit.output(update = add("sgd", {w, s}, alias_kind::update, 0));
    edit.keep(late, role::output);
  }
  std::vector<op_id> order() const { return {conv, bias, relu, other, reader, update}; }
};

struct replayed {
  sample s;
  op_id conv, bias, relu;
  std::vector<op_id> order;
  /// conv, bias_ and relu_ again before the late reader.
  replayed() {
    conv = s.edit.clone(s.conv), bias = s.edit.clone(s.bias), relu = s.edit.clone(s.relu);
    s.edit.set_input(bias, 0, s.edit.output(conv)), s.edit.set_input(relu, 0, s.edit.output(bias));
    s.edit.set_input(s.reader, 1, s.edit.output(relu));
    order = {s.conv, s.bias, s.relu, s.other, conv, bias, relu, s.reader, s.update};
  }
};

graph original() { return graph(std::move(sample{}.edit).finish()); }

std::string verdict(op_graph&& edited, std::vector<op_id> order, memory_options options = {}) {
  graph const g(std::move(edited));
  schedule plan_order;
  plan_order.order.assign(order.begin(), order.end());
  auto const before = original();
  auto const p =
      make_plan(candidate{g, plan_order, simulate(g, plan_order, given_latencies{}, options)}, before, options);
  auto const found = verify_plan(before, p);
  return found.ok() ? std::string() : found.message();
}

}  // namespace

TEST_CASE("a producer and its writers in place may run again together, on bytes of their own") {
  for (bool const takeover : {true, false}) {
    CHECK(verdict(std::move(sample{}.edit).finish(), sample{}.order(), {64, takeover}) == "");
    replayed again;
    CHECK(verdict(std::move(again.s.edit).finish(), again.order, {64, takeover}) == "");
    replayed checked;
    auto const g = std::move(checked.s.edit).finish();
    CHECK(verify(g).message() == "");
    CHECK(g.overwrites(g.output(checked.relu)) == g.output(checked.bias));
  }
}

TEST_CASE("a copy that stops one write too early is refused") {
  replayed again;
  again.s.edit.set_input(again.s.reader, 1, again.s.edit.output(again.bias));
  again.s.edit.remove(again.relu);
  std::erase(again.order, again.relu);
  for (auto& o : again.order)
    if (index(o) > index(again.relu)) o = op_id{static_cast<std::uint32_t>(index(o)) - 1};
  CHECK(verdict(std::move(again.s.edit).finish(), again.order) != "");
}

TEST_CASE("a copy that writes on the original storage is refused") {
  replayed again;
  again.s.edit.set_input(again.bias, 0, again.s.c);
  CHECK(verdict(std::move(again.s.edit).finish(), again.order) != "");
  replayed last;
  last.s.edit.set_input(last.relu, 0, last.s.b);
  CHECK(verdict(std::move(last.s.edit).finish(), last.order) != "");
}

TEST_CASE("a copy that runs after an update of what it reads is refused") {
  replayed again;
  auto order = again.order;
  std::rotate(order.begin() + 4, order.begin() + 8, order.end());  // sgd before the copies
  CHECK(verdict(std::move(again.s.edit).finish(), order) != "");
  replayed newer;
  newer.s.edit.set_input(newer.conv, 1, newer.s.trained);
  std::rotate(newer.order.begin() + 4, newer.order.begin() + 8, newer.order.end());
  CHECK(verdict(std::move(newer.s.edit).finish(), newer.order) != "");
}

TEST_CASE("what an op overwrites is neither read later nor put elsewhere") {
  sample s;
  s.edit.set_input(s.other, 0, s.c);  // reads what bias_ has overwritten
  CHECK(verdict(std::move(s.edit).finish(), s.order()) != "");

  graph const g = original();
  schedule order;
  for (auto o : sample{}.order()) order.order.push_back(o);
  auto p = make_plan(candidate{g, order, simulate(g, order, given_latencies{})}, g, memory_options{});
  REQUIRE(verify_plan(g, p).ok());
  auto const written = std::find_if(p.buffers.begin(), p.buffers.end(),
                                    [](plan_buffer const& b) { return b.takes_over != nothing<storage_id>; });
  REQUIRE(written != p.buffers.end());
  written->takes_over = nothing<storage_id>;
  written->offset = p.arena_bytes, p.arena_bytes += written->bytes;
  auto const found = verify_plan(g, p);
  CHECK(!found.ok());
  CHECK(std::any_of(found.violations().begin(), found.violations().end(),
                    [](violation const& v) { return v.kind == violation_kind::bad_takeover; }));
}

TEST_CASE(
    "a donated input is there from the beginning, is freed after its last use, and does not outlast an op on it") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const layout = tensor_layout::dense({dtype::f32, {64}});
  auto const x = edit.add_source(role::donated, layout.type, "x");
  output_rule const over{layout, alias_kind::fresh, 0, -1}, fresh{layout, alias_kind::fresh, -1, -1};
  auto const y = edit.output(edit.add_opaque("relu_", a_second(), {{x}}, {&over, 1}));
  auto const z = edit.output(edit.add_opaque("f", a_second(), {{y}}, {&fresh, 1}));
  auto const last = edit.output(edit.add_opaque("g", a_second(), {{z}}, {&fresh, 1}));
  edit.keep(last, role::output);
  graph const g(std::move(edit).finish());
  REQUIRE(verify(g).message() == "");
  schedule order;
  for (auto o : g.ops()) order.order.push_back(o);
  auto const result = simulate(g, order, given_latencies{}, {.alignment = 1});
  CHECK(result.bytes_at == std::vector<bytes_t>{256, 512, 512});
  CHECK(result.resident_bytes == 0);
  auto p = make_plan(candidate{g, order, result}, g, memory_options{.alignment = 1});
  CHECK(p.arena_bytes == 512);
  CHECK(verify_plan(g, p).ok());
  for (auto& b : p.buffers)
    if (b.storage == g.storage(x)) b.first = 1, b.last = 1;
  CHECK(!verify_plan(g, p).ok());
}
