// The bodies of <neap/train/operator_groups.hpp>.
#pragma once

#include <neap/train/operator_groups.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC operator_groups::operator_groups(op_graph const& g, operator_facets const& fused, std::string_view who)
    : g_(g),
      places_(g, who),
      fused_(fused),
      group_(g.op_count(), none),
      seen_(g.op_count(), 0) {}

NEAP_FUNC fused_graph operator_groups::write() const {
  fused_graph out;
  program_copy copy(g_);
  table<op_id, unsigned char> done(g_.op_count(), 0);
  std::vector<op_id> waiting;  // for operators that are made later than their first op was
  auto const try_to_put = [&](op_id o) {
    bool ready = true;
    each_member(o, [&](op_id m) {
      each_before(m, [&](op_id b) { ready = ready && (done[b] || (group_[b] != none && group_[b] == group_[o])); });
    });
    if (!ready) return false;
    put(copy, o, out);
    each_member(o, [&](op_id m) { done[m] = 1; });
    return true;
  };
  for (auto o : places_.order) {
    if (group_[o] != none && groups_[group_[o]].ops.back() != o) continue;
    if (!try_to_put(o)) {
      waiting.push_back(o);
      continue;
    }
    for (std::size_t i = 0; i < waiting.size();)
      if (try_to_put(waiting[i])) waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i)), i = 0;
      else ++i;
  }
  out.program = copy.finish();
  out.value = std::move(copy.value);
  return out;
}

NEAP_FUNC bool operator_groups::may_join(op_id o) const {
  bool fits = group_[o] == none && g_.may_replace(o);
  for (auto v : g_.outputs(o)) {
    auto const& r = g_.record(v);
    fits = fits && r.alias == alias_kind::fresh && g_.overwrites(v) == nothing<value_id> &&
           g_.layout(v) == tensor_layout::dense(g_.type(v)) && g_.bytes(r.storage) == g_.type(v).bytes() &&
           g_.record(r.storage).updates == 0 && !g_.is_resident(r.storage) && !g_.is_overwritten(r.storage);
  }
  return fits;
}

NEAP_FUNC bool operator_groups::may_be_one(std::span<op_id const> ops) {
  auto const is_in = [&](op_id o) { return std::find(ops.begin(), ops.end(), o) != ops.end(); };
  plain_vector<op_id> open;
  for (auto o : ops)
    each_before(o, [&](op_id b) {
      if (!is_in(b)) open.push_back(b);
    });
  ++search_;
  while (!open.empty()) {
    auto const o = open.back();
    open.pop_back();
    if (std::exchange(seen_[o], search_) == search_) continue;
    bool cycle = false;
    each_member(o, [&](op_id m) {
      seen_[m] = search_;
      each_before(m, [&](op_id b) {
        cycle = cycle || is_in(b);
        if (seen_[b] != search_) open.push_back(b);
      });
    });
    if (cycle) return false;
  }
  return true;
}

NEAP_FUNC bool operator_groups::join(group made) {
  if (!may_be_one(span_of(made.ops))) return false;
  sort(made.ops);
  for (auto o : made.ops) group_[o] = groups_.size();
  groups_.push_back(std::move(made));
  return true;
}

NEAP_FUNC void operator_groups::sort(plain_vector<op_id>& ops) const {
  std::sort(ops.begin(), ops.end(), [&](op_id a, op_id b) { return places_.place[a] < places_.place[b]; });
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC op_id operator_groups::alone_behind(value_id v) const {
  auto const p = g_.producer(v);
  return p != nothing<op_id> && g_.uses(v).size() == 1 && !g_.is_kept(v) && may_join(p) ? p : nothing<op_id>;
}

NEAP_FUNC void operator_groups::put(program_copy& copy, op_id o, fused_graph& out) const {
  plain_vector<value_id> in;
  if (group_[o] == none) {
    for (auto v : g_.inputs(o)) in.push_back(copy.value[v]);
    return copy.put(o, g_.view(o), span_of(in));
  }
  auto const& made = groups_[group_[o]];
  for (auto v : made.in) in.push_back(copy.value[v]);
  copy.put(o, {&fused_, &made.op}, span_of(in), span_of(made.out));
  out.groups.emplace_back(made.ops.begin(), made.ops.end());
}

}  // namespace detail
}}  // namespace neap::v0
