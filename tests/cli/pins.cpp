// neap plan with pins: by patterns of names and operators, in plan files, and what is refused.
#include "testing.hpp"

#include <map>

using namespace neap_cli_test;

namespace {

std::string const name = "cnn-small-b64";

answer plan(std::vector<std::string> more) {
  std::vector<std::string> all{"plan", graph_file(name), "--iterations", "300", "--memory-limit", "0.55", "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return run_neap(all);
}

struct count {
  std::size_t max_runs = 0, parts = 0, stores = 0;
};
/// Of the nodes of one operator: how often one of them runs at most, parts of them, and stores of what they make.
count of_operator(std::string const& plan_file, std::string const& op) {
  auto const p = json::parse(read_bytes(plan_file));
  count n;
  std::map<std::int64_t, std::size_t> runs;
  std::map<std::int64_t, std::string> made_by;
  for (auto const& node : p["nodes"]) {
    if (node["op"] == "neap.store")
      n.stores += made_by[p["tensors"][node["in"][0].get<std::size_t>()]["buf"].get<std::int64_t>()] == op;
    for (auto const& v : node["out"]) {
      auto const buffer = p["tensors"][v.get<std::size_t>()]["buf"].get<std::int64_t>();
      if (!made_by.contains(buffer)) made_by[buffer] = node["op"];
    }
    if (node["op"] != op) continue;
    n.max_runs = std::max(n.max_runs, ++runs[node["origin"].get<std::int64_t>()]);
    n.parts += node.contains("part");
  }
  return n;
}

}  // namespace

TEST_CASE("plan: pins by pattern hold, and neap verify knows them") {
  scratch const at;
  std::string const relu = "aten.relu.default", conv = "aten.convolution.default";
  auto const file = at / "plan";
  struct trial {
    std::vector<std::string> options;
    std::string op;
    bool once, whole, in;
  };
  for (auto const& t :
       {trial{{"--keep", relu}, relu, true, true, true}, trial{{"--run-once", "aten.conv*"}, conv, true, true, false},
        trial{{"--never-in-parts", conv}, conv, false, true, false},
        trial{{"--never-out", relu}, relu, false, false, true},
        trial{{"--never-out", relu, "--never-out", conv, "--never-in-parts", relu}, relu, false, true, true}}) {
    CAPTURE(t.options[0]);
    auto options = t.options;
    options.insert(options.end(), {"--out", file, "--moves", "remat,swap,fission,undo,rules,lift,factor"});
    auto const a = plan(options);
    CHECK((a.code == 0 || a.code == 1));
    auto const n = of_operator(file, t.op);
    CHECK(n.max_runs > 0);
    if (t.once) CHECK(n.max_runs == 1);
    if (t.whole) CHECK(n.parts == 0);
    if (t.in) CHECK(n.stores == 0);
    auto const v = run_neap({"verify", graph_file(name), file});
    CHECK(v.code == 0);
    CHECK(v.err == "");
    CHECK(run_neap({"show", graph_file(name), file, "--format", "svg", "--out", at / "picture.svg"}).code == 0);
    // Patterns are part of the file: the graph alone does not have these pins.
    auto text = read_bytes(file);
    auto const from = text.find(",\"pins\":[[");
    REQUIRE(from != std::string::npos);
    text.erase(from, text.find("]]", from) + 2 - from);
    write_bytes(at / "without", sealed(text));
    CHECK(run_neap({"verify", graph_file(name), at / "without"}).refusal().find("another graph") != std::string::npos);
  }
}

TEST_CASE("plan: what a pin may not be is told in one line") {
  CHECK(plan({"--keep", "no such op"}).refusal().find("pin keep: no op or value matches \"no such op\"") !=
        std::string::npos);
  CHECK(plan({"--run-once", "aten.relu*", "--run-again", "aten.relu*"}).refusal().find("exclude each other") !=
        std::string::npos);
  CHECK(plan({"--keep"}).refusal().find("--keep") != std::string::npos);
}

TEST_CASE("plan: where pins hold the peak the answer says so") {
  auto const a =
      run_neap({"plan", graph_file(name), "--iterations", "100", "--memory-limit", "0.2", "--run-once", "*"});
  CHECK(a.code == 1);
  a.check_line();
  CHECK(a.err.find(" may not run again: run_once (") != std::string::npos);
}
