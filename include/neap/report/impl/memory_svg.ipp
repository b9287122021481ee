// The bodies of <neap/report/memory_svg.hpp>.
#pragma once

#include <neap/report/memory_svg.hpp>

#include <neap/core/readable.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/report/svg.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 {

NEAP_FUNC memory_curve curve_of(std::string label, simulation const& s) {
  return {std::move(label), s.bytes_at, s.start, s.end, s.resident_bytes, {}};
}

NEAP_FUNC memory_curve curve_of(std::string label, op_graph const& g, schedule const& order, simulation const& s,
                                memory_options options) {
  return {std::move(label), s.bytes_at, s.start, s.end, s.resident_bytes, notes_on(g, order, s, options)};
}

namespace detail {

struct svg_plot {
  static constexpr double width = 1100, left = 92, right = 880, top = 104, bottom = 470;
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

/// "From left to right one training step. Planned: 144 MiB at the peak instead of 206 MiB (70 %), 1.71 ms instead of..."
NEAP_FUNC std::string svg_sentence(memory_curve const& before, memory_curve const& after) {
  auto const ratio = [](double a, double b) { return b > 0 ? print(" (%.3g %%)", 100 * a / b) : std::string(); };
  auto const& bytes = readable_bytes;
  auto const now = static_cast<double>(after.peak_bytes()), then = static_cast<double>(before.peak_bytes());
  std::string label = after.label;
  if (!label.empty() && label[0] >= 'a' && label[0] <= 'z') label[0] = static_cast<char>(label[0] - 'a' + 'A');
  return "From left to right one training step. " + label + ": " + bytes(after.peak_bytes()) +
         " at the peak instead of " + bytes(before.peak_bytes()) + ratio(now, then) + ", " +
         readable_seconds(after.latency()) + " instead of " + readable_seconds(before.latency()) +
         ratio(after.latency(), before.latency()) + ".";
}

inline constexpr std::array<char const*, step_part_count> part_color{"#9db8d9", "#e0b787", "#a9c79a"};
inline constexpr std::array<char const*, memory_event_kinds> event_color{"#c8553d", "#6a51a3", "#3b7dc4", "#d1a11c"};
inline constexpr std::array<char const*, memory_event_kinds> event_name{"recomputed", "moved out", "brought in",
                                                                        "waiting"};

/// Which part of the step runs when: a band a run of positions, to the pixel.
NEAP_FUNC std::string svg_parts(svg_plot const& plot, memory_curve const& c, double py) {
  auto const columns = static_cast<std::size_t>(plot.right - plot.left);
  std::vector<std::array<double, step_part_count>> share(columns);  // of each pixel's time
  for (std::size_t i = 0; i < c.notes.parts.size(); ++i) {
    double const from = plot.x(c.start[i]) - plot.left, to = plot.x(c.end[i]) - plot.left;
    for (auto k = static_cast<std::size_t>(std::max(from, 0.0)); k < columns && static_cast<double>(k) < to; ++k)
      share[k][static_cast<std::size_t>(c.notes.parts[i])] +=
          std::min(to, static_cast<double>(k) + 1) - std::max(from, static_cast<double>(k));
  }
  std::string s;
  std::size_t const none = step_part_count;
  auto const at = [&](std::size_t k) {
    if (k >= columns) return none;
    auto const most = std::max_element(share[k].begin(), share[k].end());
    return *most > 0 ? static_cast<std::size_t>(most - share[k].begin()) : none;
  };
  for (std::size_t begin = 0, end = 0; begin < columns; begin = end) {
    auto const part = at(begin);
    while (end < columns && at(end) == part) ++end;
    if (part == none) continue;
    auto const name = name_of(static_cast<step_part>(part));
    double const px = plot.left + static_cast<double>(begin), wide = static_cast<double>(end - begin);
    s += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"13\" fill=\"%s\"><title>", px, py, wide,
               part_color[part]) +
         std::string(name) + "</title></rect>\n";
    if (wide > 8 + text_width(name, 11))
      s += svg_text(px + wide / 2, py + 10.5, name, "text-anchor=\"middle\" font-size=\"11\" fill=\"#1b2230\"");
  }
  return s;
}

NEAP_FUNC std::string event_text(memory_event const& e) {
  return e.name + " (" + e.about + "): " + readable_bytes(e.bytes) + ", " + readable_seconds(e.start) + " to " +
         readable_seconds(e.end) + ", position " + std::to_string(e.position);
}

/// The events of one kind, each where it happens.
NEAP_FUNC std::string svg_events(svg_plot const& plot, memory_curve const& c, memory_event::kind what, double py) {
  std::string s;
  double from = 0, to = -1;
  std::vector<memory_event const*> drawn;  // as one mark
  auto const draw = [&] {
    if (drawn.empty()) return;
    s += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"13\" fill=\"%s\"><title>", from, py, to - from,
               event_color[static_cast<std::size_t>(what)]);
    for (std::size_t i = 0; i < drawn.size() && i < 6; ++i) s += (i ? "; " : "") + xml_text(event_text(*drawn[i]));
    if (drawn.size() > 6) s += "; and " + std::to_string(drawn.size() - 6) + " more";
    s += "</title></rect>\n";
    drawn.clear();
  };
  for (auto const& e : c.notes.events) {
    if (e.what != what) continue;
    double const x0 = plot.x(e.start), x1 = std::max(plot.x(e.end) - 0.5, x0 + 1.5);
    if (x0 >= to || (x1 - x0 > 2 && to - from > 2)) draw();
    if (drawn.empty()) from = x0, to = x1;
    from = std::min(from, x0), to = std::max(to, x1);
    drawn.push_back(&e);
  }
  draw();
  return s;
}

inline constexpr double svg_line = 17;  // from one row of a table to the next
inline constexpr char const* svg_small = "font-size=\"11\" fill=\"#1b2230\"";
inline constexpr char const* svg_number = "font-size=\"11\" fill=\"#1b2230\" text-anchor=\"end\"";

/// What makes a curve's peak: residents by role, then the largest tensors; in all `rows` rows at most, and the sum.
/// Moves `py` below the table.
NEAP_FUNC std::string svg_peak(memory_curve const& c, double px, double wide, double& py, std::size_t rows = 14) {
  auto const& n = c.notes;
  auto const before = "At the peak, " + c.label + ": while ",
             after = " runs (position " + std::to_string(n.peak_position) + ")";
  auto const who = fitted(n.peak_op, wide - text_width(before + after, 12), 12);
  std::string s = svg_text(px, py, fitted(before + who + after, wide, 12), "font-size=\"12\" font-weight=\"bold\"");
  auto const row = [&](bytes_t bytes, std::string_view name, std::string_view about, char const* number = svg_number) {
    py += svg_line;
    s += svg_text(px + 66, py, readable_bytes(bytes), number);
    s += svg_text(px + 76, py, fitted(name, 150, 11), svg_small);
    s += svg_text(px + 232, py, fitted(about, wide - 232, 11), "font-size=\"11\" fill=\"#4a5260\"");
  };
  std::size_t const shown = n.peak.size() <= rows ? n.peak.size() : rows - 1;
  bytes_t sum = 0, rest = 0;
  for (std::size_t i = 0; i < n.peak.size(); ++i) {
    if (i < shown) row(n.peak[i].bytes, n.peak[i].name, n.peak[i].about);
    else rest += n.peak[i].bytes;
    sum += n.peak[i].bytes;
  }
  if (shown < n.peak.size()) row(rest, "and " + std::to_string(n.peak.size() - shown) + " smaller ones", "");
  s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#b9c0ca\"/>\n", px, py + 5, px + 224,
             py + 5);
  row(sum, "in all", "", "font-size=\"11\" fill=\"#1b2230\" text-anchor=\"end\" font-weight=\"bold\"");
  return s;
}

/// "24 ops, 1.20 GiB"; of waits "3 times, 1.25 ms".
NEAP_FUNC std::string events_in_all(memory_curve const& c, memory_event::kind what) {
  std::size_t count = 0;
  bytes_t bytes = 0;
  seconds_t seconds = 0;
  for (auto const& e : c.notes.events)
    if (e.what == what) ++count, bytes += e.bytes, seconds += e.end - e.start;
  if (what == memory_event::kind::waited) return counted(count, "time") + ", " + readable_seconds(seconds);
  return counted(count, what == memory_event::kind::recomputed ? "op" : "tensor") + ", " + readable_bytes(bytes);
}

/// The events of one kind: all of them in order, or the `rows` largest. Moves `py` below the table.
NEAP_FUNC std::string svg_event_table(memory_curve const& c, memory_event::kind what, double px, double wide,
                                      double& py, std::size_t rows = 10) {
  std::vector<memory_event const*> list;
  for (auto const& e : c.notes.events)
    if (e.what == what) list.push_back(&e);
  std::string title = event_name[static_cast<std::size_t>(what)];
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  title += ": " + events_in_all(c, what);
  std::size_t left_out = 0;
  bytes_t left_bytes = 0;
  if (list.size() > rows) {
    title += ", largest:";
    std::stable_sort(list.begin(), list.end(),
                     [](memory_event const* a, memory_event const* b) { return a->bytes > b->bytes; });
    for (std::size_t i = rows; i < list.size(); ++i) ++left_out, left_bytes += list[i]->bytes;
    list.resize(rows);
  }
  std::string s = print("<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", px, py - 9,
                        event_color[static_cast<std::size_t>(what)]);
  s += svg_text(px + 16, py, fitted(title, wide - 16, 12), "font-size=\"12\" font-weight=\"bold\"");
  for (auto const* e : list) {
    py += svg_line;
    s += svg_text(px + 62, py, readable_bytes(e->bytes), svg_number);
    s += svg_text(px + 70, py, fitted(e->name, wide - 70 - 74, 11), svg_small);
    s += svg_text(px + wide, py, "at " + readable_seconds(e->start),
                  "font-size=\"11\" fill=\"#4a5260\" text-anchor=\"end\"");
  }
  if (left_out > 0) {
    py += svg_line;
    s += svg_text(px + 62, py, readable_bytes(left_bytes), svg_number);
    s += svg_text(px + 70, py, "and " + std::to_string(left_out) + " more", svg_small);
  }
  return s;
}

/// All that stands beneath the plot; moves `py` to its end.
NEAP_FUNC std::string svg_notes(svg_plot const& plot, std::vector<memory_curve> const& curves, double& py) {
  std::string s;
  auto const& c = curves.back();
  auto const lane = [&](std::string_view name, std::string const& marks, std::string const& about) {
    s += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"13\" fill=\"#f0f2f5\"/>\n", plot.left, py,
               plot.right - plot.left);
    s += svg_text(plot.left - 7, py + 10.5, name, "text-anchor=\"end\" font-size=\"11\" fill=\"#4a5260\"");
    s += marks + svg_text(plot.right + 8, py + 10.5, about, "font-size=\"11\" fill=\"#4a5260\"");
    py += 18;
  };
  if (!c.notes.parts.empty())
    lane("part of step", svg_parts(plot, c, py), fitted(c.label, plot.width - plot.right - 20, 11));
  std::vector<memory_event::kind> kinds;
  for (std::size_t k = 0; k < memory_event_kinds; ++k) {
    auto const what = static_cast<memory_event::kind>(k);
    if (std::none_of(c.notes.events.begin(), c.notes.events.end(), [&](auto const& e) { return e.what == what; }))
      continue;
    if (what != memory_event::kind::waited) kinds.push_back(what);
    lane(event_name[k], svg_events(plot, c, what, py), events_in_all(c, what));
  }
  if (kinds.empty() && curves.size() > 1 && !c.notes.peak.empty()) {
    s += svg_text(plot.left, py + 10.5, "Nothing is recomputed and nothing moved out: only the order may differ.",
                  svg_grey);
    py += 18;
  }
  double const tables = py + 22;
  double px = 24;
  for (auto const& x : curves) {
    if (x.notes.peak.empty() || (&x != &curves.front() && &x != &c)) continue;
    double end = tables;
    s += svg_peak(x, px, 514, end);
    py = std::max(py, end);
    px += 538;
  }
  double const below = py + 32;
  px = 24;
  for (auto what : kinds) {
    double end = below;
    s += svg_event_table(c, what, px, 336, end);
    py = std::max(py, end);
    px += 358;
  }
  return s;
}

}  // namespace detail

NEAP_FUNC std::string memory_svg(std::string const& title, std::vector<memory_curve> const& curves, bytes_t limit) {
  using detail::print;
  using detail::svg_text;
  double seconds = 0, top = 0;
  for (auto const& c : curves) {
    top = std::max(top, static_cast<double>(c.peak_bytes()));
    seconds = std::max(seconds, c.latency());
  }
  bool const far = static_cast<double>(limit) > 2 * top;
  if (!far) top = std::max(top, static_cast<double>(limit));
  detail::svg_plot const plot(seconds, top * 1.03);
  char const* const fill[] = {"#ccd1d9", "#2f7d8c", "#d98b3a", "#7a5aa8"};
  char const* const line[] = {"#6b7482", "#1d5f6c", "#a8641d", "#573c82"};

  double height = plot.bottom + 62;
  std::string notes;
  if (!curves.empty()) notes = detail::svg_notes(plot, curves, height);
  std::string s = detail::svg_begin(plot.width, height + 14, title);
  s += svg_text(24, 56,
                curves.size() < 2 ? "From left to right one training step."
                                  : detail::fitted(detail::svg_sentence(curves[0], curves[1]), plot.width - 48, 13),
                detail::svg_grey);
  detail::svg_legend legend(plot.left, plot.right, 72);
  for (std::size_t i = 0; i < curves.size(); ++i)
    legend.add(print("fill=\"%s\" stroke=\"%s\"", fill[i % 4], line[i % 4]),
               detail::fitted("memory in use, " + curves[i].label, 380, 11));
  s += legend.text();

  s += detail::svg_byte_axis(plot);
  detail::time_unit const time(plot.seconds);
  double const tick = detail::axis_step(plot.seconds, time.seconds);
  for (int k = 0; k * tick <= plot.seconds * 1.0001; ++k)
    s += detail::svg_tick(plot.x(k * tick), plot.bottom, detail::axis_text(k * tick, time.seconds, time.name));
  s += svg_text((plot.left + plot.right) / 2, plot.bottom + 44, "time within the step",
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
    levels.push_back({*at, detail::fitted("peak, " + curves[i].label, 190, 11), line[i % 4], py});
  }
  if (!curves.empty() && curves[0].resident_bytes > 0) {
    auto const b = static_cast<double>(curves[0].resident_bytes);
    s += print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#1b2230\" fill-opacity=\"0.22\"/>\n",
               plot.left, plot.y(b), plot.right - plot.left, plot.bottom - plot.y(b));
    levels.push_back({b, "always there: weights, inputs", "#3b4250", plot.y(b)});
  }
  if (limit > 0) {
    double const py = far ? plot.top : plot.y(static_cast<double>(limit));
    if (!far)
      s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#c0392b\" stroke-width=\"1.6\"/>\n",
                 plot.left, py, plot.right, py);
    levels.push_back({static_cast<double>(limit), far ? "limit, above the picture" : "limit", "#c0392b", py});
  }
  return s + detail::svg_levels(levels, plot.right, plot.top, plot.bottom) + notes + "</svg>\n";
}

}}  // namespace neap::v0
