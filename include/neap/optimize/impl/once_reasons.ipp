// The bodies of <neap/optimize/once_reasons.hpp>.
#pragma once

#include <neap/optimize/once_reasons.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::vector<std::string> once_reasons(candidate const& c, std::size_t most) {
  auto const& g = c.graph;
  auto const peak = c.result.peak_position;
  std::vector<std::pair<bytes_t, op_id>> found;
  std::vector<bool> kept(g.storage_count());
  for (auto v : g.kept()) kept[index(g.storage(v))] = true;
  for (auto s : g.storages()) {
    auto const live = c.result.live[s];
    if (g.is_source(s) || live.empty() || live.first >= peak || live.last <= peak || g.bytes(s) == 0) continue;
    if (g.is_overwritten(s)) continue;  // what overwrites it speaks for it
    auto const maker = g.producer(g.record(s).first);
    if (!kept[index(s)] && !is_swap_op(g, maker) && !why_once(g, maker).empty()) found.emplace_back(g.bytes(s), maker);
  }
  std::stable_sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.first > b.first; });
  std::vector<std::string> lines;
  for (auto const& [bytes, maker] : found) {
    if (lines.size() == most) break;
    lines.push_back(detail::op_text(g, maker) + " (" + std::to_string(bytes) +
                    " bytes at the peak) may not run again: " + why_once(g, maker));
  }
  return lines;
}

}}  // namespace neap::v0
