#include <neap/report/results_csv.hpp>

#include "../support/files.hpp"
#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a row has 17 columns in MAGIS's order, limits that were not given are empty") {
  results_row row;
  row.name = "net";
  row.memory_limit = 600;
  row.memory_limit_ratio = 0.6;
  row.weight_bytes = 100;
  row.simulated_optimized = {1.5e-3, 590};
  row.simulated_original = {1e-3, 1000};
  CHECK(to_csv(row) == "net,,,600,,0.6,100,False,1.5,590,1.5,590,False,1,1000,1,1000");
  row.optimized = {2e-3, 580};
  row.latency_limit = 0.25;
  row.latency_limit_ratio = 1.25;
  row.device_memory_limit = 4096;
  CHECK(to_csv(row) == "net,4096,250,600,1.25,0.6,100,True,2,580,1.5,590,False,1,1000,1,1000");
  std::string const header = results_header;
  CHECK(std::count(header.begin(), header.end(), ',') == 16);
}

TEST_CASE("names that need quotes get them") {
  results_row row;
  row.name = "a,\"b\"\nc";
  CHECK(to_csv(row).starts_with("\"a,\"\"b\"\"\nc\",,,"));
}

TEST_CASE("the header once, then a row a run") {
  scratch const at;
  results_row row;
  row.name = "n";
  std::string expected = std::string(results_header) + "\n";
  for (int i = 0; i < 3; ++i) {
    CHECK(append_results(at / "r.csv", row).ok());
    expected += to_csv(row) + "\n";
    CHECK(read_bytes(at / "r.csv") == expected);
  }
  // a row that was cut off stays alone in its line
  write_bytes(at / "r.csv", expected + "half,");
  CHECK(append_results(at / "r.csv", row).ok());
  CHECK(read_bytes(at / "r.csv") == expected + "half,\n" + to_csv(row) + "\n");
}

TEST_CASE("what cannot be written is told, what is no results file is left alone") {
  scratch const at;
  CHECK(append_results(at / "no/such", {}).message() ==
        at / "no/such" + ": cannot be written: No such file or directory");
  CHECK(!append_results(at.folder.string(), {}).ok());
  CHECK(!append_results("/dev/full", {}).ok());
  write_bytes(at / "other.csv", "epoch,loss\n");
  CHECK(append_results(at / "other.csv", {}).message() ==
        at / "other.csv" + ": is no results.csv: it begins with another header");
  CHECK(read_bytes(at / "other.csv") == "epoch,loss\n");
}

TEST_CASE("can_append_results says beforehand what append_results would say") {
  scratch const at;
  write_bytes(at / "other.csv", "epoch,loss\n");
  write_bytes(at / "cut.csv", "name,device");
  write_bytes(at / "empty.csv", "");
  CHECK(append_results(at / "good.csv", {}).ok());
  for (auto const& path :
       {at / "other.csv", at / "cut.csv", at / "empty.csv", at / "good.csv", at / "new.csv", at / "no/such"}) {
    CAPTURE(path);
    bool const was_there = std::filesystem::exists(path);
    auto const before = was_there ? read_bytes(path) : "";
    auto const can = can_append_results(path);
    CHECK(std::filesystem::exists(path) == was_there);
    if (was_there) CHECK(read_bytes(path) == before);
    auto const did = append_results(path, {});
    CHECK(can.ok() == did.ok());
    if (!can) CHECK(can.message() == did.message());
  }
  CHECK(!can_append_results(at.folder.string()).ok());
  CHECK(can_append_results("/dev/null").ok());
}
