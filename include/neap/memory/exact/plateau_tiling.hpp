// The records that can lie on the floor of a plateau, a run of sections of one height. Where a section wastes nothing
// something lies on its floor, so the records there stand side by side from wall to wall (perfect packings: Huang and
// Korf 2009, with waste).
//
//   |      wall        begin                 end
//   |aaaa|bb|  |ccc|       a, b, c, with a section left empty that may waste its floor
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A record that may lie on a plateau's floor, and the sections of its life.
struct floor_option {
  std::uint32_t entry, begin, end;
};

/// Which sections of a plateau are reached by records side by side from its begin, and from which its end is reached.
class plateau_tiling {
 public:
  explicit plateau_tiling(std::uint32_t sections)
      : may_waste_(sections + 1, 0),
        reached_(sections + 1, 0),
        reaches_end_(sections + 1, 0) {}

  /// Whether a section may be left empty.
  bool may_waste(std::uint32_t s) const { return may_waste_[s] != 0; }
  void set_waste(std::uint32_t s, bool may) { may_waste_[s] = may; }

  /// Of options in order of their begins, within [begin, end). Gives the first section from which nothing leads on, or
  /// `end` where there is a tiling. O(sections + options).
  std::uint32_t find(plain_vector<floor_option> const& options, std::uint32_t begin, std::uint32_t end);
  /// Whether a tiling has the option.
  bool contains(floor_option const& o) const { return reached_[o.begin] != 0 && reaches_end_[o.end] != 0; }

 private:
  std::vector<char> may_waste_, reached_, reaches_end_;
};

inline std::uint32_t plateau_tiling::find(plain_vector<floor_option> const& options, std::uint32_t begin,
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

}}}  // namespace neap::v0::detail
