// A search's answer in a few lines for a terminal: whether it fits and by how much, what takes the time, what holds the
// peak, what a little more memory or time would buy, what is proved.
//
//   std::cout << found;            // or found.summary()
//
//   fits: 7.93 MiB of 8.05 MiB, 121.0 KiB to spare
//   latency: 1.57 ms, 57.4 % above the original 0.997 ms
//   time: matmul 911 us (58.0 %, 24 ops), gelu 302 us (19.2 %, 8 ops), 6 other operators 357 us
//   peak: at matmul blocks.3.up #41, held by gelu blocks.2.act #30 (2.00 MiB), 12 others (1.43 MiB); always there: 4.50 MiB
//   1.00 MiB more would save 0.2 ms (12.7 %)
//   proved: no order, recomputation or swapping of these ops needs less than 5.20 MiB
#pragma once

#include <neap/core/readable.hpp>
#include <neap/core/units.hpp>
#include <neap/optimize/pareto_front.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// A buffer that is in use at the peak.
struct peak_holder {
  std::string what;  // the op that makes it: "matmul blocks.3.up #41"
  bytes_t bytes = 0;
};

/// What is in use at the first position of the peak.
struct peak_content {
  std::string op;                    // that runs there; empty if none does
  std::vector<peak_holder> holders;  // the largest first, at most 3
  std::size_t others = 0;            // buffers beside these
  bytes_t other_bytes = 0;           // of these and of the op's workspace
};

/// The ops of one operator in a plan, those that run again among them.
struct operator_time {
  std::string what;  // the operator; of an op from a file its target, of an external one its name
  std::size_t ops = 0;
  seconds_t seconds = 0;  // of all of them
};

namespace detail {

/// What a summary is made of. Limits that are not set are negative.
struct summary_of {
  bool fits = false;
  bytes_t arena = 0, peak = 0, resident = 0, memory_limit = -1, original_peak = 0, bound = 0;
  seconds_t latency = 0, latency_limit = -1, original_latency = 0;
  peak_content const& at_peak;
  std::vector<operator_time> const& times;
  std::vector<plan_cost> const& front;
  std::vector<std::string> const& forced_by;
  std::vector<std::string> const& reasons;
};

/// The memory that a plan needs, and how far that is from its limit.
std::string memory_line(summary_of const& s);
std::string latency_line(summary_of const& s);
std::string peak_line(summary_of const& s);
/// The operators that take longest, and how long computing waits for transfers; empty where no op takes any time.
std::string time_line(summary_of const& s);
/// What a little more memory, or time, would buy, by the candidates that were evaluated; empty where nothing is known.
std::string more_line(summary_of const& s);
/// At most ten lines, each ended.
std::string summary_text(summary_of const& s);

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/search_summary.ipp>
#endif
