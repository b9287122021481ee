// The bodies of <neap/train/fuse_elementwise.hpp>.
#pragma once

#include <neap/train/fuse_elementwise.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

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

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void elementwise_fuser::find(std::span<std::vector<op_id> const> like) {
  if (like.empty() || !take(like)) grow();
}

NEAP_FUNC bool elementwise_fuser::can_be_step(op_id o) const {
  if (!op::detail::step_at(g_.facets(o).standard_row) || !g_.may_replace(o)) return false;
  auto const v = g_.output(o);
  auto const& r = g_.record(v);
  if (r.alias != alias_kind::fresh || g_.overwrites(v) != nothing<value_id> || !g_.layout(v).is_dense() ||
      g_.layout(v).offset != 0 || g_.bytes(r.storage) != g_.type(v).bytes())
    return false;
  bool known = is_known(g_.type(v).element);
  for (auto x : g_.inputs(o)) known = known && is_known(g_.type(x).element);
  return known;
}

NEAP_FUNC bool elementwise_fuser::may_join(op_id p, op_id o) const {
  auto const v = g_.output(p);
  auto const s = g_.storage(v);
  if (g_.is_kept(v) || g_.is_resident(s) || g_.is_overwritten(s) || g_.record(s).updates != 0 ||
      !(g_.type(v).dims == g_.type(g_.output(o)).dims))
    return false;
  for (auto const& r : g_.uses(v))
    if (group_[r.op] != o) return false;
  for (auto m : members_[index(p)])
    if (next_writer_[m] < place_[o]) return false;
  if (is_next(p, o)) return true;
  bytes_t waiting = 0;
  for (auto x : inputs_of(p))
    if (last_reader_[g_.storage(x)] <= place_[p]) waiting += g_.bytes(g_.storage(x));
  return waiting <= g_.bytes(s);
}

NEAP_FUNC bool elementwise_fuser::is_next(op_id p, op_id o) const {
  for (std::size_t i = place_[p] + 1; i < place_[o]; ++i) {
    auto const x = order_[i];
    if (group_[x] == o || group_[x] == p) continue;
    for (auto v : g_.outputs(x))
      if (g_.record(v).alias != alias_kind::view) return false;
  }
  return true;
}

NEAP_FUNC plain_vector<value_id> elementwise_fuser::inputs_of(op_id sink) const {
  plain_vector<value_id> in;
  for (auto o : members_[index(sink)])
    for (auto v : g_.inputs(o)) {
      auto const p = g_.producer(v);
      bool const inner = p != nothing<op_id> && group_[p] == sink;
      if (!inner && std::find(in.begin(), in.end(), v) == in.end()) in.push_back(v);
    }
  return in;
}

NEAP_FUNC std::optional<op::fused> elementwise_fuser::program_of(op_id sink) const {
  auto const in = inputs_of(sink);
  if (in.empty() || in.size() > static_cast<std::size_t>(op::fused::max_inputs)) return {};
  op::fused_maker make(static_cast<int>(in.size()));
  plain_vector<value_id> made;
  bool wide = false, narrow = false;
  auto const see = [&](dtype t) { wide = wide || is_wide(t), narrow = narrow || is_narrow(t); };
  for (auto v : in) see(g_.type(v).element);
  for (auto o : members_[index(sink)]) {
    plain_vector<int> operands;
    for (auto v : g_.inputs(o)) {
      auto const inner = std::find(made.begin(), made.end(), v);
      auto const at = inner != made.end() ? inner - made.begin() + static_cast<std::ptrdiff_t>(in.size())
                                          : std::find(in.begin(), in.end(), v) - in.begin();
      operands.push_back(static_cast<int>(at));
    }
    auto const element = g_.type(g_.output(o)).element;
    see(element);
    if (!make.add(g_.view(o), element, span_of(operands))) return {};
    made.push_back(g_.output(o));
  }
  if ((wide && narrow) || !make.made().fault(in.size()).empty()) return {};
  return make.made();
}

}  // namespace detail
}}  // namespace neap::v0
