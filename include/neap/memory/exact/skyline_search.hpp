// Search on a skyline (question and bounds as in canonical_search.hpp), for problems whose moments are full: what is
// placed next is what leaves least choice, and failures are remembered.
//
// What is placed forms a skyline over the sections; every unplaced record has a limit, an offset proved to be the least
// still possible. A floor is the lowest limit in a section. On a plateau, a run of sections with one floor that is lower
// than those on either side, records lie within the run, so nothing can come beneath one that is put there, and a node
// branches in two: a record of a plateau lies at its limit, or it does not and must lie on one that is still unplaced.
//
//   waste     a section wastes at most the capacity less its floor less its unplaced bytes. Where that is less than the
//             smallest step up, records tile the plateau (plateau_tiling.hpp), and those in no tiling are lifted
//   contact   what lives through two sections lies where both can reach (contact_heights.hpp)
//   choice    the section with the fewest records for its floor, one that may stay empty counted as more than one; those
//             in which the search has failed before are preferred (weights of conflicts: Boussemart et al. 2004)
//   memory    what a placement leaves unsolved depends on which records are unplaced and where the placed ones end beneath
//             them, not on how it came to be; what has failed once is not searched again (failed_states.hpp)
//   restarts  with the preferences disturbed, after ever more nodes; weights and memory stay
//
// Why memory may forget the refusals above it: that a record does not lie at its limit was proved from a state of which
// this one is a part, so every packing on top of this state keeps it anyway.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/exact/contact_heights.hpp>
#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/frames.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/exact/plateau_tiling.hpp>
#include <neap/memory/exact/policy.hpp>
#include <neap/memory/exact/unsupported.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace neap::inline v0::detail {

struct skyline_entry {
  std::int64_t limit;  // proved
  std::int64_t base;   // where the placed records beneath it end; below the limit if that was lifted
  std::uint32_t record;
};
struct skyline_section {
  std::int64_t floor;      // the lowest limit
  std::int64_t next;       // the lowest above it
  std::int64_t load;       // unplaced bytes
  std::uint32_t crossing;  // unplaced records that live in this section and the next
};
struct skyline_frame : search_frame {
  std::uint32_t placed = none;  // the entry that is placed
  bool forced = false;          // nothing else than what is placed could be
  section_range fresh{};        // what its parent's placement has changed
  state_hash state{};
};

/// Sums of the sizes that end and that begin at boundaries, for contacts of the sections beside them.
class boundary_sums {
 public:
  explicit boundary_sums(std::uint32_t sections) : ending_(sections + 1, none) {}

  /// Lists the entries that end at boundaries of `where`; entries are sorted by the begin of their lives.
  void list(packing_problem const& problem, skyline_entry const* x, std::uint32_t count, section_range where) {
    if (next_ending_.size() < count) next_ending_.resize(count, none);
    for (auto s = where.begin; s < where.end; ++s) ending_[s] = none;
    for (std::uint32_t k = 0; k < count; ++k)
      if (auto const e = problem.hull[x[k].record].end; where.begin <= e && e < where.end)
        next_ending_[k] = ending_[e], ending_[e] = k;
  }
  /// Of boundary s; `first`: the first entry that begins there or later. False if there are too many.
  bool sum_up(packing_problem const& problem, skyline_entry const* x, std::uint32_t count, std::uint32_t s,
              std::uint32_t first) {
    left.assign(1, 0), right.assign(1, 0);
    std::uint32_t summed = 0;
    for (auto k = ending_[s]; k != none; k = next_ending_[k]) {
      if (++summed > exact_policy::most_summed) return false;
      add_to_sums(left, problem.size[x[k].record]);
    }
    summed = 0;
    for (auto k = first; k < count && problem.hull[x[k].record].begin == s; ++k) {
      if (++summed > exact_policy::most_summed) return false;
      add_to_sums(right, problem.size[x[k].record]);
    }
    return true;
  }

  std::vector<std::int64_t> left, right;

 private:
  static constexpr std::uint32_t none = search_frame::none;
  std::vector<std::uint32_t> ending_, next_ending_;  // of each boundary, the entries that end there, as a list
};

/// For lives without holes (packing_problem::plain). Deterministic.
class skyline_search final : public placement_search {
 public:
  skyline_search(packing_problem const& problem, search_tricks tricks)
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

  void start(std::int64_t capacity) override {
    capacity_ = capacity, roof_ = problem_.roof(capacity), nodes_ = 0;
    conflicts_.assign(problem_.sections, 1);
    failed_.clear();
    runs_.start(tricks_.first_run * static_cast<std::int64_t>(problem_.count()));
    begin_run();
  }

  feasibility run(stop_condition const& stop) override {
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

  std::int64_t offset(std::size_t record) const override { return offsets_[record]; }

 private:
  static constexpr std::uint32_t none = search_frame::none;
  static constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max() / 4;

  /// How a run chooses: what a section that may stay empty counts beside its records, and whether the lowest plateau
  /// comes before the fewest records.
  struct choice_policy {
    double empty;
    bool lowest;
  };
  static constexpr std::array<choice_policy, 3> choice_policies{{{4, false}, {0.5, false}, {4, true}}};

  struct plateau {
    std::uint32_t begin, end;
    std::int64_t height, wall;  // wall: the lower of the floors on either side
    std::uint32_t first;        // the first entry that begins in it or later
  };

  section_range life(skyline_entry const& x) const { return problem_.hull[x.record]; }
  std::int64_t top(skyline_entry const& x) const { return x.limit + problem_.size[x.record]; }
  /// Whether a record at its limit ends beyond the capacity.
  bool overflows(skyline_entry const& x) const { return !problem_.ends_within(x.record, x.limit, capacity_); }
  skyline_entry* entries_of(skyline_frame const& f) { return pool_.data() + f.entries; }
  skyline_section& at(skyline_frame const& f, std::uint32_t s) { return sections_[f.sections_at + (s - f.begin)]; }
  std::int64_t waste(skyline_section const& s) const { return roof_ - s.floor - s.load; }
  bool fails_in(std::uint32_t s) { return ++conflicts_[s], false; }
  static section_range common(section_range a, section_range b) {
    section_range const c{std::max(a.begin, b.begin), std::min(a.end, b.end)};
    return c.begin < c.end ? c : section_range{};
  }

  void begin_run() {
    frames_.clear();
    failing_ = false;
    hopeless_ = !open_root();
  }

  bool open_root() {
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

  /// Floors of the sections of `where` from the limits; false if one with its unplaced bytes passes the capacity.
  bool measure_floors(skyline_frame const& f, section_range where) {
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

  // --- lifts ---

  bool raise(skyline_entry& x, std::int64_t limit) {
    x.limit = limit;
    widen(changed_, life(x));
    return !problem_.is_fixed(x.record) && !overflows(x);
  }
  /// Entry k, which lies on a plateau, does not lie at its limit: lifts it to the lowest top beneath which it may come to
  /// lie. False if there is none.
  bool lift(skyline_frame const& f, std::uint32_t k) {
    auto* const x = entries_of(f);
    if (problem_.is_fixed(x[k].record)) return false;
    auto const mine = life(x[k]);
    auto least = roof_ + 1;
    for (std::uint32_t j = 0; j < f.count && life(x[j]).begin < mine.end; ++j)
      if (j != k && meet(life(x[j]), mine)) least = std::min(least, top(x[j]));
    return least <= roof_ && raise(x[k], problem_.aligned(least, x[k].record));
  }
  /// The same for a record and those alike at its limit.
  bool lift_with_twins(skyline_frame const& f, std::uint32_t k) {
    auto* const x = entries_of(f);
    auto const before = x[k].limit;
    for (std::uint32_t j = 0; j < f.count; ++j) {
      bool const twin = tricks_.twins && problem_.twin[x[j].record] == problem_.twin[x[k].record];
      if ((j == k || (twin && x[j].limit == before)) && !lift(f, j)) return false;
    }
    return true;
  }
  /// Lifts all unsupported records to what can hold them. False if one of them can lie nowhere.
  bool lift_unsupported(skyline_frame const& f) {
    auto* const x = entries_of(f);
    auto const& offsets = unsupported_(
        problem_, x, f.count, roof_ + 1, [](skyline_entry const& e) { return e.base != e.limit; },
        [&](skyline_entry const& a, skyline_entry const& b) { return meet(life(a), life(b)); });
    for (std::uint32_t k = 0; k < f.count; ++k)
      if (x[k].limit != offsets[k] && !raise(x[k], offsets[k])) return false;
    return true;
  }
  /// Lifts what lives on both sides of a boundary to the least height at which they can meet, where something changed.
  bool lift_to_contacts(skyline_frame const& f) {
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

  // --- nodes ---

  /// The top frame's first visit.
  bool open() {
    auto& f = frames_.back();
    if (tricks_.remember) {
      f.state = {};
      for (std::uint32_t k = 0; k < f.count; ++k)
        f.state.add(entries_of(f)[k].record, static_cast<std::uint64_t>(entries_of(f)[k].base));
      if (failed_.contains(f.state)) return false;
    }
    changed_ = {}, unmet_ = f.fresh;
    return advance();
  }
  /// What the top frame's placement left has failed.
  bool refuse_placed() {
    auto& f = frames_.back();
    auto const k = f.placed;
    f.placed = none;
    if (f.forced) return false;
    changed_ = unmet_ = {};
    return lift_with_twins(f, k) && advance();
  }
  /// The two branches of the top frame in turn, until a placement stands; false if none does.
  bool advance() {
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

  /// Lifts until nothing more follows; then chosen_ is what to branch on. False if nothing fits any more.
  bool infer(skyline_frame const& f) {
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

  /// Lifts what cannot lie on a plateau; if nothing is lifted, looks for the section to branch on.
  bool settle(skyline_frame const& f, plateau const& p) {
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

  /// Keeps the section of least choice, and the record preferred for it.
  void choose(skyline_frame const& f, plateau const& p) {
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
  bool prefers(skyline_frame const& f, std::uint32_t j, std::uint32_t k) {
    return runs_.preference(entries_of(f)[j].record) < runs_.preference(entries_of(f)[k].record);
  }

  /// Puts entry k of the top frame at its limit and opens what is left; false if that cannot be.
  bool place(std::uint32_t k) {
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

  /// Pushes a frame for each run of sections that unplaced records cross.
  void open_parts(skyline_frame const& whole) {
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

  packing_problem const& problem_;
  search_tricks tricks_;
  std::int64_t capacity_ = 0, roof_ = 0;
  std::vector<std::int64_t> offsets_;
  std::vector<std::uint32_t> by_begin_;  // records by the begin of their lives
  search_runs runs_;
  std::vector<std::int64_t> conflicts_;  // of each section: failures, and 1
  failed_states failed_;
  plain_vector<skyline_frame> frames_;
  plain_vector<skyline_entry> pool_;
  plain_vector<skyline_section> sections_;
  section_range changed_{};  // where limits have risen since floors were measured
  section_range unmet_{};    // where floors have risen since contacts were looked at
  // Of the present plateau; begun_: options that begin less options that end, by section.
  plateau_tiling tiling_;
  std::vector<std::int32_t> begun_;
  plain_vector<floor_option> options_;
  unsupported_records unsupported_;
  boundary_sums sums_;
  std::uint32_t chosen_ = none;  // entry to branch on
  bool forced_ = false;
  double least_score_ = 0;
  bool failing_ = false, hopeless_ = false;
};

}  // namespace neap::inline v0::detail
