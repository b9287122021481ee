// The numbers of the exact search and its switches. bench/memory_exact.cpp measures what a change is worth.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

/// Each technique of the search can be switched off, so that its worth can be measured. Off never changes an answer.
struct search_tricks {
  bool decompose = true;         ///< split nodes at moments that no unplaced record crosses
  bool bound_after_lift = true;  ///< test the bound again when the head has been lifted
  bool lift = true;              ///< lift to the lowest top beneath; else only past the head's own limit
  bool twins = true;             ///< lift the twins of a lifted head with it
  bool backjump = true;          ///< return from a failure to the last placement in its conflict set
  bool skyline = true;           ///< memory/exact/skyline_search.hpp beside the orders
  bool meeting = true;           ///< skyline: lift to the contact heights of two sections
  bool remember = true;          ///< skyline: do not search a failed state again
  bool lift_at_once = true;      ///< after many lifts, lift all unsupported records at once
  std::int64_t first_run = 10;   ///< nodes a record in the first run before a restart; 0: no restarts
};

namespace detail {

/// Figures are of MiniMalloc's nine problems and of planted packings, unless another reason is stated.
struct exact_policy {
  // Slices of the searches that decide one capacity in turn.
  static constexpr std::int64_t first_slice_nodes = 512;  ///< of a search with weight 1; doubled after each round
  static constexpr std::int64_t max_slice_nodes = std::int64_t{1} << 40;  ///< far below overflow with any weight
  static constexpr std::int64_t ordered_weight = 4;      ///< search in an order that keeps conflict sets: cheap nodes
  static constexpr std::int64_t unexplained_weight = 1;  ///< the same for more records than conflict sets are kept for
  static constexpr std::int64_t skyline_weight = 3;      ///< nodes are dearer, and fewer are needed
  static constexpr std::size_t unbroken_orders = 2;      ///< the first orders run without restarts

  // Search in an order.
  static constexpr std::size_t max_explained = 1024;     ///< records; an explanation takes a bit for each
  static constexpr std::uint32_t lifts_before_all = 32;  ///< one by one; as costly as lifting all unsupported at once

  // Skyline search.
  static constexpr std::uint32_t rounds_before_all = 8;  ///< rounds of lifts, as above
  static constexpr std::uint32_t max_summed = 7;         ///< records on one side of a boundary; sums double with each
  static constexpr std::size_t max_failed_states = std::size_t{1} << 19;  ///< of 16 bytes, at half load: 16 MiB

  // Restarts.
  static constexpr std::int64_t run_growth = 8;  ///< a run is longer than the one before by 1 / 8
  static constexpr double disturbance = 0.3;     ///< of a record's rank after a restart, in parts of the records
  static constexpr double conflict_shift = 0.5;  ///< of the rank of records in the worst section, the same way

  // Capacities asked about.
  static constexpr std::int64_t first_probe_nodes = 16384;  ///< some milliseconds
  static constexpr std::int64_t bound_probe_factor = 3;     ///< more for the load bound, the likeliest answer
  static constexpr std::int64_t probe_growth = 4;           ///< of nodes and of the window, when all steps were tried
  static constexpr std::int64_t least_probes = 3;           ///< a probe takes at most a third of the budget

  // Improvement of the first plan.
  static constexpr double placements_a_second = 250'000;  ///< of a few thousand records: 4 us each
  static constexpr double few_records = 4096;             ///< placements of more take longer in proportion

  // Windows in gaps.
  static constexpr std::int64_t whole_share = 4;            ///< a quarter of the nodes first, records whole in windows
  static constexpr std::size_t max_pairs = 1'000'000;       ///< of colliding records; tables are quadratic
  static constexpr std::int64_t propagations_a_node = 256;  ///< count as one node

  // Clocks and flags are read at one node of so many.
  static constexpr std::int64_t nodes_between_stops = 64;
};

}  // namespace detail

}}  // namespace neap::v0
