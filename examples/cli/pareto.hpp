// What memory costs in time, of all that a search judged: as a table and as a picture.
#pragma once

#include <neap/core/readable.hpp>
#include <neap/core/units.hpp>
#include <neap/optimize/pareto_front.hpp>
#include <neap/report/svg.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

/// A search's front, its limits and the chosen plan.
struct pareto_report {
  std::vector<plan_cost> front;  // of rising peak and falling latency
  plan_cost original, chosen;    // the plan: where addresses need more than the peak it may lie behind the front
  bytes_t memory_limit = -1;     // negative: none
  seconds_t latency_limit = -1;  // negative: none
  bytes_t lower_bound_bytes = 0;

  bool meets_limits(plan_cost const& p) const {
    return (memory_limit < 0 || p.peak_bytes <= memory_limit) &&
           (latency_limit < 0 || p.latency <= latency_limit * (1 + 1e-12));
  }
};

/// A row a point, of rising peak, times in microseconds; `plan` marks the chosen one, which has a row even if it lies behind
/// the front.
inline std::string pareto_csv(pareto_report const& r) {
  auto rows = r.front;
  auto const at = std::lower_bound(rows.begin(), rows.end(), r.chosen, [](auto const& a, auto const& b) {
    return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.latency < b.latency;
  });
  if (at == rows.end() || !(*at == r.chosen)) rows.insert(at, r.chosen);
  std::string s = "peak_bytes,latency_us,memory_ratio,latency_ratio,meets_limits,plan\n";
  for (auto const& p : rows)
    s += detail::print(
        "%lld,%.17g,%.6g,%.6g,%d,%d\n", static_cast<long long>(p.peak_bytes), p.latency * 1e6,
        static_cast<double>(p.peak_bytes) / static_cast<double>(std::max<bytes_t>(r.original.peak_bytes, 1)),
        r.original.latency > 0 ? p.latency / r.original.latency : 1.0, r.meets_limits(p), p == r.chosen);
  return s;
}

namespace detail {

struct pareto_plot {
  static constexpr double width = 1100, left = 92, right = 880, top = 104, bottom = 520;
  double first, last;  // seconds: what the left and the right edge stand for
  double bytes;        // the upper edge; the lower one is 0

  explicit pareto_plot(pareto_report const& r) {
    first = last = r.original.latency;
    bytes = static_cast<double>(r.original.peak_bytes);
    auto const reach = [&](plan_cost const& p) {
      first = std::min(first, p.latency), last = std::max(last, p.latency);
      bytes = std::max(bytes, static_cast<double>(p.peak_bytes));
    };
    for (auto const& p : r.front) reach(p);
    reach(r.chosen);
    if (r.latency_limit > 0 && r.latency_limit < 4 * last - 3 * first) last = std::max(last, r.latency_limit);
    double const wide = std::max(last - first, std::max(last, 1e-12) * 1e-3);
    first -= 0.04 * wide, last += 0.06 * wide;
    bytes = std::max(bytes * 1.06, 1.0);
  }
  double x(double t) const { return left + (right - left) * (t - first) / (last - first); }
  double y(double b) const { return bottom - (bottom - top) * b / bytes; }
};

}  // namespace detail

/// The front as a staircase (a plan at or above it has been found, none below it), with the original, the chosen plan, the
/// limits and the proved bound.
inline std::string pareto_svg(std::string_view title, pareto_report const& r) {
  using detail::print;
  using detail::svg_text;
  detail::pareto_plot const plot(r);
  std::string s = detail::svg_begin(plot.width, plot.bottom + 80, title);
  auto const& bytes = readable_bytes;
  auto const ratio = [](double a, double b) { return b > 0 ? print(" (%.3g %%)", 100 * a / b) : std::string(); };
  s += svg_text(
      24, 56,
      detail::fitted(std::to_string(r.front.size()) +
                         " points that nothing judged beats. The plan: " + bytes(r.chosen.peak_bytes) + " at the peak" +
                         ratio(static_cast<double>(r.chosen.peak_bytes), static_cast<double>(r.original.peak_bytes)) +
                         " and " + readable_seconds(r.chosen.latency) + ratio(r.chosen.latency, r.original.latency) +
                         " a step.",
                     plot.width - 48, 13),
      detail::svg_grey);
  detail::svg_legend legend(plot.left, plot.right, 72);
  legend.add("fill=\"#e3ecf7\" stroke=\"#2b5c9e\"", "what was found: memory at the peak, time of a step");
  legend.add("fill=\"#c8553d\" stroke=\"#c8553d\"", "the plan");
  legend.add("fill=\"#ffffff\" stroke=\"#1b2230\"", "as it came");
  s += legend.text();

  s += detail::svg_byte_axis(plot);
  detail::time_unit const time(plot.last);
  double const tick = detail::axis_step(plot.last - plot.first, time.seconds);
  for (double k = std::ceil(plot.first / tick) + 0.0; k * tick <= plot.last; ++k) {
    double const px = plot.x(k * tick);
    s += detail::svg_tick(px, plot.bottom, detail::axis_text(k * tick, time.seconds, time.name));
    if (r.original.latency > 0)
      s += svg_text(px, plot.bottom + 35, print("%.4g %%", 100 * k * tick / r.original.latency),
                    "text-anchor=\"middle\" font-size=\"11\" fill=\"#7a8290\"");
  }
  s += svg_text((plot.left + plot.right) / 2, plot.bottom + 60, "time of a step, and its part of the original's",
                "text-anchor=\"middle\" fill=\"#4a5260\"");

  if (!r.front.empty()) {  // from the quickest, which is the largest, to the smallest
    std::string line = print("M%.1f %.1f", plot.x(r.front.back().latency), plot.top);
    double px = -1, py = -1;
    for (auto i = r.front.size(); i-- > 0;) {
      double const x = plot.x(r.front[i].latency), y = plot.y(static_cast<double>(r.front[i].peak_bytes));
      if (i > 0 && i + 1 < r.front.size() && x - px < 0.3 && y - py < 0.3) continue;  // it would not be seen
      line += print("H%.1fV%.1f", px = x, py = y);
    }
    line += print("H%.1f", plot.right);
    s += "<path d=\"" + line + print("V%.1fZ", plot.top) + "\" fill=\"#e3ecf7\" fill-opacity=\"0.7\"/>\n";
    s += "<path d=\"" + line + "\" fill=\"none\" stroke=\"#2b5c9e\" stroke-width=\"1.5\"/>\n";
  }
  std::vector<detail::svg_level> levels;
  auto const level = [&](bytes_t b, char const* what, char const* color, char const* dashes) {
    double const py = plot.y(static_cast<double>(b));
    s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"1.4\"%s/>\n",
               plot.left, py, plot.right, py, color, dashes);
    levels.push_back({static_cast<double>(b), what, color, py});
  };
  if (r.lower_bound_bytes > 0) level(r.lower_bound_bytes, "proved bound", "#7a8290", " stroke-dasharray=\"6 4\"");
  if (r.memory_limit >= 0) {
    if (static_cast<double>(r.memory_limit) <= plot.bytes) level(r.memory_limit, "memory limit", "#c0392b", "");
    else levels.push_back({static_cast<double>(r.memory_limit), "limit, above the picture", "#c0392b", plot.top});
  }
  if (r.latency_limit >= 0) {
    double const px = std::clamp(plot.x(r.latency_limit), plot.left, plot.right);
    bool const left_of = px > (plot.left + plot.right) / 2, seen = px == plot.x(r.latency_limit);
    if (seen)
      s += print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#c0392b\" stroke-width=\"1.4\"/>\n",
                 px, plot.top, px, plot.bottom);
    s += svg_text(px + (left_of ? -6 : 6), plot.top + 14,
                  "latency limit, " + readable_seconds(r.latency_limit) + (seen ? "" : ", outside the picture"),
                  print("font-size=\"11\" fill=\"#c0392b\" text-anchor=\"%s\"", left_of ? "end" : "start"));
  }
  auto const mark = [&](plan_cost const& p, char const* fill, char const* stroke, char const* what) {
    double const py = plot.y(static_cast<double>(p.peak_bytes));
    s += print(
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\" stroke=\"%s\" stroke-width=\"2\"><title>%s: %s, "
        "%s</title></circle>\n",
        plot.x(p.latency), py, fill, stroke, what, bytes(p.peak_bytes).c_str(), readable_seconds(p.latency).c_str());
    levels.push_back(
        {static_cast<double>(p.peak_bytes), std::string(what) + ", " + readable_seconds(p.latency), stroke, py});
  };
  mark(r.original, "#ffffff", "#1b2230", "as it came");
  mark(r.chosen, "#c8553d", "#c8553d", "the plan");
  return s + detail::svg_levels(levels, plot.right, plot.top, plot.bottom) + "</svg>\n";
}

}}  // namespace neap::v0
