// The bodies of <neap/schedule/exact_windows.hpp>.
#pragma once

#include <neap/schedule/exact_windows.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC schedule exact_windows::operator()(flow_facts const& facts, schedule order) const {
  if (facts.has_transfers() || order.size() < 3) return order;
  simulator sim;
  simulation now = sim(facts, order);
  detail::window_order window(facts);
  for (int round = 0; round < rounds; ++round) {
    auto const level = now.peak_bytes - static_cast<bytes_t>(near * static_cast<double>(now.peak_bytes));
    schedule next = order;
    auto at = positions(next);
    bool changed = false;
    auto const half = std::max(ops / 2, 1u);
    for (std::uint32_t p = 0; p < next.size();) {
      if (now.bytes_at[p] < level) {
        ++p;
        continue;
      }
      auto const begin = p > half ? p - half : 0;
      auto const end = window.solve(next, at, now.live, begin, ops, sets);
      if (window.is_better()) {
        changed = true;
        auto const& best = window.ops();
        for (std::uint32_t k = 0; k < best.size(); ++k) next.order[begin + k] = best[k], at[best[k]] = begin + k;
        sim(facts, next, now);
        order = next;
      }
      p = std::max(p + 1, end > half / 2 ? end - half / 2 : end);
    }
    if (!changed) break;
  }
  return order;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void window_order::fill(schedule const& order, table<op_id, std::uint32_t> const& at,
                                  table<storage_id, live_range> const& live, std::uint32_t begin, std::uint32_t n) {
  ops_.clear(), storages_.clear(), touched_.clear(), takeovers_.clear();
  begin_ = begin, order_ = &order;
  auto const local = [&](storage_id s) {
    if (place_[s] == 0) {
      auto const m = facts_.maker(s);
      bool const here = m != nothing<op_id> && at[m] >= begin && at[m] < begin + n;
      storages_.push_back({facts_.bytes(s), 0, here ? static_cast<std::uint8_t>(at[m] - begin) : std::uint8_t{64},
                           facts_.is_kept(s) || live[s].last >= begin + n});
      place_[s] = static_cast<std::uint32_t>(storages_.size());
      known_.push_back(s);
    }
    return place_[s] - 1;
  };
  for (std::uint32_t k = 0; k < n; ++k) {
    op_id const o = order[begin + k];
    local_op x{0, facts_.workspace(o),
               0, static_cast<std::uint32_t>(touched_.size()),
               0, static_cast<std::uint32_t>(takeovers_.size()),
               0};
    for (auto b : facts_.after(o))
      if (auto const p = at[b]; p >= begin && p < begin + n) x.needs |= set{1} << (p - begin);
    for (auto s : facts_.touches(o)) {
      auto const l = local(s);
      storages_[l].touchers |= set{1} << k;
      touched_.push_back(l);
    }
    for (auto s : facts_.makes(o)) x.makes += facts_.bytes(s);
    if (!facts_.takeovers().empty())
      for (auto c : facts_.takeovers(o)) takeovers_.push_back({local(c.from), local(c.to)});
    x.storages_end = static_cast<std::uint32_t>(touched_.size());
    x.takeovers_end = static_cast<std::uint32_t>(takeovers_.size());
    ops_.push_back(x);
  }
  for (auto s : known_) place_[s] = 0;
  known_.clear();
}

NEAP_FUNC void window_order::extend(state const& s, std::uint32_t k, bytes_t& now, bytes_t& then) {
  auto const& x = ops_[k];
  set const done = s.done | set{1} << k;
  now = s.living + x.workspace + x.makes, then = s.living + x.makes;
  for (auto i = x.storages_begin; i < x.storages_end; ++i) {
    auto const& t = storages_[touched_[i]];
    if (!t.stays && (t.touchers & ~done) == 0) then -= t.bytes;
  }
  gave_.clear(), took_.clear();
  for (auto i = x.takeovers_begin; i < x.takeovers_end; ++i) {
    auto const [from, to] = takeovers_[i];
    auto const& f = storages_[from];
    if (f.stays || (f.touchers & ~done) != 0) continue;
    if (std::find(gave_.begin(), gave_.end(), from) != gave_.end()) continue;
    if (std::find(took_.begin(), took_.end(), to) != took_.end()) continue;
    gave_.push_back(from), took_.push_back(to);
    now -= storages_[to].bytes;
  }
}

NEAP_FUNC bool window_order::run(std::size_t max_sets) {
  auto const n = static_cast<std::uint32_t>(ops_.size());
  set const all = n == 64 ? ~set{0} : (set{1} << n) - 1;
  states_.clear();
  states_.push_back(nothing_done());
  std::size_t layer = 0;
  for (std::uint32_t step = 0; step < n; ++step) {
    auto const layer_end = states_.size();
    slots_.assign(std::bit_ceil(2 * (layer_end - layer) * 2 + 16), no_id);
    for (auto from = layer; from < layer_end; ++from)
      for (std::uint32_t k = 0; k < n; ++k) {
        if ((states_[from].done >> k & 1) || (ops_[k].needs & ~states_[from].done)) continue;
        bytes_t now = 0, then = 0;
        extend(states_[from], k, now, then);
        state const next{states_[from].done | set{1} << k, std::max(states_[from].peak, now),
                         states_[from].sum + now,          then,
                         static_cast<std::uint32_t>(from), k};
        auto const slot = slot_of(next.done);
        if (slots_[slot] == no_id) {
          if (states_.size() == max_sets) return false;
          slots_[slot] = static_cast<std::uint32_t>(states_.size());
          states_.push_back(next);
          if (2 * (states_.size() - layer_end) > slots_.size()) grow(layer_end);
        } else if (auto& have = states_[slots_[slot]];
                   next.peak < have.peak || (next.peak == have.peak && next.sum < have.sum)) {
          have = next;
        }
      }
    layer = layer_end;
  }
  if (states_.back().done != all) return false;  // a cycle
  best_peak_ = states_.back().peak, best_sum_ = states_.back().sum;
  measure_as_it_stands();
  best_.resize(n);
  for (std::size_t at = n, s = states_.size() - 1; at-- > 0; s = states_[s].from)
    best_[at] = (*order_)[begin_ + states_[s].op];
  return true;
}

}  // namespace detail
}}  // namespace neap::v0
