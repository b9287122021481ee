// A graph file of any format that is known, recognised by its contents.
#pragma once

#include <neap/import/magis.hpp>
#include <neap/import/neap_graph.hpp>

namespace neap { inline namespace v0 { namespace io {

struct graph_file_options {
  neap_graph_options neap_graph;
  magis_memory magis = magis_memory::as_magis;
};

/// A graph from the text of a file: neap-graph version 1, or a testing net of MAGIS. Fails with one line that says what
/// is wrong and where; `path` is what the file is called there.
result<imported_graph> parse_graph(std::string const& text, std::string const& path, graph_file_options options = {});

/// Reads a graph file, gzip or not.
result<imported_graph> read_graph(std::string const& path, graph_file_options options = {});

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/graph_file.ipp>
#endif
