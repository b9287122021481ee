// Numbers as people read them: "1.50 GiB", "12.3 ms", "12.5 %".
#pragma once

#include <neap/core/compiled_once.hpp>

#include <cstdio>
#include <string>

namespace neap::inline v0 {

/// "1.50 GiB", "100.0 MiB"; whole bytes below 1 KiB.
NEAP_ONCE std::string readable_bytes(double bytes) {
  char const* const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int u = 0;
  while (bytes >= 1023.95 && u < 5) bytes /= 1024, ++u;
  char text[48];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : bytes < 9.995 ? "%.2f %s" : "%.1f %s", bytes, unit[u]);
  return text;
}

/// "12.3 ms": three digits, four from a second on.
NEAP_ONCE std::string readable_seconds(double seconds) {
  char text[48];
  if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  else if (seconds < 1) std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  else std::snprintf(text, sizeof text, "%.4g s", seconds);
  return text;
}

/// A ratio as "12.5 %"; "0.012 %" below 0.1 %.
NEAP_ONCE std::string readable_percent(double ratio) {
  char text[48];
  std::snprintf(text, sizeof text, ratio != 0 && ratio < 0.001 ? "%.2g %%" : "%.1f %%", 100 * ratio);
  return text;
}

}  // namespace neap::inline v0
