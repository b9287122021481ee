// Buffers for transfers that run ahead: while step k uses one buffer, the next is filled.
#pragma once

#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

/// Lets the filling of each record of a sequence begin when the use of the one `depth` - 1 places before it begins
/// (depth 2: double buffering), by moving `lower` back. `sequence` holds indices in order of use; the first ones keep
/// their births. Never moves a birth forward. O(sequence). Indices must be within the records.
///
///   use      |--0--|--1--|--2--|           depth 2: 1 is filled during 0, 2 during 1
///   fill        |--1--|--2--|              at any moment two of them live
constexpr void run_ahead(std::span<usage_record> records, std::span<std::size_t const> sequence,
                         std::size_t depth = 2) {
  if (depth < 2) return;
  std::vector<std::int64_t> births;
  for (auto i : sequence) births.push_back(records[i].lower);
  for (std::size_t k = depth - 1; k < sequence.size(); ++k) {
    usage_record& r = records[sequence[k]];
    r.lower = std::min(r.lower, births[k - (depth - 1)]);
  }
}

}}  // namespace neap::v0
