// Who decides which candidates a search goes on with, in place of its own dives (best_first.hpp): a strategy, given as an
// option. The search does everything else as before: seeds, judging, budgets, limits, the front, addresses. It goes in
// rounds. In each, the strategy sees all candidates that wait and names those to expand: the search evaluates `width`
// mutations of each, and what comes of them waits for the next round.
//
//   struct smallest_first {  // a strategy of one's own: the smallest candidate is expanded, a hundred wait
//     neap::search_round operator()(std::span<neap::waiting_candidate const> all, neap::search_standing const&) const;
//   };
//   neap::optimize(step, moves, neap::memory_limit{2_GiB}, smallest_first{});
//
// beam.hpp has MAGIS's.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/optimize/objective.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace neap { inline namespace v0 {

/// A candidate that waits to be expanded.
struct waiting_candidate {
  bytes_t peak_bytes = 0;
  seconds_t latency = 0;
  double excess = 0;    // bytes above the search's target, summed over positions: falls before the peak does
  double estimate = 0;  // seconds: the latency, and what it may come to cost to bring the excess to nothing
};

/// How a search stands when a round begins.
struct search_standing {
  objective goal;      // what it goes for: while no candidate meets a limit of memory, the smallest peak
  plan_cost best;      // of all so far
  bool fits = false;   // whether the best meets the goal
  bytes_t target = 0;  // of the peak: the limit of memory; without one a little below the best
  std::size_t room;    // so many may wait: candidates of large graphs take much memory
};

/// What is done with the candidates that wait, by their places in the list.
struct search_round {
  plain_vector<std::uint32_t> expand;  // in this order; none: the search ends
  plain_vector<std::uint32_t> keep;    // they go on waiting, as many as there is room for; all others are forgotten
};

/// Promise: equal lists give equal rounds, so that a search gives one answer for any number of threads.
template <class S>
concept search_strategy = std::copy_constructible<S> &&
                          requires(S const& s, std::span<waiting_candidate const> all, search_standing const& now) {
                            { s(all, now) } -> std::same_as<search_round>;
                          };

/// Any strategy, or none.
class any_search_strategy {
 public:
  any_search_strategy() = default;
  template <class S>
    requires(!std::same_as<S, any_search_strategy>) && search_strategy<S>
  any_search_strategy(S s)
      : it_(std::make_shared<S const>(std::move(s))),
        call_([](void const* at, std::span<waiting_candidate const> all, search_standing const& now) {
          return (*static_cast<S const*>(at))(all, now);
        }) {}

  explicit operator bool() const { return call_ != nullptr; }
  search_round operator()(std::span<waiting_candidate const> all, search_standing const& now) const {
    return call_(it_.get(), all, now);
  }

 private:
  std::shared_ptr<void const> it_;
  search_round (*call_)(void const*, std::span<waiting_candidate const>, search_standing const&) = nullptr;
};

}}  // namespace neap::v0
