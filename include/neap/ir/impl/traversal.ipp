// The bodies of <neap/ir/traversal.hpp>.
#pragma once

#include <neap/ir/traversal.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::vector<op_id> kahn_order(op_edges const& e) {
  auto const n = e.op_count();
  std::vector<std::uint32_t> missing(n);
  std::vector<op_id> order;
  order.reserve(n);
  for (auto o : id_range<op_id>(n)) {
    missing[index(o)] = static_cast<std::uint32_t>(e.before[o].size());
    if (!missing[index(o)]) order.push_back(o);
  }
  for (std::size_t at = 0; at < order.size(); ++at)
    for (auto o : e.after[order[at]])
      if (--missing[index(o)] == 0) order.push_back(o);
  return order;
}

NEAP_FUNC std::vector<op_id> depth_first_order(op_edges const& e) {
  auto const n = e.op_count();
  struct frame {
    op_id op;
    std::uint32_t left;  // successors still to walk; from the last to the first, because the order is turned round
  };
  std::vector<unsigned char> met(n);
  std::vector<frame> stack;
  std::vector<op_id> order(n);
  auto at = n;
  for (std::size_t i = n; i-- > 0;) {
    auto const root = id_at<op_id>(i);
    if (met[i] || !e.before[root].empty()) continue;
    met[i] = 1;
    stack.push_back({root, static_cast<std::uint32_t>(e.after[root].size())});
    while (!stack.empty()) {
      auto& top = stack.back();
      if (top.left == 0) {
        order[--at] = top.op;
        stack.pop_back();
        continue;
      }
      auto const next = e.after[top.op][--top.left];
      if (met[index(next)]) continue;
      met[index(next)] = 1;
      stack.push_back({next, static_cast<std::uint32_t>(e.after[next].size())});
    }
  }
  for (std::size_t i = n; i-- > 0;)  // only ops on or behind a cycle without a way in
    if (!met[i]) order[--at] = id_at<op_id>(i);
  return order;
}

NEAP_FUNC std::vector<op_id> find_cycle(op_edges const& e) {
  auto const n = e.op_count();
  auto const order = kahn_order(e);
  if (order.size() == n) return {};
  bit_set done(n);
  for (auto o : order) done.set(index(o));
  std::size_t first = 0;
  while (done.test(first)) ++first;
  // What is left waits for something that is left: walk back until an op comes again.
  std::vector<std::size_t> met(n, n);
  std::vector<op_id> path;
  for (auto o = id_at<op_id>(first);;) {
    if (met[index(o)] != n) {
      path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(met[index(o)]));
      std::reverse(path.begin(), path.end());
      return path;
    }
    met[index(o)] = path.size();
    path.push_back(o);
    for (auto p : e.before[o])
      if (!done.test(index(p))) {
        o = p;
        break;
      }
  }
}

namespace detail {
NEAP_FUNC bit_set reach(csr<op_id, op_id> const& next, op_id from) {
  bit_set found(next.row_count());
  std::vector<op_id> stack{from};
  while (!stack.empty()) {
    op_id const o = stack.back();
    stack.pop_back();
    for (auto p : next[o])
      if (found.insert(index(p))) stack.push_back(p);
  }
  return found;
}
}  // namespace detail

NEAP_FUNC bit_set ancestors(op_edges const& e, op_id o) { return detail::reach(e.before, o); }
NEAP_FUNC bit_set descendants(op_edges const& e, op_id o) { return detail::reach(e.after, o); }

NEAP_FUNC table<op_id, bit_set> all_ancestors(op_edges const& e) {
  table<op_id, bit_set> sets(e.op_count(), bit_set(e.op_count()));
  for (auto o : kahn_order(e))
    for (auto p : e.before[o]) {
      sets[o] |= sets[p];
      sets[o].set(index(p));
    }
  return sets;
}

NEAP_FUNC table<op_id, std::uint32_t> depths(op_edges const& e) {
  table<op_id, std::uint32_t> depth(e.op_count());
  for (auto o : kahn_order(e))
    for (auto p : e.before[o]) depth[o] = std::max(depth[o], depth[p] + 1);
  return depth;
}

}}  // namespace neap::v0
