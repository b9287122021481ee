#include <neap/ir/pins.hpp>

#include <neap/ir/pin_rules.hpp>
#include <neap/ir/verify.hpp>
#include <neap/mutate/gap.hpp>

#include "../support/graph_text.hpp"
#include "../support/message.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/pin_counts.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace neap;
using namespace neap::testing;

namespace {

/// x -> y = relu(x) -> seen = reshape(y) -> z = tanh(seen), and w, which is written in place.
struct small {
  graph_editor edit{operator_table(standard_operators::facets)};
  value_id x = edit.add_source(role::input, {dtype::f32, {4, 2}}, "x");
  value_id w = edit.add_source(role::weight, {dtype::f32, {8}}, "w");
  value_id y = edit.add(op::relu{}, {x})[0];
  value_id seen = edit.add(op::reshape{{8}}, {y})[0];
  value_id z = edit.add(op::tanh{}, {seen})[0];
  value_id written = edit.add(op::accumulate{}, {w, z})[0];
  op_id maker(value_id v) const { return edit.graph().producer(v); }
};

constexpr pin all_pins[] = {pin::keep, pin::run_again, pin::run_once, pin::never_in_parts, pin::never_out};

}  // namespace

TEST_CASE("names of pins") {
  for (auto p : all_pins) CHECK(pin_of(name_of(p)) == p);
  CHECK(!pin_of("kept"));
  CHECK(!pin_of(""));
  CHECK(to_string(pin::keep | pin::never_out) == "keep, never_out");
  CHECK(to_string(pin_set{}) == "");
}

TEST_CASE("what a pin forbids") {
  small s;
  s.edit.add_pins(s.seen, pin::keep);
  s.edit.add_pins(s.z, pin::run_once | pin::never_out);
  auto const y = s.maker(s.y), seen = s.maker(s.seen), z = s.maker(s.z), update = s.maker(s.written);
  s.edit.add_pins(update, pin::never_in_parts);
  auto const g = graph(std::move(s.edit).finish());
  CHECK(verify(g).message() == "");
  // A view is pinned with what it is a view of.
  for (auto o : {y, seen}) {
    CHECK(g.pins(o) == pin_set(pin::keep));
    CHECK(!g.may_recompute(o));
    CHECK(!g.may_cut(o));
    CHECK(!g.may_replace(o));
  }
  CHECK(!g.may_swap(g.storage(s.y)));
  CHECK(!can_leave(g, g.storage(s.y)));
  CHECK(g.pins(s.x).empty());
  CHECK(g.pins(z) == (pin::run_once | pin::never_out));
  CHECK(g.pins(s.z) == pin_set(pin::never_out));
  CHECK(!graph_traits<graph>::is_recomputable(g, z));
  CHECK(g.may_recompute(update));
  CHECK(!g.may_cut(update));
  CHECK(g.has_pins());
}

TEST_CASE("pins that cannot be are refused, and nothing is pinned then") {
  small s;
  s.edit.set_name(s.maker(s.y), "block.relu");
  s.edit.add_pins(s.y, pin::keep);
  CHECK(message_of([&] { s.edit.add_pins(s.y, pin::run_again); }) ==
        "graph: op 0 (block.relu) is pinned run_again and keep, which exclude each other");
  CHECK(message_of([&] { s.edit.add_pins(s.z, pin::run_again | pin::run_once); }) ==
        "graph: op 2 (tanh) is pinned run_again and run_once, which exclude each other");
  CHECK(message_of([&] { s.edit.add_pins(s.written, pin::run_again); }) ==
        "graph: op 3 (accumulate) writes in place: it cannot be pinned run_again");
  CHECK(message_of([&] { s.edit.add_pins(s.x, pin::run_once); }) ==
        "graph: no op makes the value 0: it cannot be pinned run_once");
  CHECK(s.edit.graph().pins(s.maker(s.z)).empty());
  CHECK(s.edit.graph().pins(s.maker(s.y)) == pin_set(pin::keep));
}

TEST_CASE("graphs that differ in pins differ in their digests; without pins nothing has changed") {
  small plain;
  auto const g = graph(std::move(plain.edit).finish());
  std::set<std::string> seen{to_hex(g.digest())};
  for (auto p : all_pins)
    for (auto o : g.ops()) {
      if (p == pin::run_again && index(o) == 3) continue;
      seen.insert(to_hex(pinned(g, {{p, o}}).digest()));
    }
  // keep and never_out of a view and of what it shows are one and the same pin of both.
  CHECK(seen.size() == 1 + 5 * 4 - 1);
  CHECK(to_hex(pinned(g, {{pin::keep, plain.x}}).digest()) != to_hex(g.digest()));
}

TEST_CASE("copies have the pins of their ops, and pins survive removals, text and a second editor") {
  for (std::uint64_t seed = 0; seed < cases(200u); ++seed) {
    CAPTURE(seed);
    auto const g = randomly_pinned(seed % 2 ? opaque_graph(seed, 16) : random_model(seed, 16), seed, 3);
    REQUIRE(verify(g).message() == "");
    auto const text = to_text(g);
    auto const read = parse_graph(g.facet_table(), text);
    REQUIRE_MESSAGE(read, read.message());
    CHECK(*read == g);
    CHECK(read->digest() == g.digest());
    for (auto o : g.ops()) CHECK(read->pins(o) == g.pins(o));
    for (auto v : g.values()) CHECK(read->pins(v) == g.pins(v));
    graph_editor edit{g};
    std::vector<std::pair<op_id, op_id>> copies;
    for (auto o : g.ops())
      if (index(o) % 3 == 0 && graph_traits<graph>::is_recomputable(g, o)) copies.push_back({o, edit.clone(o)});
    auto const dead = edit.add(op::fill{{4}, dtype::f32, 1.0}, {})[0];
    edit.remove(edit.graph().producer(dead));
    auto const h = graph(std::move(edit).finish());
    CHECK(verify(h).message() == "");
    for (auto [o, copy] : copies) {
      CHECK(h.pins(copy) == g.pins(o));
      for (std::size_t j = 0; j < g.outputs(o).size(); ++j)
        CHECK(h.pins(h.outputs(copy)[j]) == g.pins(g.outputs(o)[j]));
    }
  }
}

TEST_CASE("text: a wrong pin is told with its place") {
  auto const refused = [](std::string const& pins) {
    return parse_graph(operator_table(standard_operators::facets),
                       "neap graph 1\nsource v0 input f32[4] \"x\"\n"
                       "op o0 relu (v0) " +
                           pins + "\n  v1 f32[4]\nkeep v1\n")
        .message();
  };
  CHECK(refused("pins run_once") == "");
  CHECK(refused("pins kept") == "graph text:3:22: unknown pin 'kept'");
  CHECK(refused("pins run_once, run_again").ends_with("which exclude each other"));
}
