// Reads what tests need to know of an SVG picture: its frame, its texts and where they stand, titles of what is drawn.
#pragma once

#include <neap/report/svg.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace neap::testing {

struct svg_text_at {
  double x = 0, y = 0, font = 13;
  std::string anchor = "start", text;
  bool rotated = false;
  double wide() const { return detail::text_width(text, font); }
  double left() const { return anchor == "end" ? x - wide() : anchor == "middle" ? x - wide() / 2 : x; }
  double right() const { return left() + wide(); }
};

inline std::string attribute(std::string const& tag, std::string const& name) {
  auto const at = tag.find(" " + name + "=\"");
  if (at == tag.npos) return "";
  auto const begin = at + name.size() + 3;
  return tag.substr(begin, tag.find('"', begin) - begin);
}

inline std::string unescaped(std::string s) {
  for (auto [mark, c] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}})
    for (auto i = s.find(mark); i != s.npos; i = s.find(mark, i + 1)) s.replace(i, std::string(mark).size(), c);
  return s;
}

inline std::vector<svg_text_at> texts(std::string const& svg) {
  std::vector<svg_text_at> found;
  for (auto i = svg.find("<text "); i != svg.npos; i = svg.find("<text ", i + 1)) {
    auto const end = svg.find('>', i);
    auto const tag = svg.substr(i, end - i);
    svg_text_at t;
    t.rotated = tag.find("rotate") != tag.npos;
    if (auto const x = attribute(tag, "x"); !x.empty()) t.x = std::stod(x), t.y = std::stod(attribute(tag, "y"));
    if (auto const f = attribute(tag, "font-size"); !f.empty()) t.font = std::stod(f);
    if (auto const a = attribute(tag, "text-anchor"); !a.empty()) t.anchor = a;
    t.text = unescaped(svg.substr(end + 1, svg.find("</text>", end) - end - 1));
    found.push_back(std::move(t));
  }
  return found;
}

inline bool has_text(std::string const& svg, std::string const& what) {
  auto const all = texts(svg);
  return std::any_of(all.begin(), all.end(), [&](auto const& t) { return t.text == what; });
}

/// What the <title>s say.
inline std::vector<std::string> titles(std::string const& svg) {
  std::vector<std::string> found;
  for (auto i = svg.find("<title>"); i != svg.npos; i = svg.find("<title>", i + 1))
    found.push_back(unescaped(svg.substr(i + 7, svg.find("</title>", i) - i - 7)));
  return found;
}

struct svg_frame {
  double width, height;
};
inline svg_frame frame_of(std::string const& svg) {
  auto const at = svg.find("viewBox=\"0 0 ") + 13;
  std::size_t used = 0;
  double const width = std::stod(svg.substr(at), &used);
  return {width, std::stod(svg.substr(at + used))};
}

/// Texts that leave the frame, by a cautious guess of their width.
inline std::vector<std::string> texts_outside(std::string const& svg) {
  std::vector<std::string> found;
  auto const frame = frame_of(svg);
  for (auto const& t : texts(svg))
    if (!t.rotated && (t.left() < 0 || t.right() > frame.width || t.y < t.font || t.y > frame.height))
      found.push_back(t.text);
  return found;
}

/// Whether a text is XML as far as tags, attributes and characters go.
inline bool is_xml(std::string const& s) {
  std::vector<std::string> open;
  std::size_t elements = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    auto const c = static_cast<unsigned char>(s[i]);
    if (c < 0x20 && c != '\n' && c != '\t') return false;
    if (c == '&') {
      auto const end = s.find(';', i);
      auto const name = s.substr(i, end - i);
      if (name != "&lt" && name != "&gt" && name != "&amp" && name != "&quot") return false;
      i = end;
    } else if (c == '<') {
      auto const end = s.find('>', i);
      if (end == s.npos) return false;
      auto const tag = s.substr(i + 1, end - i - 1);
      if (tag.empty() || tag.find('<') != tag.npos) return false;
      if (tag[0] == '/') {
        if (open.empty() || open.back() != tag.substr(1)) return false;
        open.pop_back();
      } else {
        if (std::count(tag.begin(), tag.end(), '"') % 2) return false;
        ++elements;
        if (tag.back() != '/') open.push_back(tag.substr(0, tag.find(' ')));
      }
      i = end;
    } else if (c == '>') {
      return false;
    }
  }
  return open.empty() && elements > 0;
}

}  // namespace neap::testing
