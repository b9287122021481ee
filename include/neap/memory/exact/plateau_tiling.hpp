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

namespace neap::inline v0::detail {

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

}  // namespace neap::inline v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/plateau_tiling.ipp>
#endif
