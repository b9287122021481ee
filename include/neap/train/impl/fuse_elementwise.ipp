// The bodies of <neap/train/fuse_elementwise.hpp>.
#pragma once

#include <neap/train/fuse_elementwise.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::detail {

NEAP_FUNC elementwise_fuser::elementwise_fuser(op_graph const& g, operator_facets const& fused)
    : g_(g),
      fused_(fused),
      group_(g.op_count(), nothing<op_id>),
      members_(g.op_count()),
      places_(g, "fuse_elementwise"),
      order_(places_.order),
      place_(places_.place),
      next_writer_(places_.next_writer),
      last_reader_(g.storage_count(), 0) {
  for (auto o : order_)
    for (auto v : g.inputs(o)) last_reader_[g.storage(v)] = std::max(last_reader_[g.storage(v)], place_[o]);
  for (auto v : g.kept()) last_reader_[g.storage(v)] = g.op_count();
  for (auto v : g.sources()) last_reader_[g.storage(v)] = g.op_count();
}

NEAP_FUNC fused_graph<op_graph> elementwise_fuser::write() {
  fused_graph<op_graph> out;
  program_copy copy(g_);
  plain_vector<value_id> in;
  for (auto o : order_) {
    if (group_[o] != nothing<op_id> && group_[o] != o) continue;
    auto const steps = members_[index(o)].size();
    in.clear();
    if (steps < 2) {
      for (auto v : g_.inputs(o)) in.push_back(copy.value[v]);
      copy.put(o, g_.view(o), span_of(in));
      continue;
    }
    for (auto v : inputs_of(o)) in.push_back(copy.value[v]);
    auto const made = program_of(o);
    copy.put(o, {&fused_, &*made}, span_of(in));
    out.groups.emplace_back(members_[index(o)].begin(), members_[index(o)].end());
  }
  out.program = copy.finish();
  out.value = std::move(copy.value);
  return out;
}

NEAP_FUNC void elementwise_fuser::grow() {
  for (auto o : order_) {
    if (!can_be_step(o)) continue;
    group_[o] = o;
    members_[index(o)].push_back(o);
    while (join_one(o)) {}
  }
}

NEAP_FUNC bool elementwise_fuser::take(std::span<std::vector<op_id> const> groups) {
  bool fits = true;
  for (auto const& group : groups) {
    auto const sink = group.back();
    fits = fits && index(sink) < g_.op_count();
    for (std::size_t i = 0; fits && i < group.size(); ++i) {
      auto const o = group[i];
      fits = can_be_step(o) && g_.type(g_.output(o)).dims == g_.type(g_.output(sink)).dims;
      group_[o] = sink;
      members_[index(sink)].push_back(o);
    }
    fits = fits && program_of(sink).has_value();
  }
  if (fits) return true;
  group_.assign(g_.op_count(), nothing<op_id>);
  members_.assign(g_.op_count(), {});
  return false;
}

NEAP_FUNC bool elementwise_fuser::join_one(op_id o) {
  for (auto v : inputs_of(o)) {
    auto const p = g_.producer(v);
    if (p == nothing<op_id> || group_[p] != p || !may_join(p, o)) continue;
    auto const before = members_[index(o)], joining = members_[index(p)];
    plain_vector<op_id> both(before.size() + joining.size());
    std::merge(before.begin(), before.end(), joining.begin(), joining.end(), both.begin(),
               [&](op_id a, op_id b) { return place_[a] < place_[b]; });
    for (auto m : joining) group_[m] = o;
    members_[index(o)] = std::move(both);
    if (program_of(o)) return true;
    for (auto m : joining) group_[m] = p;
    members_[index(o)] = before;
  }
  return false;
}

}  // namespace neap::inline v0::detail
