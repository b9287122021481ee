// The bodies of <neap/import/graph_file.hpp>.
#pragma once

#include <neap/import/graph_file.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/import/file_kind.hpp>

namespace neap { inline namespace v0 { namespace io {

NEAP_FUNC result<imported_graph> parse_graph(std::string const& text, std::string const& path,
                                             graph_file_options options) {
  auto document = parse_document(text, path, wanted_file::graph);
  if (!document) return failure{document.message()};
  if (document->contains("nodes") && document->contains("schedule")) return read_magis(*document, path, options.magis);
  if (auto const format = document->find("format"); format == document->end() || *format == "neap.plan")
    return failure{path + ": " + document_kind(*document) +
                   ", neither a neap-graph nor a testing net of MAGIS (JSON, gzip or not)"};
  return read_neap_graph(*document, path, options.neap_graph);
}

NEAP_FUNC result<imported_graph> read_graph(std::string const& path, graph_file_options options) {
  auto text = read_file(path);
  if (!text) return failure{text.message()};
  return parse_graph(*text, path, options);
}

}}}  // namespace neap::v0::io
