#include <neap/report/plan_writer.hpp>

#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <string>

using namespace neap;
using namespace neap::testing;

namespace {

plan plan_of(graph const& g) {
  auto const order = given_order{}(g);
  candidate const c{g, order, simulate(g, order, given_latencies{})};
  return make_plan(c, g, memory_options{});
}

}  // namespace

TEST_CASE("the file is JSON with every part, in the order of the steps") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const p = plan_of(opaque_graph(seed));
    auto const text = plan_json(p, {"a \"name\"\n", true, "aliased"});
    auto const j = nlohmann::json::parse(text);
    CHECK(j["format"] == "neap.plan");
    CHECK(j["version"] == 4);
    CHECK(j["name"] == "a \"name\"\n");
    CHECK(j["source"]["optimizer"] == true);
    CHECK(j["source"]["magis"] == "aliased");
    CHECK(j["fingerprint"] == to_hex(p.original));
    CHECK(j["peak_bytes"] == p.peak_bytes);
    CHECK(j["arena_bytes"] == p.arena_bytes);
    CHECK(j["steps"].size() == p.steps.size());
    CHECK(j["nodes"].size() == p.steps.size());
    CHECK(j["buffers"].size() == p.buffers.size());
    CHECK(j["storages"].size() == p.graph.storage_count());
    CHECK(j["tensors"].size() == p.graph.value_count());
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
      CHECK(j["steps"][i]["node"] == i);
      CHECK(j["steps"][i]["kind"] == "compute");
      CHECK(j["nodes"][i]["origin"] == index(p.steps[i].op));
    }
    for (auto const& b : j["buffers"]) {
      CHECK(b["offset"].get<std::int64_t>() + b["bytes"].get<std::int64_t>() <= p.arena_bytes);
      CHECK(b["first"] <= b["last"]);
    }
    // a value is made before it is read, in file order
    std::vector<bool> there(j["tensors"].size(), true);
    for (auto const& n : j["nodes"])
      for (std::size_t t : n["out"]) there[t] = false;
    for (auto const& n : j["nodes"]) {
      for (std::size_t t : n["in"]) CHECK(there[t]);
      for (std::size_t t : n["out"]) there[t] = true;
    }
  }
}

TEST_CASE("the checksum is of all the text before it, and one character changes it") {
  auto const text = plan_json(plan_of(opaque_graph(1)), {});
  auto const at = text.rfind("\"checksum\":\"");
  REQUIRE(at != text.npos);
  CHECK(text.substr(at) == "\"checksum\":\"" + to_hex(digest{}.mix(std::string_view(text).substr(0, at))) + "\"}\n");
  auto other = text;
  other[at / 2] ^= 1;
  CHECK(text.substr(at).find(to_hex(digest{}.mix(std::string_view(other).substr(0, at)))) == text.npos);
}

TEST_CASE("limits are told where there were some") {
  auto const p = plan_of(opaque_graph(2));
  plan_source from{"n"};
  CHECK(!nlohmann::json::parse(plan_json(p, from)).contains("limits"));
  from.memory_limit_bytes = 12345;
  CHECK(nlohmann::json::parse(plan_json(p, from))["limits"] == nlohmann::json{{"memory_bytes", 12345}});
  from.latency_limit_seconds = 0.25;
  auto const both = nlohmann::json::parse(plan_json(p, from))["limits"];
  CHECK(both["memory_bytes"] == 12345);
  CHECK(both["latency_us"] == 250000.0);
}

TEST_CASE("equal plans are equal bytes") {
  CHECK(plan_json(plan_of(opaque_graph(5)), {}) == plan_json(plan_of(opaque_graph(5)), {}));
  CHECK(plan_json(plan_of(opaque_graph(5)), {}) != plan_json(plan_of(opaque_graph(6)), {}));
}

TEST_CASE("what times come from is written in numbers; nothing where it was not said") {
  auto const p = plan_of(opaque_graph(3));
  CHECK(!nlohmann::json::parse(plan_json(p, {})).contains("durations"));
  plan_source from;
  from.durations.emplace();
  from.durations->given = false;
  from.durations->device.flops_per_second[static_cast<std::size_t>(dtype::f32)] = 5e13;
  from.durations->device.launch = 3e-6;
  from.durations->device.free_ops = {"aten.\"detach\""};
  auto j = nlohmann::json::parse(plan_json(p, from))["durations"];
  CHECK(!j.contains("table"));
  CHECK(j["given"] == false);
  CHECK(j["device"]["flops_per_s"] == nlohmann::json{{"f32", 5e13}});
  CHECK(j["device"]["launch_us"].get<double>() == doctest::Approx(3));
  CHECK(j["device"]["free_ops"] == nlohmann::json::array({"aten.\"detach\""}));
  from.durations->table = digest{};
  j = nlohmann::json::parse(plan_json(p, from))["durations"];
  CHECK(j["table"] == to_hex(digest{}));
}

TEST_CASE("what a graph's own op is told by is written with it, whatever it is called") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 4}}, "x");
  output_rule const fresh{edit.layout_of(x), alias_kind::fresh, -1, -1};
  std::string const details = "{\"kwargs\":{\"dim\":1}}";
  auto const y = edit.output(edit.add_opaque("neap.relu", {}, std::array{x}, std::array{fresh}, "mine", details));
  edit.keep(edit.add(op::relu{}, {y})[0], role::loss);
  auto const j = nlohmann::json::parse(plan_json(plan_of(graph(std::move(edit).finish())), {}));
  CHECK(j["nodes"][0]["op"] == "neap.relu");
  CHECK(j["nodes"][0]["details"] == details);
  CHECK(!j["nodes"][0].contains("attributes"));
  CHECK(j["nodes"][1]["op"] == "neap.relu");
  CHECK(!j["nodes"][1].contains("details"));
  CHECK(j["nodes"][1]["attributes"] == nlohmann::json::object());
}
