// The simulator: what an order of a graph costs, in bytes at each position and in seconds, by the semantics stated in
// plan/simulation.hpp. Two passes over the order and one over the storages; nothing is allocated when a simulator is
// used again on a graph of the same size.
//
//   simulation s = simulate(graph, order, given_latencies{});
//   s.peak_bytes, s.latency
#pragma once

#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <cassert>
#include <vector>

namespace neap { inline namespace v0 {

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

  /// The peak and the latency alone; the same numbers, in about half the time. O(ops + edges).
  plan_cost judge(flow_facts const& facts, schedule const& order) {
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
  void issue(flow_facts const& facts, schedule const& order, std::vector<seconds_t>& start, std::vector<seconds_t>& end,
             table<storage_id, live_range>& live);

  /// The live range of each storage that is not resident, transfers in flight included, from where it is touched.
  void lives(flow_facts const& facts, schedule const& order, std::vector<seconds_t> const& start,
             table<storage_id, live_range>& live);

  struct summit {
    bytes_t bytes;
    std::uint32_t position;  // the first one
  };
  /// Takeovers, then the bytes at each position; with `takes_over`, the live ranges of resident storages as well.
  summit memory(flow_facts const& facts, schedule const& order, std::vector<seconds_t> const& start,
                table<storage_id, live_range>& live, std::vector<bytes_t>& bytes_at,
                table<storage_id, storage_id>* takes_over);
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

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/simulate/impl/simulator.ipp>
#endif
