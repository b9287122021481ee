#include <neap/import/plan_reader.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/opaque_twin.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_model.hpp"

#include <neap/ir/verify.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <random>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr auto moves = zip(rematerialize{} | truncate(12), neap::swap{1e9} | truncate(12));

/// A plan with recomputation and transfers, if the graph allows any.
plan planned(graph const& g, double ratio, bool takeover = true) {
  search_options o;
  o.memory_at_most = memory_limit::of_original(ratio);
  o.iterations = 120;
  o.memory = {takeover ? 64 : 1, takeover};
  return optimize(g, moves, o).placed;
}

/// Writes text to a file and reads it as a plan.
result<io::plan_file> reread(std::string const& text) {
  std::string const path = "plan_file_test.json";
  std::ofstream(path, std::ios::binary) << text;
  auto r = io::read_plan(path);
  std::remove(path.c_str());
  return r;
}

/// A changed document with a checksum that fits.
std::string sealed(nlohmann::ordered_json document) {
  document.erase("checksum");
  auto text = document.dump();
  text.back() = ',';
  return text + "\"checksum\":\"" + to_hex(digest{}.mix(std::string_view(text))) + "\"}\n";
}

/// Equal up to the numbering of ops, values and storages: what was written is what was read.
void check_equal(plan const& a, plan const& b) {
  CHECK(a.original == b.original);
  CHECK(a.options == b.options);
  CHECK(a.peak_bytes == b.peak_bytes);
  CHECK(a.arena_bytes == b.arena_bytes);
  CHECK(a.resident_bytes == b.resident_bytes);
  CHECK(a.lower_bound_bytes == b.lower_bound_bytes);
  CHECK(a.latency == b.latency);
  CHECK(a.waits == b.waits);
  REQUIRE(a.steps.size() == b.steps.size());
  REQUIRE(a.buffers.size() == b.buffers.size());
  REQUIRE(a.graph.storage_count() == b.graph.storage_count());
  table<storage_id, storage_id> same(a.graph.storage_count(), nothing<storage_id>);
  auto const pair = [&](value_id x, value_id y) {
    auto& s = same[a.graph.storage(x)];
    CHECK((s == nothing<storage_id> || s == b.graph.storage(y)));
    s = b.graph.storage(y);
    CHECK(a.graph.layout(x).type == b.graph.layout(y).type);
    CHECK(a.graph.role(x) == b.graph.role(y));
  };
  for (std::size_t i = 0; i < a.graph.sources().size(); ++i) pair(a.graph.sources()[i], b.graph.sources()[i]);
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    auto const& x = a.steps[i];
    auto const& y = b.steps[i];
    CHECK(a.graph.facets(x.op).name == b.graph.facets(y.op).name);
    CHECK(a.graph.name(x.op) == b.graph.name(y.op));
    if (!is_swap_op(a.graph, x.op)) CHECK(a.graph.origin(x.op) == b.graph.origin(y.op));
    CHECK(x.stream == y.stream);
    CHECK(x.start == y.start);
    CHECK(x.end == y.end);
    CHECK(x.workspace_bytes == y.workspace_bytes);
    CHECK(x.workspace_offset == y.workspace_offset);
    REQUIRE(a.graph.outputs(x.op).size() == b.graph.outputs(y.op).size());
    for (std::size_t k = 0; k < a.graph.outputs(x.op).size(); ++k)
      pair(a.graph.outputs(x.op)[k], b.graph.outputs(y.op)[k]);
  }
  auto const at = b.buffer_of();
  for (auto x : a.buffers) {
    REQUIRE(at[same[x.storage]] != plan::no_buffer);
    x.storage = same[x.storage];
    if (x.takes_over != nothing<storage_id>) x.takes_over = same[x.takes_over];
    CHECK(x == b.buffers[at[x.storage]]);
  }
}

/// What was written of a plan is read as it was, and is right.
io::plan_file check_comes_back(graph const& g, plan const& p, plan_source const& from = {}) {
  auto const r = reread(plan_json(p, from));
  REQUIRE_MESSAGE(r.ok(), r.message());
  check_equal(p, r->planned);
  auto const right = verify_plan(g, r->planned);
  CHECK_MESSAGE(right.ok(), right.message());
  return *r;
}

}  // namespace

TEST_CASE("what is written is read again, and is right") {
  std::size_t transfers = 0, copies = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (double ratio : {1.0, 0.6}) {
      CAPTURE(seed);
      auto const g = opaque_graph(seed, 8 + seed % 16);
      auto const p = planned(g, ratio, seed % 3 != 0);
      REQUIRE_MESSAGE(verify_plan(g, p).ok(), verify_plan(g, p).message());
      auto const r = check_comes_back(g, p, {"n" + std::to_string(seed), seed % 2 == 0, "magis"});
      CHECK(r.name == "n" + std::to_string(seed));
      CHECK(r.optimizer == (seed % 2 == 0));
      auto const valid = verify(r.planned.graph);
      CHECK_MESSAGE(valid.ok(), valid.message());
      auto const again = reread(plan_json(r.planned, {r.name, r.optimizer, r.magis}));
      REQUIRE(again.ok());
      check_equal(r.planned, again->planned);
      CHECK_FALSE(again->gradients_used_up);
      plan_source used_up{r.name, r.optimizer, r.magis};
      used_up.gradients_used_up = true;
      CHECK(reread(plan_json(r.planned, used_up))->gradients_used_up);
      for (auto const& s : p.steps) transfers += s.stream != op_stream::compute;
      copies += p.steps.size() > g.op_count();
    }
  CHECK(transfers > 20);
  CHECK(copies > 20);
}

TEST_CASE("whatever is changed in a file, the answer is one line or a plan that the verifier judges") {
  auto const g = opaque_graph(7, 7);
  auto const p = planned(g, 0.6);
  auto const good = nlohmann::ordered_json::parse(plan_json(p, {"n", false, "magis"}));
  REQUIRE(reread(sealed(good)).ok());
  std::size_t refused = 0, wrong = 0, right = 0;
  auto const flat = good.flatten();
  for (auto const& [path, value] : flat.items()) {
    if (path == "/checksum") continue;
    for (nlohmann::ordered_json const& odd :
         {nlohmann::ordered_json(-1), nlohmann::ordered_json(0), nlohmann::ordered_json(3),
          nlohmann::ordered_json(1e300), nlohmann::ordered_json("x"), nlohmann::ordered_json(nullptr),
          nlohmann::ordered_json::array({1, 2}), nlohmann::ordered_json(std::int64_t{1} << 56),
          nlohmann::ordered_json(INT64_MAX)}) {
      auto j = good;
      j[nlohmann::ordered_json::json_pointer(path)] = odd;
      CAPTURE(path);
      CAPTURE(odd.dump());
      auto const r = reread(sealed(j));
      if (!r) {
        ++refused;
        CHECK(r.message().starts_with("plan_file_test.json: "));
        CHECK(r.message().find('\n') == std::string::npos);
      } else if (auto const v = verify_plan(g, r->planned); v.ok()) {
        ++right;
        bool const name = path.ends_with("/name"), same = odd == value;
        bool const free = path.ends_with("/optimizer") || path.ends_with("/first") || path.ends_with("/last") ||
                          path == "/version" ||               // one without parts is a plan of version 3 too
                          path.find("/waits/") != path.npos;  // lives may be longer than they must
        CHECK((name || same || free));
      } else {
        ++wrong;
        CHECK(v.message().find('\n') == std::string::npos);
      }
    }
  }
  CHECK(refused > 1000);
  CHECK(wrong > 300);
  CHECK(right > 20);  // names, and numbers that were so before
}

TEST_CASE("tables that an engine reads agree with the nodes") {
  std::size_t moved = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    auto const p = planned(opaque_graph(seed, 5 + seed), 0.6);
    auto const good = nlohmann::ordered_json::parse(plan_json(p, {"n", false, "magis"}));
    REQUIRE(reread(sealed(good)).ok());
    auto const refused = [&](nlohmann::ordered_json const& j, std::string const& place) {
      auto const r = reread(sealed(j));
      CAPTURE(place);
      CHECK(!r.ok());
      if (!r) CHECK_MESSAGE(r.message().find("plan_file_test.json: " + place) == 0, r.message());
    };
    for (std::size_t t = 0; t < good["tensors"].size(); ++t) {
      auto j = good;
      auto& row = j["tensors"][t]["buf"];
      row = (row.get<std::size_t>() + 1 + t % (good["storages"].size() - 1)) % good["storages"].size();
      auto const r = reread(sealed(j));
      CHECK(!r.ok());
      if (!r) CHECK(r.message().find(": ") != r.message().npos);
      ++moved;
    }
    auto j = good;
    j["storages"].push_back(j["storages"][0]);
    refused(j, "storages: must be");
    for (std::size_t i = 0; i < good["steps"].size(); ++i) {
      j = good;
      j["steps"][i]["kind"] = good["steps"][i]["kind"] == "load" ? "store" : "load";
      refused(j, "steps[" + std::to_string(i) + "].kind: must be ");
      j = good;
      auto& us = j["nodes"][i]["latency_us"];
      us = us.get<double>() + 1;
      refused(j, "nodes[" + std::to_string(i) + "].latency_us: is not the time");
      if (!good["nodes"][i].contains("flags")) continue;
      j = good;
      auto& flags = j["nodes"][i]["flags"];
      auto const view = std::find(flags.begin(), flags.end(), "view");
      if (view == flags.end()) flags.push_back("view");
      else flags.erase(static_cast<std::size_t>(view - flags.begin()));
      refused(j, "nodes[" + std::to_string(i) + "].flags: ");
    }
    for (std::size_t i = 0; i < good["buffers"].size(); ++i) {
      j = good;
      j["buffers"][i]["pool"] = "host";
      refused(j, "buffers[" + std::to_string(i) + "].pool: must be device");
    }
    for (std::size_t i = 0; i < good["storages"].size(); ++i) {
      if (good["storages"][i]["kind"] != "temp") continue;
      j = good;
      j["storages"][i]["kind"] = "param";
      refused(j, "storages[" + std::to_string(i) + "].kind: must be temp");
    }
    for (std::size_t i = 0; i < good["outputs"].size(); ++i) {
      j = good;
      j["outputs"][i]["kind"] = "gift";
      refused(j, "outputs[" + std::to_string(i) + "].kind: unknown kind");
    }
  }
  CHECK(moved > 40);
}

TEST_CASE("attributes come back to the bit: zeros with signs, infinities, no numbers; long times") {
  double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  graph_editor edit{operator_table(standard_operators::facets)};
  auto x = edit.add_source(role::input, {dtype::f32, {8, 4}}, "x");
  for (double number : {-0.0, 0.0, inf, -inf, nan, -nan, 0.1, 5e-324, 1.7e308})
    x = edit.add(op::mul_scalar{number}, {x})[0];
  op::opaque what;
  what.written = -0.0;
  what.seconds = 3e13;
  output_rule const fresh{edit.layout_of(x), alias_kind::fresh, -1, -1};
  for (int i = 0; i < 3; ++i) x = edit.output(edit.add_opaque("slow", what, std::array{x}, std::array{fresh}));
  edit.keep(x, role::output);
  graph const g(std::move(edit).finish());
  auto const p = planned(g, 1);
  check_comes_back(g, p);
  auto wrong = nlohmann::ordered_json::parse(plan_json(p, {}));
  wrong["nodes"][0]["attributes"].begin().value() = "infinite";
  CHECK(reread(sealed(wrong)).message().find("must be a number, or one of inf, -inf, nan, -nan") != std::string::npos);
}

TEST_CASE(
    "times come back to the bit, and the verifier finds them so; files that say them in microseconds alone are read") {
  std::size_t told = 0;
  std::mt19937_64 draw(5);
  tensor_layout const row = tensor_layout::dense({dtype::f32, {64}});
  output_rule const fresh{row, alias_kind::fresh, -1};
  for (int k = 0; k < 100; ++k) {
    graph_editor edit{operator_table(standard_operators::facets)};
    auto v = edit.add_source_at(role::input, row, "x");
    for (int i = 0; i < 4; ++i) {
      op::opaque what;
      what.seconds = 1e-3 * std::generate_canonical<double, 53>(draw);
      v = edit.output(edit.add_opaque("f", what, std::array{v}, std::array{fresh}));
    }
    edit.keep(v, role::output);
    graph const g(std::move(edit).finish());
    auto const order = given_order{}(g);
    auto const p = make_plan(candidate{g, order, simulate(g, order, given_latencies{})}, g);
    plan_source from{"n"};
    from.latency_limit_seconds = p.latency;
    from.durations.emplace();
    from.durations->device.launch = from.durations->device.link_latency = p.steps[0].end;
    auto const back = check_comes_back(g, p, from);
    CHECK(back.latency_limit_seconds == p.latency);
    CHECK(back.durations == from.durations);
    auto const right = verify_plan(g, back.planned, given_latencies{});
    CHECK_MESSAGE(right.ok(), right.message());

    auto j = nlohmann::ordered_json::parse(plan_json(p, from));
    for (auto& s : j["steps"]) told += s.erase("start_s") + s.erase("end_s");
    j.erase("latency_s");
    auto const old = reread(sealed(j));
    REQUIRE_MESSAGE(old.ok(), old.message());
    CHECK(old->planned.latency == doctest::Approx(p.latency).epsilon(1e-15));
    j["latency_s"] = p.latency * 2;
    CHECK(reread(sealed(j)).message() == "plan_file_test.json: latency_s: is not the time in microseconds");
  }
  CHECK(told > 0);
}

TEST_CASE("parts that are missing, doubled or swapped") {
  auto const g = opaque_graph(8, 8);
  auto const p = planned(g, 0.6);
  auto const good = nlohmann::ordered_json::parse(plan_json(p, {"n", false, "magis"}));
  auto const judged = [&](nlohmann::ordered_json const& j) {
    auto const r = reread(sealed(j));
    if (!r) CHECK(r.message().starts_with("plan_file_test.json: "));
    return r.ok() && verify_plan(g, r->planned).ok();
  };
  CHECK(judged(good));
  for (auto const& [key, value] : good.items()) {
    if (key == "checksum" || key == "name") continue;
    CAPTURE(key);
    auto j = good;
    j.erase(key);
    CHECK(!judged(j));
    if (!value.is_array() || value.empty()) continue;
    for (std::size_t i = 0; i < value.size(); i += 1 + value.size() / 8) {
      CAPTURE(i);
      j = good;
      j[key].erase(i);
      CHECK((key == "waits" || !judged(j)));  // a wait may be implied by another
      j = good;
      j[key].push_back(value[i]);
      (void)judged(j);  // a source more, a wait twice: the verifier's to say; no crash
      j = good;
      std::swap(j[key][i], j[key][(i + 1) % value.size()]);
      (void)judged(j);
      if (!value[i].is_object()) continue;
      for (auto const& [field, ignored] : value[i].items()) {
        j = good;
        j[key][i].erase(field);
        (void)judged(j);
      }
    }
  }
}

TEST_CASE("a plan of known operators keeps their attributes") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {8, 4}}, "x");
  auto const a = edit.add(op::add_scalar{0.1}, {x})[0];
  auto const b = edit.add(op::permute{{1, 0}}, {a})[0];
  auto const c = edit.add(op::matmul{}, {a, b})[0];
  auto const d = edit.add(op::sum{{1}, true}, {c})[0];
  edit.keep(d, role::loss);
  graph const g(std::move(edit).finish());
  auto const p = planned(g, 1);
  check_comes_back(g, p);
}

namespace {

/// Every role that a value which lives on may have: a weight, a state, a buffer and a donated input that are updated in
/// place, a copy, a source as it is, and what a step tells.
graph graph_of_kept_roles() {
  graph_editor edit{operator_table(standard_operators::facets)};
  tensor_type const t{dtype::f32, {4, 8}};
  value_id const other = edit.add_source(role::input, t, "x");
  for (auto r : {role::weight, role::state, role::buffer, role::donated, role::input, role::constant}) {
    value_id const v = edit.add_source(r, t, name_of(r));
    edit.keep(edit.add(op::accumulate{}, {v, other})[0], r);
  }
  value_id const weight = edit.add_source(role::weight, t, "weight as it is");
  edit.keep(weight, role::output);
  edit.keep(edit.add(op::copy{}, {weight})[0], role::weight);
  for (auto r : {role::loss, role::gradient, role::output, role::activation})
    edit.keep(edit.add(op::exp{}, {edit.add(op::add{}, {weight, other})[0]})[0], r);
  return graph(std::move(edit).finish());
}

}  // namespace

TEST_CASE("what is kept comes back in its role: updates in place, copies, sources, what a step tells") {
  auto const g = graph_of_kept_roles();
  for (double ratio : {1.0, 0.7}) {
    auto const p = planned(g, ratio);
    auto const back = check_comes_back(g, p).planned.graph;
    REQUIRE(back.kept().size() == g.kept().size());
    for (std::size_t i = 0; i < g.kept().size(); ++i) CHECK(back.role(back.kept()[i]) == g.role(g.kept()[i]));
  }

  // A file without these roles is read as it stands: its kept values are outputs.
  auto const good = nlohmann::ordered_json::parse(plan_json(planned(g, 1), {}));
  auto old = good;
  for (auto& o : old["outputs"]) o.erase("role");
  auto const read = reread(sealed(old));
  REQUIRE_MESSAGE(read.ok(), read.message());
  CHECK(read->planned.graph.role(read->planned.graph.kept()[0]) == role::output);

  std::size_t refused = 0;
  for (std::size_t i = 0; i < good["outputs"].size(); ++i)
    for (auto const* role : {"weight", "loss", "pearl"}) {
      auto odd = good;
      auto& output = odd["outputs"][i];
      if (output.contains("role") && std::string_view(role) == "weight") continue;
      output["role"] = role;
      auto const r = reread(sealed(odd));
      if (r && std::string_view(role) == "weight") {  // of a value that an op makes: the verifier's question
        CHECK_FALSE(verify_plan(g, r->planned).ok());
        continue;
      }
      REQUIRE_FALSE(r.ok());
      CHECK(r.message().find("outputs[" + std::to_string(i) + "].role") != std::string::npos);
      ++refused;
    }
  CHECK(refused > 20);
}

TEST_CASE("files: missing, empty, cut off, no plan, damaged") {
  CHECK(io::read_plan("/nowhere/p").message().starts_with("/nowhere/p: cannot be opened"));
  auto const text = plan_json(planned(opaque_graph(3), 1), {});
  CHECK(reread("").message().find("empty, not JSON") != std::string::npos);
  CHECK(reread("[]").message().find("must be an object") != std::string::npos);
  CHECK(reread("{\"format\":\"neap-graph\"}").message().find("a graph file (neap-graph); a plan is read from") !=
        std::string::npos);
  CHECK(reread("{\"format\":\"neap.plan\"}").message().find("lacks \"checksum\"") != std::string::npos);
  for (std::size_t keep = 0; keep + 1 < text.size(); keep += 97) CHECK(!reread(text.substr(0, keep)).ok());
  for (std::size_t i = 0; i + 2 < text.size(); i += 61) {
    auto damaged = text;
    damaged[i] ^= 4;
    CAPTURE(i);
    CHECK(!reread(damaged).ok());
  }
  CHECK(reread(text + " ").message().find("checksum") != std::string::npos);
  CHECK(reread(text.substr(0, text.size() - 2) + ",\"peak_bytes\":1}\n")
            .message()
            .find("the member \"peak_bytes\" twice") != std::string::npos);
}

TEST_CASE("what times come from comes back, and what is wrong there is told") {
  auto const g = opaque_graph(4, 6);
  auto const p = planned(g, 1);
  plan_source from{"n"};
  CHECK(!check_comes_back(g, p, from).durations.has_value());
  duration_source said;
  said.given = false;
  said.table = digest{}.mix(7);
  said.device = {{5e13, 4e12}, 3e12, 3e-6, 1e5, 1e4, 5e10, 4e10, 1e-5, {"a", "b \"c\""}};
  from.durations = said;
  auto const back = check_comes_back(g, p, from).durations;
  REQUIRE(back.has_value());
  CHECK(back->table == said.table);
  CHECK(back->given == said.given);
  CHECK(back->device == said.device);
  auto const good = nlohmann::ordered_json::parse(plan_json(p, from));
  auto const flat = good.flatten();
  for (auto const& [path, value] : flat.items()) {
    if (!path.starts_with("/durations/")) continue;
    CAPTURE(path);
    auto j = good;
    j[nlohmann::ordered_json::json_pointer(path)] = nlohmann::ordered_json::array({-1, "x"});
    auto const r = reread(sealed(j));
    CHECK(!r.ok());
    CHECK(r.message().starts_with("plan_file_test.json: durations."));
  }
}

TEST_CASE("others' operators are never taken for neap's, whatever they are called") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto x = edit.add_source(role::input, {dtype::f32, {8, 4}}, "x");
  output_rule const fresh{edit.layout_of(x), alias_kind::fresh, -1, -1};
  for (auto const* name : {"neap.relu", "neap.store", "neap.something", "neap.", "opaque", "relu"})
    x = edit.output(edit.add_opaque(name, {}, std::array{x}, std::array{fresh}, name));
  edit.keep(x, role::output);
  graph const g(std::move(edit).finish());
  check_comes_back(g, planned(g, 1));
}

TEST_CASE("details come back as they are, and the verifier compares them") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {8, 8}}, "x");
  output_rule const fresh{tensor_layout::dense({dtype::f32, {8}}), alias_kind::fresh, -1, -1};
  for (std::string const details : {R"({"kwargs":{"dim":0}})", R"({"kwargs":{"dim":1}})", "no \"JSON\"\n", ""})
    edit.keep(edit.output(edit.add_opaque("sum", {}, std::array{x}, std::array{fresh}, "", details)), role::output);
  graph const g(std::move(edit).finish());
  auto const p = planned(g, 1);
  check_comes_back(g, p);
  auto const good = nlohmann::ordered_json::parse(plan_json(p, {}));
  auto const wrong = [&](nlohmann::ordered_json const& j) {
    auto const r = reread(sealed(j));
    REQUIRE_MESSAGE(r.ok(), r.message());
    CHECK(!verify_plan(g, r->planned).ok());
  };
  auto j = good;  // two sums over other axes exchanged
  std::swap(j["nodes"][0]["origin"], j["nodes"][1]["origin"]);
  wrong(j);
  std::swap(j["nodes"][0]["details"], j["nodes"][1]["details"]);
  wrong(j);
  j = good;  // one of them computed twice
  j["nodes"][1]["origin"] = j["nodes"][0]["origin"];
  wrong(j);
  j["nodes"][1]["details"] = j["nodes"][0]["details"];
  wrong(j);
}

TEST_CASE("a file of version 1 is read, and completed by the graph that it was made for") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {8, 8}}, "x");
  output_rule const fresh{tensor_layout::dense({dtype::f32, {8}}), alias_kind::fresh, -1, -1};
  for (int dim : {0, 1})
    edit.keep(edit.output(edit.add_opaque("sum", {}, std::array{x}, std::array{fresh}, "s" + std::to_string(dim),
                                          "{\"kwargs\":{\"dim\":" + std::to_string(dim) + "}}")),
              role::output);
  graph const g(std::move(edit).finish());
  auto old = nlohmann::ordered_json::parse(plan_json(planned(g, 1), {}));
  old["version"] = 1;  // as that version wrote it
  old["fingerprint"] = to_hex(io::detail::without_details(g).digest());
  for (auto& n : old["nodes"]) n.erase("details");
  auto const judged = [&](nlohmann::ordered_json const& j, graph const& of) {
    auto r = reread(sealed(j));
    REQUIRE_MESSAGE(r.ok(), r.message());
    CHECK(r->version == 1);
    io::complete(*r, of);
    return verify_plan(of, r->planned).ok();
  };
  CHECK(judged(old, g));
  CHECK(!judged(old, opaque_graph(1)));
  auto j = old;
  std::swap(j["nodes"][0]["origin"], j["nodes"][1]["origin"]);
  CHECK(!judged(j, g));
  std::swap(j["nodes"][0]["name"], j["nodes"][1]["name"]);
  CHECK(!judged(j, g));
  j = old;
  j["nodes"][1]["origin"] = j["nodes"][0]["origin"];
  CHECK(!judged(j, g));
}

TEST_CASE("plans that run ops in parts come back as they were") {
  std::size_t parts = 0, again = 0, forged = 0;
  given_or<roofline> const cost{roofline::h100_like()};
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const known = testing::random_model(seed, 12);
    for (auto const& g : {known, testing::opaque_twin(known)}) {
      auto const order = given_order{}(g);
      candidate const c{g, order, simulate(g, order, cost)};
      random_stream draw(seed, 3);
      auto const e = seed % 2 ? testing::parts_of_parts(c, draw) : testing::any_fission(c, draw);
      if (!e) continue;
      again += testing::cut_again(e->graph);
      auto const p = make_plan(candidate{e->graph, e->order, simulate(e->graph, e->order, cost)}, g);
      for (auto o : p.graph.ops()) parts += p.graph.record(o).part != nothing<part_id>;
      plan_source from{"in parts"};
      from.durations = duration_source{std::nullopt, true, roofline::h100_like()};
      auto const back = check_comes_back(g, p, from);
      CHECK(verify_plan(g, back.planned, stated_durations(*back.durations)).ok());

      // Each part's axes are in the file, by cut, and come back; the verifier judges them.
      auto const text = plan_json(p, from);
      auto j = nlohmann::ordered_json::parse(text);
      CHECK(j["version"] == 4);
      std::vector<std::size_t> nodes;
      for (std::size_t i = 0; i < p.steps.size(); ++i) {
        auto const cuts = axes_of_part(p.graph, p.steps[i].op);
        CHECK(cuts == axes_of_part(back.planned.graph, back.planned.steps[i].op));
        CHECK(cuts.size() == (j["nodes"][i].contains("part") ? j["nodes"][i]["part"].size() / 2 : 0));
        CHECK(j["nodes"][i].contains("axes") == !cuts.empty());
        if (!cuts.empty()) nodes.push_back(i);
      }
      if (nodes.empty()) continue;
      for (int k = 0; k < 4; ++k) {
        auto const node = nodes[draw.below(static_cast<std::uint32_t>(nodes.size()))];
        auto& cuts = j["nodes"][node]["axes"];
        auto const cut = draw.below(static_cast<std::uint32_t>(cuts.size()));
        auto& axes = cuts[cut][draw.below(2) ? "in" : "out"];
        if (axes.empty()) continue;
        auto& axis = axes[draw.below(static_cast<std::uint32_t>(axes.size()))];
        auto const was = axis.get<int>();
        axis = was < 0 ? 0 : draw.below(2) ? -1 : was + 1;
        auto const wrong = reread(sealed(j));
        if (wrong.ok()) CHECK(verify_plan(g, wrong->planned).has(violation_kind::not_a_part));
        ++forged;
        axis = was;
      }
      j["nodes"][nodes[0]].erase("axes");
      CHECK(reread(sealed(j)).message().find("axes") != std::string::npos);
      for (auto i : nodes) j["nodes"][i].erase("axes");
      j["version"] = 3;  // as that version wrote it
      auto const old = reread(sealed(j));
      REQUIRE_MESSAGE(old.ok(), old.message());
      CHECK(old->version == 3);
      CHECK(verify_plan(g, old->planned).ok());
      CHECK(nlohmann::ordered_json::parse(plan_json(old->planned, from))["version"] == 3);
    }
  }
  CHECK(parts > 300);
  CHECK(again > 20);
  CHECK(forged > 80);
}
