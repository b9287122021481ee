// A plan for a program of other sizes, after the plan of one that it equals otherwise: the same order, recomputation
// and transfers, other bytes. The last, smaller batch of an epoch is planned so in the time of a simulation. Parts are
// of one size: after a plan in parts, a smaller batch is planned anew.
#pragma once

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/stored.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/optimize/planned_once.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Whether two graphs have the same operators between the same values; attributes and sizes may differ.
bool is_like(op_graph const& a, op_graph const& b);

/// `planned`, a graph that was made of `from` by copies and transfers of its ops, with the sizes of `to` in place of
/// those of `from`.
op_graph retargeted(op_graph const& planned, op_graph const& from, op_graph const& to);

}  // namespace detail

/// A plan of `to` by the order of `like`, a plan of `from`; nothing if the programs differ in more than sizes, or the
/// plan runs ops in parts.
template <class Ops>
std::optional<plan<basic_graph<Ops>>> plan_like(plan<basic_graph<Ops>> const& like, basic_graph<Ops> const& from,
                                                basic_graph<Ops> const& to) {
  if (like.original != from.digest() || like.graph.runs_in_parts() || !detail::is_like(from, to)) return std::nullopt;
  candidate<basic_graph<Ops>> c{basic_graph<Ops>(detail::retargeted(like.graph, from, to)), like.order(), {}};
  c.result = simulate(c.graph, c.order, roofline::host(1), like.options);
  return make_plan(std::move(c), to, like.options);
}

/// A plan in the best order found without a search: nothing is computed again or moved.
template <class Ops>
plan<basic_graph<Ops>> plan_in_order(basic_graph<Ops> const& g, memory_options const& options = {}) {
  candidate<basic_graph<Ops>> c{g, memory_greedy{}(g, options), {}};
  c.result = simulate(c.graph, c.order, roofline::host(1), options);
  return make_plan(std::move(c), g, options);
}

/// What a search for a plan within a number of bytes has found.
template <class G>
struct plan_found_within {
  std::optional<plan<G>> found;
  bytes_t lower_bound_bytes = 0;  // proved: no plan of these moves needs less
};

/// A plan within `limit` bytes, resident ones among them, by what `like` does, too: it may run ops again, transfer
/// where `like` does (or, in the second half of the time, if `transfers` says so), and run ops in parts where `like`
/// does. A short search is tried first; then one that ends when a plan fits. Where the time does not run out, it is the
/// same plan each time.
template <class Ops>
plan_found_within<basic_graph<Ops>> plan_within(basic_graph<Ops> const& g, bytes_t limit,
                                                plan<basic_graph<Ops>> const& like, time_budget time = {},
                                                bool transfers = false) {
  using clock = std::chrono::steady_clock;
  auto const begin = clock::now();
  bool moves_data = false;
  for (auto o : like.graph.ops()) moves_data = moves_data || like.graph.template as<op::store>(o);
  bool const moves_at_last = transfers && !moves_data;
  plan_found_within<basic_graph<Ops>> answer;

  // The limit goes down from try to try: what fits by its peak need not fit with addresses.
  auto const fits = [&](bytes_t to, std::size_t iterations, bool swaps, double until) {
    std::stop_source enough;
    search_options search;
    search.memory_at_most = memory_limit(to);
    search.memory = like.options;
    search.iterations = iterations;
    search.stop = enough.get_token();
    search.time = time_budget(
        std::max<std::chrono::duration<double>>(std::chrono::duration<double>(until) - (clock::now() - begin), {}));
    if (iterations == SIZE_MAX)
      search.progress = [&](search_progress const& p) {
        if (p.fits) enough.request_stop();
      };
    auto made = optimize(g,
                         chain(zip(rematerialize{} | truncate(24), swap{1e9} | truncate(swaps ? 8 : 0)),
                               fission{} | truncate(like.graph.runs_in_parts() ? 8 : 0) | later),
                         search);
    answer.lower_bound_bytes = made.placed.lower_bound_bytes;
    if (made.placed.arena_bytes <= limit) answer.found = std::move(made.placed);
    return answer.found.has_value();
  };
  auto const has_time = [&](double until) {
    return std::chrono::duration<double>(clock::now() - begin).count() < until && answer.lower_bound_bytes <= limit;
  };
  double const all = time.limit.count(), half = moves_at_last ? all / 2 : all;
  if (has_time(half) && fits(limit, 400, moves_data, half)) return answer;
  for (bytes_t to = limit; has_time(half); to -= to / 64)
    if (fits(to, SIZE_MAX, moves_data, half)) return answer;
  for (bytes_t to = limit; moves_at_last && has_time(all); to -= to / 64)
    if (fits(to, SIZE_MAX, true, all)) return answer;
  return answer;
}

NEAP_INSTANTIATE_ONCE(plan_found_within<graph> plan_within(graph const&, bytes_t, plan<graph> const&, time_budget,
                                                           bool));
NEAP_INSTANTIATE_ONCE(std::optional<plan<graph>> plan_like(plan<graph> const&, graph const&, graph const&));
NEAP_INSTANTIATE_ONCE(plan<graph> plan_in_order(graph const&, memory_options const&));

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/plan_like.ipp>
#endif
