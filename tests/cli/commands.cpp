// neap without a command, with an unknown one, with too many arguments.
#include "testing.hpp"

using namespace neap_cli_test;

TEST_CASE("commands that are not there are named, and nothing else is said") {
  CHECK(run_neap({"frob"}).refusal() == "neap: unknown command 'frob'; neap --help lists them\n");
  CHECK(run_neap({"frob", "--x", "y"}).refusal() == "neap: unknown command 'frob'; neap --help lists them\n");
  CHECK(run_neap({}).refusal() == "neap: A subcommand is required\n");
  CHECK(run_neap({"plan"}).refusal() == "neap: GRAPH is required\n");
  CHECK(run_neap({"verify", "a", "b", "c"}).refusal().find("not expected: c") != std::string::npos);
  CHECK(run_neap({"--help"}).code == 0);
}
