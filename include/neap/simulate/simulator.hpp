// The simulator: what an order of a graph costs, in bytes at each position and in seconds, by the semantics stated in
// plan/simulation.hpp. Two passes over the order and one over the storages; nothing is allocated when a simulator is
// used again on a graph of the same size.
//
//   simulation s = simulate(graph, order, given_latencies{});
//   s.peak_bytes, s.latency
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <cassert>
#include <vector>

namespace neap::inline v0 {

/// Judges orders of graphs; keeps its tables between calls. Not for use by two threads at once.
class simulator {
 public:
  /// Writes the whole answer into `out`, reusing its memory. The order has each op once and is topological
  /// (schedule/order.hpp checks that). O(ops + edges).
  void operator()(flow_facts const& facts, schedule const& order, simulation& out) {
    issue(facts, order, out.start, out.end, out.live);
    lives(facts, order, out.start, out.live);
    auto const top = memory(facts, order, out.start, out.live, out.bytes_at, &out.takes_over);
    out.resident_bytes = facts.resident_bytes();
    out.latency = latency_;
    out.peak_position = top.position;
    out.peak_bytes = top.bytes;
  }
  simulation operator()(flow_facts const& facts, schedule const& order) {
    simulation out;
    (*this)(facts, order, out);
    return out;
  }

  struct quick {
    bytes_t peak_bytes;
    seconds_t latency;
  };
  /// The peak and the latency alone; the same numbers, in about half the time. O(ops + edges).
  quick judge(flow_facts const& facts, schedule const& order) {
    issue(facts, order, start_, end_, live_);
    lives(facts, order, start_, live_);
    return {memory(facts, order, start_, live_, bytes_at_, nullptr).bytes, latency_};
  }
  /// The bytes at each position of what was judged last.
  std::span<bytes_t const> judged_bytes() const { return span_of(bytes_at_); }
  /// The peak alone.
  bytes_t peak(flow_facts const& facts, schedule const& order) { return judge(facts, order).peak_bytes; }

 private:
  static constexpr std::size_t at(op_stream s) { return static_cast<std::size_t>(s); }

  /// Start and end of each position's op on its stream; where each storage is made and last touched.
  NEAP_ONCE void issue(flow_facts const& facts, schedule const& order, std::vector<seconds_t>& start,
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

  /// The live range of each storage that is not resident, transfers in flight included, from where it is touched.
  NEAP_ONCE void lives(flow_facts const& facts, schedule const& order, std::vector<seconds_t> const& start,
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

  struct summit {
    bytes_t bytes;
    std::uint32_t position;  // the first one
  };
  /// Takeovers, then the bytes at each position; with `takes_over`, the live ranges of resident storages as well.
  NEAP_ONCE summit memory(flow_facts const& facts, schedule const& order, std::vector<seconds_t> const& start,
                          table<storage_id, live_range>& live, std::vector<bytes_t>& bytes_at,
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
  static bool touched_by(flow_facts const& facts, op_id o, storage_id s) {
    auto const t = facts.touches(o);
    return std::find(t.begin(), t.end(), s) != t.end();
  }

  seconds_t latency_ = 0;
  table<op_id, seconds_t> end_of_;
  table<storage_id, live_range> live_;
  table<storage_id, seconds_t> held_until_;
  enum takeover_bits : std::uint8_t { gave = 1, took = 2 };
  table<storage_id, std::uint8_t> taken_;
  std::vector<op_id> flying_[2];
  std::vector<seconds_t> start_, end_;
  std::vector<bytes_t> bytes_at_;
};

/// What an order of a graph costs. O(ops + edges); for many orders of one graph keep flow_facts and a simulator.
template <dataflow_graph G, class C>
simulation simulate(G const& g, schedule const& order, C const& cost, memory_options options = {}) {
  static_assert(detail::check_cost_model<C, G>());
  return simulator{}(flow_facts(g, cost, options), order);
}

}  // namespace neap::inline v0
