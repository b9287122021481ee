// The bodies of <neap/mutate/places_alike.hpp>.
#pragma once

#include <neap/mutate/places_alike.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC plain_vector<late_place> places_alike(op_graph const& g, replay_facts const& facts, late_place const& given) {
  plain_vector<late_place> found;
  auto const whole = g.record(given.storage).first;
  auto const maker = g.producer(whole);
  if (maker == nothing<op_id> || g.record(maker).part == nothing<part_id>) {
    found.push_back(given);
    return found;
  }
  auto const part = g.part(g.record(maker).part);
  struct twin {
    std::int64_t number;
    std::uint32_t at;
    op_id op;
  };
  plain_vector<twin> twins;
  auto const look = [&](op_id o) {
    auto const row = g.record(o).part;
    if (row == nothing<part_id> || &g.facets(o) != &g.facets(maker)) return;
    if (auto const& p = g.part(row); p.of == part.of && p.count == part.count)
      twins.push_back({p.number, facts.at[o], o});
  };
  auto const origin = g.origin(maker);
  if (index(origin) < g.op_count() && g.origin(origin) == origin) look(origin);
  for (auto o : facts.copies[origin]) look(o);
  sort_list(twins,
            [](twin const& a, twin const& b) { return a.number != b.number ? a.number < b.number : a.at < b.at; });

  plain_vector<std::uint32_t> touched;
  // The positions that touch a storage; none where it may not leave memory.
  auto const touch = [&](storage_id s) {
    touched.clear();
    if (g.is_source(s)) return;
    for (auto v : facts.values[s]) {
      if (g.record(v).alias == alias_kind::update || g.is_kept(v)) return touched.clear();
      if (auto const p = g.producer(v); p != nothing<op_id>) touched.push_back(facts.at[p]);
      for (auto const& u : g.uses(v)) touched.push_back(facts.at[u.op]);
    }
    sort_list(touched);
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  };
  touch(given.storage);
  auto const touches = touched.size();
  auto const reader =
      static_cast<std::size_t>(std::lower_bound(touched.begin(), touched.end(), given.resume) - touched.begin());
  std::size_t rank = 0;
  for (std::size_t first = 0, k = 0; k < twins.size(); ++k) {
    if (twins[k].number != twins[first].number) first = k;
    if (twins[k].op == maker) rank = k - first;
  }
  auto const result = index(whole) - index(g.outputs(maker).front());
  for (std::size_t first = 0, end = 0; first < twins.size(); first = end) {
    for (end = first; end < twins.size() && twins[end].number == twins[first].number;) ++end;
    if (first + rank >= end) continue;
    auto const o = twins[first + rank].op;
    if (o == maker) {
      found.push_back(given);
      continue;
    }
    if (result >= g.outputs(o).size()) continue;
    auto const v = g.outputs(o)[result];
    auto const s = g.storage(v);
    if (g.record(s).first != v || g.bytes(s) != g.bytes(given.storage)) continue;
    touch(s);
    if (touched.size() == touches && reader < touches) found.push_back({s, touched[reader]});
  }
  sort_list(found, [](late_place const& a, late_place const& b) { return a.resume < b.resume; });
  return found;
}

}}}  // namespace neap::v0::detail
