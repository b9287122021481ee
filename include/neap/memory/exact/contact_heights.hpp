// At which heights can two neighbouring sections meet? Where a record lives through both, its offset is at once the first
// section's floor plus the sizes of records beneath it that end there, and the second's floor plus the sizes of some that
// begin there, each with waste. Where little may be wasted and few end and begin, few heights are possible, and often
// the floors themselves are not: what lives through both then lies higher.
//
//        |ccccccc|      a ends here, b begins: c can lie where a sum of such as a and a sum of such as b agree
//        |aaa|   |
//        |aaa|bbb|
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// One side: the floor, how many bytes above it may be wasted, and sums of sizes, ascending, from 0.
struct contact_side {
  std::int64_t floor, waste;
  std::vector<std::int64_t> const& sums;
};

/// Adds to the sums all those with one more size.
inline void add_to_sums(std::vector<std::int64_t>& sums, std::int64_t size) {
  std::vector<std::int64_t> both;
  both.reserve(2 * sums.size());
  for (std::size_t i = 0, j = 0; j < sums.size();) {
    auto const next = i < sums.size() && sums[i] <= sums[j] + size ? sums[i++] : sums[j++] + size;
    if (both.empty() || both.back() != next) both.push_back(next);
  }
  sums.swap(both);
}

/// The least height that both sides can have, or `none`: floor + a sum + at most the waste.
inline std::int64_t least_contact_height(contact_side const& a, contact_side const& b, std::int64_t none) {
  for (std::size_t i = 0, j = 0; i < a.sums.size() && j < b.sums.size();) {
    auto const x = a.floor + a.sums[i], y = b.floor + b.sums[j];
    if (x + a.waste < y) ++i;
    else if (y + b.waste < x) ++j;
    else return std::max(x, y);
  }
  return none;
}

}}}  // namespace neap::v0::detail
