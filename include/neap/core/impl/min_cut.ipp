// The bodies of <neap/core/min_cut.hpp>.
#pragma once

#include <neap/core/min_cut.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC void min_cut::cut(std::uint32_t source, std::uint32_t sink) {
  while (find_levels(source, sink)) {
    at_ = head_;
    block(source, sink);
    work_meter::add(4 * edges_.size());
  }
}

NEAP_FUNC bool min_cut::find_levels(std::uint32_t source, std::uint32_t sink) {
  level_.assign(head_.size(), none);
  queue_.clear();
  level_[source] = 0;
  queue_.push_back(source);
  for (std::size_t i = 0; i < queue_.size(); ++i)
    for (auto e = head_[queue_[i]]; e != none; e = edges_[e].next)
      if (edges_[e].left > 0 && level_[edges_[e].to] == none) {
        level_[edges_[e].to] = level_[queue_[i]] + 1;
        queue_.push_back(edges_[e].to);
      }
  return level_[sink] != none;
}

NEAP_FUNC void min_cut::block(std::uint32_t source, std::uint32_t sink) {
  path_.clear();
  auto node = source;
  for (;;) {
    if (node == sink) {
      std::int64_t least = INT64_MAX;
      for (auto e : path_) least = std::min(least, edges_[e].left);
      std::size_t keep = path_.size();
      for (std::size_t i = path_.size(); i-- > 0;) {
        edges_[path_[i]].left -= least, edges_[path_[i] ^ 1].left += least;
        if (edges_[path_[i]].left == 0) keep = i;
      }
      node = edges_[path_[keep] ^ 1].to;
      path_.resize(keep);
      continue;
    }
    auto& e = at_[node];
    while (e != none && (edges_[e].left == 0 || level_[edges_[e].to] != level_[node] + 1)) e = edges_[e].next;
    if (e != none) {
      path_.push_back(e);
      node = edges_[e].to;
    } else {
      if (path_.empty()) return;
      level_[node] = none - 1;  // a dead end
      node = edges_[path_.back() ^ 1].to;
      path_.resize(path_.size() - 1);
    }
  }
}

}}  // namespace neap::v0
