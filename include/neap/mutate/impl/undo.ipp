// The bodies of <neap/mutate/undo.hpp>.
#pragma once

#include <neap/mutate/undo.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/movement.hpp>

#include <cstddef>
#include <span>

namespace neap { inline namespace v0 { namespace detail {

/// Whether readers of storages `of` may read another one of the same content, all of them, as far as writes in place go:
/// none writes either, but that an op may overwrite one of `of` after all readers of the others. `at` are the ops'
/// positions.
NEAP_FUNC bool may_stand_in(op_graph const& g, table<op_id, std::uint32_t> const& at, std::span<storage_id const> of,
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

NEAP_FUNC bool stand_ins::add(value_id of, value_id other) {
  plain_vector<storage_id> together;
  for (auto const& [before, by] : redirected_)
    if (g_.storage(by) == g_.storage(other)) together.push_back(g_.storage(before));
  together.push_back(g_.storage(of));
  if (!may_stand_in(g_, at_, span_of(together), g_.storage(other))) return false;
  add_checked(of, other);
  return true;
}

NEAP_FUNC bool stand_ins::add_results(op_id of, op_id other) {
  auto const before = redirected_.size();
  for (std::size_t j = 0; j < g_.outputs(of).size(); ++j)
    if (!g_.uses(g_.outputs(of)[j]).empty() && !add(g_.outputs(of)[j], g_.outputs(other)[j]))
      return redirected_.resize(before), false;
  return true;
}

NEAP_FUNC bool stand_ins::add_loaded(op_id load) {
  auto const store = store_of(g_, g_.inputs(load)[0]);
  if (store == nothing<op_id>) return false;
  auto const loaded = g_.output(load), v = g_.inputs(store)[0];
  return !g_.is_kept(loaded) && g_.layout(loaded) == g_.layout(v) && add(loaded, v);
}

NEAP_FUNC void stand_ins::edit(graph_edit& out, std::vector<op_id> maybe_dead) const {
  out.clear();
  for (auto const& r : redirected_)
    for (auto const& u : g_.uses(r.of)) out.rereads.push_back({u.op, r.of, stand_in(r.of)});
  out.sort_rereads();
  remove_dead(g_, out, std::move(maybe_dead));
}

NEAP_FUNC value_id stand_ins::stand_in(value_id v) const {
  for (auto const& r : redirected_)
    if (r.of == v) v = r.other;
  return v;
}

NEAP_FUNC bool may_share(op_graph const& g, table<op_id, std::uint32_t> const& at, op_id a, op_id b) {
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

}}}  // namespace neap::v0::detail
