// Pins, for the verifier: whether a planned graph does to an op or a value what a pin of the original forbids (ir/pins.hpp).
// The original's pins count, not those that the plan says. Which op of the original a planned op is, its origin says, which
// check_what_is_computed() has compared. It also finds an op that computes a pinned one's result otherwise, or under
// another origin.
#pragma once

#include <neap/verify/value_numbers.hpp>
#include <neap/verify/violation.hpp>

namespace neap { inline namespace v0 { namespace detail::plan_check {

/// Reports what pins of the original forbid. O(ops), and for each store the helpers of fission before it.
void check_pins(op_graph const& original, op_graph const& g, verification& out);

}}}  // namespace neap::v0::detail::plan_check

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/verify/impl/pins.ipp>
#endif
