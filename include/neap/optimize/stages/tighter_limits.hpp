// A stage of the search: epochs at tighter limits of memory. A plan for a smaller limit is one for a larger limit, too.
#pragma once

#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_state.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace neap { inline namespace v0 { namespace detail {

/// The limits of the next such epoch: those of what is quicker than the answer; where its peak fits and its addresses do
/// not, of anything that fits. They are of a ladder that does not depend on the user's limit. Nothing where there is
/// nothing to gain.
inline std::optional<objective> tighter_limits(search_state const& state, simulation const& answer, bool fits,
                                               std::uint32_t epoch) {
  auto const& numbers = state.policy.tighter;
  auto const& limits = state.limits;
  if (answer.peak_bytes > limits.memory) return std::nullopt;
  auto tighter = limits;
  if (fits) {
    if (answer.latency <= numbers.cheap * state.out.original.latency) return std::nullopt;
    tighter.limits_latency = true;
    tighter.latency = std::min(limits.latency, answer.latency * (1 - numbers.gain));
  }
  auto rung = static_cast<double>(state.out.original.peak_bytes);
  while (rung > numbers.nearest * static_cast<double>(limits.memory)) rung *= numbers.step;
  for (auto k = epoch % numbers.rungs; k > 0; --k) rung *= numbers.step;
  tighter.memory = static_cast<bytes_t>(rung);
  if (tighter.memory < std::max<bytes_t>(state.out.lower_bound_bytes, 1)) return std::nullopt;
  return tighter;
}

}}}  // namespace neap::v0::detail
