// optimize: from a graph, a pipeline of mutators and limits to the best candidate found. How it searches stands in
// best_first.hpp (called by impl/search.ipp), options and answer in search_options.hpp; external graphs come in by external.hpp.
#pragma once

#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/optimize/external.hpp>
#include <neap/optimize/planned_once.hpp>
#include <neap/optimize/search.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>

#include <concepts>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

template <class T>
decltype(auto) graph_in(T const& x) {
  if constexpr (requires { x.program; }) return (x.program);
  else return (x);
}
template <class P>
using graph_type_in = std::remove_cvref_t<decltype(graph_in(std::declval<P const&>()))>;

// What kind of option something is. A scheduler and a progress callback may both be callable with anything (a template
// operator), so what gives anything but a number is no callback; a cost model is called with an op beside the graph.
template <class O>
concept plain_option = std::same_as<O, schedule> || std::same_as<O, search_options>;
template <class O>
concept progress_option = !plain_option<O> && requires(O& f, search_progress const& p) {
  f(p);
  requires std::is_void_v<decltype(f(p))> || std::is_arithmetic_v<decltype(f(p))>;
};
template <class O>
concept settable_option = !progress_option<O> && !std::invocable<O const&, search_progress const&> &&
                          requires(search_options& to, O const& o) { to.set(o); };
template <class O, class G>
concept cost_option = !plain_option<O> && cost_model_for<O, G>;
template <class O, class G>
concept scheduler_option =
    !plain_option<O> && !progress_option<O> && !settable_option<O> && !cost_option<O, G> && scheduler_for<O, G>;

template <class G>
struct is_cost {
  template <class O>
  static constexpr bool holds = cost_option<O, G>;
};
template <class G>
struct is_scheduler {
  template <class O>
  static constexpr bool holds = scheduler_option<O, G>;
};
/// The first option that is of a kind, or otherwise.
template <class Kind, class Otherwise>
constexpr Otherwise const& option_among(Otherwise const& otherwise) {
  return otherwise;
}
template <class Kind, class Otherwise, class First, class... Rest>
constexpr decltype(auto) option_among(Otherwise const& otherwise, First const& first, Rest const&... rest) {
  if constexpr (Kind::template holds<First>) return (first);
  else return option_among<Kind>(otherwise, rest...);
}

/// `G` is the graph that costs are of; neap's own, or an external one.
template <class G, class Option>
void set_option(search_options& to, schedule& order, Option const& o) {
  constexpr bool known = plain_option<Option> || progress_option<Option> || settable_option<Option> ||
                         cost_option<Option, G> || cost_option<Option, op_graph> || scheduler_option<Option, op_graph>;
  if constexpr (!known && !std::same_as<G, op_graph>) {
    static_assert(!scheduler_for<Option, G>,
                  "neap: this scheduler takes the external graph, and cannot order what a search makes of it: write  "
                  "neap::schedule operator()(neap::graph const&) const");
    static_assert(
        scheduler_for<Option, G> || known,
        "neap: optimize does not know this option. It takes limits, a time_budget, memory_options, "
        "search_options, a std::stop_token, a callback void(neap::search_progress const&), a schedule, a cost "
        "model  double operator()(G const&, neap::op_id) const  of the external graph G, and a scheduler  "
        "neap::schedule operator()(neap::graph const&) const");
  } else {
    static_assert(known,
                  "neap: optimize does not know this option. It takes limits, a time_budget, memory_options, "
                  "search_options, a std::stop_token, a callback void(neap::search_progress const&), a schedule, "
                  "a cost model  double operator()(neap::graph const&, neap::op_id) const  and a scheduler  "
                  "neap::schedule operator()(neap::graph const&) const");
  }
  if constexpr (std::same_as<Option, schedule>) order = o;
  else if constexpr (progress_option<Option> || settable_option<Option>) to.set(o);
}
template <class Option>
void set_all_options(search_options& to, Option const& o) {
  if constexpr (std::same_as<Option, search_options>) to = o;
}

}  // namespace detail

/// Searches with everything given: a cost model, the order that ratios refer to, other orders to start from, and who
/// orders mutated graphs (as_mutated{}: each mutation does). Throws neap::error if an order is wrong: `original`, one of
/// `seeds`, a scheduler's or a mutation's; if a cost is no time; and if no search can run with a number of the policy.
template <class Moves, class Cost, class Scheduler = as_mutated>
optimized optimize_from(op_graph const& program, Moves const& moves, Cost const& cost, schedule const& original,
                        std::span<schedule const> seeds, search_options const& options,
                        Scheduler const& scheduler = {}) {
  detail::check_leaf<Moves>();
  static_assert(detail::check_cost_model<Cost, op_graph>());
  return detail::search_from(program, any_mutator(moves), detail::cost_model_ref(cost), original, seeds, options,
                             detail::scheduler_ref(scheduler));
}

namespace detail {

inline constexpr as_mutated no_scheduler{};

/// What the options of one call of optimize make.
struct search_request {
  search_request();
  search_request(search_request const&) = delete;
  search_request& operator=(search_request const&) = delete;
  ~search_request();

  search_options options;
  schedule original;  // empty: the order of the ids
};

/// Where no cost model is given: the graph's own latencies, else the roofline of a 2-core host.
given_or<roofline> const& default_cost();

/// The same from the orders that search_from_orders knows.
template <class Moves, class Cost, class Scheduler>
optimized search(op_graph const& program, Moves const& moves, Cost const& cost, search_request& request,
                 Scheduler const& scheduler) {
  check_leaf<Moves>();
  static_assert(check_cost_model<Cost, op_graph>());
  return search_with_pins(program, any_mutator(moves), cost_model_ref(cost), request.original, request.options,
                          scheduler_ref(scheduler));
}

}  // namespace detail

/// Searches for the best candidate of a graph (or of a training step) under limits:
///
///   auto found = optimize(step, moves, memory_limit{2_GiB}, time_budget{30s});
///
/// Options, in any order:
///   - memory_limit, latency_limit, time_budget, memory_options, std::stop_token;
///   - pin_rules: pins of ops and values by pattern or id, beside those of the graph. The plan is one of the graph as it
///     was given; a verifier checks these pins too if it is given that of pinned(graph, rules);
///   - a warm_start: plans of earlier searches of the graph, under other limits perhaps; the answer is no worse than one of
///     them that meets the limits (optimize/warm_start.hpp);
///   - a progress callback, void(search_progress const&);
///   - a strategy in place of the search's own: `beam{.width = 8}` (optimize/beam.hpp), or one's own (search_strategy.hpp);
///   - a schedule: the order that ratios refer to (default: the order of the ids);
///   - a scheduler, `schedule operator()(graph const&) const`: its order of the graph is one more to start from, and every
///     mutated graph runs in its order (default: in the one that the mutation gives). One that takes any graph says
///     that it returns a schedule (`template <class G> schedule operator()(G const&) const`);
///   - a cost model (default: the graph's own latencies, else the roofline of a 2-core host);
///   - a search_policy: which stages run, and their numbers, for experts (optimize/search_policy.hpp);
///   - search_options: all of them; the others given beside it count more.
/// Without a limit of memory or latency the smallest peak is looked for, whatever its latency.
/// A limit that cannot be met is no error: `fits` is false. Throws neap::error if a schedule, a scheduler or a
/// mutation gives what is no order of the graph, and if a plan of a warm start is of another graph or breaks a pin.
///
/// A graph of another type is searched through its graph_traits; the answer then is an optimized_external, in that
/// graph's own ids (optimize/external.hpp). A cost model of it prices its ops (default: its own seconds, else the
/// roofline); stores and loads, which it does not know, cost what a model that also takes a neap::graph gives, or a
/// second one that takes only that (default: the link of a 2-core host's roofline).
template <class P, class Moves, class... Option>
auto optimize(P const& step, Moves const& moves, Option const&... option) {
  using G = detail::graph_type_in<P>;
  detail::search_request request;
  auto& options = request.options;
  (detail::set_all_options(options, option), ...);  // first: the others are changes to it, wherever they stand
  auto const& otherwise = detail::default_cost();
  if constexpr (std::same_as<G, op_graph>) {
    (detail::set_option<G>(options, request.original, option), ...);
    auto const& cost = detail::option_among<detail::is_cost<G>>(otherwise, option...);
    auto const& scheduler = detail::option_among<detail::is_scheduler<G>>(detail::no_scheduler, option...);
    return detail::search(detail::graph_in(step), moves, cost, request, scheduler);
  } else if constexpr (detail::is_external_graph<G>()) {
    if constexpr (detail::check_leaf<Moves>()) {
      G const& owner = detail::graph_in(step);
      (detail::set_option<G>(options, request.original, option), ...);
      auto const& cost = detail::option_among<detail::is_cost<G>>(otherwise, option...);
      auto const& transfers = detail::option_among<detail::is_cost<op_graph>>(otherwise, option...);
      auto const& scheduler = detail::option_among<detail::is_scheduler<op_graph>>(detail::no_scheduler, option...);
      auto image = image_of(owner, [&](op_id o) { return static_cast<seconds_t>(cost(owner, o)); });
      auto found = detail::search(image.program, moves, detail::image_cost{transfers}, request, scheduler);
      auto told = detail::tell_owner(owner, image, std::move(found));
      told.original = simulate(owner, request.original, cost, options.memory);
      return told;
    }
  }
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/optimize.ipp>
#endif
