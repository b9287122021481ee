// The bodies of <neap/mutate/fission_sweep.hpp>.
#pragma once

#include <neap/mutate/fission_sweep.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC plain_vector<estimated_fission> fission_sweep::front() {
  plain_vector<estimated_fission> all;
  if (order_.size() < 2) return all;
  for (auto c : largest_components())
    for (auto const& numbers : numbers_of_parts(c)) {
      fission_axes const axes(g_, dims_, c, numbers.grain, options_.again);
      auto const n = static_cast<std::uint32_t>(order_.size());
      for (auto first : spread(0, result_.peak_position, options_.starts))
        for (auto last : spread(result_.peak_position, n - 1, options_.ends))
          try_stretch(axes, numbers, first, last, all);
    }
  return keep_front(std::move(all));
}

NEAP_FUNC plain_vector<estimated_fission> fission_sweep::front_near(fission_of const& f, std::uint32_t reach) {
  plain_vector<estimated_fission> all;
  auto const like = numbers_like(f);
  fission_axes const axes(g_, dims_, dims_.component(f.along.value, f.along.axis), like.grain, f.again);
  auto const n = static_cast<std::uint32_t>(order_.size());
  constexpr std::uint32_t steps = 6;
  auto const around = [&](std::uint32_t at) {
    return spread(at - std::min(at, reach), std::min(at + reach, n - 1), std::min(2 * reach, steps));
  };
  for (auto first : around(f.first))
    for (auto last : around(f.last))
      if (first <= last) try_stretch(axes, like, first, last, all);
  return keep_front(std::move(all));
}

NEAP_FUNC plain_vector<estimated_fission> fission_sweep::at_the_peak(bytes_t target, seconds_t latency,
                                                                     std::size_t most) {
  plain_vector<estimated_fission> all;
  if (order_.size() < 2) return all;
  auto const top = result_.peak_position;
  auto const end = static_cast<std::uint32_t>(order_.size());
  for (auto c : largest_components(top))
    for (auto const& numbers : numbers_of_parts(c)) {
      fission_axes const axes(g_, dims_, c, numbers.grain, options_.again);
      for (std::uint32_t before = 0; before <= top; before = further(before))
        for (std::uint32_t behind = 0; behind < end - top; behind = further(behind))
          if (before <= 16 * (behind + 1) && behind <= 16 * (before + 1))
            try_stretch(axes, numbers, top - before, top + behind, all);
    }
  all.erase_if([&](estimated_fission const& f) { return f.latency > latency; });
  std::vector<double> above(end + 1, 0);
  for (std::uint32_t p = 0; p < end; ++p)
    above[p + 1] = above[p] + static_cast<double>(std::max<bytes_t>(result_.bytes_at[p] - target, 0));
  // Those that do not come down to the target: the ones that come nearly as far as any, the quickest first.
  auto lowest = result_.peak_bytes;
  for (auto const& f : all) lowest = std::min(lowest, f.inside);
  auto const nearly = lowest + (result_.peak_bytes - lowest) / 8;
  auto const worth = [&](estimated_fission const& f) {
    auto const more = f.latency - result_.latency + 1e-5 * result_.latency;
    if (f.inside > target)
      return std::pair(f.inside > nearly ? 0 : 1, f.inside > nearly ? -static_cast<double>(f.inside) : -more);
    return std::pair(2, (above[f.what.last + 1] - above[f.what.first]) / more);
  };
  detail::sort_list(all, [&](estimated_fission const& a, estimated_fission const& b) { return worth(a) > worth(b); });
  if (all.size() > most) all.resize(most);
  return all;
}

NEAP_FUNC std::vector<fission_sweep::part_numbers> fission_sweep::numbers_of_parts(component_id c) const {
  struct extent_row {
    std::int64_t extent;
    value_axis first;
    std::size_t axes;
  };
  plain_vector<extent_row> extents;
  for (auto const& a : dims_.axes(c)) {
    auto const n = g_.type(a.value).dims[a.axis];
    auto const at = std::find_if(extents.begin(), extents.end(), [&](auto const& e) { return e.extent == n; });
    if (at != extents.end()) ++at->axes;
    else if (n > 1 && extents.size() < 64) extents.push_back({n, a, 1});
  }
  std::vector<part_numbers> all;
  for (std::int64_t n = 2; n <= options_.max_parts; ++n) {
    part_numbers mine;
    mine.parts = {n};
    for (std::size_t i = 0; i < extents.size(); ++i) {
      auto const& e = extents[i];
      if (e.extent % n != 0) continue;
      if (mine.which == 0) mine.along = e.first;
      mine.grain = std::gcd(mine.grain, e.extent), mine.axes += e.axes, mine.which |= std::uint64_t{1} << i;
    }
    if (mine.which == 0) continue;
    auto const same =
        std::find_if(all.begin(), all.end(), [&](part_numbers const& x) { return x.which == mine.which; });
    if (same != all.end()) same->parts.push_back(n);
    else all.push_back(std::move(mine));
  }
  sort_list(all, [](part_numbers const& a, part_numbers const& b) { return a.axes > b.axes; });
  if (all.size() > options_.extents) all.resize(options_.extents);
  return all;
}

NEAP_FUNC fission_sweep::part_numbers fission_sweep::numbers_like(fission_of const& f) const {
  for (auto& x : numbers_of_parts(dims_.component(f.along.value, f.along.axis)))
    if (std::find(x.parts.begin(), x.parts.end(), f.parts) != x.parts.end()) return std::move(x);
  return {f.parts, f.along, 1, 1, {f.parts}};
}

NEAP_FUNC void fission_sweep::try_stretch(fission_axes const& axes, part_numbers const& numbers, std::uint32_t first,
                                          std::uint32_t last, plain_vector<estimated_fission>& all) {
  work_meter::add(60 * (std::uint64_t{last} - first + 1));
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
  bytes_t across = result_.resident_bytes + there_before_[first];
  auto const add = [](plain_vector<bytes_t>& to, std::uint32_t from, std::uint32_t until, bytes_t n) {
    to[from] += n, to[until + 1] -= n;  // until is below length
  };
  std::uint32_t launches = 0;
  double joined = 0;  // bytes that joining moves, and those of partial results, once for each part but the first
  double combined = 0;
  auto const take = [&](storage_id s) {
    auto const life = result_.live[s];
    auto const bytes = g_.bytes(s);
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
    if (life.first < first || g_.is_source(s)) {  // made before the stretch
      if (inside && behind > 0) end = std::max(end, behind - 1);
      add(once_, 0, beyond ? last_time : end, bytes);
      return;
    }
    auto const made = life.first;
    auto const v = g_.record(s).first;
    if (region.at(made) != place::inside) {
      auto const from = time_[made - first];
      if (inside && behind > 0) end = std::max(end, behind - 1);
      add(once_, from, beyond ? last_time : std::max(end, from), bytes);
      return;
    }
    auto const from = time_[made - first];
    body_end = std::max(body_end, from);
    bool const leaves = beyond || end != 0;
    if (axes.axis(v) < 0) {  // partial results, combined into the first
      here_[from] += bytes;
      add(once_, body, beyond ? last_time : std::max(end, behind - 1), bytes);
      if (axes.how(g_.producer(v)) != combine::same) ++launches, combined += 3 * static_cast<double>(bytes);
    } else {
      add(pieces_, from, body_end, bytes);
      if (leaves) {
        add(once_, body, beyond ? last_time : std::max(end, behind - 1), bytes);
        ++launches, joined += 2 * static_cast<double>(bytes);
      }
    }
  };
  // Those that are there throughout the stretch are as they were.
  for (auto p = first; p <= last; ++p) {
    for (auto s : born_[moment{p}]) take(s);
    for (auto s : dying_[moment{p}])
      if (result_.live[s].first < first) across -= g_.bytes(s), take(s);
  }
  seconds_t again = 0;  // what each part but the first costs beside its share of the work
  for (auto p = first; p <= last; ++p)
    if (region.at(p) == place::inside) again += std::min(result_.end[p] - result_.start[p], launch_);
  bytes_t sum_once = 0, sum_pieces = 0;
  for (std::uint32_t t = 0; t < length; ++t) {
    sum_once += once_[t], sum_pieces += pieces_[t];
    once_[t] = sum_once + here_[t], pieces_[t] = sum_pieces;
  }
  auto const outside = std::max(highest_before_[first], highest_after_[last + 1]);
  std::int64_t cut_before = 0;  // into how many parts what is inside runs already: not into as many once more
  for (auto p = first; axes.again() && p <= last && cut_before == 0; ++p)
    if (auto const row = g_.record(order_[p]).part; region.at(p) == place::inside && row != nothing<part_id>)
      cut_before = g_.part(row).count;
  for (auto const n : numbers.parts) {
    if (n == cut_before) continue;
    bytes_t peak = 0;
    for (std::uint32_t t = 0; t < length; ++t) peak = std::max(peak, once_[t] + (pieces_[t] + n - 1) / n);
    auto const inside = peak + across;
    peak = std::max(inside, outside);
    if (inside >= result_.peak_bytes) continue;
    double const more = static_cast<double>(n - 1) * (again + seconds_per_byte_ * combined) +
                        static_cast<double>(n) * launches * launch_ + seconds_per_byte_ * joined;
    all.push_back({{numbers.along, first, last, n, axes.again()}, peak, result_.latency + more, inside});
  }
}

}  // namespace detail
}}  // namespace neap::v0
