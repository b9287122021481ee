// The bodies of <neap/mutate/rematerialize.hpp>.
#pragma once

#include <neap/mutate/rematerialize.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC bool recompute::edit(candidate const& c, replay_facts const& facts, graph_edit& out) const {
  detail::late_readers late(c.graph, facts, c.result, max_ops, keep_ratio);
  out.clear();
  std::vector<op_id> maybe_dead;
  for (auto const& p : places(c, facts)) {
    if (!late.begin(p.storage, p.resume).plan() || late.copied().empty()) {
      if (p.storage == storage) return false;
      continue;
    }
    late.edit(out);
    maybe_dead.insert(maybe_dead.end(), late.copied().begin(), late.copied().end());
  }
  if (in_all_parts) out.sort_rereads();  // an op may read what several parts have made
  remove_dead(c.graph, out, std::move(maybe_dead));
  return true;
}

NEAP_FUNC std::string recompute::describe(candidate const& c) const {
  auto const o = c.graph.producer(c.graph.record(storage).first);
  return detail::text_of({"recompute ", c.graph.facets(o).name, " #", index(c.graph.origin(o)), " (",
                          c.graph.bytes(storage), " bytes) before position ", resume,
                          (in_all_parts ? ", and the like in all parts" : "")});
}

namespace detail {

NEAP_FUNC plain_vector<scored<recompute>> find_recomputations::operator()(candidate const& c) const {
  replay_facts const facts(c.graph, c.order);
  late_readers late(c.graph, facts, c.result, max_ops, keep_ratio);
  plain_vector<scored<recompute>> found;
  for (auto const& g : gaps_at(c.graph, c.order, c.result, c.result.peak_position)) {
    if (!late.begin(g.storage, g.resume).plan() || late.copied().empty()) continue;
    auto const seconds = late.seconds() + 1e-5 * c.result.latency;
    double const score = static_cast<double>(c.graph.bytes(g.storage)) / seconds;
    if (!(score > 0)) continue;
    auto const maker = c.graph.producer(c.graph.record(g.storage).first);
    if (c.graph.record(maker).part != nothing<part_id>)
      found.push_back({score, {g.storage, g.resume, max_ops, keep_ratio, true}});
    found.push_back({score, {g.storage, g.resume, max_ops, keep_ratio}});
  }
  return found;
}

}  // namespace detail

}}  // namespace neap::v0
