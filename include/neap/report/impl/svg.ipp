// The bodies of <neap/report/svg.hpp>.
#pragma once

#include <neap/report/svg.hpp>

#include <neap/core/readable.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/core/units.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::size_t character_length(std::string_view s, std::size_t i) {
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

NEAP_FUNC std::string xml_text(std::string_view s) {
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

NEAP_FUNC double text_width(std::string_view text, double font_size) {
  std::size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return 0.6 * font_size * static_cast<double>(n);
}

NEAP_FUNC std::string fitted(std::string_view text, double width, double font_size) {
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

NEAP_FUNC std::string svg_text(double px, double py, std::string_view text, std::string_view more) {
  return print("<text x=\"%.1f\" y=\"%.1f\" ", px, py) + std::string(more) + ">" + xml_text(text) + "</text>\n";
}

NEAP_FUNC std::string svg_paragraph(double px, double& py, double wide, std::string_view text, std::string_view more) {
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

NEAP_FUNC std::string svg_begin(double width, double height, std::string_view title) {
  return print(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
             "font-size=\"13\">\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
             width, height, width, height) +
         svg_text(24, 32, fitted(title, width - 48, 19), "font-size=\"19\" font-weight=\"bold\"");
}

NEAP_FUNC void svg_legend::add(std::string const& mark, std::string_view text) {
  double const wide = 18 + text_width(text, 11) + 14;
  if (x_ > left_ && x_ + wide > right_) x_ = left_, y_ += row;
  out_ += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"13\" ", x_, y_) + mark + "/>\n";
  out_ += svg_text(x_ + 18, y_ + 11, text, "font-size=\"11\"");
  x_ += wide;
}

NEAP_FUNC double axis_step(double top, double unit) {
  double step = unit;
  while (step > top / 9) step /= 10;
  for (int k = 0; step * 9 < top; ++k) step *= k % 3 == 1 ? 2.5 : 2;
  return step;
}

NEAP_FUNC std::string svg_tick(double x, double bottom, std::string const& text) {
  return print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#4a5260\"/>\n", x, bottom, x,
               bottom + 5) +
         svg_text(x, bottom + 20, text, "text-anchor=\"middle\" fill=\"#4a5260\"");
}

/// Names keep their height as far as they can, and 32 pixels from one another; the highest first.
NEAP_FUNC void part_levels(std::vector<svg_level>& levels, double top, double bottom) {
  for (std::size_t i = 1; i < levels.size(); ++i)  // few; equal ones as they came
    for (std::size_t k = i; k > 0 && levels[k - 1].bytes < levels[k].bytes; --k) std::swap(levels[k - 1], levels[k]);
  double at = top - 8;
  for (auto& l : levels) l.at = at = std::max(l.py, at + (&l == levels.data() ? 0 : 32));
  double floor = bottom;
  for (std::size_t i = levels.size(); i-- > 0; floor = levels[i].at - 32) levels[i].at = std::min(levels[i].at, floor);
}

NEAP_FUNC std::string svg_levels(std::vector<svg_level>& levels, double right, double top, double bottom) {
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

}}}  // namespace neap::v0::detail
