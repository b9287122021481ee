// What a file holds, as far as its first bytes and members tell. Readers that get another kind of file than theirs say so
// in one line, with the kinds that they read:
//   model.onnx: an ONNX model; a graph is read from neap-graph version 1 or a testing net of MAGIS (JSON, gzip or not)
#pragma once

#include <neap/core/error.hpp>

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace neap { inline namespace v0 { namespace io {

/// What readers of each kind take, as the end of a message.
struct wanted_file {
  static constexpr std::string_view graph =
      "a graph is read from neap-graph version 1 or a testing net of MAGIS (JSON, gzip or not)";
  static constexpr std::string_view plan = "a plan is read from a neap.plan file (JSON, as neap plan --out writes it)";
  static constexpr std::string_view chain =
      "a chain is read from JSON with ln, nb_sol, cw, fw, bw... (as Rockmate's, gzip or not)";
  static constexpr std::string_view records =
      "read are usage records (CSV: id,lower,upper,size...) and graphs (neap-graph version 1 or a testing net of MAGIS; "
      "JSON); all may be gzip";
  static constexpr std::string_view device = "a device is read from JSON with flops_per_s, bandwidth_bytes_per_s...";
};

/// What the bytes of a file are, if they are no text that this library reads: "an ONNX model". Empty: text of some kind.
std::string_view unsupported_kind(std::string_view text);

/// What a JSON document is, by its members: "a plan file (neap.plan)". Never empty.
std::string document_kind(nlohmann::json const& j);

/// The first line of a text, as part of a message.
std::string first_line(std::string_view text);

/// Whether a text begins with the header of usage records (memory/csv.hpp): a line of names, not JSON with such words.
bool is_records_csv(std::string_view text);

/// The document of a file of the kind that is wanted (one of wanted_file's). Fails with one line: what the file is where it
/// is no JSON, or the byte where JSON is damaged.
result<nlohmann::json> parse_document(std::string const& text, std::string const& path, std::string_view wanted);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/file_kind.ipp>
#endif
