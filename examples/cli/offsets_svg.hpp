// A picture of offsets over time, for a person who knows nothing of the program: every record is a rectangle, as wide
// as its life and as high as its size, at its place in the arena. What lies free beneath something in use is tinted, so
// fragmentation is seen as an area; the arena and the bound that no arena can be below are lines named at the side.
// Residents lie at the bottom, as in a plan's arena; where they are most of it, they are drawn lower than to scale, and
// the picture says so.
//
// In a gap of its life a record keeps only its dashed outline; in a window, the part that it uses is filled. Colours
// stand for size classes, which are the same in every picture.
#pragma once

#include <neap/core/readable.hpp>
#include <neap/memory/check/fragmentation.hpp>
#include <neap/memory/records.hpp>
#include <neap/report/labels.hpp>
#include <neap/report/svg.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What lies beneath the records throughout.
struct resident_block {
  std::string name;
  bytes_t offset = 0, bytes = 0;
};

struct offsets_picture {
  std::string title;
  std::string time = "time, in moments of the problem";  ///< what stands beneath the time axis
  std::string unit = "moment";                           ///< what a number of the time axis is called
  std::vector<std::string> names{};                      ///< of the records, or empty
  bytes_t resident_bytes = 0;  ///< beside the records; given as text, or drawn beneath them if `residents` are given
  std::int64_t from = INT64_MAX, to = INT64_MIN;  ///< times that are drawn in any case, half-open
  std::vector<resident_block> residents{};  ///< ascending by offset, in [0, resident_bytes): the arena is theirs, too
  bytes_t limit = -1;                       ///< drawn as a line; negative: none
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
                                                         {INT64_MAX, "#c98bab"}}};

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

/// From bytes of the arena to pixels: to scale, but for residents that are more than three tenths of it.
struct offsets_axis {
  double top, bottom, base, reach;  // pixels; bytes of residents, and of the whole height
  double knee;                      // the height of the residents' upper edge, in pixels above the bottom
  bool to_scale;

  offsets_axis(double t, double b, double resident, double highest)
      : top(t),
        bottom(b),
        base(resident),
        reach(highest) {
    double const share = base / reach;
    to_scale = share <= 0.3;
    knee = (bottom - top) * (to_scale ? share : 0.3);
  }
  double y(double b) const {
    if (b <= base) return bottom - (base > 0 ? knee * b / base : 0);
    return bottom - knee - (bottom - top - knee) * (b - base) / (reach - base);
  }
};

/// A name in a rectangle: upright where that gives it more room; nothing where there is too little.
inline std::string svg_name_in(double px, double py, double wide, double high, std::string_view name) {
  double const lying = std::min(11.0, high - 1.5), standing = std::min(11.0, wide - 1.5);
  bool const upright = high > wide && text_width(name, lying) > wide - 6;
  double const font = upright ? standing : lying;
  if (font < 7) return "";
  auto const text = fitted(name, (upright ? high : wide) - 6, font);
  if (text.empty()) return "";
  double const cx = px + wide / 2 + (upright ? 0.36 * font : 0), cy = py + high / 2 + (upright ? 0 : 0.36 * font);
  std::string how = print("text-anchor=\"middle\" font-size=\"%.1f\" fill=\"#1b2230\"", font);
  if (upright) how += print(" transform=\"rotate(-90 %.1f %.1f)\"", cx, cy);
  return svg_text(cx, cy, text, how);
}

/// The residents, each over the whole width; those lower than a pixel drawn as one with their neighbours.
inline std::string svg_residents(offsets_picture const& about, offsets_axis const& axis, double left, double right) {
  std::string s = "<g fill=\"#d9d4cc\" stroke=\"#9b948a\" stroke-width=\"0.5\">\n", names;
  for (std::size_t i = 0, end = 0; i < about.residents.size(); i = end) {
    auto const& r = about.residents[i];
    bytes_t bytes = r.bytes;
    double const low = axis.y(static_cast<double>(r.offset));
    for (end = i + 1; end < about.residents.size() && low - axis.y(static_cast<double>(r.offset + bytes)) < 1; ++end)
      bytes = about.residents[end].offset + about.residents[end].bytes - r.offset;
    double const high = axis.y(static_cast<double>(r.offset + bytes));
    auto const name = end == i + 1 ? r.name : counted(end - i, "resident") + " from " + r.name + " on";
    s += print("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>", left, high, right - left,
               low - high) +
         xml_text(name) + ": " + readable_bytes(bytes) + " at " + std::to_string(r.offset) +
         ", always there</title></rect>\n";
    names += svg_name_in(left, high, right - left, low - high, name + ", " + readable_bytes(bytes));
  }
  return s + "</g>\n" + names;
}

}  // namespace detail

/// The picture of a plan that verify() finds right. A plan without offsets gives a picture that says so. About 150 bytes
/// a record; the 400 largest rectangles have their names written on them where they fit, all have them as titles.
/// O(n log n).
inline std::string offsets_svg(offsets_picture const& about, memory_problem const& p, memory_plan const& plan) {
  using detail::print;
  using detail::svg_grey;
  using detail::svg_text;
  constexpr double width = 1100, left = 92, right = 872;
  if (!has_offsets(plan))
    return detail::svg_begin(width, 80, about.title) + svg_text(24, 56, "No plan: " + plan.why.message(), svg_grey) +
           "</svg>\n";

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
  if (about.from < about.to) {
    first = any ? std::min(first, about.from) : about.from;
    last = any ? std::max(last, about.to) : about.to;
  }
  auto const& bytes = readable_bytes;
  bool const based = !about.residents.empty();
  bytes_t const base = based ? about.resident_bytes : 0;

  std::string words = "Each rectangle is one of " + std::to_string(p.count()) + (based ? " buffers" : " records") +
                      ": as wide as its life, as high as its size, at its place.";
  if (based) words += " Grey, beneath: " + bytes(base) + " of weights and inputs, always there.";
  else if (about.resident_bytes > 0)
    words += " Beside it lie " + bytes(about.resident_bytes) + " of weights and inputs, always there.";
  std::string sentence = "The arena is " + bytes(base + plan.arena_bytes);
  if (plan.status == plan_status::optimal) sentence += ", proved the least possible";
  else sentence += ", and no arena can be below " + bytes(base + plan.lower_bound_bytes);
  if (based) sentence += " for this schedule";
  if (report.lost_bytes() == 0)
    sentence +=
        std::string("; it equals ") + (based ? "the peak" : "the largest load") + ": nothing is lost to fragmentation.";
  else
    sentence += "; the most in use at once is " + bytes(base + report.largest_load) + ", so " +
                bytes(report.lost_bytes()) +
                print(" (%.2g %%) are lost to fragmentation.",
                      100 * static_cast<double>(report.lost_bytes()) / static_cast<double>(base + report.largest_load));

  // The legend: the size classes that occur, then the marks.
  std::array<std::size_t, detail::size_classes.size()> in_class{};
  for (std::size_t i = 0; i < p.count(); ++i)
    if (p.occupies(i)) ++in_class[detail::size_class_of(p.size[i])];
  double head = 56;
  std::string s = detail::svg_paragraph(24, head, width - 48, words, svg_grey);
  s += detail::svg_paragraph(24, head, width - 48, sentence, svg_grey);
  detail::svg_legend legend(left, width - 24, head - 6);
  for (std::size_t k = 0; k < in_class.size(); ++k)
    if (in_class[k] > 0)
      legend.add(print("fill=\"%s\" stroke=\"#2b3340\" stroke-width=\"0.6\"", detail::size_classes[k].color),
                 detail::size_class_name(k));
  if (based) legend.add("fill=\"#d9d4cc\" stroke=\"#9b948a\"", "resident: weights, states, inputs");
  legend.add("fill=\"#f6d5d2\"", "free below something in use");
  if (holes) legend.add("fill=\"none\" stroke=\"#2b3340\" stroke-dasharray=\"3 2\"", "gap in a life: bytes lent out");
  if (!p.fixed.empty()) legend.add("fill=\"none\" stroke=\"#111111\" stroke-width=\"2\"", "fixed");

  double const top = legend.bottom() + 20, bottom = top + 438;
  auto const arena = static_cast<double>(base) + static_cast<double>(plan.arena_bytes);
  bool const far = static_cast<double>(about.limit) > 2 * arena;
  double const reach =
      std::max({arena, far ? 0.0 : static_cast<double>(about.limit), static_cast<double>(base) + 1.0}) * 1.03;
  detail::offsets_axis const axis(top, bottom, static_cast<double>(base), reach);
  auto const span = static_cast<double>(last - first);
  auto const x = [&](std::int64_t t) { return left + (right - left) * static_cast<double>(t - first) / span; };
  auto const y = [&](std::int64_t b) { return axis.y(static_cast<double>(base) + static_cast<double>(b)); };

  s += legend.text();

  detail::byte_unit const unit(reach);  // axes
  double const step = std::max(detail::axis_step(axis.to_scale ? reach : 1.4 * (reach - axis.base), unit.bytes), 1.0);
  auto const mark = [&](double b) {
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e6e9ee\"/>\n", left, axis.y(b), right,
               axis.y(b));
    s += svg_text(left - 7, axis.y(b) + 4, detail::axis_text(b, unit.bytes, unit.name),
                  "text-anchor=\"end\" fill=\"#4a5260\"");
  };
  if (!axis.to_scale) {
    mark(0);
    s += svg_text(right + 8, bottom - axis.knee / 2 - 4, "weights, states and inputs,",
                  "font-size=\"11\" fill=\"#4a5260\"");
    s += svg_text(right + 8, bottom - axis.knee / 2 + 10, "drawn lower than to scale",
                  "font-size=\"11\" fill=\"#4a5260\"");
  }
  for (double b = axis.to_scale ? 0 : std::ceil(axis.base / step) * step; b <= reach; b += step) mark(b);
  s += print("<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\" %s>", (top + bottom) / 2,
             svg_grey) +
       "offset in the arena</text>\n";
  auto const tick = detail::moment_step(last - first);
  for (auto t = first >= 0 ? (first + tick - 1) / tick * tick : first / tick * tick; t <= last; t += tick) {
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#4a5260\"/>\n", x(t), bottom, x(t),
               bottom + 5);
    s += svg_text(x(t), bottom + 20, std::to_string(t), "text-anchor=\"middle\" fill=\"#4a5260\"");
  }
  s += svg_text((left + right) / 2, bottom + 46, about.time, "text-anchor=\"middle\" fill=\"#4a5260\"");

  // What is below the highest byte in use, tinted; the records cover what they use of it.
  double const floor = bottom - (based ? axis.knee : 0);
  std::string d = print("M%.2f %.2f", x(first), floor);
  for (auto const& point : report.points) d += print("H%.2fV%.2f", x(point.moment), y(point.highest));
  s += "<path d=\"" + d + print("V%.2fZ\" fill=\"#f6d5d2\"/>\n", floor);

  if (based) s += detail::svg_residents(about, axis, left, right);

  // Records: filled pieces, a class at a time; then outlines of lives with holes.
  auto const name = [&](std::size_t i) {
    return i < about.names.size() ? about.names[i] : "record " + std::to_string(i);
  };
  for (std::size_t k = 0; k < in_class.size(); ++k) {
    if (in_class[k] == 0) continue;
    s += print("<g fill=\"%s\" stroke=\"#2b3340\" stroke-width=\"%s\">\n", detail::size_classes[k].color,
               p.count() > 600   ? "0.12"
               : p.count() > 150 ? "0.3"
                                 : "0.6");
    for (std::size_t i = 0; i < p.count(); ++i) {
      if (!p.occupies(i) || detail::size_class_of(p.size[i]) != k) continue;
      p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
        double const px = x(lo), py = y(plan.offsets[i] + b);
        s += print("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"%s><title>", px, py, x(hi) - px,
                   y(plan.offsets[i] + a) - py,
                   p.fixed_of(i) != any_offset ? " stroke=\"#111111\" stroke-width=\"2\"" : "");
        s += detail::xml_text(name(i)) + ": " + bytes(b - a) + " at " + std::to_string(base + plan.offsets[i] + a) +
             ", " + about.unit +
             (hi == lo + 1 ? " " + std::to_string(lo) : "s " + std::to_string(lo) + " to " + std::to_string(hi - 1)) +
             "</title></rect>\n";
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
  // The time that holds the bound, and the levels.
  s += print("<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" stroke=\"#1b2230\" stroke-dasharray=\"2 3\"/>\n",
             x(report.load_moment), top, x(report.load_moment), bottom);
  s += svg_text(std::clamp(x(report.load_moment), left + 90, right - 90), top - 6,
                "most in use: " + about.unit + " " + std::to_string(report.load_moment),
                "text-anchor=\"middle\" font-size=\"11\"");
  std::vector<detail::svg_level> levels;
  auto const level = [&](bytes_t at, std::string what, char const* color) {
    double const py = axis.y(static_cast<double>(at));
    levels.push_back({static_cast<double>(at), std::move(what), color, std::max(py, top)});
    if (py >= top)
      s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"1.2\"/>\n", left,
                 py, right, py, color);
  };
  std::string const in_use = based ? "peak, most in use at once" : "most in use at once";
  if (plan.arena_bytes == report.largest_load) {
    level(base + plan.arena_bytes, based ? "arena; equals the peak" : "arena; most in use at once", "#1b2230");
  } else {
    level(base + plan.arena_bytes, "arena", "#1b2230");
    level(base + report.largest_load, in_use, "#1d5f6c");
  }
  if (plan.lower_bound_bytes != plan.arena_bytes && plan.lower_bound_bytes != report.largest_load)
    level(base + plan.lower_bound_bytes, "proved: no arena is smaller", "#a8641d");
  if (about.limit > 0) level(about.limit, far ? "limit, above the picture" : "limit", "#c0392b");

  // Names, where there is room for them, on the largest.
  struct named_piece {
    double px, py, wide, high;
    std::size_t record;
  };
  std::vector<named_piece> pieces;
  for (std::size_t i = 0; i < std::min(p.count(), about.names.size()); ++i) {
    if (!p.occupies(i)) continue;
    named_piece best{0, 0, 0, 0, i};
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t from, std::int64_t to) {
      double const wide = x(hi) - x(lo), py = y(plan.offsets[i] + to), high = y(plan.offsets[i] + from) - py;
      if (wide * high > best.wide * best.high) best = {x(lo), py, wide, high, i};
    });
    if (std::min(best.wide, best.high) >= 8) pieces.push_back(best);
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](named_piece const& a, named_piece const& c) { return a.wide * a.high > c.wide * c.high; });
  if (pieces.size() > 400) pieces.resize(400);
  for (auto const& r : pieces) s += detail::svg_name_in(r.px, r.py, r.wide, r.high, about.names[r.record]);

  // What is in use at that time, the largest first.
  std::vector<std::size_t> there;
  bytes_t rest = 0;
  for (std::size_t i = 0; i < std::min(p.count(), about.names.size()); ++i)
    if (p.occupies(i) && p.lower[i] <= report.load_moment && report.load_moment < p.upper[i]) there.push_back(i);
  std::stable_sort(there.begin(), there.end(), [&](std::size_t a, std::size_t c) { return p.size[a] > p.size[c]; });
  for (std::size_t k = 12; k < there.size(); ++k) rest += p.size[there[k]];
  auto const more = there.size() > 12 ? there.size() - 12 : 0;
  if (more) there.resize(12);
  double py = bottom + 78;
  if (!there.empty()) {
    s += svg_text(24, py,
                  "In use at " + about.unit + " " + std::to_string(report.load_moment) + ", the largest first" +
                      (more ? "; and " + std::to_string(more) + " more of " + bytes(rest) : std::string()),
                  "font-weight=\"bold\"");
    std::size_t const rows = (there.size() + 1) / 2;
    for (std::size_t k = 0; k < there.size(); ++k) {
      auto const i = there[k];
      double const px = k < rows ? 24 : 562, at = py + 17 * static_cast<double>(1 + k % rows);
      s += svg_text(px + 66, at, bytes(p.size[i]), "font-size=\"11\" fill=\"#1b2230\" text-anchor=\"end\"");
      s += svg_text(px + 76, at, detail::fitted(about.names[i], 200, 11), "font-size=\"11\" fill=\"#1b2230\"");
      s += svg_text(px + 284, at,
                    "at " + bytes(base + plan.offsets[i]) + ", " + about.unit + "s " + std::to_string(p.lower[i]) +
                        " to " + std::to_string(p.upper[i] - 1),
                    "font-size=\"11\" fill=\"#4a5260\"");
    }
    py += 17 * static_cast<double>(rows) + 14;
  }
  return detail::svg_begin(width, py, about.title) + s + detail::svg_levels(levels, right, top, bottom) + "</svg>\n";
}

/// What the picture of a plan shows beside its records, which are those of records_of(plan): their names, and residents
/// at their places. O(buffers + steps).
inline offsets_picture picture_of(plan const& p, std::string title) {
  offsets_picture out;
  out.title = std::move(title);
  out.time = "position in the schedule", out.unit = "position";
  out.from = 0, out.to = static_cast<std::int64_t>(p.steps.size());
  out.resident_bytes = p.resident_bytes;
  for (auto const& b : p.buffers) {
    if (b.bytes == 0) continue;
    auto const v = p.graph.record(b.storage).first;
    auto name = value_label(p.graph, v);
    if (b.resident) {
      out.residents.push_back({std::string(name_of(p.graph.role(v))) + " " + name, b.offset, b.bytes});
    } else {
      if (auto const o = p.graph.producer(v); o != nothing<op_id> && p.graph.as<op::load>(o)) name += ", loaded";
      out.names.push_back(std::move(name));
    }
  }
  std::sort(out.residents.begin(), out.residents.end(),
            [](resident_block const& a, resident_block const& b) { return a.offset < b.offset; });
  for (auto const& s : p.steps)
    if (s.workspace_bytes > 0) out.names.push_back("workspace of " + op_label(p.graph, s.op));
  return out;
}

/// The arena of a plan that is right (verify/), as `neap plan` reports it: residents, buffers and workspaces.
inline std::string offsets_svg(plan const& p, std::string title, bytes_t limit = -1) {
  auto const placed = records_of(p);
  auto about = picture_of(p, std::move(title));
  about.limit = limit;
  return offsets_svg(about, placed.records, placed.placed);
}

}}  // namespace neap::v0
