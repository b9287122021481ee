// Regions: the fission tree, flat. The ops of a region run `parts` times, on slices of its sliced inputs along an axis;
// outputs are concatenated or combined. A graph keeps a table of regions and, for each op, its innermost one.
#pragma once

#include <neap/core/id.hpp>
#include <neap/ir/operator.hpp>

#include <cstdint>
#include <vector>

namespace neap::inline v0 {

/// A value that crosses a region's border, and how.
struct region_edge {
  value_id value = nothing<value_id>;
  std::int32_t axis = -1;         // the axis that is sliced or concatenated; -1: shared whole, or combined
  combine how = combine::concat;  // outputs with axis -1: sum, max, min, mean of the parts
  friend bool operator==(region_edge const&, region_edge const&) = default;
};

struct region {
  region_id parent = nothing<region_id>;  // nothing: at the top
  std::int64_t parts = 1;                 // how often the body runs
  std::int64_t extent = 1;                // of the axis that is cut, before cutting; a multiple of parts
  std::vector<region_edge> inputs, outputs;
  friend bool operator==(region const&, region const&) = default;
};

}  // namespace neap::inline v0
