// The bodies of <neap/optimize/search_policy.hpp>.
#pragma once

#include <neap/optimize/search_policy.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::string wrong_number(search_policy const& p) {
  struct divisor {
    char const* name;
    std::int64_t value;
  };
  auto const whole = [](auto x) { return x > INT64_MAX / 2 ? INT64_MAX : static_cast<std::int64_t>(x); };
  for (auto const& x : std::initializer_list<divisor>{
           {"tighter.first_epoch", p.tighter.first_epoch},
           {"tighter.rungs", p.tighter.rungs},
           {"open_list.least", whole(p.open_list.least)},
           {"incumbent.max_surpassed", whole(p.incumbent.max_surpassed)},
           {"incumbent.max_near", whole(p.incumbent.max_near)},
           {"incumbent.max_answers", whole(p.incumbent.max_answers)},
           {"incumbent.lowered_by", p.incumbent.lowered_by},
           {"placement.holes", p.placement.holes},
           {"placement.part_of_nodes", p.placement.part_of_nodes},
           {"offloads.room", p.offloads.room},
           {"offloads.first_of", p.offloads.first_of},
           {"offloads.close", p.offloads.close},
           {"segments.close", p.segments.close},
           {"segments.close_to_latency", p.segments.close_to_latency},
           {"segments.step", p.segments.step},
           {"segments.near", p.segments.near},
           {"segments.smaller", p.segments.smaller},
           {"solvers.more", whole(p.solvers.more)},
           {"solvers.more_with_swaps", whole(p.solvers.more_with_swaps)},
           {"solvers.larger", p.solvers.larger},
           {"solvers.near", p.solvers.near},
           {"solvers.part_of_changes", p.solvers.part_of_changes},
           {"solvers.close", p.solvers.close},
           {"solvers.close_to_latency", p.solvers.close_to_latency},
           {"solvers.fine", p.solvers.fine},
           {"solvers.apart", p.solvers.apart},
           {"blocks.least_blocks", p.blocks.least_blocks},
           {"blocks.likely_blocks", p.blocks.likely_blocks},
           {"parts.chain_gain", p.parts.chain_gain},
           {"parts.sharpening", p.parts.sharpening},
           {"further_parts.near", p.further_parts.near},
           {"further_parts.near_with_latency", p.further_parts.near_with_latency},
           {"dives.far", p.dives.far},
           {"first_fit.far", p.first_fit.far},
           {"neighbourhoods.halvings", p.neighbourhoods.halvings},
       })
    if (x.value < 1) return std::string(x.name) + ": at least 1";
  for (auto const x : p.incumbent.headroom)
    if (x < 1) return "incumbent.headroom: at least 1";
  if (!(p.epochs.growth >= 1)) return "epochs.growth: at least 1";
  if (!(p.epochs.first_seconds > 0)) return "epochs.first_seconds: above 0";
  if (!(p.tighter.step > 0 && p.tighter.step < 1)) return "tighter.step: between 0 and 1";
  if (!(p.tighter.nearest > 0)) return "tighter.nearest: above 0";
  if (!(p.parts.chain_fall >= 1)) return "parts.chain_fall: at least 1";
  if (p.placement.least_nodes > p.placement.max_nodes) return "placement.least_nodes: at most max_nodes";
  if (p.open_list.least > p.open_list.most) return "open_list.least: at most open_list.most";
  return {};
}

}}  // namespace neap::v0
