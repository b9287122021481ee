// Giving late readers another value to read: the part that rematerialising and swapping share. From a position on, the
// readers of a storage read copies; views between the storage's first value and a reader are made again, since they cost
// nothing; values that are not in memory any more are computed again, back to values that are.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>
#include <neap/mutate/gap.hpp>
#include <neap/mutate/mutator.hpp>

#include <span>
#include <vector>

namespace neap::inline v0::detail {

/// What is asked of a candidate again and again: who stands where, which values a storage has, what was copied already,
/// when storages are overwritten. O(ops + values).
struct replay_facts {
  struct update {
    storage_id storage;
    std::uint16_t overwrites;  // the version
    std::uint32_t position;
  };
  table<op_id, std::uint32_t> at;
  csr<storage_id, value_id> values;
  plain_vector<update> updates;
  number_map families;                     // origins of ops that are not their own, to rows of `copies`
  std::vector<std::vector<op_id>> copies;  // such ops by origin

  NEAP_ONCE replay_facts(op_graph const& g, schedule const& order) : at(positions(order)) {
    values.build(g.storage_count(), [&](auto&& pair) {
      for (auto v : g.values()) pair(g.storage(v), v);
    });
    if (g.has_updates())
      for (auto v : g.values())
        if (auto const& r = g.record(v); r.alias == alias_kind::update)
          updates.push_back({r.storage, static_cast<std::uint16_t>(r.version - 1), at[r.producer]});
    for (auto o : g.ops())
      if (auto const origin = g.origin(o); origin != o) {
        if (families.add(index(origin), static_cast<std::uint32_t>(copies.size()))) copies.emplace_back();
        copies[families.find(index(origin))].push_back(o);
      }
  }
};

/// Plans which ops to copy so that values of a graph can be read again at position `resume`; then does it.
template <class G>
class late_readers {
 public:
  late_readers(G const& g, replay_facts const& facts, simulation const& result, storage_id away, std::uint32_t resume,
               std::size_t most_ops, double keep_ratio)
      : g_(g),
        facts_(facts),
        result_(result),
        away_(away),
        resume_(resume),
        most_ops_(most_ops),
        small_(static_cast<bytes_t>(keep_ratio * static_cast<double>(g.bytes(away)))) {}

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

  /// Copies the planned ops and lets the readers read the copies. `provided` is, in the edited graph, what provide()
  /// named, if it was called. Appends the copies, in order.
  void apply(graph_editor& edit, std::vector<op_id>& copies, value_id provided = nothing<value_id>) const {
    number_map made;  // values of g_ to those of the edited graph that stand for them
    if (provided != nothing<value_id>) made.add(index(given_), static_cast<std::uint32_t>(index(provided)));
    auto const mapped = [&](value_id v) {
      auto n = made.find(index(v));
      if (n == number_map::none) n = known_.find(index(v));
      return n == number_map::none ? v : value_id{n};
    };
    for (auto o : copied_) {
      op_id const copy = edit.clone(o);
      copies.push_back(copy);
      for (std::size_t i = 0; i < g_.inputs(o).size(); ++i) edit.set_input(copy, i, mapped(g_.inputs(o)[i]));
      for (std::size_t j = 0; j < g_.outputs(o).size(); ++j)
        made.set(index(g_.outputs(o)[j]), static_cast<std::uint32_t>(index(edit.output(copy, static_cast<int>(j)))));
    }
    for (auto o : readers_)
      for (std::size_t i = 0; i < g_.inputs(o).size(); ++i)
        if (auto const v = g_.inputs(o)[i]; g_.storage(v) == away_) edit.set_input(o, i, mapped(v));
  }

 private:
  void know(value_id v, value_id as) { known_.set(index(v), static_cast<std::uint32_t>(index(as))); }

  /// Whether v's bytes are in memory just before `resume` and may still be read there.
  bool in_memory(value_id v) const {
    auto const s = g_.storage(v);
    if (s == away_) return false;
    auto const p = g_.producer(v);
    if (p != nothing<op_id> && facts_.at[p] >= resume_) return false;
    for (auto const& u : facts_.updates)  // the next version must not have been written
      if (u.storage == s && u.overwrites == g_.record(v).version && u.position < resume_) return false;
    if (g_.is_resident(s)) return true;
    if (result_.live[s].last >= resume_) return true;
    return g_.bytes(s) <= small_;  // cheap to keep for longer
  }

  bool available(value_id v, int depth) {
    if (known_.contains(index(v))) return true;
    if (in_memory(v)) {
      know(v, v);
      return true;
    }
    auto const o = g_.producer(v);
    if (o == nothing<op_id> || depth > 256 || copied_.size() >= most_ops_) return false;
    std::size_t const j = static_cast<std::size_t>(index(v) - index(g_.outputs(o).front()));
    if (auto const twin = living_twin(o, j); twin != nothing<value_id>) {
      know(v, twin);
      return true;
    }
    if (!graph_traits<G>::is_recomputable(g_, o)) return false;
    for (auto in : g_.inputs(o))
      if (!available(in, depth + 1)) return false;
    if (copied_.size() >= most_ops_) return false;
    copied_.push_back(o);
    for (auto out : g_.outputs(o)) know(out, out);  // replaced by the copy's outputs in apply()
    return true;
  }

  /// The same output of another copy of o's origin that is in memory at `resume`.
  value_id living_twin(op_id o, std::size_t j) {
    auto const family = facts_.families.find(index(g_.origin(o)));
    if (family == number_map::none) return nothing<value_id>;
    for (auto x : facts_.copies[family]) {
      if (x == o || g_.record(x).part != g_.record(o).part || &g_.facets(x) != &g_.facets(o)) continue;
      if (j >= g_.outputs(x).size() || facts_.at[x] >= resume_) continue;
      auto const v = g_.outputs(x)[j];
      if (g_.storage(v) != away_ && result_.live[g_.storage(v)].last >= resume_) return v;
    }
    return nothing<value_id>;
  }

  G const& g_;
  replay_facts const& facts_;
  simulation const& result_;
  storage_id away_;
  std::uint32_t resume_;
  value_id given_ = nothing<value_id>;  // what provide() named
  std::size_t most_ops_;
  bytes_t small_;
  std::vector<op_id> readers_, copied_;
  number_map known_;  // values of g_ to values of g_ that can be read at `resume` in their place
};

/// Finishes an edit whose order is `order` (ids of the editor): removes what nobody reads any more, renumbers the order.
template <class G>
edited<G> finish_edit(graph_editor&& edit, schedule order, std::span<op_id const> maybe_dead) {
  auto const& g = edit.graph();
  std::vector<std::uint32_t> readers(g.value_count());
  for (auto o : order)
    for (auto v : g.inputs(o)) ++readers[index(v)];
  for (auto v : g.kept()) ++readers[index(v)];
  std::vector<bool> dead(g.op_count());
  std::vector<op_id> stack(maybe_dead.begin(), maybe_dead.end());
  bool any = false;
  while (!stack.empty()) {
    op_id const o = stack.back();
    stack.pop_back();
    if (dead[index(o)]) continue;
    bool used = g.outputs(o).empty();
    for (auto v : g.outputs(o)) used |= readers[index(v)] > 0 || g.record(v).alias == alias_kind::update;
    if (used) continue;
    dead[index(o)] = any = true;
    edit.remove(o);
    for (auto v : g.inputs(o)) {
      --readers[index(v)];
      if (auto const p = g.producer(v); p != nothing<op_id>) stack.push_back(p);
    }
  }
  if (any) {
    std::vector<std::uint32_t> renumbered(g.op_count());
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < renumbered.size(); ++i) renumbered[i] = dead[i] ? no_id : n++;
    std::size_t kept = 0;
    for (auto o : order.order)
      if (!dead[index(o)]) order.order[kept++] = op_id{renumbered[index(o)]};
    order.order.resize(kept);
  }
  return {G(std::move(edit).finish()), std::move(order)};
}

}  // namespace neap::inline v0::detail
