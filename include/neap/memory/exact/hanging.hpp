// Records that hang in the air, in searches that lift what is proved of offsets (search.hpp, skyline_search.hpp): nothing
// that is placed holds them at their limits, so they lie on something that is not placed yet.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <algorithm>
#include <cstdint>

namespace neap::inline v0::detail {

/// The least offsets at which all that hangs in the air can lie, at once: record on record, in the end on one that does not
/// hang (Dijkstra's algorithm, from those). Lifted one by one to the lowest top beneath, two small records may lift each
/// other a few bytes at a time, up to the capacity.
template <class Unit>
class hanging_records {
 public:
  /// Of each of `count` entries, which have limit and record; those that do not hang keep their limits, and `nowhere` is for
  /// those that can lie on nothing below it. `hangs(entry)`; `meet(entry, entry)`: both live at some moment. Valid until the
  /// next call. O(count^2).
  template <class Ground, class Entry, class Hangs, class Meet>
  constexpr plain_vector<Unit> const& operator()(Ground const& ground, Entry const* x, std::uint32_t count,
                                                 Unit nowhere, Hangs const& hangs, Meet const& meet) {
    offsets_.assign(count, nowhere);
    unsettled_.clear();
    for (std::uint32_t k = 0; k < count; ++k)
      if (hangs(x[k])) unsettled_.push_back(k);
      else offsets_[k] = x[k].limit;
    auto const rest_on = [&](std::uint32_t below) {
      Unit const top = offsets_[below] + ground.size[x[below].record];
      for (auto k : unsettled_)
        if (top < offsets_[k] && meet(x[below], x[k]))
          offsets_[k] = std::min(offsets_[k], std::max(x[k].limit, ground.aligned(top, x[k].record)));
    };
    for (std::uint32_t k = 0; k < count; ++k)
      if (!hangs(x[k])) rest_on(k);
    while (!unsettled_.empty()) {
      auto const least = std::min_element(unsettled_.begin(), unsettled_.end(),
                                          [&](auto j, auto k) { return offsets_[j] < offsets_[k]; });
      auto const k = *least;
      *least = unsettled_.back();
      unsettled_.pop_back();
      if (offsets_[k] < nowhere) rest_on(k);
    }
    return offsets_;
  }

 private:
  plain_vector<Unit> offsets_;
  plain_vector<std::uint32_t> unsettled_;
};

}  // namespace neap::inline v0::detail
