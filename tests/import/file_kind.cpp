#include <neap/import/file_kind.hpp>

#include <neap/import/chain.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/import/plan_reader.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace std::string_literals;

namespace {

/// What each reader says of a text, one line each.
std::vector<std::string> refusals(std::string const& text) {
  std::vector<std::string> all;
  for (auto const& line : {io::parse_graph(text, "f").message(), io::parse_plan(text, "f").message(),
                           io::parse_chain(text, "f").message()}) {
    CHECK(line.starts_with("f: "));
    CHECK(line.find('\n') == line.npos);
    CHECK(line.size() < 400);
    all.push_back(line);
  }
  return all;
}

}  // namespace

TEST_CASE("files of other kinds are named, with the kinds that are read") {
  for (auto const& [text, kind] : std::vector<std::pair<std::string, char const*>>{
           {"\x08\x03\x12\x0bonnx-caffe2\x1a\0\x22\0"s, "an ONNX model"},
           {"\x08\x0a\x12\x07pytorch\x1a\x03 2."s, "an ONNX model"},
           {"\x08\x08:\x05graph"s, "an ONNX model"},
           {"\x80\x02}q\0."s, "a Python pickle"},
           {"\x80\x04\x95\x10\0\0\0"s, "a Python pickle"},
           {"PK\x03\x04\0\0"s, "a zip archive (a PyTorch checkpoint"},
           {"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"}}"s, "a safetensors file"},
           {"\x89HDF\r\n\x1a\n\0"s, "an HDF5 file"},
           {"\x93NUMPY\x01\0"s, "an array of NumPy's"},
           {"GGUF\x03\0\0\0"s, "a GGUF file"},
           {"\x1c\0\0\0TFL3\0"s, "a TensorFlow Lite model"},
           {"\x1f\x8b\x08\0"s, "gzip within gzip"},
           {"\x28\xb5\x2f\xfd\x04"s, "zstd"},
           {"\xfd"
            "7zXZ\0"s,
            "xz"},
           {"BZh91AY"s, "bzip2"},
           {"\x7f"
            "ELF\x02"s,
            "a program"},
           {"\x89PNG\r\n"s, "PNG"},
           {"%PDF-1.7"s, "a PDF"},
           {"<!DOCTYPE html><html>"s, "XML or HTML"},
           {"<?xml version=\"1.0\"?>\n<svg xmlns="s, "a picture (SVG)"},
           {"digraph {"s, "a graph in DOT"},
           {"version https://git-lfs.github.com/spec/v1\noid"s, "Git LFS"},
           {"\xff\xfe{\0\"\0"s, "UTF-16"},
           {"\xfe\xff\0{\0\""s, "UTF-16"},
           {"{\0\"\0a\0"s, "UTF-16"},
           {"\0{\0\"\0a"s, "UTF-16"},
           {"\x01\x02\x03\x04\x05\0\0"s, "a binary file"},
           {""s, "empty"},
           {" \n\t"s, "blanks alone"},
           {"id,lower,upper,size\na,0,1,2\n"s, "usage records (CSV)"},
           {"hello: world\n"s, "begins with \"hello: world\""},
           {"[1, 2]"s, "a JSON list"},
           {"3"s, "a JSON value that is no object"}}) {
    CAPTURE(kind);
    auto const all = refusals(text);
    for (auto const& line : all) CHECK_MESSAGE(line.find(kind) != line.npos, line);
    CHECK(all[0].find("a graph is read from neap-graph") != all[0].npos);
    CHECK(all[1].find("a plan is read from a neap.plan file") != all[1].npos);
    CHECK(all[2].find("a chain is read from JSON with ln") != all[2].npos);
  }
}

TEST_CASE("a document of another reader's is named") {
  auto const graph = R"({"format": "neap-graph", "version": 1})"s, plan = R"({"format": "neap.plan"})"s,
             chain = R"({"ln": 1, "nb_sol": [1, 1]})"s, device = R"({"flops_per_s": {"f32": 1}})"s,
             trace = R"({"traceEvents": []})"s;
  auto const says = [](std::string const& line, char const* what) {
    CHECK_MESSAGE(line.find(what) != line.npos, line);
  };
  says(io::parse_graph(plan, "f").message(), "f: a plan file (neap.plan), neither a neap-graph nor");
  says(io::parse_graph(chain, "f").message(), "f: a chain of blocks, neither a neap-graph nor");
  says(io::parse_graph(trace, "f").message(), "f: a trace of a profiler, neither a neap-graph nor");
  says(io::parse_graph("{}", "f").message(), "f: an empty JSON object, neither a neap-graph nor");
  says(io::parse_graph(R"({"format": "other"})", "f").message(), "format: must be \"neap-graph\"");
  says(io::parse_plan(graph, "f").message(), "f: a graph file (neap-graph); a plan is read from");
  says(io::parse_plan(device, "f").message(), "f: a device; a plan is read from");
  says(io::parse_chain(graph, "f").message(), "f: a graph file (neap-graph); a chain is read from");
  says(io::parse_chain(plan, "f").message(), "f: a plan file (neap.plan); a chain is read from");
}

TEST_CASE("what begins like JSON is JSON, whatever words it has") {
  for (auto const* before : {"", " \n\t", "\xEF\xBB\xBF", "\xEF\xBB\xBF\r\n"}) {
    auto const text = before + R"({"format": "neap-graph", "size": 1, "end": "id,lower,upper,size", "version": 1,)"s +
                      R"("buffers": [], "tensors": [], "nodes": [], "outputs": []})";
    CHECK_MESSAGE(io::parse_graph(text, "f").ok(), io::parse_graph(text, "f").message());
    CHECK(io::parse_graph(before + R"([{"size": 1, "end": 2}])"s, "f")
              .message()
              .starts_with("f: must be an object, is a JSON list"));
    CHECK(io::parse_graph(before + R"({"size": 1, "end": 2)"s, "f").message().find("not JSON: syntax error") !=
          std::string::npos);
  }
  CHECK(io::is_records_csv("\xEF\xBB\xBFid,start,end,size\n"));
  CHECK(io::parse_json(R"({"a": [1, {"b": [2, -1e999]}], "c": 1e999})", "f").message() ==
        "f: a[1].b[1]: -1e999 is beyond every double");
  CHECK(io::parse_json("[1e400]", "f").message() == "f: [0]: 1e400 is beyond every double");
}

TEST_CASE("documents with a byte order mark and with CRLF are read; a member twice is refused") {
  CHECK(io::parse_json("\xEF\xBB\xBF{\"a\":\r\n 1}\r\n", "f").ok());
  CHECK(io::parse_document("\xEF\xBB\xBF\r\n{\"a\": 1}", "f", io::wanted_file::graph).ok());
  CHECK(io::parse_json(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})", "f").ok());
  CHECK(io::parse_json(R"({"a:b": ":", "b": "\":\\"})", "f").ok());
  CHECK(io::parse_json(R"({"a": 1, "b": 2, "a": 3})", "f").message() == "f: an object has the member \"a\" twice");
  CHECK(io::parse_json(R"({"b": [0, {"x": 1, "y": {"x": 1}, "x": 1}]})", "f").message() ==
        "f: an object has the member \"x\" twice");
  CHECK(io::parse_json(R"({"a": NaN})", "f").message().find("f: byte ") == 0);
}
