// The bodies of <neap/optimize/search_summary.hpp>.
#pragma once

#include <neap/optimize/search_summary.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::string memory_line(summary_of const& s) {
  auto const needs = readable_bytes(s.arena);
  if (s.memory_limit < 0)
    return std::string(s.fits ? "fits" : "does not fit") + ": " + needs + ", " +
           readable_percent(static_cast<double>(s.arena) / static_cast<double>(std::max<bytes_t>(s.original_peak, 1))) +
           " of the original peak";
  auto const limit = readable_bytes(s.memory_limit);
  if (s.arena <= s.memory_limit)
    return std::string(s.fits ? "fits" : "does not fit: too slow, though the memory fits") + ": " + needs + " of " +
           limit + ", " + readable_bytes(s.memory_limit - s.arena) + " to spare";
  auto const over = s.arena - s.memory_limit;
  auto text = "does not fit: " + needs + ", " + readable_bytes(over) + " above the limit of " + limit;
  if (s.memory_limit > 0)
    text += " (" + readable_percent(static_cast<double>(over) / static_cast<double>(s.memory_limit)) + ")";
  if (s.peak <= s.memory_limit) text += "; the peak of " + readable_bytes(s.peak) + " fits, addresses do not";
  return text;
}

NEAP_FUNC std::string latency_line(summary_of const& s) {
  auto text = "latency: " + readable_seconds(s.latency);
  if (s.original_latency > 0) {
    auto const more = s.latency / s.original_latency - 1;
    auto const original = readable_seconds(s.original_latency);
    text += more > 1e-9    ? ", " + readable_percent(more) + " above the original " + original
            : more < -1e-9 ? ", " + readable_percent(-more) + " below the original " + original
                           : ", as the original";
  }
  if (s.latency_limit < 0) return text;
  auto const limit = readable_seconds(s.latency_limit);
  auto const off =
      readable_seconds(s.latency > s.latency_limit ? s.latency - s.latency_limit : s.latency_limit - s.latency);
  if (s.latency > s.latency_limit * (1 + 1e-12)) return text + "; " + off + " above the limit of " + limit;
  return text + "; within the limit of " + limit;
}

NEAP_FUNC std::string peak_line(summary_of const& s) {
  auto const& p = s.at_peak;
  auto text = "peak: " + readable_bytes(s.peak) + (p.op.empty() ? "" : " at " + p.op);
  for (std::size_t k = 0; k < p.holders.size(); ++k)
    text += (k ? ", " : ", held by ") + p.holders[k].what + " (" + readable_bytes(p.holders[k].bytes) + ")";
  if (p.other_bytes > 0)
    text += (p.holders.empty() ? ", held by " : ", ") +
            (p.others ? std::to_string(p.others) + (p.others == 1 ? " other (" : " others (") : "workspace (") +
            readable_bytes(p.other_bytes) + ")";
  if (s.resident > 0) text += "; always there: " + readable_bytes(s.resident);
  return text;
}

NEAP_FUNC std::string time_line(summary_of const& s) {
  constexpr std::size_t most = 3;
  seconds_t all = 0, shown = 0;
  for (auto const& t : s.times) all += t.seconds;
  if (s.latency <= 0 || all <= 0) return {};
  auto const share = [&](seconds_t t) { return readable_percent(t / s.latency); };
  std::string text = "time: ";
  std::size_t const count = std::min(s.times.size(), most);
  for (std::size_t k = 0; k < count; ++k) {
    auto const& t = s.times[k];
    text += (k ? ", " : "") + t.what + " " + readable_seconds(t.seconds) + " (" + share(t.seconds) + ", " +
            std::to_string(t.ops) + (t.ops == 1 ? " op)" : " ops)");
    shown += t.seconds;
  }
  if (auto const others = s.times.size() - count; others > 0 && all - shown > 1e-9 * all)
    text += ", " + std::to_string(others) + (others == 1 ? " other operator " : " other operators ") +
            readable_seconds(all - shown);
  if (auto const waits = s.latency - all; waits > 1e-3 * s.latency)
    text += "; waiting for transfers " + readable_seconds(waits) + " (" + share(waits) + ")";
  return text;
}

NEAP_FUNC std::string more_line(summary_of const& s) {
  if (s.memory_limit >= 0) {
    if (!s.fits) return s.arena > s.memory_limit ? "a limit of " + std::to_string(s.arena) + " bytes would fit" : "";
    // A MiB is no little of a small program.
    bytes_t const mib = 1_MiB, small = std::max<bytes_t>(s.original_peak / 16, 1), more = std::min(mib, small);
    auto quickest = s.latency;
    for (auto const& f : s.front)
      if (f.peak_bytes <= s.memory_limit + more) quickest = std::min(quickest, f.latency);
    auto const saved = s.latency - quickest;
    if (s.latency <= 0 || saved <= 1e-9 * s.latency)
      return readable_bytes(more) + " more would save no time that was found";
    return readable_bytes(more) + " more would save about " + readable_seconds(saved) + " (" +
           readable_percent(saved / s.latency) + ")";
  }
  if (s.latency_limit < 0 || !s.fits) return {};
  auto smallest = s.peak;
  for (auto const& f : s.front)
    if (f.latency <= 1.01 * s.latency_limit) smallest = std::min(smallest, f.peak_bytes);
  if (smallest == s.peak) return "1 % more time would save no memory that was found";
  return "1 % more time would save about " + readable_bytes(s.peak - smallest);
}

NEAP_FUNC std::string summary_text(summary_of const& s) {
  auto text = memory_line(s) + "\n" + latency_line(s) + "\n";
  if (auto const time = time_line(s); !time.empty()) text += time + "\n";
  text += peak_line(s) + "\n";
  if (auto const more = more_line(s); !more.empty()) text += more + "\n";
  text += s.bound >= s.arena
              ? "proved: this is the least that any order, recomputation or swapping of these ops needs"
              : "proved: no order, recomputation or swapping of these ops needs less than " + readable_bytes(s.bound);
  for (std::size_t k = 0; k < s.forced_by.size() && k < 3; ++k) text += (k ? ", " : "; forced by ") + s.forced_by[k];
  text += "\n";
  constexpr std::size_t most = 3;
  for (std::size_t k = 0; k < s.reasons.size() && k < most; ++k) text += s.reasons[k] + "\n";
  if (s.reasons.size() > most) text += std::to_string(s.reasons.size() - most) + " more reasons\n";
  return text;
}

}  // namespace detail
}}  // namespace neap::v0
