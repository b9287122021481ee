// Aliases: records that are views of others. A view has no bytes of its own; it lies inside what it sees and keeps those
// bytes in use for as long as it lives.
//
// What is seen is planned as one record from its own first moment to the last of its views. When it has died itself only
// the bytes that living views still see are in use: a gap's window says so, and planners that know windows lend out the
// rest. (AITemplate's planner extends the whole record: memory/greedy/aitemplate.hpp does as it does.)
#pragma once

#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A record that may be a view: of the bytes [begin, begin + size) of record `alias_of`, which may be a view itself.
struct alias_record : usage_record {
  std::int64_t alias_of = -1;  ///< index in the range, or -1: a record with bytes of its own
  std::int64_t begin = 0;      ///< where a view lies in what it sees, in bytes
};

namespace detail {

/// Views folded into the records that they see.
struct folded_views {
  std::vector<std::size_t> root;                // of each record: what it sees in the end, or itself
  std::vector<std::int64_t> shift;              // where it begins there
  std::vector<std::vector<std::size_t>> views;  // of each root
  memory_plan fault;                            // refused, or as made

  bool fail(std::string_view what, std::size_t i, std::int64_t other = -1) {
    fault = refused({what, static_cast<std::int64_t>(i), other});
    return false;
  }
};

/// Whether all views lie in what they see; else `to.fault` says which does not.
inline bool find_roots(std::span<alias_record const> records, folded_views& to) {
  auto const n = records.size();
  to.root.resize(n), to.shift.assign(n, 0), to.views.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    auto& root = to.root[i] = i;
    for (std::size_t steps = 0; records[root].alias_of != -1; ++steps) {
      alias_record const& view = records[root];
      if (view.alias_of < 0 || static_cast<std::size_t>(view.alias_of) >= n)
        return to.fail("it is a view of a record that is not there", root);
      if (steps > n) return to.fail("its aliases form a cycle", i);
      alias_record const& seen = records[static_cast<std::size_t>(view.alias_of)];
      if (view.begin < 0 || view.begin > seen.size - view.size)
        return to.fail("it leaves the record that it sees", root, view.alias_of);
      if (view.lower < seen.lower) return to.fail("it lives before the record that it sees", root, view.alias_of);
      if (!view.gaps.empty() || !seen.gaps.empty())
        return to.fail("a record that is a view, or is seen, may not have gaps", root, view.alias_of);
      to.shift[i] += view.begin;
      root = static_cast<std::size_t>(view.alias_of);
    }
    if (root != i) to.views[root].push_back(i);
  }
  return true;
}

/// Gives `all`, a copy of root i, the alignment and the fixed offset that its views need.
inline bool fold_places(std::span<alias_record const> records, std::size_t i, folded_views& to, usage_record& all) {
  for (auto v : to.views[i]) {
    auto const shift = to.shift[v];
    if (shift % records[v].alignment != 0) return to.fail("its alignment contradicts its place in what it sees", v);
    all.alignment = std::lcm(all.alignment, records[v].alignment);
    if (all.alignment > (std::int64_t{1} << 40))
      return to.fail("its alignment and that of what it sees have no sensible multiple", v);
    if (records[v].offset == any_offset) continue;
    auto const at = records[v].offset - shift;
    if (at < 0 || (all.offset != any_offset && all.offset != at))
      return to.fail("its fixed offset contradicts that of what it sees", v, static_cast<std::int64_t>(i));
    all.offset = at;
  }
  if (all.offset != any_offset && all.offset % all.alignment != 0)
    return to.fail("its fixed offset is not aligned for all of its views", i);
  return true;
}

/// Lets `all`, a copy of root i, live until its last view ends: after its own end with what the views left see.
inline void fold_lives(std::span<alias_record const> records, std::size_t i, folded_views& to, usage_record& all) {
  auto const end = all.upper;
  auto& views = to.views[i];
  std::sort(views.begin(), views.end(), [&](std::size_t a, std::size_t b) {
    return records[a].upper != records[b].upper ? records[a].upper < records[b].upper : a < b;
  });
  std::vector<live_gap> later;  // from the last backwards
  std::int64_t from = all.size, until = 0;
  for (std::size_t k = views.size(); k-- > 0;) {
    alias_record const& v = records[views[k]];
    if (v.upper <= end) break;
    from = std::min(from, to.shift[views[k]]), until = std::max(until, to.shift[views[k]] + v.size);
    std::int64_t const since = k > 0 ? std::max(records[views[k - 1]].upper, end) : end;
    all.upper = std::max(all.upper, v.upper);
    if (since == v.upper || (from == 0 && until == all.size)) continue;
    bool const empty = from >= until;
    later.push_back({since, v.upper, empty ? 0 : from, empty ? 0 : until});
  }
  all.gaps.insert(all.gaps.end(), later.rbegin(), later.rend());
}

template <memory_planner Planner>
memory_plan plan_folded(std::span<alias_record const> records, Planner const& planner) {
  std::vector<usage_record> const plain(records.begin(), records.end());
  if (auto const wrong = fault_of(plain); !wrong.empty()) return refused(wrong);
  folded_views views;
  if (!find_roots(records, views)) return views.fault;
  auto const n = records.size();
  std::vector<usage_record> folded;
  std::vector<std::size_t> speaker, place(n, 0);  // of each folded record: its root; of each root: its folded record
  for (std::size_t i = 0; i < n; ++i) {
    if (views.root[i] != i) continue;
    usage_record all = plain[i];
    if (!fold_places(records, i, views, all)) return views.fault;
    fold_lives(records, i, views, all);
    place[i] = folded.size();
    speaker.push_back(i);
    folded.push_back(std::move(all));
  }
  memory_plan plan = ask(planner, folded);
  if (!has_offsets(plan)) {
    renumber_faults(plan, speaker);
    return plan;
  }
  std::vector<std::int64_t> offsets(n);
  for (std::size_t i = 0; i < n; ++i) offsets[i] = plan.offsets[place[views.root[i]]] + views.shift[i];
  plan.offsets = std::move(offsets);
  return plan;
}

}  // namespace detail

/// Plans records of which some are views: a view's offset is that of what it sees plus `begin`. A view's alignment and
/// fixed offset bind what it sees. The bound and status are those of the folded problem. Faults (with the index of
/// the record): aliases in a cycle or out of range, views that leave what they see or live before it, gaps of a record
/// that is or has a view, fixed offsets and alignments that contradict one another. O(n log n) besides the planner.
template <usage_range Range, class Planner>
memory_plan plan_with_aliases(Range const& records, Planner const& planner) {
  static_assert(detail::check_planner<Planner>());
  if constexpr (std::convertible_to<Range const&, std::span<alias_record const>>) {
    return detail::plan_folded(records, planner);
  } else {
    std::vector<alias_record> seen;
    for (auto const& r : records) {
      seen.push_back(detail::projected<alias_record>(r));
      if constexpr (requires { r.alias_of; }) seen.back().alias_of = static_cast<std::int64_t>(r.alias_of);
      if constexpr (requires { r.begin; }) seen.back().begin = static_cast<std::int64_t>(r.begin);
    }
    return detail::plan_folded(seen, planner);
  }
}

}}  // namespace neap::v0
