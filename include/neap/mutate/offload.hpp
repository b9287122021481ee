// offload: wherever an order's bytes pass a target, what is needed last leaves memory until then (Belady 1966, with a link
// that takes time): all swaps of an order at once, where `swap` makes one. Stores are issued right after what makes the
// value, so that they hide behind what follows; where bytes are needed before a store has ended, computations wait for it.
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/sort.hpp>
#include <neap/mutate/swap.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// A mutation. Loads stand right before their readers: schedule/refine.hpp advances them as memory allows.
struct offload {
  bytes_t target = 0;              // of the peak
  double bytes_per_second = 16e9;  // of the link
  double lead = 0;                 // what is loaded counts as back so many times its transfer before it is read

  friend bool operator==(offload const&, offload const&) = default;

  static constexpr bool judged_when_built = true;
  /// False if nothing need leave. O((ops + edges) log ops), and the edit.
  template <class G>
  bool edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const;
  template <class G>
  std::string describe(candidate<G> const&) const {
    return detail::text_of({"move out what is needed last, down to ", target, " bytes"});
  }
};

namespace detail {

/// A value's absence from memory.
struct absence {
  storage_id storage;
  std::uint32_t left, from, resume;  // last read before; first position without it; first position that reads it again
};

/// What leaves memory, by resume. The storages in `may_leave` are considered.
plain_vector<absence> absences(op_graph const& g, schedule const& order, simulation const& result,
                               std::vector<bool> const& may_leave, offload const& how);

/// What a value can be loaded from already, and the position of the store; of a value that was loaded, before it was.
struct known_store {
  value_id handle = nothing<value_id>;
  std::uint32_t at = 0;
};
template <class G>
known_store first_store(G const& g, replay_facts const& facts, value_id whole) {
  op_id const producer = g.producer(whole);
  if (producer != nothing<op_id> && g.template as<op::load>(producer)) return {g.inputs(producer)[0]};
  known_store first;
  for (auto const& u : g.uses(whole))
    if (g.template as<op::store>(u.op) && (first.handle == nothing<value_id> || facts.at[u.op] < first.at))
      first = {g.output(u.op), facts.at[u.op]};
  return first;
}

}  // namespace detail

template <class G>
bool offload::edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const {
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

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/offload.ipp>
#endif
