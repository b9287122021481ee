// The bodies of <neap/memory/exact/plateau_tiling.hpp>.
#pragma once

#include <neap/memory/exact/plateau_tiling.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::detail {

NEAP_FUNC std::uint32_t plateau_tiling::find(plain_vector<floor_option> const& options, std::uint32_t begin,
                                             std::uint32_t end) {
  for (auto s = begin; s <= end; ++s) reached_[s] = reaches_end_[s] = 0;
  reached_[begin] = reaches_end_[end] = 1;
  auto furthest = begin;
  std::size_t k = 0;
  for (auto s = begin; s < end; ++s) {
    if (reached_[s]) furthest = s;
    if (reached_[s] && may_waste_[s]) reached_[s + 1] = 1;
    for (; k < options.size() && options[k].begin == s; ++k)
      if (reached_[s]) reached_[options[k].end] = 1;
  }
  if (!reached_[end]) return furthest;
  for (auto s = end; s-- > begin;) {
    if (may_waste_[s] && reaches_end_[s + 1]) reaches_end_[s] = 1;
    for (; k > 0 && options[k - 1].begin == s; --k)
      if (reaches_end_[options[k - 1].end]) reaches_end_[s] = 1;
  }
  return end;
}

}  // namespace neap::inline v0::detail
