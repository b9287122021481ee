// The bodies of <neap/import/file_kind.hpp>.
#pragma once

#include <neap/import/file_kind.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/import/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace neap { inline namespace v0 { namespace io {

namespace detail {

NEAP_FUNC bool is_onnx(std::string_view t) {
  // protobuf: ir_version (field 1, a small number), then producer_name, opset_import, graph or another field of a model
  if (t.size() < 4 || t[0] != '\x08' || t[1] < 1 || t[1] > 30) return false;
  return std::string_view("\x12\x1a\x22\x28\x32\x3a\x42").find(t[2]) != std::string_view::npos;
}

NEAP_FUNC bool is_safetensors(std::string_view t) {
  // the length of the header in 8 bytes, little-endian, then the header
  if (t.size() < 9 || t[8] != '{') return false;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(t[i]);
  return length >= 2 && length < (std::uint64_t{1} << 40);
}

NEAP_FUNC bool is_binary(std::string_view t) {
  std::size_t odd = 0;
  auto const some = t.substr(0, 4096);
  for (char const c : some) {
    auto const u = static_cast<unsigned char>(c);
    odd += u < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  }
  return odd * 50 > some.size();
}

}  // namespace detail

NEAP_FUNC std::string_view unsupported_kind(std::string_view text) {
  using namespace std::string_view_literals;
  static constexpr auto beginnings = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
      {"PK\x03\x04"sv, "a zip archive (a PyTorch checkpoint, or NumPy's .npz)"},
      {"PK\x05\x06"sv, "an empty zip archive"},
      {"\x93NUMPY"sv, "an array of NumPy's (.npy)"},
      {"GGUF"sv, "a GGUF file (weights)"},
      {"\x1f\x8b"sv, "gzip within gzip"},
      {"\x28\xb5\x2f\xfd"sv, "a file compressed by zstd"},
      {"\xfd"
       "7zXZ"sv,
       "a file compressed by xz"},
      {"BZh"sv, "a file compressed by bzip2"},
      {"\x7f"
       "ELF"sv,
       "a program"},
      {"\x89PNG"sv, "a picture (PNG)"},
      {"\xff\xd8\xff"sv, "a picture (JPEG)"},
      {"%PDF"sv, "a PDF"},
      {"version https://git-lfs"sv, "a pointer of Git LFS, not the file it stands for (git lfs pull)"},
      {"digraph"sv, "a graph in DOT"},
      {"\xff\xfe\0\0"sv, "text in UTF-32: save it as UTF-8"},
      {"\0\0\xfe\xff"sv, "text in UTF-32: save it as UTF-8"},
      {"\xff\xfe"sv, "text in UTF-16: save it as UTF-8"},
      {"\xfe\xff"sv, "text in UTF-16: save it as UTF-8"},
  });
  for (auto const& [begin, kind] : beginnings)
    if (text.starts_with(begin)) return kind;
  if (text.size() >= 8 && text.substr(4, 4) == "TFL3") return "a TensorFlow Lite model";
  if (detail::is_safetensors(text)) return "a safetensors file (weights)";
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) return "a Python pickle";
  if (detail::is_onnx(text)) return "an ONNX model";
  auto const first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return "";
  if (text[first] == '<') return text.find("<svg", first) < first + 400 ? "a picture (SVG)" : "XML or HTML";
  if (text.size() >= 4 && text[0] != '\0' && text[1] == '\0' && text[2] != '\0' && text[3] == '\0')
    return "text in UTF-16: save it as UTF-8";
  if (text.size() >= 4 && text[0] == '\0' && text[1] != '\0' && text[2] == '\0' && text[3] != '\0')
    return "text in UTF-16: save it as UTF-8";
  return text[first] != '{' && text[first] != '[' && detail::is_binary(text) ? "a binary file" : "";
}

NEAP_FUNC std::string document_kind(nlohmann::json const& j) {
  if (j.is_array()) return "a JSON list";
  if (!j.is_object()) return "a JSON value that is no object";
  auto const has = [&](std::initializer_list<char const*> keys) {
    return std::all_of(keys.begin(), keys.end(), [&](char const* k) { return j.contains(k); });
  };
  if (auto const f = j.find("format"); f != j.end() && f->is_string()) {
    auto const& name = f->get_ref<std::string const&>();
    if (name == "neap-graph") return "a graph file (neap-graph)";
    if (name == "neap.plan") return "a plan file (neap.plan)";
    return "JSON of format \"" + in_line(std::string_view(name).substr(0, 60)) + "\"";
  }
  if (has({"ln", "nb_sol"})) return "a chain of blocks";
  if (has({"nodes", "schedule"})) return "a testing net of MAGIS";
  if (has({"flops_per_s"})) return "a device";
  if (has({"traceEvents"})) return "a trace of a profiler";
  if (has({"peak_bytes"}) || has({"arena_bytes"})) return "what a command printed with --json";
  return j.empty() ? "an empty JSON object" : "a JSON object of no known kind";
}

NEAP_FUNC std::string first_line(std::string_view text) {
  auto const from = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  auto const line = text.substr(from, text.find_first_of("\r\n", from) - from);
  return in_line(line.substr(0, 40)) + (line.size() > 40 ? "..." : "");
}

NEAP_FUNC bool is_records_csv(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (auto const first = text.find_first_not_of(" \t\r\n");
      first == text.npos || text[first] == '{' || text[first] == '[')
    return false;
  auto const line = text.substr(0, text.find('\n'));
  auto const has = [&](std::string_view name) { return line.find(name) != line.npos; };
  return line.find(',') != line.npos && has("size") && (has("lower") || has("start") || has("upper") || has("end"));
}

NEAP_FUNC result<nlohmann::json> parse_document(std::string const& text, std::string const& path,
                                                std::string_view wanted) {
  auto const fail = [&](std::string_view what) {
    return failure{path + ": " + std::string(what) + "; " + std::string(wanted)};
  };
  if (auto const kind = unsupported_kind(text); !kind.empty()) return fail(kind);
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  auto const first = rest.find_first_not_of(" \t\r\n");
  if (first == rest.npos) return fail(text.empty() ? "empty, not JSON" : "blanks alone, not JSON");
  if (is_records_csv(text)) return fail("usage records (CSV), not JSON");
  auto document = parse_json(text, path);
  if (!document && rest[first] != '{' && rest[first] != '[')
    return fail("not JSON, begins with \"" + first_line(rest) + "\"");
  if (document && !document->is_object()) return fail("must be an object, is " + document_kind(*document));
  return document;
}

}}}  // namespace neap::v0::io
