// The bodies of <neap/mutate/late_readers.hpp>.
#pragma once

#include <neap/mutate/late_readers.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::detail {

NEAP_FUNC void leave_out(op_graph const& g, std::vector<op_id> stack, edit_outline& out) {
  number_map change;  // of readers, by value; counted from a large number, since what is left out reads less
  constexpr std::uint32_t none = 1u << 30;
  auto const add = [&](value_id v, int by) {
    if (index(v) >= g.value_count()) return;
    change.add(index(v), none);
    change.set(index(v), change.find(index(v)) + static_cast<std::uint32_t>(by));
  };
  for (auto v : out.reads) add(v, 1);
  for (auto const& r : out.rereads)
    for (auto v : g.inputs(r.reader))
      if (v == r.from) add(v, -1), add(r.to, 1);
  auto const is_read = [&](value_id v) {
    auto const by = change.find(index(v));
    auto const uses = static_cast<std::int64_t>(g.uses(v).size());
    return uses + (by == number_map::none ? 0 : std::int64_t{by} - none) > 0;
  };
  number_map dead;
  while (!stack.empty()) {
    op_id const o = stack.back();
    stack.pop_back();
    if (dead.contains(index(o))) continue;
    bool used = g.outputs(o).empty();
    if (!g.may_replace(o)) {
      bool again = false;
      for (auto const& r : out.runs) again = again || (r.like != nothing<op_id> && g.origin(r.like) == g.origin(o));
      used = used || !g.may_recompute(o) ||
             (!again && is_pinned_to_stay(g, o, [&](op_id x) { return dead.contains(index(x)); }));
    }
    for (auto v : g.outputs(o)) used |= g.is_kept(v) || g.record(v).alias == alias_kind::update || is_read(v);
    if (used) continue;
    dead.add(index(o), 0);
    out.left_out.push_back(o);
    for (auto v : g.inputs(o)) {
      value_id now = v;
      for (auto const& r : out.rereads)
        if (r.reader == o && r.from == v) {
          now = r.to;
          break;
        }
      add(now, -1);
      if (index(now) < g.value_count())
        if (auto const p = g.producer(now); p != nothing<op_id>) stack.push_back(p);
    }
  }
}

}  // namespace neap::inline v0::detail
