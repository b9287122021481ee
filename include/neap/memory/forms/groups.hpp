// Contiguous groups: records that must lie side by side, in their order, as collectives want their buffers.
//
// A group is planned as one record over the hull of its members' lives; where only some members live, a gap's window
// says which bytes are in use, so that planners that know windows lend out the rest.
#pragma once

#include <neap/memory/bounds.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

template <memory_planner Planner>
memory_plan plan_grouped(std::span<usage_record const> records, Planner const& planner) {
  if (auto const wrong = fault_of(records); !wrong.empty()) return refused(wrong);
  std::vector<usage_record> folded;
  std::vector<std::size_t> lies_in(records.size());
  std::vector<std::int64_t> shift(records.size(), 0);  // of each record, behind the begin of its folded one
  std::vector<std::size_t> speaker;                    // of each folded record: a record to name in faults
  std::map<std::int32_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].group != -1) {
      groups[records[i].group].push_back(i);
      continue;
    }
    lies_in[i] = folded.size();
    speaker.push_back(i);
    folded.push_back(records[i]);
  }
  for (auto const& [id, members] : groups) {
    auto const fault = [&](std::string_view what, std::size_t i) {
      return refused({what, static_cast<std::int64_t>(i)});
    };
    usage_record all{.lower = records[members[0]].lower, .upper = records[members[0]].upper};
    std::vector<std::int64_t> moments;
    for (auto i : members) {
      usage_record const& r = records[i];
      if (!r.gaps.empty()) return fault("a member of a contiguous group may not have gaps", i);
      std::int64_t const lcm = std::lcm(all.alignment, r.alignment);
      if (lcm > (std::int64_t{1} << 40))
        return fault("the alignments of its group have no sensible common multiple", i);
      all.alignment = lcm;
      shift[i] = align_up(all.size, r.alignment);
      all.size = shift[i] + r.size;
      all.lower = std::min(all.lower, r.lower), all.upper = std::max(all.upper, r.upper);
      moments.push_back(r.lower), moments.push_back(r.upper);
      if (r.offset == any_offset) continue;
      std::int64_t const begin = r.offset - shift[i];
      if (begin < 0 || (all.offset != any_offset && all.offset != begin))
        return fault("its fixed offset contradicts its place in the group", i);
      all.offset = begin;
    }
    if (all.offset != any_offset && all.offset % all.alignment != 0)
      return fault("its group's fixed offset is not aligned for all members", members[0]);
    std::sort(moments.begin(), moments.end());
    moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
    for (std::size_t k = 0; k + 1 < moments.size(); ++k) {
      std::int64_t from = all.size, to = 0;
      for (auto i : members)
        if (records[i].lower <= moments[k] && moments[k] < records[i].upper)
          from = std::min(from, shift[i]), to = std::max(to, shift[i] + records[i].size);
      if (from == 0 && to == all.size) continue;
      live_gap const gap{moments[k], moments[k + 1], to > from ? from : 0, to > from ? to : 0};
      all.gaps.push_back(gap);
    }
    for (auto i : members) lies_in[i] = folded.size();
    speaker.push_back(members[0]);
    folded.push_back(std::move(all));
  }
  memory_plan plan = ask(planner, folded);
  if (!has_offsets(plan)) {
    renumber_faults(plan, speaker);
    return plan;
  }
  std::vector<std::int64_t> offsets(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) offsets[i] = plan.offsets[lies_in[i]] + shift[i];
  plan.offsets = std::move(offsets);
  return plan;
}

}  // namespace detail

/// Plans records of which those with one `group` (not -1) lie side by side in the order of the range, each member
/// padded as its alignment requires. The bound and status are those of the folded problem: with groups of one common
/// life they are the problem's own. Members may not have gaps; fixed members fix the group. O(n log n) besides the
/// planner. Faults carry the index of the record.
template <usage_range Range, class Planner>
memory_plan plan_with_groups(Range const& records, Planner const& planner) {
  static_assert(detail::check_planner<Planner>());
  if constexpr (std::convertible_to<Range const&, std::span<usage_record const>>) {
    return detail::plan_grouped(records, planner);
  } else {
    std::vector<usage_record> seen;
    for (auto const& r : records) seen.push_back(detail::projected(r));
    return detail::plan_grouped(seen, planner);
  }
}

}}  // namespace neap::v0
