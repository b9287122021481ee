// Unsupported records: their limits are proved, but nothing placed ends there, so they lie on something still unplaced.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/exact/packing_problem.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// The least offsets at which all unsupported records can lie, at once: record on record, down to a supported one
/// (Dijkstra's algorithm, from those). Lifted one by one to the lowest top beneath, two small records may lift each other
/// a few bytes at a time, up to the capacity.
class unsupported_records {
 public:
  /// Of each of `count` entries, which have limit and record. Supported ones keep their limits; `nowhere` is for those
  /// that can lie on nothing below it. `unsupported(entry)`; `meet(entry, entry)`: both live at some moment. Valid until
  /// the next call. O(count^2).
  template <class Entry, class Unsupported, class Meet>
  plain_vector<std::int64_t> const& operator()(packing_problem const& problem, Entry const* x, std::uint32_t count,
                                               std::int64_t nowhere, Unsupported const& unsupported, Meet const& meet) {
    offsets_.assign(count, nowhere);
    unsettled_.clear();
    for (std::uint32_t k = 0; k < count; ++k)
      if (unsupported(x[k])) unsettled_.push_back(k);
      else offsets_[k] = x[k].limit;
    auto const rest_on = [&](std::uint32_t below) {
      auto const top = offsets_[below] + problem.size[x[below].record];
      for (auto k : unsettled_)
        if (top < offsets_[k] && meet(x[below], x[k]))
          offsets_[k] = std::min(offsets_[k], std::max(x[k].limit, problem.aligned(top, x[k].record)));
    };
    for (std::uint32_t k = 0; k < count; ++k)
      if (!unsupported(x[k])) rest_on(k);
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
  plain_vector<std::int64_t> offsets_;
  plain_vector<std::uint32_t> unsettled_;
};

}}}  // namespace neap::v0::detail
