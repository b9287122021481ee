// An edited graph is scheduled again near the edit only: the order of the old graph was good, so what stands far from
// everything new can stay. The incremental scheduling of MAGIS (Chen et al., ASPLOS'24, section 6.1): a window from the
// first to the last changed op is widened to where the graph is narrow, and the scheduler orders what stands in it, between
// what runs before and what runs after.
//
//   order     a b c d e f g h i j k l m n o        new: x, between d and e, and y, between l and m
//   windows       [c d x e f]   [k l y m]          each ends where few ops could stand on either side
//
// Other than there: changes far from one another have windows of their own (what is stored and loaded again is both ends of
// a training step); of these, only those that hold the peak are ordered, because no other can lower it; and where the peak
// lies far from all changes, there is a window around it, because an edit is made to bring the old peak down, and the next
// one may be one that another order lowers. A window changes nothing that does not lower its peak.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/mutate/window_facts.hpp>
#include <neap/schedule/incremental.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>

namespace neap { inline namespace v0 {

/// Schedules anew what stands near to what has changed, with another scheduler, and keeps the rest of an order.
///
///   auto const order = memory_greedy{}(facts);                        // of the graph as it was
///   auto const after = reschedule{}(edited_facts, old_ops_in_order);  // ids of the edited one
///
/// The peak is never higher than that of the order with the new ops put in (complete_order). `Full` orders graphs by their
/// flow_facts, as all of neap's schedulers do.
template <class Full = memory_greedy>
struct reschedule {
  static_assert(std::invocable<Full const&, flow_facts const&>,
                "neap: reschedule gives its scheduler windows, not graphs: write  neap::schedule "
                "operator()(neap::flow_facts const&) const");

  Full full{};
  std::uint32_t margin = 4;  // positions that a window reaches at least beyond what has changed,
  std::uint32_t reach = 16;  // and at most: it ends where the order is narrowest in between
  int windows = 4;           // at most
  bool anywhere = true;      // also where the peak lies far from all changes

  /// From an order of some ops of a graph, the others being new. O(ops + edges), and what `full` takes for the windows.
  schedule operator()(flow_facts const& facts, schedule const& old) const {
    plain_vector<bool> is_old(facts.op_count(), false);
    for (auto o : old) is_old[index(o)] = true;
    plain_vector<op_id> changed;
    for (auto o : id_range<op_id>(facts.op_count()))
      if (!is_old[index(o)]) changed.push_back(o);
    return (*this)(facts, complete_order(facts, old), span_of(changed));
  }
  /// From a valid order, ops having changed since it was made, or having been put into it.
  schedule operator()(flow_facts const& facts, schedule order, std::span<op_id const> changed) const {
    if (order.size() < 3) return order;
    return work(*this, facts, std::move(order)).run(changed);
  }
  schedule operator()(op_graph const& g, schedule const& old, memory_options options = {}) const {
    return (*this)(flow_facts(g, no_cost{}, options), old);
  }

 private:
  struct window {
    std::uint32_t begin = 0, end = 0;
  };

  class work {
   public:
    work(reschedule const& how, flow_facts const& facts, schedule order)
        : how_(how),
          facts_(facts),
          order_(std::move(order)),
          size_(static_cast<std::uint32_t>(order_.size())) {}

    schedule run(std::span<op_id const> changed) && {
      if (!how_.anywhere && changed.empty()) return std::move(order_);
      auto now = simulator_.judge(facts_, order_);
      bool is_placed = false;
      for (int k = 0; k < how_.windows; ++k) {
        auto const bytes = simulator_.judged_bytes();
        auto const top = static_cast<std::uint32_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
        if (!is_placed) places_.assign(facts_, order_), is_placed = true;
        if (k == 0) find_changes(changed);
        auto const w = window_at(top);
        if (w.begin == w.end) break;
        done_.push_back(w);
        before_ = order_;
        if (!solve(w)) break;
        auto const then = simulator_.judge(facts_, order_);
        if (then.peak_bytes > now.peak_bytes ||
            (facts_.has_transfers() && then.latency > now.latency && then.peak_bytes == now.peak_bytes)) {
          order_ = std::move(before_);  // transfers are in flight that the window does not see
          break;
        }
        now = then, is_placed = false;
      }
      return std::move(order_);
    }

   private:
    /// Stretches of changed ops that stand near to one another.
    void find_changes(std::span<op_id const> changed) {
      plain_vector<std::uint32_t> positions;
      positions.reserve(changed.size());
      for (auto o : changed) positions.push_back(places_.at[o]);
      detail::sort_list(positions);
      for (std::size_t k = 0; k < positions.size();) {
        auto const first = positions[k++];
        auto last = first;
        while (k < positions.size() && positions[k] - last <= how_.reach) last = positions[k++];
        changes_.push_back({first, last + 1});
      }
    }
    /// The window that holds a position; an empty one if it was ordered already, or is not to be.
    window window_at(std::uint32_t top) {
      auto const holds = [&](window const& w) { return w.begin <= top && top < w.end; };
      if (std::any_of(done_.begin(), done_.end(), holds)) return {};
      for (auto const& c : changes_) {
        if (top + how_.reach < c.begin || top >= c.end + how_.reach) continue;
        if (auto const w = widened(c); holds(w)) return w;
      }
      return how_.anywhere ? widened({top, top + 1}) : window{};
    }

    /// The window that ends where the order is narrowest: at the boundary that the fewest ops near it could be moved
    /// across.
    window widened(window w) {
      auto const low = w.begin - std::min(w.begin, how_.reach), high = std::min(w.end + how_.reach, size_);
      auto const n = high - low;
      crossing_.assign(n + 2, 0), latest_.assign(n, high);
      for (auto p = high; p-- > low;) {
        std::uint32_t earliest = low;
        for (auto before : facts_.after(order_[p]))
          if (auto const q = places_.at[before]; q >= low) {
            earliest = std::max(earliest, q + 1);
            latest_[q - low] = p;  // the last one written is the first to wait
          }
        // It could stand at any boundary from `earliest` to `latest`.
        ++crossing_[earliest - low], --crossing_[latest_[p - low] - low + 1];
      }
      std::int32_t could_cross = 0;
      for (std::uint32_t b = 0; b <= n; ++b) crossing_[b] = could_cross += crossing_[b];
      window found{low, high};
      auto const narrower = [&](std::uint32_t b, std::uint32_t than) {
        return crossing_[b - low] < crossing_[than - low];
      };
      for (auto b = low; b + how_.margin <= w.begin; ++b)
        if (!narrower(found.begin, b)) found.begin = b;
      for (auto b = high; b >= w.end + how_.margin; --b)
        if (!narrower(found.end, b)) found.end = b;
      return found;
    }

    /// Orders a window; whether that lowers its peak. The order stays as it is otherwise.
    bool solve(window w) {
      auto const n = w.end - w.begin;
      if (n < 2) return false;
      window_.assign(facts_, order_, places_, w.begin, w.end);
      as_it_stands_.order.resize(n);
      for (std::uint32_t k = 0; k < n; ++k) as_it_stands_.order[k] = id_at<op_id>(k);
      auto const found = how_.full(window_);
      if (found == as_it_stands_) return false;
      if (simulator_.peak(window_, found) >= simulator_.peak(window_, as_it_stands_)) return false;
      for (std::uint32_t k = 0; k < n; ++k) as_it_stands_.order[k] = order_[w.begin + k];
      for (std::uint32_t k = 0; k < n; ++k) order_.order[w.begin + k] = as_it_stands_[index(found[k])];
      return true;
    }

    reschedule const& how_;
    flow_facts const& facts_;
    schedule order_, before_, as_it_stands_;
    std::uint32_t size_;
    order_places places_;
    window_facts window_;
    simulator simulator_;
    plain_vector<window> changes_, done_;
    plain_vector<std::int32_t> crossing_;  // scratch of widened()
    plain_vector<std::uint32_t> latest_;
  };
};

}}  // namespace neap::v0
