// neap checkpoint: chains of blocks, under limits that hold and under the peer's.
#include "testing.hpp"

#include <sstream>

using namespace neap_cli_test;

namespace {

std::string chain_file(std::string const& name) {
  return std::string(NEAP_SOURCE_DIR) + "/tests/blocks/chains/" + name + ".json.gz";
}

answer checkpoint(std::string const& file, std::vector<std::string> more) {
  more.insert(more.begin(), {"checkpoint", file});
  return run_neap(more);
}

}  // namespace

TEST_CASE("checkpoint: the plan of a chain, as JSON") {
  auto const file = chain_file("gpt24x2_o12");
  auto const given = json::parse(unzipped(file));
  for (std::string const limits : {"exact", "peer"}) {
    auto const& row = given[limits + "_results"][0];
    auto const a = checkpoint(file, {"--memory-limit", "377", "--limits", limits, "--json"});
    CHECK(a.code == 0);
    CHECK(a.err == "");
    auto const j = a.object();
    CHECK(j["feasible"] == true);
    CHECK(j["name"] == "gpt24x2_o12");
    CHECK(j["limits"] == limits);
    CHECK(j["memory_limit"] == 377);
    double const best = row[limits == "exact" ? "opt_exact" : "opt"];
    CHECK(std::abs(j["time"].get<double>() - best) < 1e-9 * best);
    if (limits == "exact") CHECK(j["peak"] <= 377 + j["input"].get<long long>());
    else CHECK(j["peak"] > 377 + j["input"].get<long long>());  // Rockmate's plan is over its budget
    CHECK(j["norecompute_peak"] == given["norecompute_peak"]);
    CHECK(std::abs(j["norecompute_time"].get<double>() - given["norecompute_time"].get<double>()) < 1e-6);
    CHECK(j["seconds"] >= 0);
    std::istringstream words(j["sequence"].get<std::string>());
    int losses = 0, backwards = 0;
    for (std::string word; words >> word;) losses += word == "L", backwards += word[0] == 'B';
    CHECK(losses == 1);
    CHECK(backwards == 50);
  }
  // A ratio is one of the peak without recomputation, which counts the input.
  auto const ratio = checkpoint(file, {"--memory-limit", "0.25", "--json"}).object();
  CHECK(ratio["memory_limit"] == 377 - ratio["input"].get<long long>());
  CHECK(ratio["peak"] <= 377);
  auto const whole = checkpoint(file, {"--memory-limit", "1.0", "--json"}).object()["time"].get<double>();
  CHECK(std::abs(whole - ratio["norecompute_time"].get<double>()) < 1e-9 * whole);
}

TEST_CASE("checkpoint: a ratio counts the chain's input on both sides") {
  scratch const at;
  auto const file = at / "large_input.json";
  write_bytes(file, R"({"ln": 3, "nb_sol": [1, 1, 1, 1], "cw": [40, 10, 10, 10, 0], "ff_fw": [1, 1, 1, 0],
    "ff_fwd_tmp": [0, 0, 0, 0], "fw": [[1], [1], [1], [0]], "bw": [[1], [1], [1], [0]],
    "fwd_tmp": [[0], [0], [0], [0]], "bwd_tmp": [[0], [0], [0], [0]], "cbw": [[], [60], [60], [60], [0]]})");
  auto const whole = checkpoint(file, {"--memory-limit", "1.0", "--json"}).object();
  auto const peak = whole["norecompute_peak"].get<double>(), input = whole["input"].get<double>();
  CHECK(input == 40);
  CHECK(whole["peak"] == peak);
  std::size_t feasible = 0;
  for (auto const* ratio : {"0.99", "0.9", "0.8", "0.7", "0.6", "0.5", "0.3", "0"})
    for (auto const* slot : {"1", "7"}) {
      auto const j = checkpoint(file, {"--memory-limit", ratio, "--slot", slot, "--json"}).object();
      feasible += j["feasible"].get<bool>();
      if (j["feasible"].get<bool>()) CHECK(j["peak"].get<double>() <= std::stod(ratio) * peak);
      if (std::stod(ratio) * peak < input) CHECK(j["feasible"] == false);
    }
  CHECK(feasible > 5);
  auto const none = checkpoint(file, {"--memory-limit", "0.1"});
  CHECK(none.code == 1);
  CHECK(none.err.find("the limit is below the chain's input") != none.err.npos);
}

TEST_CASE("checkpoint: the table for people, the sequence and the front in files") {
  scratch const at;
  auto const file = chain_file("uniform64");
  auto const a = checkpoint(file, {"--memory-limit", "130", "--out", at / "s", "--front", at / "f.csv"});
  CHECK(a.code == 0);
  CHECK(a.out.find("64 blocks, limit 130 slots") != a.out.npos);
  CHECK(a.out.find("243        192") != a.out.npos);
  auto const sequence = read_bytes(at / "s");
  CHECK(sequence + "" ==
        checkpoint(file, {"--memory-limit", "130", "--json"}).object()["sequence"].get<std::string>() + "\n");
  std::istringstream front(read_bytes(at / "f.csv"));
  std::string line;
  std::getline(front, line);
  CHECK(line == "limit,time");
  long long last_limit = -1;
  double last_time = 1e300;
  while (std::getline(front, line)) {
    auto const comma = line.find(',');
    auto const limit = std::stoll(line.substr(0, comma));
    auto const time = std::stod(line.substr(comma + 1));
    CHECK(limit > last_limit);
    CHECK(time < last_time);
    last_limit = limit, last_time = time;
    auto const j = checkpoint(file, {"--memory-limit", std::to_string(limit), "--json"}).object();
    CHECK(j["time"] == time);
  }
  CHECK(last_time == 243);
}

TEST_CASE("checkpoint: no plan fits") {
  auto const file = chain_file("resnet52");
  auto const a = checkpoint(file, {"--memory-limit", "100", "--json"});
  CHECK(a.code == 1);
  a.check_line();
  auto const j = a.object();
  CHECK(j["feasible"] == false);
  CHECK(j["time"].is_null());
  CHECK(j["peak"].is_null());
  CHECK(j["sequence"].is_null());
  auto const least = j["least_limit"].get<long long>();
  CHECK(a.err.find("no plan fits: the limit is 100 slots, the least that suffices is " + std::to_string(least)) !=
        a.err.npos);
  CHECK(checkpoint(file, {"--memory-limit", std::to_string(least)}).code == 0);
  CHECK(checkpoint(file, {"--memory-limit", std::to_string(least - 1)}).code == 1);
  CHECK(checkpoint(file, {"--memory-limit", "100"}).out == "");
  CHECK(checkpoint(file, {"--memory-limit", "0"}).code == 1);
}

TEST_CASE("checkpoint: bad input is one line") {
  scratch const at;
  auto const file = chain_file("uniform64");
  CHECK(run_neap({"checkpoint", file}).refusal() == "neap: --memory-limit is required\n");
  CHECK(checkpoint(at / "none", {"--memory-limit", "5"}).refusal().find("cannot be opened") != std::string::npos);
  for (std::string const wrong : {"-5", "x", "5MiB", "nan", "1e30", "377.5", ""}) {
    CAPTURE(wrong);
    CHECK(checkpoint(file, {"--memory-limit=" + wrong}).refusal().find("memory-limit") != std::string::npos);
  }
  CHECK(checkpoint(file, {"--memory-limit", "5", "--limits", "none"}).refusal().find("--limits") != std::string::npos);
  CHECK(checkpoint(file, {"--memory-limit", "500", "--out", at / "no/such"}).refusal().find("cannot be written") !=
        std::string::npos);
  CHECK(checkpoint(file, {"--memory-limit", "500", "--out", file}).refusal().find("is the CHAIN that is read") !=
        std::string::npos);
  write_bytes(at / "c.json", "{\"ln\": 1");
  CHECK(checkpoint(at / "c.json", {"--memory-limit", "5"}).refusal().find("not JSON") != std::string::npos);
  CHECK(checkpoint(file, {"--memory-limit", "5", "--slot", "0"}).refusal().find("--slot") != std::string::npos);
  // Sizes in odd bytes: a table that no machine has room for, unless slots are larger.
  auto j = json::parse(unzipped(file));
  for (int i = 1; i < 64; ++i) j["cbw"][i][0] = 1'000'000'007LL * i;
  write_bytes(at / "large.json", j.dump());
  CHECK(checkpoint(at / "large.json", {"--memory-limit", "1.0"})
            .refusal()
            .find("take a smaller limit, or larger slots") != std::string::npos);
  auto const coarse = checkpoint(at / "large.json", {"--memory-limit", "0.5", "--slot", "100000000", "--json"});
  CHECK(coarse.code == 0);
  CHECK(coarse.object()["peak"].get<long long>() <= coarse.object()["memory_limit"].get<long long>() + 4);
  CHECK(coarse.object()["time"] > 192);
}

TEST_CASE("checkpoint: larger slots cost little time, and nothing where all can be saved") {
  for (std::string const name : {"resnet52", "uniform64"}) {
    CAPTURE(name);
    auto const time = [&](std::string const& limit, std::string const& slot) {
      auto const a = checkpoint(chain_file(name), {"--memory-limit", limit, "--slot", slot, "--json"});
      REQUIRE(a.code == 0);
      auto const j = a.object();
      CHECK(j["peak"].get<long long>() <= j["memory_limit"].get<long long>() + j["input"].get<long long>());
      return j["time"].get<double>();
    };
    for (std::string const slot : {"3", "50", "1000"}) {
      CAPTURE(slot);
      CHECK(time("1.0", slot) == doctest::Approx(time("1.0", "1")));
    }
    CHECK(time("0.6", "20") <= 1.02 * time("0.6", "1"));
  }
  auto const none = checkpoint(chain_file("resnet52"), {"--memory-limit", "300", "--slot", "1000"});
  CHECK(none.code == 1);
  CHECK(none.err.find("no plan in slots of 1000 fits: the limit is 300 slots") != none.err.npos);
}

TEST_CASE("checkpoint: a whole number is slots, a point or a per cent sign a ratio") {
  scratch const at;
  write_bytes(
      at / "c.json",
      R"({"ln": 3, "nb_sol": [1, 1, 1, 1], "cw": [1, 1, 1, 1, 0], "ff_fw": [1, 1, 1, 0], "ff_fwd_tmp": [0, 0, 0, 0],
                  "fw": [[1], [1], [1], [0]], "bw": [[2], [2], [2], [0]], "fwd_tmp": [[0], [0], [0], [0]],
                  "bwd_tmp": [[0], [0], [0], [0]], "cbw": [[], [2], [2], [2], [0]]})");
  for (std::string const slots : {"0", "1", "2", "4"}) {
    auto const a = checkpoint(at / "c.json", {"--memory-limit", slots, "--json"});
    CHECK(a.code == 1);
    CHECK(a.object()["memory_limit"] == std::stoi(slots));
    CHECK(a.object()["least_limit"] == 5);
  }
  CHECK(checkpoint(at / "c.json", {"--memory-limit", "1"})
            .err.find("the limit is 1 slot, the least that suffices is 5") != std::string::npos);
  for (std::string const whole : {"1.0", "1.", "100%", "100.0%"})
    CHECK(checkpoint(at / "c.json", {"--memory-limit", whole, "--json"}).object()["memory_limit"] == 8);
  for (std::string const most : {"0.7", "70%", "7e-1"})
    CHECK(checkpoint(at / "c.json", {"--memory-limit", most, "--json"}).object()["memory_limit"] == 5);
  for (std::string const wrong : {"2GiB", "5B", "101.5", "20000%", "5%%", "% 5", "1e400", "nan", "inf", "5 slots"})
    CHECK(checkpoint(at / "c.json", {"--memory-limit=" + wrong}).refusal().find("--memory-limit") != std::string::npos);
  CHECK(checkpoint(at / "c.json", {"--memory-limit", "2GiB"}).refusal().find("in slots") != std::string::npos);
}
