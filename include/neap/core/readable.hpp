// Numbers as people read them: "1.50 GiB", "12.3 ms", "12.5 %".
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 {

/// "1.50 GiB", "100.0 MiB"; whole bytes below 1 KiB.
std::string readable_bytes(double bytes);

/// "12.3 ms": three digits, four from a second on.
std::string readable_seconds(double seconds);

/// A ratio as "12.5 %"; "0.012 %" below 0.1 %.
std::string readable_percent(double ratio);

namespace detail {
/// "1 op", "2 ops".
inline std::string counted(std::size_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/readable.ipp>
#endif
