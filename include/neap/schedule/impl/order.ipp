// The bodies of <neap/schedule/order.hpp>.
#pragma once

#include <neap/schedule/order.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC status check_order(flow_facts const& facts, schedule const& s) {
  auto const n = facts.op_count();
  auto const op = [](op_id o) { return "op " + std::to_string(index(o)); };
  if (s.size() != n) return failure{detail::text_of({"schedule: ", s.size(), " positions for ", n, " ops"})};
  std::vector<bool> done(n);
  for (auto o : s) {
    if (index(o) >= n) return failure{detail::text_of({"schedule: ", op(o), " is not in the graph"})};
    if (done[index(o)]) return failure{detail::text_of({"schedule: ", op(o), " appears twice"})};
    for (auto before : facts.after(o))
      if (!done[index(before)])
        return failure{detail::text_of({"schedule: ", op(o), " stands before ", op(before), ", which it needs"})};
    done[index(o)] = true;
  }
  return {};
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC schedule reverse_post_order::operator()(flow_facts const& facts) const {
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

}}  // namespace neap::v0
