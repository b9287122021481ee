// results.csv: one row a run, with MAGIS's columns in MAGIS's order and meaning (bytes; latencies in milliseconds; limits
// that were not given are empty). A profiled pair is a measurement; where nothing was measured, it repeats the simulation
// and says so in its is-prof column.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <cstring>
#include <optional>
#include <string>

namespace neap { inline namespace v0 {

struct results_row {
  struct measured {
    seconds_t latency;
    bytes_t peak_bytes;
  };
  std::string name;
  std::optional<bytes_t> device_memory_limit, memory_limit;
  std::optional<seconds_t> latency_limit;
  std::optional<double> latency_limit_ratio, memory_limit_ratio;
  bytes_t weight_bytes = 0;
  std::optional<measured> optimized, original;  // as run; absent: not run
  measured simulated_optimized{}, simulated_original{};
};

inline constexpr char const* results_header =
    "name,device memory limit,latency limit,memory limit,latency limit ratio,memory limit ratio,weight memory,"
    "opt-is-prof-result,opt-latency,opt-memory,opt-simul-latency,opt-simul-memory,"
    "ori-is-prof-result,ori-latency,ori-memory,ori-simul-latency,ori-simul-memory";

/// The row as text, without a line end.
std::string to_csv(results_row const& r);

/// Whether append_results would take a row, as far as that can be known before; says why not.
status can_append_results(std::string const& path);

/// Appends a row to a file; a new file begins with the header. A file with another header is refused; one that cannot
/// take the whole row keeps what it had.
status append_results(std::string const& path, results_row const& row);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/report/impl/results_csv.ipp>
#endif
