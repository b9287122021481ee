// The order of least peak, by dynamic programming over the sets of ops that have run: what lives after a set has run does
// not depend on the order in which it ran. An oracle for other schedulers; time and memory are exponential.
#pragma once

#include <neap/schedule/order.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace neap::testing {

/// An order of least peak of a graph of at most 20 ops without transfers, whose bytes in flight depend on time; the first
/// by op ids among equals. Throws neap::error for other graphs. O(2^ops * edges).
struct exhaustive_order {
  schedule operator()(flow_facts const& facts) const {
    auto const n = facts.op_count();
    if (n > 20) throw_error({"schedule: exhaustive search takes at most 20 ops, got ", n});
    if (facts.has_transfers()) throw_error({"schedule: exhaustive search knows no transfers"});
    std::vector<std::uint32_t> needs(n), touchers(facts.storage_count());
    for (auto o : id_range<op_id>(n)) {
      for (auto b : facts.after(o)) needs[index(o)] |= 1u << index(b);
      for (auto s : facts.touches(o)) touchers[index(s)] |= 1u << index(o);
    }
    constexpr bytes_t never = std::numeric_limits<bytes_t>::max();
    std::vector<bytes_t> best(std::size_t{1} << n, never);
    std::vector<std::uint8_t> last(best.size());
    best[0] = facts.resident_bytes();
    for (std::uint32_t done = 0; done + 1 < best.size(); ++done) {
      if (best[done] == never) continue;
      bytes_t living = facts.resident_bytes();
      for (auto s : id_range<storage_id>(facts.storage_count())) {
        if (facts.is_resident(s)) continue;
        auto const m = facts.maker(s);
        bool const made = m == nothing<op_id> || (done >> index(m) & 1);
        if (made && (facts.is_kept(s) || (touchers[index(s)] & ~done))) living += facts.bytes(s);
      }
      for (std::uint32_t i = 0; i < n; ++i) {
        if ((done >> i & 1) || (needs[i] & ~done)) continue;
        auto const o = op_id{i};
        bytes_t now = living + facts.workspace(o);
        for (auto s : facts.makes(o)) now += facts.bytes(s);
        std::vector<storage_id> gave, took;
        for (auto c : facts.takeovers(o)) {
          if (touchers[index(c.from)] & ~(done | 1u << i)) continue;
          if (std::find(gave.begin(), gave.end(), c.from) != gave.end()) continue;
          if (std::find(took.begin(), took.end(), c.to) != took.end()) continue;
          gave.push_back(c.from), took.push_back(c.to);
          now -= facts.bytes(c.to);
        }
        auto const then = done | 1u << i;
        auto const peak = std::max(best[done], now);
        if (peak < best[then]) best[then] = peak, last[then] = static_cast<std::uint8_t>(i);
      }
    }
    if (best.back() == never) neap::detail::refuse_cycle();
    schedule s;
    s.order.resize(n);
    for (std::size_t at = n, set = best.size() - 1; at-- > 0; set &= ~(std::size_t{1} << last[set]))
      s.order[at] = op_id{last[set]};
    return s;
  }
  template <dataflow_graph G>
  schedule operator()(G const& g, memory_options options = {}) const {
    return (*this)(flow_facts(g, no_cost{}, options));
  }
};

}  // namespace neap::testing
