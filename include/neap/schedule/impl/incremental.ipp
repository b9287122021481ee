// The bodies of <neap/schedule/incremental.hpp>.
#pragma once

#include <neap/schedule/incremental.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC schedule order_by_rank(flow_facts const& facts, table<op_id, std::uint64_t> const& rank) {
  auto const n = facts.op_count();
  auto const next = successors(facts);
  table<op_id, std::uint32_t> missing(n);
  struct ready {
    std::uint64_t rank;
    op_id op;
  };
  plain_vector<ready> heap;
  auto const is_after = [](ready const& a, ready const& b) { return a.rank != b.rank ? a.rank > b.rank : a.op > b.op; };
  for (auto o : id_range<op_id>(n))
    if ((missing[o] = static_cast<std::uint32_t>(facts.after(o).size())) == 0) heap.push_back({rank[o], o});
  std::make_heap(heap.begin(), heap.end(), is_after);
  schedule s;
  s.order.reserve(n);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), is_after);
    auto const o = heap.back().op;
    heap.pop_back();
    s.order.push_back(o);
    for (auto u : next[o])
      if (--missing[u] == 0) {
        heap.push_back({rank[u], u});
        std::push_heap(heap.begin(), heap.end(), is_after);
      }
  }
  if (s.size() != n) refuse_cycle();
  return s;
}

/// The new ops, each behind the new ones that it waits for. Edges between new ops are few, so this walks only them.
NEAP_FUNC std::vector<op_id> sorted_new_ops(flow_facts const& facts, std::vector<op_id> const& missing,
                                            table<op_id, std::uint8_t> const& is_new) {
  std::vector<op_id> sorted;
  struct frame {
    op_id op;
    std::uint32_t next;  // in after(op)
  };
  plain_vector<frame> path;
  table<op_id, std::uint8_t> state(facts.op_count());
  for (auto root : missing) {
    if (state[root]) continue;
    state[root] = 1;
    path.push_back({root, 0});
    while (!path.empty()) {
      auto& [o, i] = path.back();
      auto const after = facts.after(o);
      while (i < after.size() && (!is_new[after[i]] || state[after[i]] == 2)) ++i;
      if (i == after.size()) {
        state[o] = 2;
        sorted.push_back(o);
        path.pop_back();
        continue;
      }
      auto const before = after[i];
      if (state[before] == 1) refuse_cycle();
      state[before] = 1;
      path.push_back({before, 0});
    }
  }
  return sorted;
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC schedule complete_order(flow_facts const& facts, schedule const& partial) {
  auto const n = facts.op_count();
  constexpr std::uint32_t nowhere = no_id;
  table<op_id, std::uint32_t> slot(n, nowhere);  // the op stands before partial[slot], or is it
  for (std::uint32_t p = 0; p < partial.size(); ++p) slot[partial[p]] = p;
  std::vector<op_id> missing;
  table<op_id, std::uint8_t> is_new(n);
  for (auto o : id_range<op_id>(n))
    if (slot[o] == nowhere) missing.push_back(o), is_new[o] = 1;
  if (missing.empty()) {
    if (check_order(facts, partial)) return partial;
  }
  auto const end = static_cast<std::uint32_t>(partial.size());

  auto const sorted = detail::sorted_new_ops(facts, missing, is_new);
  // Latest places, from the readers back; stores go to their earliest place instead.
  std::vector<std::uint32_t> latest(n, end);
  for (auto o : id_range<op_id>(n))
    if (!is_new[o])
      for (auto before : facts.after(o))
        if (is_new[before]) latest[index(before)] = std::min(latest[index(before)], slot[o]);
  for (std::size_t i = sorted.size(); i-- > 0;)
    for (auto before : facts.after(sorted[i]))
      if (is_new[before]) latest[index(before)] = std::min(latest[index(before)], latest[index(sorted[i])]);
  for (auto o : sorted) {
    slot[o] = latest[index(o)];
    if (facts.stream(o) != op_stream::to_host) continue;
    std::uint32_t earliest = 0;
    for (auto before : facts.after(o)) earliest = std::max(earliest, is_new[before] ? slot[before] : slot[before] + 1);
    slot[o] = std::min(slot[o], earliest);
  }

  plain_vector<std::uint64_t> places;  // slot, row of `sorted`
  places.reserve(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) places.push_back(std::uint64_t{slot[sorted[i]]} << 32 | i);
  detail::sort_list(places);
  schedule s;
  s.order.reserve(n);
  std::size_t k = 0;
  for (std::uint32_t p = 0; p <= end; ++p) {
    for (; k < places.size() && places[k] >> 32 == p; ++k) s.order.push_back(sorted[places[k] & 0xffffffffu]);
    if (p < end) s.order.push_back(partial[p]);
  }
  if (check_order(facts, s)) return s;

  table<op_id, std::uint64_t> rank(n);
  for (std::size_t p = 0; p < s.size(); ++p) rank[s[p]] = p;
  return detail::order_by_rank(facts, rank);
}

}}  // namespace neap::v0
