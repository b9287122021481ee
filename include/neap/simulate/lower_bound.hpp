// A lower bound on the peak that holds for every order of a graph's ops, however often they are computed again, stored
// and loaded: an op's inputs, outputs and workspace are there at once, and what is kept is there at the end, both beside
// what is resident. Rewriting ops or moving residents away gets below it; so does running ops in parts, for which there is
// a weaker bound.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <concepts>
#include <numeric>
#include <vector>

namespace neap { inline namespace v0 {

struct peak_bound {
  /// An op that needs `bytes` while it runs, all residents included.
  struct forcing_op {
    op_id op;
    bytes_t bytes = 0;
  };
  bytes_t bytes = 0;      // no plan's peak is smaller
  bool at_end = false;    // what is kept forces it, not one op
  bytes_t end_bytes = 0;  // what is kept and resident: no plan of rewritten ops has a smaller peak either
  std::vector<forcing_op>
      forcing;  // ops that need as many bytes, or those that make what is kept, the largest first; each once
};

namespace detail {

/// How many bytes a buffer may have in which an op finds a value: those of its storage, or, where the value or one that
/// it is a view of was stored and loaded without the rest, those of that tensor alone. Calls f with each.
template <class G, class F>
void each_size(G const& g, flow_facts const& facts, value_id v, F&& f) {
  f(facts.bytes(flow::storage(g, v)));
  if constexpr (std::derived_from<G, op_graph>) {
    for (;;) {
      f(align_up(g.type(v).bytes(), facts.options().alignment));
      auto const base = g.base(v);
      if (base == nothing<value_id>) return;
      v = base;
    }
  }
}
/// The fewest of them.
template <class G>
bytes_t least_bytes(G const& g, flow_facts const& facts, value_id v) {
  bytes_t least = INT64_MAX;
  each_size(g, facts, v, [&](bytes_t n) { least = std::min(least, n); });
  return least;
}

/// Which input an output is written in the place of; -1: none.
template <class G>
int overwritten_input(G const& g, value_id out) {
  if constexpr (std::derived_from<G, op_graph>) {
    auto const& r = g.record(out);
    return r.alias == alias_kind::fresh ? r.of : -1;
  } else {
    return -1;
  }
}

/// Whether any plan could put output j in the place of input i: of it, or of a copy of it.
template <class G>
bool might_take_over(G const& g, op_id o, std::size_t i, std::size_t j) {
  if constexpr (std::same_as<G, op_graph>) {
    auto const* x = g.template as<op::external>(o);
    return x ? x->may_take_over(i, j) : flow::takes_over(g, o);
  } else {
    return flow::may_take_over(g, o, i, j);
  }
}

/// Bytes of storages that are in memory at once.
class storage_sum {
 public:
  struct part {
    storage_id storage = nothing<storage_id>;
    bytes_t bytes = 0;
    bool may_go = false;  // an output may be put into its place
  };
  void add(storage_id s, bytes_t n) {
    for (auto& p : parts_)
      if (p.storage == s) return void(p.bytes = std::max(p.bytes, n));
    parts_.push_back({s, n});
  }
  bytes_t bytes() const {
    bytes_t n = 0;
    for (auto const& p : parts_) n += p.bytes;
    return n;
  }
  plain_vector<part>& parts() { return parts_; }

 private:
  plain_vector<part> parts_;
};

/// The least bytes while an op runs, in any plan that does not cut it. `sum` is scratch.
template <class G>
bytes_t least_bytes_at(G const& g, flow_facts const& facts, op_id o, storage_sum& sum) {
  auto& parts = sum.parts();
  parts.clear();
  for (value_id v : flow::inputs(g, o))
    if (auto const s = flow::storage(g, v); !facts.is_resident(s)) sum.add(s, least_bytes(g, facts, v));
  auto const inputs = parts.size();
  bytes_t saved = 0;  // an output in the place of an input's buffer: what was counted for that input is not needed
  std::size_t j = 0;
  for (value_id out : flow::outputs(g, o)) {
    auto const to = flow::storage(g, out);
    if (facts.maker(to) == o) {
      sum.add(to, facts.bytes(to));
      bytes_t most = 0;
      std::size_t i = 0;
      auto const overwritten = overwritten_input(g, out);
      if (facts.options().takeover || overwritten >= 0)
        for (value_id in : flow::inputs(g, o)) {
          bool fits = false;
          each_size(g, facts, in, [&](bytes_t n) { fits = fits || fits_in_place(n, facts.bytes(to)); });
          bool const may = overwritten >= 0 ? static_cast<std::size_t>(overwritten) == i : might_take_over(g, o, i, j);
          if (fits && may)
            for (std::size_t k = 0; k < inputs; ++k)
              if (parts[k].storage == flow::storage(g, in)) {
                most = std::max(most, parts[k].bytes);
                parts[k].may_go = true;
              }
          ++i;
        }
      saved += most;
    }
    ++j;
  }
  bytes_t all_that_may_go = 0;
  for (auto const& p : parts) all_that_may_go += p.may_go ? p.bytes : 0;
  return facts.resident_bytes() + sum.bytes() + facts.workspace(o) - std::min(saved, all_that_may_go);
}

}  // namespace detail

/// The bound and what forces it; with `in_parts`, of plans that also run ops in parts, where only what cannot be cut, and
/// the end, tell anything. O(ops + edges).
template <dataflow_graph G>
peak_bound peak_lower_bound(G const& g, flow_facts const& facts, bool in_parts = false) {
  peak_bound b;
  using part = detail::storage_sum::part;
  plain_vector<part> kept(facts.storage_count());  // whole storages: what is kept never leaves
  plain_vector<bytes_t> least;                     // where a rule may make it otherwise
  least.assign(facts.storage_count(), 0);
  for (auto v : flow::kept(g))
    if (auto const s = flow::storage(g, v); facts.is_kept(s)) {
      kept[index(s)] = {s, facts.bytes(s)};
      least[index(s)] = std::max(least[index(s)], detail::least_bytes(g, facts, v));
    }
  bytes_t end = facts.resident_bytes();
  for (auto const& k : kept) end += k.bytes;

  detail::storage_sum sum;
  for (auto o : id_range<op_id>(facts.op_count())) {
    if constexpr (std::derived_from<G, op_graph>)
      if (in_parts && !g.links(o).empty()) continue;  // some axis of it can be cut
    bytes_t const here = detail::least_bytes_at(g, facts, o, sum);
    if (here < b.bytes) continue;
    if (here > b.bytes) b.forcing.clear();
    b.bytes = here;
    b.forcing.push_back({o, here});
  }
  b.end_bytes = std::accumulate(least.begin(), least.end(), facts.resident_bytes());
  if (end > b.bytes || b.forcing.empty()) {
    b.bytes = end;
    b.at_end = true;
    b.forcing.clear();
    detail::sort_list(kept, [](part const& x, part const& y) {
      return x.bytes != y.bytes ? x.bytes > y.bytes : index(x.storage) < index(y.storage);
    });
    plain_vector<bool> listed(facts.op_count(), false);
    for (auto const& k : kept) {
      auto const o = k.bytes > 0 ? facts.maker(k.storage) : nothing<op_id>;
      if (o == nothing<op_id> || listed[index(o)]) continue;
      listed[index(o)] = true;
      b.forcing.push_back({o, end});
    }
  }
  return b;
}

/// The same from a graph alone.
template <dataflow_graph G>
peak_bound peak_lower_bound(G const& g, memory_options options = {}, bool in_parts = false) {
  return peak_lower_bound(g, flow_facts(g, no_cost{}, options), in_parts);
}

}}  // namespace neap::v0
