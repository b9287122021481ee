// A step of a random walk over candidates: one mutation of a mutator, drawn by lot.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/plan/candidate.hpp>

#include <cstdint>
#include <optional>

namespace neap::testing {

/// What one of the first `most` mutations of a candidate makes of it; nothing if there are fewer, or if it makes nothing.
template <class Mutator>
std::optional<edited> drawn_edit(Mutator const& mutator, candidate const& c, random_stream& draw, std::uint32_t most) {
  auto stream = mutator(c);
  for (auto skip = draw.below(most); auto m = stream.next(); --skip)
    if (skip == 0) return apply_mutation(*m, c);
  return std::nullopt;
}

}  // namespace neap::testing
