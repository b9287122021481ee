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
std::optional<plan> plan_like(plan const& like, op_graph const& from, op_graph const& to);

/// A plan in the best order found without a search: nothing is computed again or moved.
plan plan_in_order(op_graph const& g, memory_options const& options = {});

/// What a search for a plan within a number of bytes has found.
struct plan_found_within {
  std::optional<plan> found;
  bytes_t lower_bound_bytes = 0;  // proved: no plan of these moves needs less
};

/// A plan within `limit` bytes, resident ones among them, by what `like` does, too: it may run ops again, transfer
/// where `like` does (or, in the second half of the time, if `transfers` says so), and run ops in parts where `like`
/// does. A short search is tried first; then one that ends when a plan fits. Where the time does not run out, it is the
/// same plan each time.
plan_found_within plan_within(op_graph const& g, bytes_t limit, plan const& like, time_budget time = {},
                              bool transfers = false);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/plan_like.ipp>
#endif
