// Pins in graph files and plan files.
#include <neap/import/graph_file.hpp>
#include <neap/import/plan_reader.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/fission.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/pin_counts.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace neap;
using namespace neap::testing;

namespace {

/// a -> b -> c, a is read again at the end; `node` and `tensor` are put into b's rows.
std::string file(std::string const& node, std::string const& tensor = "") {
  return R"({"format":"neap-graph","version":1,"buffers":[
    {"bytes":1024,"kind":"input","name":"x"},{"bytes":1024,"kind":"temp"},{"bytes":1024,"kind":"temp"},
    {"bytes":1024,"kind":"temp"}],
    "tensors":[{"buf":0,"dtype":"f32","shape":[256]},{"buf":1,"dtype":"f32","shape":[256]},
    {"buf":2,"dtype":"f32","shape":[256])" +
         tensor + R"(},{"buf":3,"dtype":"f32","shape":[256]}],
    "nodes":[{"name":"a","op":"aten.relu.default","in":[0],"out":[1]},
    {"name":"b","op":"aten.tanh.default","in":[1],"out":[2])" +
         node + R"(},
    {"name":"c","op":"aten.add.Tensor","in":[2,1],"out":[3]}],
    "outputs":[{"tensor":3,"kind":"output"}]})";
}
pin_set pins_of_b(std::string const& text) {
  auto const g = io::parse_graph(text, "g.json");
  REQUIRE_MESSAGE(g, g.message());
  return g->program.pins(id_at<op_id>(1));
}
std::string refused(std::string const& text) { return io::parse_graph(text, "g.json").message(); }

}  // namespace

TEST_CASE("nodes and tensors of a graph file are pinned") {
  CHECK(pins_of_b(file("")).empty());
  CHECK(pins_of_b(file(R"(,"pins":[])")).empty());
  CHECK(pins_of_b(file(R"(,"pins":["run_once","never_out"])")) == (pin::run_once | pin::never_out));
  CHECK(pins_of_b(file("", R"(,"pins":["keep"])")) == pin_set(pin::keep));
  CHECK(pins_of_b(file(R"(,"pins":["never_in_parts"])", R"(,"pins":["run_again"])")) ==
        (pin::never_in_parts | pin::run_again));
  // They are no part of what the op computes.
  auto const plain = io::parse_graph(file(""), "g.json"), with = io::parse_graph(file(R"(,"pins":["keep"])"), "g.json");
  CHECK(plain->program.details(id_at<op_id>(1)) == with->program.details(id_at<op_id>(1)));
  CHECK(plain->program.digest() != with->program.digest());
}

TEST_CASE("pins that a graph file may not have are told in one line") {
  CHECK(refused(file(R"(,"pins":["kept"])")) ==
        "g.json: nodes[1].pins[0]: unknown pin \"kept\": keep, run_again, run_once, never_in_parts, never_out");
  CHECK(refused(file(R"(,"pins":"keep")")) == "g.json: nodes[1].pins: must be a list");
  CHECK(refused(file(R"(,"pins":[3])")) == "g.json: nodes[1].pins[0]: must be a text");
  CHECK(refused(file(R"(,"pins":["keep","run_again"])")) ==
        "g.json: nodes[1].pins: graph: op 1 (b) is pinned run_again and keep, which exclude each other");
  CHECK(refused(file("", R"(,"pins":["out"])")) ==
        "g.json: tensors[2].pins[0]: unknown pin \"out\": keep, run_again, run_once, never_in_parts, never_out");
  CHECK(refused(file("", R"(,"donated":true)")) == "g.json: tensors[2].donated: stands at a buffer, not at a tensor");
  auto text = file("");
  text.replace(text.find("\"bytes\""), 0, R"("pins":["keep"],)");
  CHECK(refused(text) == "g.json: buffers[0].pins: pins stand at nodes and tensors, not at buffers");
}

TEST_CASE("plan files keep pins, and their plans are right") {
  constexpr auto moves = chain(rematerialize{} | truncate(12), swap{1e9} | truncate(12), fission{} | truncate(8));
  std::size_t pins = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    auto const g = randomly_pinned(seed % 2 ? opaque_graph(seed, 20) : random_model(seed, 20), seed, 4);
    search_options o;
    o.iterations = 60;
    o.memory_at_most = memory_limit::of_original(0.5);
    auto const p = optimize(g, moves, o).placed;
    plan_source from{.name = "pins"};
    from.pins = {{pin::keep | pin::never_in_parts, "a*\"b"}, {pin::run_once, "c"}};
    auto const read = io::parse_plan(plan_json(p, from), "p.plan");
    REQUIRE_MESSAGE(read, read.message());
    CHECK(verify_plan(g, read->planned).message() == "");
    REQUIRE(p.steps.size() == read->planned.steps.size());
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
      CHECK(p.graph.pins(p.steps[i].op) == read->planned.graph.pins(read->planned.steps[i].op));
      pins += !p.graph.pins(p.steps[i].op).empty();
    }
    CHECK(read->planned.graph.digest() == p.graph.digest());
    REQUIRE(read->pins.size() == 3);
    CHECK(read->pins[0].pins == pin_set(pin::keep));
    CHECK(read->pins[1].pins == pin_set(pin::never_in_parts));
    CHECK(read->pins[0].pattern == "a*\"b");
  }
  CHECK(pins > 100);
}
