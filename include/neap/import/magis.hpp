// Graph files of MAGIS's testing nets: nodes with producer ids, placeholders in the schedule, plain SGD updates in place.
// How ops may be cut, the files say themselves (dim_links).
//
// `as_magis` reproduces MAGIS's own memory rule to the byte: weights and inputs are taken at their place in the schedule
// and freed like the rest; views and updates count as fresh memory; values without readers stay to the end. The order
// constraint that MAGIS lacks (an update runs after every other reader of its weight) is there all the same: an update is
// one, and has an output of its own that stands for the bytes.
// `aliased` counts as neap does: weights resident, views and updates in the storage of what they see.
#pragma once

#include <neap/import/imported.hpp>
#include <neap/import/json.hpp>

#include <string>

namespace neap { inline namespace v0 { namespace io {

enum class magis_memory { as_magis, aliased };

/// Reads a document in the form of MAGIS's testing nets; `file` names it in messages.
result<imported_graph> read_magis(nlohmann::json const& document, std::string const& file,
                                  magis_memory memory = magis_memory::as_magis);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/magis.ipp>
#endif
