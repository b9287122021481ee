// The vocabulary of memory planning: usage records in, offsets out. Data only; the algorithms live in neap/memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

/// No fixed offset: the planner chooses.
inline constexpr std::int64_t any_offset = -1;

/// An interval of time inside a record's life in which it needs no memory, or only the bytes
/// [window_lower, window_upper) of itself. All half-open; an empty window means no bytes at all.
struct live_gap {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t window_lower = 0;
  std::int64_t window_upper = 0;
  friend constexpr bool operator==(live_gap const&, live_gap const&) = default;
};

/// A request for memory: `size` bytes from moment `lower` up to, but not including, moment `upper`.
/// Two records that live at one moment may not overlap in addresses.
struct usage_record {
  std::int64_t lower = 0;            ///< first moment alive
  std::int64_t upper = 0;            ///< first moment no longer alive
  std::int64_t size = 0;             ///< bytes
  std::int64_t alignment = 1;        ///< the offset is a multiple of this many bytes
  std::int64_t offset = any_offset;  ///< fixed offset in bytes, or any_offset
  std::int32_t pool = -1;            ///< the required pool, or -1 for any (memory/forms/pools.hpp)
  std::int32_t group = -1;       ///< records of one group lie side by side, in order (memory/forms/groups.hpp), or -1
  std::vector<live_gap> gaps{};  ///< within [lower, upper), ascending, apart
  friend bool operator==(usage_record const&, usage_record const&) = default;
};

enum class plan_status : std::uint8_t {
  optimal,       ///< valid, and no plan has a smaller arena
  feasible,      ///< valid; whether a smaller arena exists is not known
  infeasible,    ///< proved that no plan exists (within the capacity, if one was given); `why` says what is in the way
  budget_spent,  ///< no plan was found within the budget, nor was it proved that none exists
};

/// True where the plan's offsets can be used.
constexpr bool has_offsets(plan_status s) { return s == plan_status::optimal || s == plan_status::feasible; }

/// What is wrong, and with which records. (Not a std::string: plans are made at compile time too.)
struct plan_fault {
  std::string_view what{};   ///< empty: nothing is wrong; always a literal
  std::int64_t record = -1;  ///< index of the record, or -1
  std::int64_t other = -1;   ///< index of a second one, or -1

  constexpr bool empty() const { return what.empty(); }
  /// One line: "record 3: its size is negative".
  std::string message() const;
  friend constexpr bool operator==(plan_fault const&, plan_fault const&) = default;
};

/// Where everything goes.
struct memory_plan {
  std::vector<std::int64_t> offsets;   ///< bytes, in the order of the records; empty unless has_offsets(status)
  std::int64_t arena_bytes = 0;        ///< the largest offset + size
  std::int64_t lower_bound_bytes = 0;  ///< proved: no arena is smaller
  plan_status status = plan_status::feasible;
  std::int64_t work = 0;                ///< nodes of search (0 for greedy planners)
  std::int64_t moment = 0;              ///< a moment at which the living records attain the load bound
  plan_fault why{};                     ///< where there are no offsets: what stands in the way
  std::vector<std::size_t> conflict{};  ///< an irreducible infeasible subset of the records, on request
  friend bool operator==(memory_plan const&, memory_plan const&) = default;
};

constexpr bool has_offsets(memory_plan const& p) { return has_offsets(p.status); }

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/plan/impl/memory_plan.ipp>
#endif
