// What holds a peak: values that wait there for late readers and that no recomputation may free, with the reason.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/plan/candidate.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// A storage that is idle at the peak and stays, since the op that makes it may not run again.
struct held_storage {
  op_id op;
  std::string name;  // "blocks.3.allreduce"; without a name: the operator and its number
  std::string why;   // "run_once", "keep", "it has effects", ...
  bytes_t bytes = 0;
};

namespace detail {

/// Why an op that may not run again may not.
std::string why_not_again(op_graph const& g, op_id o);

/// Those of a candidate, the largest first. O(ops + edges).
std::vector<held_storage> held_at_peak(candidate const& c);

/// "blocks.3.allreduce may not run again: run_once (64 bytes)".
std::string text_of(held_storage const& h);

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/held_at_peak.ipp>
#endif
