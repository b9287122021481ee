// The bodies of <neap/memory/exact/packing_problem.hpp>.
#pragma once

#include <neap/memory/exact/packing_problem.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void read_lives(memory_problem const& p, std::vector<std::uint32_t> const& records, packing_problem& out) {
  plain_vector<time_stretch> stretches;  // of all records, a hole between two of one record
  std::vector<std::uint32_t> owner;
  auto const n = static_cast<std::uint32_t>(records.size());
  for (std::uint32_t k = 0; k < n; ++k)
    // A window leaves a part of the record in use; here the whole of it stays.
    p.for_each_piece(records[k], [&](std::int64_t lo, std::int64_t hi, std::int64_t, std::int64_t) {
      if (!owner.empty() && owner.back() == k && stretches.back().upper == lo) stretches.back().upper = hi;
      else stretches.push_back({lo, hi}), owner.push_back(k);
    });
  sectioned const cut = cut_into_sections(stretches);
  out.sections = cut.count;
  out.hull.assign(n, section_range{});
  for (std::size_t s = 0; s < stretches.size(); ++s) {
    auto& hull = out.hull[owner[s]];
    if (hull.begin == hull.end) hull = cut.ranges[s];
    else hull.end = cut.ranges[s].end;
  }
  if (p.gap_begin.empty()) return;
  auto const words = out.section_words();
  out.alive.assign(n * words, 0);
  for (std::size_t s = 0; s < stretches.size(); ++s)
    for (auto at = cut.ranges[s].begin; at < cut.ranges[s].end; ++at)
      out.alive[owner[s] * words + at / 64] |= std::uint64_t{1} << (at % 64);
  out.meets.assign(n * out.record_words(), 0);
  for (std::uint32_t a = 0; a < n; ++a)
    for (std::uint32_t b = 0; b < n; ++b) {
      bool together = false;
      for (std::size_t w = 0; w < words; ++w) together |= (out.alive[a * words + w] & out.alive[b * words + w]) != 0;
      if (a != b && together) out.meets[a * out.record_words() + b / 64] |= std::uint64_t{1} << (b % 64);
    }
}

NEAP_FUNC void find_twins(packing_problem& p) {
  auto const alike = [&](std::uint32_t a, std::uint32_t b) {
    if (p.hull[a] != p.hull[b] || p.size[a] != p.size[b]) return false;
    if (!p.slack.empty() && p.slack[a] != p.slack[b]) return false;
    if (!p.alignment.empty() && p.alignment[a] != p.alignment[b]) return false;
    if (p.is_fixed(a) || p.is_fixed(b)) return false;
    auto const words = p.alive.empty() ? 0 : p.section_words();
    for (std::size_t w = 0; w < words; ++w)
      if (p.alive[a * words + w] != p.alive[b * words + w]) return false;
    return true;
  };
  std::vector<std::uint32_t> sorted(p.count());
  std::iota(sorted.begin(), sorted.end(), 0u);
  sort_list(sorted, [&](std::uint32_t a, std::uint32_t b) {
    if (p.hull[a].begin != p.hull[b].begin) return p.hull[a].begin < p.hull[b].begin;
    if (p.hull[a].end != p.hull[b].end) return p.hull[a].end < p.hull[b].end;
    return p.size[a] != p.size[b] ? p.size[a] < p.size[b] : a < b;
  });
  p.twin.assign(p.count(), 0);
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    auto const i = sorted[k];
    p.twin[i] = i;
    for (auto j = k; j > 0 && p.hull[sorted[j - 1]] == p.hull[i] && p.size[sorted[j - 1]] == p.size[i]; --j)
      if (alike(sorted[j - 1], i)) {
        p.twin[i] = p.twin[sorted[j - 1]];
        break;
      }
  }
}

NEAP_FUNC packing_problem packing_problem_of(memory_problem const& p, std::vector<std::uint32_t> const& records,
                                             std::int64_t unit) {
  packing_problem out;
  std::int64_t grain = 0;
  for (auto i : records) grain = std::gcd(grain, p.alignment_of(i));
  if (grain > unit) out.grain = grain / unit;
  for (auto i : records) {
    auto const own = p.size[i] / unit, rounded = align_up(own, out.grain);
    out.size.push_back(rounded);
    if (out.grain > 1) out.slack.push_back(rounded - own);
    if (!p.alignment.empty()) out.alignment.push_back(p.alignment[i] <= 1 ? 1 : p.alignment[i] / unit);
    if (!p.fixed.empty()) out.fixed.push_back(p.fixed[i] < 0 ? -1 : p.fixed[i] / unit);
  }
  read_lives(p, records, out);
  find_twins(out);
  return out;
}

}}}  // namespace neap::v0::detail
