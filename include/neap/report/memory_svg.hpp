// A picture of memory over time, for a person who knows nothing of the program: the step without a plan behind, the
// planned one in front, the limit as a line, one sentence that says what is to be seen. What a level means is written at
// its height beside the plot, so that no label ever lies on a curve.
#pragma once

#include <neap/plan/simulation.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace neap::inline v0 {

struct memory_curve {
  std::string label;  // "without a plan"
  std::vector<bytes_t> bytes_at;
  std::vector<seconds_t> start, end;  // of each position
  bytes_t resident_bytes = 0;

  bytes_t peak_bytes() const { return bytes_at.empty() ? 0 : *std::max_element(bytes_at.begin(), bytes_at.end()); }
  seconds_t latency() const { return end.empty() ? 0 : *std::max_element(end.begin(), end.end()); }
};

inline memory_curve curve_of(std::string label, simulation const& s) {
  return {std::move(label), s.bytes_at, s.start, s.end, s.resident_bytes};
}

/// "1.50 GiB".
inline std::string readable_bytes(double b) {
  char const* const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int u = 0;
  while (b >= 1024 && u < 5) b /= 1024, ++u;
  char text[48];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : b < 10 ? "%.2f %s" : "%.1f %s", b, unit[u]);
  return text;
}

/// "12.3 ms".
inline std::string readable_seconds(double s) {
  char text[48];
  if (s < 1e-3) std::snprintf(text, sizeof text, "%.3g us", s * 1e6);
  else if (s < 1) std::snprintf(text, sizeof text, "%.3g ms", s * 1e3);
  else std::snprintf(text, sizeof text, "%.3g s", s);
  return text;
}

namespace detail {

/// Fit for XML: marks escaped, control characters blank.
inline std::string xml_text(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

/// printf into a string; for short texts.
template <class... A>
std::string print(char const* format, A... a) {
  char text[512];
  std::snprintf(text, sizeof text, format, a...);
  return text;
}

/// The step between the marks of an axis: 1, 2 or 5 times a power of ten of `unit`, 4 to 9 marks up to `top`.
inline double axis_step(double top, double unit) {
  double step = unit;
  while (step > top / 9) step /= 10;
  for (int k = 0; step * 9 < top; ++k) step *= k % 3 == 1 ? 2.5 : 2;
  return step;
}

/// "150 MiB", "0.4 ms": a multiple of an axis' step, in the unit of its top.
inline std::string axis_text(double x, double unit, char const* name) { return print("%.6g %s", x / unit, name); }

struct svg_plot {
  static constexpr double width = 1100, height = 540, left = 92, right = 880, top = 104, bottom = 470;
  static constexpr int columns = 1576;  // two a pixel
  double seconds, bytes;                // what the right and the upper edge stand for

  svg_plot(double s, double b) : seconds(s > 0 ? s : 1), bytes(b > 0 ? b : 1) {}
  double x(double t) const { return left + (right - left) * t / seconds; }
  double y(double b) const { return bottom - (bottom - top) * b / bytes; }

  /// The most in use in each column. Positions are in the order of issue: a transfer holds its memory from its turn on,
  /// which is when the next computation starts at the latest, whenever its copying happens.
  std::vector<double> column_peaks(memory_curve const& c) const {
    std::size_t const n = c.bytes_at.size();
    std::vector<double> from(n + 1, c.latency()), peak;
    for (std::size_t i = n; i-- > 0;) from[i] = std::min(from[i + 1], c.start[i]);
    if (n) from[0] = 0;
    auto const column = [&](double t) { return t / seconds * columns; };
    peak.assign(static_cast<std::size_t>(std::clamp(std::ceil(column(c.latency())), n ? 1.0 : 0.0, double(columns))),
                0);
    for (std::size_t i = 0; i < n; ++i) {
      auto const first = static_cast<std::size_t>(std::max(column(from[i]), 0.0));
      auto const last = std::min(static_cast<double>(peak.size()), std::ceil(column(from[i + 1])));
      for (std::size_t k = std::min(first, peak.size() - 1); k == first || static_cast<double>(k) < last; ++k) {
        if (k >= peak.size()) break;
        peak[k] = std::max(peak[k], static_cast<double>(c.bytes_at[i]));
      }
    }
    return peak;
  }
  /// The staircase of a curve, closed along the bottom.
  std::string area(std::vector<double> const& peak) const {
    std::string d = print("M%.1f %.1f", left, bottom);
    double level = -1;
    for (std::size_t k = 0; k < peak.size(); ++k)
      if (double const now = y(peak[k]); level < 0 || std::abs(now - level) >= 0.05) {
        d += print("H%.1fV%.1f", left + static_cast<double>(k) / 2, now);
        level = now;
      }
    return d + print("H%.1fV%.1fZ", left + static_cast<double>(peak.size()) / 2, bottom);
  }
};

inline std::string svg_text(double px, double py, std::string_view text, char const* more = "") {
  return print("<text x=\"%.1f\" y=\"%.1f\" %s>", px, py, more) + xml_text(text) + "</text>\n";
}

/// A level that is named beside the plot.
struct svg_level {
  double bytes;
  std::string what, color;
  double at = 0;  // where its name stands
};

/// Names keep their height as far as they can, and 32 pixels from one another.
inline void part_levels(std::vector<svg_level>& levels, svg_plot const& plot) {
  for (std::size_t i = 1; i < levels.size(); ++i)  // few: the highest first, equal ones as they came
    for (std::size_t k = i; k > 0 && levels[k - 1].bytes < levels[k].bytes; --k) std::swap(levels[k - 1], levels[k]);
  double at = plot.top - 8;
  for (auto& l : levels) l.at = at = std::max(plot.y(l.bytes), at + (&l == levels.data() ? 0 : 32));
  double floor = plot.bottom;
  for (std::size_t i = levels.size(); i-- > 0; floor = levels[i].at - 32) levels[i].at = std::min(levels[i].at, floor);
}

/// "From left to right one training step. Planned: 144 MiB at the peak instead of 206 MiB (70 %), 1.71 ms instead of..."
inline std::string svg_sentence(memory_curve const& before, memory_curve const& after) {
  auto const ratio = [](double a, double b) { return b > 0 ? print(" (%.3g %%)", 100 * a / b) : std::string(); };
  auto const bytes = [](bytes_t b) { return readable_bytes(static_cast<double>(b)); };
  auto const now = static_cast<double>(after.peak_bytes()), then = static_cast<double>(before.peak_bytes());
  std::string label = after.label;
  if (!label.empty() && label[0] >= 'a' && label[0] <= 'z') label[0] = static_cast<char>(label[0] - 'a' + 'A');
  return "From left to right one training step. " + label + ": " + bytes(after.peak_bytes()) +
         " at the peak instead of " + bytes(before.peak_bytes()) + ratio(now, then) + ", " +
         readable_seconds(after.latency()) + " instead of " + readable_seconds(before.latency()) +
         ratio(after.latency(), before.latency()) + ".";
}

}  // namespace detail

/// The picture. The first curve is drawn behind (the original), the others in front of it. `limit` < 0: none.
/// O(positions).
inline std::string memory_svg(std::string const& title, std::vector<memory_curve> const& curves, bytes_t limit = -1) {
  using detail::print;
  using detail::svg_text;
  double seconds = 0, top = static_cast<double>(std::max<bytes_t>(limit, 0));
  for (auto const& c : curves) {
    top = std::max(top, static_cast<double>(c.peak_bytes()));
    seconds = std::max(seconds, c.latency());
  }
  detail::svg_plot const plot(seconds, top * 1.03);
  char const* const fill[] = {"#ccd1d9", "#2f7d8c", "#d98b3a", "#7a5aa8"};
  char const* const line[] = {"#6b7482", "#1d5f6c", "#a8641d", "#573c82"};
  char const* const grey = "fill=\"#4a5260\"";

  std::string s = print(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
      plot.width, plot.height, plot.width, plot.height);
  s += svg_text(24, 32, title, "font-size=\"19\" font-weight=\"bold\"");
  s += svg_text(
      24, 56, curves.size() < 2 ? "From left to right one training step." : detail::svg_sentence(curves[0], curves[1]),
      grey);
  double legend = plot.left;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    s += print("<rect x=\"%.1f\" y=\"72\" width=\"13\" height=\"13\" fill=\"%s\" stroke=\"%s\"/>\n", legend,
               fill[i % 4], line[i % 4]);
    s += svg_text(legend + 19, 83, "memory in use, " + curves[i].label);
    legend += 52 + 7.2 * static_cast<double>(curves[i].label.size() + 15);
  }

  char const* const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};  // axes
  int u = 0;
  double unit = 1;
  while (plot.bytes >= 2 * 1024 * unit && u < 5) unit *= 1024, ++u;
  double const step = std::max(detail::axis_step(plot.bytes, unit), 1.0);
  for (double b = 0; b <= plot.bytes; b += step) {
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e6e9ee\"/>\n", plot.left, plot.y(b),
               plot.right, plot.y(b));
    s += svg_text(plot.left - 7, plot.y(b) + 4, detail::axis_text(b, unit, byte_units[u]),
                  "text-anchor=\"end\" fill=\"#4a5260\"");
  }
  double const time_unit = plot.seconds < 2e-3 ? 1e-6 : plot.seconds < 2 ? 1e-3 : 1;
  char const* const time_name = plot.seconds < 2e-3 ? "us" : plot.seconds < 2 ? "ms" : "s";
  double const tick = detail::axis_step(plot.seconds, time_unit);
  for (int k = 0; k * tick <= plot.seconds * 1.0001; ++k)
    s += svg_text(plot.x(k * tick), plot.bottom + 20, detail::axis_text(k * tick, time_unit, time_name),
                  "text-anchor=\"middle\" fill=\"#4a5260\"");
  s += svg_text((plot.left + plot.right) / 2, plot.bottom + 46, "time within the step",
                "text-anchor=\"middle\" fill=\"#4a5260\"");

  std::vector<detail::svg_level> levels;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    auto const peaks = plot.column_peaks(curves[i]);
    s += "<path d=\"" + plot.area(peaks) + "\" fill=\"" + fill[i % 4] + "\" fill-opacity=\"" + (i ? "0.8" : "1") +
         "\" stroke=\"" + line[i % 4] + "\" stroke-width=\"0.8\"/>\n";
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {  // peaks, with a line to their names
    auto const peaks = plot.column_peaks(curves[i]);
    if (peaks.empty()) continue;
    auto const at = std::max_element(peaks.begin(), peaks.end());
    double const px = plot.left + 0.25 + static_cast<double>(at - peaks.begin()) / 2, py = plot.y(*at);
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"2 3\"/>\n", px,
               py, plot.right, py, line[i % 4]);
    s += print("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#ffffff\" stroke=\"%s\" stroke-width=\"2\"/>\n", px, py,
               line[i % 4]);
    levels.push_back({*at, "peak, " + curves[i].label, line[i % 4]});
  }
  if (!curves.empty() && curves[0].resident_bytes > 0) {
    auto const b = static_cast<double>(curves[0].resident_bytes);
    s += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#1b2230\" fill-opacity=\"0.22\"/>\n",
               plot.left, plot.y(b), plot.right - plot.left, plot.bottom - plot.y(b));
    levels.push_back({b, "weights and inputs, always there", "#3b4250"});
  }
  if (limit > 0) {
    double const py = plot.y(static_cast<double>(limit));
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#c0392b\" stroke-width=\"1.6\"/>\n",
               plot.left, py, plot.right, py);
    levels.push_back({static_cast<double>(limit), "limit", "#c0392b"});
  }
  detail::part_levels(levels, plot);
  for (auto const& l : levels) {
    s += print("<path d=\"M%.1f %.1fL%.1f %.1f\" fill=\"none\" stroke=\"%s\"/>\n", plot.right, plot.y(l.bytes),
               plot.right + 18, l.at, l.color.c_str());
    s += svg_text(plot.right + 23, l.at + 1, readable_bytes(l.bytes),
                  ("font-weight=\"bold\" fill=\"" + l.color + "\"").c_str());
    s += svg_text(plot.right + 23, l.at + 14, l.what, ("font-size=\"11\" fill=\"" + l.color + "\"").c_str());
  }
  return s + "</svg>\n";
}

}  // namespace neap::inline v0
