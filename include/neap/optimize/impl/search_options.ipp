// The bodies of <neap/optimize/search_options.hpp>.
#pragma once

#include <neap/optimize/search_options.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::pair<std::string, std::string> distinct_times(seconds_t a, seconds_t b) {
  auto const most = std::max(a, b);
  auto const [scale, unit] = most < 1e-3 ? std::pair{1e6, " us"}
                             : most < 1  ? std::pair{1e3, " ms"}
                                         : std::pair{1.0, " s"};
  for (int digits = 3;; ++digits) {
    char x[40], y[40];
    std::snprintf(x, sizeof x, "%.*g", digits, a * scale), std::snprintf(y, sizeof y, "%.*g", digits, b * scale);
    if (digits == 17 || std::string(x) != y) return {std::string(x) + unit, std::string(y) + unit};
  }
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC std::string search_outcome::why_not(bytes_t arena, bytes_t peak, bytes_t resident, seconds_t latency) const {
  if (fits) return {};
  std::string s = "no plan fits: ";
  bool const slow = latency > latency_limit_seconds * (1 + 1e-12);  // as a search counts
  bool const large = arena > memory_limit_bytes || !slow;
  if (large) {
    s += "the limit is " + std::to_string(memory_limit_bytes) + " bytes, the best plan found needs " +
         std::to_string(arena);
    if (arena > memory_limit_bytes && peak > 0 && peak <= memory_limit_bytes)
      s += " (the peak of " + std::to_string(peak) + " fits, addresses do not)";
    s += ", proved to be at least " + std::to_string(lower_bound_bytes);
    for (std::size_t i = 0; i < forcing.size() && i < 3; ++i)
      s += (i ? ", " : "; forced by ") + forcing[i].what + " (" + std::to_string(forcing[i].bytes) + " bytes)";
    if (forcing.empty() && resident > 0) s += "; forced by what is always there: weights, inputs, states";
  }
  if (slow) {
    auto const [limit, takes] = detail::distinct_times(latency_limit_seconds, latency);
    s += (large ? "; and the latency limit is " : "the limit is ") + limit + ", the best plan found takes " + takes;
  }
  for (std::size_t i = 0; i < reasons.size() && i < 3; ++i) s += "; " + reasons[i];
  return s;
}

NEAP_FUNC std::string search_outcome::summary(bytes_t arena, bytes_t peak, bytes_t resident, seconds_t latency) const {
  std::vector<std::string> forced_by;
  for (auto const& f : forcing) forced_by.push_back(f.what);
  if (forcing.empty() && resident > 0 && lower_bound_bytes >= arena)
    forced_by.emplace_back("what is always there: weights, inputs, states");
  return detail::summary_text({.fits = fits,
                               .arena = arena,
                               .peak = peak,
                               .resident = resident,
                               .memory_limit = memory_limit_bytes == INT64_MAX ? -1 : memory_limit_bytes,
                               .original_peak = original.peak_bytes,
                               .bound = lower_bound_bytes,
                               .latency = latency,
                               .latency_limit = latency_limit_seconds < 1e300 ? latency_limit_seconds : -1,
                               .original_latency = original.latency,
                               .at_peak = at_peak,
                               .times = times,
                               .front = front,
                               .forced_by = forced_by,
                               .reasons = reasons});
}

}}  // namespace neap::v0
