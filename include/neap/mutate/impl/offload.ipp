// The bodies of <neap/mutate/offload.hpp>.
#pragma once

#include <neap/mutate/offload.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {
namespace detail {

NEAP_FUNC plain_vector<absence> absences(op_graph const& g, schedule const& order, simulation const& result,
                                         std::vector<bool> const& may_leave, offload const& how) {
  auto const n = static_cast<std::uint32_t>(order.size());
  // Each op's storages, and of each storage the next position that touches it.
  csr<storage_id, std::uint32_t> touched;
  touched.build(g.storage_count(), [&](auto&& pair) {
    std::vector<std::uint32_t> last(g.storage_count(), no_id);
    for (std::uint32_t p = 0; p < n; ++p) {
      auto const see = [&](value_id v) {
        auto const s = g.storage(v);
        if (may_leave[index(s)] && last[index(s)] != p) pair(s, p), last[index(s)] = p;
      };
      for (auto v : g.inputs(order[p])) see(v);
      for (auto v : g.outputs(order[p])) see(v);
    }
  });
  struct entry {
    std::uint32_t next, left;
    storage_id storage;
    bool operator<(entry const& o) const { return next < o.next || (next == o.next && storage < o.storage); }
  };
  std::priority_queue<entry> idle;
  std::vector<std::uint32_t> row(g.storage_count(), 0);
  plain_vector<bytes_t> back;  // by position: what comes back there
  back.assign(n + 1, 0);
  bytes_t away = 0;
  plain_vector<absence> found;
  for (std::uint32_t p = 0; p < n; ++p) {
    away -= back[p];
    while (result.bytes_at[p] - away > how.target && !idle.empty()) {
      auto const e = idle.top();
      if (e.next <= p) break;  // nothing here is idle
      idle.pop();
      auto const bytes = g.bytes(e.storage);
      double const transfer = how.lead * static_cast<double>(bytes) / how.bytes_per_second;
      auto until = e.next;
      while (until > p && result.start[e.next] - result.start[until] < transfer) --until;
      if (until == p) continue;
      found.push_back({e.storage, e.left, p, e.next});
      away += bytes, back[until] += bytes;
    }
    auto const seen = [&](value_id v) {
      auto const s = g.storage(v);
      if (!may_leave[index(s)]) return;
      auto const positions = touched[s];
      auto& k = row[index(s)];
      if (k >= positions.size() || positions[k] != p) return;
      if (++k < positions.size()) idle.push({positions[k], p, s});
    };
    for (auto v : g.inputs(order[p])) seen(v);
    for (auto v : g.outputs(order[p])) seen(v);
  }
  detail::sort_list(found, [](absence const& a, absence const& b) { return a.resume < b.resume; });
  return found;
}

}  // namespace detail
namespace detail {

NEAP_FUNC known_store first_store(op_graph const& g, replay_facts const& facts, value_id whole) {
  op_id const producer = g.producer(whole);
  if (producer != nothing<op_id> && g.as<op::load>(producer)) return {g.inputs(producer)[0]};
  known_store first;
  for (auto const& u : g.uses(whole))
    if (g.as<op::store>(u.op) && (first.handle == nothing<value_id> || facts.at[u.op] < first.at))
      first = {g.output(u.op), facts.at[u.op]};
  return first;
}

}  // namespace detail

NEAP_FUNC bool offload::edit(candidate const& c, replay_facts const& facts, graph_edit& out) const {
  auto const& g = c.graph;
  auto may_leave = detail::movable_storages(g, detail::movable_kind::made_or_donated);
  for (auto s : g.storages()) {
    if (!may_leave[index(s)]) continue;
    bool const taken_over =
        c.result.takes_over[s] != nothing<storage_id> && g.overwrites(g.record(s).first) == nothing<value_id>;
    may_leave[index(s)] = !taken_over && !c.result.live[s].empty() && g.bytes(s) * 10'000 > c.result.peak_bytes &&
                          value_that_leaves(g, s) != nothing<value_id>;
  }
  for (auto s : g.storages())  // what gives its bytes to another one has to be there
    if (auto const from = c.result.takes_over[s]; from != nothing<storage_id>) may_leave[index(from)] = false;
  auto all = detail::absences(g, c.order, c.result, may_leave, *this);
  auto const stored_from = [&](storage_id s) { return detail::stored_from(g, facts.at, value_that_leaves(g, s)); };
  all.erase_if([&](detail::absence const& a) { return stored_from(a.storage) > a.left + 1; });
  if (all.empty()) return false;

  detail::late_readers late(g, facts, c.result, 64, 0);
  out.clear();
  auto const new_op = [&] { return id_at<op_id>(g.op_count() + out.runs.size()); };
  std::vector<op_id> maybe_dead, stores;
  // Stores, in the order in which they are issued; when the link will have done with them without waits.
  std::vector<value_id> handle(g.storage_count(), nothing<value_id>);
  std::vector<seconds_t> outside(g.storage_count(), 0);
  std::vector<std::uint32_t> stored_at(g.storage_count(), 0);
  std::vector<storage_id> in_order;
  for (auto const& a : all) in_order.push_back(a.storage);
  detail::sort_list(in_order, [&](storage_id a, storage_id b) {
    auto const x = stored_from(a), y = stored_from(b);
    return x < y || (x == y && a < b);
  });
  in_order.erase(std::unique(in_order.begin(), in_order.end()), in_order.end());
  seconds_t link = 0;
  for (auto s : in_order) {
    auto const whole = value_that_leaves(g, s);
    auto const since = stored_from(s);
    if (auto const known = detail::first_store(g, facts, whole); known.handle != nothing<value_id>) {
      handle[index(s)] = known.handle;
      if (known.at >= since) outside[index(s)] = c.result.end[known.at], stored_at[index(s)] = known.at;
      continue;
    }
    stores.push_back(new_op());
    handle[index(s)] = out.transfer(g, graph_edit::kind::store, whole, whole, since);
    link = std::max(link, since == 0 ? 0 : c.result.end[since - 1]) +
           1.05 * static_cast<double>(g.bytes(s)) / bytes_per_second;
    outside[index(s)] = link;
  }
  for (auto const& a : all) {
    auto const whole = value_that_leaves(g, a.storage);
    if (stored_at[index(a.storage)] >= a.resume) continue;  // it cannot come back from a store that is yet to be
    late.begin(a.storage, a.resume).provide(whole);
    if (!late.plan()) continue;
    auto& from = handle[index(a.storage)];
    if (outside[index(a.storage)] > c.result.start[a.from]) {
      from = out.transfer(g, graph_edit::kind::wait, whole, from, a.from);
      outside[index(a.storage)] = 0;  // the wait that comes first is waited for later, too
    }
    auto const load = new_op();
    late.edit(out, out.transfer(g, graph_edit::kind::load, whole, from, a.resume));
    for (auto copy = index(load) + 1; copy < index(new_op()); ++copy) maybe_dead.push_back(id_at<op_id>(copy));
    maybe_dead.insert(maybe_dead.end(), late.copied().begin(), late.copied().end());
    maybe_dead.push_back(load);
    if (g.producer(whole) != nothing<op_id>) maybe_dead.push_back(g.producer(whole));
  }
  maybe_dead.insert(maybe_dead.end(), stores.begin(), stores.end());
  // At one position: first what is stored there, then waits, then what comes back.
  for (std::uint32_t k = 0; k < out.runs.size(); ++k) out.sequence.push_back(k);
  auto const rank = [&](std::uint32_t k) {
    return std::pair{out.runs[k].before, out.runs[k].what == graph_edit::kind::store  ? 0
                                         : out.runs[k].what == graph_edit::kind::wait ? 1
                                                                                      : 2};
  };
  detail::sort_list(out.sequence, [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  out.sort_rereads();
  remove_dead(g, out, std::move(maybe_dead));
  return true;
}

}}  // namespace neap::v0
