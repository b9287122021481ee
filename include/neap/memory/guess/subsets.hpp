// Sets of up to 32 things, as bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace neap::inline v0::detail {

/// f(member) for each, ascending.
template <class F>
void for_each_member(std::uint32_t set, F&& f) {
  for (; set != 0; set &= set - 1) f(static_cast<std::size_t>(std::countr_zero(set)));
}
/// f(set) for each set of k of n things, k > 0, in order of their numbers.
template <class F>
void for_each_set(std::size_t n, std::size_t k, F&& f) {
  for (std::uint64_t set = (std::uint64_t{1} << k) - 1; set >> n == 0;) {
    f(static_cast<std::uint32_t>(set));
    auto const low = set & -set, carried = set + low;
    set = carried | (((carried ^ set) >> 2) / low);
  }
}
/// How many sets of k of n things there are.
inline double choices(std::size_t n, std::size_t k) {
  double ways = 1;
  for (std::size_t i = 0; i < k; ++i) ways = ways * static_cast<double>(n - i) / static_cast<double>(i + 1);
  return ways;
}

}  // namespace neap::inline v0::detail
