// neap allocate: offsets for records in MiniMalloc's CSV form.
#include "testing.hpp"

#include <set>

using namespace neap_cli_test;

namespace {

/// MiniMalloc's own example: 5 records whose best arena is 12.
char const* const small = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

struct problem {
  scratch at;
  std::string file = at / "p.csv";
  explicit problem(std::string const& text) { write_bytes(file, text); }
  answer solve(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"allocate", file});
    return run_neap(more);
  }
};

/// Rows of a CSV without quotes.
std::vector<std::vector<std::string>> rows_of(std::string const& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  for (char c : text) {
    if (c == '\n') rows.push_back({""});
    else if (c == ',') rows.back().push_back("");
    else rows.back().back() += c;
  }
  rows.pop_back();
  return rows;
}

}  // namespace

TEST_CASE("allocate: every algorithm gives a plan that is valid, best the least") {
  problem const p(small);
  for (std::string const algorithm : {"best", "exact", "greedy-by-size", "naive"}) {
    CAPTURE(algorithm);
    auto const a = p.solve({"--algorithm", algorithm, "--json", "--out", p.at / "out.csv"});
    CHECK(a.code == 0);
    CHECK(a.err == "");
    auto const j = a.object();
    for (auto const* key : {"arena_bytes", "lower_bound_bytes", "optimal", "seconds"})
      CHECK_MESSAGE(j.contains(key), key);
    CHECK(j["lower_bound_bytes"] == 12);
    CHECK(j["fits"] == true);
    CHECK(j["arena_bytes"] == (algorithm == "naive" ? 20 : 12));
    if (algorithm == "best") CHECK(j["optimal"] == true);

    // the offsets, read again: apart in time or in space, within the arena
    auto const rows = rows_of(read_bytes(p.at / "out.csv"));
    REQUIRE(rows.size() == 6);
    REQUIRE(rows[0] == std::vector<std::string>{"id", "lower", "upper", "size", "offset"});
    for (std::size_t i = 1; i < rows.size(); ++i)
      for (std::size_t k = i + 1; k < rows.size(); ++k) {
        auto const n = [&](std::size_t row, std::size_t column) { return std::stoll(rows[row][column]); };
        bool const apart_in_time = n(i, 2) <= n(k, 1) || n(k, 2) <= n(i, 1);
        bool const apart_in_space = n(i, 4) + n(i, 3) <= n(k, 4) || n(k, 4) + n(k, 3) <= n(i, 4);
        CHECK((apart_in_time || apart_in_space));
        CHECK(n(i, 4) + n(i, 3) <= j["arena_bytes"].get<long long>());
      }
    // a solution is a problem with its offsets fixed
    auto const again = run_neap({"allocate", p.at / "out.csv", "--json"});
    CHECK(again.code == 0);
    CHECK(again.object()["arena_bytes"] == j["arena_bytes"]);
  }
}

TEST_CASE("allocate: capacities that hold, that are proved not to, that the algorithm misses") {
  problem const p(small);
  CHECK(p.solve({"--capacity", "12"}).code == 0);
  CHECK(p.solve({"--capacity", "1KiB"}).code == 0);
  auto const tight = p.solve({"--capacity", "11", "--json", "--out", p.at / "none.csv"});
  CHECK(tight.code == 1);
  tight.check_line();
  CHECK(tight.err.find("no plan fits") != tight.err.npos);
  CHECK(tight.object()["status"] == "infeasible");
  CHECK(tight.object()["fits"] == false);
  CHECK(tight.object()["arena_bytes"] == 12);  // the best one is written all the same
  CHECK(tight.object()["lower_bound_bytes"] == 12);
  CHECK(tight.err.find("the capacity is 11 bytes, the best arena found takes 12, proved to be at least 12") !=
        tight.err.npos);
  CHECK(run_neap({"allocate", p.at / "none.csv", "--json"}).object()["arena_bytes"] == 12);
  auto const greedy = p.solve({"--capacity", "11", "--algorithm", "greedy-by-size", "--json"});
  CHECK(greedy.code == 1);
  CHECK(greedy.object()["status"] == "infeasible");
  auto const naive = p.solve({"--capacity", "15", "--algorithm", "naive"});
  CHECK(naive.code == 1);
  naive.check_line();
}

TEST_CASE("allocate: options that say how a graph is read are refused with a list of records") {
  problem const p(small);
  for (std::vector<std::string> const& more : {std::vector<std::string>{"--alignment", "64"},
                                               {"--takeover", "off"},
                                               {"--optimizer"},
                                               {"--gradients", "used-up"},
                                               {"--magis-memory", "aliased"},
                                               {"--losses", "whole"}})
    CHECK(p.solve(more).refusal().find(more[0] + ": says how a graph is read") != std::string::npos);
}

TEST_CASE("allocate: the table for people") {
  auto const a = problem(small).solve();
  CHECK(a.code == 0);
  CHECK(a.out.find("5 records, arena 12 bytes, proved optimal") != a.out.npos);
  problem const one("id,lower,upper,size\na,0,1,4\n");
  CHECK(one.solve().out.find(": 1 record, arena 4 bytes") != std::string::npos);
  auto const pool = one.solve({"--pool", "fast=8", "--largest-piece", "8"}).out;
  CHECK(pool.find(": 1 record in 1 pool,") != pool.npos);
  CHECK(pool.find("4 bytes, 1 record, capacity 8, 1 piece\n") != pool.npos);
}

TEST_CASE("allocate: the picture and the report on fragmentation") {
  problem const p("id,lower,upper,size,gaps,offset\na<1>,0,9,700,2-5,\nb,2,5,600,,\nc,4,9,100,,700\n");
  auto const a = p.solve({"--picture", p.at / "o.svg", "--fragmentation", p.at / "f.csv", "--json"});
  CHECK(a.code == 0);
  auto const picture = read_bytes(p.at / "o.svg");
  CHECK(is_xml(picture));
  for (auto const* word :
       {"p.csv", "3 records", "a&lt;1&gt;", "800 B", "fixed", "gap in a life", "offset in the arena"})
    CHECK_MESSAGE(picture.find(word) != picture.npos, word);
  auto const rows = rows_of(read_bytes(p.at / "f.csv"));
  REQUIRE(rows.size() == 6);
  CHECK(rows[0] == std::vector<std::string>{"moment", "load_bytes", "highest_byte", "free_bytes"});
  CHECK(rows[1] == std::vector<std::string>{"0", "700", "700", "0"});
  CHECK(rows[4] == std::vector<std::string>{"5", "800", "800", "0"});
  CHECK(rows[5] == std::vector<std::string>{"9", "0", "0", "0"});
  auto const j = a.object();
  CHECK(j["largest_load_bytes"] == 800);
  CHECK(j["largest_load_moment"] == 5);
  long long worst = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) worst = std::max(worst, std::stoll(rows[i][3]));
  CHECK(j["most_free_bytes"] == worst);
  CHECK(j["used_share"].get<double>() > 0.8);
  CHECK(j["used_share"].get<double>() <= 1);
  CHECK(p.solve({"--picture", p.at / "no/such"}).refusal().find("cannot be written") != std::string::npos);
  CHECK(p.solve({"--fragmentation", p.at / "no/such"}).refusal().find("cannot be written") != std::string::npos);
  CHECK(p.solve().out.find("800 B in use at most (moment 5)") != std::string::npos);
}

TEST_CASE("allocate: a graph in its given order, one op at a time and in waves") {
  scratch const at;
  auto const graph = graph_file("cnn-small-b64");
  auto const arena = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"allocate", graph, "--json"});
    auto const a = run_neap(more);
    CHECK(a.code == 0);
    CHECK(a.err == "");
    return a.object()["arena_bytes"].get<long long>();
  };
  auto const plain = run_neap({"allocate", graph, "--json", "--takeover", "off", "--alignment", "1"}).object();
  CHECK(plain["optimal"] == true);
  CHECK(plain["arena_bytes"].get<long long>() + plain["resident_bytes"].get<long long>() == 37815160);  // graphs.csv
  CHECK(arena({"--alignment", "1"}) <= plain["arena_bytes"]);
  // The more run at once, the more lives at once.
  auto const all = arena({"--algorithm", "multi-stream"});
  auto const two = arena({"--algorithm", "multi-stream", "--max-parallel-ops", "2"});
  auto const one = arena({"--algorithm", "multi-stream", "--max-parallel-ops", "1", "--out", at / "o.csv"});
  CHECK(two <= all);
  CHECK(one == arena({}));  // one op at once is a single stream
  CHECK(arena({"--algorithm", "multi-stream", "--max-parallel-ops", "1", "--takeover", "off"}) ==
        arena({"--takeover", "off"}));
  CHECK(arena({"--algorithm", "multi-stream", "--max-parallel-ops", "1", "--planner", "greedy-by-size"}) ==
        arena({"--algorithm", "greedy-by-size"}));
  for (std::string const planner : {"exact", "greedy-by-size", "naive"})
    CHECK(two <= arena({"--algorithm", "multi-stream", "--max-parallel-ops", "2", "--planner", planner}));
  auto const rows = rows_of(read_bytes(at / "o.csv"));
  CHECK(rows[0] == std::vector<std::string>{"id", "lower", "upper", "size", "alignment", "offset"});
  std::set<std::string> names;
  for (auto const& row : rows) names.insert(row[0]);
  CHECK(names.size() == rows.size());
  CHECK(run_neap({"allocate", at / "o.csv", "--json"}).object()["arena_bytes"] == one);  // it is a problem again
  CHECK(run_neap({"allocate", graph, "--max-parallel-ops", "2"}).refusal().find("multi-stream") != std::string::npos);
  CHECK(run_neap({"allocate", graph, "--planner", "best"}).refusal().find("multi-stream") != std::string::npos);
  CHECK(
      run_neap({"allocate", graph, "--algorithm", "multi-stream", "--planner", "magic"}).refusal().find("--planner") !=
      std::string::npos);
  CHECK(run_neap({"allocate", graph, "--algorithm", "multi-stream", "--max-parallel-ops", "0"})
            .refusal()
            .find("--max-parallel-ops") != std::string::npos);
  CHECK(problem(small).solve({"--algorithm", "multi-stream"}).refusal().find("graphs only") != std::string::npos);
  write_bytes(at / "bad", "{\"format\": 3}");
  run_neap({"allocate", at / "bad"}).refusal();
}

TEST_CASE("allocate: two branches in waves of one op take what a single stream takes") {
  scratch const at;
  auto const node = [](std::string const& in, int out) {
    return R"({"name": "n)" + std::to_string(out) + R"(", "op": "f)" + std::to_string(out) +
           R"(", "phase": "fwd", "in": [)" + in + R"(], "out": [)" + std::to_string(out) +
           R"(], "args": [], "flags": [], "flops": 0, "read": 0, "write": 0, "latency_us": 1.0})";
  };
  // x -> 1 -> 2 -> 5, x -> 3 -> 4 -> 6, (5, 6) -> 7: a level of both branches at once needs 4 buffers, greedily placed.
  std::string buffers = R"({"bytes": 1024, "kind": "input", "name": "x"})", tensors;
  for (int i = 0; i < 8; ++i) {
    if (i > 0) buffers += R"(, {"bytes": 1024, "kind": "temp"})";
    tensors +=
        (i ? ", " : "") + std::string(R"({"buf": )") + std::to_string(i) + R"(, "dtype": "f32", "shape": [256]})";
  }
  write_bytes(at / "two.json", R"({"format": "neap-graph", "version": 1, "name": "two", "buffers": [)" + buffers +
                                   R"(], "tensors": [)" + tensors + R"(], "nodes": [)" + node("0", 1) + ", " +
                                   node("1", 2) + ", " + node("2", 5) + ", " + node("0", 3) + ", " + node("3", 4) +
                                   ", " + node("4", 6) + ", " + node("5, 6", 7) +
                                   R"(], "outputs": [{"tensor": 7, "kind": "output"}]})");
  auto const one = run_neap({"allocate", at / "two.json", "--algorithm", "multi-stream", "--max-parallel-ops", "1",
                             "--takeover", "off", "--json"})
                       .object();
  CHECK(one["arena_bytes"] == 3072);
  CHECK(one["optimal"] == true);
}

TEST_CASE("allocate: nothing to place, one record, gaps") {
  CHECK(problem("id,lower,upper,size\n").solve({"--json"}).object()["arena_bytes"] == 0);
  CHECK(problem("id,lower,upper,size\na,0,1,7\n").solve({"--json"}).object()["arena_bytes"] == 7);
  CHECK(problem("id,lower,upper,size,gaps\na,0,9,7,2-5\nb,2,5,7,\n").solve({"--json"}).object()["arena_bytes"] == 7);
}

TEST_CASE("allocate: bad problems and options are refused with one line") {
  auto const refusal = [](std::string const& text) { return problem(text).solve().refusal(); };
  refusal("");
  refusal("nonsense");
  refusal("id,lower,upper\na,0,1\n");
  refusal("id,lower,upper,size\na,0,1,-5\n");
  refusal("id,lower,upper,size\na,0,1,x\n");
  refusal("id,lower,upper,size\na,0,1,99999999999999999999\n");
  refusal("id,lower,upper,size\na,0,1\n");
  CHECK(refusal("id,lower,upper,size\na,0,1,1\nb,0,1,1\na,1,2,1\n").find("two records have the id 'a'") !=
        std::string::npos);
  problem const p(small);
  for (auto const* a : {"--out", "--picture", "--fragmentation"}) {
    CHECK(p.solve({a, p.file}).refusal().find("is the problem that is read") != std::string::npos);
    for (auto const* b : {"--out", "--picture", "--fragmentation"})
      if (std::string(a) < b)
        CHECK(p.solve({a, p.at / "z", b, p.at / "z"}).refusal().find("are one file") != std::string::npos);
  }
  CHECK(read_bytes(p.file) == small);
  for (auto const* bad : {"-1", "x", "", "1.5", "0.4", "nan", "12 B"}) {
    CAPTURE(bad);
    CHECK(p.solve({std::string("--capacity=") + bad}).refusal().find("--capacity") != std::string::npos);
  }
  CHECK(p.solve({"--algorithm", "magic"}).refusal().find("--algorithm") != std::string::npos);
  CHECK(p.solve({"--time-budget", "x"}).refusal().find("--time-budget") != std::string::npos);
  CHECK(p.solve({"--out", p.at / "no/such"}).refusal().find("cannot be written") != std::string::npos);
  run_neap({"allocate", p.at / "nowhere"}).refusal();
  run_neap({"allocate"}).refusal();
}

TEST_CASE("allocate: sizes near the end of 64 bits are an answer or a refusal") {
  for (std::string const algorithm : {"best", "greedy-by-size", "naive"}) {
    auto const a = problem("id,lower,upper,size\na,0,2,9223372036854775807\nb,1,3,9223372036854775807\n")
                       .solve({"--algorithm", algorithm});
    CHECK(a.code >= 1);
    CHECK(a.code <= 2);
    a.check_line();
  }
}

TEST_CASE("allocate: fixed records that collide are named by id and line") {
  auto const a = problem("id,lower,upper,size,offset\na,0,9,4,0\nx,0,1,4,\n\nb,1,3,4,8\nc,2,4,8,2\n").solve();
  CHECK(a.code == 1);
  a.check_line();
  CHECK(a.err.find("no plan fits: record 'a' (line 2) and record 'c' (line 6): fixed at 0 and 2, they collide") !=
        a.err.npos);
}

TEST_CASE("allocate: several memories") {
  problem const p("id,lower,upper,size,pool\na,0,9,4,fast\nb,1,3,4,\nc,2,4,8,\n");
  CHECK(p.solve().refusal().find("record 'a' (line 2) asks for the pool 'fast', which --pool does not name") !=
        std::string::npos);
  auto const a = p.solve({"--pool", "fast=8", "--pool", "slow=1KiB", "--json", "--out", p.at / "o.csv"});
  CHECK(a.code == 0);
  CHECK(a.err == "");
  auto const j = a.object();
  CHECK(j["status"] == "optimal");
  CHECK(j["arena_bytes"] == 16);
  CHECK(j["pools"].size() == 2);
  CHECK(j["pools"][0] ==
        json::parse(R"({"name": "fast", "capacity_bytes": 8, "arena_bytes": 8, "records": 2, "piece_bytes": [8]})"));
  CHECK(j["pools"][1]["name"] == "slow");
  CHECK(read_bytes(p.at / "o.csv") ==
        "id,lower,upper,size,pool,offset\na,0,9,4,fast,0\nb,1,3,4,fast,4\nc,2,4,8,slow,0\n");
  // a solution is a problem with its places fixed
  auto const again = run_neap({"allocate", p.at / "o.csv", "--pool", "fast=8", "--pool", "slow=1KiB", "--json"});
  CHECK(again.object()["arena_bytes"] == 16);
  CHECK(p.solve({"--pool", "fast=8", "--pool", "slow=1KiB"}).out.find("slow") != std::string::npos);
  // rates: the second is the faster one
  auto const rates = p.solve({"--pool", "fast=64@1GB/s", "--pool", "other=64@2GB/s", "--json"}).object();
  CHECK(rates["pools"][1]["records"] == 2);

  auto const none = p.solve({"--pool", "fast=2", "--pool", "slow=2"});
  CHECK(none.code == 1);
  none.check_line();
  CHECK(none.err.find("record 'a' (line 2): it is larger than any piece of memory that it may lie in") !=
        none.err.npos);
  for (auto const& [more, what] : std::vector<std::pair<std::vector<std::string>, char const*>>{
           {{"--pool", "other=8"}, "asks for the pool 'fast'"},
           {{"--pool", "fast=8", "--pool", "fast=9"}, "two pools have the name"},
           {{"--pool", "fast=x"}, "--pool fast: \"x\" is not a number of bytes"},
           {{"--pool", "fast="}, "--pool fast: \"\" is not a number of bytes"},
           {{"--pool", "fast=-1"}, "is not a number of bytes"},
           {{"--pool", "=8"}, "is not NAME"},
           {{"--pool", "a,b=8"}, "is not NAME"},
           {{"--pool", "fast@3"}, "a rate and no capacity"},
           {{"--pool", "fast=8@0"}, "its rate must be above 0"},
           {{"--pool", "fast=8@1GB", "--pool", "b=8"}, "either all pools have a rate, or none"},
           {{"--pool", "fast=8", "--capacity", "9"}, "each pool has its own"},
           {{"--pool", "fast=8", "--algorithm", "naive"}, "--algorithm: does not go with"},
           {{"--pool", "fast=8", "--picture", p.at / "x.svg"}, "--picture: does not go with"},
           {{"--pool", "fast=8", "--largest-piece", "0"}, "at least one byte"},
           {{"--pool", "fast=8", "--largest-piece", "0.5"}, "--largest-piece: \"0.5\" is not a number of bytes"}}) {
    auto const said = p.solve(more).refusal();
    CHECK_MESSAGE(said.find(what) != said.npos, said);
  }
}

TEST_CASE("allocate: a memory in pieces") {
  problem const p("id,lower,upper,size\na,0,9,6\nb,0,9,6\nc,0,9,4\nd,3,9,4\n");
  auto const a = p.solve({"--largest-piece", "10", "--json", "--out", p.at / "o.csv"});
  CHECK(a.code == 0);
  auto const j = a.object();
  CHECK(j["arena_bytes"] == 20);
  CHECK(j["pools"][0]["piece_bytes"] == json::parse("[10, 10]"));
  auto const rows = rows_of(read_bytes(p.at / "o.csv"));
  CHECK(rows[0] == std::vector<std::string>{"id", "lower", "upper", "size", "pool", "piece", "offset"});
  auto const again = run_neap({"allocate", p.at / "o.csv", "--pool", "memory", "--largest-piece", "10", "--json"});
  CHECK(again.object()["pools"][0]["piece_bytes"] == json::parse("[10, 10]"));
  CHECK(p.solve({"--largest-piece", "10", "--capacity", "19"}).code == 1);
  CHECK(p.solve({"--largest-piece", "5"}).err.find("record 'a' (line 2): it is larger than any piece") !=
        std::string::npos);
  auto const graph = run_neap({"allocate", graph_file("cnn-small-b64"), "--largest-piece", "8MiB", "--json"});
  CHECK(graph.code == 0);
  for (auto const& bytes : graph.object()["pools"][0]["piece_bytes"]) CHECK(bytes.get<long long>() <= 8 << 20);
}

TEST_CASE("allocate: files that are no problems are named, with what is read") {
  using namespace std::string_literals;
  for (auto const& [text, what] :
       std::vector<std::pair<std::string, char const*>>{{"\x08\x03\x12\x0bonnx-caffe2\x1a\0"s, "an ONNX model"},
                                                        {"PK\x03\x04zip"s, "a zip archive"},
                                                        {"\x80\x04\x95\0\0"s, "a Python pickle"},
                                                        {"\x20\0\0\0\0\0\0\0{\"w\":1}"s, "a safetensors file"},
                                                        {"\xff\xfei\0d\0"s, "UTF-16"},
                                                        {"i\0d\0,\0"s, "UTF-16"},
                                                        {""s, "empty"},
                                                        {"\n\n"s, "blanks alone"},
                                                        {"[1]"s, "a JSON list"},
                                                        {"name;size\na;3\n"s, "begins with \"name;size\""},
                                                        {"b1,0,3,4\n"s, "no header"},
                                                        {"{\"ln\": 1, \"nb_sol\": [1]}"s, "a chain of blocks"}}) {
    auto const said = problem(text).solve().refusal();
    CHECK_MESSAGE(said.find(what) != said.npos, said);
    CHECK_MESSAGE((said.find("usage records (CSV") != said.npos || said.find("neap-graph") != said.npos), said);
  }
  // A byte order mark and CRLF do no harm.
  CHECK(problem("\xEF\xBB\xBFid,lower,upper,size\r\na,0,1,7\r\n").solve({"--json"}).object()["arena_bytes"] == 7);
  CHECK(problem("id,lower,upper,size\na,0,1,1\na,1,2,1\n").solve().refusal().find("lines 2 and 3") !=
        std::string::npos);
  CHECK(problem("id,lower,upper,size,gaps\na,0,9,1,5-2\n")
            .solve()
            .refusal()
            .find("line 2: record 'a': gap 5-2 ends before it begins") != std::string::npos);
}
