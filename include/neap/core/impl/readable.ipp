// The bodies of <neap/core/readable.hpp>.
#pragma once

#include <neap/core/readable.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::string readable_bytes(double bytes) {
  char const* const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int u = 0;
  while (bytes >= 1023.95 && u < 5) bytes /= 1024, ++u;
  char text[48];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : bytes < 9.995 ? "%.2f %s" : "%.1f %s", bytes, unit[u]);
  return text;
}

NEAP_FUNC std::string readable_seconds(double seconds) {
  char text[48];
  if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  else if (seconds < 1) std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  else std::snprintf(text, sizeof text, "%.4g s", seconds);
  return text;
}

NEAP_FUNC std::string readable_percent(double ratio) {
  char text[48];
  std::snprintf(text, sizeof text, ratio != 0 && ratio < 0.001 ? "%.2g %%" : "%.1f %%", 100 * ratio);
  return text;
}

}}  // namespace neap::v0
