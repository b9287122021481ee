// A search in rounds, by a strategy (search_strategy.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/optimize/expansion.hpp>
#include <neap/optimize/open_list.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/optimize/search_strategy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class search_rounds {
 public:
  using node_ptr = search_state::node_ptr;

  search_rounds(search_state& state, any_mutator const& moves) : state_(state), moves_(moves) {}

  /// Rounds over the candidates of the queue, until a part of the budget is used up or the strategy expands none.
  void run(double part) {
    while (!state_.out_of_time(part * state_.part) && !state_.is_free() && round(part)) {}
  }

 private:
  bool round(double part) {
    auto const& best = state_.best->state.result;
    if (!state_.goal.limits_memory && best.peak_bytes <= state_.target) state_.lower_target(best.peak_bytes);
    auto& queue = state_.queue;
    std::erase_if(queue, [](node_ptr const& n) { return n->expanded; });
    waiting_.clear();
    for (auto const& n : queue) {
      auto const& r = n->state.result;
      waiting_.push_back({r.peak_bytes, r.latency, n->excess, estimated_cost(r.latency, price_, n->excess)});
    }
    search_standing const now{state_.goal, best, state_.goal.fits(best), state_.target, state_.max_waiting()};
    auto const next = state_.options.strategy(span_of(waiting_), now);
    if (next.expand.empty()) return false;

    std::vector<node_ptr> chosen, kept;
    auto const take = [&](std::uint32_t k, std::vector<node_ptr>& to) {
      if (k >= queue.size()) throw_error({"optimize: the strategy names a candidate that is not in its list"});
      if (queue[k]) to.push_back(std::move(queue[k]));  // named once before otherwise
    };
    for (auto k : next.expand) take(k, chosen);
    for (std::size_t k = 0; k < next.keep.size() && kept.size() < now.room; ++k) take(next.keep[k], kept);
    queue = std::move(kept);
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      if (k > 0 && state_.out_of_time(part * state_.part)) {
        queue.insert(queue.end(), chosen.begin() + static_cast<std::ptrdiff_t>(k), chosen.end());
        break;
      }
      expand(chosen[k]);
    }
    return true;
  }
  void expand(node_ptr const& n) {
    if (n->how) {
      double const paid = n->state.result.latency - n->from->state.result.latency;
      if (n->gained > 0) price_ = std::max(price_, paid / n->gained);
      if (!state_.build(n)) return;
    }
    expand_candidate(state_, moves_, n, [&](node_ptr child) { state_.queue.push_back(std::move(child)); });
  }

  search_state& state_;
  any_mutator const& moves_;
  plain_vector<waiting_candidate> waiting_;
  double price_ = 0;  // seconds a byte-position above the target, the highest paid so far
};

}}}  // namespace neap::v0::detail
