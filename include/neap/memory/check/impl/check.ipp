// The bodies of <neap/memory/check/check.hpp>.
#pragma once

#include <neap/memory/check/check.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::size_t colliding_fixed_record(memory_problem const& p, std::size_t i) {
  struct piece {
    std::int64_t lower, upper, begin, end;
  };
  auto const pieces = [&](std::size_t r) {
    std::vector<piece> all;
    auto const at = p.fixed_of(r);
    p.for_each_piece(r, [&](std::int64_t lower, std::int64_t upper, std::int64_t a, std::int64_t b) {
      all.push_back({lower, upper, at + a, at + b});
    });
    return all;
  };
  if (p.fixed_of(i) == any_offset) return p.count();
  auto const mine = pieces(i);
  for (std::size_t j = 0; j < p.count(); ++j) {
    if (j == i || p.fixed_of(j) == any_offset) continue;
    for (auto const& y : pieces(j))
      for (auto const& x : mine)
        if (x.lower < y.upper && y.lower < x.upper && x.begin < y.end && y.begin < x.end) return j;
  }
  return p.count();
}

NEAP_FUNC status verify(memory_problem const& p, memory_plan const& plan) {
  if (!has_offsets(plan)) return {};
  if (auto each = detail::check_each(p, plan); !each.ok()) return each;
  auto const bytes = [](std::int64_t a, std::int64_t b) { return detail::text_of({"bytes [", a, ", ", b, ")"}); };

  struct event {
    std::int64_t at;
    bool starts;
    std::size_t record;
    std::int64_t begin, end;  // addresses
  };
  plain_vector<event> events;
  events.reserve(2 * p.count());
  for (std::size_t i = 0; i < p.count(); ++i)
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
      events.push_back({lo, true, i, plan.offsets[i] + a, plan.offsets[i] + b});
      events.push_back({hi, false, i, plan.offsets[i] + a, plan.offsets[i] + b});
    });
  detail::sort_list(events, [](event const& x, event const& y) {
    return x.at != y.at ? x.at < y.at : x.starts != y.starts ? !x.starts : x.record < y.record;
  });
  std::map<std::int64_t, std::pair<std::int64_t, std::size_t>> living;  // begin -> end, record
  for (auto const& e : events) {
    if (!e.starts) {
      living.erase(e.begin);
      continue;
    }
    auto const next = living.lower_bound(e.begin);
    auto hit = next != living.end() && next->first < e.end ? next : living.end();
    if (hit == living.end() && next != living.begin() && std::prev(next)->second.first > e.begin) hit = std::prev(next);
    if (hit != living.end())
      return failure{detail::text_of({"records ", hit->second.second, " and ", e.record, " collide at moment ", e.at,
                                      ": ", bytes(hit->first, hit->second.first), " and ", bytes(e.begin, e.end)})};
    living.emplace(e.begin, std::pair{e.end, e.record});
  }
  return {};
}

}}  // namespace neap::v0
