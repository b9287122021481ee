// All fissions of a candidate at a glance: stretches of the order x components of the dimension graph x numbers of parts, each
// estimated in closed form from the lives of storages, before anything is built. With r the bytes that are there once and
// s(t) those of the pieces at time t of the body,
//
//   peak(n) = max over t of r(t) + s(t) / n,     latency(n) = latency + (n - 1) launches of each op inside + what joins cost
//
// so one pass over a stretch answers for every n. What is estimated is judged in full afterwards.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/csr.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/dimension_graph.hpp>
#include <neap/mutate/fission.hpp>
#include <neap/mutate/fission_region.hpp>
#include <neap/mutate/ranked_stream.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <vector>

namespace neap::inline v0 {

/// A fission and what it is estimated to come to.
struct estimated_fission {
  fission_of what;
  bytes_t peak = 0;
  seconds_t latency = 0;
};

struct fission_sweep_options {
  std::uint32_t starts = 20, ends = 20;  // positions tried before and after the peak, beside the first and the last;
                                         // more of small programs, fewer of large ones
  std::uint32_t components = 4;          // the largest ones, by the bytes they can cut
  std::int64_t most_parts = 256;
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
    options_.starts = tries(options.starts), options_.ends = tries(options.ends);
    touches_.build(g.storage_count(), [&](auto&& pair) {
      for (std::uint32_t p = 0; p < order.size(); ++p) {
        for (auto v : g.inputs(order[p])) pair(g.storage(v), p);
        for (auto v : g.outputs(order[p])) pair(g.storage(v), p);
      }
    });
    find_launch();
    highest_before_.assign(order_.size() + 1, 0), highest_after_.assign(order_.size() + 1, 0);
    for (std::size_t p = 0; p < order_.size(); ++p)
      highest_before_[p + 1] = std::max(highest_before_[p], result_.bytes_at[p]);
    for (std::size_t p = order_.size(); p-- > 0;)
      highest_after_[p] = std::max(highest_after_[p + 1], result_.bytes_at[p]);
  }

  /// The estimates that are no worse than another one in both peak and latency: falling peak, rising latency.
  NEAP_ONCE std::vector<estimated_fission> front() {
    std::vector<estimated_fission> all;
    if (order_.size() < 2) return all;
    for (auto c : largest_components()) {
      fission_axes const axes(g_, dims_, c);
      auto const along = dims_.axes(c)[0];
      auto const n = static_cast<std::uint32_t>(order_.size());
      for (auto first : spread(0, result_.peak_position, options_.starts))
        for (auto last : spread(result_.peak_position, n - 1, options_.ends))
          try_stretch(axes, along, first, last, all);
    }
    return keep_front(std::move(all));
  }
  /// The same of stretches that begin and end near those of a fission: up to `reach` positions away.
  NEAP_ONCE std::vector<estimated_fission> front_near(fission_of const& f, std::uint32_t reach) {
    std::vector<estimated_fission> all;
    fission_axes const axes(g_, dims_, dims_.component(f.along.value, f.along.axis));
    auto const n = static_cast<std::uint32_t>(order_.size());
    constexpr std::uint32_t steps = 6;
    auto const around = [&](std::uint32_t at) {
      return spread(at - std::min(at, reach), std::min(at + reach, n - 1), std::min(2 * reach, steps));
    };
    for (auto first : around(f.first))
      for (auto last : around(f.last))
        if (first <= last) try_stretch(axes, f.along, first, last, all);
    return keep_front(std::move(all));
  }
  /// A fission of the candidate that is swept, built with what is known of it already.
  template <class G>
  std::optional<edited<G>> apply(fission_of const& f, candidate<G> const& c) const {
    return f.apply(c, at_, fission_axes(g_, dims_, dims_.component(f.along.value, f.along.axis)));
  }
  /// About how far apart the stretches of front() begin.
  std::uint32_t spacing() const { return static_cast<std::uint32_t>(order_.size()) / (2 * options_.starts) + 1; }

  static std::vector<estimated_fission> keep_front(std::vector<estimated_fission> all) {
    std::stable_sort(all.begin(), all.end(), [](estimated_fission const& a, estimated_fission const& b) {
      return a.latency != b.latency ? a.latency < b.latency : a.peak < b.peak;
    });
    std::vector<estimated_fission> front;
    for (auto const& x : all)
      if (front.empty() || x.peak < front.back().peak) front.push_back(x);
    return front;
  }

 private:
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
  /// Those that can cut the most bytes of what is not resident.
  std::vector<component_id> largest_components() const {
    std::vector<std::pair<double, component_id>> all;
    for (auto c : dims_.components()) {
      if (dims_.extent(c) < 2 || dims_.members(c).size() < 2) continue;
      double bytes = 0;
      for (auto const& a : dims_.axes(c))
        if (auto const& r = g_.record(a.value); r.alias == alias_kind::fresh && !g_.is_resident(r.storage))
          bytes += static_cast<double>(g_.bytes(r.storage));
      if (bytes > 0) all.emplace_back(-bytes, c);
    }
    std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    std::vector<component_id> out;
    for (auto const& [bytes, c] : all)
      if (out.size() < options_.components && 10 * bytes <= all.front().first) out.push_back(c);
    return out;
  }
  /// What a launch costs, guessed: the quickest op that takes any time worth speaking of.
  void find_launch() {
    launch_ = result_.latency;
    auto const least = 1e-7 * result_.latency / static_cast<double>(std::max<std::size_t>(order_.size(), 1));
    for (std::size_t p = 0; p < order_.size(); ++p) {
      auto const t = result_.end[p] - result_.start[p];
      if (t > least && t > 1e-10) launch_ = std::min(launch_, t);
    }
  }

  NEAP_ONCE void try_stretch(fission_axes const& axes, value_axis along, std::uint32_t first, std::uint32_t last,
                             std::vector<estimated_fission>& all) {
    fission_region const region(g_, order_, at_, axes, first, last);
    if (region.inside_count() < 2) return;
    using place = fission_region::place;
    // The times of the stretch: ops before, the body once, ops after.
    auto const length = last - first + 1;
    time_.assign(length, 0);
    std::uint32_t now = 0, body = 0, behind = 0;
    for (auto where : {place::before, place::inside, place::after}) {
      if (where == place::inside) body = now;
      if (where == place::after) behind = now;
      for (auto p = first; p <= last; ++p)
        if (region.at(p) == where) time_[p - first] = now++;
    }
    once_.assign(length + 1, 0), pieces_.assign(length + 1, 0), here_.assign(length, 0);
    bytes_t across = result_.resident_bytes;
    auto const add = [](plain_vector<bytes_t>& to, std::uint32_t from, std::uint32_t until, bytes_t n) {
      to[from] += n, to[until + 1] -= n;  // until is below length
    };
    std::uint32_t launches = 0;
    for (auto s : g_.storages()) {
      auto const life = result_.live[s];
      if (g_.is_resident(s) || life.empty() || life.first > last || life.last < first) continue;
      auto const bytes = g_.bytes(s);
      if (life.first < first && life.last > last) {
        across += bytes;
        continue;
      }
      // Who touches it, by what runs when.
      bool inside = false, beyond = life.last > last;
      std::uint32_t end = 0, body_end = 0;
      for (auto p : touches_[s]) {
        if (p < first) continue;
        if (p > last) {
          beyond = true;
          continue;
        }
        auto const t = time_[p - first];
        if (region.at(p) == place::inside) inside = true, body_end = std::max(body_end, t);
        else end = std::max(end, t);
      }
      auto const last_time = length - 1;
      if (life.first < first) {  // made before the stretch
        if (inside && behind > 0) end = std::max(end, behind - 1);
        add(once_, 0, beyond ? last_time : end, bytes);
        continue;
      }
      auto const made = life.first;
      auto const v = g_.record(s).first;
      if (region.at(made) != place::inside) {
        auto const from = time_[made - first];
        if (inside && behind > 0) end = std::max(end, behind - 1);
        add(once_, from, beyond ? last_time : std::max(end, from), bytes);
        continue;
      }
      auto const from = time_[made - first];
      body_end = std::max(body_end, from);
      bool const leaves = beyond || end != 0;
      if (axes.axis(v) < 0) {  // partial results, combined into the first
        here_[from] += bytes;
        add(once_, body, beyond ? last_time : std::max(end, behind - 1), bytes);
        launches += axes.how(g_.producer(v)) != combine::same;
      } else {
        add(pieces_, from, body_end, bytes);
        if (leaves) {
          add(once_, body, beyond ? last_time : std::max(end, behind - 1), bytes);
          ++launches;
        }
      }
    }
    std::uint32_t ops = 0;
    for (auto p = first; p <= last; ++p) {
      if (region.at(p) != place::inside) continue;
      auto const t = result_.end[p] - result_.start[p];
      if (t >= 0.99 * launch_) ++ops;
    }
    bytes_t sum_once = 0, sum_pieces = 0;
    for (std::uint32_t t = 0; t < length; ++t) {
      sum_once += once_[t], sum_pieces += pieces_[t];
      once_[t] = sum_once + here_[t], pieces_[t] = sum_pieces;
    }
    auto const outside = std::max(highest_before_[first], highest_after_[last + 1]);
    for (std::int64_t n = 2; n <= std::min(axes.extent(), options_.most_parts); ++n) {
      if (axes.extent() % n != 0) continue;
      bytes_t peak = 0;
      for (std::uint32_t t = 0; t < length; ++t) peak = std::max(peak, once_[t] + (pieces_[t] + n - 1) / n);
      peak = std::max(peak + across, outside);
      if (peak >= result_.peak_bytes) continue;
      double const more = launch_ * (static_cast<double>(n - 1) * ops + static_cast<double>(n) * launches);
      all.push_back({{along, first, last, n}, peak, result_.latency + more});
    }
  }

  op_graph const& g_;
  schedule const& order_;
  simulation const& result_;
  fission_sweep_options options_;
  table<op_id, std::uint32_t> at_;
  dimension_graph dims_;
  csr<storage_id, std::uint32_t> touches_;  // positions
  seconds_t launch_ = 0;
  plain_vector<bytes_t> highest_before_, highest_after_;  // of the order as it is
  // scratch of a stretch
  plain_vector<std::uint32_t> time_;
  plain_vector<bytes_t> once_, pieces_, here_;
};

/// The fissions on the front of a sweep, worth bytes for seconds. Parts are not cut again.
struct find_fissions {
  fission_sweep_options options;

  template <class G>
  plain_vector<scored<fission_of>> operator()(candidate<G> const& c) const {
    plain_vector<scored<fission_of>> found;
    if (!c.graph.parts().empty()) return found;
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

  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    return detail::ranked_stream<fission_of, G, detail::find_fissions>(c, {options});
  }
};

}  // namespace neap::inline v0
