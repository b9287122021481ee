// What stays in memory at a candidate's peak only because the op that makes it may not run again, with the reason.
#pragma once

#include <neap/ir/why_once.hpp>
#include <neap/plan/candidate.hpp>
#include <neap/plan/schedule.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// One line a storage that is in use at the peak, untouched by the op there, and cannot be recomputed; the largest first,
/// at most `most`: "conv2 (1048576 bytes at the peak) may not run again: ...". O(ops + edges).
std::vector<std::string> once_reasons(candidate const& c, std::size_t most = 3);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/once_reasons.ipp>
#endif
