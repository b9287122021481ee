// The bodies of <neap/mutate/swap.hpp>.
#pragma once

#include <neap/mutate/swap.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

namespace detail {

NEAP_FUNC std::string maker_of(op_graph const& g, storage_id s) {
  auto const first = g.record(s).first;
  auto const o = g.producer(first);
  if (o == nothing<op_id>) return text_of({"the donated input ", g.name(first)});
  return text_of({g.facets(o).name, " #", index(g.origin(o))});
}

}  // namespace detail

NEAP_FUNC bool swap_out::edit(candidate const& c, replay_facts const& facts, graph_edit& out) const {
  auto const& g = c.graph;
  value_id const whole = value_that_leaves(g, storage);
  if (whole == nothing<value_id>) return false;
  auto const from = detail::stored_from(g, facts.at, whole);
  if (from > left + 1) return false;  // a view of the whole that is made later alone
  detail::late_readers late(g, facts, c.result, 64, 0);
  late.begin(storage, resume).provide(whole);
  if (!late.plan()) return false;
  out.clear();
  using kind = graph_edit::kind;
  value_id handle = stored_before(g, facts);
  if (handle == nothing<value_id>) handle = out.transfer(g, kind::store, whole, whole, from);
  if (pauses(c)) handle = out.transfer(g, kind::wait, whole, handle, pause);
  late.edit(out, out.transfer(g, kind::load, whole, handle, load_position(c)));
  std::vector<op_id> maybe_dead(late.copied().begin(), late.copied().end());
  if (auto const producer = g.producer(whole); producer != nothing<op_id>) maybe_dead.push_back(producer);
  remove_dead(g, out, std::move(maybe_dead));
  return true;
}

NEAP_FUNC bool stall::edit(candidate const& c, replay_facts const& facts, graph_edit& out) const {
  auto const& g = c.graph;
  if (before <= facts.at[store] || before >= c.order.size()) return false;
  out.clear();
  auto const handle = g.output(store);
  auto const waited = out.transfer(g, graph_edit::kind::wait, g.inputs(store)[0], handle, before);
  std::vector<op_id> gone;
  auto const give = [&](value_id from) {
    for (auto const& u : g.uses(from))
      if (facts.at[u.op] >= before && !g.as<op::wait>(u.op)) out.rereads.push_back({u.op, from, waited});
  };
  give(handle);
  for (auto const& u : g.uses(handle))
    if (facts.at[u.op] >= before && g.as<op::wait>(u.op)) give(g.output(u.op)), gone.push_back(u.op);
  if (out.rereads.empty()) return false;
  remove_dead(g, out, std::move(gone));
  return true;
}

NEAP_FUNC std::string swap_out::describe(candidate const& c) const {
  return detail::text_of({"swap ", detail::maker_of(c.graph, storage), " (", c.graph.bytes(storage),
                          " bytes), back before position ", resume,
                          (pause ? ", waited for at position " + std::to_string(pause) : std::string())});
}

namespace detail {

NEAP_FUNC plain_vector<scored<swap_out>> find_swaps::operator()(candidate const& c) const {
  plain_vector<scored<swap_out>> found;
  auto const peak = c.result.peak_position;
  auto const gaps = gaps_at(c.graph, c.order, c.result, peak, movable_kind::made_or_donated);
  if (gaps.empty()) return found;
  auto const at = positions(c.order);
  plain_vector<seconds_t> link(peak + 1);  // when the link out is free, by position
  for (std::uint32_t p = 0; p < peak; ++p) link[p + 1] = c.graph.as<op::store>(c.order[p]) ? c.result.end[p] : link[p];
  for (auto const& g : gaps) {
    auto const whole = value_that_leaves(c.graph, g.storage);
    if (whole == nothing<value_id>) continue;
    auto const bytes = static_cast<double>(c.graph.bytes(g.storage));
    auto const idle = c.result.start[g.resume] - c.result.end[g.left];
    double const score = bytes * idle;
    if (!(score > 0)) continue;
    auto const from = stored_from(c.graph, at, whole);
    auto const made = from == 0 ? 0 : c.result.end[from - 1];
    auto const outside = std::max(link[std::min(from, peak)], made) + bytes / bytes_per_second;
    found.push_back(
        {score, {g.storage, g.left, g.resume, bytes_per_second, outside > c.result.start[peak] ? peak : 0}});
  }
  return found;
}

}  // namespace detail

}}  // namespace neap::v0
