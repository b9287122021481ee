// Undo moves: what rematerialize and swap have done, taken back one by one. Where memory is left they make a plan quicker
// again, and a search that has gone too far need not start anew. Copies that the original graph has itself (the same
// operator of the same values, twice) are shared in the same way.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/stored.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/ranked_stream.hpp>
#include <neap/mutate/undo.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// Readers of the results of `again` read those of `first`, an op that computes the same and runs before; `again`
/// goes, with what only it has read.
struct share_results {
  op_id first = nothing<op_id>, again = nothing<op_id>;

  friend bool operator==(share_results const&, share_results const&) = default;

  static constexpr bool judged_when_built = true;
  bool edit(candidate const& c, replay_facts const& facts, graph_edit& out) const {
    if (!detail::may_share(c.graph, facts.at, first, again)) return false;
    detail::stand_ins redirected(c.graph, facts.at);
    for (std::size_t j = 0; j < c.graph.outputs(first).size(); ++j)
      redirected.add_checked(c.graph.outputs(again)[j], c.graph.outputs(first)[j]);
    redirected.edit(out, {again});
    return true;
  }
  std::string describe(candidate const& c) const {
    return detail::text_of({"compute ", c.graph.facets(first).name, " #", index(c.graph.origin(first)), " once less"});
  }
};

namespace detail {
/// The loads of what an op stores.
inline plain_vector<op_id> loads_of(op_graph const& g, op_id store) {
  plain_vector<op_id> found;
  plain_vector<value_id> handles;
  handles.push_back(g.output(store));
  for (std::size_t k = 0; k < handles.size(); ++k)
    for (auto const& u : g.uses(handles[k]))
      if (g.as<op::load>(u.op)) found.push_back(u.op);
      else if (g.as<op::wait>(u.op)) handles.push_back(g.output(u.op));
  return found;
}
}  // namespace detail

/// The readers of a loaded value read what was stored; the load goes, and with its last load the store and its waits.
struct keep_in_memory {
  op_id load = nothing<op_id>;
  bool all = false;  // every other load of the stored value as well

  friend bool operator==(keep_in_memory const&, keep_in_memory const&) = default;

  static constexpr bool judged_when_built = true;
  bool edit(candidate const& c, replay_facts const& facts, graph_edit& out) const {
    auto const& g = c.graph;
    auto const store = store_of(g, g.inputs(load)[0]);
    if (store == nothing<op_id>) return false;
    detail::stand_ins redirected(g, facts.at);
    std::vector<op_id> gone;
    for (auto o : all ? detail::loads_of(g, store) : plain_vector<op_id>{load}) {
      if (!redirected.add_loaded(o)) return false;
      gone.push_back(o);
    }
    redirected.edit(out, std::move(gone));
    return true;
  }
  std::string describe(candidate const& c) const {
    auto const store = store_of(c.graph, c.graph.inputs(load)[0]);
    auto const v = c.graph.inputs(store)[0];
    return detail::text_of(
        {"keep ", c.graph.bytes(c.graph.storage(v)), " bytes in memory", (all ? " throughout" : " up to a load")});
  }
};

namespace detail {
/// For every op that an earlier one computes too, in the order of the schedule.
struct find_shared {
  plain_vector<scored<share_results>> operator()(candidate const& c) const {
    plain_vector<scored<share_results>> found;
    auto const at = positions(c.order);
    number_map first;  // of each digest so far
    for (auto o : c.order) {
      if (!flow::is_recomputable(c.graph, o)) continue;
      auto const key = c.graph.digest(o).low;
      auto const before = first.find(key);
      if (before == number_map::none) first.add(key, static_cast<std::uint32_t>(index(o)));
      else if (may_share(c.graph, at, op_id{before}, o)) found.push_back({0, {op_id{before}, o}});
    }
    return found;
  }
};
/// For every load, and behind the first of several loads of one value for all of them.
struct find_kept {
  plain_vector<scored<keep_in_memory>> operator()(candidate const& c) const {
    plain_vector<scored<keep_in_memory>> found;
    for (auto o : c.order) {
      if (!c.graph.as<op::load>(o)) continue;
      auto const store = store_of(c.graph, c.graph.inputs(o)[0]);
      if (store == nothing<op_id>) continue;
      found.push_back({0, {o, false}});
      if (auto const all = loads_of(c.graph, store); all.size() > 1 && all[0] == o) found.push_back({0, {o, true}});
    }
    return found;
  }
};
}  // namespace detail

/// The mutator: `share_results` for every op that an earlier one computes too, in the order of the schedule.
struct de_rematerialize {
  auto operator()(candidate const& c) const { return detail::ranked_stream<share_results, detail::find_shared>(c, {}); }
};

/// The mutator: `keep_in_memory` for every load, and for all loads of one value together, in the order of the schedule.
struct de_swap {
  auto operator()(candidate const& c) const { return detail::ranked_stream<keep_in_memory, detail::find_kept>(c, {}); }
};

}}  // namespace neap::v0
