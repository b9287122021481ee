// Many storages at once computed again: each of a set is freed after its readers up to a position, its turn, and made
// again for those behind it, when the first of them needs it, from what is in memory or is made again itself. Each op runs
// at most twice: what was made again stays until its last reader.
//
//   order   a b c d | D C B A        kept: a        dropped: b, c      turn: |
//   new     a b c d | D b' c' C B A
//
// An op that overwrites its input runs again on a copy of that input of its own, which is gone afterwards: an op that reads
// the input later has it made once more.
//
// As recomputation by segments (Chen et al. 2016), for any graph: what is kept decides what the segments are.
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/mutate/late_readers.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Drops storages. `turn_of` has for each storage of the graph the position behind which it is to be gone, or no_id; only
/// storages made by ops that can run again may have one.
class again_builder {
 public:
  again_builder(op_graph const& g, schedule const& order, plain_vector<std::uint32_t> const& turn_of)
      : g_(g),
        order_(order),
        turn_of_(turn_of),
        copy_(g.op_count(), nothing<value_id>) {
    if (!g.has_updates()) return;
    written_.assign(g.storage_count(), 0);
    ended_.assign(g.storage_count(), false);
    makers_.build(g.storage_count(), [&](auto&& pair) {
      for (auto v : g.values())
        if (g.is_overwritten(g.storage(v)) && g.producer(v) != nothing<op_id>) pair(g.storage(v), g.producer(v));
    });
  }

  /// Writes the edit; false if an op would run again that cannot, or after one of its inputs was overwritten, or if none
  /// would.
  bool edit(graph_edit& out) && {
    out.clear();
    std::vector<op_id> maybe_dead;
    for (position_ = 0; position_ < order_.size(); ++position_) {
      auto const o = order_[position_];
      for (auto v : g_.inputs(o)) {
        if (!is_gone(v)) continue;
        if (!make_again(g_.producer(v), out, maybe_dead)) return false;
        out.read_instead(o, v, again(v));
      }
      for (auto v : g_.outputs(o))
        if (g_.record(v).alias == alias_kind::update) written_[g_.storage(v)] = g_.record(v).version;
      end_overwritten(o);
    }
    if (out.runs.empty()) return false;
    remove_dead(g_, out, std::move(maybe_dead));
    return true;
  }

 private:
  /// Whether v was dropped before the position, or overwritten.
  bool is_gone(value_id v) const {
    auto const s = index(g_.storage(v));
    return (turn_of_[s] < position_ || (!ended_.empty() && ended_[s])) && g_.producer(v) != nothing<op_id>;
  }
  /// What an op overwrites, of the original or of a copy, is there no more.
  void end_overwritten(op_id o) {
    if (!g_.overwrites_any(o)) return;
    for (auto v : g_.outputs(o)) {
      auto const base = g_.overwrites(v);
      if (base == nothing<value_id>) continue;
      ended_[index(g_.storage(base))] = true;
      for (auto maker : makers_[g_.storage(base)]) copy_[maker] = nothing<value_id>;
    }
  }
  value_id again(value_id v) const {
    auto const o = g_.producer(v);
    return id_at<value_id>(index(copy_[o]) + index(v) - index(g_.outputs(o).front()));
  }
  /// Whether an op reads a version of a storage that is not there any more.
  bool is_stale(value_id v) const {
    if (written_.empty() || is_gone(v)) return false;
    return g_.record(v).version < written_[g_.storage(v)] || ended_[index(g_.storage(v))];
  }

  /// Copies an op, and before it those whose results it reads and that are gone. Chains may be as long as a model.
  bool make_again(op_id wanted, graph_edit& out, std::vector<op_id>& maybe_dead) {
    open_.push_back(wanted);
    while (!open_.empty()) {
      auto const o = open_.back();
      if (copy_[o] != nothing<value_id>) {
        open_.resize(open_.size() - 1);
        continue;
      }
      auto const depth = open_.size();
      for (auto v : g_.inputs(o))
        if (is_gone(v) && copy_[g_.producer(v)] == nothing<value_id>) open_.push_back(g_.producer(v));
      if (open_.size() > depth) continue;
      if (!flow::is_recomputable(g_, o)) return false;
      for (auto v : g_.inputs(o))
        if (is_stale(v)) return false;
      copy_[o] = out.run_again(g_, o, position_);
      for (auto v : g_.inputs(o)) out.reads.push_back(is_gone(v) ? again(v) : v);
      maybe_dead.push_back(o);
      end_overwritten(o);
      open_.resize(open_.size() - 1);
    }
    return true;
  }

  op_graph const& g_;
  schedule const& order_;
  plain_vector<std::uint32_t> const& turn_of_;
  std::uint32_t position_ = 0;
  table<op_id, value_id> copy_;               // the first result of what runs again; none so far
  table<storage_id, std::uint16_t> written_;  // the version that a storage has so far; empty if nothing is updated
  plain_vector<bool> ended_;                  // by storage: overwritten so far; empty if nothing is
  csr<storage_id, op_id> makers_;             // of values in storages that are overwritten
  plain_vector<op_id> open_;
};

}}}  // namespace neap::v0::detail
