// neap without a command, with an unknown one, with too many arguments.
#include "testing.hpp"

using namespace neap_cli_test;

TEST_CASE("commands that are not there are named, and nothing else is said") {
  CHECK(run_neap({"frob"}).refusal() == "neap: unknown command 'frob'; neap --help lists them\n");
  CHECK(run_neap({"frob", "--x", "y"}).refusal() == "neap: unknown command 'frob'; neap --help lists them\n");
  CHECK(run_neap({}).refusal() == "neap: a command is required: plan, verify, allocate, checkpoint, show\n");
  CHECK(run_neap({"plan"}).refusal() == "neap: GRAPH is required\n");
  CHECK(run_neap({"verify", "a", "b", "c"}).refusal().find("not expected: c") != std::string::npos);
  CHECK(run_neap({"plan", "g.json", "--memory-limt", "0.5"}).refusal() ==
        "neap: unknown option --memory-limt; did you mean --memory-limit?\n");
  CHECK(run_neap({"plan", "g.json", "--memry-limit=0.5"}).refusal() ==
        "neap: unknown option --memry-limit; did you mean --memory-limit?\n");
  CHECK(run_neap({"show", "g.json", "--frobnicate", "3"}).refusal() ==
        "neap: unknown option --frobnicate; --help lists them\n");
  CHECK(run_neap({"--help"}).code == 0);
}
