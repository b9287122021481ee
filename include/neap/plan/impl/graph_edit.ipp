// The bodies of <neap/plan/graph_edit.hpp>.
#pragma once

#include <neap/plan/graph_edit.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC void graph_edit::sort_rereads() {
  detail::sort_list(rereads, [](reread const& a, reread const& b) {
    return a.reader != b.reader ? a.reader < b.reader : a.from < b.from;
  });
  std::size_t kept = 0;
  for (std::size_t k = 0; k < rereads.size(); ++k) {
    auto const& r = rereads[k];
    bool const again = k + 1 < rereads.size() && rereads[k + 1].reader == r.reader && rereads[k + 1].from == r.from;
    if (!again) rereads[kept++] = r;
  }
  rereads.resize(kept);
}

}}  // namespace neap::v0
