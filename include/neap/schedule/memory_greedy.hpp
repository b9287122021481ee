// Memory-greedy list scheduling, in two directions.
//
// Forward, the ready op that adds the fewest bytes comes next: weight updates run as soon as their gradient is complete,
// because they free it. Backward, the last position is filled first, again with the op that adds the fewest bytes to what
// must be there before it: what only makes bytes (a load, a placeholder, a cast of a weight) moves as late as it can.
// Neither is better on all graphs, so both are simulated beside the order of the ids and reverse post-order, and the
// lowest peak wins. (Sethi and Ullman's rule is optimal on trees only; deciding in general is
// NP-hard, Sethi 1975.)
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/slide.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// A ready op and how many bytes it would add; entries grow stale, and the op is pushed again when its bytes sink.
struct greedy_entry {
  bytes_t added;
  std::uint32_t age;   // of two that add equally many, the one that became ready last: stay where one is
  std::uint32_t rank;  // then the one that stands first in the graph, or last when going backward
  op_id op;
  friend bool operator<(greedy_entry const& a, greedy_entry const& b) {  // the largest is at the top of a heap
    if (a.added != b.added) return a.added > b.added;
    if (a.age != b.age) return a.age < b.age;
    return a.rank > b.rank;
  }
};

class greedy_heap {
 public:
  void push(greedy_entry e) {
    heap_.push_back(e);
    std::push_heap(heap_.begin(), heap_.end());
  }
  bool empty() const { return heap_.empty(); }
  greedy_entry pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    auto const e = heap_.back();
    heap_.pop_back();
    return e;
  }

 private:
  plain_vector<greedy_entry> heap_;
};

}  // namespace detail

/// The next op is the ready one that adds the fewest bytes, counted together with the op that can run right after it if
/// that one frees more than it makes (a gradient and the update that consumes it). Throws neap::error on a cycle.
/// O((ops + edges) log ops).
struct greedy_forward {
  bool look_ahead = true;  // count the op that can run right after

  schedule operator()(flow_facts const& facts) const { return walk(facts, look_ahead).run(); }
  template <dataflow_graph G>
  schedule operator()(G const& g) const {
    return (*this)(flow_facts(g, no_cost{}));
  }

 private:
  struct walk {
    flow_facts const& facts;
    bool look_ahead;
    std::size_t n = facts.op_count();
    csr<op_id, op_id> next;                          // each successor once
    table<op_id, std::uint32_t> missing, waits_for;  // ops still to run before, and the exclusive or of their ids
    table<op_id, std::uint32_t> age;
    table<op_id, bytes_t> added, key;  // bytes of the op alone; with the one that can follow
    table<op_id, std::uint8_t> state;  // 0 waits, 1 ready, 2 done
    // Of each storage: how many ops still touch it, and the exclusive or of their ids: the last one's id in the end.
    table<storage_id, std::uint32_t> touchers, which;
    detail::greedy_heap heap;

    static std::uint32_t number(op_id o) { return static_cast<std::uint32_t>(index(o)); }

    walk(flow_facts const& f, bool ahead);
    void offer(op_id o) { heap.push({key[o], age[o], number(o), o}); }
    /// The bytes of o with the best of the ops that can run once o has.
    void look(op_id o);
    void ready(op_id o, std::uint32_t clock) {
      state[o] = 1, age[o] = clock;
      look(o), offer(o);
    }
    schedule run();
  };
};

/// The op before those already placed is the one that adds the fewest bytes to what must be there. Throws neap::error on
/// a cycle. O((ops + edges) log ops).
struct greedy_backward {
  schedule operator()(flow_facts const& facts) const;
  template <dataflow_graph G>
  schedule operator()(G const& g) const {
    return (*this)(flow_facts(g, no_cost{}));
  }
};

/// The best of the plain orders and the two greedy ones, each as it is and slid (slide.hpp), by simulated peak, earlier
/// candidates first. The graph's own order is the first candidate: nothing is moved for nothing.
struct memory_greedy {
  bool forward = true, backward = true, slide = true;  // switches, so that the worth of each can be measured

  schedule operator()(flow_facts const& facts) const;
  template <dataflow_graph G>
  schedule operator()(G const& g, memory_options options = {}) const {
    return (*this)(flow_facts(g, no_cost{}, options));
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/memory_greedy.ipp>
#endif
