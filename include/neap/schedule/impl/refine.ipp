// The bodies of <neap/schedule/refine.hpp>.
#pragma once

#include <neap/schedule/refine.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC schedule refine::operator()(flow_facts const& facts, const schedule& s) const {
  if (auto const ok = check_order(facts, s); !ok) throw_error({ok.message()});
  simulator sim;
  auto best = s;
  auto at = sim.judge(facts, s);
  auto const accept = [&](schedule next) {
    auto const q = sim.judge(facts, next);
    if (q.peak_bytes > std::max(at.peak_bytes, limit)) return;
    if (q.peak_bytes > at.peak_bytes && q.latency >= at.latency) return;
    best = std::move(next), at = q;
  };
  if (sink) accept(neap::sink(facts, best));
  if (stores && facts.has_transfers()) accept(stored(facts, best));
  if (loads && facts.has_transfers()) {
    accept(late_loads(facts, best));
    accept(advanced(facts, best, std::max(at.peak_bytes, limit), sim));
  }
  return best;
}

NEAP_FUNC schedule refine::advanced(flow_facts const& facts, schedule const& s, bytes_t most, simulator& sim) {
  auto const n = static_cast<std::uint32_t>(s.size());
  auto const now = sim(facts, s);
  auto bytes_at = now.bytes_at;
  std::vector<seconds_t> computed(n + 1);  // by the compute stream alone, before each position
  for (std::uint32_t p = 0; p < n; ++p)
    computed[p + 1] = computed[p] + (facts.stream(s[p]) == op_stream::compute ? facts.seconds(s[p]) : 0);
  auto const at = positions(s);
  std::vector<std::uint32_t> to(n, no_id);  // of loads: they stand right before this position
  seconds_t link_free = computed[n];        // the next load's start, seen from the end
  for (std::uint32_t p = n; p-- > 0;) {
    auto const o = s[p];
    if (facts.stream(o) != op_stream::to_device) continue;
    std::uint32_t earliest = 0;
    seconds_t not_before = 0;
    for (auto b : facts.after(o)) {
      earliest = std::max(earliest, at[b] + 1);
      if (facts.stream(b) != op_stream::compute)  // of a store: where the compute stream is when it has ended
        not_before = std::max(not_before, now.end[at[b]]);
    }
    bytes_t mine = 0;
    for (auto t : facts.makes(o)) mine += facts.bytes(t);
    auto const start = std::min(link_free, computed[p]) - facts.seconds(o);
    std::uint32_t q = p;
    while (q > earliest && computed[q] > start && bytes_at[q - 1] + mine <= most && now.end[q - 1] > not_before) --q;
    for (std::uint32_t k = q; k < p; ++k) bytes_at[k] += mine;
    to[p] = q;
    link_free = computed[q];
  }
  std::vector<std::vector<op_id>> before(n + 1);
  for (std::uint32_t p = 0; p < n; ++p)
    if (to[p] != no_id) before[to[p]].push_back(s[p]);
  schedule out;
  out.order.reserve(n);
  for (std::uint32_t p = 0; p < n; ++p) {
    out.order.insert(out.order.end(), before[p].begin(), before[p].end());
    if (to[p] == no_id) out.order.push_back(s[p]);
  }
  return check_order(facts, out) ? out : s;
}

}}  // namespace neap::v0
