// All fissions of a candidate at a glance: stretches of the order x components of the dimension graph x numbers of parts, each
// estimated in closed form from the lives of storages, before anything is built. With r the bytes that are there once and
// s(t) those of the pieces at time t of the body,
//
//   peak(n) = max over t of r(t) + s(t) / n,     latency(n) = latency + (n - 1) launches of each op inside + what joins cost
//
// so one pass over a stretch answers for every n. What is estimated is judged in full afterwards.
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/ir/dimension_graph.hpp>
#include <neap/mutate/fission.hpp>
#include <neap/mutate/fission_region.hpp>
#include <neap/mutate/ranked_stream.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A fission and what it is estimated to come to.
struct estimated_fission {
  fission_of what;
  bytes_t peak = 0;
  seconds_t latency = 0;
  bytes_t inside = 0;  // the most within the stretch
};

struct fission_sweep_options {
  std::uint32_t starts = 20, ends = 20;  // positions tried before and after the peak, beside the first and the last;
                                         // more of small programs, fewer of large ones
  std::uint32_t components = 4;          // the largest ones, by the bytes they can cut
  std::uint32_t extents = 3;             // of each: numbers of parts that divide all its axes, and that divide some
  std::int64_t max_parts = 256;
  bool again = false;  // parts of other fissions are cut once more
  // Of the device; negative: guessed from what the ops take.
  seconds_t launch = -1;
  double seconds_per_byte = -1;  // moved when parts are joined
};

namespace detail {

class fission_sweep {
 public:
  fission_sweep(op_graph const& g, schedule const& order, simulation const& result,
                fission_sweep_options const& options)
      : g_(g),
        order_(order),
        result_(result),
        options_(options),
        at_(positions(order)),
        dims_(g) {
    work_meter::add(500 * order.size());
    options_.starts = tries(options.starts), options_.ends = tries(options.ends);
    touches_.build(g.storage_count(), [&](auto&& pair) {
      for (std::uint32_t p = 0; p < order.size(); ++p) {
        for (auto v : g.inputs(order[p])) pair(g.storage(v), p);
        for (auto v : g.outputs(order[p])) pair(g.storage(v), p);
      }
    });
    born_.build(order.size(),
                [&](auto&& pair) { each_life([&](storage_id s, live_range l) { pair(moment{l.first}, s); }); });
    dying_.build(order.size(),
                 [&](auto&& pair) { each_life([&](storage_id s, live_range l) { pair(moment{l.last}, s); }); });
    there_before_.assign(order.size() + 1, 0);
    for (std::uint32_t p = 0; p < order.size(); ++p) {
      there_before_[p + 1] = there_before_[p];
      for (auto s : born_[moment{p}]) there_before_[p + 1] += g_.bytes(s);
      for (auto s : dying_[moment{p}]) there_before_[p + 1] -= g_.bytes(s);
    }
    launch_ = find_launch(), seconds_per_byte_ = find_seconds_per_byte();
    highest_before_.assign(order_.size() + 1, 0), highest_after_.assign(order_.size() + 1, 0);
    for (std::size_t p = 0; p < order_.size(); ++p)
      highest_before_[p + 1] = std::max(highest_before_[p], result_.bytes_at[p]);
    for (std::size_t p = order_.size(); p-- > 0;)
      highest_after_[p] = std::max(highest_after_[p + 1], result_.bytes_at[p]);
  }

  /// The estimates that are no worse than another one in both peak and latency: falling peak, rising latency.
  plain_vector<estimated_fission> front();
  /// The same of stretches that begin and end near those of a fission: up to `reach` positions away.
  plain_vector<estimated_fission> front_near(fission_of const& f, std::uint32_t reach);
  /// Stretches around the peak, within a latency: those that come down to `target`, the most bytes above that, summed over
  /// positions, for the least time; behind them the others, those that come nearly as far down as any first. The first
  /// `most` of them.
  plain_vector<estimated_fission> at_the_peak(bytes_t target, seconds_t latency, std::size_t most);
  /// A fission of the candidate that is swept, built with what is known of it already.
  std::optional<edited> apply(fission_of const& f, candidate const& c) const { return f.apply(c, at_, dims_); }
  /// About how far apart the stretches of front() begin.
  std::uint32_t spacing() const { return static_cast<std::uint32_t>(order_.size()) / (2 * options_.starts) + 1; }

  plain_vector<estimated_fission> keep_front(plain_vector<estimated_fission> all) const {
    all.erase_if([&](estimated_fission const& f) { return f.peak >= result_.peak_bytes; });
    detail::sort_list(all, [](estimated_fission const& a, estimated_fission const& b) {
      return a.latency != b.latency ? a.latency < b.latency : a.peak < b.peak;
    });
    plain_vector<estimated_fission> front;
    for (auto const& x : all)
      if (front.empty() || x.peak < front.back().peak) front.push_back(x);
    return front;
  }

 private:
  enum class moment : std::uint32_t {};  // a position of the order

  /// Calls f(storage, life) with those that come and go.
  template <class F>
  void each_life(F&& f) const {
    for (auto s : g_.storages())
      if (!g_.is_resident(s) && !result_.live[s].empty()) f(s, result_.live[s]);
  }
  /// Positions of [low, high]: both ends, and others at equal distances.
  static std::vector<std::uint32_t> spread(std::uint32_t low, std::uint32_t high, std::uint32_t count) {
    std::vector<std::uint32_t> at;
    for (std::uint32_t k = 0; k <= count; ++k) {
      auto const p = low + static_cast<std::uint32_t>(std::uint64_t{high - low} * k / std::max(count, 1u));
      if (at.empty() || at.back() != p) at.push_back(p);
    }
    return at;
  }
  /// Each position costs more in a large program.
  std::uint32_t tries(std::uint32_t asked) const {
    auto const n = static_cast<std::uint32_t>(order_.size());
    return n > 8000 ? std::min(asked, 12u) : std::max(asked, std::min(40u, 9600 / (n + 1)));
  }
  static std::uint32_t further(std::uint32_t distance) { return distance < 4 ? distance + 1 : distance + distance / 2; }
  /// Those that can cut the most bytes of what is not resident, or of what is there at a position.
  plain_vector<component_id> largest_components(std::uint32_t at = no_id) const {
    struct sized {
      double bytes;
      component_id component;
    };
    plain_vector<sized> all;
    for (auto c : dims_.components()) {
      if (dims_.members(c).size() < 2) continue;
      double bytes = 0;
      for (auto const& a : dims_.axes(c))
        if (auto const& r = g_.record(a.value);
            r.alias == alias_kind::fresh && !g_.is_source(r.storage) && g_.type(a.value).dims[a.axis] > 1 &&
            (at == no_id || (result_.live[r.storage].first <= at && result_.live[r.storage].last >= at)))
          bytes += static_cast<double>(g_.bytes(r.storage));
      if (bytes > 0) all.push_back({bytes, c});
    }
    sort_list(all, [](sized const& a, sized const& b) { return a.bytes > b.bytes; });
    plain_vector<component_id> out;
    for (auto const& [bytes, c] : all)
      if (out.size() < options_.components && 10 * bytes >= all.front().bytes) out.push_back(c);
    return out;
  }
  /// Numbers of parts that divide the same axes of a component, so that the same ops can be cut.
  struct part_numbers {
    std::int64_t grain = 0;   // the greatest common divisor of those axes' extents
    value_axis along{};       // the first of them
    std::size_t axes = 0;     // how many they are
    std::uint64_t which = 0;  // of the extents that the component has, as bits
    std::vector<std::int64_t> parts;
  };
  /// All of a component, those first that divide the most axes. O(axes + max_parts).
  std::vector<part_numbers> numbers_of_parts(component_id c) const;
  /// Those among which a fission's is.
  part_numbers numbers_like(fission_of const& f) const;
  /// What a launch costs: the quickest op with a notable time, unless it is given.
  seconds_t find_launch() const {
    if (options_.launch >= 0) return options_.launch;
    auto launch = result_.latency;
    auto const least = 1e-7 * result_.latency / static_cast<double>(std::max<std::size_t>(order_.size(), 1));
    for (std::size_t p = 0; p < order_.size(); ++p) {
      auto const t = result_.end[p] - result_.start[p];
      if (t > least && t > 1e-10) launch = std::min(launch, t);
    }
    return launch;
  }
  /// What joining costs: as much for each byte as the quickest quarter of the ops that do not wait for their launch.
  double find_seconds_per_byte() const {
    if (options_.seconds_per_byte >= 0) return options_.seconds_per_byte;
    std::vector<double> all;
    for (std::size_t p = 0; p < order_.size(); ++p) {
      double bytes = 0;
      for (auto v : g_.inputs(order_[p])) bytes += touched_bytes(g_.layout(v));
      for (auto v : g_.outputs(order_[p])) bytes += touched_bytes(g_.layout(v));
      if (auto const t = result_.end[p] - result_.start[p]; t > 3 * launch_ && bytes > 0) all.push_back(t / bytes);
    }
    if (all.empty()) return 0;
    sort_list(all);
    return all[all.size() / 4];
  }

  void try_stretch(fission_axes const& axes, part_numbers const& numbers, std::uint32_t first, std::uint32_t last,
                   plain_vector<estimated_fission>& all);

  op_graph const& g_;
  schedule const& order_;
  simulation const& result_;
  fission_sweep_options options_;
  table<op_id, std::uint32_t> at_;
  dimension_graph dims_;
  csr<storage_id, std::uint32_t> touches_;  // positions
  csr<moment, storage_id> born_, dying_;
  plain_vector<bytes_t> there_before_;  // bytes made before a position that are there from it on
  seconds_t launch_ = 0;
  double seconds_per_byte_ = 0;                           // of what joins parts
  plain_vector<bytes_t> highest_before_, highest_after_;  // of the order as it is
  // scratch of a stretch
  plain_vector<std::uint32_t> time_;
  plain_vector<bytes_t> once_, pieces_, here_;
};

/// The fissions on the front of a sweep, worth bytes for seconds.
struct find_fissions {
  fission_sweep_options options;

  plain_vector<scored<fission_of>> operator()(candidate const& c) const {
    plain_vector<scored<fission_of>> found;
    for (auto const& f : fission_sweep(c.graph, c.order, c.result, options).front())
      found.push_back(
          {static_cast<double>(c.result.peak_bytes - f.peak) / (f.latency - c.result.latency + 1e-5 * c.result.latency),
           f.what});
    return found;
  }
};

}  // namespace detail

/// The mutator: the fissions of a candidate around its peak that are estimated to be worth most, bytes for seconds; found at
/// the first draw.
struct fission {
  static constexpr permissions allows{.cut = true};

  fission_sweep_options options{};

  auto operator()(candidate const& c) const {
    return detail::ranked_stream<fission_of, detail::find_fissions>(c, {options});
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/fission_sweep.ipp>
#endif
