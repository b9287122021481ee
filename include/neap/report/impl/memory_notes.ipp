// The bodies of <neap/report/memory_notes.hpp>.
#pragma once

#include <neap/report/memory_notes.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

namespace detail {

NEAP_FUNC std::vector<peak_part> residents_of(op_graph const& g, flow_facts const& facts) {
  bytes_t of_role[16] = {};
  std::size_t count_of_role[16] = {};
  for (auto t : g.storages())
    if (facts.bytes(t) != 0 && facts.is_resident(t)) {
      auto const r = static_cast<int>(g.role(g.record(t).first));
      of_role[r] += facts.bytes(t);
      ++count_of_role[r];
    }
  std::vector<peak_part> out;
  for (int r = 0; r < 16; ++r)
    if (count_of_role[r] > 0)
      out.push_back({peak_part::kind::resident,
                     std::to_string(count_of_role[r]) + " " + std::string(name_of(static_cast<role>(r))) +
                         (count_of_role[r] > 1 ? "s" : ""),
                     "always there", of_role[r]});
  return out;
}

/// Tensors and workspace at the peak, the largest first.
NEAP_FUNC std::vector<peak_part> others_at_peak(op_graph const& g, op_id o, simulation const& s,
                                                flow_facts const& facts) {
  auto const now = s.peak_position;
  std::vector<std::uint8_t> taken_over(g.storage_count());
  for (auto t : g.storages())
    if (auto const from = s.takes_over[t]; from != nothing<storage_id> && s.live[t].first == now)
      taken_over[index(from)] = 1;
  std::vector<storage_id> alive;
  for (auto t : g.storages())
    if (facts.bytes(t) != 0 && !facts.is_resident(t) && s.live[t].first <= now && now <= s.live[t].last &&
        !taken_over[index(t)])
      alive.push_back(t);
  // Of equal bytes the older first: numbers of storages change when a plan is written and read.
  std::stable_sort(alive.begin(), alive.end(), [&](storage_id a, storage_id b) {
    return s.live[a].first != s.live[b].first ? s.live[a].first < s.live[b].first
                                              : g.record(a).first < g.record(b).first;
  });
  std::vector<peak_part> out;
  for (auto t : alive) {
    auto const first = g.record(t).first;
    auto const p = g.producer(first);
    out.push_back({peak_part::kind::tensor, value_label(g, first),
                   (p == nothing<op_id> ? "" : operator_label(g, p) + " ") + to_string(g.type(first)), facts.bytes(t)});
  }
  if (auto const bytes = facts.workspace(o); bytes > 0)
    out.push_back({peak_part::kind::workspace, op_label(g, o), "workspace of " + operator_label(g, o), bytes});
  std::stable_sort(out.begin(), out.end(), [](peak_part const& a, peak_part const& b) { return a.bytes > b.bytes; });
  return out;
}

NEAP_FUNC std::vector<memory_event> events_of(op_graph const& g, schedule const& order, simulation const& s,
                                              flow_facts const& facts) {
  std::vector<memory_event> out;
  // Tensor and bytes of a transfer.
  auto const moved = [&](op_id o) {
    auto const v = facts.stream(o) == op_stream::to_host ? g.inputs(o)[0] : g.output(o);
    memory_event e;
    e.name = value_label(g, v), e.about = to_string(g.type(v)), e.bytes = facts.bytes(g.storage(v));
    return e;
  };
  auto const at = positions(order);
  seconds_t computed = 0;  // when the last computation ended
  // What a computation waits for, if it begins later than the one before ended: the last transfer that ends before it.
  auto const wait_before = [&](std::uint32_t p) {
    op_id last = nothing<op_id>;
    for (auto before : facts.after(order[p]))
      if (facts.stream(before) != op_stream::compute && s.end[at[before]] > computed &&
          (last == nothing<op_id> || s.end[at[before]] > s.end[at[last]]))
        last = before;
    if (last == nothing<op_id>) return;
    auto e = moved(last);
    e.what = memory_event::kind::waited;
    e.about += facts.stream(last) == op_stream::to_host ? ", until it has left" : ", until it is back";
    e.position = p, e.start = computed, e.end = s.start[p];
    out.push_back(std::move(e));
  };
  auto const again = recomputed_ops(g, order);
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    auto const o = order[p];
    auto const stream = facts.stream(o);
    memory_event e;
    if (stream == op_stream::compute) {
      if (s.start[p] > computed) wait_before(p);
      computed = std::max(computed, s.end[p]);
      if (!again[o]) continue;
      e.name = op_label(g, o), e.about = operator_label(g, o);
      for (auto t : facts.makes(o)) e.bytes += facts.bytes(t);
    } else {
      e = moved(o);
      e.what = stream == op_stream::to_host ? memory_event::kind::stored : memory_event::kind::loaded;
    }
    e.position = p, e.start = s.start[p], e.end = s.end[p];
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace detail

NEAP_FUNC memory_notes notes_on(op_graph const& g, schedule const& order, simulation const& s, memory_options options) {
  memory_notes out;
  if (order.size() == 0) return out;
  flow_facts const facts(g, no_cost{}, options);
  out.peak_position = s.peak_position;
  auto const at_peak = order[s.peak_position];
  out.peak_op = op_label(g, at_peak);
  out.peak = detail::residents_of(g, facts);
  auto const others = detail::others_at_peak(g, at_peak, s, facts);
  out.peak.insert(out.peak.end(), others.begin(), others.end());
  out.events = detail::events_of(g, order, s, facts);
  auto const parts = parts_of(g, order);
  for (auto o : order) out.parts.push_back(parts[o]);
  if (std::all_of(out.parts.begin(), out.parts.end(), [&](auto p) { return p == out.parts[0]; })) out.parts.clear();
  return out;
}

}}  // namespace neap::v0
