// Which capacities the exact planner asks about, and the threads that look ahead.
//
// The walk closes in on the smallest arena from both sides: the load bound first, then the middle between what has been
// tried and the best plan. A decision that runs out of nodes moves a soft bound only, so large gaps are crossed quickly
// and come back to with more nodes.
//
//   proved        soft                 best
//     |-- tried --|----------x----------|      x: asked next. Found: best moves down. Not: soft moves up.
//                 |          |----y-----|      y: asked after x, if x is not found
//                 |          |     |-z--|      z: asked after y, if y is not found either
//
// With threads, x, y and z are decided at once: on hard problems most questions run out of nodes, so what follows if they
// do is worth a try. Answers are taken in the order in which one thread asks; a probe that no longer lies on that way (x
// was found, so y was asked for nothing) is stopped and forgotten, with its nodes. So plan, bound, status and the count
// of nodes are those of one thread.
#pragma once

#include <neap/memory/exact/decider.hpp>
#include <neap/memory/exact/search.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// A moment after which searches end; none without a limit in seconds, and never at compile time.
class deadline {
 public:
  constexpr explicit deadline(double seconds)
      : timed_(!std::is_constant_evaluated() && seconds < std::numeric_limits<double>::infinity()) {
    if (timed_) end_ = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(seconds, 1e8));
  }
  constexpr bool passed() const { return timed_ && std::chrono::steady_clock::now() >= end_; }
  /// For searches, which ask at each node: the clock is read at one node in 256.
  constexpr bool operator()(std::int64_t nodes) const { return timed_ && nodes % 256 == 0 && passed(); }

 private:
  bool timed_;
  std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_{};
};

/// A value: a copy can be told answers that are only supposed, to see what would be asked then.
class capacity_walk {
 public:
  /// Between a lower bound and the arena of a plan; capacities are multiples of `unit`. `nodes`: of the first probes.
  /// `most`: nodes of any probe.
  constexpr capacity_walk(std::int64_t bound, std::int64_t best, std::int64_t unit, std::int64_t nodes = 16384,
                          std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : unit_(unit),
        nodes_(nodes),
        most_(most),
        best_(best),
        proved_((bound + unit - 1) / unit * unit),
        soft_(proved_ - unit) {}

  constexpr bool done() const { return proved_ >= best_; }
  /// Proved: no arena is smaller.
  constexpr std::int64_t bound() const { return std::min(proved_, best_); }

  /// The next question. Every question is to be answered by learn() before the next is asked.
  constexpr probe next() {
    if (best_ - soft_ <= unit_) {  // every step up to the best plan was tried: again, with more
      nodes_ *= 4, window_ *= 4;
      soft_ = std::max(proved_ - unit_, best_ - window_ * unit_);
    }
    if (first_) return {proved_, std::min(3 * nodes_, most_)};  // the bound is the likeliest answer: more for it
    auto const steps = (best_ - soft_) / unit_;                 // at least 2, or the bound itself is the next
    return {soft_ + std::max<std::int64_t>(1, steps / 2) * unit_, std::min(nodes_, most_)};
  }
  /// `arena`: of the plan found.
  constexpr void learn(probe asked, ruling said, std::int64_t arena) {
    first_ = false;
    if (said == ruling::found) best_ = arena;
    else soft_ = std::max(soft_, asked.capacity);
    if (said == ruling::impossible) proved_ = asked.capacity + unit_;
  }
  /// A plan that was found by other means.
  constexpr void learn_of(std::int64_t arena) { best_ = std::min(best_, arena); }

 private:
  std::int64_t unit_;
  std::int64_t nodes_;  // of a probe
  std::int64_t most_;   // of any
  std::int64_t best_;
  std::int64_t proved_;      // nothing below fits
  std::int64_t soft_;        // up to here probes have ended without a plan
  std::int64_t window_ = 1;  // steps below the best plan that a later round looks at
  bool first_ = true;
};

/// Threads that decide the question asked and those that may follow it.
class probe_team {
 public:
  probe_team(memory_problem const& p, decider const& decide, deadline late, unsigned threads)
      : problem_(p),
        late_(late),
        ahead_(threads) {
    for (unsigned t = 0; t < threads; ++t) members_.emplace_back([this, mine = decide]() mutable { work(mine); });
  }
  ~probe_team() {
    {
      std::lock_guard const lock(mutex_);
      for (auto& j : jobs_) j->unwanted = true;
      closed_ = true;
    }
    to_do_.notify_all();
  }
  probe_team(probe_team const&) = delete;
  probe_team& operator=(probe_team const&) = delete;

  /// The answer to what `walk` asks, of whose nodes `left` may be spent. Meanwhile the others look ahead.
  probe_answer operator()(capacity_walk walk, probe asked, std::int64_t left) {
    std::unique_lock lock(mutex_);
    for (;;) {
      look_ahead(walk, asked, left);
      if (jobs_.front()->state == done) break;
      to_do_.notify_all();
      told_.wait(lock);
    }
    if (jobs_.front()->failed) std::rethrow_exception(jobs_.front()->failed);
    return jobs_.front()->answer;
  }

 private:
  enum stage { waiting, running, done };
  struct job {
    probe asked;
    stage state = waiting;
    std::atomic<bool> unwanted{false};
    probe_answer answer{};
    std::int64_t arena = 0;
    std::exception_ptr failed{};
  };

  /// Makes jobs_ the question asked and those that will follow it if answers not known yet are `spent`.
  void look_ahead(capacity_walk walk, probe asked, std::int64_t left) {
    std::vector<std::shared_ptr<job>> wanted;
    for (std::size_t open = 0;;) {
      auto const known =
          std::find_if(jobs_.begin(), jobs_.end(), [&](auto const& j) { return j && j->asked == asked; });
      if (known != jobs_.end()) wanted.push_back(std::move(*known));
      else wanted.push_back(std::make_shared<job>()), wanted.back()->asked = asked;
      job const& j = *wanted.back();
      if (j.state == done) walk.learn(asked, j.answer.said, j.arena), left -= j.answer.nodes;
      else walk.learn(asked, ruling::spent, 0), left -= asked.nodes, ++open;
      if (open >= ahead_ || j.failed || walk.done() || left <= 0) break;
      asked = walk.next();
      asked.nodes = std::min(asked.nodes, left);
    }
    for (auto& j : jobs_)
      if (j) j->unwanted = true;
    jobs_ = std::move(wanted);
  }

  void work(decider& decide) {
    std::unique_lock lock(mutex_);
    while (!closed_) {
      auto const next = std::find_if(jobs_.begin(), jobs_.end(), [](auto const& j) { return j->state == waiting; });
      if (next == jobs_.end()) {
        to_do_.wait(lock);
        continue;
      }
      auto const mine = *next;
      mine->state = running;
      lock.unlock();
      probe_answer answer;
      std::exception_ptr failed;
      std::int64_t arena = 0;
      try {
        answer = decide(mine->asked, 1, [&](std::int64_t nodes) {
          return nodes % 256 == 0 && (mine->unwanted.load(std::memory_order_relaxed) || late_.passed());
        });
        if (answer.said == ruling::found) arena = end_of(problem_, answer.offsets);
      } catch (...) { failed = std::current_exception(); }
      lock.lock();
      mine->answer = std::move(answer), mine->arena = arena, mine->failed = failed;
      mine->state = done;
      told_.notify_one();
    }
  }

  memory_problem const& problem_;
  deadline late_;
  std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable to_do_, told_;
  std::vector<std::shared_ptr<job>> jobs_;  // in the order in which they will be asked
  bool closed_ = false;
  std::vector<std::jthread> members_;
};

}  // namespace neap::inline v0::detail
