// neap verify: right plans pass; damaged and wrong ones, and those of other graphs, are refused.
#include "testing.hpp"

using namespace neap_cli_test;

namespace {

/// A plan with recomputation and transfers of the small CNN, made once.
std::string const& plan_text() {
  static std::string const text = [] {
    scratch const at;
    auto const a = run_neap(
        {"plan", graph_file("cnn-small-b64"), "--memory-limit", "0.45", "--iterations", "400", "--out", at / "p"});
    CHECK(a.code <= 1);
    return read_bytes(at / "p");
  }();
  return text;
}

answer verify_text(std::string const& text, std::string const& graph = "cnn-small-b64",
                   std::vector<std::string> more = {}) {
  scratch const at;
  write_bytes(at / "p", text);
  more.insert(more.begin(), {"verify", graph_file(graph), at / "p"});
  return run_neap(more);
}

/// The text with its n-th number after `"key":` changed.
std::string with(std::string text, std::string const& key, std::string const& value, std::size_t from = 0) {
  auto const at = text.find("\"" + key + "\":", from) + key.size() + 3;
  auto const end = text.find_first_of(",}\n", at);
  return sealed(text.replace(at, end - at, value));
}

}  // namespace

TEST_CASE("verify: what neap plan wrote is right") {
  auto const a = verify_text(plan_text());
  CHECK(a.code == 0);
  CHECK(a.err == "");
  CHECK(a.out.find("right") != a.out.npos);
  CHECK(sealed(plan_text()) == plan_text());  // the seal of these tests is the file's
}

TEST_CASE("verify: a plan of another graph, a graph that is no plan, a missing file") {
  CHECK(verify_text(plan_text(), "mlp4-1024-b256").refusal().find("was made for another graph") != std::string::npos);
  CHECK(run_neap({"verify", graph_file("cnn-small-b64"), graph_file("cnn-small-b64")})
            .refusal()
            .find("a plan is read from a neap.plan file") != std::string::npos);
  CHECK(run_neap({"verify", graph_file("cnn-small-b64"), "/nowhere"}).refusal().find("/nowhere: cannot be opened") !=
        std::string::npos);
  run_neap({"verify", graph_file("cnn-small-b64")}).refusal();
}

TEST_CASE("verify: damage is seen by the checksum, wherever it is") {
  auto const& good = plan_text();
  std::size_t unlike = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    auto text = good;
    auto const at = good.size() * (2 * i + 1) / 48;
    if (text[at] >= '0' && text[at] <= '9') text[at] = text[at] == '9' ? '8' : static_cast<char>(text[at] + 1);
    else text[at] = '7';
    CAPTURE(at);
    auto const why = verify_text(text).refusal();
    unlike += why.find("checksum") == why.npos && why.find("not JSON") == why.npos;
  }
  CHECK(unlike <= 1);
  for (std::size_t keep : {std::size_t{0}, good.size() / 2, good.size() - 2})
    verify_text(good.substr(0, keep)).refusal();
  CHECK(verify_text(good.substr(0, good.size() - 2) + ",\"peak_bytes\":1}\n")
            .refusal()
            .find("the member \"peak_bytes\" twice") != std::string::npos);
  CHECK(verify_text(good + " ").refusal().find("checksum") != std::string::npos);
}

TEST_CASE("verify: one number changed and sealed again is a wrong plan, and it is said why") {
  auto const& good = plan_text();
  auto const wrong = [&](std::string const& key, std::string const& value, std::string const& kind,
                         std::size_t from = 0) {
    CAPTURE(key);
    auto const why = verify_text(with(good, key, value, from)).refusal();
    CAPTURE(why);
    CHECK(why.find(kind) != why.npos);
  };
  wrong("peak_bytes", "1000", "wrong-peak");
  wrong("arena_bytes", "1000", "arena");
  wrong("resident_bytes", "1", "wrong-resident");
  wrong("lower_bound_bytes", "99999999999", "wrong-bound");
  wrong("latency_us", "1", "wrong-latency");
  wrong("alignment", "128", "");
  auto const buffers = good.find("\"buffers\":");
  wrong("offset", "9223372036854775807", "", buffers);
  wrong("offset", "1", "misaligned", buffers);
  wrong("bytes", "1", "wrong-size", buffers);
  wrong("last", "0", "", good.find("\"resident\":false", buffers) - 40);
  wrong("fingerprint", "\"00000000000000000000000000000000\"", "another graph");
  wrong("version", "5", "only versions 1 to 4 are known");
  wrong("node", "1", "", good.find("\"steps\":"));
  wrong("start", "1e18", "is not the time from start to end", good.find("\"steps\":"));
  wrong("takeover", "7", "must be true or false");
  wrong("magis", "\"mine\"", "must be magis or aliased");
}

TEST_CASE("verify: --json lists what is wrong") {
  auto const a = verify_text(with(plan_text(), "peak_bytes", "1000"), "cnn-small-b64", {"--json"});
  CHECK(a.code == 2);
  a.check_line();
  auto const j = a.object();
  CHECK(j["name"] == "cnn-small-b64");
  CHECK(j["right"] == false);
  CHECK(j["violations"].size() >= 1);
}

namespace {

std::string fault(std::string const& name) { return std::string(NEAP_SOURCE_DIR) + "/tests/cli/faults/" + name; }

}  // namespace

TEST_CASE("verify: plans of an adversary, of version 1, with right checksums") {
  auto const on = [](std::string const& graph, std::string const& plan) {
    return run_neap({"verify", graph, fault(plan)});
  };
  CHECK(on(fault("A.json"), "A.plan").code == 0);  // two sums over other axes, both kept
  CHECK(on(fault("A.json"), "A2.plan").refusal().find("output-changed") != std::string::npos);
  on(fault("A.json"), "A3.plan").refusal();
  on(fault("A6.json"), "A.plan").refusal();
  auto const cnn = graph_file("cnn-small-b64");
  CHECK(on(cnn, "wait-before-end2.plan.gz").refusal().find("bad-time") != std::string::npos);
  CHECK(on(cnn, "times-x0.001.plan.gz").refusal().find("wrong-duration") != std::string::npos);
  CHECK(on(cnn, "bound-is-peak.plan.gz").refusal().find("wrong-bound") != std::string::npos);
  CHECK(on(cnn, "names-swapped.plan.gz").refusal().find("name-changed") != std::string::npos);
}

TEST_CASE("verify: two sums over other axes are two ops") {
  scratch const at;
  REQUIRE(run_neap({"plan", fault("A.json"), "--memory-limit", "1", "--iterations", "50", "--out", at / "p"}).code ==
          0);
  auto const good = json::parse(read_bytes(at / "p"));
  auto const judged = [&](json const& j, std::string const& graph) {
    auto k = j;
    k.erase("checksum");
    auto text = k.dump();
    text.back() = ',';
    write_bytes(at / "q", sealed(text + "\"checksum\":\"\"}\n"));
    return run_neap({"verify", fault(graph), at / "q"});
  };
  CHECK(judged(good, "A.json").code == 0);
  CHECK(judged(good, "A6.json").refusal().find("unknown-op") != std::string::npos);
  std::vector<std::size_t> sums;
  for (std::size_t i = 0; i < good["nodes"].size(); ++i)
    if (good["nodes"][i]["op"] == "aten.sum.dim") sums.push_back(i);
  REQUIRE(sums.size() == 2);
  for (std::vector<std::string> const& keys : std::vector<std::vector<std::string>>{
           {"origin"}, {"details"}, {"origin", "details"}, {"origin", "details", "name"}}) {
    auto j = good;
    for (auto const& key : keys) std::swap(j["nodes"][sums[0]][key], j["nodes"][sums[1]][key]);
    judged(j, "A.json").refusal();
    j = good;
    for (auto const& key : keys) j["nodes"][sums[1]][key] = good["nodes"][sums[0]][key];
    judged(j, "A.json").refusal();
  }
}

TEST_CASE("verify: what times come from is a part of the plan") {
  scratch const at;
  auto const plan = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", graph_file("cnn-small-b64"), "--memory-limit", "0.45", "--iterations", "60",
                               "--out", at / "p"});
    CHECK(run_neap(more).code <= 1);
    return read_bytes(at / "p");
  };
  write_bytes(at / "device", R"({"flops_per_s": {"f32": 1e12}, "bandwidth_bytes_per_s": 1e11, "launch_us": 1,
    "half_saturation_flops": 1e5, "link_bytes_per_s": {"to_host": 1e10, "to_device": 2e10}, "link_latency_us": 2,
    "free_ops": ["aten.detach.default"]})");
  for (std::vector<std::string> const& device : std::vector<std::vector<std::string>>{
           {}, {"--device", "h100-like"}, {"--device", "host"}, {"--device", at / "device"}}) {
    auto const text = plan(device);
    CHECK(verify_text(text).code == 0);
    auto const more = text.find("\"launch_us\":");
    REQUIRE(more != text.npos);
    bool const given = device.empty();
    auto const key = given ? "given" : "launch_us", value = given ? "false" : "17";
    CHECK(verify_text(with(text, key, value)).refusal().find("wrong-duration") != std::string::npos);
    auto const begin = text.find("\"durations\":");
    auto unsaid = text;
    unsaid.erase(begin, text.find('\n', begin) + 1 - begin);
    CHECK(verify_text(sealed(unsaid)).refusal().find("does not say what its times come from") != std::string::npos);
  }
}

TEST_CASE("verify: times from a table of costs need the table") {
  scratch const at;
  write_bytes(at / "costs", "neap-costs 1\n00000000000000000000000000000001 1.25e-05 matmul\n");
  write_bytes(at / "others", "neap-costs 1\n");
  CHECK(run_neap({"plan", graph_file("cnn-small-b64"), "--memory-limit", "1", "--iterations", "5", "--costs",
                  at / "costs", "--out", at / "p"})
            .code == 0);
  auto const verify = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"verify", graph_file("cnn-small-b64"), at / "p"});
    return run_neap(more);
  };
  CHECK(verify({"--costs", at / "costs"}).code == 0);
  CHECK(verify({}).refusal().find("give it with --costs") != std::string::npos);
  CHECK(verify({"--costs", at / "others"}).refusal().find("is not") != std::string::npos);
  CHECK(verify({"--costs", "/nowhere"}).refusal().find("/nowhere") != std::string::npos);
}
