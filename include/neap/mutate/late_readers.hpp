// Giving late readers another value to read: the part that rematerialising and swapping share. From a position on, the
// readers of a storage read copies; views between the storage's first value and a reader are made again, since they cost
// nothing; values that are not in memory any more are computed again, back to values that are. A copy of an op that
// overwrites its input overwrites a copy of that input, which is made for it and is gone then.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/mutate/gap.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/replay_facts.hpp>
#include <neap/plan/graph_edit.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Plans which ops to copy so that values of a graph can be read again at position `resume`; then does it.
class late_readers {
 public:
  late_readers(op_graph const& g, replay_facts const& facts, simulation const& result, std::size_t max_ops,
               double keep_ratio)
      : g_(g),
        facts_(facts),
        result_(result),
        max_ops_(max_ops),
        keep_ratio_(keep_ratio) {}

  /// What is planned from now on is for the readers of this storage from there on.
  late_readers& begin(storage_id away, std::uint32_t resume) {
    away_ = away, resume_ = resume;
    small_ = static_cast<bytes_t>(keep_ratio_ * static_cast<double>(g_.bytes(away)));
    given_ = nothing<value_id>;
    readers_.clear(), copied_.clear(), known_.clear();
    return *this;
  }

  /// `v` can be read at `resume` as it is: a value the caller provides (a load's result, before it is made).
  void provide(value_id v) {
    given_ = v;
    know(v, v);
  }

  /// Plans all that the readers of the storage from `resume` on need. False if it cannot be had, or costs more ops.
  bool plan() {
    for (auto v : facts_.values[away_])
      for (auto const& u : g_.uses(v))
        if (facts_.at[u.op] >= resume_) {
          if (!available(v, 0)) return false;
          readers_.push_back(u.op);
        }
    return !readers_.empty();
  }
  /// Ops that will be copied, in the order in which the copies run.
  std::span<op_id const> copied() const { return span_of(copied_); }
  /// Their seconds in the present order.
  double seconds() const {
    double t = 0;
    for (auto o : copied_) t += result_.end[facts_.at[o]] - result_.start[facts_.at[o]];
    return t;
  }

  /// Adds to an edit that the planned ops run again, and that the readers read their results. `provided`: in the edited
  /// graph, what provide() named.
  void edit(graph_edit& out, value_id provided = nothing<value_id>) const {
    number_map made;  // values of g_ to those of the edited graph that stand for them
    if (provided != nothing<value_id>) made.add(index(given_), static_cast<std::uint32_t>(index(provided)));
    auto const mapped = [&](value_id v) {
      auto n = made.find(index(v));
      if (n == number_map::none) n = known_.find(index(v));
      return n == number_map::none || n == lost ? v : value_id{n};
    };
    for (auto o : copied_) {
      auto next = static_cast<std::uint32_t>(index(out.run_again(g_, o, resume_)));
      for (auto v : g_.inputs(o)) out.reads.push_back(mapped(v));
      for (auto v : g_.outputs(o)) made.set(index(v), next++);
    }
    for (auto reader = readers_.begin(); reader != readers_.end(); ++reader)
      if (std::find(readers_.begin(), reader, *reader) == reader)
        for (auto v : g_.inputs(*reader))
          if (g_.storage(v) == away_) out.read_instead(*reader, v, mapped(v));
  }

 private:
  static constexpr std::uint32_t lost = number_map::none - 1;  // in place of a value: a copy has overwritten it
  void know(value_id v, value_id as) { known_.set(index(v), static_cast<std::uint32_t>(index(as))); }
  bool is_known(value_id v) const {
    auto const n = known_.find(index(v));
    return n != number_map::none && n != lost;
  }

  /// Whether the next version of v's storage has been written by `resume`.
  bool is_overwritten(value_id v) const {
    auto const& r = g_.record(v);
    return std::any_of(facts_.updates.begin(), facts_.updates.end(), [&](replay_facts::update const& u) {
      return u.storage == r.storage && u.overwrites == r.version && u.position < resume_;
    });
  }
  /// Whether v's bytes are in memory just before `resume` and may still be read there.
  bool in_memory(value_id v) const {
    auto const s = g_.storage(v);
    if (s == away_) return false;
    auto const p = g_.producer(v);
    if (p != nothing<op_id> && facts_.at[p] >= resume_) return false;
    if (is_overwritten(v)) return false;
    if (g_.is_resident(s)) return true;
    if (result_.live[s].last >= resume_) return true;
    return g_.bytes(s) <= small_;  // cheap to keep for longer
  }

  bool available(value_id v, int depth) {
    if (is_known(v)) return true;
    if (in_memory(v)) {
      know(v, v);
      return true;
    }
    auto const o = g_.producer(v);
    if (o == nothing<op_id> || depth > 256 || copied_.size() >= max_ops_) return false;
    std::size_t const j = static_cast<std::size_t>(index(v) - index(g_.outputs(o).front()));
    if (auto const twin = living_twin(o, j); twin != nothing<value_id>) {
      know(v, twin);
      return true;
    }
    if (!flow::is_recomputable(g_, o)) return false;
    for (auto out : g_.outputs(o))  // what is still there must not be overwritten before its time
      if (auto const base = g_.overwrites(out); base != nothing<value_id> && !is_overwritten(base)) return false;
    for (auto in : g_.inputs(o))
      if (!available(in, depth + 1)) return false;
    if (copied_.size() >= max_ops_) return false;
    copied_.push_back(o);
    for (auto out : g_.outputs(o)) know(out, out);  // replaced by the copy's outputs in edit()
    for (auto out : g_.outputs(o))
      if (auto const base = g_.overwrites(out); base != nothing<value_id>)
        for (auto gone : facts_.values[g_.storage(base)]) known_.set(index(gone), lost);
    return true;
  }

  /// The same output of another copy of o's origin that is in memory at `resume`.
  value_id living_twin(op_id o, std::size_t j) {
    if (g_.is_overwritten(g_.storage(g_.outputs(o)[j])))
      return nothing<value_id>;  // a copy may overwrite it, not a twin
    for (auto x : facts_.copies[g_.origin(o)]) {
      if (x == o || g_.record(x).part != g_.record(o).part || &g_.facets(x) != &g_.facets(o)) continue;
      if (j >= g_.outputs(x).size() || facts_.at[x] >= resume_) continue;
      auto const v = g_.outputs(x)[j];
      if (g_.storage(v) != away_ && result_.live[g_.storage(v)].last >= resume_ && !is_overwritten(v)) return v;
    }
    return nothing<value_id>;
  }

  op_graph const& g_;
  replay_facts const& facts_;
  simulation const& result_;
  storage_id away_ = nothing<storage_id>;
  std::uint32_t resume_ = 0;
  value_id given_ = nothing<value_id>;  // what provide() named
  std::size_t max_ops_;
  double keep_ratio_;
  bytes_t small_ = 0;  // what is no larger is kept for longer instead of computed again
  std::vector<op_id> readers_, copied_;
  number_map known_;  // values of g_ to values of g_ that can be read at `resume` in their place
};

}}}  // namespace neap::v0::detail
