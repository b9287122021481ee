// Orders of ops: what a scheduler is, whether an order is one, and the two plainest schedulers.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A scheduler orders the ops of a graph.
/// Promise: the order is topological (data and order_after), each op appears once, equal graphs give equal orders.
/// neap's own also take flow_facts, for callers who have them already.
template <class S, class G>
concept scheduler_for = requires(S const& s, G const& g) {
  { s(g) } -> std::same_as<schedule>;
};

/// Whether each op appears once and after everything it must wait for; a failure says which op does not. O(ops + edges).
status check_order(flow_facts const& facts, schedule const& s);
template <dataflow_graph G>
status check_order(G const& g, schedule const& s) {
  return check_order(flow_facts(g, no_cost{}), s);
}

namespace detail {

/// Who waits for each op: the reverse of facts.after, with as many entries.
inline csr<op_id, op_id> successors(flow_facts const& facts) {
  csr<op_id, op_id> next;
  next.build(facts.op_count(), [&](auto&& pair) {
    for (auto o : id_range<op_id>(facts.op_count()))
      for (auto before : facts.after(o)) pair(before, o);
  });
  return next;
}

[[noreturn]] inline void refuse_cycle() { throw_error({"schedule: the graph's constraints form a cycle"}); }

}  // namespace detail

/// Reverse post-order of a depth-first walk along the edges from the ops that wait for nothing. An op comes soon after
/// the last one it waits for. Where ids are topological and a chain, this is the order of ids. Throws neap::error if the
/// constraints form a cycle. O(ops + edges).
struct reverse_post_order {
  schedule operator()(flow_facts const& facts) const;
  template <dataflow_graph G>
  schedule operator()(G const& g) const {
    return (*this)(flow_facts(g, no_cost{}));
  }
};

/// The order of the ids where it is topological, as in files that list ops in execution order; else reverse post-order.
struct given_order {
  schedule operator()(flow_facts const& facts) const {
    schedule s;
    s.order.resize(facts.op_count());
    for (auto o : id_range<op_id>(facts.op_count())) {
      for (auto before : facts.after(o))
        if (index(before) >= index(o)) return reverse_post_order{}(facts);
      s.order[index(o)] = o;
    }
    return s;
  }
  template <dataflow_graph G>
  schedule operator()(G const& g) const {
    return (*this)(flow_facts(g, no_cost{}));
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/order.ipp>
#endif
