// The bodies of <neap/schedule/slide.hpp>.
#pragma once

#include <neap/schedule/slide.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC schedule sink(flow_facts const& facts, schedule const& s) {
  auto const n = static_cast<std::uint32_t>(s.size());
  // Ops that moved stand in lists, one for each position that they moved to, the earliest first: the op that sinks next
  // stands before those that have sunk to the same position.
  std::vector<std::uint32_t> head(n + 1, no_id), link(n, no_id);
  table<op_id, std::uint32_t> slot(n), first_waiting(n, n);
  table<storage_id, std::uint32_t> last(facts.storage_count(), 0);
  for (auto k : facts.kept_storages()) last[k] = n;
  for (std::uint32_t p = n; p-- > 0;) {
    auto const o = s[p];
    auto const to = first_waiting[o];
    bool moves = to != n && to > p + 1 && facts.stream(o) == op_stream::compute;
    if (moves) {
      bytes_t gained = 0;
      auto const touched = facts.touches(o);
      auto const made = facts.makes(o).size();
      for (auto t : touched.last(made)) gained += facts.bytes(t);
      for (auto t : touched.first(touched.size() - made))
        if (last[t] < to) gained -= facts.bytes(t);  // it would live longer
      moves = gained >= 0;
    }
    slot[o] = moves ? to : p;
    if (moves) link[p] = head[to], head[to] = p;
    for (auto t : facts.touches(o)) last[t] = std::max(last[t], slot[o]);
    for (auto before : facts.after(o)) first_waiting[before] = std::min(first_waiting[before], slot[o]);
  }
  schedule out;
  out.order.reserve(n);
  for (std::uint32_t p = 0; p < n; ++p) {
    for (auto q = head[p]; q != no_id; q = link[q]) out.order.push_back(s[q]);
    if (slot[s[p]] == p) out.order.push_back(s[p]);
  }
  return check_order(facts, out) ? out : s;
}

NEAP_FUNC schedule hoist(flow_facts const& facts, schedule const& s) {
  auto const n = static_cast<std::uint32_t>(s.size());
  table<storage_id, std::uint32_t> last(facts.storage_count(), 0), latest(facts.storage_count(), 0);
  for (std::uint32_t p = 0; p < n; ++p)
    for (auto t : facts.touches(s[p])) last[t] = p;
  for (auto k : facts.kept_storages()) last[k] = n;
  std::vector<std::uint32_t> head(n, no_id), tail(n, no_id), link(n, no_id);
  table<op_id, std::uint32_t> slot(n);  // the op is at this position, or right after what is
  for (std::uint32_t p = 0; p < n; ++p) {
    auto const o = s[p];
    std::uint32_t to = 0;
    for (auto before : facts.after(o)) to = std::max(to, slot[before]);
    auto const touched = facts.touches(o);
    auto const made = facts.makes(o).size();
    bytes_t gained = 0;
    for (auto t : touched.first(touched.size() - made))
      if (last[t] == p) gained += facts.bytes(t), to = std::max(to, latest[t]);
    for (auto t : touched.last(made)) gained -= facts.bytes(t);
    bool const moves = gained > 0 && to + 1 < p && facts.stream(o) == op_stream::compute && !facts.after(o).empty();
    slot[o] = moves ? to : p;
    if (moves) {
      (head[to] == no_id ? head[to] : link[tail[to]]) = p;
      tail[to] = p;
    }
    for (auto t : touched) latest[t] = std::max(latest[t], slot[o]);
  }
  schedule out;
  out.order.reserve(n);
  for (std::uint32_t p = 0; p < n; ++p) {
    if (slot[s[p]] == p) out.order.push_back(s[p]);
    for (auto q = head[p]; q != no_id; q = link[q]) out.order.push_back(s[q]);
  }
  return check_order(facts, out) ? out : s;
}

}}  // namespace neap::v0
