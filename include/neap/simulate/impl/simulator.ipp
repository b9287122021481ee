// The bodies of <neap/simulate/simulator.hpp>.
#pragma once

#include <neap/simulate/simulator.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC void simulator::issue(flow_facts const& facts, schedule const& order, std::vector<seconds_t>& start,
                                std::vector<seconds_t>& end, table<storage_id, live_range>& live) {
  auto const n = order.size();
  assert(n + facts.absent_ops() == facts.op_count() && "a schedule has each op once");
  start.resize(n), end.resize(n);
  live.assign(facts.storage_count(), live_range{});
  auto const touch = [&](op_id o, std::size_t p) {
    for (auto s : facts.touches(o)) live[s].last = static_cast<std::uint32_t>(p);
    for (auto s : facts.makes(o)) live[s].first = static_cast<std::uint32_t>(p);
  };
  latency_ = 0;
  if (!facts.has_transfers()) {  // one stream: one after the other
    for (std::size_t p = 0; p < n; ++p) {
      start[p] = latency_;
      end[p] = latency_ += facts.seconds(order[p]);
      touch(order[p], p);
    }
    return;
  }
  if (facts.absent_ops() == 0) end_of_.resize(n);
  else end_of_.assign(facts.op_count(), 0);  // who waits for what does not run waits for nothing
  seconds_t free_at[3] = {0, 0, 0};
  for (std::size_t p = 0; p < n; ++p) {
    op_id const o = order[p];
    auto const stream = facts.stream(o);
    seconds_t t = free_at[at(stream)];
    for (op_id before : facts.after(o)) t = std::max(t, end_of_[before]);
    // the last compute op issued before is the one that set the compute stream free
    if (stream != op_stream::compute) t = std::max(t, free_at[at(op_stream::compute)]);
    start[p] = t;
    end[p] = end_of_[o] = free_at[at(stream)] = t + facts.seconds(o);
    latency_ = std::max(latency_, end[p]);
    touch(o, p);
  }
}

NEAP_FUNC void simulator::lives(flow_facts const& facts, schedule const& order, std::vector<seconds_t> const& start,
                                table<storage_id, live_range>& live) {
  auto const n = static_cast<std::uint32_t>(order.size());
  if (n == 0) return;
  for (auto s : facts.given_storages())
    if (live[s].last != 0 || touched_by(facts, order[0], s)) live[s].first = 0;
  for (auto s : facts.kept_storages()) live[s] = {facts.maker(s) == nothing<op_id> ? 0 : live[s].first, n - 1};
  if (!facts.has_transfers()) return;

  // A transfer holds what it reads and writes until a compute op starts after the transfer has ended. Transfers of one
  // stream end in order, and compute ops start in order: two queues.
  held_until_.assign(facts.storage_count(), 0);
  for (auto& q : flying_) q.clear();
  std::size_t landed[2] = {0, 0};
  for (std::uint32_t p = 0; p < n; ++p) {
    op_id const o = order[p];
    if (auto const stream = facts.stream(o); stream != op_stream::compute) {
      flying_[at(stream) - 1].push_back(o);
      for (auto s : facts.touches(o)) held_until_[s] = std::max(held_until_[s], end_of_[o]);
      continue;
    }
    for (int k = 0; k < 2; ++k)
      for (auto& q = flying_[k]; landed[k] < q.size() && end_of_[q[landed[k]]] <= start[p]; ++landed[k])
        for (auto s : facts.touches(q[landed[k]])) live[s].last = std::max(live[s].last, p - 1);
  }
  for (int k = 0; k < 2; ++k)
    for (; landed[k] < flying_[k].size(); ++landed[k])
      for (auto s : facts.touches(flying_[k][landed[k]])) live[s].last = n - 1;
}

NEAP_FUNC simulator::summit simulator::memory(flow_facts const& facts, schedule const& order,
                                              std::vector<seconds_t> const& start, table<storage_id, live_range>& live,
                                              std::vector<bytes_t>& bytes_at,
                                              table<storage_id, storage_id>* takes_over) {
  auto const n = order.size();
  bytes_at.assign(n + 1, 0);
  live_range const always = n ? live_range{0, static_cast<std::uint32_t>(n - 1)} : live_range{};
  for (auto s : id_range<storage_id>(facts.storage_count()))
    if (auto const l = live[s]; !l.empty()) {
      bytes_at[l.first] += facts.bytes(s);
      bytes_at[l.last + 1] -= facts.bytes(s);
    } else if (takes_over && facts.is_resident(s)) {
      live[s] = always;
    }
  if (takes_over) takes_over->assign(facts.storage_count(), nothing<storage_id>);
  if (!facts.takeovers().empty()) {
    taken_.assign(facts.storage_count(), 0);
    for (auto const c : facts.takeovers()) {  // one op's bear on no other's
      auto const p = live[c.to].first;
      if (live[c.from].last != p || (taken_[c.from] & gave) || (taken_[c.to] & took)) continue;
      if (facts.has_transfers() && held_until_[c.from] > start[p]) continue;
      taken_[c.from] |= gave, taken_[c.to] |= took;
      if (takes_over) (*takes_over)[c.to] = c.from;
      bytes_at[p] -= facts.bytes(c.to);        // one buffer where there were two
      bytes_at[p + 1] += facts.bytes(c.from);  // which goes on
    }
  }
  bytes_at.resize(n);
  bytes_t sum = facts.resident_bytes();
  summit top{sum, 0};
  for (std::uint32_t p = 0; p < n; ++p) {
    auto const here = (sum += bytes_at[p]) + (facts.has_workspace() ? facts.workspace(order[p]) : 0);
    bytes_at[p] = here;
    if (here > top.bytes || p == 0) top = {here, p};
  }
  return top;
}

}}  // namespace neap::v0
