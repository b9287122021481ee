// One graph under several limits of memory: what a little more memory buys, by plans to run.
#pragma once

#include <neap/core/error.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/optimize/warm_start.hpp>

#include <vector>

namespace neap { inline namespace v0 {

/// The answers of optimize() under limits that rise, each with the whole budget of the options:
///
///   auto const answers = sweep(step, moves, {memory_limit::of_original(0.4), memory_limit::of_original(0.6)},
///                              time_budget{10s});
///
/// Each answer is a warm start of the next search. So a limit fits where a tighter one did, and its latency is no higher.
/// Throws neap::error as optimize() does, and where a limit is lower than the one before it.
template <class P, class Moves, class... Option>
auto sweep(P const& step, Moves const& moves, std::vector<memory_limit> const& limits, Option const&... option) {
  std::vector<decltype(optimize(step, moves, option...))> answers;
  for (auto const& limit : limits) {
    if (answers.empty()) {
      answers.push_back(optimize(step, moves, option..., limit));
      continue;
    }
    auto const& before = answers.back();
    if (limit.resolve(before.original.peak_bytes) < before.memory_limit_bytes)
      throw_error({"sweep: limit ", answers.size(), " is lower than the one before it"});
    answers.push_back(optimize(step, moves, option..., limit, warm_start(before)));
  }
  return answers;
}

}}  // namespace neap::v0
