#include <neap/report/plan_file.hpp>

#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <nlohmann/json.hpp>

using namespace neap;
using namespace neap::testing;

namespace {

plan<graph> plan_of(graph const& g) {
  auto const order = given_order{}(g);
  candidate<graph> const c{g, order, simulate(g, order, given_latencies{})};
  return make_plan(c, g, memory_options{});
}

}  // namespace

TEST_CASE("the file is JSON with every part, in the order of the steps") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const p = plan_of(opaque_graph(seed));
    auto const text = plan_json(p, {"a \"name\"\n", true, "aliased"});
    auto const j = nlohmann::json::parse(text);
    CHECK(j["format"] == "neap.plan");
    CHECK(j["version"] == 1);
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
