// neap plan: answers, plan files, tables and refusals.
#include "testing.hpp"

#include <sstream>

using namespace neap_cli_test;

namespace {

std::vector<std::string> const names{"mlp4-1024-b256", "cnn-small-b64", "gpt-d256-l4-b8-t128"};

answer plan(std::string const& name, std::vector<std::string> more) {
  std::vector<std::string> all{"plan", graph_file(name), "--iterations", "300"};
  all.insert(all.end(), more.begin(), more.end());
  return run_neap(all);
}

}  // namespace

TEST_CASE("plan: every graph at several limits, verified, with true figures") {
  scratch const at;
  for (auto const& name : names)
    for (std::string const limit : {"0.9", "0.6", "1"}) {
      CAPTURE(name);
      CAPTURE(limit);
      auto const file = at / (name + limit);
      auto const a = plan(name, {"--memory-limit", limit, "--json", "--out", file});
      auto const j = a.object();
      for (auto const* key : {"name", "original_peak_bytes", "original_latency_us", "peak_bytes", "latency_us",
                              "arena_bytes", "lower_bound_bytes", "fits", "candidates", "seconds", "seed"})
        CHECK_MESSAGE(j.contains(key), key);
      CHECK(j["name"] == name);
      std::int64_t const original = j["original_peak_bytes"], peak = j["peak_bytes"], arena = j["arena_bytes"];
      bool const fits = j["fits"];
      CHECK(a.code == (fits ? 0 : 1));
      if (fits) CHECK(static_cast<double>(arena) <= std::stod(limit) * static_cast<double>(original));
      else a.check_line();
      CHECK(peak <= original);
      CHECK(arena >= peak);
      CHECK(j["lower_bound_bytes"] <= peak);
      CHECK(j["lower_bound_bytes"] > 0);
      CHECK(j["latency_us"] > 0);
      CHECK(j["candidates"] <= 300);
      CHECK(j["seconds"] >= 0);
      CHECK(j["seed"] == 1);

      auto const v = run_neap({"verify", graph_file(name), file, "--json"});
      CHECK(v.code == 0);
      CHECK(v.err == "");
      CHECK(v.object()["right"] == true);
      CHECK(v.object()["peak_bytes"] == peak);
      CHECK(v.object()["arena_bytes"] == arena);
      auto const document = json::parse(read_bytes(file));
      CHECK(document["peak_bytes"] == peak);
      CHECK(document["steps"].size() == document["nodes"].size());
    }
}

TEST_CASE("plan: one solver alone, all of them before a search, and what they cannot take on") {
  scratch const at;
  for (std::string const solver : {"rotor", "hierarchy", "checkmate", "all", "search"}) {
    CAPTURE(solver);
    auto const file = at / solver;
    auto const a = plan("cnn-small-b64", {"--memory-limit", "0.75", "--solver", solver, "--json", "--out", file});
    auto const j = a.object();
    CHECK(a.code == 0);
    CHECK(j["memory_ratio"] <= 0.75);
    if (solver != "all" && solver != "search") {
      CHECK(j["candidates"] < (solver == "hierarchy" ? 100 : 60));
      CHECK(j["recomputed_ops"] > 0);
      if (solver != "hierarchy") CHECK(j["stores"] == 0);
      CHECK(j["ops_in_parts"] == 0);
    }
    CHECK(run_neap({"verify", graph_file("cnn-small-b64"), file}).code == 0);
  }
  // Blocks with options do what plain ones can, and more.
  auto const latency = [&](char const* solver) {
    return plan("gpt-d256-l4-b8-t128", {"--memory-limit", "0.75", "--solver", solver, "--json"})
        .object()["latency_ratio"]
        .get<double>();
  };
  CHECK(latency("hierarchy") <= latency("rotor") * 1.001);
  auto const small = plan("gpt-d256-l4-b8-t128", {"--memory-limit", "0.75", "--solver", "checkmate"}).refusal();
  CHECK(small.find("--solver checkmate: as one block it has") != small.npos);
  auto const moves =
      plan("cnn-small-b64", {"--memory-limit", "0.75", "--solver", "rotor", "--moves", "swap"}).refusal();
  CHECK(moves.find("--moves: --solver rotor makes none") != moves.npos);
  // A graph without gradients has no blocks to solve.
  auto j = json::parse(R"({"format": "neap-graph", "version": 1, "name": "forward",
    "buffers": [{"bytes": 400, "kind": "input"}, {"bytes": 400, "kind": "temp"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": [100]}, {"buf": 1, "dtype": "f32", "shape": [100]}],
    "nodes": [{"name": "f", "op": "f", "in": [0], "out": [1], "flags": [], "latency_us": 1}],
    "outputs": [{"tensor": 1, "kind": "output"}]})");
  write_bytes(at / "forward", j.dump());
  for (auto const& [solver, reason] : {std::pair<std::string, std::string>{"rotor", "it has no chain of blocks"},
                                       {"hierarchy", "it has no blocks to choose between"},
                                       {"checkmate", "its forward and backward parts cannot be distinguished"}}) {
    auto const message = run_neap({"plan", at / "forward", "--memory-limit", "1", "--solver", solver}).refusal();
    CHECK(message.find("--solver " + solver + ": " + reason) != message.npos);
  }
  CHECK(run_neap({"plan", at / "forward", "--memory-limit", "1"}).code == 0);
}

TEST_CASE("plan: of one solver alone a larger limit has no slower plan") {
  for (std::string const solver : {"rotor", "hierarchy", "checkmate"}) {
    CAPTURE(solver);
    double quickest = 1e9;
    for (int per_cent = 50; per_cent <= 98; per_cent += 4) {
      CAPTURE(per_cent);
      auto const a = run_neap({"plan", graph_file("cnn-small-b64"), "--memory-limit", "0." + std::to_string(per_cent),
                               "--solver", solver, "--iterations", "400", "--json"});
      if (a.code != 0) continue;
      auto const ratio = a.object()["latency_ratio"].get<double>();
      CHECK(ratio <= quickest * (1 + 1e-9));
      quickest = std::min(quickest, ratio);
    }
    CHECK(quickest < 1.1);
  }
}

TEST_CASE("plan: memory counted as the exporter's reference counts it") {
  struct known {
    char const* name;
    std::int64_t peak;
    double latency_us;
  };
  for (auto const& k : {known{"mlp4-1024-b256", 35686408, 202.6}, known{"cnn-small-b64", 37815160, 374.8},
                        known{"gpt-d256-l4-b8-t128", 216348680, 1583.2}}) {
    auto const j =
        run_neap({"plan", graph_file(k.name), "--memory-limit", "1", "--takeover", "off", "--alignment", "1", "--json"})
            .object();
    CHECK(j["original_peak_bytes"] == k.peak);
    CHECK(j["original_latency_us"].get<double>() == doctest::Approx(k.latency_us).epsilon(1e-3));
  }
}

TEST_CASE("plan: without candidates to judge, the orders to start from are judged, and hardly more") {
  for (auto const* limit : {"--memory-limit=0.6", "--latency-limit=1.3"}) {
    CAPTURE(limit);
    auto const candidates = [&](char const* iterations) {
      auto const a = run_neap({"plan", graph_file("gpt-d256-l4-b8-t128"), limit, "--iterations", iterations, "--json"});
      return a.object()["candidates"].get<int>();
    };
    CHECK(candidates("0") <= 4);
    CHECK(candidates("0") == candidates("1"));
  }
}

TEST_CASE("plan: the same seed gives the same bytes, whatever the number of threads") {
  scratch const at;
  for (auto const& [file, threads] : {std::pair{"a", "1"}, {"b", "1"}, {"c", "2"}})
    CHECK(plan("cnn-small-b64", {"--memory-limit", "0.5", "--seed", "7", "--threads", threads, "--out", at / file})
              .code == 0);
  CHECK(read_bytes(at / "a") == read_bytes(at / "b"));
  CHECK(read_bytes(at / "a") == read_bytes(at / "c"));
  CHECK(read_bytes(at / "a").size() > 10000);
}

TEST_CASE("plan: limits in bytes, in time, and both; moves; devices; the optimizer's part") {
  auto const in_bytes = plan("cnn-small-b64", {"--memory-limit", "20MiB", "--json"});
  CHECK(in_bytes.code == 0);
  CHECK(in_bytes.object()["arena_bytes"] <= 20 << 20);
  auto const in_time = plan("cnn-small-b64", {"--latency-limit", "1.1", "--json"});
  CHECK(in_time.code == 0);
  CHECK(in_time.object()["latency_ratio"] <= 1.1);
  CHECK(in_time.object()["memory_ratio"] < 1);
  CHECK(plan("cnn-small-b64", {"--memory-limit", "0.7", "--latency-limit", "400us", "--json"}).object()["latency_us"] <=
        400);
  CHECK(plan("cnn-small-b64", {"--memory-limit", "0.7", "--moves", "remat", "--json"}).object()["stores"] == 0);
  CHECK(plan("cnn-small-b64", {"--memory-limit", "0.7", "--moves", "swap", "--json"}).object()["recomputed_ops"] == 0);
  for (auto const* search : {"best", "beam:4"})
    CHECK(plan("cnn-small-b64", {"--memory-limit", "0.6", "--search", search, "--json"}).object()["verified"] == true);
  CHECK(plan("cnn-small-b64", {"--memory-limit", "0.7", "--moves", "remat,swap,undo,reorder", "--json"})
            .object()["verified"] == true);
  scratch const at;
  write_bytes(at / "device.json", R"({"flops_per_s": {"f32": 1e12}, "bandwidth_bytes_per_s": 1e11, "launch_us": 2,
    "link_bytes_per_s": {"to_host": 1e10, "to_device": 1e10}, "link_latency_us": 10})");
  auto const slow = plan("cnn-small-b64", {"--memory-limit", "0.7", "--device", at / "device.json", "--json"}).object();
  CHECK(slow["original_latency_us"] > 1000);
  CHECK(plan("cnn-small-b64", {"--memory-limit", "0.7", "--device", "host", "--json"}).code == 0);
  auto const more = at / "with-optimizer";
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "1", "--optimizer", "--out", more}).code == 0);
  CHECK(run_neap({"verify", graph_file("mlp4-1024-b256"), more, "--optimizer"}).code == 0);
  // Updates may come early where gradients are for them alone.
  auto const early = at / "early-updates";
  std::vector<std::string> options{"--latency-limit", "1", "--optimizer", "--json"};
  auto const kept = plan("mlp4-1024-b256", options).object();
  options.insert(options.end(), {"--gradients", "used-up", "--out", early});
  auto const used_up = plan("mlp4-1024-b256", options).object();
  CHECK(used_up["peak_bytes"] < kept["peak_bytes"]);
  auto const verify_early = [&](std::vector<std::string> claims) {
    claims.insert(claims.begin(), {"verify", graph_file("mlp4-1024-b256"), early});
    return run_neap(claims);
  };
  auto const right = verify_early({"--optimizer", "--gradients", "used-up"});
  CHECK(right.code == 0);
  CHECK(right.out.find("right with --optimizer --gradients used-up: ") != std::string::npos);
  CHECK(verify_early({"--optimizer"})
            .refusal()
            .find("says: --optimizer --gradients used-up; verify was given: --optimizer\n") != std::string::npos);
  CHECK(verify_early({}).refusal().find("verify was given: nothing\n") != std::string::npos);
  CHECK(run_neap({"show", graph_file("mlp4-1024-b256"), early, "--format", "svg"}).code == 0);
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "1", "--gradients", "used-up"}).refusal().find("--optimizer") !=
        std::string::npos);
}

TEST_CASE("plan: Checkmate's integer program, where there is who solves it") {
  scratch const at;
  // x0 -> x1 -> ... -> x6 -> loss, and back: op i of the backward reads x_i and makes the gradient of x_{i-1}.
  auto j = json::parse(R"({"format": "neap-graph", "version": 1, "name": "chain",
    "buffers": [{"bytes": 4000, "kind": "input"}, {"bytes": 400, "kind": "param"}], "tensors": [], "nodes": []})");
  int tensors = 0;
  auto const tensor = [&](int buffer, int extent) {
    j["tensors"].push_back({{"buf", buffer}, {"dtype", "f32"}, {"shape", {extent}}});
    return tensors++;
  };
  auto const made = [&](int extent) {
    j["buffers"].push_back({{"bytes", 4 * extent}, {"kind", "temp"}});
    return tensor(static_cast<int>(j["buffers"].size()) - 1, extent);
  };
  auto const node = [&](std::string const& op, std::vector<int> const& in, int out, double time) {
    j["nodes"].push_back({{"name", op + std::to_string(out)},
                          {"op", op},
                          {"in", in},
                          {"out", {out}},
                          {"flags", json::array()},
                          {"latency_us", time}});
    return out;
  };
  std::vector<int> x{tensor(0, 1000)};
  int const weight = tensor(1, 100);
  for (int i = 1; i <= 6; ++i) x.push_back(node("f", {x.back(), weight}, made(1000), 10));
  int const loss = node("loss", {x.back()}, made(1), 1);
  int gradient = node("begin", {loss, x.back()}, made(1000), 1);
  for (auto i = x.size() - 1; i > 1; --i) gradient = node("b", {gradient, x[i], x[i - 1]}, made(1000), 20);
  int const last = node("end", {gradient, x[1]}, made(100), 1);
  j["outputs"] = {{{"tensor", loss}, {"kind", "loss"}}, {{"tensor", last}, {"kind", "grad"}, {"of", 1}}};
  write_bytes(at / "g", j.dump());
  auto const with = [&](std::string const& solver) {
    return run_neap({"plan", at / "g", "--memory-limit", "0.75", "--solver", solver, "--time-budget", "30s", "--json",
                     "--out", at / "p"});
  };
  auto const checkmate = with("checkmate").object();
  CHECK(checkmate["memory_ratio"] <= 0.75);
  CHECK(checkmate["recomputed_ops"] > 0);
#ifdef NEAP_HAS_HIGHS
  auto const milp = with("milp").object();
  CHECK(run_neap({"verify", at / "g", at / "p"}).code == 0);
  CHECK(milp["memory_ratio"] <= 0.75);
  CHECK(milp["latency_us"].get<double>() == doctest::Approx(checkmate["latency_us"].get<double>()));
  auto const large =
      run_neap({"plan", graph_file("cnn-small-b64"), "--memory-limit", "0.75", "--solver", "milp"}).refusal();
  CHECK(large.find("--solver milp: as one block it has") != std::string::npos);
  auto const untimed =
      run_neap({"plan", at / "g", "--memory-limit", "0.75", "--solver", "milp", "--iterations", "10"}).refusal();
  CHECK(untimed.find("--solver milp: takes a time budget") != std::string::npos);
#else
  CHECK(with("milp").refusal().find("--solver milp: this neap was built without HiGHS") != std::string::npos);
#endif
}

TEST_CASE("plan: an optimizer that updates one buffer twice") {
  scratch const at;
  auto j = json::parse(R"({"format": "neap-graph", "version": 1, "name": "momentum",
    "buffers": [{"bytes": 400, "kind": "param"}, {"bytes": 400, "kind": "input"}, {"bytes": 400, "kind": "temp"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": [100]}, {"buf": 1, "dtype": "f32", "shape": [100]},
                {"buf": 2, "dtype": "f32", "shape": [100]}],
    "nodes": [{"name": "g", "op": "grad", "in": [0, 1], "out": [2], "flags": [], "latency_us": 1}],
    "outputs": [{"tensor": 2, "kind": "grad", "of": 0}],
    "optimizer": {"name": "sgd", "buffers": [{"bytes": 400, "kind": "state"}],
      "tensors": [{"buf": 3, "dtype": "f32", "shape": [100]}],
      "nodes": [{"name": "m1", "op": "mul_", "in": [3], "out": [], "mutates": [0], "flags": [], "latency_us": 1},
                {"name": "m2", "op": "add_", "in": [3, 2], "out": [], "mutates": [0], "flags": [], "latency_us": 1},
                {"name": "m3", "op": "add_", "in": [0, 3], "out": [], "mutates": [0], "flags": [], "latency_us": 1}]}})");
  write_bytes(at / "g", j.dump());
  auto const run = [&] {
    return run_neap({"plan", at / "g", "--optimizer", "--memory-limit", "1", "--out", at / "p", "--time-budget", "1s"});
  };
  CHECK(run().code == 0);
  CHECK(run_neap({"verify", at / "g", at / "p", "--optimizer"}).code == 0);
  auto const steps = json::parse(read_bytes(at / "p"))["nodes"];
  CHECK(steps.size() == 4);
  CHECK(steps[3]["name"] == "m3");
  j["optimizer"]["nodes"][0]["in"] = {2};
  write_bytes(at / "g", j.dump());
  CHECK(run().refusal().find("outputs[0].tensor: node \"m1\" of the optimizer overwrites it") != std::string::npos);
}

TEST_CASE("plan: a limit that nobody can meet is exit 1, with the best plan, the bound and who forces it") {
  scratch const at;
  auto const a =
      plan("gpt-d256-l4-b8-t128", {"--memory-limit", "0.1", "--moves", "remat,swap", "--out", at / "best", "--json"});
  CHECK(a.code == 1);
  a.check_line();
  CHECK(a.err.find("no plan fits") != a.err.npos);
  CHECK(a.err.find("proved to be at least") != a.err.npos);
  CHECK(a.err.find("_log_softmax_backward_data") != a.err.npos);
  CHECK(a.object()["fits"] == false);
  CHECK(run_neap({"verify", graph_file("gpt-d256-l4-b8-t128"), at / "best"}).code == 0);
}

TEST_CASE("plan: results.csv has its header once and a row a run, 17 columns") {
  scratch const at;
  auto const file = at / "results.csv";
  for (auto const* limit : {"0.9", "0.8", "20MiB"})
    CHECK(plan("cnn-small-b64", {"--memory-limit", limit, "--csv", file}).code == 0);
  auto const text = read_bytes(file);
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  CHECK(text.starts_with(
      "name,device memory limit,latency limit,memory limit,latency limit ratio,memory limit ratio,weight memory,"));
  CHECK(text.find("name,", 5) == text.npos);
  std::size_t begin = 0;
  for (int row = 0; row < 4; ++row) {
    auto const end = text.find('\n', begin);
    CHECK(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end),
                     ',') == 16);
    begin = end + 1;
  }
  write_bytes(file, "epoch,loss\n1,2\n");
  CHECK(plan("cnn-small-b64", {"--memory-limit", "0.9", "--csv", file, "--out", at / "p"})
            .refusal()
            .find("begins with another header") != std::string::npos);
  CHECK(read_bytes(file) == "epoch,loss\n1,2\n");
  CHECK(!std::filesystem::exists(at / "p"));  // told before the search
}

TEST_CASE("plan: outputs that are one file, or one of those that are read") {
  scratch const at;
  auto const graph = read_bytes(graph_file("mlp4-1024-b256"));
  write_bytes(at / "g", graph);
  std::filesystem::create_symlink(at / "g", at / "link");
  write_bytes(at / "device.json", R"({"flops_per_s": {"f32": 1e12}, "bandwidth_bytes_per_s": 1e11})");
  auto const run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", at / "g", "--memory-limit", "1", "--iterations", "20"});
    return run_neap(more);
  };
  std::vector<std::string> const outputs{"--out", "--csv", "--svg", "--pareto"};
  for (auto const& a : outputs) {
    CHECK(run({a, at / "g"}).refusal().find("is the graph that is read") != std::string::npos);
    CHECK(run({a, at / "link"}).refusal().find("is the graph that is read") != std::string::npos);
    CHECK(run({a, at / "device.json", "--device", at / "device.json"}).refusal().find("is the device that is read") !=
          std::string::npos);
    for (auto const& b : outputs)
      if (a < b) CHECK(run({a, at / "x", b, at / "./x"}).refusal().find(" are one file: ") != std::string::npos);
  }
  CHECK(!std::filesystem::exists(at / "x"));
  CHECK(read_bytes(at / "g") == graph);
  CHECK(run({"--out", "/dev/null", "--svg", "/dev/null"}).code == 0);
  CHECK(run({"--out", at / "p"}).code == 0);
  CHECK(run({"--out", at / "p", "--svg", at / "p.svg", "--csv", at / "p.csv"}).code == 0);  // old outputs may go
  for (auto const* input : {"g", "p"})
    CHECK(run_neap({"show", at / "g", at / "p", "--out", at / input}).refusal().find("that is read") !=
          std::string::npos);
}

TEST_CASE("plan: the table for people") {
  auto const a = plan("cnn-small-b64", {"--memory-limit", "0.6"});
  CHECK(a.code == 0);
  CHECK(a.err == "");  // progress is for terminals
  for (auto const* word : {"cnn-small-b64", "as it came", "planned", "peak", "latency", "arena", "bound", "verified"})
    CHECK_MESSAGE(a.out.find(word) != a.out.npos, word);
}

TEST_CASE("plan: progress is one line of a terminal, and is not told to pipes nor with --json") {
  auto const clean = [](std::string s) {  // the last state of each line
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < s.size();) {
      auto const end = std::min(s.find('\r', i), s.size());
      auto line = s.substr(i, end - i);
      if (auto const e = line.find("\033[K"); e != line.npos) line.resize(e);
      if (!line.empty()) shown.push_back(line);
      i = end + 1;
    }
    return shown;
  };
  std::vector<std::string> const run{"plan", graph_file("gpt-d256-l4-b8-t128"), "--memory-limit", "0.6", "--iterations",
                                     "2000"};
  auto const wide = run_neap_on_terminal(run, 120);
  CHECK(wide.out.find("verified") != wide.out.npos);
  auto const lines = clean(wide.err);
  REQUIRE(lines.size() >= 2);
  for (auto const& l : lines) {
    CAPTURE(l);
    if (l == "\n" || l.starts_with("\nneap: ")) continue;  // the end; why nothing fits
    CHECK(l.size() < 120);
    for (auto const* word : {" s  peak ", " (bound ", "  latency ", " candidates"})
      CHECK_MESSAGE(l.find(word) != l.npos, word);
    CHECK((l.find("  fits  ") != l.npos || l.find("  does not fit yet  ") != l.npos));
  }
  CHECK(wide.err.find('\n') > wide.err.rfind('\r', wide.err.find("candidates")));  // rewritten in place
  for (auto const& l : clean(run_neap_on_terminal(run, 40).err))
    if (!l.starts_with("\n")) CHECK(l.size() < 40);
  auto quiet = run;
  quiet.insert(quiet.end(), {"--json"});
  auto const json_only = run_neap_on_terminal(quiet, 120);
  CHECK((json_only.err.empty() || json_only.err.starts_with("neap: ")));
  (void)json_only.object();
}

TEST_CASE("plan: runs that candidates end write equal bytes, on any number of threads") {
  scratch const at;
  std::vector<std::string> const kinds{"--out", "--svg", "--pareto"};
  for (std::string const r : {"1", "2"}) {
    std::vector<std::string> more{"--memory-limit", "0.4", "--latency-limit", "1.2", "--seed", "7", "--threads", r};
    for (auto const& k : kinds) more.insert(more.end(), {k, at / (r + k + (k == "--out" ? "" : ".svg"))});
    (void)plan("gpt-d256-l4-b8-t128", more);
  }
  for (auto const& k : kinds) {
    auto const end = k + (k == "--out" ? "" : ".svg");
    CHECK(read_bytes(at / ("1" + end)).size() > 1000);
    CHECK_MESSAGE(read_bytes(at / ("1" + end)) == read_bytes(at / ("2" + end)), k);
  }
  auto const j = plan("mlp4-1024-b256", {"--memory-limit", "1", "--seed", "12345678901", "--json"}).object();
  CHECK(j["seed"] == 12345678901);
}

TEST_CASE("plan: both limits at once, in every unit; a pair that nobody can meet names what is missed") {
  struct pair {
    char const *memory, *latency;
  };
  for (auto const& [memory, latency] :
       {pair{"0.7", "1.15"}, {"25MiB", "1.15"}, {"0.7", "431us"}, {"26214400", "0.000431s"}}) {
    CAPTURE(memory);
    CAPTURE(latency);
    auto const a = plan("cnn-small-b64", {"--memory-limit", memory, "--latency-limit", latency, "--json"});
    CHECK(a.code == 0);
    auto const j = a.object();
    CHECK(j["fits"] == true);
    CHECK(j["arena_bytes"] <= 26'500'000);
    CHECK(j["latency_us"] <= 431.1);
  }
  for (auto const& [memory, latency] : {pair{"0.5", "1.0001"}, {"1MiB", "1.05"}, {"0.3", "376us"}}) {
    CAPTURE(memory);
    auto const a = plan("cnn-small-b64", {"--memory-limit", memory, "--latency-limit", latency, "--json"});
    CHECK(a.code == 1);
    a.check_line();
    CHECK(a.err.find("no plan fits: the limit is ") != a.err.npos);
    auto const j = a.object();
    CHECK(j["fits"] == false);
    CHECK(j["why_not"].get<std::string>().find("no plan fits") == 0);
    CHECK(j["latency_ratio"] <= 1.0501);  // the one that can be met is
  }
  auto const neither = plan("cnn-small-b64", {"--memory-limit", "1MiB", "--latency-limit", "1us", "--json"});
  CHECK(neither.code == 1);
  CHECK(neither.err.find("and the latency limit is 1 us") != neither.err.npos);
}

TEST_CASE("plan: what memory costs in time, as a table and as a picture") {
  scratch const at;
  auto const csv = at / "front.csv", svg = at / "front.svg";
  auto const limits = std::vector<std::string>{"--memory-limit", "0.7", "--latency-limit", "1.3", "--json"};
  auto more = limits;
  more.insert(more.end(), {"--pareto", csv});
  auto const a = plan("gpt-d256-l4-b8-t128", more);
  CHECK(a.code == 0);
  auto const j = a.object();
  std::istringstream lines(read_bytes(csv));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "peak_bytes,latency_us,memory_ratio,latency_ratio,meets_limits,plan");
  double last_peak = 0, last_latency = 1e300;
  int rows = 0, plans = 0, meeting = 0;
  for (; std::getline(lines, line); ++rows) {
    double peak = 0, latency = 0, memory_ratio = 0, latency_ratio = 0;
    int meets = 0, chosen = 0;
    REQUIRE(std::sscanf(line.c_str(), "%lf,%lf,%lf,%lf,%d,%d", &peak, &latency, &memory_ratio, &latency_ratio, &meets,
                        &chosen) == 6);
    CHECK(peak >= last_peak);
    CHECK(latency <= last_latency);
    CHECK(meets == (memory_ratio <= 0.7 && latency_ratio <= 1.3));
    if (chosen) {
      CHECK(peak == j["peak_bytes"]);
      CHECK(latency == doctest::Approx(j["latency_us"].get<double>()));
    }
    last_peak = peak, last_latency = latency, plans += chosen, meeting += meets;
  }
  CHECK(rows > 5);
  CHECK(plans == 1);
  CHECK(meeting > 1);

  more = limits;
  more.insert(more.end(), {"--pareto", svg});
  CHECK(plan("gpt-d256-l4-b8-t128", more).code == 0);
  auto const picture = read_bytes(svg);
  CHECK(is_xml(picture));
  for (auto const* word : {"What memory costs in time: gpt-d256-l4-b8-t128", "memory limit", "latency limit",
                           "proved bound", "the plan", "as it came"})
    CHECK_MESSAGE(picture.find(word) != picture.npos, word);
  CHECK(plan("gpt-d256-l4-b8-t128", {"--memory-limit", "0.7", "--pareto", graph_file("gpt-d256-l4-b8-t128")})
            .refusal()
            .find("that is read") != std::string::npos);
  CHECK(plan("gpt-d256-l4-b8-t128", {"--memory-limit", "0.7", "--pareto", at / "no/where.csv"})
            .refusal()
            .find("no/where") != std::string::npos);
}

TEST_CASE("plan: --profile tells what was done, and where the time went") {
  auto const a = plan("cnn-small-b64", {"--memory-limit", "0.6", "--profile"});
  CHECK(a.code == 0);
  for (auto const* word : {"read ", "drawn ", "built ", "duplicates ", "evaluated ", "placed ", "verified ", "other ",
                           "stage ", "initial_orders ", "segments ", "placement ", "polish "})
    CHECK_MESSAGE(a.out.find(std::string("\n  ") + word) != a.out.npos, word);
  auto const plain = plan("cnn-small-b64", {"--memory-limit", "0.6", "--json"}).object();
  CHECK(!plain.contains("profile"));
  auto const j = plan("cnn-small-b64", {"--memory-limit", "0.6", "--profile", "--json"}).object();
  CHECK(j["peak_bytes"] == plain["peak_bytes"]);
  auto const& p = j["profile"];
  CHECK(p["judged"] == j["candidates"]);
  for (auto const* key : {"drawn", "built", "placed"}) CHECK_MESSAGE(p[key] > 0, key);
  CHECK(p["duplicates"] < p["built"]);
  double sum = 0;
  for (auto const* key :
       {"reading_s", "drawing_s", "applying_s", "checking_s", "judging_s", "placing_s", "verifying_s"}) {
    CHECK_MESSAGE(p[key] > 0, key);
    sum += p[key].get<double>();
  }
  CHECK(sum <= p["total_s"].get<double>());
  std::size_t candidates = 0;
  for (auto const& s : p["stages"]) candidates += s["candidates"].get<std::size_t>();
  CHECK(candidates == j["candidates"].get<std::size_t>());
}

TEST_CASE("plan: --explain has what holds the peak, what recomputation saves and costs, and the stage of the plan") {
  auto const explained = [](std::string const& limit, std::string const& iterations) {
    return run_neap(
        {"plan", graph_file("gpt-d256-l4-b8-t128"), "--memory-limit", limit, "--iterations", iterations, "--explain"});
  };
  auto const a = explained("0.55", "2000");
  CHECK(a.code == 0);
  for (auto const* word :
       {"explained:\n  peak ", " others and workspace", " resident", "  recomputed: ", " of the latency",
        " absent at positions ", "; kept, the peak would be ", "  more memory, ", "  found by: "})
    CHECK_MESSAGE(a.out.find(word) != a.out.npos, word);
  CHECK(a.out.find("recomputed: 0 ops") == a.out.npos);
  auto const free = explained("1", "100");
  CHECK(free.out.find("recomputed: 0 ops") != free.out.npos);
  CHECK(plan("cnn-small-b64", {"--memory-limit", "0.6", "--explain", "--json"}).code == 2);
}

TEST_CASE("plan: rules apply to a file's operators that neap knows") {
  scratch const at;
  // Two products of one matrix, added: one product of the sum is quicker.
  auto j = json::parse(R"({"format": "neap-graph", "version": 1, "name": "products",
    "buffers": [{"bytes": 4194304, "kind": "input"}, {"bytes": 4194304, "kind": "param"},
      {"bytes": 4194304, "kind": "param"}, {"bytes": 4194304, "kind": "temp"}, {"bytes": 4194304, "kind": "temp"},
      {"bytes": 4194304, "kind": "temp"}],
    "tensors": [], "outputs": [{"tensor": 5, "kind": "output"}],
    "nodes": [{"name": "p", "op": "aten.mm.default", "args": ["%0", "%1"], "in": [0, 1], "out": [3], "flags": [],
               "latency_us": 100},
              {"name": "q", "op": "aten.mm.default", "args": ["%0", "%1"], "in": [0, 2], "out": [4], "flags": [],
               "latency_us": 100},
              {"name": "y", "op": "aten.add.Tensor", "args": ["%0", "%1"], "in": [3, 4], "out": [5], "flags": [],
               "latency_us": 10}]})");
  for (int k = 0; k < 6; ++k) j["tensors"].push_back({{"buf", k}, {"dtype", "f32"}, {"shape", {1024, 1024}}});
  write_bytes(at / "g", j.dump());
  auto const run = [&](std::string const& moves) {
    return run_neap(
        {"plan", at / "g", "--memory-limit", "1", "--moves", moves, "--out", at / "p", "--iterations", "50"});
  };
  for (auto const* moves : {"rules", "fission,rules", "remat,rules"}) {
    auto const found = run(moves);
    CHECK(found.code == 0);
    CHECK(found.err == "");
  }
  auto const nodes = json::parse(read_bytes(at / "p"))["nodes"];
  std::vector<std::string> made_of;
  for (auto const& n : nodes) made_of.push_back(n["op"]);
  std::sort(made_of.begin(), made_of.end());
  CHECK(made_of == std::vector<std::string>{"neap.add", "neap.matmul"});
  CHECK(run_neap({"verify", at / "g", at / "p"}).code == 0);
  auto wrong = j;  // the plan is none of the same nodes of a difference
  wrong["nodes"][2]["op"] = "aten.sub.Tensor";
  write_bytes(at / "g", wrong.dump());
  CHECK(run_neap({"verify", at / "g", at / "p"}).code != 0);
  for (auto& n : j["nodes"]) n["op"] = "mine";
  write_bytes(at / "g", j.dump());
  CHECK(run("rules").refusal().find("no rule applies") != std::string::npos);
}

TEST_CASE("plan: bad options are refused with one line") {
  auto const refusal = [](std::vector<std::string> more) { return plan("mlp4-1024-b256", std::move(more)).refusal(); };
  CHECK(refusal({}).find("give --memory-limit, --latency-limit or both") != std::string::npos);
  for (auto const* bad :
       {"2GiBs", "-1", "-0.5", "nan", "inf", "", " ", "0x10", "1e30", "2.5.1", "200.5", "GiB", "99999999999GiB"}) {
    CAPTURE(bad);
    CHECK(refusal({std::string("--memory-limit=") + bad}).find("--memory-limit") != std::string::npos);
  }
  for (auto const* bad : {"-1s", "nan", "1h", "x", "1 s"}) {
    CAPTURE(bad);
    CHECK(refusal({std::string("--latency-limit=") + bad}).find("--latency-limit") != std::string::npos);
    auto const budget = refusal({"--memory-limit", "1", std::string("--time-budget=") + bad});
    CHECK(budget.find("--time-budget") != std::string::npos);
    CHECK(budget.find("ratio") == std::string::npos);
  }
  CHECK(refusal({"--memory-limit", "1", "--alignment", "0"}).find("--alignment") != std::string::npos);
  CHECK(refusal({"--memory-limit", "1", "--alignment", "-64"}).find("--alignment") != std::string::npos);
  CHECK(refusal({"--memory-limit", "1", "--seed", "x"}).find("--seed") != std::string::npos);
  for (std::string const number : {"-3", "9223372036854775808", "18446744073709551616", "1.5"})
    for (std::string const option : {"--seed", "--iterations"}) {
      auto const said = run_neap({"plan", graph_file("mlp4-1024-b256"), "--memory-limit", "1", option + "=" + number});
      CHECK(said.refusal().find(option + ": \"" + number + "\" is not a whole number from 0") != std::string::npos);
      CHECK(said.refusal().size() < 100);
    }
  CHECK(refusal({"--memory-limit", "1", "--threads", "0"}).find("--threads") != std::string::npos);
  CHECK(refusal({"--memory-limit", "1", "--takeover", "maybe"}).find("--takeover") != std::string::npos);
  CHECK(refusal({"--memory-limit", "1", "--moves", "remat,fly"}).find("fly") != std::string::npos);
  CHECK(refusal({"--memory-limit", "1", "--solver", "magic"}).find("--solver") != std::string::npos);
  for (auto const* bad : {"beam", "beam:", "beam:0", "beam:2.5", "beam:4x", "beam:1e9", "beam:-1", "worst"})
    CHECK(
        refusal({"--memory-limit", "1", "--search", bad}).find("--search: \"" + std::string(bad) + "\" is not known") !=
        std::string::npos);
  CHECK(refusal({"--memory-limit", "1", "--device", "h999"}).find("h999") != std::string::npos);
  CHECK(refusal({"--memory-limit", "1", "--nonsense"}).find("--nonsense") != std::string::npos);
  run_neap({}).refusal();
  run_neap({"fly"}).refusal();
  run_neap({"plan"}).refusal();
  CHECK(run_neap({"--help"}).code == 0);
  CHECK(run_neap({"plan", "--help"}).out.find("--memory-limit") != std::string::npos);
  CHECK(run_neap({"--version"}).code == 0);
}

TEST_CASE("plan: times as long as devices and graphs may say are planned, and the plan is right") {
  scratch const at;
  write_bytes(at / "slow.json",
              R"({"flops_per_s": {"f32": 1e-3}, "bandwidth_bytes_per_s": 1e-3, "launch_us": 3.2e19})");
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "1", "--device", at / "slow.json", "--out", at / "p"}).code == 0);
  CHECK(run_neap({"verify", graph_file("mlp4-1024-b256"), at / "p"}).code == 0);
  for (auto const* format : {"dot", "svg", "offsets"})
    CHECK(run_neap({"show", graph_file("mlp4-1024-b256"), at / "p", "--format", format}).code == 0);
}

TEST_CASE("plan: both limits missed are both told, and a bound of what is always there") {
  auto const a = plan("gpt-d256-l4-b8-t128", {"--memory-limit", "0.1", "--latency-limit", "0.99999"});
  CHECK(a.code == 1);
  a.check_line();
  CHECK(a.err.find("proved to be at least") != a.err.npos);
  auto const b = plan("gpt-d256-l4-b8-t128", {"--latency-limit", "0.99999"});
  CHECK(b.err.find("no plan fits: the limit is 1.583") != b.err.npos);
  CHECK(b.err.find(" ms, the best plan found takes 1.583") != b.err.npos);
}

TEST_CASE("plan: bad device files are refused with the place") {
  scratch const at;
  auto const device = [&](char const* text) {
    write_bytes(at / "d.json", text);
    return plan("mlp4-1024-b256", {"--memory-limit", "1", "--device", at / "d.json"}).refusal();
  };
  CHECK(device("{}").find("lacks \"flops_per_s\"") != std::string::npos);
  CHECK(device(R"({"flops_per_s": {}})").find("flops_per_s") != std::string::npos);
  CHECK(device(R"({"flops_per_s": {"f31": 1}})").find("flops_per_s.f31: unknown element type") != std::string::npos);
  CHECK(device(R"({"flops_per_s": {"f32": -1}})").find("flops_per_s.f32: must be a number") != std::string::npos);
  CHECK(device(R"({"flops_per_s": {"f32": 1e12}, "bandwidth_bytes_per_s": 0})").find("bandwidth_bytes_per_s") !=
        std::string::npos);
  CHECK(device(R"({"flops_per_s": {"f16": 1e12}, "bandwidth_bytes_per_s": 1e11})").find("flops_per_s: lacks \"f32\"") !=
        std::string::npos);
  auto const with = [&](std::string const& more) {
    return device((R"({"flops_per_s": {"f32": 1e12}, "bandwidth_bytes_per_s": 1e11, )" + more + "}").c_str());
  };
  CHECK(with(R"("launch_ms": 3)").find("launch_ms: unknown key") != std::string::npos);
  CHECK(
      with(R"("link_bytes_per_s": {"to_host": 1, "to_device": 1, "up": 1})").find("link_bytes_per_s.up: unknown key") !=
      std::string::npos);
  CHECK(with(R"("launch_us": 1e300)").find("launch_us: must be at most 3.2e19") != std::string::npos);
  CHECK(with(R"("link_latency_us": 1e300)").find("link_latency_us: must be at most") != std::string::npos);
  CHECK(with(R"("half_saturation_flops": 1e300)").find("half_saturation_flops: must be at most") != std::string::npos);
  CHECK(device("[1]").find("must be an object") != std::string::npos);
  CHECK(device("{").find("not JSON") != std::string::npos);
  CHECK(device(R"({"format": "neap-graph", "version": 1})").find("a graph file (neap-graph); a device is read from") !=
        std::string::npos);
}

TEST_CASE("plan: bad graph files are refused with one line") {
  scratch const at;
  auto const refusal = [&](std::string const& text) {
    write_bytes(at / "g", text);
    return run_neap({"plan", at / "g", "--memory-limit", "0.5"}).refusal();
  };
  CHECK(
      run_neap({"plan", at / "nowhere.json", "--memory-limit", "1"}).refusal().find("cannot be opened: No such file") !=
      std::string::npos);
  CHECK(run_neap({"plan", at.folder.string(), "--memory-limit", "1"}).refusal().find(at.folder.string()) !=
        std::string::npos);
  CHECK(run_neap({"plan", "no\nsuch\x1b[31m", "--memory-limit", "1"}).refusal().find("no?such?[31m") !=
        std::string::npos);
  CHECK(refusal("").find("not JSON") != std::string::npos);
  CHECK(refusal("{\"format\": \"neap-graph\"").find("not JSON") != std::string::npos);
  CHECK(refusal("{}").find("neither a neap-graph nor") != std::string::npos);
  CHECK(refusal("[]").find("must be an object") != std::string::npos);
  CHECK(refusal(std::string(1 << 20, '[')).find("nested deeper") != std::string::npos);
  CHECK(refusal(R"({"format": "neap-graph", "version": 1, "buffers": [], "tensors": [{"buf": 0}]})")
            .find("tensors[0].buf") != std::string::npos);
  auto const whole = read_bytes(graph_file("mlp4-1024-b256"));
  for (std::size_t keep : {1u, 2u, 9u, 20u, 1000u, unsigned(whole.size() - 1)}) refusal(whole.substr(0, keep));
}

TEST_CASE("plan: sizes and latencies that overflow, names that are none") {
  scratch const at;
  auto j = json::parse(unzipped(graph_file("mlp4-1024-b256")));
  auto const run = [&](json const& document) {
    write_bytes(at / "g", document.dump());
    return run_neap({"plan", at / "g", "--memory-limit", "0.98", "--iterations", "50", "--json"});
  };
  auto large = j;
  for (auto& b : large["buffers"]) b["bytes"] = std::int64_t{1} << 56;
  CHECK(run(large).refusal().find("the sizes add up to more than 2^60 bytes") != std::string::npos);
  auto slow = j;
  slow["nodes"][0]["latency_us"] = 1e300;
  CHECK(run(slow).refusal().find("nodes[0].latency_us") != std::string::npos);
  auto text = j.dump();
  text.replace(text.find("\"latency_us\":"), 13, "\"flops\":[{\"at\":[0,1e400]}],\"latency_us\":");
  write_bytes(at / "g", text);
  CHECK(run_neap({"plan", at / "g", "--memory-limit", "1"})
            .refusal()
            .find("nodes[0].flops[0].at[1]: 1e400 is beyond every double\n") != std::string::npos);
  auto named = j;
  named["name"] = "a\n\x1b[2J,\"b\"<c>&";
  auto const a = run(named);
  CHECK(a.code == 1);
  CHECK(a.object()["name"] == "a??[2J,\"b\"<c>&");
  named["nodes"][0]["name"] = std::string("x\ny\0z", 5);
  CHECK(run(named).refusal().find("zero character") != std::string::npos);
  auto empty = j;
  for (auto const* list : {"nodes", "outputs", "tensors", "buffers"}) empty[list] = json::array();
  CHECK(run(empty).code <= 1);  // nothing to do is no error
}

TEST_CASE("plan: files that cannot be written leave the old ones, and nothing half-written") {
  scratch const at;
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "1", "--out", at / "no/such/folder"})
            .refusal()
            .find("cannot be written") != std::string::npos);
  std::filesystem::create_directory(at / "folder");
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "1", "--out", at / "folder"}).refusal().find("it is a folder") !=
        std::string::npos);
  CHECK(at.file_count() == 1);
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "1", "--out", "/dev/full"}).refusal().find("No space left") !=
        std::string::npos);
  CHECK(std::filesystem::is_character_file("/dev/full"));
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "1", "--out", "/dev/null"}).code == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));
  write_bytes(at / "plan", "old");
  CHECK(plan("mlp4-1024-b256", {"--memory-limit", "nonsense", "--out", at / "plan"}).code == 2);
  CHECK(read_bytes(at / "plan") == "old");
  CHECK(run_neap({"plan", graph_file("mlp4-1024-b256"), "--memory-limit", "1", "--json"}, "/dev/full").code == 2);
}

TEST_CASE("plan: padded buffers, and operators that are called like neap's") {
  scratch const at;
  auto const faults = std::string(NEAP_SOURCE_DIR) + "/tests/cli/faults/";
  auto const a = run_neap({"plan", faults + "min1592b.json", "--memory-limit", "0.7", "--out", at / "p", "--json"});
  CHECK(a.code <= 1);
  CHECK(a.object()["lower_bound_bytes"] == 2048);  // the second op writes into the place of what it reads
  CHECK(a.object()["peak_bytes"] == 2048);
  CHECK(run_neap({"verify", faults + "min1592b.json", at / "p"}).code == 0);

  auto g = json::parse(read_bytes(faults + "A.json"));
  char const* const others[] = {"neap.something", "neap.store", "neap.load", "neap.relu", "neap.", "opaque"};
  for (std::size_t i = 0; i < g["nodes"].size(); ++i) g["nodes"][i]["op"] = others[i % 6];
  write_bytes(at / "g.json", g.dump());
  for (std::string const limit : {"1", "0.7"}) {
    CHECK(run_neap({"plan", at / "g.json", "--memory-limit", limit, "--iterations", "60", "--out", at / "p"}).code <=
          1);
    CHECK(run_neap({"verify", at / "g.json", at / "p"}).code == 0);
    for (std::string const format : {"svg", "dot", "offsets"})
      CHECK(run_neap({"show", at / "g.json", at / "p", "--format", format}).code == 0);
  }
}

TEST_CASE("plan: a search ends where its seeds come no lower than a byte above the bound") {
  auto const file = std::string(NEAP_SOURCE_DIR) + "/tests/cli/faults/thirty-bytes.json";
  for (std::string const moves : {"all", "remat,swap", "swap"})
    for (std::string const limit : {"0", "0.5", "0.98"}) {
      auto const a = run_neap(
          {"plan", file, "--memory-limit", limit, "--moves", moves, "--alignment", "1", "--iterations", "100"});
      CHECK(a.code == 1);
      CHECK(a.err.find("no plan fits") != a.err.npos);
    }
}

TEST_CASE("plan: limits as ratios, with a point or a per cent sign, and as amounts") {
  auto const limit = [](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"plan", graph_file("mlp4-1024-b256"), "--iterations", "1", "--moves", "remat", "--json"});
    auto const a = run_neap(more);
    CHECK(a.code < 2);
    return a;
  };
  scratch const at;
  auto const peak = limit({"--memory-limit", "1"}).object()["original_peak_bytes"].get<long long>();
  for (std::string const all : {"1", "1.0", "100%", "1.5", "150%"}) CHECK(limit({"--memory-limit", all}).code == 0);
  for (std::string const none : {"0", "0.0", "0%", "2", "1024B", "1KiB"})
    CHECK(limit({"--memory-limit", none}).code == 1);
  CHECK(limit({"--memory-limit", std::to_string(peak)}).code == 0);
  for (std::string const all : {"1", "1.0", "100%"}) CHECK(limit({"--latency-limit", all}).code == 0);
  for (std::string const wrong : {"5%%", "101.5", "20000%", "x%", "%"})
    CHECK(run_neap({"plan", graph_file("mlp4-1024-b256"), "--memory-limit", wrong}).refusal().find("--memory-limit") !=
          std::string::npos);
  CHECK(run_neap({"allocate", graph_file("mlp4-1024-b256"), "--capacity", "50%"}).refusal().find("--capacity") !=
        std::string::npos);
}
