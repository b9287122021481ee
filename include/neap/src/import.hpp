// Graph, plan and chain files, which need nlohmann/json and zlib (neap::import), for one source file of a program
// whose files are compiled with NEAP_SEPARATE_COMPILATION; neap/src.hpp says more.
#pragma once

#if !defined(NEAP_SEPARATE_COMPILATION)
#error "neap/src/import.hpp: all files of the program, this one too, are compiled with NEAP_SEPARATE_COMPILATION"
#endif

#include <neap/import/impl/aten_call.ipp>
#include <neap/import/impl/aten_links.ipp>
#include <neap/import/impl/chain.ipp>
#include <neap/import/impl/file.ipp>
#include <neap/import/impl/file_kind.ipp>
#include <neap/import/impl/graph_file.ipp>
#include <neap/import/impl/json.ipp>
#include <neap/import/impl/known_operators.ipp>
#include <neap/import/impl/magis.ipp>
#include <neap/import/impl/neap_graph.ipp>
#include <neap/import/impl/plan_reader.ipp>
