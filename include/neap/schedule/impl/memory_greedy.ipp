// The bodies of <neap/schedule/memory_greedy.hpp>.
#pragma once

#include <neap/schedule/memory_greedy.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC greedy_forward::walk::walk(flow_facts const& f, bool ahead) : facts(f), look_ahead(ahead) {
  missing.assign(n, 0), waits_for.assign(n, 0), age.assign(n, 0), added.assign(n, 0), state.assign(n, 0);
  touchers.assign(facts.storage_count(), 0), which.assign(facts.storage_count(), 0);
  table<op_id, std::uint32_t> seen(n, no_id);
  next.build(n, [&](auto&& pair) {
    seen.assign(n, no_id);
    for (auto o : id_range<op_id>(n))
      for (auto before : facts.after(o))
        if (seen[before] != number(o)) seen[before] = number(o), pair(before, o);
  });
  for (auto o : id_range<op_id>(n)) {
    for (auto u : next[o]) ++missing[u], waits_for[u] ^= number(o);
    for (auto s : facts.touches(o)) ++touchers[s], which[s] ^= number(o);
    for (auto s : facts.makes(o)) added[o] += facts.bytes(s);
  }
  for (auto s : id_range<storage_id>(facts.storage_count()))
    if (touchers[s] == 1 && !facts.is_kept(s)) added[op_id{which[s]}] -= facts.bytes(s);
  key = added;
}

NEAP_FUNC void greedy_forward::walk::look(op_id o) {
  key[o] = added[o];
  if (look_ahead)
    for (auto u : next[o]) {
      if (missing[u] != 1) continue;
      bytes_t then = added[u];
      for (auto s : facts.touches(u))
        if (touchers[s] == 2 && !facts.is_kept(s) && (which[s] ^ number(u)) == number(o)) then -= facts.bytes(s);
      key[o] = std::min(key[o], added[o] + then);
    }
}

NEAP_FUNC schedule greedy_forward::walk::run() {
  schedule s;
  s.order.reserve(n);
  for (auto o : id_range<op_id>(n))
    if (missing[o] == 0) ready(o, 0);
  while (!heap.empty()) {
    auto const e = heap.pop();
    auto const o = e.op;
    if (state[o] != 1 || e.added != key[o]) continue;
    state[o] = 2;
    s.order.push_back(o);
    auto const clock = static_cast<std::uint32_t>(s.size());
    for (auto t : facts.touches(o)) {
      which[t] ^= number(o);
      if (--touchers[t] != 1 || facts.is_kept(t)) continue;
      auto const last = op_id{which[t]};
      added[last] -= facts.bytes(t);
      if (state[last] == 1) look(last), offer(last);
    }
    for (auto u : next[o]) {
      waits_for[u] ^= number(o);
      if (--missing[u] == 0) {
        ready(u, clock);
      } else if (look_ahead && missing[u] == 1) {
        auto const only = op_id{waits_for[u]};
        if (state[only] == 1) look(only), offer(only);
      }
    }
  }
  if (s.size() != n) detail::refuse_cycle();
  return s;
}

NEAP_FUNC schedule memory_greedy::operator()(flow_facts const& facts) const {
  simulator sim;
  schedule best = given_order{}(facts);
  bytes_t peak = sim.peak(facts, best);
  auto const consider = [&](schedule const& other) {
    auto const p = sim.peak(facts, other);
    if (p < peak) peak = p, best = other;
  };
  auto const consider_slid = [&](schedule s) {
    consider(s);
    if (!slide) return;
    consider(s = hoist(facts, s));
    consider(s = sink(facts, s));
    consider(hoist(facts, s));
  };
  consider_slid(best);
  consider_slid(reverse_post_order{}(facts));
  if (forward) consider_slid(greedy_forward{}(facts));
  if (backward) consider_slid(greedy_backward{}(facts));
  return best;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC schedule greedy_backward::operator()(flow_facts const& facts) const {
  auto const n = facts.op_count();
  table<op_id, std::uint32_t> missing(n), age(n);
  table<op_id, bytes_t> added(n);
  table<op_id, std::uint8_t> state(n);
  table<storage_id, std::uint8_t> living(facts.storage_count());
  auto const behind = [n](op_id o) { return static_cast<std::uint32_t>(n - index(o)); };
  csr<storage_id, op_id> touchers;
  touchers.build(facts.storage_count(), [&](auto&& pair) {
    for (auto o : id_range<op_id>(n))
      for (auto s : facts.touches(o)) pair(s, o);
  });
  for (auto s : facts.kept_storages()) living[s] = 1;
  for (auto s : facts.given_storages()) living[s] = 1;
  for (auto o : id_range<op_id>(n)) {
    for (auto before : facts.after(o)) ++missing[before];
    for (auto s : facts.touches(o)) added[o] += living[s] ? 0 : facts.bytes(s);
    for (auto s : facts.makes(o)) added[o] -= facts.bytes(s);  // dead ones: neither nor
  }
  detail::greedy_heap heap;
  std::uint32_t clock = 0;
  for (auto o : id_range<op_id>(n))
    if (missing[o] == 0) state[o] = 1, heap.push({added[o], age[o], behind(o), o});
  schedule s;
  s.order.resize(n);
  std::size_t at = n;
  while (!heap.empty()) {
    auto const e = heap.pop();
    if (state[e.op] != 1 || e.added != added[e.op]) continue;
    state[e.op] = 2;
    s.order[--at] = e.op;
    ++clock;
    for (auto t : facts.touches(e.op)) {
      if (living[t]) continue;
      living[t] = 1;
      for (auto o : touchers[t]) {
        added[o] -= facts.bytes(t);
        if (state[o] == 1) heap.push({added[o], age[o], behind(o), o});
      }
    }
    for (auto o : facts.after(e.op))
      if (--missing[o] == 0) state[o] = 1, age[o] = clock, heap.push({added[o], age[o], behind(o), o});
  }
  if (at != 0) detail::refuse_cycle();
  return s;
}

}}  // namespace neap::v0
