// Whether a plan is right: an independent sweep over time that trusts nothing but the records and the offsets.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// What is known of a plan's offsets without looking at two records at once.
template <class Problem>
status check_each(Problem const& p, memory_plan const& plan) {
  if (auto const wrong = fault_of(p); !wrong.empty()) return failure{wrong.message()};
  if (plan.offsets.size() != p.count())
    return failure{detail::text_of({"the plan has ", plan.offsets.size(), " offsets for ", p.count(), " records"})};
  auto const name = [](std::size_t i) { return "record " + std::to_string(i); };
  std::int64_t top = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    std::int64_t const at = plan.offsets[i];
    std::int64_t end = 0;
    if (at < 0) return failure{detail::text_of({name(i), ": its offset ", at, " is negative"})};
    if (__builtin_add_overflow(at, p.size[i], &end)) return failure{name(i) + ": its end overflows"};
    if (at % p.alignment_of(i) != 0)
      return failure{detail::text_of({name(i), ": its offset ", at, " is not a multiple of ", p.alignment_of(i)})};
    if (p.fixed_of(i) != any_offset && at != p.fixed_of(i))
      return failure{detail::text_of({name(i), ": it lies at ", at, ", fixed at ", p.fixed_of(i)})};
    if (p.occupies(i) || p.fixed_of(i) != any_offset) top = std::max(top, end);
  }
  if (top > plan.arena_bytes)
    return failure{detail::text_of({"the arena of ", plan.arena_bytes, " bytes ends before the records, at ", top})};
  if (plan.lower_bound_bytes > plan.arena_bytes)
    return failure{detail::text_of({"the arena of ", plan.arena_bytes, " bytes is below the bound it claims"})};
  if (plan.status == plan_status::optimal && plan.lower_bound_bytes != plan.arena_bytes)
    return failure{"the plan claims to be optimal, and its bound is below its arena"};
  return {};
}

}  // namespace detail

/// Another record whose fixed offset has it share a byte with record i, which is fixed, too, at some moment; count() if there
/// is none. O(records + gaps of all times gaps of i).
std::size_t colliding_fixed_record(memory_problem const& p, std::size_t i);

/// The first fault of a plan as one line, or nothing if it is right: one offset a record, none negative, aligned, fixed
/// offsets kept, no two records that live at one moment sharing a byte, the arena large enough and not below the
/// claimed bound. A plan without offsets has nothing to be wrong. O(n log n) time, O(n) memory.
status verify(memory_problem const& p, memory_plan const& plan);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/check/impl/check.ipp>
#endif
