// neap show: pictures that other programs can read.
#include "testing.hpp"

#include <set>
#include <utility>

using namespace neap_cli_test;

TEST_CASE("show: SVG of a graph and of a plan is XML and names what is seen") {
  scratch const at;
  auto const graph = graph_file("cnn-small-b64");
  auto const alone = run_neap({"show", graph});
  CHECK(alone.code == 0);
  CHECK(alone.err == "");
  CHECK(is_xml(alone.out));
  CHECK(run_neap(
            {"plan", graph, "--memory-limit", "0.5", "--iterations", "300", "--out", at / "p", "--svg", at / "s.svg"})
            .code == 0);
  auto const drawn = read_bytes(at / "s.svg");
  CHECK(is_xml(drawn));
  for (auto const* word : {"cnn-small-b64", "limit", "peak, as it came", "peak, planned", "MiB", "always there"})
    CHECK_MESSAGE(drawn.find(word) != drawn.npos, word);
  CHECK(run_neap({"show", graph, at / "p", "--format", "svg", "--out", at / "t.svg"}).code == 0);
  auto const shown = read_bytes(at / "t.svg");
  CHECK(is_xml(shown));
  CHECK(shown.find("peak, planned") != shown.npos);
  // the same curves as the plan command drew
  auto const path = [](std::string const& s) {
    return s.substr(s.find("<path"), s.find("/>", s.find("<path")) - s.find("<path"));
  };
  CHECK(path(shown) == path(drawn));
  // and what it told: the limit, the peak's tensors, what is recomputed and moved
  auto const words = [](std::string const& s) {
    std::vector<std::string> all;
    for (auto const& t : neap::testing::texts(s)) all.push_back(t.text);
    return all;
  };
  CHECK(words(shown) == words(drawn));
  CHECK(neap::testing::has_text(shown, "limit"));
  CHECK(neap::testing::texts_outside(shown) == std::vector<std::string>{});
}

TEST_CASE("show: what is recomputed and moved is the plan's, by number and by name") {
  scratch const at;
  auto const graph = graph_file("gpt-d256-l4-b8-t128");
  auto const told =
      run_neap({"plan", graph, "--memory-limit", "0.7", "--iterations", "400", "--json", "--out", at / "p"});
  auto const plan = told.object();
  auto const svg = run_neap({"show", graph, at / "p"}).out;
  CHECK(is_xml(svg));
  CHECK(neap::testing::texts_outside(svg) == std::vector<std::string>{});
  auto const file = json::parse(read_bytes(at / "p"));
  std::vector<std::string> names;  // of nodes whose origin an earlier one had, in the same part, views left out
  std::set<std::pair<std::int64_t, std::string>> seen;
  for (auto const& n : file["nodes"]) {
    auto const origin = n["origin"].get<std::int64_t>();
    if (origin < 0) continue;
    bool view = false;
    if (n.contains("flags"))
      for (auto const& f : n["flags"]) view |= f == "view";
    auto const first = seen.emplace(origin, n.contains("part") ? n["part"].dump() : std::string()).second;
    if (!first && !view) names.push_back(n["name"]);
  }
  CHECK(plan["recomputed_ops"] == names.size());
  REQUIRE(names.size() + plan["stores"].get<std::size_t>() > 0);
  auto const shown = [&](std::string const& what) {  // the number after "Recomputed: "
    for (auto const& t : neap::testing::texts(svg))
      if (t.text.starts_with(what + ": ")) return std::stoul(t.text.substr(what.size() + 2));
    return 0ul;
  };
  CHECK(shown("Recomputed") == names.size());
  CHECK(shown("Moved out") == plan["stores"].get<std::size_t>());
  CHECK(shown("Brought in") == plan["loads"].get<std::size_t>());
  std::string all;
  for (auto const& t : neap::testing::titles(svg)) all += t + "\n";
  if (all.find("; and ") == all.npos)
    for (auto const& n : names) CHECK_MESSAGE(all.find(n + " (") != all.npos, n);
}

TEST_CASE("show: a plan that was made before limits were told has no line, and one above its limit keeps it") {
  scratch const at;
  auto const graph = graph_file("mlp4-1024-b256");
  CHECK(run_neap({"plan", graph, "--memory-limit", "0.8", "--iterations", "50", "--out", at / "p"}).code == 1);
  auto text = read_bytes(at / "p");
  CHECK(json::parse(text)["limits"]["memory_bytes"].is_number());
  for (auto const* format : {"svg", "offsets"})
    CHECK(neap::testing::has_text(run_neap({"show", graph, at / "p", "--format", format}).out, "limit"));
  auto const begin = text.find("\"limits\":{"), end = text.find("},", begin);
  text.erase(begin, text.find('"', end) - begin);
  write_bytes(at / "q", sealed(text));
  CHECK(run_neap({"verify", graph, at / "q"}).code == 0);
  for (auto const* format : {"svg", "offsets"}) {
    auto const a = run_neap({"show", graph, at / "q", "--format", format});
    CHECK(a.code == 0);
    CHECK(a.out.find("limit") == a.out.npos);
  }
  for (auto const* bad : {"-5", "\"much\"", "1.5"}) {
    auto wrong = read_bytes(at / "p");
    auto const from = wrong.find("\"memory_bytes\":") + 15, to = wrong.find_first_of(",}", from);
    wrong.replace(from, to - from, bad);
    write_bytes(at / "r", sealed(wrong));
    CHECK(run_neap({"show", graph, at / "r"}).refusal().find("limits.memory_bytes") != std::string::npos);
  }
}

TEST_CASE("show: addresses over time, of a plan") {
  scratch const at;
  auto const graph = graph_file("mlp4-1024-b256");
  auto const told = run_neap({"plan", graph, "--memory-limit", "1", "--iterations", "50", "--out", at / "p"});
  CHECK(told.code == 0);
  auto const a = run_neap({"show", graph, at / "p", "--format", "offsets"});
  CHECK(a.code == 0);
  CHECK(is_xml(a.out));
  for (auto const* word : {"mlp4-1024-b256", "position in the schedule", "Grey, beneath", "The arena is"})
    CHECK_MESSAGE(a.out.find(word) != a.out.npos, word);
  // the arena that the plan command printed: "arena  34.0 MiB   resident 17.0 MiB"
  auto const line = told.out.substr(told.out.find("arena"));
  auto const number = line.find_first_of("0123456789");
  auto const arena = line.substr(number, line.find("B", number) + 1 - number);
  CHECK(a.out.find("The arena is " + arena) != a.out.npos);
  CHECK(neap::testing::has_text(a.out, arena));
  CHECK(a.out.find("moment") == a.out.npos);
  for (auto const& n : {"mm_1", "relu_2"}) CHECK_MESSAGE(neap::testing::has_text(a.out, n), n);
  auto const titles = neap::testing::titles(a.out);
  auto const buffers = json::parse(read_bytes(at / "p"))["buffers"];
  CHECK(titles.size() > buffers.size() / 2);
  CHECK(neap::testing::texts_outside(a.out) == std::vector<std::string>{});
  CHECK(run_neap({"show", graph, "--format", "offsets"}).refusal().find("needs a plan") != std::string::npos);
}

TEST_CASE("show: DOT that Graphviz accepts") {
  scratch const at;
  bool const graphviz = std::system("dot -V >/dev/null 2>&1") == 0;
  CHECK(run_neap({"plan", graph_file("mlp4-1024-b256"), "--memory-limit", "1", "--out", at / "p"}).code == 0);
  for (bool planned : {false, true}) {
    std::vector<std::string> arguments{"show", graph_file("mlp4-1024-b256"), "--format", "dot", "--out", at / "g.dot"};
    if (planned) arguments.insert(arguments.begin() + 2, at / "p");
    CHECK(run_neap(arguments).code == 0);
    auto const text = read_bytes(at / "g.dot");
    CHECK(text.starts_with("digraph neap {"));
    CHECK(text.ends_with("}\n"));
    CHECK(text.find("aten.mm.default") != text.npos);
    CHECK(text.find("cluster_backward") != text.npos);
    CHECK(text.find("4.00 MiB") != text.npos);
    if (graphviz) CHECK(std::system(("dot -Tsvg '" + (at / "g.dot") + "' -o '" + (at / "g.svg") + "'").c_str()) == 0);
  }
}

TEST_CASE("show: odd names do not break a picture") {
  scratch const at;
  auto j = json::parse(unzipped(graph_file("mlp4-1024-b256")));
  j["name"] = "<&\"\x01>\n";
  j["nodes"][0]["name"] =
      "a\"\\\n\x02"
      "b";
  write_bytes(at / "g", j.dump());
  CHECK(is_xml(run_neap({"show", at / "g"}).out));
  auto const dot = run_neap({"show", at / "g", "--format", "dot"});
  CHECK(dot.code == 0);
  CHECK(dot.out.find('\x02') == dot.out.npos);
}

TEST_CASE("show: a plan that is not right is not drawn") {
  scratch const at;
  auto const graph = graph_file("mlp4-1024-b256");
  CHECK(run_neap({"plan", graph, "--memory-limit", "1", "--iterations", "20", "--out", at / "p"}).code == 0);
  auto const good = json::parse(read_bytes(at / "p"));
  auto const refusals = [&](json plan) {
    plan.erase("checksum");
    auto text = plan.dump();  // keys in another order: a reader does not mind
    text.back() = ',';
    write_bytes(at / "q", sealed(text + "\"checksum\":\"\"}"));
    for (auto const* format : {"dot", "svg", "offsets"}) {
      auto const why = run_neap({"show", graph, at / "q", "--format", format}).refusal();
      CAPTURE(why);
      CHECK(why.find(at / "q") != why.npos);
    }
  };
  auto few = good;
  few["steps"] = {good["steps"][0], good["steps"][1], good["steps"][2]};
  for (auto& b : few["buffers"]) b["first"] = 0, b["last"] = 2;
  refusals(few);
  auto far = good;
  for (auto& b : far["buffers"]) b["offset"] = INT64_MAX;
  refusals(far);
}

TEST_CASE("show: a plan made with the optimizer's part is read with it") {
  scratch const at;
  auto const graph = graph_file("mlp4-1024-b256");
  CHECK(run_neap({"plan", graph, "--memory-limit", "1", "--iterations", "20", "--optimizer", "--out", at / "p"}).code ==
        0);
  for (auto const* format : {"dot", "svg", "offsets"})
    CHECK(run_neap({"show", graph, at / "p", "--format", format}).code == 0);
}

TEST_CASE("show: bad input is refused with one line") {
  auto const graph = graph_file("mlp4-1024-b256");
  scratch const at;
  run_neap({"show"}).refusal();
  run_neap({"show", "/nowhere"}).refusal();
  run_neap({"show", graph, "--format", "gif"}).refusal();
  run_neap({"show", graph, "/nowhere"}).refusal();
  run_neap({"show", graph, "--out", at / "no/such"}).refusal();
  CHECK(run_neap({"plan", graph_file("cnn-small-b64"), "--memory-limit", "1", "--iterations", "20", "--out", at / "p"})
            .code == 0);
  CHECK(run_neap({"show", graph, at / "p"}).refusal().find("another graph") != std::string::npos);
}

TEST_CASE("show: the graphs that blocks are made with") {
  scratch const at;
  auto const graph = graph_file("gpt-d256-l4-b8-t128");
  for (std::string const what : {"basic", "dataflow", "simplified", "blocks", "kernels"}) {
    CAPTURE(what);
    auto const drawn = run_neap({"show", graph, "--format", "dot", "--graph", what});
    CHECK(drawn.code == 0);
    CHECK(drawn.err == "");
    CHECK(drawn.out.starts_with("digraph"));
    CHECK(drawn.out.find("14 blocks of 8 classes") != drawn.out.npos);
    auto const one = run_neap({"show", graph, "--format", "dot", "--graph", what, "--block", "2", "--out", at / "d"});
    CHECK(one.code == 0);
    auto const of_one = read_bytes(at / "d");
    CHECK(of_one.find("block 2") != std::string::npos);
    CHECK(of_one.size() < drawn.out.size() * 2 / 3);
    CHECK(of_one.find("block 9,") == std::string::npos);
  }
  auto const refused = [&](std::vector<std::string> more, std::string const& why) {
    std::vector<std::string> all{"show", graph};
    all.insert(all.end(), more.begin(), more.end());
    auto const r = run_neap(all);
    CHECK(r.code == 2);
    CHECK(r.err.find(why) != r.err.npos);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  };
  refused({"--graph", "blocks"}, "--graph: needs --format dot, and no plan");
  refused({"--format", "dot", "--block", "1"}, "--block: needs --graph");
  refused({"--format", "dot", "--graph", "basic", "--block", "14"}, "has 14 blocks, from 0 on");
}
