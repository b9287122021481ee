// neap plan: plans of earlier runs to begin with, and several limits in one run.
#include "testing.hpp"

#include <sstream>

using namespace neap_cli_test;

namespace {

std::string const name = "cnn-small-b64";

answer plan(std::vector<std::string> options) {
  std::vector<std::string> all{"plan", graph_file(name), "--json"};
  all.insert(all.end(), options.begin(), options.end());
  return run_neap(all);
}

}  // namespace

TEST_CASE("plan: --start: a looser limit is no slower than the plan of a tighter one, whatever the search finds") {
  scratch const at;
  auto const tight = plan({"--memory-limit", "0.6", "--iterations", "600", "--out", at / "tight.plan"}).object();
  REQUIRE(tight["fits"] == true);
  auto const alone = plan({"--memory-limit", "0.62", "--iterations", "0", "--moves", "reorder"}).object();
  REQUIRE(alone["fits"] == false);
  auto const a = plan({"--memory-limit", "0.62", "--iterations", "0", "--moves", "reorder", "--start",
                       at / "tight.plan", "--out", at / "loose.plan"});
  CHECK(a.code == 0);
  auto const loose = a.object();
  CHECK(loose["fits"] == true);
  CHECK(loose["latency_us"] == tight["latency_us"]);
  CHECK(loose["recomputed_ops"] == tight["recomputed_ops"]);
  CHECK(run_neap({"verify", graph_file(name), at / "loose.plan"}).code == 0);
}

TEST_CASE("plan: --start: plans of other graphs, wrong ones and those that are written are refused") {
  scratch const at;
  auto const file = at / "a.plan";
  REQUIRE(plan({"--memory-limit", "0.6", "--iterations", "100", "--out", file}).code == 0);
  auto const start = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--memory-limit", "0.7", "--iterations", "0", "--start", file});
    return plan(std::move(more));
  };
  CHECK(start({"--keep", "aten.relu*"}).refusal().find("was made for another graph") != std::string::npos);
  CHECK(start({"--out", file}).refusal().find("is the --start that is read") != std::string::npos);
  auto const other = run_neap({"plan", graph_file("mlp4-1024-b256"), "--memory-limit", "0.7", "--start", file});
  CHECK(other.refusal().find("was made for another graph") != std::string::npos);
  auto text = read_bytes(file);
  auto const from = text.find("\"offset\":");
  REQUIRE(from != std::string::npos);
  text.insert(from + 9, "1");  // another place in the arena
  write_bytes(file, sealed(text));
  CHECK(start({}).refusal().find("--start: " + file) != std::string::npos);
}

TEST_CASE("plan: several limits: each fits where the one before did, and is no slower; each has its files") {
  scratch const at;
  auto const a =
      plan({"--memory-limit", "0.5,0.6,70%", "--iterations", "40", "--out", at / "cnn.plan", "--svg", at / "cnn.svg"});
  std::vector<json> rows;
  std::istringstream lines(a.out);
  for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i - 1]["fits"] != true) continue;
    CHECK(rows[i]["fits"] == true);
    CHECK(rows[i]["latency_us"].get<double>() <= rows[i - 1]["latency_us"].get<double>());
  }
  CHECK(rows.back()["fits"] == true);
  for (std::string const limit : {"0.5", "0.6", "70%"}) {
    CHECK(run_neap({"verify", graph_file(name), at / ("cnn-" + limit + ".plan")}).code == 0);
    CHECK(is_xml(read_bytes(at / ("cnn-" + limit + ".svg"))));
  }
  CHECK(!std::filesystem::exists(at / "cnn.plan"));
  CHECK(plan({"--memory-limit", "0.6,0.5"}).refusal().find("several limits must rise") != std::string::npos);
  CHECK(plan({"--memory-limit", "0.6,2GiB"}).refusal().find("all bytes or all ratios") != std::string::npos);
  CHECK(plan({"--memory-limit", "0.6,"}).refusal().find("--memory-limit: \"\"") != std::string::npos);
}
