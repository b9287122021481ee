// neap plan --explain: what holds the peak of a plan, what each recomputation saves and costs, what a little more memory
// would save, and which stages of the search found the plan.
#pragma once

#include "common.hpp"

#include <neap/core/readable.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/plan/candidate.hpp>
#include <neap/report/labels.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cli {

/// An op of the plan that runs again.
struct recomputation {
  std::string name;
  neap::bytes_t bytes = 0;            // of its results
  neap::seconds_t seconds = 0;        // of this run
  std::uint32_t first = 0, last = 0;  // the positions without them, both included
  bool at_peak = false;               // whether the peak is one of these positions
  neap::bytes_t saved = 0;            // the peak would be higher by as much if its results had stayed, all else equal
};

/// Those of a candidate, the longest first. O(ops + edges + positions of all gaps).
inline std::vector<recomputation> recomputations_of(neap::candidate const& c) {
  auto const& g = c.graph;
  auto const& r = c.result;
  auto const again = neap::recomputed_ops(g, c.order);
  std::map<std::pair<std::size_t, std::size_t>, neap::op_id> last;  // by origin and part
  std::vector<recomputation> found;
  for (std::uint32_t p = 0; p < c.order.size(); ++p) {
    auto const o = c.order[p];
    if (neap::flow::stream(g, o) != neap::op_stream::compute) continue;
    auto const key = std::pair(neap::index(g.origin(o)), neap::index(g.record(o).part));
    auto const before = last.find(key);
    if (again[o] && before != last.end()) {
      recomputation x{neap::op_label(g, o), 0, r.end[p] - r.start[p], 0, p - 1};
      for (auto v : g.outputs(before->second)) {
        auto const s = g.storage(v);
        x.bytes += g.bytes(s);
        if (!r.live[s].empty()) x.first = std::max(x.first, r.live[s].last + 1);
      }
      neap::bytes_t highest = 0;
      for (auto q = x.first; q <= x.last && q < r.bytes_at.size(); ++q) highest = std::max(highest, r.bytes_at[q]);
      if (x.first <= x.last) {
        x.at_peak = x.first <= r.peak_position && r.peak_position <= x.last;
        x.saved = std::max<neap::bytes_t>(highest + x.bytes - r.peak_bytes, 0);
      }
      found.push_back(std::move(x));
    }
    last[key] = o;
  }
  std::stable_sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.seconds > b.seconds; });
  return found;
}

/// The records of a search, summed by stage, in the order in which stages first ended.
struct stage_total {
  neap::stage_record sum;
  std::size_t runs = 0, gains = 0;  // runs in all; those that changed the best candidate of their search
};
inline std::vector<stage_total> stage_totals(neap::search_outcome const& found) {
  std::vector<stage_total> all;
  for (auto const& r : found.stages) {
    auto const same = [&](stage_total const& t) { return t.sum.stage == r.stage && t.sum.within == r.within; };
    auto t = std::find_if(all.begin(), all.end(), same);
    if (t == all.end()) t = all.insert(t, {neap::stage_record{r.stage, r.within, r.epoch, 0, 0, 0, r.before, r.after}});
    t->sum.work += r.work, t->sum.seconds += r.seconds, t->sum.candidates += r.candidates, t->sum.after = r.after;
    ++t->runs, t->gains += !(r.before == r.after);
  }
  return all;
}

inline std::string in_bytes(neap::bytes_t b) { return neap::readable_bytes(static_cast<double>(b)); }
inline std::string cost_text(neap::plan_cost const& c) {
  return c == neap::plan_cost{} ? "-" : in_bytes(c.peak_bytes) + " " + neap::readable_seconds(c.latency);
}

/// A table of the stages: work, candidates, and the best candidate before the first and after the last run.
inline void print_stages(neap::search_outcome const& found) {
  std::printf("  %-16s %-16s %5s %5s %10s %10s %10s   %s\n", "stage", "within", "runs", "gains", "candidates", "work",
              "seconds", "best before -> after");
  for (auto const& [sum, runs, gains] : stage_totals(found))
    std::printf("  %-16s %-16s %5zu %5zu %10zu %10s %10s   %s -> %s\n", sum.stage.c_str(), sum.within.c_str(), runs,
                gains, sum.candidates, neap::readable_seconds(sum.work).c_str(),
                neap::readable_seconds(sum.seconds).c_str(), cost_text(sum.before).c_str(),
                cost_text(sum.after).c_str());
}

/// What --explain prints.
inline void print_explanation(neap::optimized const& found) {
  using neap::readable_seconds;
  constexpr std::size_t most = 10;
  auto const& r = found.best.result;
  std::printf("explained:\n  peak %s at %s\n", in_bytes(r.peak_bytes).c_str(), printable(found.at_peak.op).c_str());
  for (auto const& h : found.at_peak.holders)
    std::printf("  %12s  %s\n", in_bytes(h.bytes).c_str(), printable(h.what).c_str());
  std::printf("  %12s  %zu others and workspace\n  %12s  resident\n", in_bytes(found.at_peak.other_bytes).c_str(),
              found.at_peak.others, in_bytes(r.resident_bytes).c_str());

  auto const all = recomputations_of(found.best);
  neap::seconds_t seconds = 0;
  for (auto const& x : all) seconds += x.seconds;
  std::printf("  recomputed: %s, %s, %.1f %% of the latency\n", neap::detail::counted(all.size(), "op").c_str(),
              readable_seconds(seconds).c_str(), r.latency > 0 ? 100 * seconds / r.latency : 0.0);
  for (std::size_t k = 0; k < all.size() && k < most; ++k) {
    auto const& x = all[k];
    std::printf("  %12s  %s: ", readable_seconds(x.seconds).c_str(), printable(x.name).c_str());
    if (x.first > x.last) std::printf("the results of its run before are still in use\n");
    else
      std::printf("%s absent at positions %u to %u%s; kept, the peak would be %s higher\n", in_bytes(x.bytes).c_str(),
                  x.first, x.last, x.at_peak ? ", the peak among them" : "", in_bytes(x.saved).c_str());
  }
  if (all.size() > most) std::printf("  %12s  %zu more\n", "", all.size() - most);

  std::printf("  more memory, by the candidates that were evaluated:\n");
  std::size_t lines = 0;
  auto quickest = r.latency;
  for (auto const& f : found.front) {
    if (f.peak_bytes <= r.peak_bytes || f.latency >= quickest || lines == most) continue;
    quickest = f.latency, ++lines;
    std::printf("  %12s  more: %s, saves %s\n", in_bytes(f.peak_bytes - r.peak_bytes).c_str(),
                readable_seconds(f.latency).c_str(), readable_seconds(r.latency - f.latency).c_str());
  }
  if (lines == 0) std::printf("  %12s  no quicker one was found\n", "");

  std::printf("  found by: %s\n", found.steps.empty() ? "the original order" : found.steps.back().stage.c_str());
  auto const from = found.steps.size() - std::min(found.steps.size(), most);
  if (from > 0) std::printf("  %12s  %zu earlier steps\n", "", from);
  for (auto k = from; k < found.steps.size(); ++k) {
    auto const& s = found.steps[k];
    std::printf("  %12s  %s: %s\n", s.stage.c_str(), printable(s.how).c_str(), cost_text(s.cost).c_str());
  }
}

}  // namespace cli
