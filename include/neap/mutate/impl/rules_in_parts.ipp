// The bodies of <neap/mutate/rules_in_parts.hpp>.
#pragma once

#include <neap/mutate/rules_in_parts.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::optional<edited> cut_anew(whole_again const& was, edited e) {
  auto const &g = was.whole.graph, &now = e.graph;
  auto const &order = was.whole.order, &then = e.order;
  std::size_t const behind = order.size() - 1 - was.cut.last;
  if (then.size() <= was.cut.first + behind) return std::nullopt;
  for (std::size_t p = 0; p < was.cut.first; ++p)
    if (g.origin(order[p]) != now.origin(then[p]) || g.digest(order[p]) != now.digest(then[p])) return std::nullopt;
  for (std::size_t k = 1; k <= behind; ++k) {
    auto const a = order[order.size() - k], b = then[then.size() - k];
    if (g.origin(a) != now.origin(b) || g.record(a).part != now.record(b).part || &g.facets(a) != &now.facets(b))
      return std::nullopt;
  }
  auto cut = was.cut;
  auto const v = was.cut.along.value;
  if (auto const o = g.producer(v); o == nothing<op_id>) {
    std::size_t k = 0;
    while (g.sources()[k] != v) ++k;
    cut.along.value = now.sources()[k];
  } else {
    std::size_t p = 0;
    while (p < was.cut.first && order[p] != o) ++p;
    if (p == was.cut.first) return std::nullopt;
    int output = 0;
    while (g.output(o, output) != v) ++output;
    cut.along.value = now.output(then[p], output);
  }
  cut.last = static_cast<std::uint32_t>(then.size() - 1 - behind);
  return cut.apply(candidate{std::move(e.graph), std::move(e.order), {}});
}

}  // namespace detail

}}  // namespace neap::v0
