// The bodies of <neap/memory/exact/skyline_search.hpp>.
#pragma once

#include <neap/memory/exact/skyline_search.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool boundary_sums::sum_up(packing_problem const& problem, skyline_entry const* x, std::uint32_t count,
                                     std::uint32_t s, std::uint32_t first) {
  left.assign(1, 0), right.assign(1, 0);
  std::uint32_t summed = 0;
  for (auto k = ending_[s]; k != none; k = next_ending_[k]) {
    if (++summed > exact_policy::max_summed) return false;
    add_to_sums(left, problem.size[x[k].record]);
  }
  summed = 0;
  for (auto k = first; k < count && problem.hull[x[k].record].begin == s; ++k) {
    if (++summed > exact_policy::max_summed) return false;
    add_to_sums(right, problem.size[x[k].record]);
  }
  return true;
}

NEAP_FUNC skyline_search::skyline_search(packing_problem const& problem, search_tricks tricks)
    : problem_(problem),
      tricks_(tricks),
      offsets_(problem.count(), 0),
      by_begin_(problem.count(), 0),
      runs_(problem.count()),
      conflicts_(problem.sections, 1),
      tiling_(problem.sections),
      begun_(problem.sections + 1, 0),
      sums_(problem.sections) {
  std::iota(by_begin_.begin(), by_begin_.end(), 0u);
  sort_by_life(by_begin_, problem_.hull);
}

NEAP_FUNC feasibility skyline_search::run(stop_condition const& stop) {
  if (hopeless_) return feasibility::no;
  while (!frames_.empty()) {
    if (!failing_ && frames_.back().placed != none) {  // all that its placement left is solved
      frames_.pop_back();
      continue;
    }
    failing_ = failing_ ? !refuse_placed() : !open();
    if (failing_) {
      if (tricks_.remember) failed_.insert(frames_.back().state);
      auto const parent = frames_.back().parent;
      if (parent == none) {
        hopeless_ = true;
        return feasibility::no;
      }
      frames_.resize(parent + 1, skyline_frame{});
    }
    if (stop(nodes_)) return feasibility::unknown;
    if (runs_.is_over(nodes_)) {
      runs_.next(nodes_);
      begin_run();
      if (hopeless_) return feasibility::no;
    }
  }
  return feasibility::yes;
}

NEAP_FUNC bool skyline_search::open_root() {
  auto root = root_frame<skyline_frame>(problem_.count(), problem_.sections);
  root.fresh = {0, root.end};
  if (pool_.size() < root.count) pool_.resize(root.count, skyline_entry{});
  sections_.assign(std::max<std::size_t>(sections_.size(), problem_.sections), skyline_section{});
  for (std::uint32_t k = 0; k < root.count; ++k) {
    auto const i = by_begin_[k];
    auto const least = problem_.is_fixed(i) ? problem_.fixed[i] : 0;
    pool_[k] = {least, least, i};
    if (overflows(pool_[k])) return false;
    for (auto s = problem_.hull[i].begin; s < problem_.hull[i].end; ++s) {
      sections_[s].load += problem_.size[i];
      if (s + 1 < problem_.hull[i].end) ++sections_[s].crossing;
    }
  }
  if (root.count == 0) return true;
  if (!measure_floors(root, root.fresh)) return false;
  open_parts(root);
  return true;
}

NEAP_FUNC bool skyline_search::measure_floors(skyline_frame const& f, section_range where) {
  if (where.begin == where.end) return true;
  for (auto s = where.begin; s < where.end; ++s) at(f, s).floor = at(f, s).next = far;
  auto const* const x = entries_of(f);
  for (std::uint32_t k = 0; k < f.count && life(x[k]).begin < where.end; ++k) {
    auto const limit = x[k].limit;
    auto const [b, e] = common(life(x[k]), where);
    for (auto s = b; s < e; ++s) {
      auto& here = at(f, s);
      if (limit < here.floor) here.next = here.floor, here.floor = limit;
      else if (limit > here.floor && limit < here.next) here.next = limit;
    }
  }
  for (auto s = where.begin; s < where.end; ++s)
    if (at(f, s).load > 0 && waste(at(f, s)) < 0) return fails_in(s);
  return true;
}

NEAP_FUNC bool skyline_search::lift_to_contacts(skyline_frame const& f) {
  if (unmet_.begin == unmet_.end) return true;
  section_range const where{std::max(unmet_.begin, f.begin + 1), std::min(unmet_.end + 1, f.end)};
  unmet_ = {};
  auto* const x = entries_of(f);
  sums_.list(problem_, x, f.count, where);
  std::uint32_t first = 0;  // the first entry that begins at the boundary or later
  for (auto s = where.begin; s < where.end; ++s) {
    while (first < f.count && life(x[first]).begin < s) ++first;
    auto const &left = at(f, s - 1), &right = at(f, s);
    if (left.floor <= right.floor + waste(right) && right.floor <= left.floor + waste(left)) continue;
    if (!sums_.sum_up(problem_, x, f.count, s, first)) continue;
    auto const least =
        least_contact_height({left.floor, waste(left), sums_.left}, {right.floor, waste(right), sums_.right}, far);
    if (least <= std::max(left.floor, right.floor)) continue;
    for (std::uint32_t k = 0; k < first; ++k)
      if (life(x[k]).end > s && x[k].limit < least && !raise(x[k], problem_.aligned(least, x[k].record)))
        return fails_in(s);
  }
  return true;
}

NEAP_FUNC bool skyline_search::advance() {
  auto const top = frames_.size() - 1;
  while (infer(frames_[top])) {
    auto const k = chosen_;
    frames_[top].forced = forced_;
    if (place(k)) {
      frames_[top].placed = k;
      return true;
    }
    if (frames_[top].forced) return false;
    changed_ = unmet_ = {};
    if (!lift_with_twins(frames_[top], k)) return false;
  }
  return false;
}

NEAP_FUNC bool skyline_search::infer(skyline_frame const& f) {
  for (std::uint32_t rounds = 0;; ++rounds) {
    if (tricks_.lift_at_once && rounds > exact_policy::rounds_before_all) {
      if (!lift_unsupported(f)) return false;
      rounds = 0;
    }
    if (!measure_floors(f, changed_)) return false;
    widen(unmet_, changed_);
    changed_ = {};
    chosen_ = none, least_score_ = std::numeric_limits<double>::max();
    plateau p{};
    for (p.begin = f.begin; p.begin < f.end; p.begin = p.end) {
      p.height = at(f, p.begin).floor;
      for (p.end = p.begin + 1; p.end < f.end && at(f, p.end).floor == p.height;) ++p.end;
      auto const left = p.begin == f.begin ? far : at(f, p.begin - 1).floor;
      auto const right = p.end == f.end ? far : at(f, p.end).floor;
      if (left < p.height || right < p.height) continue;
      p.wall = std::min(left, right);
      while (p.first < f.count && life(entries_of(f)[p.first]).begin < p.begin) ++p.first;
      if (!settle(f, p)) return false;
    }
    if (changed_.begin != changed_.end) continue;
    if (tricks_.meeting && !lift_to_contacts(f)) return false;
    if (changed_.begin == changed_.end) return true;
  }
}

NEAP_FUNC bool skyline_search::settle(skyline_frame const& f, plateau const& p) {
  auto* const x = entries_of(f);
  auto step = p.wall;  // no floor of the plateau comes to lie between its height and this
  bool lifted = false;
  options_.clear();
  for (auto k = p.first; k < f.count && life(x[k]).begin < p.end; ++k) {
    step = std::min(step, top(x[k]));
    if (x[k].limit != p.height) continue;
    if (x[k].base == x[k].limit) {
      options_.push_back({k, life(x[k]).begin, life(x[k]).end});
      continue;
    }
    lifted = true;  // nothing placed holds it there, and nothing can come beneath it
    if (!lift(f, k)) return fails_in(life(x[k]).begin);
  }
  if (lifted) return true;
  for (auto s = p.begin; s < p.end; ++s) tiling_.set_waste(s, std::min(at(f, s).next, step) + at(f, s).load <= roof_);
  if (auto const s = tiling_.find(options_, p.begin, p.end); s != p.end) return fails_in(s);
  for (auto const& o : options_)
    if (!tiling_.contains(o)) {
      lifted = true;
      if (!lift(f, o.entry)) return fails_in(o.begin);
    }
  if (!lifted) choose(f, p);
  return true;
}

NEAP_FUNC void skyline_search::choose(skyline_frame const& f, plateau const& p) {
  auto const how = choice_policies[runs_.number() % choice_policies.size()];
  for (auto s = p.begin; s <= p.end; ++s) begun_[s] = 0;
  for (auto const& o : options_) ++begun_[o.begin], --begun_[o.end];
  std::int32_t records = 0;
  for (auto s = p.begin; s < p.end; ++s) {
    records += begun_[s];
    if (records == 0) continue;
    bool const forced = records == 1 && !tiling_.may_waste(s);
    double score = (records + (tiling_.may_waste(s) ? how.empty : 0)) / static_cast<double>(conflicts_[s]);
    if (how.lowest) score = static_cast<double>(p.height) + 1e-6 * score;
    if (forced) score = -1;
    if (score >= least_score_) continue;
    least_score_ = score, forced_ = forced, chosen_ = none;
    for (auto const& o : options_)
      if (o.begin <= s && s < o.end && (chosen_ == none || prefers(f, o.entry, chosen_))) chosen_ = o.entry;
  }
}

NEAP_FUNC bool skyline_search::place(std::uint32_t k) {
  ++nodes_;
  auto const number = static_cast<std::uint32_t>(frames_.size() - 1);
  auto const f = frames_[number];
  auto const placed = entries_of(f)[k];
  offsets_[placed.record] = placed.limit;
  if (f.count == 1) return true;
  auto rest = frame_behind(f, number, pool_, sections_);
  auto const mine = life(placed);
  changed_ = mine;
  auto* out = entries_of(rest);
  for (std::uint32_t j = 0; j < f.count; ++j) {
    if (j == k) continue;
    *out = entries_of(f)[j];
    if (meet(life(*out), mine)) {
      out->base = std::max(out->base, problem_.aligned(top(placed), out->record));
      if (out->limit < out->base && !raise(*out, out->base)) return false;
    }
    ++out;
  }
  rest.fresh = changed_;
  for (auto s = f.begin; s < f.end; ++s) at(rest, s) = at(f, s);
  bool splits = mine.begin + 1 == mine.end;
  for (auto s = mine.begin; s < mine.end; ++s) {
    at(rest, s).load -= problem_.size[placed.record];
    if (s + 1 < mine.end) splits |= --at(rest, s).crossing == 0;
  }
  if (!measure_floors(rest, rest.fresh)) return false;
  if (splits && tricks_.decompose) open_parts(rest);
  else frames_.push_back(rest);
  return true;
}

NEAP_FUNC void skyline_search::open_parts(skyline_frame const& whole) {
  std::size_t const first_new = frames_.size();
  auto part = whole;
  part.end = whole.begin;
  for (std::uint32_t done = 0; part.end < whole.end;) {
    part.begin = part.end++;
    while (part.end < whole.end && at(whole, part.end - 1).crossing > 0) ++part.end;
    part.sections_at = whole.sections_at + (part.begin - whole.begin);
    part.entries = whole.entries + done, part.count = 0;
    while (done < whole.count && life(entries_of(whole)[done]).begin < part.end) ++done, ++part.count;
    part.fresh = common(whole.fresh, {part.begin, part.end});
    if (part.count > 0) frames_.push_back(part);
  }
  smallest_on_top(frames_, first_new);
}

}}}  // namespace neap::v0::detail
