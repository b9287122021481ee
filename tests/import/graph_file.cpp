#include <neap/import/graph_file.hpp>

#include <neap/ir/verify.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>

using namespace neap;

namespace {

std::string graph_path(std::string const& name) {
  return std::string(NEAP_SOURCE_DIR) + "/examples/graphs/" + name + ".json.gz";
}

/// A small valid document that tests break in one place each.
nlohmann::json small() {
  return nlohmann::json::parse(R"({
    "format": "neap-graph", "version": 1, "name": "small",
    "buffers": [{"bytes": 64, "kind": "param", "name": "w"}, {"bytes": 64, "kind": "input"}, {"bytes": 64, "kind": "temp"},
                {"bytes": 256, "kind": "temp"}, {"bytes": 8, "kind": "const"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": [4, 4]}, {"buf": 1, "dtype": "f32", "shape": [4, 4]},
                {"buf": 2, "dtype": "f32", "shape": [4, 4]}, {"buf": 2, "dtype": "f32", "shape": [16]},
                {"buf": 3, "dtype": "f32", "shape": [4, 4], "stride": [8, 2], "offset": 1}],
    "nodes": [
      {"name": "a", "op": "aten.mul.Tensor", "phase": "fwd", "in": [0, 1], "out": [2], "flags": ["pointwise"],
       "flops": 16, "read": 128, "write": 64, "latency_us": 3.5},
      {"name": "b", "op": "aten.view.default", "phase": "fwd", "in": [2], "out": [3], "flags": ["view"], "latency_us": 0},
      {"name": "c", "op": "aten.dropout.default", "phase": "bwd", "in": [3, 0], "out": [4, -1], "flags": ["rng"], "latency_us": 4}],
    "outputs": [{"tensor": 4, "kind": "grad", "of": 0}],
    "optimizer": {"name": "adamw", "buffers": [{"bytes": 64, "kind": "state", "name": "w.m"}],
      "tensors": [{"buf": 5, "dtype": "f32", "shape": [4, 4]}],
      "nodes": [{"name": "u", "op": "aten._fused_adamw_.default", "phase": "opt", "in": [0, 4, 5], "out": [], "mutates": [0, 2],
                 "flags": ["pointwise"], "latency_us": 3}]}
  })");
}

std::string refusal(nlohmann::json const& j) {
  auto const r = io::read_neap_graph(j, "f.json");
  REQUIRE(!r.ok());
  CHECK(r.message().find('\n') == std::string::npos);
  return r.message();
}

}  // namespace

TEST_CASE("exported graphs: the reference's peak to the byte, and its latency") {
  struct known {
    char const* name;
    bytes_t peak;
    double latency_us;
  };
  for (auto const& k : {known{"mlp4-1024-b256", 35686408, 202.6}, known{"cnn-small-b64", 37815160, 374.8},
                        known{"gpt-d256-l4-b8-t128", 216348680, 1583.2}}) {
    auto const g = io::read_graph(graph_path(k.name));
    REQUIRE_MESSAGE(g.ok(), g.message());
    CHECK(g->name == k.name);
    CHECK(verify(g->program).ok());
    CHECK(check_order(g->program, g->order).ok());
    auto const s = simulate(g->program, g->order, given_latencies{}, {.alignment = 1, .takeover = false});
    CHECK(s.peak_bytes == k.peak);
    CHECK(s.latency * 1e6 == doctest::Approx(k.latency_us).epsilon(1e-3));
  }
}

TEST_CASE("a small document, read as it says") {
  auto const r = io::read_neap_graph(small(), "f.json", {.optimizer = true});
  REQUIRE_MESSAGE(r.ok(), r.message());
  auto const& g = r->program;
  CHECK(verify(g).ok());
  CHECK(g.op_count() == 4);
  CHECK(g.resident_bytes() == 64 + 64 + 8 + 64);
  auto const* a = g.as<op::opaque>(op_id{0});
  REQUIRE(a);
  CHECK(a->pointwise);
  CHECK(a->seconds == doctest::Approx(3.5e-6));
  CHECK(g.text(a->target) == "aten.mul.Tensor");
  CHECK(g.name(op_id{0}) == "a");
  CHECK(g.storage(g.output(op_id{0})) == g.storage(g.output(op_id{1})));
  CHECK(g.as<op::opaque>(op_id{2})->rng);
  CHECK(g.bytes(g.storage(g.output(op_id{2}))) == 256);
  CHECK(g.layout(g.output(op_id{2})).offset == 1);
  // the update: a new version of the weight and of the state, after every other reader of the weight
  CHECK(g.record(g.outputs(op_id{3})[0]).version == 1);
  auto const before = g.order_after(op_id{3});
  CHECK(std::find(before.begin(), before.end(), op_id{2}) != before.end());
  CHECK(std::find(before.begin(), before.end(), op_id{0}) != before.end());
}

TEST_CASE("bad documents are refused with the place") {
  auto j = small();
  j["version"] = 2;
  CHECK(refusal(j) == "f.json: version: only version 1 is known");
  j = small();
  j["nodes"][0]["latency_us"] = -1;
  CHECK(refusal(j) == "f.json: nodes[0].latency_us: must be a number of at least 0");
  j = small();
  j["nodes"][0]["latency_us"] = std::nan("");
  CHECK(refusal(j) == "f.json: nodes[0].latency_us: must be a number of at least 0");
  j = small();
  j["nodes"][0]["in"][1] = 99;
  CHECK(refusal(j) == "f.json: nodes[0].in[1]: must be an integer from 0 to 4");
  j = small();
  std::swap(j["nodes"][0], j["nodes"][1]);  // a cycle, or an order that is none
  CHECK(refusal(j) == "f.json: nodes[0].in[0]: node \"b\" reads a tensor before it is made");
  j = small();
  j["nodes"][1]["name"] = "a";
  CHECK(refusal(j) == "f.json: nodes[1].name: \"a\" is the name of two nodes");
  j = small();
  j["nodes"][2]["out"][1] = 2;
  CHECK(refusal(j) == "f.json: nodes[2].out[1]: tensor 2 is made twice");
  j = small();
  j["tensors"][4]["offset"] = 1000;
  CHECK(refusal(j) == "f.json: tensors[4]: reaches beyond its buffer of 256 bytes");
  j = small();
  j["tensors"][4]["shape"] = {1LL << 40, 1LL << 40};
  CHECK(refusal(j).find("f.json: tensors[4].shape: size overflows 64 bits") == 0);
  j = small();
  j["tensors"][0]["dtype"] = "f31";
  CHECK(refusal(j) == "f.json: tensors[0].dtype: unknown element type \"f31\"");
  j = small();
  j["buffers"][0]["bytes"] = -5;
  CHECK(refusal(j).find("f.json: buffers[0].bytes: must be an integer") == 0);
  j = small();
  j["buffers"][0]["bytes"] = 18446744073709551615ull;
  CHECK(refusal(j).find("f.json: buffers[0].bytes: must be an integer") == 0);
  j = small();
  j["buffers"][0].erase("kind");
  CHECK(refusal(j) == "f.json: buffers[0]: lacks \"kind\"");
  j = small();
  j["outputs"][0]["tensor"] = 77;
  CHECK(refusal(j) == "f.json: outputs[0].tensor: must be an integer from 0 to 4");
  j = small();
  j["nodes"] = 7;
  CHECK(refusal(j) == "f.json: nodes: must be a list");
  j = small();
  j["nodes"][1]["in"] = nlohmann::json::array();
  CHECK(refusal(j).find("f.json: nodes[1].out[0]: lies in a buffer that an earlier node made") == 0);
}

TEST_CASE("files: missing, no JSON, cut off, too deep") {
  CHECK(io::read_graph("/nowhere/graph.json").message().find("/nowhere/graph.json: cannot be opened") == 0);
  auto const deep = io::parse_json(std::string(100000, '['), "deep.json");
  CHECK(deep.message() == "deep.json: byte 64: nested deeper than 64 levels");
  std::ifstream file(graph_path("mlp4-1024-b256"), std::ios::binary);
  std::string const whole((std::istreambuf_iterator<char>(file)), {});
  std::string const cut = "cut.json.gz";
  std::ofstream(cut, std::ios::binary) << whole.substr(0, whole.size() / 2);
  auto const r = io::read_graph(cut);
  CHECK(!r.ok());
  CHECK(r.message().find(cut + ": ") == 0);
  std::remove(cut.c_str());
}

TEST_CASE("whatever is broken in a document, the answer is a graph that is valid or one line") {
  // every value of the small document in turn replaced by something else
  auto const flat = small().flatten();
  std::size_t refused = 0, taken = 0;
  for (auto const& [path, value] : flat.items())
    for (nlohmann::json const& odd :
         {nlohmann::json(-1), nlohmann::json(3), nlohmann::json(1e300), nlohmann::json("x"), nlohmann::json(nullptr),
          nlohmann::json::array({1, 2}), nlohmann::json(INT64_MAX)}) {
      auto j = small();
      j[nlohmann::json::json_pointer(path)] = odd;
      CAPTURE(path);
      CAPTURE(odd.dump());
      auto const r = io::read_neap_graph(j, "f.json", {.optimizer = true});
      if (!r) {
        ++refused;
        CHECK(r.message().find("f.json: ") == 0);
        CHECK(r.message().find('\n') == std::string::npos);
      } else {
        ++taken;
        auto const valid = verify(r->program);
        CHECK_MESSAGE(valid.ok(), valid.message());
      }
    }
  CHECK(refused > 300);
  CHECK(taken > 20);
}
