// The bodies of <neap/optimize/search.hpp>: which orders it starts from, and what its answer says in words. How it searches stands in
// best_first.hpp.
#pragma once

#include <neap/optimize/search.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/pin_rules.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/optimize/best_first.hpp>
#include <neap/optimize/held_at_peak.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/schedule/exact_windows.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Throws neap::error for numbers of the options that no search can run with: among them negative ones, which became large.
inline void require_counts(search_options const& o) {
  constexpr auto most = static_cast<std::size_t>(PTRDIFF_MAX);
  auto const refuse = [](char const* what, auto x, char const* why) {
    throw_error({"optimize: ", what, " of ", x, ": ", why});
  };
  if (o.iterations > most && o.iterations != SIZE_MAX)
    refuse("iterations", static_cast<std::ptrdiff_t>(o.iterations), "a number of at least 0");
  if (o.width > most && o.width != SIZE_MAX)
    refuse("width", static_cast<std::ptrdiff_t>(o.width), "a number of at least 0");
  if (auto const n = static_cast<int>(o.threads); n < 0) refuse("threads", n, "a number of at least 0");
  for (auto [what, x] : {std::pair{"progress_every", o.progress_every},
                         std::pair{"seconds_an_op_afterwards", o.seconds_an_op_afterwards}})
    if (!(x >= 0)) refuse(what, x, "a number of seconds, at least 0");
}

NEAP_FUNC optimized search_from(op_graph const& program, any_mutator const& moves, cost_model_ref cost,
                                schedule const& original, std::span<schedule const> seeds,
                                search_options const& options, scheduler_ref scheduler) {
  auto const check = [&](schedule const& s) {
    if (auto const valid = check_order(program, s); !valid) throw_error({"optimize: ", valid.message()});
  };
  check(original);
  for (auto const& s : seeds) check(s);
  require_counts(options);
  if (auto const wrong = wrong_number(options.policy); !wrong.empty())
    throw_error({"optimize: search_policy: ", wrong});
  for (auto o : original.order) as_time(cost(program, o), o, "optimize");
  auto found = best_first(program, moves, cost, scheduler, options).run(original, seeds);
  if (!found.fits)
    for (auto const& h : held_at_peak(found.best)) found.reasons.push_back(text_of(h));
  return found;
}

/// Searches from the original order, which is made the order of the ids if it is empty, from the memory-greedy one, of
/// small programs from the best one, and from the scheduler's.
inline optimized search_from_orders(op_graph const& program, any_mutator const& moves, cost_model_ref cost,
                                    schedule& original, search_options const& options, scheduler_ref scheduler) {
  if (original.order.empty()) original = given_order{}(program);
  std::vector<schedule> seeds{memory_greedy{}(program, options.memory)};
  if (constexpr auto most = exact_windows::max_ops; program.op_count() <= most && check_order(program, original))
    seeds.push_back(exact_windows{.ops = most}(program, original, options.memory));
  // As it came, but for updates, which run as soon as their gradients are there.
  if (program.has_updates())
    if (auto early = hoist(flow_facts(program, no_cost{}), original); early != original)
      seeds.push_back(std::move(early));
  if (scheduler) {
    seeds.push_back(scheduler(program));
    if (auto const valid = check_order(program, seeds.back()); !valid)
      throw_error({"optimize: the scheduler's order is wrong: ", valid.message()});
  }
  return search_from(program, moves, cost, original, seeds, options, scheduler);
}

NEAP_FUNC optimized search_with_pins(op_graph const& program, any_mutator const& moves, cost_model_ref cost,
                                     schedule& original, search_options& options, scheduler_ref scheduler) {
  if (options.pins.empty()) return search_from_orders(program, moves, cost, original, options, scheduler);
  auto const with_pins = pinned(program, options.pins);
  options.warm.rebind(program.digest(), with_pins.digest());
  auto found = search_from_orders(with_pins, moves, cost, original, options, scheduler);
  found.placed.original = program.digest();
  return found;
}

}}}  // namespace neap::v0::detail
