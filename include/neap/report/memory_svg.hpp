// A picture of memory over time, for a person who knows nothing of the program: the step without a plan behind, the
// planned one in front, the limit as a line, the peaks named, one sentence that says what is to be seen.
#pragma once

#include <neap/plan/simulation.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace neap::inline v0 {

struct memory_curve {
  std::string label;  // "without a plan"
  std::vector<bytes_t> bytes_at;
  std::vector<seconds_t> start, end;  // of each position
  bytes_t resident_bytes = 0;
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

inline std::string xml_text(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

class svg_plot {
 public:
  svg_plot(double right, double top) : right_(right > 0 ? right : 1), top_(top > 0 ? top : 1) {}
  double x(double seconds) const { return left + (width - left - margin) * seconds / right_; }
  double y(double bytes) const { return height - bottom - (height - bottom - head) * bytes / top_; }

  /// The staircase of a curve, closed along the bottom; thinned to what a picture can show.
  std::string area(memory_curve const& c) const {
    std::string d;
    std::size_t const n = c.bytes_at.size();
    double last_x = -1, last_y = -1;
    auto const go = [&](double px, double py) {
      if (px - last_x < 0.2 && std::abs(py - last_y) < 0.2) return;
      add(d, d.empty() ? "M" : "L", px, py);
      last_x = px, last_y = py;
    };
    for (std::size_t i = 0; i < n; ++i) {
      double const from = i == 0 ? 0 : x(c.start[i]);
      double const to = i + 1 < n ? x(std::max(c.start[i + 1], c.start[i])) : x(c.end[i]);
      double const py = y(static_cast<double>(c.bytes_at[i]));
      go(from, py), go(to, py);
    }
    if (n == 0) return {};
    add(d, "L", x(c.end[n - 1]), y(0));
    add(d, "L", x(0), y(0));
    return d + "Z";
  }
  static void add(std::string& d, char const* command, double px, double py) {
    char text[64];
    std::snprintf(text, sizeof text, "%s%.1f %.1f ", command, px, py);
    d += text;
  }

  static constexpr double width = 960, height = 480, left = 86, margin = 24, head = 96, bottom = 58;
  double right_, top_;
};

inline std::string svg_text(double px, double py, std::string_view text, char const* more = "") {
  char at[96];
  std::snprintf(at, sizeof at, "<text x=\"%.1f\" y=\"%.1f\" %s>", px, py, more);
  return std::string(at) + xml_text(text) + "</text>\n";
}

}  // namespace detail

/// The picture. The first curve is drawn behind (the original), the others in front of it. `limit` < 0: none.
inline std::string memory_svg(std::string const& title, std::vector<memory_curve> const& curves, bytes_t limit = -1) {
  using detail::svg_plot;
  double right = 0, top = static_cast<double>(limit > 0 ? limit : 0);
  for (auto const& c : curves) {
    for (auto b : c.bytes_at) top = std::max(top, static_cast<double>(b));
    for (auto t : c.end) right = std::max(right, t);
  }
  svg_plot const plot(right, top * 1.04);
  std::string s =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 480\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"960\" height=\"480\" fill=\"#ffffff\"/>\n";
  s += detail::svg_text(24, 30, title, "font-size=\"19\" font-weight=\"bold\"");

  char const* const fill[] = {"#c9ced6", "#2f7d8c", "#d98b3a", "#7a5aa8"};
  char const* const line[] = {"#8a93a0", "#1d5f6c", "#a8641d", "#573c82"};
  double legend = 24;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    auto const& c = curves[i];
    bytes_t const peak = c.bytes_at.empty() ? 0 : *std::max_element(c.bytes_at.begin(), c.bytes_at.end());
    std::string text = c.label + ": peak " + readable_bytes(static_cast<double>(peak));
    if (i > 0 && !curves[0].bytes_at.empty()) {
      auto const first = *std::max_element(curves[0].bytes_at.begin(), curves[0].bytes_at.end());
      char ratio[32];
      std::snprintf(ratio, sizeof ratio, " (%.2f of it)", static_cast<double>(peak) / static_cast<double>(std::max<bytes_t>(first, 1)));
      text += ratio;
    }
    char box[160];
    std::snprintf(box, sizeof box, "<rect x=\"%.1f\" y=\"48\" width=\"14\" height=\"14\" fill=\"%s\" stroke=\"%s\"/>\n", legend,
                  fill[i % 4], line[i % 4]);
    s += box + detail::svg_text(legend + 20, 60, text);
    legend += 44 + 7.2 * static_cast<double>(text.size());
  }

  for (int k = 0; k <= 5; ++k) {  // axes
    double const b = plot.top_ * k / 5, py = plot.y(b);
    char grid[160];
    std::snprintf(grid, sizeof grid, "<line x1=\"86\" y1=\"%.1f\" x2=\"936\" y2=\"%.1f\" stroke=\"#e6e9ee\"/>\n", py, py);
    s += grid + detail::svg_text(80, py + 4, readable_bytes(b), "text-anchor=\"end\" fill=\"#4a5260\"");
    double const t = plot.right_ * k / 5;
    s += detail::svg_text(plot.x(t), 440, readable_seconds(t), "text-anchor=\"middle\" fill=\"#4a5260\"");
  }
  s += detail::svg_text(24, 84, "memory in use", "fill=\"#4a5260\"");
  s += detail::svg_text(936, 462, "time within one training step", "text-anchor=\"end\" fill=\"#4a5260\"");

  for (std::size_t i = 0; i < curves.size(); ++i)
    s += "<path d=\"" + plot.area(curves[i]) + "\" fill=\"" + fill[i % 4] + "\" fill-opacity=\"" + (i ? "0.75" : "1") +
         "\" stroke=\"" + line[i % 4] + "\"/>\n";
  if (!curves.empty() && curves[0].resident_bytes > 0) {
    double const py = plot.y(static_cast<double>(curves[0].resident_bytes));
    char dash[200];
    std::snprintf(dash, sizeof dash, "<line x1=\"86\" y1=\"%.1f\" x2=\"936\" y2=\"%.1f\" stroke=\"#3b4250\" stroke-dasharray=\"2 4\"/>\n", py, py);
    s += dash + detail::svg_text(92, py - 5, "weights, optimizer state and inputs: always there", "fill=\"#3b4250\"");
  }
  if (limit > 0) {
    double const py = plot.y(static_cast<double>(limit));
    char rule[200];
    std::snprintf(rule, sizeof rule, "<line x1=\"86\" y1=\"%.1f\" x2=\"936\" y2=\"%.1f\" stroke=\"#c0392b\" stroke-width=\"1.5\"/>\n", py, py);
    s += rule + detail::svg_text(930, py - 5, "limit " + readable_bytes(static_cast<double>(limit)), "text-anchor=\"end\" fill=\"#c0392b\"");
  }
  return s + "</svg>\n";
}

}  // namespace neap::inline v0
