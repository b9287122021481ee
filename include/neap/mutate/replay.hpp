// A graph rebuilt from commands: run this op, forget that storage, store it, load it. What an op reads runs first if it has
// not yet, and again if its results were forgotten since; an op that reads later reads the newest copy. So the order is one
// in which the graph can run, whatever the commands; poor commands only cost time.
//
//   commands   run a, run b, forget a, run c, run D        (c reads b, D reads c and a)
//   order      a b c a' D
//
// Solvers of recomputation give their answers in this form (blocks/chain_solver.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/mutate/build_edit.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// An edit of a graph in an order of its own.
struct replayed {
  schedule order;
  graph_edit edit;
};

class replay_builder {
 public:
  /// `order` is one in which the graph can run: what no command ran runs at the end, in this order.
  /// `may_run_again` has a flag for each op.
  replay_builder(op_graph const& g, schedule const& order, plain_vector<bool> const& may_run_again);

  /// The op has run, and its results are there. False if that cannot be: an op would run again that must not, or would
  /// read what has been overwritten; nothing is built then.
  bool run(op_id wanted);
  /// The same, and with it the views of what it makes that have not run yet: at the end what they look at may be gone.
  bool run_with_views(op_id wanted);
  /// Whether all have run that must run before an op, beyond those that make what it reads: one that overwrites waits for
  /// the readers.
  bool is_ready(op_id o) const;
  bool has_run(op_id o) const { return has_run_[index(o)]; }

  /// Who reads the storage from now on has it made again. For storages of droppable_storages().
  void forget(storage_id s) {
    for (auto v : values_[s]) there_[index(v)] = false;
  }

  /// What the storage holds is copied out; it is there until it is forgotten. Nothing where it is not there. For storages
  /// that can_leave().
  void store(storage_id s);
  /// Who reads the storage from now on reads what was copied out.
  void load(storage_id s);

  /// The order in which the graph's ops run first, and the edit of the graph in that order; nothing if that cannot be.
  std::optional<replayed> edit() &&;
  /// The edited graph and its order.
  std::optional<edited> finish() && {
    auto const what = std::move(*this).edit();
    if (!what) return std::nullopt;
    return build(static_cast<op_graph const&>(g_), what->order, what->edit);
  }

 private:
  bool is_away(storage_id s) const { return index(s) < away_.size() && away_[index(s)] != nothing<value_id>; }
  op_id next_run() const { return id_at<op_id>(g_.op_count() + out_.edit.runs.size()); }
  std::uint32_t here() const { return static_cast<std::uint32_t>(out_.order.size()); }
  value_id add_transfer(graph_edit::kind what, value_id whole, value_id reads) {
    maybe_dead_.push_back(next_run());
    return out_.edit.transfer(g_, what, whole, reads, here());
  }
  bool is_there(op_id o) const;
  void run_first(op_id o);
  /// What an op overwrites is there no more: who reads it later has it made again.
  void forget_overwritten(op_id o);
  void run_again(op_id o);

  op_graph const& g_;
  schedule const& order_;
  plain_vector<bool> const& may_run_again_;
  plain_vector<bool> there_;                  // by value: can be read
  plain_vector<bool> has_run_;                // by op
  table<value_id, value_id> now_;             // the newest copy
  table<storage_id, std::uint16_t> written_;  // the version that a storage has so far; empty if nothing is updated
  csr<storage_id, value_id> values_;
  std::vector<value_id> away_;  // by storage, what is outside; empty where nothing is
  replayed out_;
  std::vector<op_id> maybe_dead_;
  plain_vector<op_id> open_;
  bool failed_ = false;
};

/// Storages that a replay may forget: an op makes them that may run again, no op overwrites them, they are not kept.
plain_vector<bool> droppable_storages(op_graph const& g, plain_vector<bool> const& may_run_again);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/replay.ipp>
#endif
