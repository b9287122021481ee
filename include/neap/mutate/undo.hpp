// Undo moves: what rematerialize and swap have done, taken back one by one. Where memory is left they make a plan quicker
// again, and a search that has gone too far need not start anew. Copies that the original graph has itself (the same
// operator of the same values, twice) are shared in the same way.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/stored.hpp>
#include <neap/mutate/late_readers.hpp>
#include <neap/mutate/replay_facts.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace neap::inline v0 {

namespace detail {
/// Whether readers of storages `of` may read another one of the same content, all of them, as far as writes in place go:
/// none writes either, but that an op may overwrite one of `of` after all readers of the others. `at` are the ops'
/// positions.
inline bool may_stand_in(op_graph const& g, table<op_id, std::uint32_t> const& at, std::span<storage_id const> of,
                         storage_id other) {
  if (g.record(other).updates || g.is_overwritten(other)) return false;
  auto last_use = nothing<storage_id>;  // the storage that is overwritten in the end
  for (auto s : of) {
    if (g.record(s).updates) return false;
    if (!g.is_overwritten(s) || s == last_use) continue;
    if (last_use != nothing<storage_id>) return false;
    last_use = s;
  }
  if (last_use == nothing<storage_id>) return true;
  auto const is_read = [&](storage_id s) {
    return s == other || (s != last_use && std::find(of.begin(), of.end(), s) != of.end());
  };
  std::uint32_t overwritten = 0, last = 0;
  for (auto o : g.ops()) {
    for (auto v : g.inputs(o))
      if (is_read(g.storage(v))) last = std::max(last, at[o]);
    for (auto v : g.outputs(o))
      if (auto const base = g.overwrites(v); base != nothing<value_id> && g.storage(base) == last_use)
        overwritten = at[o];
  }
  return last < overwritten;
}

/// Values that an edit redirects readers of. Several storages that one stands in for are judged together.
class stand_ins {
 public:
  stand_ins(op_graph const& g, table<op_id, std::uint32_t> const& at) : g_(g), at_(at) {}

  /// Whether readers of a value may read another one besides; if so, they do from now on.
  bool add(value_id of, value_id other) {
    plain_vector<storage_id> together;
    for (auto const& [before, by] : redirected_)
      if (g_.storage(by) == g_.storage(other)) together.push_back(g_.storage(before));
    together.push_back(g_.storage(of));
    if (!may_stand_in(g_, at_, span_of(together), g_.storage(other))) return false;
    add_checked(of, other);
    return true;
  }
  void add_checked(value_id of, value_id other) { redirected_.push_back({of, other}); }
  /// The same of all results of an op that are read; none of them, or all.
  bool add_results(op_id of, op_id other) {
    auto const before = redirected_.size();
    for (std::size_t j = 0; j < g_.outputs(of).size(); ++j)
      if (!g_.uses(g_.outputs(of)[j]).empty() && !add(g_.outputs(of)[j], g_.outputs(other)[j]))
        return redirected_.resize(before), false;
    return true;
  }
  /// The edit: readers of all that was added read what stands in, and of these ops what is dead then goes.
  void edit(graph_edit& out, std::vector<op_id> maybe_dead) const {
    out.clear();
    for (auto const& r : redirected_)
      for (auto const& u : g_.uses(r.of)) out.rereads.push_back({u.op, r.of, stand_in(r.of)});
    out.sort_rereads();
    remove_dead(g_, out, std::move(maybe_dead));
  }

 private:
  struct redirection {
    value_id of, other;
  };
  value_id stand_in(value_id v) const {
    for (auto const& r : redirected_)
      if (r.of == v) v = r.other;
    return v;
  }
  op_graph const& g_;
  table<op_id, std::uint32_t> const& at_;
  plain_vector<redirection> redirected_;
};
}  // namespace detail

/// Readers of the results of `again` read those of `first`, an op that computes the same and runs before; `again`
/// goes, with what only it has read.
struct share_results {
  op_id first = nothing<op_id>, again = nothing<op_id>;

  friend bool operator==(share_results const&, share_results const&) = default;

  static constexpr bool judged_when_built = true;
  template <class G>
  bool edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const {
    if (!may_share(c.graph, facts.at, first, again)) return false;
    detail::stand_ins redirected(c.graph, facts.at);
    for (std::size_t j = 0; j < c.graph.outputs(first).size(); ++j)
      redirected.add_checked(c.graph.outputs(again)[j], c.graph.outputs(first)[j]);
    redirected.edit(out, {again});
    return true;
  }
  template <class G>
  std::string describe(candidate<G> const& c) const {
    return detail::text_of({"compute ", c.graph.facets(first).name, " #", index(c.graph.origin(first)), " once less"});
  }

  /// Whether two ops of a graph compute the same, and readers of one may read the other. `at` are the ops' positions.
  static bool may_share(op_graph const& g, table<op_id, std::uint32_t> const& at, op_id a, op_id b) {
    if (a == b || g.digest(a) != g.digest(b) || g.outputs(a).size() != g.outputs(b).size() || g.outputs(a).empty())
      return false;
    if (g.record(a).part != g.record(b).part || is_swap_op(g, a)) return false;
    if (!g.may_replace(b) && (!g.may_recompute(b) || g.origin(a) != g.origin(b))) return false;
    // Random ops have draws of their own, a whole is put together of its own parts, and parts read pieces cut for them.
    bool const of_one_op =
        g.as<op::opaque>(a) || g.record(a).part != nothing<part_id> || (g.runs_in_parts() && g.as<op::slice>(a));
    if (of_one_op && g.origin(a) != g.origin(b)) return false;
    for (std::size_t j = 0; j < g.outputs(a).size(); ++j) {
      auto const x = g.outputs(a)[j], y = g.outputs(b)[j];
      if (g.uses(y).empty() && !g.is_kept(y)) continue;  // there is no reader to redirect
      auto const s = g.storage(x), r = g.storage(y);
      if (g.is_kept(y) || !(g.layout(x) == g.layout(y)) || g.bytes(s) != g.bytes(r) ||
          !detail::may_stand_in(g, at, span_of(&r, 1), s))
        return false;
      for (auto kept : g.kept())
        if (g.storage(kept) == r) return false;  // outputs would come to share a storage
    }
    return true;
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
  template <class G>
  bool edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const {
    auto const& g = c.graph;
    auto const store = store_of(g, g.inputs(load)[0]);
    if (store == nothing<op_id>) return false;
    auto const v = g.inputs(store)[0];
    detail::stand_ins redirected(g, facts.at);
    std::vector<op_id> gone;
    for (auto o : all ? detail::loads_of(g, store) : plain_vector<op_id>{load}) {
      auto const loaded = g.output(o);
      if (!(g.layout(loaded) == g.layout(v)) || g.is_kept(loaded) || !redirected.add(loaded, v)) return false;
      gone.push_back(o);
    }
    redirected.edit(out, std::move(gone));
    return true;
  }
  template <class G>
  std::string describe(candidate<G> const& c) const {
    auto const store = store_of(c.graph, c.graph.inputs(load)[0]);
    auto const v = c.graph.inputs(store)[0];
    return detail::text_of(
        {"keep ", c.graph.bytes(c.graph.storage(v)), " bytes in memory", (all ? " throughout" : " up to a load")});
  }
};

/// Nothing is computed again, and nothing loaded, at the positions [begin, end): of what is there, whatever was in memory
/// once stays there. One step of a large-neighbourhood search (Shaw 1998): a stretch is undone, to be done better.
struct undo_stretch {
  std::uint32_t begin = 0, end = 0;

  friend bool operator==(undo_stretch const&, undo_stretch const&) = default;

  static constexpr bool judged_when_built = true;
  /// False if there is nothing to undo. Shares copies of one op of the original with each other, and nothing else that
  /// happens to compute the same. O(ops), and the edit.
  template <class G>
  bool edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const {
    auto const& g = c.graph;
    detail::stand_ins redirected(g, facts.at);
    std::vector<op_id> gone;
    for (auto p = begin; p < end && p < c.order.size(); ++p) {
      auto const o = c.order[p];
      if (g.template as<op::load>(o)) {
        auto const store = store_of(g, g.inputs(o)[0]);
        auto const loaded = g.output(o);
        if (store == nothing<op_id>) continue;
        auto const v = g.inputs(store)[0];
        if (!g.is_kept(loaded) && g.layout(loaded) == g.layout(v) && redirected.add(loaded, v)) gone.push_back(o);
      } else if (auto const first = first_of(g, facts, o);
                 first != nothing<op_id> && redirected.add_results(o, first)) {
        gone.push_back(o);
      }
    }
    if (gone.empty()) return false;
    redirected.edit(out, std::move(gone));
    return true;
  }
  template <class G>
  std::string describe(candidate<G> const&) const {
    return detail::text_of({"undo what is done again at positions ", begin, " to ", end});
  }

 private:
  /// The op that ran first of those that o may share results with.
  template <class G>
  static op_id first_of(G const& g, replay_facts const& facts, op_id o) {
    auto found = nothing<op_id>;
    auto const look = [&](op_id x) {
      if (x == o || facts.at[x] >= facts.at[o] || (found != nothing<op_id> && facts.at[x] >= facts.at[found])) return;
      if (share_results::may_share(g, facts.at, x, o)) found = x;
    };
    auto const origin = g.origin(o);
    for (auto x : facts.copies[origin]) look(x);
    if (index(origin) < g.op_count() && g.origin(origin) == origin) look(origin);
    return found;
  }
};

namespace detail {
template <class G>
class share_stream {
 public:
  explicit share_stream(candidate<G> const& c) : candidate_(&c), at_(positions(c.order)) {}
  std::optional<share_results> next() {
    auto const& c = *candidate_;
    while (position_ < c.order.size()) {
      auto const o = c.order[position_++];
      if (!graph_traits<G>::is_recomputable(c.graph, o)) continue;
      auto const key = c.graph.digest(o).low;
      auto const first = first_.find(key);
      if (first == number_map::none) first_.add(key, static_cast<std::uint32_t>(index(o)));
      else if (share_results::may_share(c.graph, at_, op_id{first}, o)) return share_results{op_id{first}, o};
    }
    return std::nullopt;
  }

 private:
  candidate<G> const* candidate_;
  table<op_id, std::uint32_t> at_;
  number_map first_;  // the first op of each digest so far
  std::size_t position_ = 0;
};
template <class G>
class keep_stream {
 public:
  explicit keep_stream(candidate<G> const& c) : candidate_(&c) {}
  std::optional<keep_in_memory> next() {
    auto const& c = *candidate_;
    if (all_ != nothing<op_id>) return keep_in_memory{std::exchange(all_, nothing<op_id>), true};
    while (position_ < c.order.size()) {
      auto const o = c.order[position_++];
      if (!c.graph.template as<op::load>(o)) continue;
      auto const store = store_of(c.graph, c.graph.inputs(o)[0]);
      if (store == nothing<op_id>) continue;
      if (auto const all = detail::loads_of(c.graph, store); all.size() > 1 && all[0] == o) all_ = o;
      return keep_in_memory{o, false};
    }
    return std::nullopt;
  }

 private:
  candidate<G> const* candidate_;
  std::size_t position_ = 0;
  op_id all_ = nothing<op_id>;
};
}  // namespace detail

/// The mutator: `share_results` for every op that an earlier one computes too, in the order of the schedule.
struct de_rematerialize {
  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    return detail::share_stream<G>(c);
  }
};

/// The mutator: `keep_in_memory` for every load, and for all loads of one value together, in the order of the schedule.
struct de_swap {
  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    return detail::keep_stream<G>(c);
  }
};

}  // namespace neap::inline v0
