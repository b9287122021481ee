// undo_stretch: what recomputation and swaps have done in a stretch of the order, taken back. Where memory is left that
// makes a plan quicker again. mutate/undo_moves.hpp takes single ones back.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/stored.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/replay_facts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

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
  /// The same of what a load has brought back: its readers read what was stored.
  bool add_loaded(op_id load) {
    auto const store = store_of(g_, g_.inputs(load)[0]);
    if (store == nothing<op_id>) return false;
    auto const loaded = g_.output(load), v = g_.inputs(store)[0];
    return !g_.is_kept(loaded) && g_.layout(loaded) == g_.layout(v) && add(loaded, v);
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

/// Whether two ops of a graph compute the same, and readers of one may read the other. `at` are the ops' positions.
inline bool may_share(op_graph const& g, table<op_id, std::uint32_t> const& at, op_id a, op_id b) {
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
        !may_stand_in(g, at, span_of(&r, 1), s))
      return false;
    for (auto kept : g.kept())
      if (g.storage(kept) == r) return false;  // outputs would come to share a storage
  }
  return true;
}
}  // namespace detail

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
        if (redirected.add_loaded(o)) gone.push_back(o);
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
      if (detail::may_share(g, facts.at, x, o)) found = x;
    };
    auto const origin = g.origin(o);
    for (auto x : facts.copies[origin]) look(x);
    if (index(origin) < g.op_count() && g.origin(origin) == origin) look(origin);
    return found;
  }
};

}}  // namespace neap::v0
