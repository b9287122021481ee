// Ops in words, what is in use at the peak of a candidate, and what its time is made of.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/external.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/optimize/search_summary.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// "matmul"; of an op from a file its target, of an external one the name that its owner has for it.
std::string name_of_operator(op_graph const& g, op_id o);
/// "matmul blocks.3.up #41".
inline std::string name_of_op(op_graph const& g, op_id o) {
  auto s = name_of_operator(g, o);
  if (auto const n = g.name(o); !n.empty() && n != s) s += " " + std::string(n);
  return s + " #" + std::to_string(index(o));
}

/// What is in use where the peak of a candidate is reached first. O(storages log storages).
peak_content peak_content_of(candidate const& c);

/// The time of each operator that computes, the longest first, of equals by name. O(ops log operators).
std::vector<operator_time> times_of_operators(candidate const& c);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/op_names.ipp>
#endif
