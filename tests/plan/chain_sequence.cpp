#include <neap/plan/chain_sequence.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace neap;

TEST_CASE("chain sequence: text and back") {
  chain_sequence const s{{chain_step::pass_keep, 0, 0}, {chain_step::pass_drop, 1, 0},
                         {chain_step::save, 12, 3},     {chain_step::loss, 0, 0},
                         {chain_step::backward, 12, 0}, {chain_step::save, 4294967295u, 4294967295u}};
  CHECK(to_string(s) == "C0 N1 E12.3 L B12 E4294967295.4294967295");
  CHECK(*parse_chain_sequence(to_string(s)) == s);
  CHECK(*parse_chain_sequence("  C0\n\tN1  E12.3 L B12 E4294967295.4294967295\r\n") == s);
  CHECK(parse_chain_sequence(" \n")->empty());
  CHECK(to_string(chain_sequence{}) == "");
}

TEST_CASE("chain sequence: what is no token is told by its number") {
  for (std::string const wrong : {"X", "C", "C-1", "C+1", "C1x", "c1", "E1", "E1.", "E.1", "E1.2.3", "E1,2", "L1", "B",
                                  "N4294967296", "E0.4294967296", "E1 .2", "\x01"}) {
    CAPTURE(wrong);
    auto const r = parse_chain_sequence("C0 L " + wrong);
    REQUIRE(!r.ok());
    CHECK(r.message().starts_with("token 2: \""));
    CHECK(r.message().ends_with(" is none of C3, N3, E3.2, L, B3"));
  }
  CHECK(parse_chain_sequence(std::string(1000, 'Z')).message().size() < 100);
}
