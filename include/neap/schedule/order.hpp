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

namespace neap::inline v0 {

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
  schedule operator()(flow_facts const& facts) const {
    auto const n = facts.op_count();
    // Who waits for each op, the last one first, as the walk takes them, so that ids ascend in the result. The walk takes
    // off what it has seen. Most lists have one item, which lies in the op's own row; the others' rest is in `more`.
    struct waiting {
      op_id op;
      std::uint32_t next;  // in `more`, whose first row ends every list
    };
    constexpr waiting end{nothing<op_id>, 0};
    plain_vector<waiting> first(n, end);
    plain_vector<waiting> rest;
    rest.resize_for_overwrite(facts.after_count() + 1);
    auto* const more = rest.data();
    more[0] = end;
    std::uint32_t used = 1;
    for (auto o : id_range<op_id>(n))
      for (auto before : facts.after(o)) {
        auto& list = first[index(before)];
        bool const is_longer = list.op != nothing<op_id>;
        more[used] = list;  // overwritten if the list was empty: what cannot be foretold costs more than a write
        list = {o, is_longer ? used : 0};
        used += is_longer;
      }
    plain_vector<std::uint8_t> state(n);  // 0 new, 1 on the path, 2 done
    schedule s;
    s.order.resize(n);
    // The path grows from the front of the result, which grows from the back: together they have each op at most once.
    auto* const path = s.order.data();
    std::size_t depth = 0, at = n;
    for (std::size_t i = n; i-- > 0;) {
      if (state[i] != 0 || !facts.after(id_at<op_id>(i)).empty()) continue;
      op_id o = id_at<op_id>(i);
      state[i] = 1;
      for (;;) {
        auto& list = first[index(o)];
        auto const to = list.op;
        if (to == nothing<op_id>) {
          state[index(o)] = 2;
          path[--at] = o;
          if (depth == 0) break;
          o = path[--depth];
          continue;
        }
        list = more[list.next];
        if (state[index(to)] != 0) {
          if (state[index(to)] == 1) detail::refuse_cycle();
          continue;
        }
        state[index(to)] = 1;
        path[depth++] = o;
        o = to;
      }
    }
    if (at != 0) detail::refuse_cycle();
    return s;
  }
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

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/order.ipp>
#endif
