// Ops in words, and what is in use at the peak of a candidate.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/optimize/search_summary.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace neap::inline v0::detail {

/// "matmul blocks.3.up #41".
template <class G>
std::string name_of_op(G const& g, op_id o) {
  std::string s(g.facets(o).name);
  if (auto const* x = g.template as<op::opaque>(o)) s = std::string(g.text(x->target));
  if (auto const n = g.name(o); !n.empty() && n != s) s += " " + std::string(n);
  return s + " #" + std::to_string(index(o));
}

/// What is in use where the peak of a candidate is reached first. O(storages log storages).
template <class G>
peak_content content_of_peak(candidate<G> const& c) {
  auto const& r = c.result;
  peak_content out;
  if (c.order.size() == 0) return out;
  out.op = name_of_op(c.graph, c.order[r.peak_position]);
  for (auto s : c.graph.storages()) {
    if (c.graph.is_resident(s) || r.live[s].empty() || r.live[s].first > r.peak_position ||
        r.live[s].last < r.peak_position || c.graph.bytes(s) == 0)
      continue;
    auto const maker = c.graph.producer(c.graph.record(s).first);
    out.holders.push_back({maker == nothing<op_id> ? "input" : name_of_op(c.graph, maker), c.graph.bytes(s)});
  }
  sort_list(out.holders, [](peak_holder const& a, peak_holder const& b) { return a.bytes > b.bytes; });
  constexpr std::size_t most = 3;
  out.others = out.holders.size() - std::min(out.holders.size(), most);
  out.holders.resize(std::min(out.holders.size(), most));
  out.other_bytes = r.peak_bytes - r.resident_bytes;
  for (auto const& h : out.holders) out.other_bytes -= h.bytes;
  out.other_bytes = std::max<bytes_t>(out.other_bytes, 0);
  return out;
}

}  // namespace neap::inline v0::detail
