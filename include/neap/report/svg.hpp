// What the pictures share: numbers for people, texts fit for XML and for the room they have, axes, names of levels at the
// side that do not lie on one another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The bytes of the UTF-8 character at `i`; 0: none begins there.
std::size_t character_length(std::string_view s, std::size_t i);

/// Fit for XML: marks escaped, control characters blank, what is no UTF-8 a question mark.
std::string xml_text(std::string_view s);

/// printf into a string; for short texts.
template <class... A>
std::string print(char const* format, A... a) {
  char text[512];
  std::snprintf(text, sizeof text, format, a...);
  return text;
}

/// How wide a text stands, in pixels, an overestimate, as no font is read.
double text_width(std::string_view text, double font_size);

/// As much of a text as fits into `width` pixels, "convolution_ba..." at the least 4 characters; else nothing.
std::string fitted(std::string_view text, double width, double font_size);

std::string svg_text(double px, double py, std::string_view text, std::string_view more = "");

/// A text in as many lines as it needs, each at most `wide` pixels; moves `py` below the last.
std::string svg_paragraph(double px, double& py, double wide, std::string_view text, std::string_view more);

/// The beginning of a picture, with its title; the caller writes "</svg>\n" at the end.
std::string svg_begin(double width, double height, std::string_view title);

inline constexpr char const* svg_grey = "fill=\"#4a5260\"";

/// A legend: squares with texts, in as many rows as they need.
class svg_legend {
 public:
  svg_legend(double left, double right, double top) : left_(left), right_(right), x_(left), y_(top) {}
  /// `mark` are the attributes of the square.
  void add(std::string const& mark, std::string_view text);
  double bottom() const { return y_ + row; }
  std::string const& text() const { return out_; }

 private:
  static constexpr double row = 18;
  double left_, right_, x_, y_;
  std::string out_;
};

/// The step between the marks of an axis: 1, 2 or 5 times a power of ten of `unit`, 4 to 9 marks up to `top`.
double axis_step(double top, double unit);

/// "150 MiB", "0.4 ms": a multiple of an axis' step, in the unit of its top.
inline std::string axis_text(double x, double unit, char const* name) { return print("%.6g %s", x / unit, name); }

/// The unit in which an axis of bytes up to `top` is written.
struct byte_unit {
  double bytes = 1;
  char const* name = "B";
  explicit byte_unit(double top) {
    char const* const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    for (int u = 1; top >= 2 * 1024 * bytes && u < 6; ++u) bytes *= 1024, name = names[u];
  }
};
/// The unit in which an axis of seconds up to `top` is written.
struct time_unit {
  double seconds = 1;
  char const* name = "s";
  explicit time_unit(double top) {
    if (top < 2) seconds = 1e-3, name = "ms";
    if (top < 2e-3) seconds = 1e-6, name = "us";
  }
};

/// Lines across a plot at round numbers of bytes, which stand at its left edge. A plot has left, right, bytes (what its
/// upper edge stands for) and y(bytes).
template <class Plot>
std::string svg_byte_axis(Plot const& plot) {
  std::string s;
  byte_unit const unit(plot.bytes);
  double const step = std::max(axis_step(plot.bytes, unit.bytes), 1.0);
  for (double b = 0; b <= plot.bytes; b += step) {
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e6e9ee\"/>\n", plot.left, plot.y(b),
               plot.right, plot.y(b));
    s += svg_text(plot.left - 7, plot.y(b) + 4, axis_text(b, unit.bytes, unit.name),
                  "text-anchor=\"end\" fill=\"#4a5260\"");
  }
  return s;
}
/// A tick beneath a plot, and what it stands for.
std::string svg_tick(double x, double bottom, std::string const& text);

/// A level that is named beside the plot.
struct svg_level {
  double bytes;
  std::string what, color;
  double py;      // its height in the plot
  double at = 0;  // where its name stands
};

/// The names of the levels, and the lines that lead to them from the right edge of the plot.
std::string svg_levels(std::vector<svg_level>& levels, double right, double top, double bottom);

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/report/impl/svg.ipp>
#endif
