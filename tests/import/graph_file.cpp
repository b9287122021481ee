#include <neap/import/graph_file.hpp>

#include <neap/ir/donate.hpp>
#include <neap/ir/verify.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

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

TEST_CASE("what a node says beyond what the reader knows belongs to its op: arguments, and keys of any name") {
  auto const digest_with = [](nlohmann::json const& more) {
    auto j = small();
    j["nodes"][0].update(more);
    auto const r = io::read_neap_graph(j, "f.json");
    REQUIRE_MESSAGE(r.ok(), r.message());
    return r->program.digest();
  };
  using nlohmann::json;
  std::vector<digest> met;
  for (auto const& more :
       {json::object(), json{{"args", {"%0", 2}}}, json{{"args", {"%0", 3}}}, json{{"args", {"%0", 2.0}}},
        json{{"args", {"%0", "2"}}}, json{{"kwargs", {{"dim", 0}}}}, json{{"kwargs", {{"dim", 1}}}},
        json{{"kwargs", {{"dim", 1}, {"keepdim", false}}}}, json{{"args", {"%0"}}, {"kwargs", {{"dim", 1}}}},
        json{{"padding", 1}}, json{{"args", {{1, 1}, {0, 0}}}}, json{{"args", {{1, 1, 0}, {0}}}}}) {
    CAPTURE(more.dump());
    auto const d = digest_with(more);
    CHECK(std::find(met.begin(), met.end(), d) == met.end());
    met.push_back(d);
  }
  // what says nothing, or nothing of the computation
  for (auto const& more : {json{{"args", json::array()}, {"kwargs", json::object()}}, json{{"kwargs", nullptr}},
                           json{{"scope", "model.layers.3"}}, json{{"phase", "bwd"}}, json{{"name", "another"}}})
    CHECK(digest_with(more) == met.front());
  auto j = small(), k = small();  // the order of keys says nothing
  j["nodes"][0]["kwargs"] = json::parse(R"({"a": 1, "b": {"c": 2, "d": 3}})");
  k["nodes"][0]["kwargs"] = json::parse(R"({"b": {"d": 3, "c": 2}, "a": 1})");
  CHECK(io::read_neap_graph(j, "f")->program == io::read_neap_graph(k, "f")->program);
  CHECK(io::read_neap_graph(j, "f")->program.details(op_id{0}) == R"({"kwargs":{"a":1,"b":{"c":2,"d":3}}})");
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
  // The gradient is kept, unless the update is all that it is for.
  CHECK(g.is_kept(g.output(op_id{2})));
  auto const used_up = io::read_neap_graph(small(), "f.json", {.optimizer = true, .gradients_used_up = true});
  REQUIRE_MESSAGE(used_up.ok(), used_up.message());
  CHECK_FALSE(used_up->program.is_kept(used_up->program.output(op_id{2})));
  auto j = small();
  j["optimizer"]["nodes"][0]["in"] = {0, 0, 5};  // nobody uses it up
  auto const unread = io::read_neap_graph(j, "f.json", {.optimizer = true, .gradients_used_up = true});
  REQUIRE_MESSAGE(unread.ok(), unread.message());
  CHECK(unread->program.is_kept(unread->program.output(op_id{2})));
  auto const without = io::read_neap_graph(small(), "f.json", {.gradients_used_up = true});
  REQUIRE_MESSAGE(without.ok(), without.message());
  CHECK(without->program.is_kept(without->program.output(op_id{2})));
}

namespace {

/// A parameter, a gradient made from it, two states, and the update nodes that are given.
nlohmann::json with_updates(std::vector<nlohmann::json> const& nodes) {
  auto j = nlohmann::json::parse(R"({
    "format": "neap-graph", "version": 1, "name": "updates",
    "buffers": [{"bytes": 64, "kind": "param"}, {"bytes": 64, "kind": "temp"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": [16]}, {"buf": 1, "dtype": "f32", "shape": [16]}],
    "nodes": [{"name": "g", "op": "grad", "in": [0], "out": [1], "flags": [], "latency_us": 1}],
    "outputs": [],
    "optimizer": {"name": "x", "buffers": [{"bytes": 64, "kind": "state"}, {"bytes": 64, "kind": "state"}],
      "tensors": [{"buf": 2, "dtype": "f32", "shape": [16]}, {"buf": 3, "dtype": "f32", "shape": [16]},
                  {"buf": 0, "dtype": "f32", "shape": [4, 4]}, {"buf": 0, "dtype": "f32", "shape": [16]}]}
  })");
  j["optimizer"]["nodes"] = nodes;
  return j;
}
nlohmann::json update(std::string const& name, std::vector<int> const& in, std::vector<int> const& mutates,
                      std::vector<int> const& out = {}) {
  return {{"name", name},       {"op", "add_"},   {"in", in}, {"out", out}, {"flags", nlohmann::json::array()},
          {"mutates", mutates}, {"latency_us", 1}};
}

/// How many writes in place have made a value: of a temporary each is a storage of its own, over the one before.
int writes_before(op_graph const& g, value_id v) {
  int n = g.record(v).version;
  for (auto base = v; base != nothing<value_id>; base = g.overwrites(g.record(g.storage(base)).first))
    n += g.overwrites(g.record(g.storage(base)).first) != nothing<value_id>;
  return n;
}

}  // namespace

TEST_CASE("several updates of one buffer are its versions, one after the other, and readers see the newest") {
  std::size_t updates = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 r(seed);
    std::vector<nlohmann::json> nodes;
    std::vector<std::vector<int>> touches;  // by op: tensors 0 to 3
    std::vector<int> writes;
    touches.push_back({0, 1}), writes.push_back(1);
    for (int i = 0; i < 6; ++i) {
      std::vector<int> in;
      for (int t = 0; t < 4; ++t)
        if (r() % 2) in.push_back(t);
      if (in.empty()) in.push_back(0);
      auto const k = static_cast<int>(r() % in.size());
      nodes.push_back(update("u" + std::to_string(i), in, {k}));
      touches.push_back(in), writes.push_back(in[static_cast<std::size_t>(k)]);
    }
    auto const g = io::read_neap_graph(with_updates(nodes), "f.json", {.optimizer = true});
    REQUIRE_MESSAGE(g.ok(), g.message());
    CHECK(verify(g->program).ok());
    CHECK(check_order(g->program, g->order).ok());
    std::vector<int> version(4, 0);
    for (std::size_t i = 1; i < writes.size(); ++i) {
      auto const o = id_at<op_id>(i);
      for (std::size_t k = 0; k < touches[i].size(); ++k)
        CHECK(writes_before(g->program, g->program.inputs(o)[k]) == version[static_cast<std::size_t>(touches[i][k])]);
      ++version[static_cast<std::size_t>(writes[i])];
      CHECK(writes_before(g->program, g->program.output(o)) == version[static_cast<std::size_t>(writes[i])]);
      ++updates;
    }
    // whatever order is chosen, ops that touch what another one writes stay in the file's order
    auto const order = memory_greedy{}(g->program, {});
    std::vector<std::size_t> at(writes.size());
    for (std::size_t p = 0; p < order.size(); ++p) at[index(order[p])] = p;
    auto const has = [&](std::size_t i, int t) {
      return std::find(touches[i].begin(), touches[i].end(), t) != touches[i].end();
    };
    for (std::size_t i = 0; i < writes.size(); ++i)
      for (std::size_t j = i + 1; j < writes.size(); ++j)
        if (has(i, writes[j]) || has(j, writes[i])) CHECK(at[i] < at[j]);
  }
  CHECK(updates == 1200);
}

TEST_CASE("an update and its result as a tensor of its own") {
  auto j = with_updates({update("a", {0, 1}, {0}, {5}), update("b", {5, 2}, {1})});
  auto const g = io::read_neap_graph(j, "f.json", {.optimizer = true});
  REQUIRE_MESSAGE(g.ok(), g.message());
  CHECK(verify(g->program).ok());
  CHECK(check_order(g->program, g->order).ok());
  CHECK(g->program.record(g->program.inputs(op_id{2})[0]).version == 1);
  j = with_updates({update("a", {0, 1}, {0}), update("b", {0, 2}, {1})});
  j["optimizer"]["nodes"][1]["mutates"] = {1, 0};
  CHECK(io::read_neap_graph(j, "f.json", {.optimizer = true}).ok());
}

TEST_CASE("updates that the graph cannot say are refused with the place") {
  auto const refused = [](nlohmann::json const& j) {
    auto const r = io::read_neap_graph(j, "f.json", {.optimizer = true});
    REQUIRE(!r.ok());
    return r.message();
  };
  CHECK(refused(with_updates({update("a", {0, 1}, {0}), update("b", {4, 2}, {1})})) ==
        "f.json: optimizer.nodes[1].in[0]: node \"b\" reads a tensor whose buffer was overwritten through another one");
  CHECK(refused(with_updates({update("a", {0, 4}, {0, 1})})) ==
        "f.json: optimizer.nodes[0].mutates[1]: node \"a\" writes this buffer twice");
  CHECK(refused(with_updates({update("a", {0, 1}, {0, 0})})) ==
        "f.json: optimizer.nodes[0].mutates[1]: node \"a\" writes this buffer twice");
  auto j = with_updates({update("a", {1}, {0})});
  j["outputs"] = {{{"tensor", 1}, {"kind", "grad"}}};
  CHECK(refused(j) == "f.json: outputs[0].tensor: node \"a\" of the optimizer overwrites it");
  j = with_updates({update("a", {0}, {0}, {1})});
  CHECK(refused(j) == "f.json: optimizer.nodes[0].out[0]: tensor 1 is made twice");
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
  CHECK(refusal(j).starts_with("f.json: tensors[0].dtype: unknown element type \"f31\"; known are f64, f32, "));
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
  j["tensors"][4]["stride"][1] = "x";
  CHECK(refusal(j) == "f.json: tensors[4].stride[1]: must be an integer of at least 0");
  j = small();
  j["nodes"][0]["flags"].push_back("view");
  CHECK(refusal(j) == "f.json: nodes[0].out[0]: node \"a\" is flagged \"view\", and makes a buffer");
  j = small();
  j["outputs"][0]["tensor"] = 77;
  CHECK(refusal(j) == "f.json: outputs[0].tensor: must be an integer from 0 to 4");
  j = small();
  j["nodes"] = 7;
  CHECK(refusal(j) == "f.json: nodes: must be a list");
  j = small();
  j["nodes"][1]["in"] = nlohmann::json::array();
  CHECK(refusal(j) ==
        "f.json: nodes[1].out[0]: node \"b\" writes byte 0 of a buffer, which an earlier node made, "
        "without reading it");
}

namespace {

/// Two nodes that fill the halves of the columns of a buffer, and one that reads the whole.
nlohmann::json halves() {
  return nlohmann::json::parse(R"({
    "format": "neap-graph", "version": 1, "name": "halves",
    "buffers": [{"bytes": 256, "kind": "input", "name": "x"}, {"bytes": 512, "kind": "temp"}, {"bytes": 64, "kind": "temp"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": [64]},
                {"buf": 1, "dtype": "f32", "shape": [16, 4], "stride": [8, 1]},
                {"buf": 1, "dtype": "f32", "shape": [16, 4], "stride": [8, 1], "offset": 4},
                {"buf": 1, "dtype": "f32", "shape": [16, 8]},
                {"buf": 2, "dtype": "f32", "shape": [16]}],
    "nodes": [{"name": "a", "op": "p", "in": [0], "out": [1]}, {"name": "b", "op": "q", "in": [0], "out": [2]},
              {"name": "c", "op": "r", "in": [3, 1], "out": [4]}],
    "outputs": [{"tensor": 4, "kind": "output"}]})");
}

}  // namespace

TEST_CASE("nodes that fill parts of one buffer: one storage, no copy; the whole is read once all parts are there") {
  auto const g = io::read_neap_graph(halves(), "f.json");
  REQUIRE_MESSAGE(g.ok(), g.message());
  auto const& p = g->program;
  REQUIRE(verify(p).message() == "");
  auto const part = p.output(op_id{1});
  CHECK(p.overwrites(part) == p.output(op_id{0}));
  CHECK(p.bytes(p.storage(part)) == 512);
  auto const reader = p.producer(p.kept()[0]);
  for (auto v : p.inputs(reader)) CHECK(p.storage(v) == p.storage(part));  // views of what is there then
  CHECK(simulate(p, g->order, given_latencies{}, {.alignment = 1}).peak_bytes == 256 + 512 + 64);
  auto j = halves();
  j["tensors"][2]["offset"] = 3;
  CHECK(refusal(j) ==
        "f.json: nodes[1].out[0]: node \"b\" writes byte 12 of a buffer, which an earlier node made, "
        "without reading it");
  j = halves();
  std::swap(j["nodes"][1], j["nodes"][2]);
  CHECK(refusal(j) == "f.json: nodes[1].in[0]: node \"c\" reads a tensor, of which no node has written all bytes yet");
  j = halves();
  j["nodes"][2]["in"] = {2, 1};  // parts alone
  CHECK(io::read_neap_graph(j, "f.json").ok());
  j["outputs"] = {{{"tensor", 3}, {"kind", "output"}}};  // the whole, which no node reads
  auto const kept = io::read_neap_graph(j, "f.json");
  REQUIRE_MESSAGE(kept.ok(), kept.message());
  CHECK(kept->program.type(kept->program.kept()[0]).bytes() == 512);
  CHECK(kept->program.bytes(kept->program.storage(kept->program.kept()[0])) == 512);
}

TEST_CASE("zeros are zeros until something is written into their buffer, through whatever view") {
  // index_put adds 64 values to a buffer of zeros; parts of it may be added up where these are still zeros.
  auto const cut = [](std::vector<nlohmann::json> const& writes, nlohmann::json const& more = {}) {
    auto j = nlohmann::json::parse(R"({"format": "neap-graph", "version": 1, "name": "t",
      "buffers": [{"bytes": 128, "kind": "temp"}, {"bytes": 512, "kind": "input"}, {"bytes": 512, "kind": "input"},
                  {"bytes": 128, "kind": "temp"}, {"bytes": 128, "kind": "input"}],
      "tensors": [{"buf": 0, "dtype": "f64", "shape": [16]}, {"buf": 1, "dtype": "i64", "shape": [64]},
                  {"buf": 2, "dtype": "f64", "shape": [64]}, {"buf": 3, "dtype": "f64", "shape": [16]},
                  {"buf": 4, "dtype": "f64", "shape": [16]}, {"buf": 0, "dtype": "f64", "shape": [4, 4]},
                  {"buf": 0, "dtype": "f64", "shape": [4], "stride": [4]}, {"buf": 4, "dtype": "f64", "shape": [4]},
                  {"buf": 0, "dtype": "f64", "shape": [16]}],
      "nodes": [{"name": "z", "op": "aten.zeros.default", "in": [], "out": [0], "args": [[16]]}],
      "outputs": [{"tensor": 3, "kind": "output"}]})");
    for (auto n : writes) {
      n["name"] = "n" + std::to_string(j["nodes"].size());
      j["nodes"].push_back(n);
    }
    j["nodes"].push_back({{"name", "ip"},
                          {"op", "aten.index_put.default"},
                          {"in", {0, 1, 2}},
                          {"out", {3}},
                          {"args", {"%0", {"%1"}, "%2", true}}});
    if (!more.is_null()) j["nodes"].back().update(more);
    auto const g = io::read_neap_graph(j, "f.json");
    REQUIRE_MESSAGE(g.ok(), g.message());
    auto const o = g->program.producer(g->program.kept()[0]);
    bool sums = false;
    for (auto const& l : g->program.links(o)) sums = sums || l.how == combine::sum;
    return sums;
  };
  using nlohmann::json;
  json const view{
      {"op", "aten.view.default"}, {"in", {0}}, {"out", {5}}, {"args", {"%0", {4, 4}}}, {"flags", {"view"}}};
  json const column{{"op", "aten.select.int"}, {"in", {5}}, {"out", {6}}, {"args", {"%0", 1, 0}}, {"flags", {"view"}}};
  json const back{{"op", "aten.view.default"}, {"in", {5}}, {"out", {8}}, {"args", {"%0", {16}}}, {"flags", {"view"}}};
  auto const write = [](char const* op, std::vector<int> in) {
    return json{{"op", op}, {"in", in}, {"out", json::array()}, {"mutates", {0}}, {"args", json::array()}};
  };
  CHECK(cut({}));
  CHECK(cut({view, column, back}));
  CHECK(cut({view, back}, {{"in", {8, 1, 2}}}));
  for (auto const* op : {"aten.add_.Tensor", "aten.copy_.default", "aten.index_put_.default", "my.write"}) {
    CAPTURE(op);
    CHECK(!cut({write(op, {0, 4})}));
    CHECK(!cut({view, write(op, {5, 4})}));
    CHECK(!cut({view, column, write(op, {6, 7})}));
    CHECK(!cut({view, write(op, {0, 4})}, {{"in", {5, 1, 2}}}));
    CHECK(!cut({view, column, write(op, {6, 7}), back}, {{"in", {8, 1, 2}}}));
  }
}

TEST_CASE("a node that mutates a temp buffer writes over what is there; other tensors on it show the newest") {
  auto j = halves();
  j["nodes"][1] = {{"name", "b"}, {"op", "q"}, {"in", {1, 0}}, {"out", nlohmann::json::array()}, {"mutates", {0}}};
  j["nodes"][2]["in"] = {1};
  j["nodes"].push_back({{"name", "v"}, {"op", "view"}, {"in", {1}}, {"out", {3}}, {"flags", {"view"}}});
  std::swap(j["nodes"][2], j["nodes"][3]);
  j["nodes"].push_back({{"name", "w"}, {"op", "q"}, {"in", {1}}, {"out", nlohmann::json::array()}, {"mutates", {0}}});
  j["nodes"].push_back({{"name", "d"}, {"op", "r"}, {"in", {3}}, {"out", nlohmann::json::array()}, {"mutates", {0}}});
  auto const g = io::read_neap_graph(j, "f.json");
  REQUIRE_MESSAGE(g.ok(), g.message());
  auto const& p = g->program;
  REQUIRE(verify(p).message() == "");
  auto const last = p.output(op_id{static_cast<std::uint32_t>(p.op_count() - 1)});
  CHECK(writes_before(p, last) == 3);
  CHECK(check_order(p, g->order).ok());
  CHECK(graph_traits<graph>::is_recomputable(p, op_id{1}));
}

TEST_CASE("donated inputs: dead after their last use, by the file or by name") {
  auto j = halves();
  j["buffers"][0]["donated"] = true;
  auto const marked = io::read_neap_graph(j, "f.json");
  REQUIRE_MESSAGE(marked.ok(), marked.message());
  CHECK(verify(marked->program).message() == "");
  auto const named = donated(io::read_neap_graph(halves(), "f.json")->program, {"x*"});
  CHECK(verify(named).message() == "");
  CHECK(named.digest() == marked->program.digest());
  CHECK(named.resident_bytes() == 0);
  auto const result = simulate(named, marked->order, given_latencies{}, {.alignment = 1});
  CHECK(result.bytes_at[0] == 256 + 512);  // there from the beginning
  CHECK(result.bytes_at[named.op_count() - 1] == 512 + 64);
  CHECK(testing::message_of([&] { (void)donated(named, {"y"}); }) == "no input matches \"y\"; the inputs are x");
  j["nodes"][1] = {{"name", "b"}, {"op", "q"}, {"in", {0}}, {"out", nlohmann::json::array()}, {"mutates", {0}}};
  j["nodes"][2]["in"] = {0, 1};
  auto const written = io::read_neap_graph(j, "f.json");
  REQUIRE_MESSAGE(written.ok(), written.message());
  CHECK(written->program.overwrites(written->program.output(op_id{1})) == value_id{0});
  CHECK(verify(written->program).message() == "");
  j["buffers"][1]["donated"] = true;
  CHECK(refusal(j) == "f.json: buffers[1].donated: only an input can be donated, not a buffer of kind \"temp\"");
}

TEST_CASE("-0 is 0, whoever wrote it") {
  auto j = small();
  auto const plain = io::read_neap_graph(j, "f.json");
  j["nodes"][1]["write"] = -0.0;
  j["nodes"][1]["latency_us"] = -0.0;
  auto const r = io::read_neap_graph(j, "f.json");
  REQUIRE(r.ok());
  CHECK(r->program.digest() == plain->program.digest());
  j["nodes"][1]["flops"] = 1e31;
  CHECK(refusal(j) == "f.json: nodes[1].flops: must be at most 1e30");
}

TEST_CASE("files: missing, no JSON, cut off, too deep") {
  CHECK(io::read_graph("/nowhere/graph.json").message().find("/nowhere/graph.json: cannot be opened") == 0);
  auto const deep = io::parse_json(std::string(100000, '['), "deep.json");
  CHECK(deep.message() == "deep.json: byte 64: nested deeper than 64 levels");
  // What follows a byte of zeros is not left unread.
  using namespace std::literals;
  for (auto const& text : {"{}\0"s, "{}\0{\"a\": 1}"s, "\0{}"s, "[\"a\0b\"]"s}) {
    auto const odd = io::parse_json(text, "odd.json");
    REQUIRE(!odd.ok());
    CHECK(odd.message() == "odd.json: byte " + std::to_string(text.find('\0')) + ": not JSON: a byte of zeros");
  }
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

TEST_CASE("graph files: a write in place that the file does not state is refused with what is missing") {
  auto const says = [](nlohmann::json const& j, char const* what) {
    auto const message = refusal(j);
    CHECK_MESSAGE(message.find(what) != message.npos, message);
  };
  auto j = small();
  j["nodes"][0]["out"] = {0};  // its own input, which exists before the step
  j["nodes"][1]["in"] = {1};
  j["outputs"] = nlohmann::json::array();
  says(
      j,
      "nodes[0].in[0]: node \"a\" has tensor 0 among its inputs and its outputs: a write in place is said by \"mutates\"");
  j = small();
  j["nodes"][0]["out"] = {0}, j["nodes"][0]["mutates"] = {0};
  says(j, "among its inputs and its outputs");
  j = small();
  j["nodes"][0]["in"] = {0, 1}, j["nodes"][2]["out"] = {1, -1};  // read first, and an output later
  says(
      j,
      "nodes[0].in[1]: node \"a\" reads tensor 1 of a buffer that exists before the step, and a later node has it among "
      "its outputs");
  j = small();
  j["nodes"][1].erase("flags");  // lies in its input's buffer: neither a view nor a write
  says(
      j,
      "nodes[1].out[0]: node \"b\" makes a tensor in the buffer of its input 0, and is neither flagged \"view\" nor says "
      "by \"mutates\" that it writes it in place");
  j["nodes"][1]["mutates"] = {0};
  CHECK(io::read_neap_graph(j, "f.json").ok());
  j = small();
  j["tensors"].push_back({{"buf", 0}, {"dtype", "f32"}, {"shape", {4, 4}}});
  j["optimizer"]["tensors"][0]["buf"] = 5;
  j["nodes"][2]["in"] = {3}, j["nodes"][2]["out"] = {5, -1};
  says(j,
       "nodes[2].out[0]: lies in a buffer that exists before the step: a node that writes it has it among its inputs");
}
