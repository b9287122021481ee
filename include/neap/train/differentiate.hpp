// Reverse-mode differentiation on graphs: from a loss to the gradients of wanted values, as ops added to the same graph
// (Linnainmaa 1970; the rules are the operators' own). The eager tape uses it on the graph it recorded, tracing on the
// graph it traced: there is one set of rules.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/movement.hpp>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {
/// The values of bf16 and f16 whose gradients are added in f32: those that get more than two at one place (parts by slices
/// meet where they overlap), or two that a cast takes on in a wider type. Two others are added with one rounding as they are.
plain_vector<bool> summed_in_f32(op_graph const& g, value_id loss, plain_vector<bool> const& needed,
                                 plain_vector<bool> const& stops);
}  // namespace detail

/// Adds to the graph under edit what computes d loss / d v for each wanted value v (for a loss of several elements: of
/// their sum), and gives those gradients in the order of `wanted`. A value that does not reach the loss gets zeros, or
/// nothing<value_id> where `zeros` is false. No gradient goes through the values of `fixed`. `outdated`: pairs of a value
/// that was meant and a fixed one that was read in its place, because its memory had been updated: refused where a
/// gradient would have to go through the first; in the order of the ops that make the second.
/// Contributions of several readers are added in falling order of the readers' ids, so the sum is always the same; those
/// of bf16 and f16 in f32, rounded once.
/// Ops must be numbered in an order in which they can run, as tracing and recording number them. Throws neap::error if
/// an op on the way has no gradient or updates in place. O(ops + edges) rules, each op's at most once.
std::vector<value_id> differentiate(graph_editor& edit, value_id loss, std::span<value_id const> wanted,
                                    bool zeros = true, std::span<value_id const> fixed = {},
                                    std::span<std::pair<value_id, value_id> const> outdated = {});

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/differentiate.ipp>
#endif
