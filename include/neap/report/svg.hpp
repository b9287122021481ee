// What the pictures share: numbers for people, texts fit for XML and for the room they have, axes, names of levels at the
// side that do not lie on one another.
#pragma once

#include <neap/core/readable.hpp>
#include <neap/core/units.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The bytes of the UTF-8 character at `i`; 0: none begins there.
inline std::size_t character_length(std::string_view s, std::size_t i) {
  auto const c = static_cast<unsigned char>(s[i]);
  std::size_t const n = c < 0x80                ? 1
                        : c >= 0xc2 && c < 0xe0 ? 2
                        : c >= 0xe0 && c < 0xf0 ? 3
                        : c >= 0xf0 && c < 0xf5 ? 4
                                                : 0;
  if (n == 0 || i + n > s.size()) return 0;
  for (std::size_t k = 1; k < n; ++k)
    if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return 0;
  return n;
}

/// Fit for XML: marks escaped, control characters blank, what is no UTF-8 a question mark.
inline std::string xml_text(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    auto const n = character_length(s, i);
    char const c = s[i];
    if (n == 0) out += '?';
    else if (n > 1) out += s.substr(i, n);
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    i += n ? n : 1;
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

/// How wide a text stands, in pixels, an overestimate, as no font is read.
inline double text_width(std::string_view text, double font_size) {
  std::size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return 0.6 * font_size * static_cast<double>(n);
}

/// As much of a text as fits into `width` pixels, "convolution_ba..." at the least 4 characters; else nothing.
inline std::string fitted(std::string_view text, double width, double font_size) {
  if (text_width(text, font_size) <= width) return std::string(text);
  auto const room = static_cast<std::size_t>(std::max(width / (0.6 * font_size), 0.0));
  if (room < 6) return "";
  std::size_t end = 0, n = 0;
  while (end < text.size() && n + 2 < room) {
    end += std::max<std::size_t>(character_length(text, end), 1);
    ++n;
  }
  return std::string(text.substr(0, end)) + "..";
}

inline std::string svg_text(double px, double py, std::string_view text, std::string_view more = "") {
  return print("<text x=\"%.1f\" y=\"%.1f\" ", px, py) + std::string(more) + ">" + xml_text(text) + "</text>\n";
}

/// A text in as many lines as it needs, each at most `wide` pixels; moves `py` below the last.
inline std::string svg_paragraph(double px, double& py, double wide, std::string_view text, std::string_view more) {
  std::string s;
  while (!text.empty()) {
    std::size_t end = text.size();
    while (text_width(text.substr(0, end), 13) > wide) {
      auto const space = text.substr(0, end).rfind(' ');
      if (space == text.npos || space == 0) break;
      end = space;
    }
    s += svg_text(px, py, fitted(text.substr(0, end), wide, 13), more);
    text.remove_prefix(std::min(end + 1, text.size()));
    py += 20;
  }
  return s;
}

/// The beginning of a picture, with its title; the caller writes "</svg>\n" at the end.
inline std::string svg_begin(double width, double height, std::string_view title) {
  return print(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
             "font-size=\"13\">\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
             width, height, width, height) +
         svg_text(24, 32, fitted(title, width - 48, 19), "font-size=\"19\" font-weight=\"bold\"");
}

inline constexpr char const* svg_grey = "fill=\"#4a5260\"";

/// A legend: squares with texts, in as many rows as they need.
class svg_legend {
 public:
  svg_legend(double left, double right, double top) : left_(left), right_(right), x_(left), y_(top) {}
  /// `mark` are the attributes of the square.
  void add(std::string const& mark, std::string_view text) {
    double const wide = 18 + text_width(text, 11) + 14;
    if (x_ > left_ && x_ + wide > right_) x_ = left_, y_ += row;
    out_ += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"13\" ", x_, y_) + mark + "/>\n";
    out_ += svg_text(x_ + 18, y_ + 11, text, "font-size=\"11\"");
    x_ += wide;
  }
  double bottom() const { return y_ + row; }
  std::string const& text() const { return out_; }

 private:
  static constexpr double row = 18;
  double left_, right_, x_, y_;
  std::string out_;
};

/// The step between the marks of an axis: 1, 2 or 5 times a power of ten of `unit`, 4 to 9 marks up to `top`.
inline double axis_step(double top, double unit) {
  double step = unit;
  while (step > top / 9) step /= 10;
  for (int k = 0; step * 9 < top; ++k) step *= k % 3 == 1 ? 2.5 : 2;
  return step;
}

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
inline std::string svg_tick(double x, double bottom, std::string const& text) {
  return print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#4a5260\"/>\n", x, bottom, x,
               bottom + 5) +
         svg_text(x, bottom + 20, text, "text-anchor=\"middle\" fill=\"#4a5260\"");
}

/// A level that is named beside the plot.
struct svg_level {
  double bytes;
  std::string what, color;
  double py;      // its height in the plot
  double at = 0;  // where its name stands
};

/// Names keep their height as far as they can, and 32 pixels from one another; the highest first.
inline void part_levels(std::vector<svg_level>& levels, double top, double bottom) {
  for (std::size_t i = 1; i < levels.size(); ++i)  // few; equal ones as they came
    for (std::size_t k = i; k > 0 && levels[k - 1].bytes < levels[k].bytes; --k) std::swap(levels[k - 1], levels[k]);
  double at = top - 8;
  for (auto& l : levels) l.at = at = std::max(l.py, at + (&l == levels.data() ? 0 : 32));
  double floor = bottom;
  for (std::size_t i = levels.size(); i-- > 0; floor = levels[i].at - 32) levels[i].at = std::min(levels[i].at, floor);
}

/// The names of the levels, and the lines that lead to them from the right edge of the plot.
inline std::string svg_levels(std::vector<svg_level>& levels, double right, double top, double bottom) {
  part_levels(levels, top, bottom);
  std::string s;
  for (auto const& l : levels) {
    s += print("<path d=\"M%.1f %.1fL%.1f %.1f\" fill=\"none\" stroke=\"%s\"/>\n", right, l.py, right + 18, l.at,
               l.color.c_str());
    s += svg_text(right + 23, l.at + 1, readable_bytes(l.bytes), "font-weight=\"bold\" fill=\"" + l.color + "\"");
    s += svg_text(right + 23, l.at + 14, l.what, "font-size=\"11\" fill=\"" + l.color + "\"");
  }
  return s;
}

}  // namespace detail

}}  // namespace neap::v0
