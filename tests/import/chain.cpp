#include <neap/import/chain.hpp>

#include <neap/core/philox.hpp>

#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace neap;

namespace {

nlohmann::json two_blocks() {
  return nlohmann::json::parse(R"({
    "name": "two", "desc": "anything", "ln": 2, "nb_sol": [1, 2, 1],
    "cw": [10, 20, 16, 0], "ff_fw": [1, 2, 0.0], "ff_fwd_tmp": [3, 0, 0],
    "fw": [[1.5], [2, 2.5], [0]], "bw": [[4], [6, 9], [0]],
    "cbw": [[], [50], [30, 8], [0]], "fwd_tmp": [[5], [1, 4], [0]], "bwd_tmp": [[7], [2, 11], [0]]})");
}

std::string said(nlohmann::json const& j) { return io::parse_chain(j.dump(), "c.json").message(); }

}  // namespace

TEST_CASE("chain files: what they say is what is read") {
  auto const r = io::parse_chain(two_blocks().dump(), "c.json");
  REQUIRE_MESSAGE(r.ok(), r.message());
  CHECK(r->name == "two");
  CHECK(r->profile ==
        chain_profile{{{10, 1, 3, {{1.5, 4, 50, 5, 7}}}, {20, 2, 0, {{2, 6, 30, 1, 2}, {2.5, 9, 8, 4, 11}}}}, 16});
  testing::scratch const at;
  testing::write_bytes(at / "c.json", two_blocks().dump());
  CHECK(io::read_chain(at / "c.json")->profile == r->profile);
  CHECK(io::read_chain(at / "none").message().find("none: cannot be opened") != std::string::npos);
}

TEST_CASE("chain files: each fault is told in one line with its place") {
  using fault = std::pair<nlohmann::json, std::string>;  // a patch, and what is said
  for (auto const& [patch, line] : std::vector<fault>{
           {{{{"op", "remove"}, {"path", "/cw"}}}, "lacks \"cw\""},
           {{{{"op", "replace"}, {"path", "/ln"}, {"value", 0}}}, "ln: must be an integer from 1 to 10000000"},
           {{{{"op", "replace"}, {"path", "/ln"}, {"value", 9999999}}}, "nb_sol: must have 10000000 rows"},
           {{{{"op", "replace"}, {"path", "/ln"}, {"value", 3}}}, "nb_sol: must have 4 rows"},
           {{{{"op", "replace"}, {"path", "/ln"}, {"value", "2"}}}, "ln: must be an integer from 1 to 10000000"},
           {{{{"op", "replace"}, {"path", "/nb_sol/0"}, {"value", 0}}},
            "nb_sol[0]: must be an integer from 1 to 1000000"},
           {{{{"op", "replace"}, {"path", "/nb_sol/1"}, {"value", 3}}}, "fw[1]: must have 3 rows"},
           {{{{"op", "add"}, {"path", "/bwd_tmp/1/-"}, {"value", 3}}}, "bwd_tmp[1]: must have 2 rows"},
           {{{{"op", "replace"}, {"path", "/cw/1"}, {"value", -1}}},
            "cw[1]: must be an integer from 0 to 1099511627776"},
           {{{{"op", "replace"}, {"path", "/cw/1"}, {"value", 1.5}}},
            "cw[1]: must be an integer from 0 to 1099511627776"},
           {{{{"op", "replace"}, {"path", "/cw/1"}, {"value", 18446744073709551615u}}},
            "cw[1]: must be an integer from 0 to 1099511627776"},
           {{{{"op", "replace"}, {"path", "/cbw/2/1"}, {"value", 1099511627777}}},
            "cbw[2][1]: must be an integer from 0 to 1099511627776"},
           {{{{"op", "replace"}, {"path", "/cbw/0"}, {"value", {1}}}}, "cbw[0]: must have 0 rows"},
           {{{{"op", "replace"}, {"path", "/bw/1/0"}, {"value", -0.5}}}, "bw[1][0]: must be a number of at least 0"},
           {{{{"op", "replace"}, {"path", "/bw/1/0"}, {"value", nullptr}}}, "bw[1][0]: must be a number of at least 0"},
           {{{{"op", "replace"}, {"path", "/bw/1/0"}, {"value", "nan"}}}, "bw[1][0]: must be a number of at least 0"},
           {{{{"op", "replace"}, {"path", "/fw/0/0"}, {"value", 1e31}}}, "fw[0][0]: must be at most 1e30"},
           {{{{"op", "replace"}, {"path", "/ff_fw/0"}, {"value", {}}}}, "ff_fw[0]: must be a number of at least 0"},
           {{{{"op", "replace"}, {"path", "/ff_fw"}, {"value", 7}}}, "ff_fw: must be a list"},
           {{{{"op", "replace"}, {"path", "/bw/2/0"}, {"value", 1}}}, "entry 2, the loss, must cost nothing"},
           {{{{"op", "replace"}, {"path", "/cw/3"}, {"value", 1}}}, "cw[3]: must be 0: nothing follows the loss"},
           {{{{"op", "replace"}, {"path", "/name"}, {"value", 1}}}, "name: must be a text"}}) {
    CAPTURE(patch.dump());
    CHECK(said(two_blocks().patch(nlohmann::json::array({patch[0]}))) == "c.json: " + line);
  }
  CHECK(said(nlohmann::json::array()).starts_with("c.json: must be an object, is a JSON list"));
  CHECK(said(7).starts_with("c.json: must be an object, is a JSON value"));
  CHECK(io::parse_chain(std::string(1000, '['), "c.json").message() == "c.json: byte 64: nested deeper than 64 levels");
  CHECK(io::parse_chain("{\"ln\": 1e999}", "c.json").message().starts_with("c.json: "));
}

TEST_CASE("chain files: cut off anywhere, or with any byte changed, they are refused in one line or read") {
  auto const text = two_blocks().dump();
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const r = io::parse_chain(text.substr(0, i), "c.json");
    CHECK(!r.ok());
    CHECK(r.message().starts_with("c.json: "));
  }
  random_stream draw(1);
  for (int round = 0; round < 3000; ++round) {
    auto changed = text;
    for (auto n = 1 + draw.below(3); n > 0; --n)
      changed[draw.below(static_cast<std::uint32_t>(text.size()))] = static_cast<char>(draw.below(256));
    auto const r = io::parse_chain(changed, "c.json");
    if (r.ok()) CHECK(check(r->profile).ok());
    else CHECK((r.message().starts_with("c.json: ") && r.message().find('\n') == std::string::npos));
  }
}
