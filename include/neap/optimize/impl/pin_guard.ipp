// The bodies of <neap/optimize/pin_guard.hpp>.
#pragma once

#include <neap/optimize/pin_guard.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC pin_guard::pin_guard(op_graph const& program) : any_(program.has_pins()) {
  if (!any_) return;
  of_origin_.resize(program.origin_count());
  for (auto o : program.ops()) {
    auto& x = of_origin_[index(program.origin(o))];
    x.pins |= program.pins(o), ++x.runs;
  }
}

/// What rules have made of a value that may not leave stays, too.
NEAP_FUNC bool pin_guard::may_store(op_graph const& g, value_id v) {
  if (!g.may_swap(g.storage(v))) return false;
  auto const o = g.producer(v);
  if (o == nothing<op_id> || !g.record(o).rewritten) return true;
  return std::ranges::all_of(g.inputs(o), [&](value_id in) { return may_store(g, in); });
}

NEAP_FUNC bool pin_guard::holds(op_graph const& g) const {
  if (!any_) return true;
  plain_vector<std::uint32_t> runs;
  runs.assign(of_origin_.size(), 0);
  plain_vector<op_id> once, rewritten;
  for (auto o : g.ops()) {
    if (g.as<op::store>(o) && !may_store(g, g.inputs(o)[0])) return false;
    if (!g.may_recompute(o)) once.push_back(o);
    else if (g.record(o).rewritten) rewritten.push_back(o);
    auto const i = index(g.origin(o));
    if (i >= of_origin_.size() || of_origin_[i].pins.empty()) continue;
    if (g.pins(o) != of_origin_[i].pins) return false;
    if (g.record(o).part != nothing<part_id> && !g.may_cut(o)) return false;
    ++runs[i];
  }
  for (auto o : rewritten)  // a rule that comes upon what a pinned op computes
    for (auto x : once)
      if (computes_the_same(g, o, x)) return false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto const& x = of_origin_[i];
    if (x.pins.has_any(pin::keep | pin::run_once) ? runs[i] != x.runs
                                                  : x.pins.has_any(pin::never_in_parts | pin::never_out) && !runs[i])
      return false;
  }
  return true;
}

}}}  // namespace neap::v0::detail
