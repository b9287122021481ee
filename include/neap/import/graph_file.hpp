// A graph file of any format that is known, recognised by its contents.
#pragma once

#include <neap/import/file_kind.hpp>
#include <neap/import/magis.hpp>
#include <neap/import/neap_graph.hpp>

namespace neap { inline namespace v0 { namespace io {

struct graph_file_options {
  neap_graph_options neap_graph;
  magis_memory magis = magis_memory::as_magis;
};

/// A graph from the text of a file: neap-graph version 1, or a testing net of MAGIS. Fails with one line that says what
/// is wrong and where; `path` is what the file is called there.
inline result<imported_graph> parse_graph(std::string const& text, std::string const& path,
                                          graph_file_options options = {}) {
  auto document = parse_document(text, path, wanted_file::graph);
  if (!document) return failure{document.message()};
  if (document->contains("nodes") && document->contains("schedule")) return read_magis(*document, path, options.magis);
  if (auto const format = document->find("format"); format == document->end() || *format == "neap.plan")
    return failure{path + ": " + document_kind(*document) +
                   ", neither a neap-graph nor a testing net of MAGIS (JSON, gzip or not)"};
  return read_neap_graph(*document, path, options.neap_graph);
}

/// Reads a graph file, gzip or not.
inline result<imported_graph> read_graph(std::string const& path, graph_file_options options = {}) {
  auto text = read_file(path);
  if (!text) return failure{text.message()};
  return parse_graph(*text, path, options);
}

}}}  // namespace neap::v0::io
