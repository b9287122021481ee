#include <neap/import/magis.hpp>

#include <neap/ir/dimension_graph.hpp>
#include <neap/ir/verify.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;

namespace {

/// x @ w, relu, reshaped; a gradient of w; w updated in place, then read by nobody.
nlohmann::json small() {
  return nlohmann::json::parse(R"({
    "name": "small", "schedule": [7, 0, 2, 3, 4, 5, 6],
    "nodes": [
      {"id": 0, "op": "placeholder", "kind": "weight", "inputs": [], "shape": [4, 4], "dtype": "float32", "out_bytes": 64,
       "latency_us": 0, "attrs": {"name": "w"}},
      {"id": 7, "op": "placeholder", "kind": "input", "inputs": [], "shape": [8, 4], "dtype": "float32", "out_bytes": 128, "latency_us": 0},
      {"id": 2, "op": "matmul", "kind": "op", "inputs": [7, 0], "shape": [8, 4], "dtype": "float32", "out_bytes": 128,
       "latency_us": 10, "flops": 256, "bytes": 320, "inplace_of_arg": null, "dim_links": [[[0, 0], [1, -1]], [[0, -1], [1, 1]]]},
      {"id": 3, "op": "ewise.uni.relu", "kind": "op", "inputs": [2], "shape": [8, 4], "dtype": "float32", "out_bytes": 128, "latency_us": 5,
       "dim_links": [[[0, 0], [1, 1]]]},
      {"id": 4, "op": "reshape", "kind": "op", "inputs": [3], "shape": [4, 8], "dtype": "float32", "out_bytes": 128, "latency_us": 0, "view": true},
      {"id": 5, "op": "matmul", "kind": "op", "inputs": [4, 7], "shape": [4, 4], "dtype": "float32", "out_bytes": 64, "latency_us": 10},
      {"id": 6, "op": "ewise.bin.add_", "kind": "op", "inputs": [0, 5], "shape": [4, 4], "dtype": "float32", "out_bytes": 64,
       "latency_us": 5, "inplace_of_arg": 0, "dim_links": [[[0, 0], [1, 1]], [[0, 0], [1, 1]]]}]
  })");
}

io::imported_graph read(nlohmann::json const& j, io::magis_memory memory) {
  auto r = io::read_magis(j, "m.json", memory);
  REQUIRE_MESSAGE(r.ok(), r.message());
  auto const valid = verify(r->program);
  CHECK_MESSAGE(valid.ok(), valid.message());
  CHECK(check_order(r->program, r->order).ok());
  return *r;
}

/// MAGIS's rule, restated: a node's bytes from its turn to its last reader's, to the end where nobody reads them.
bytes_t magis_peak(nlohmann::json const& j) {
  std::vector<std::int64_t> const order = j["schedule"];
  auto const row = [&](std::int64_t id) {
    for (auto const& n : j["nodes"])
      if (n["id"] == id) return n;
    return nlohmann::json();
  };
  bytes_t peak = 0;
  for (std::size_t now = 0; now < order.size(); ++now) {
    bytes_t sum = 0;
    for (std::size_t k = 0; k <= now; ++k) {
      std::size_t last = k;
      bool read = false;
      for (std::size_t r = k; r < order.size(); ++r) {
        auto const reader = row(order[r]);
        for (auto const& in : reader["inputs"])
          if (in == order[k]) last = r, read = true;
      }
      if (!read || last >= now) sum += row(order[k])["out_bytes"].get<bytes_t>();
    }
    peak = std::max(peak, sum);
  }
  return peak;
}

std::string refusal(nlohmann::json const& j) {
  std::string line;
  for (auto memory : {io::magis_memory::as_magis, io::magis_memory::aliased}) {
    auto const r = io::read_magis(j, "m.json", memory);
    REQUIRE(!r.ok());
    line = r.message();
    CHECK(line.starts_with("m.json: "));
    CHECK(line.find('\n') == std::string::npos);
  }
  return line;
}

}  // namespace

TEST_CASE("counted as MAGIS does: its peak to the byte, its latency") {
  auto const g = read(small(), io::magis_memory::as_magis);
  CHECK(g.name == "small");
  CHECK(g.format == "magis");
  auto const s = simulate(g.program, g.order, given_latencies{}, {.alignment = 1, .takeover = false});
  CHECK(s.resident_bytes == 0);
  CHECK(s.peak_bytes == magis_peak(small()));
  CHECK(s.latency == doctest::Approx(30e-6));
  // another order of the same nodes
  auto j = small();
  j["schedule"] = {0, 7, 2, 3, 4, 5, 6};
  j["nodes"][3]["out_bytes"] = 4096;
  auto const other = read(j, io::magis_memory::as_magis);
  CHECK(simulate(other.program, other.order, given_latencies{}, {.alignment = 1, .takeover = false}).peak_bytes ==
        magis_peak(j));
}

TEST_CASE("counted as neap does: weights and inputs resident, views and updates in place") {
  auto const g = read(small(), io::magis_memory::aliased);
  auto const s = simulate(g.program, g.order, given_latencies{}, {.alignment = 1, .takeover = false});
  CHECK(s.resident_bytes == 64 + 128);
  CHECK(s.peak_bytes == 64 + 128 + 256);  // matmul's and relu's results
  CHECK(g.program.op_count() == 5);
}

TEST_CASE("an update runs after every other reader of its weight, which MAGIS's files do not say") {
  auto j = small();
  j["schedule"] = {7, 0, 2, 3, 4, 5, 6};
  for (auto memory : {io::magis_memory::as_magis, io::magis_memory::aliased}) {
    auto const g = read(j, memory);
    op_id update = nothing<op_id>, first = nothing<op_id>;
    for (auto o : g.program.ops()) {
      if (auto const* x = g.program.as<op::opaque>(o)) {
        if (g.program.text(x->target) == "ewise.bin.add_") update = o;
        if (g.program.text(x->target) == "matmul" && first == nothing<op_id>) first = o;
      }
    }
    auto const before = g.program.order_after(update);
    CHECK(std::find(before.begin(), before.end(), first) != before.end());
    auto swapped = g.order;  // the update before that reader is no order
    auto const u = std::find(swapped.order.begin(), swapped.order.end(), update);
    std::rotate(std::find(swapped.order.begin(), swapped.order.end(), first), u, u + 1);
    CHECK(!check_order(g.program, swapped).ok());
  }
}

TEST_CASE("what a later update has overwritten cannot be read, nor updated again") {
  auto j = small();
  j["schedule"].push_back(8);
  j["nodes"].push_back(j["nodes"][4]);
  auto& last = j["nodes"].back();
  last["id"] = 8;
  for (auto const memory : {io::magis_memory::as_magis, io::magis_memory::aliased}) {
    last["inputs"] = {3, 0};
    CHECK(io::read_magis(j, "m.json", memory).message() ==
          "m.json: nodes[7].inputs[1]: node 0 was updated in place before; the update's output is what there is of it");
    last["inputs"] = {3, 6};  // what the update gives
    read(j, memory);
  }
}

TEST_CASE("placeholders are not computed again, elementwise ops may run in place") {
  auto const g = read(small(), io::magis_memory::as_magis);
  std::size_t placeholders = 0, pointwise = 0;
  for (auto o : g.program.ops())
    if (auto const* x = g.program.as<op::opaque>(o)) placeholders += x->placeholder, pointwise += x->pointwise;
  CHECK(placeholders == 2);
  CHECK(pointwise == 2);
}

namespace {

/// The links of one op, as the graph keeps them, read in both ways.
std::string links_of(nlohmann::json const& node, std::vector<shape> const& arguments) {
  nlohmann::json j = {{"name", "one"}, {"schedule", nlohmann::json::array()}, {"nodes", nlohmann::json::array()}};
  auto const add = [&](nlohmann::json n) {
    n["id"] = j["nodes"].size();
    n["out_bytes"] = 4;
    n["latency_us"] = 1;
    j["schedule"].push_back(n["id"]);
    j["nodes"].push_back(std::move(n));
  };
  auto op = node;
  op["kind"] = "op";
  op["inputs"] = nlohmann::json::array();
  for (auto const& s : arguments) {
    op["inputs"].push_back(j["nodes"].size());
    add({{"op", "placeholder"},
         {"kind", "input"},
         {"inputs", nlohmann::json::array()},
         {"shape", std::vector(s.begin(), s.end())}});
  }
  add(op);
  std::string links;
  for (auto memory : {io::magis_memory::as_magis, io::magis_memory::aliased}) {
    auto const g = read(j, memory);
    auto const last = id_at<op_id>(g.program.op_count() - 1);
    links = g.program.text(g.program.as<op::opaque>(last)->links);
  }
  return links;
}

}  // namespace

TEST_CASE("a file's dimension relations are its ops'; an update in place has none") {
  for (auto memory : {io::magis_memory::as_magis, io::magis_memory::aliased}) {
    auto const g = read(small(), memory);
    std::vector<std::string> all;
    for (auto o : g.program.ops())
      if (auto const* x = g.program.as<op::opaque>(o); !x->placeholder) all.emplace_back(g.program.text(x->links));
    CHECK(all == std::vector<std::string>{"0.0=0.0 0.1+0 1.0+0 1.1=0.1", "0.0=0.0 0.1=0.1", "", "", ""});
  }
  auto const g = read(small(), io::magis_memory::aliased);
  dimension_graph const dims(g.program);
  auto const x = g.program.inputs(op_id{0})[0];
  auto const rows = dims.component(x, 0);
  CHECK(dims.extent(rows) == 8);
  CHECK(dims.members(rows).size() == 2);  // the product and relu
  CHECK(dims.is_cuttable(rows));
}

TEST_CASE("reduced axes are combined as the operator does") {
  auto const of = [](char const* tag) {
    return links_of({{"op", tag}, {"shape", {4}}, {"dim_links", {{{0, 0}, {1, -1}, {2, -2}}}}}, {{4, 6, 2}});
  };
  CHECK(of("reduce.sum") == "0.0=0.0 0.1+0 0.2+1");
  CHECK(of("reduce.max") == "0.0=0.0 0.1^0 0.2^1");
  CHECK(of("reduce.min") == "0.0=0.0 0.1_0 0.2_1");
  CHECK(of("reduce.mean") == "0.0=0.0 0.1~0 0.2~1");
}

TEST_CASE("MAGIS's two errors are mended") {
  nlohmann::json const all = {{0, 0}, {1, 1}, {2, 2}};
  auto const layer_norm = [&](nlohmann::json const& attrs) {
    return links_of(
        {{"op", "layer_norm_bwd"}, {"shape", {4, 6, 8}}, {"attrs", attrs}, {"dim_links", {all, all, all, all}}},
        {{4, 6, 8}, {4, 6, 8}, {4, 6, 1}, {4, 6, 1}});
  };
  CHECK(layer_norm({{"norm_shape", {8}}}) == "0.0=0.0 0.1=0.1 1.0=0.0 1.1=0.1 2.0=0.0 2.1=0.1 3.0=0.0 3.1=0.1");
  CHECK(layer_norm({{"norm_shape", {6, 8}}}) == "0.0=0.0 1.0=0.0 2.0=0.0 3.0=0.0");
  CHECK(layer_norm({{"x", 1}}) == "");
  CHECK(links_of(
            {{"op", "softmax_bwd"}, {"shape", {4, 6, 8}}, {"attrs", {{"dim", 2}}}, {"dim_links", {{{0, 0}, {1, 1}}}}},
            {{4, 6, 8}, {4, 6, 8}}) == "0.0=0.0 0.1=0.1 1.0=0.0 1.1=0.1");
  CHECK(links_of({{"op", "pool2d_bwd.avg"}, {"shape", {4, 6, 8, 8}}, {"dim_links", {{{0, 0}, {1, 1}}}}},
                 {{4, 6, 4, 4}, {4, 6, 8, 8}}) == "0.0=0.0 0.1=0.1 1.0=0.0 1.1=0.1");
  // a file that has them already
  CHECK(links_of({{"op", "softmax_bwd"}, {"shape", {4, 6}}, {"dim_links", {{{0, 0}}, {{0, 0}}}}}, {{4, 6}, {4, 6}}) ==
        "0.0=0.0 1.0=0.0");
}

TEST_CASE("relations of axes that differ in extent are not believed") {
  CHECK(links_of({{"op", "x"}, {"shape", {4, 6}}, {"dim_links", {{{0, 0}, {1, 1}}}}}, {{4, 3}}) == "");
  CHECK(links_of({{"op", "x"}, {"shape", {4}}, {"dim_links", {{{1, -1}}, {{0, -1}}}}}, {{4, 3}, {6}}) == "");
  CHECK(links_of({{"op", "x"}, {"shape", {4}}, {"dim_links", nullptr}}, {{4, 3}}) == "");
}

TEST_CASE("a file's bytes are reads and writes together") {
  auto j = small();
  for (double bytes : {320.0, 128.0, 100.0, 0.0}) {
    j["nodes"][2]["bytes"] = bytes;
    auto const g = read(j, io::magis_memory::aliased);
    auto const* x = g.program.as<op::opaque>(op_id{0});
    CHECK(x->read + x->written == bytes);
    CHECK(x->written == std::min(bytes, 128.0));  // what it makes
  }
}

TEST_CASE("bad documents are refused with the place") {
  auto j = small();
  j["nodes"][1]["id"] = 0;
  CHECK(refusal(j) == "m.json: nodes[1].id: is the id of two nodes");
  j = small();
  j["schedule"][0] = 99;
  CHECK(refusal(j) == "m.json: schedule[0]: there is no node 99");
  j = small();
  j["schedule"][1] = 7;
  CHECK(refusal(j) == "m.json: schedule[1]: node 7 is scheduled twice");
  j = small();
  j["schedule"].erase(6);
  CHECK(refusal(j) == "m.json: nodes[6].id: is not in the schedule");
  j = small();
  std::swap(j["schedule"][2], j["schedule"][3]);
  CHECK(refusal(j) == "m.json: nodes[3].inputs[0]: the schedule has its reader first");
  j = small();
  j["nodes"][2]["inputs"][0] = 99;
  CHECK(refusal(j) == "m.json: nodes[2].inputs[0]: there is no node 99");
  j = small();
  j["nodes"][2]["kind"] = "thing";
  CHECK(refusal(j) == "m.json: nodes[2].kind: must be weight, input or op");
  j = small();
  j["nodes"][2]["dtype"] = "float64";
  CHECK(refusal(j) == "m.json: nodes[2].dtype: only float32 is known");
  j = small();
  j["nodes"][2]["out_bytes"] = -1;
  CHECK(refusal(j).starts_with("m.json: nodes[2].out_bytes: must be an integer"));
  j = small();
  for (auto& n : j["nodes"]) n["out_bytes"] = std::int64_t{1} << 56;
  while (j["nodes"].size() < 40) {
    auto n = j["nodes"][1];
    n["id"] = 100 + j["nodes"].size();
    j["schedule"].push_back(n["id"]);
    j["nodes"].push_back(n);
  }
  CHECK(refusal(j).ends_with("the sizes add up to more than 2^60 bytes"));
  j = small();
  j["nodes"][2]["shape"] = {1LL << 40, 1LL << 40};
  CHECK(refusal(j).starts_with("m.json: nodes[2].shape: size overflows"));
  j = small();
  j["nodes"][2]["latency_us"] = -3;
  CHECK(refusal(j) == "m.json: nodes[2].latency_us: must be a number of at least 0");
  j = small();
  j["nodes"][6]["inplace_of_arg"] = 2;
  CHECK(refusal(j) == "m.json: nodes[6].inplace_of_arg: must be an integer from 0 to 1");
  j = small();
  j["nodes"][0]["inputs"] = {7};
  CHECK(refusal(j) == "m.json: nodes[0].inputs: a weight has no inputs");
  j = small();
  j.erase("schedule");
  CHECK(refusal(j) == "m.json: lacks \"schedule\"");
  j = small();
  j["nodes"][2]["dim_links"][0][1] = {2, 0};
  CHECK(refusal(j) == "m.json: nodes[2].dim_links[0][1][0]: must be an integer from 0 to 1");
  j["nodes"][2]["dim_links"][0][1] = {1, 2};
  CHECK(refusal(j) == "m.json: nodes[2].dim_links[0][1][1]: must be an integer from -8 to 1");
  j["nodes"][2]["dim_links"][0][1] = {1};
  CHECK(refusal(j) == "m.json: nodes[2].dim_links[0][1]: must be a pair of axes");
  j["nodes"][2]["dim_links"] = {nlohmann::json::array(), nlohmann::json::array(), nlohmann::json::array()};
  CHECK(refusal(j) == "m.json: nodes[2].dim_links: must be a list of at most 2 lists, one an argument");
}

TEST_CASE("whatever is broken, the answer is a graph that is valid or one line") {
  std::size_t refused = 0, taken = 0;
  auto const flat = small().flatten();
  for (auto const& [path, value] : flat.items())
    for (nlohmann::json const& odd :
         {nlohmann::json(-1), nlohmann::json(3), nlohmann::json(1e300), nlohmann::json("x"), nlohmann::json(nullptr),
          nlohmann::json::array({1, 2}), nlohmann::json(INT64_MAX)})
      for (auto memory : {io::magis_memory::as_magis, io::magis_memory::aliased}) {
        auto j = small();
        j[nlohmann::json::json_pointer(path)] = odd;
        CAPTURE(path);
        CAPTURE(odd.dump());
        auto const r = io::read_magis(j, "m.json", memory);
        if (!r) {
          ++refused;
          CHECK(r.message().starts_with("m.json: "));
          CHECK(r.message().find('\n') == std::string::npos);
        } else {
          ++taken;
          auto const valid = verify(r->program);
          CHECK_MESSAGE(valid.ok(), valid.message());
          CHECK(check_order(r->program, r->order).ok());
        }
      }
  CHECK(refused > 400);
  CHECK(taken > 60);
}
