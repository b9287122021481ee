// neap verify: right plans pass; damaged, wrong and foreign ones are told apart.
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
            .find("must be \"neap.plan\"") != std::string::npos);
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
  CHECK(verify_text(good.substr(0, good.size() - 2) + ",\"peak_bytes\":1}\n").refusal().find("checksum") !=
        std::string::npos);
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
  wrong("version", "2", "only version 1 is known");
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
