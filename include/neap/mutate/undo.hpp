// undo_stretch: what recomputation and swaps have done in a stretch of the order, taken back. Where memory is left that
// makes a plan quicker again. mutate/undo_moves.hpp takes single ones back.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/stored.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/replay_facts.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Values that an edit redirects readers of. Several storages that one stands in for are judged together.
class stand_ins {
 public:
  stand_ins(op_graph const& g, table<op_id, std::uint32_t> const& at) : g_(g), at_(at) {}

  /// Whether readers of a value may read another one besides; if so, they do from now on.
  bool add(value_id of, value_id other);
  void add_checked(value_id of, value_id other) { redirected_.push_back({of, other}); }
  /// The same of all results of an op that are read; none of them, or all.
  bool add_results(op_id of, op_id other);
  /// The same of what a load has brought back: its readers read what was stored.
  bool add_loaded(op_id load);
  /// The edit: readers of all that was added read what stands in, and of these ops what is dead then goes.
  void edit(graph_edit& out, std::vector<op_id> maybe_dead) const;

 private:
  struct redirection {
    value_id of, other;
  };
  value_id stand_in(value_id v) const;
  op_graph const& g_;
  table<op_id, std::uint32_t> const& at_;
  plain_vector<redirection> redirected_;
};

/// Whether two ops of a graph compute the same, and readers of one may read the other. `at` are the ops' positions.
bool may_share(op_graph const& g, table<op_id, std::uint32_t> const& at, op_id a, op_id b);
}  // namespace detail

/// Nothing is computed again, and nothing loaded, at the positions [begin, end): of what is there, whatever was in memory
/// once stays there. One step of a large-neighbourhood search (Shaw 1998): a stretch is undone, to be done better.
struct undo_stretch {
  std::uint32_t begin = 0, end = 0;

  friend bool operator==(undo_stretch const&, undo_stretch const&) = default;

  static constexpr bool judged_when_built = true;
  /// False if there is nothing to undo. Shares copies of one op of the original with each other, and nothing else that
  /// happens to compute the same. O(ops), and the edit.
  bool edit(candidate const& c, replay_facts const& facts, graph_edit& out) const {
    auto const& g = c.graph;
    detail::stand_ins redirected(g, facts.at);
    std::vector<op_id> gone;
    for (auto p = begin; p < end && p < c.order.size(); ++p) {
      auto const o = c.order[p];
      if (g.as<op::load>(o)) {
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
  std::string describe(candidate const&) const {
    return detail::text_of({"undo what is done again at positions ", begin, " to ", end});
  }

 private:
  /// The op that ran first of those that o may share results with.
  static op_id first_of(op_graph const& g, replay_facts const& facts, op_id o) {
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

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/undo.ipp>
#endif
