// The bodies of <neap/memory/exact/canonical_search.hpp>.
#pragma once

#include <neap/memory/exact/canonical_search.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::uint32_t section_bound::broken(limit_frame const& f, limit_entry const* x, section_load const* loads,
                                              section_range where, std::int64_t roof) {
  if (where.begin == where.end) return search_frame::none;
  bool const plain = problem_.plain();
  auto const first = where.begin / 64, last = (where.end - 1) / 64;
  for (auto w = first; w <= last; ++w) filled_[w] = 0;
  filled_[first] |= (std::uint64_t{1} << (where.begin % 64)) - 1;
  if (where.end % 64 != 0) filled_[last] |= ~std::uint64_t{0} << (where.end % 64);
  std::uint32_t left = where.end - where.begin;
  for (std::uint32_t k = 0; k < f.count && left > 0; ++k) {
    auto const hull = problem_.hull[x[k].record];
    auto const b = std::max(hull.begin, where.begin), e = std::min(hull.end, where.end);
    if (b >= e) continue;
    auto const room = roof - x[k].limit;
    for (auto w = b / 64; w <= (e - 1) / 64; ++w) {
      std::uint64_t bits = ~filled_[w];
      if (plain) {
        if (w == b / 64) bits &= ~std::uint64_t{0} << (b % 64);
        if (w == (e - 1) / 64 && e % 64 != 0) bits &= ~(~std::uint64_t{0} << (e % 64));
      } else {
        bits &= problem_.alive[x[k].record * problem_.section_words() + w];
      }
      filled_[w] |= bits;
      for (; bits != 0; bits &= bits - 1, --left) {
        auto const s = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
        if (loads[s - f.begin].load > room) return s;
      }
    }
  }
  return search_frame::none;
}

NEAP_FUNC plain_vector<limit_frame>& frame_parts::operator()(limit_frame const& whole, limit_entry const* x,
                                                             section_load const* loads) {
  parts_.clear();
  auto const width = whole.end - whole.begin;
  part_of_.resize(std::max<std::size_t>({part_of_.size(), width, whole.count}), 0);
  if (!problem_.plain()) {
    split_by_meeting(whole, x);
    return parts_;
  }
  for (std::uint32_t s = 0; s < width; ++s) {
    if (s == 0 || loads[s - 1].crossing == 0) add(whole, {whole.begin + s, 0});
    parts_.back().end = whole.begin + s + 1;
    part_of_[s] = static_cast<std::uint32_t>(parts_.size() - 1);
  }
  for (std::uint32_t k = 0; k < whole.count; ++k) ++parts_[of(whole, x[k], k)].count;
  for (auto& part : parts_) part.sections_at = whole.sections_at + (part.begin - whole.begin);
  return parts_;
}

NEAP_FUNC void frame_parts::split_by_meeting(limit_frame const& whole, limit_entry const* x) {
  constexpr auto none = search_frame::none;
  std::fill_n(part_of_.begin(), whole.count, none);
  std::vector<std::uint32_t> open;
  for (std::uint32_t k = 0; k < whole.count; ++k) {
    if (part_of_[k] != none) continue;
    auto const part = static_cast<std::uint32_t>(parts_.size());
    add(whole, {whole.begin, whole.end});
    part_of_[k] = part;
    open.push_back(k);
    while (!open.empty()) {
      auto const i = open.back();
      open.pop_back();
      ++parts_[part].count;
      meeting const meets(problem_, x[i].record);
      for (std::uint32_t j = 0; j < whole.count; ++j)
        if (part_of_[j] == none && meets(x[j].record)) part_of_[j] = part, open.push_back(j);
    }
  }
}

NEAP_FUNC feasibility canonical_search::run(stop_condition const& stop) {
  if (hopeless_) return feasibility::no;
  while (!frames_.empty()) {
    if (frames_.back().begun) {  // all that its placement left is solved
      frames_.pop_back();
      continue;
    }
    frames_.back().begun = true;
    for (bool alive = advance(); !alive; alive = lift_head() && advance()) {
      do {
        auto const parent = frames_.back().parent;
        if (parent == none) {
          hopeless_ = true;
          return feasibility::no;
        }
        frames_.resize(parent + 1, limit_frame{});
      } while (!reasons_.in_conflict(pool_[frames_.back().entries].record));
    }
    if (stop(nodes_)) return feasibility::unknown;
    if (runs_.is_over(nodes_)) {
      runs_.next(nodes_);
      for (auto& x : conflicts_) x /= 2;  // later ones count more
      begin_run();
    }
  }
  return feasibility::yes;
}

NEAP_FUNC void canonical_search::begin_run() {
  double most = 1;
  for (auto x : conflicts_) most = std::max(most, x);
  auto const count = static_cast<double>(problem_.count());
  std::vector<double> late(problem_.count(), 0);
  std::vector<std::uint32_t> order(problem_.count(), 0);
  for (std::uint32_t i = 0; i < problem_.count(); ++i) {
    double failed = 0;
    for_each_section(i, [&](std::uint32_t s) { failed = std::max(failed, conflicts_[s]); });
    late[i] = runs_.preference(i) - count * exact_policy::conflict_shift * failed / most;
    order[i] = i;
  }
  sort_list(order, [&](auto a, auto b) { return late[a] != late[b] ? late[a] < late[b] : a < b; });
  for (std::uint32_t k = 0; k < order.size(); ++k) rank_[order[k]] = k;
  frames_.clear();
  hopeless_ = !open_root();
}

NEAP_FUNC bool canonical_search::open_root() {
  auto const n = static_cast<std::uint32_t>(problem_.count());
  auto root = root_frame<limit_frame>(n, problem_.sections);
  root.free_reasons = n;
  pool_.assign(n, limit_entry{});
  loads_.assign(problem_.sections, section_load{});
  for (std::uint32_t i = 0; i < n; ++i) {
    pool_[i] = {problem_.is_fixed(i) ? problem_.fixed[i] : 0, rank_[i], i, 0, i};
    if (overflows(pool_[i])) return false;
    for_each_section(i, [&](std::uint32_t s) { loads_[s].load += problem_.size[i]; });
    for (auto s = problem_.hull[i].begin; s + 1 < problem_.hull[i].end; ++s) ++loads_[s].crossing;
  }
  reasons_.start([&](std::uint32_t i) { return pool_[i].limit; });
  sort_list(pool_);
  return n == 0 || (within_bound(root, {root.begin, root.end}) && open_parts(root));
}

NEAP_FUNC bool canonical_search::advance() {
  for (std::uint32_t lifts = 0;; ++lifts) {
    auto const head = pool_[frames_.back().entries];
    if (overflows(head)) return reasons_.fail(head, head.limit);
    if (head.unsupported == 0) {
      if (place_head()) return true;
      if (!reasons_.in_conflict(head.record)) return false;
    }
    if (tricks_.lift_at_once && head.unsupported != 0 && lifts > exact_policy::lifts_before_all) {
      if (!lift_unsupported()) return false;
      lifts = 0;
    } else if (!lift_head()) {
      return false;
    }
  }
}

NEAP_FUNC bool canonical_search::lift_unsupported() {
  auto& f = frames_.back();
  auto* const x = pool_.data() + f.entries;
  auto const& offsets = unsupported_(
      problem_, x, f.count, roof_, [](limit_entry const& e) { return e.unsupported != 0; },
      [&](limit_entry const& a, limit_entry const& b) { return meeting(problem_, a.record)(b.record); });
  reasons_.begin_lift_of_all(f, x);
  for (std::uint32_t k = 0; k < f.count; ++k) {
    if (x[k].unsupported == 0) continue;
    if (x[k].limit != offsets[k]) {
      widen(f.untested, problem_.hull[x[k].record]);
      x[k].limit = offsets[k];
      reasons_.lifted_with_all(f, x[k]);
    }
    if (overflows(x[k])) return reasons_.fail(x[k], x[k].limit);
  }
  sort_range(x, x + f.count);
  return test_untested(f);
}

NEAP_FUNC bool canonical_search::lift_head() {
  auto& f = frames_.back();
  auto* const x = pool_.data() + f.entries;
  auto head = x[0];
  reasons_.refused(f, head);
  if (problem_.is_fixed(head.record)) return reasons_.fail(head, head.limit + 1);
  auto const refused = head;
  bool const branched = head.unsupported == 0;
  auto least = roof_ + 1;
  if (tricks_.lift) {
    meeting const meets(problem_, head.record);
    for (std::uint32_t k = 1; k < f.count; ++k)
      if (meets(x[k].record)) least = std::min(least, x[k].limit + problem_.size[x[k].record]);
  } else if (f.count > 1) {
    least = std::max(refused.limit + 1, x[1].limit);
  }
  reasons_.lifted(f, x, head, least);
  head.limit = problem_.aligned(least, head.record), head.unsupported = 1;
  if (overflows(head)) return reasons_.fail(head, head.limit);
  std::uint32_t k = 1;
  for (; k < f.count && x[k] < head; ++k) {
    x[k - 1] = x[k];
    bool const twin = tricks_.twins && problem_.twin[x[k].record] == problem_.twin[head.record];
    if (!branched || !twin || x[k].limit != refused.limit) continue;
    x[k - 1].unsupported = 1;
    reasons_.twin_refused(f, x[k - 1], refused);
  }
  x[k - 1] = head;
  widen(f.untested, problem_.hull[head.record]);
  return !branched || !tricks_.bound_after_lift || test_untested(f);
}

NEAP_FUNC bool canonical_search::place_head() {
  ++nodes_;
  auto const at = static_cast<std::uint32_t>(frames_.size() - 1);
  auto const f = frames_.back();
  auto const head = pool_[f.entries];
  offsets_[head.record] = head.limit;
  if (f.count == 1) return true;
  auto rest = frame_behind(f, at, pool_, loads_);
  rest.free_reasons = f.free_reasons;
  auto changed = f.untested;
  widen(changed, problem_.hull[head.record]);
  if (!raise_above(head, f, rest, changed)) return false;

  auto* const loads = loads_.data() + rest.sections_at;
  std::copy_n(loads_.data() + f.sections_at, f.end - f.begin, loads);
  auto const bytes = problem_.size[head.record];
  for_each_section(head.record, [&](std::uint32_t s) { loads[s - f.begin].load -= bytes; });
  if (!within_bound(rest, changed)) return false;
  if (problem_.plain()) {
    auto const [b, e] = problem_.hull[head.record];
    bool cut = b + 1 == e;
    for (auto s = b; s + 1 < e; ++s) cut |= --loads[s - f.begin].crossing == 0;
    if (!cut) {
      frames_.push_back(rest);
      return true;
    }
  }
  return open_parts(rest);
}

NEAP_FUNC bool canonical_search::raise_above(limit_entry const& head, limit_frame const& f, limit_frame& rest,
                                             section_range& changed) {
  auto const top = head.limit + problem_.size[head.record];
  meeting const meets(problem_, head.record);
  raised_.clear();
  auto* out = pool_.data() + rest.entries;
  std::uint32_t kept = 0;
  for (std::uint32_t k = 1; k < f.count; ++k) {
    auto x = pool_[f.entries + k];
    if (meets(x.record)) {
      auto const least = problem_.aligned(top, x.record);
      if (least > x.limit) {
        x.limit = least, x.unsupported = 0;
        reasons_.raised(rest, x, head);
        if (problem_.is_fixed(x.record) || overflows(x)) return reasons_.fail(x, x.limit);
        raised_.push_back(x);
        widen(changed, problem_.hull[x.record]);
        continue;
      }
      if (least == x.limit) x.unsupported = 0;
    }
    out[kept++] = x;
  }
  sort_list(raised_);
  for (std::size_t i = kept, j = raised_.size(), k = rest.count; j > 0;) {
    if (i > 0 && raised_[j - 1] < out[i - 1]) out[--k] = out[--i];
    else out[--k] = raised_[--j];
  }
  return true;
}

NEAP_FUNC bool canonical_search::open_parts(limit_frame const& whole) {
  if (!tricks_.decompose) {
    frames_.push_back(whole);
    return true;
  }
  auto* const x = pool_.data() + whole.entries;
  auto& parts = split_(whole, x, loads_.data() + whole.sections_at);
  std::size_t const first_new = frames_.size();
  std::size_t at = whole.entries;
  for (auto& part : parts) part.entries = at, at += part.count, part.count = 0;
  entries_.clear();
  entries_.append(x, whole.count);
  for (std::uint32_t k = 0; k < whole.count; ++k) {
    auto& part = parts[split_.of(whole, entries_[k], k)];
    pool_[part.entries + part.count++] = entries_[k];
  }
  for (auto const& part : parts) {
    if (part.count == 0) continue;
    if (part.count == 1) {  // nothing else in its life is unplaced: its limit is free
      auto const& only = pool_[part.entries];
      if (overflows(only)) return reasons_.fail(only, only.limit);
      offsets_[only.record] = only.limit;
      continue;
    }
    frames_.push_back(part);
  }
  smallest_on_top(frames_, first_new);
  return true;
}

}}}  // namespace neap::v0::detail
