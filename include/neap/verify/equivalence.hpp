// The first half of the verifier: does the planned graph compute what the original computes, each update once?
#pragma once

#include <neap/verify/partition.hpp>
#include <neap/verify/violation.hpp>

#include <string>

namespace neap { inline namespace v0 { namespace detail::plan_check {

std::string describe(op_graph const& g, op_id o);

/// Compares the planned graph with the original; whether some of it is computed otherwise. Where parts are not those of the
/// original's ops, they may be those of what rules have made of it: then by way of that program (whole_program.hpp).
/// O((ops + edges) log ops), and what evaluating rewritten pieces costs.
bool check_what_is_computed(op_graph const& original, op_graph const& g, hash_key key, verification& out);

}}}  // namespace neap::v0::detail::plan_check

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/verify/impl/equivalence.ipp>
#endif
