// The bodies of <neap/optimize/search_policy.hpp>.
#pragma once

#include <neap/optimize/search_policy.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::string wrong_number(search_policy const& p) {
  struct count {
    char const* name;
    std::int64_t value;
  };
  auto const whole = [](auto x) { return x > INT64_MAX / 2 ? INT64_MAX : static_cast<std::int64_t>(x); };
  for (auto const& x : std::initializer_list<count>{
           {"tighter.first_epoch", p.tighter.first_epoch},
           {"tighter.rungs", p.tighter.rungs},
           {"open_list.least", whole(p.open_list.least)},
           {"incumbent.max_surpassed", whole(p.incumbent.max_surpassed)},
           {"incumbent.max_near", whole(p.incumbent.max_near)},
           {"incumbent.max_answers", whole(p.incumbent.max_answers)},
           {"solvers.more", whole(p.solvers.more)},
           {"solvers.more_with_swaps", whole(p.solvers.more_with_swaps)},
           {"solvers.fine", p.solvers.fine},
           {"blocks.least_blocks", p.blocks.least_blocks},
           {"blocks.likely_blocks", p.blocks.likely_blocks},
           {"parts.refinement", p.parts.refinement},
           {"neighbourhoods.halvings", p.neighbourhoods.halvings},
       })
    if (x.value < 1) return std::string(x.name) + ": at least 1";
  if (!(p.epochs.growth >= 1)) return "epochs.growth: at least 1";
  if (!(p.epochs.first_seconds > 0)) return "epochs.first_seconds: above 0";
  if (!(p.tighter.step > 0 && p.tighter.step < 1)) return "tighter.step: between 0 and 1";
  if (!(p.tighter.nearest > 0)) return "tighter.nearest: above 0";
  for (auto const x : p.incumbent.headroom)
    if (!(x <= 1)) return "incumbent.headroom: at most 1";
  if (!(p.placement.node_share <= 1)) return "placement.node_share: at most 1";
  if (!(p.solvers.change_share <= 1)) return "solvers.change_share: at most 1";
  if (!(p.parts.chain_fall <= 1)) return "parts.chain_fall: at most 1";
  if (p.placement.least_nodes > p.placement.max_nodes) return "placement.least_nodes: at most max_nodes";
  if (p.open_list.least > p.open_list.most) return "open_list.least: at most open_list.most";
  return {};
}

}}  // namespace neap::v0
