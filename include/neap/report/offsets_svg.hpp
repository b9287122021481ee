// A picture of offsets over time, for a person who knows nothing of the program: every record is a rectangle, as wide
// as its life and as high as its size, at its place in the arena. What lies free beneath something in use is tinted, so
// fragmentation is seen as an area; the arena and the bound that no arena can be below are lines named at the side.
//
// In a gap of its life a record keeps only its dashed outline; in a window, the part that it uses is filled. Colours
// stand for size classes, which are the same in every picture.
#pragma once

#include <neap/memory/check/fragmentation.hpp>
#include <neap/memory/records.hpp>
#include <neap/report/memory_svg.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap::inline v0 {

struct offsets_picture {
  std::string title;
  std::string time = "time, in moments of the problem";  ///< what stands beneath the time axis
  std::vector<std::string> names{};                      ///< of the records, or empty
  bytes_t resident_bytes = 0;                            ///< told in words: bytes that lie beneath the picture
};

namespace detail {

/// Size classes: up to 1 KiB, then eight times as much for each.
struct size_class {
  std::int64_t below;  // bytes
  char const* color;
};
inline constexpr std::array<size_class, 7> size_classes{{{std::int64_t{1} << 10, "#b7c4d6"},
                                                         {std::int64_t{1} << 13, "#86b6c9"},
                                                         {std::int64_t{1} << 16, "#4f9d8f"},
                                                         {std::int64_t{1} << 19, "#8fb44f"},
                                                         {std::int64_t{1} << 22, "#e0b03f"},
                                                         {std::int64_t{1} << 25, "#d97b3a"},
                                                         {INT64_MAX, "#a8507a"}}};

inline std::size_t size_class_of(std::int64_t bytes) {
  std::size_t k = 0;
  while (k + 1 < size_classes.size() && bytes >= size_classes[k].below) ++k;
  return k;
}

/// "8 KiB to 64 KiB".
inline std::string size_class_name(std::size_t k) {
  auto const round = [](std::int64_t b) {
    char const* const unit[] = {"B", "KiB", "MiB", "GiB"};
    int u = 0;
    while (b >= 1024) b /= 1024, ++u;
    return std::to_string(b) + " " + unit[u];
  };
  if (k == 0) return "below " + round(size_classes[0].below);
  if (k + 1 == size_classes.size()) return round(size_classes[k - 1].below) + " and more";
  return round(size_classes[k - 1].below) + " to " + round(size_classes[k].below);
}

/// Whole numbers for the marks of a time axis: a step of 1, 2 or 5 times a power of ten, at most 10 of them.
inline std::int64_t moment_step(std::int64_t span) {
  std::int64_t step = 1;
  for (int k = 0; span / step > 10; ++k) step = k % 3 == 1 ? step / 2 * 5 : step * 2;
  return step;
}

}  // namespace detail

/// The picture of a plan that verify() finds right. A plan without offsets gives a picture that says so. About 120 bytes
/// a record; O(n log n).
inline std::string offsets_svg(offsets_picture const& about, memory_problem const& p, memory_plan const& plan) {
  using detail::print;
  using detail::svg_text;
  constexpr double width = 1100, height = 640, left = 92, right = 872, top = 128, bottom = 566;
  char const* const grey = "fill=\"#4a5260\"";
  std::string s = print(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
      width, height, width, height);
  s += svg_text(24, 32, about.title, "font-size=\"19\" font-weight=\"bold\"");
  if (!has_offsets(plan)) return s + svg_text(24, 56, "No plan: " + plan.why.message(), grey) + "</svg>\n";

  auto const report = fragmentation(p, plan);
  std::int64_t first = 0, last = 1;
  bool any = false, holes = false;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (!p.occupies(i)) continue;
    first = any ? std::min(first, p.lower[i]) : p.lower[i];
    last = any ? std::max(last, p.upper[i]) : p.upper[i];
    any = true;
    holes |= !p.gap_begin.empty() && p.gap_begin[i + 1] > p.gap_begin[i];
  }
  auto const bytes = [](std::int64_t b) { return readable_bytes(static_cast<double>(b)); };
  auto const span = static_cast<double>(last - first);
  double const reach = static_cast<double>(std::max<std::int64_t>(plan.arena_bytes, 1)) * 1.03;
  auto const x = [&](std::int64_t t) { return left + (right - left) * static_cast<double>(t - first) / span; };
  auto const y = [&](std::int64_t b) { return bottom - (bottom - top) * static_cast<double>(b) / reach; };

  s += svg_text(24, 56,
                "Each rectangle is one of " + std::to_string(p.count()) +
                    " records: as wide as its life, as high as its size, at its place in the arena." +
                    (about.resident_bytes > 0
                         ? " Beneath lie " + bytes(about.resident_bytes) + " of weights and inputs, always there."
                         : std::string()),
                grey);
  std::string sentence = "The arena is " + bytes(plan.arena_bytes);
  if (plan.status == plan_status::optimal) sentence += ", proved the least possible";
  else sentence += ", and no arena can be below " + bytes(plan.lower_bound_bytes);
  if (report.lost_bytes() == 0) sentence += "; it equals the largest load: nothing is lost to fragmentation.";
  else
    sentence += "; the most in use at once is " + bytes(report.largest_load) + ", so " + bytes(report.lost_bytes()) +
                print(" (%.2g %%) are lost to fragmentation.", 100 * (report.ratio() - 1));
  s += svg_text(24, 76, sentence, grey);

  // The legend: the size classes that occur, then the marks.
  std::array<std::size_t, detail::size_classes.size()> in_class{};
  for (std::size_t i = 0; i < p.count(); ++i)
    if (p.occupies(i)) ++in_class[detail::size_class_of(p.size[i])];
  double legend = left;
  auto const entry = [&](std::string const& mark, std::string const& text) {
    s += print("<rect x=\"%.1f\" y=\"94\" width=\"13\" height=\"13\" %s/>\n", legend, mark.c_str());
    s += svg_text(legend + 18, 105, text, "font-size=\"11\"");
    legend += 30 + 6.2 * static_cast<double>(text.size());
  };
  for (std::size_t k = 0; k < in_class.size(); ++k)
    if (in_class[k] > 0)
      entry(print("fill=\"%s\" stroke=\"#2b3340\" stroke-width=\"0.6\"", detail::size_classes[k].color),
            detail::size_class_name(k));
  entry("fill=\"#f6d5d2\"", "free below something in use");
  if (holes) entry("fill=\"none\" stroke=\"#2b3340\" stroke-dasharray=\"3 2\"", "gap in a life: bytes lent out");
  if (!p.fixed.empty()) entry("fill=\"none\" stroke=\"#111111\" stroke-width=\"2\"", "fixed");

  char const* const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};  // axes
  int u = 0;
  double unit = 1;
  while (reach >= 2 * 1024 * unit && u < 5) unit *= 1024, ++u;
  double const step = std::max(detail::axis_step(reach, unit), 1.0);
  for (double b = 0; b <= reach; b += step) {
    double const at = bottom - (bottom - top) * b / reach;
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e6e9ee\"/>\n", left, at, right, at);
    s += svg_text(left - 7, at + 4, detail::axis_text(b, unit, byte_units[u]), "text-anchor=\"end\" fill=\"#4a5260\"");
  }
  s +=
      print("<text transform=\"translate(20 %.1f) rotate(-90)\" text-anchor=\"middle\" %s>offset in the arena</text>\n",
            (top + bottom) / 2, grey);
  auto const tick = detail::moment_step(last - first);
  for (auto t = first >= 0 ? (first + tick - 1) / tick * tick : first / tick * tick; t <= last; t += tick) {
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#4a5260\"/>\n", x(t), bottom, x(t),
               bottom + 5);
    s += svg_text(x(t), bottom + 20, std::to_string(t), "text-anchor=\"middle\" fill=\"#4a5260\"");
  }
  s += svg_text((left + right) / 2, bottom + 46, about.time, "text-anchor=\"middle\" fill=\"#4a5260\"");

  // What is below the highest byte in use, tinted; the records cover what they use of it.
  std::string d = print("M%.2f %.2f", x(first), bottom);
  for (auto const& point : report.points) d += print("H%.2fV%.2f", x(point.moment), y(point.highest));
  s += "<path d=\"" + d + print("V%.2fZ\" fill=\"#f6d5d2\"/>\n", bottom);

  // Records: filled pieces, a class at a time; then outlines of lives with holes.
  auto const name = [&](std::size_t i) {
    return i < about.names.size() ? about.names[i] : "record " + std::to_string(i);
  };
  for (std::size_t k = 0; k < in_class.size(); ++k) {
    if (in_class[k] == 0) continue;
    s += print("<g fill=\"%s\" stroke=\"#2b3340\" stroke-width=\"%s\">\n", detail::size_classes[k].color,
               p.count() > 2000 ? "0.15" : "0.6");
    for (std::size_t i = 0; i < p.count(); ++i) {
      if (!p.occupies(i) || detail::size_class_of(p.size[i]) != k) continue;
      p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
        double const px = x(lo), py = y(plan.offsets[i] + b);
        s += print("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"%s><title>", px, py, x(hi) - px,
                   y(plan.offsets[i] + a) - py,
                   p.fixed_of(i) != any_offset ? " stroke=\"#111111\" stroke-width=\"2\"" : "");
        s += detail::xml_text(name(i)) + ": " + bytes(b - a) + " at " + std::to_string(plan.offsets[i] + a) + ", [" +
             std::to_string(lo) + ", " + std::to_string(hi) + ")</title></rect>\n";
      });
    }
    s += "</g>\n";
  }
  if (holes) {
    s += "<g fill=\"none\" stroke=\"#2b3340\" stroke-width=\"0.8\" stroke-dasharray=\"3 2\">\n";
    for (std::size_t i = 0; i < p.count(); ++i)
      if (p.occupies(i) && p.gap_begin[i + 1] > p.gap_begin[i])
        s += print("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", x(p.lower[i]),
                   y(plan.offsets[i] + p.size[i]), x(p.upper[i]) - x(p.lower[i]),
                   y(plan.offsets[i]) - y(plan.offsets[i] + p.size[i]));
    s += "</g>\n";
  }
  for (std::size_t i = 0; i < p.count() && p.count() <= 400; ++i) {  // names, where there is room for them
    if (!p.occupies(i) || i >= about.names.size()) continue;
    bool labelled = false;
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
      double const w = x(hi) - x(lo), h = y(plan.offsets[i] + a) - y(plan.offsets[i] + b);
      if (labelled || h < 12 || w < 8 + 6.5 * static_cast<double>(about.names[i].size())) return;
      labelled = true;
      s += svg_text((x(lo) + x(hi)) / 2, y(plan.offsets[i] + a) - h / 2 + 4, about.names[i],
                    "text-anchor=\"middle\" font-size=\"11\" fill=\"#1b2230\"");
    });
  }

  // The moment that holds the bound, and the levels.
  s += print("<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" stroke=\"#1b2230\" stroke-dasharray=\"2 3\"/>\n",
             x(report.load_moment), top, x(report.load_moment), bottom);
  s += svg_text(std::clamp(x(report.load_moment), left + 60, right - 60), top - 6,
                "most in use: moment " + std::to_string(report.load_moment), "text-anchor=\"middle\" font-size=\"11\"");
  std::vector<detail::svg_level> levels{
      {static_cast<double>(plan.arena_bytes),
       plan.arena_bytes == report.largest_load ? "arena; most in use at once" : "arena", "#1b2230"}};
  if (plan.arena_bytes != report.largest_load)
    levels.push_back({static_cast<double>(report.largest_load), "most in use at once", "#1d5f6c"});
  if (plan.lower_bound_bytes != plan.arena_bytes && plan.lower_bound_bytes != report.largest_load)
    levels.push_back({static_cast<double>(plan.lower_bound_bytes), "proved: no arena is smaller", "#c0392b"});
  for (auto& l : levels) l.at = bottom - (bottom - top) * l.bytes / reach;
  for (std::size_t k = 1; k < levels.size(); ++k) levels[k].at = std::max(levels[k].at, levels[k - 1].at + 32);
  for (auto const& l : levels) {
    double const at = bottom - (bottom - top) * l.bytes / reach;
    s += print("<path d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\"/>\n", left,
               at, right, at, right + 18, l.at, l.color.c_str());
    s += svg_text(right + 23, l.at + 1, readable_bytes(l.bytes),
                  ("font-weight=\"bold\" fill=\"" + l.color + "\"").c_str());
    s += svg_text(right + 23, l.at + 14, l.what, ("font-size=\"11\" fill=\"" + l.color + "\"").c_str());
  }
  return s + "</svg>\n";
}

}  // namespace neap::inline v0
