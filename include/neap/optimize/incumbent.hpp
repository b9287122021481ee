// What a search keeps beside its best candidate: others that may be the answer, because addresses may need more than the
// peak, or because nothing fits.
#pragma once

#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_policy.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <class NodePtr>
class incumbent_alternatives {
 public:
  static constexpr std::size_t levels = decltype(search_policy::incumbent_numbers::headroom){}.size();

  explicit incumbent_alternatives(search_policy::incumbent_numbers const& numbers) : numbers_(numbers) {}

  /// Whether a candidate leaves a level's headroom of the limit of memory, and is quicker than what has done so.
  bool is_best_with_headroom(simulation const& r, std::size_t level, objective const& limits) const {
    return limits.limits_memory && r.peak_bytes <= limits.memory - ratio_of(numbers_.headroom[level], limits.memory) &&
           r.latency <= limits.latency &&
           (!with_headroom_[level] || r.latency < with_headroom_[level]->state.result.latency);
  }
  /// Enters each level where it is the best.
  void add_with_headroom(NodePtr const& n, objective const& limits) {
    for (std::size_t k = 0; k < levels; ++k)
      if (is_best_with_headroom(n->state.result, k, limits)) with_headroom_[k] = n;
  }
  /// It was the best, and no longer is.
  void add_surpassed(NodePtr n) {
    if (surpassed_.size() == numbers_.max_surpassed) surpassed_.erase(surpassed_.begin());
    surpassed_.push_back(std::move(n));
  }
  /// It was found in a search for the smallest peak: enters where no other is as small and as quick, as long as it is about
  /// as small as the smallest. At most `room` stay. O(candidates there).
  void add_near_smallest(NodePtr const& n, std::size_t room) {
    auto const peak = [](NodePtr const& x) { return x->state.result.peak_bytes; };
    auto const no_better = [&](NodePtr const& a, NodePtr const& b) {
      return peak(a) >= peak(b) && a->state.result.latency >= b->state.result.latency;
    };
    if (std::any_of(near_.begin(), near_.end(), [&](NodePtr const& x) { return no_better(n, x); })) return;
    std::erase_if(near_, [&](NodePtr const& x) { return no_better(x, n); });
    near_.insert(std::find_if(near_.begin(), near_.end(), [&](NodePtr const& x) { return peak(x) > peak(n); }), n);
    auto const most = as_small_as(peak(near_.front()));
    std::erase_if(near_, [&](NodePtr const& x) { return peak(x) > most; });
    if (near_.size() > std::min(numbers_.max_near, room)) near_.erase(near_.begin() + 1);  // between both ends
  }

  /// The last of the best first, then those with headroom.
  std::vector<NodePtr> all() const {
    std::vector<NodePtr> found(surpassed_.rbegin(), surpassed_.rend());
    found.insert(found.end(), with_headroom_.begin(), with_headroom_.end());
    std::erase(found, nullptr);
    return found;
  }
  /// The smallest and what is quicker and nearly as small: of rising peak, falling latency.
  std::vector<NodePtr> const& near_smallest_peak() const { return near_; }
  /// What counts as no larger where nothing fits.
  static bytes_t as_small_as(bytes_t smallest) {
    return smallest + static_cast<bytes_t>(near_smallest * static_cast<double>(smallest));
  }

 private:
  search_policy::incumbent_numbers const& numbers_;
  std::array<NodePtr, levels> with_headroom_;
  std::vector<NodePtr> surpassed_, near_;
};

}}}  // namespace neap::v0::detail
