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
#include <neap/mutate/gap.hpp>

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
  replay_builder(op_graph const& g, schedule const& order, plain_vector<bool> const& may_run_again)
      : g_(g),
        order_(order),
        may_run_again_(may_run_again),
        there_(g.value_count(), false),
        has_run_(g.op_count(), false),
        now_(g.value_count()) {
    if (g.has_updates()) written_.assign(g.storage_count(), 0);
    for (auto v : g.values()) {
      now_[v] = v;
      there_[index(v)] = g.producer(v) == nothing<op_id>;
    }
    values_.build(g.storage_count(), [&](auto&& pair) {
      for (auto v : g.values()) pair(g.storage(v), v);
    });
    out_.order.order.reserve(order.size() + order.size() / 2);
  }

  /// The op has run, and its results are there. False if that cannot be: an op would run again that must not, or would
  /// read what has been overwritten; nothing is built then.
  bool run(op_id wanted) {
    if (failed_) return false;
    open_.push_back(wanted);
    while (!open_.empty() && !failed_) {
      auto const o = open_.back();
      if (has_run_[index(o)] && is_there(o)) {
        open_.pop_back();
        continue;
      }
      auto const depth = open_.size();
      for (auto v : g_.inputs(o))
        if (!there_[index(v)]) {
          failed_ = failed_ || g_.producer(v) == nothing<op_id>;  // a source that was overwritten
          open_.push_back(g_.producer(v));
        }
      if (!has_run_[index(o)])
        for (auto before : g_.order_after(o))
          if (!has_run_[index(before)]) open_.push_back(before);
      if (open_.size() > depth) continue;
      if (has_run_[index(o)]) run_again(o);
      else run_first(o);
      open_.pop_back();
    }
    return !failed_;
  }
  /// The same, and with it the views of what it makes that have not run yet: at the end what they look at may be gone.
  bool run_with_views(op_id wanted) {
    if (!run(wanted)) return false;
    for (auto v : g_.outputs(wanted))
      for (auto const& u : g_.uses(v))
        if (flow::is_view(g_, u.op) && !has_run_[index(u.op)] && is_ready(u.op) && !run_with_views(u.op)) return false;
    return true;
  }
  /// Whether all have run that must run before an op, beyond those that make what it reads: one that overwrites waits for
  /// the readers.
  bool is_ready(op_id o) const {
    for (auto before : g_.order_after(o))
      if (!has_run_[index(before)]) return false;
    return true;
  }
  bool has_run(op_id o) const { return has_run_[index(o)]; }

  /// Who reads the storage from now on has it made again. For storages of droppable_storages().
  void forget(storage_id s) {
    for (auto v : values_[s]) there_[index(v)] = false;
  }

  /// What the storage holds is copied out; it is there until it is forgotten. Nothing where it is not there. For storages
  /// that can_leave().
  void store(storage_id s) {
    auto const whole = g_.record(s).first;
    if (failed_ || !there_[index(whole)]) return;
    away_.resize(g_.storage_count(), nothing<value_id>);
    away_[index(s)] = add_transfer(graph_edit::kind::store, whole, now_[whole]);
  }
  /// Who reads the storage from now on reads what was copied out.
  void load(storage_id s) {
    if (failed_ || !is_away(s)) return;
    auto const whole = g_.record(s).first;
    forget(s);
    now_[whole] = add_transfer(graph_edit::kind::load, whole, away_[index(s)]);
    there_[index(whole)] = true;
  }

  /// The order in which the graph's ops run first, and the edit of the graph in that order; nothing if that cannot be.
  std::optional<replayed> edit() && {
    for (auto o : order_)
      if (!has_run_[index(o)] && !run(o)) return std::nullopt;
    if (failed_) return std::nullopt;
    remove_dead(g_, out_.edit, std::move(maybe_dead_));
    return std::move(out_);
  }
  /// The edited graph and its order.
  template <class G>
  std::optional<edited<G>> finish() && {
    auto const what = std::move(*this).edit();
    if (!what) return std::nullopt;
    return build(static_cast<G const&>(g_), what->order, what->edit);
  }

 private:
  bool is_away(storage_id s) const { return index(s) < away_.size() && away_[index(s)] != nothing<value_id>; }
  op_id next_run() const { return id_at<op_id>(g_.op_count() + out_.edit.runs.size()); }
  std::uint32_t here() const { return static_cast<std::uint32_t>(out_.order.size()); }
  value_id add_transfer(graph_edit::kind what, value_id whole, value_id reads) {
    maybe_dead_.push_back(next_run());
    return out_.edit.transfer(g_, what, whole, reads, here());
  }
  bool is_there(op_id o) const {
    for (auto v : g_.outputs(o))
      if (!there_[index(v)]) return false;
    return true;
  }
  void run_first(op_id o) {
    for (auto v : g_.inputs(o))
      if (now_[v] != v) out_.edit.read_instead(o, v, now_[v]);
    has_run_[index(o)] = true;
    out_.order.order.push_back(o);
    for (auto v : g_.outputs(o)) {
      there_[index(v)] = true;
      if (g_.record(v).alias == alias_kind::update) written_[g_.storage(v)] = g_.record(v).version;
    }
    forget_overwritten(o);
  }
  /// What an op overwrites is there no more: who reads it later has it made again.
  void forget_overwritten(op_id o) {
    if (!g_.overwrites_any(o)) return;
    for (auto v : g_.outputs(o))
      if (auto const base = g_.overwrites(v); base != nothing<value_id>) forget(g_.storage(base));
  }
  void run_again(op_id o) {
    failed_ = !may_run_again_[index(o)];
    if (!written_.empty())
      for (auto v : g_.inputs(o)) failed_ = failed_ || g_.record(v).version < written_[g_.storage(v)];
    if (failed_) return;
    maybe_dead_.push_back(o), maybe_dead_.push_back(next_run());
    auto made = out_.edit.run_again(g_, o, here());
    for (auto v : g_.inputs(o)) out_.edit.reads.push_back(now_[v]);
    for (auto v : g_.outputs(o)) {
      auto const copy = std::exchange(made, id_at<value_id>(index(made) + 1));
      if (there_[index(v)]) continue;  // who reads this one goes on with what is there
      there_[index(v)] = true;
      now_[v] = copy;
    }
    forget_overwritten(o);
  }

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
inline plain_vector<bool> droppable_storages(op_graph const& g, plain_vector<bool> const& may_run_again) {
  auto const movable = detail::movable_storages(g);
  plain_vector<bool> may(g.storage_count(), false);
  for (auto s : g.storages()) {
    auto const maker = g.producer(g.record(s).first);
    may[index(s)] = movable[index(s)] && maker != nothing<op_id> && may_run_again[index(maker)];
  }
  return may;
}

}}  // namespace neap::v0
