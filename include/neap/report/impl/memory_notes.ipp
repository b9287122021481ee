// The bodies of <neap/report/memory_notes.hpp>.
#pragma once

#include <neap/report/memory_notes.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

NEAP_FUNC memory_notes notes_on(op_graph const& g, schedule const& order, simulation const& s, memory_options options) {
  memory_notes out;
  if (order.size() == 0) return out;
  flow_facts const facts(g, no_cost{}, options);
  auto const now = out.peak_position = s.peak_position;
  out.peak_op = op_label(g, order[now]);

  bytes_t of_role[16] = {};
  std::size_t count_of_role[16] = {};
  std::vector<std::uint8_t> taken_over(g.storage_count());
  for (auto t : g.storages())
    if (auto const from = s.takes_over[t]; from != nothing<storage_id> && s.live[t].first == now)
      taken_over[index(from)] = 1;
  std::vector<storage_id> alive;
  std::vector<peak_part> tensors;
  for (auto t : g.storages()) {
    auto const first = g.record(t).first;
    if (facts.bytes(t) == 0) continue;
    if (facts.is_resident(t)) {
      of_role[static_cast<int>(g.role(first))] += facts.bytes(t);
      ++count_of_role[static_cast<int>(g.role(first))];
    } else if (s.live[t].first <= now && now <= s.live[t].last && !taken_over[index(t)]) {
      alive.push_back(t);
    }
  }
  // Of equal bytes the older first: numbers of storages change when a plan is written and read.
  std::stable_sort(alive.begin(), alive.end(), [&](storage_id a, storage_id b) {
    return s.live[a].first != s.live[b].first ? s.live[a].first < s.live[b].first
                                              : g.record(a).first < g.record(b).first;
  });
  for (auto t : alive) {
    auto const first = g.record(t).first;
    auto const p = g.producer(first);
    tensors.push_back({peak_part::kind::tensor, value_label(g, first),
                       (p == nothing<op_id> ? "" : operator_label(g, p) + " ") + to_string(g.type(first)),
                       facts.bytes(t)});
  }
  if (auto const bytes = facts.workspace(order[now]); bytes > 0)
    tensors.push_back(
        {peak_part::kind::workspace, out.peak_op, "workspace of " + operator_label(g, order[now]), bytes});
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](peak_part const& a, peak_part const& b) { return a.bytes > b.bytes; });
  for (int r = 0; r < 16; ++r)
    if (count_of_role[r] > 0)
      out.peak.push_back({peak_part::kind::resident,
                          std::to_string(count_of_role[r]) + " " + std::string(name_of(static_cast<role>(r))) +
                              (count_of_role[r] > 1 ? "s" : ""),
                          "always there", of_role[r]});
  out.peak.insert(out.peak.end(), tensors.begin(), tensors.end());

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
    out.events.push_back(std::move(e));
  };
  auto const again = recomputed_ops(g, order);
  auto const parts = parts_of(g, order);
  bool several = false;
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    auto const o = order[p];
    out.parts.push_back(parts[o]);
    several |= parts[o] != out.parts[0];
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
    out.events.push_back(std::move(e));
  }
  if (!several) out.parts.clear();
  return out;
}

}}  // namespace neap::v0
