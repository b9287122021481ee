// The bodies of <neap/optimize/op_names.hpp>.
#pragma once

#include <neap/optimize/op_names.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::string name_of_operator(op_graph const& g, op_id o) {
  if (auto const* x = g.as<op::opaque>(o)) return std::string(g.text(x->target));
  if constexpr (requires { g.as<op::external>(o); })
    if (g.as<op::external>(o) && !g.name(o).empty()) return std::string(g.name(o));
  return std::string(g.facets(o).name);
}

NEAP_FUNC peak_content peak_content_of(candidate const& c) {
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

NEAP_FUNC std::vector<operator_time> times_of_operators(candidate const& c) {
  std::map<std::string, operator_time> of;
  for (std::size_t p = 0; p < c.order.size(); ++p) {
    op_id const o = c.order[p];
    if (flow::stream(c.graph, o) != op_stream::compute) continue;
    auto& t = of[name_of_operator(c.graph, o)];
    ++t.ops, t.seconds += c.result.end[p] - c.result.start[p];
  }
  std::vector<operator_time> out;
  for (auto& [name, t] : of) {
    t.what = name;
    out.push_back(std::move(t));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &operator_time::seconds);
  return out;
}

}  // namespace detail

}}  // namespace neap::v0
