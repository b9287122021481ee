// The decision problem again (memory/exact/search.hpp), for problems whose moments are full: what is placed next is what
// leaves least choice, and failures are remembered.
//
// What is placed forms a skyline over the sections; every unplaced record has a limit, an offset proved to be the least
// still possible. A floor is the lowest limit in a section. On a plateau, a run of sections with one floor that is lower
// than those on either side, records lie within the run, so nothing can come beneath one that is put there, and a node
// branches in two: a record of a plateau lies at its limit, or it does not and must lie on one that is still unplaced.
//
//   waste     a section wastes at most the capacity less its floor less its unplaced bytes. Where that is less than the
//             smallest step up, something lies on its floor: the records of a plateau then tile it, and those in no
//             tiling are lifted (the perfect packings of Huang and Korf 2009, with waste)
//   meeting   memory/exact/meeting_height.hpp: what lives through two sections lies where both can reach
//   choice    the section with the fewest records for its floor, one that may stay empty counted as more than one; those
//             in which the search has failed before are preferred (weights of conflicts: Boussemart et al. 2004)
//   memory    what a placement leaves unsolved depends on which records are unplaced and where the placed ones end beneath
//             them, not on how it came to be; what has failed once is not searched again (memory/exact/failed_states.hpp)
//   restarts  with the preferences disturbed, after ever more nodes: the tail of one order is heavy (Gomes et al. 1998).
//             Weights and memory stay
//   neighbours only those that may touch do, where they are given (memory/exact/neighbours.hpp). From the second run on
//             some boundaries where that is not certain are let go, others in each run, and memory begins anew
//
// Why memory may forget the refusals above it: that a record does not lie at its limit was proved from a state of which
// this one is a part, so every packing on top of this state keeps it anyway.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/exact/frames.hpp>
#include <neap/memory/exact/hanging.hpp>
#include <neap/memory/exact/meeting_height.hpp>
#include <neap/memory/exact/neighbours.hpp>
#include <neap/memory/exact/search.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace neap::inline v0::detail {

/// For lives without holes (ground.plain()). Deterministic.
template <class Unit>
class skyline_search final : public record_search {
 public:
  using record_search::run;
  constexpr skyline_search(search_ground<Unit> const& ground, search_tricks tricks)
      : ground_(ground),
        tricks_(tricks),
        likely_(ground.count()),
        now_(ground.count()),
        offsets_(ground.count(), 0),
        by_begin_(ground.count(), 0),
        runs_(ground.count()),
        conflicts_(ground.sections, 1),
        reached_(ground.sections + 1, 0),
        reaches_end_(ground.sections + 1, 0),
        may_waste_(ground.sections + 1, 0),
        begun_(ground.sections + 1, 0),
        ending_(ground.sections + 1, none) {
    for (std::uint32_t i = 0; i < by_begin_.size(); ++i) by_begin_[i] = i;
    sort_by_life(by_begin_, ground_.hull);
  }

  constexpr void start(std::int64_t capacity) override {
    selective_ = uncertain_ = false;
    likely_ = now_ = neighbours(ground_.count());
    begin(capacity);
  }
  /// The same, where only those neighbours touch: `impossible` means so.
  constexpr void start(std::int64_t capacity, neighbours const& likely) {
    selective_ = true, uncertain_ = false;
    likely_ = now_ = likely;
    for (double chance : likely.chance) uncertain_ |= chance > neighbours::certain_chance;
    ending_at_.assign(ground_.sections + 1, {}), beginning_at_.assign(ground_.sections + 1, {});
    for (std::uint32_t i = 0; i < ground_.count(); ++i)
      ending_at_[ground_.hull[i].end].push_back(i), beginning_at_[ground_.hull[i].begin].push_back(i);
    begin(capacity);
  }

  constexpr ruling run(stop_asked& stop) override {
    while (hopeless_ || !frames_.empty()) {
      if (hopeless_) {
        if (!uncertain_) return ruling::impossible;
        ++nodes_;
        restart();  // with other neighbours
        if (stop(nodes_)) return ruling::spent;
        continue;
      }
      if (!failing_ && frames_.back().placed != none) {  // all that its placement left is solved
        frames_.pop_back();
        continue;
      }
      failing_ = failing_ ? !refuse_placed() : !open();
      if (failing_) {
        if (tricks_.remember) failed_.insert(frames_.back().state);
        auto const parent = frames_.back().parent;
        if (parent == none) hopeless_ = true;
        else frames_.resize(parent + 1, frame{});
      }
      if (hopeless_) continue;
      if (stop(nodes_)) return ruling::spent;
      if (runs_.is_over(nodes_)) restart();
    }
    return ruling::found;
  }

  constexpr std::int64_t offset(std::size_t record) const override { return offsets_[record]; }
  constexpr std::vector<Unit> const& offsets() const { return offsets_; }

 private:
  static constexpr std::uint32_t none = search_frame::none;
  static constexpr Unit far = std::numeric_limits<Unit>::max() / 4;
  static constexpr std::uint64_t all = ~std::uint64_t{0};
  static constexpr std::uint32_t most_summed = 7;  // records on either side of a boundary whose sums are looked at

  /// How a run chooses: what a section that may stay empty counts beside its records, and whether the lowest plateau
  /// comes before the fewest.
  struct manner {
    double empty;
    bool lowest;
  };
  static constexpr std::array<double, 4> let_go{0, 0.3, 0.5, 0.3};  // of uncertain boundaries, by run
  static constexpr std::array<manner, 3> manners{{{4, false}, {0.5, false}, {4, true}}};

  struct entry {
    Unit limit;  // proved
    Unit base;   // where the placed records beneath it end; below the limit if that was lifted
    std::uint32_t record;
  };
  struct section {
    Unit floor;              // the lowest limit
    Unit next;               // the lowest above it
    Unit load;               // unplaced bytes
    std::uint32_t crossing;  // unplaced records that live in this section and the next
  };
  struct frame : search_frame {
    bool forced = false;    // nothing else than what is placed could be
    section_range fresh{};  // what its parent's placement has changed
  };
  struct option {  // a record that may lie on a plateau's floor
    std::uint32_t entry, begin, end;
    std::uint64_t allows, bit;  // neighbours
  };
  struct plateau {
    std::uint32_t begin, end;
    Unit height, wall;    // the lower of the floors on either side
    std::uint32_t first;  // the first entry that begins in it or later
  };

  constexpr section_range life(entry const& x) const { return ground_.hull[x.record]; }
  /// Whether a record at its limit ends beyond the capacity.
  constexpr bool overflows(entry const& x) const { return !ground_.ends_within(x.record, x.limit, capacity_); }
  constexpr entry* entries_of(frame const& f) { return pool_.data() + f.entries; }
  constexpr section& at(frame const& f, std::uint32_t s) { return sections_[f.sections_at + (s - f.begin)]; }
  constexpr Unit waste(section const& s) const { return roof_ - s.floor - s.load; }
  constexpr bool fails_in(std::uint32_t s) { return ++conflicts_[s], false; }

  static constexpr void widen(section_range& a, section_range b) {
    if (a.begin == a.end) a = b;
    else if (b.begin < b.end) a = {std::min(a.begin, b.begin), std::max(a.end, b.end)};
  }
  static constexpr section_range common(section_range a, section_range b) {
    section_range const c{std::max(a.begin, b.begin), std::min(a.end, b.end)};
    return c.begin < c.end ? c : section_range{};
  }

  constexpr void begin(std::int64_t capacity) {
    capacity_ = static_cast<Unit>(capacity), nodes_ = 0;
    roof_ = (capacity_ + ground_.grain - 1) / ground_.grain * ground_.grain;
    conflicts_.assign(ground_.sections, 1);
    failed_.clear();
    runs_.start(tricks_.first_run * static_cast<std::int64_t>(ground_.count()));
    begin_run();
  }
  constexpr void restart() {
    runs_.next(nodes_);
    begin_run();
  }
  constexpr void begin_run() {
    if (uncertain_ && runs_.number() > 0) choose_neighbours();
    frames_.clear();
    failing_ = false;
    hopeless_ = !open_root();
    if (selective_) placed_.assign(std::max(placed_.size(), frames_.size() * ground_.record_words()), 0);
  }
  /// The likely neighbours, but for a part of the boundaries where they are not certain.
  constexpr void choose_neighbours() {
    failed_.clear();
    double const part = let_go[runs_.number() % let_go.size()];
    for (std::uint32_t s = 1; s < ground_.sections; ++s) {
      if (likely_.chance[s] <= neighbours::certain_chance) continue;
      bool const any = runs_.uniform() < part;
      for (auto i : ending_at_[s]) now_.allows[i] = any ? all : likely_.allows[i];
    }
  }

  constexpr bool open_root() {
    auto root = root_frame<frame>(ground_.count(), ground_.sections);
    root.fresh = {0, root.end};
    if (pool_.size() < root.count) pool_.resize(root.count, entry{});
    sections_.assign(std::max<std::size_t>(sections_.size(), ground_.sections), section{});
    for (std::uint32_t k = 0; k < root.count; ++k) {
      auto const i = by_begin_[k];
      Unit const least = ground_.is_fixed(i) ? ground_.fixed[i] : Unit{0};
      pool_[k] = {least, least, i};
      if (overflows(pool_[k])) return false;
      for (auto s = ground_.hull[i].begin; s < ground_.hull[i].end; ++s) {
        sections_[s].load += ground_.size[i];
        if (s + 1 < ground_.hull[i].end) ++sections_[s].crossing;
      }
    }
    if (root.count == 0) return true;
    if (!measure_floors(root, root.fresh)) return false;
    open_parts(root, none);
    return true;
  }

  /// Floors of the sections of `where` from the limits; false if one with its unplaced bytes passes the capacity.
  constexpr bool measure_floors(frame const& f, section_range where) {
    if (where.begin == where.end) return true;
    for (auto s = where.begin; s < where.end; ++s) at(f, s).floor = at(f, s).next = far;
    entry const* const x = entries_of(f);
    for (std::uint32_t k = 0; k < f.count && life(x[k]).begin < where.end; ++k) {
      Unit const limit = x[k].limit;
      auto const [b, e] = common(life(x[k]), where);
      for (auto s = b; s < e; ++s) {
        section& here = at(f, s);
        if (limit < here.floor) here.next = here.floor, here.floor = limit;
        else if (limit > here.floor && limit < here.next) here.next = limit;
      }
    }
    for (auto s = where.begin; s < where.end; ++s)
      if (at(f, s).load > 0 && waste(at(f, s)) < 0) return fails_in(s);
    return true;
  }

  /// Entry k, which lies on a plateau, does not lie at its limit: lifts it to the lowest top beneath which it may come to
  /// lie. False if there is none.
  constexpr bool lift(frame const& f, std::uint32_t k) {
    entry* const x = entries_of(f);
    if (ground_.is_fixed(x[k].record)) return false;
    auto const mine = life(x[k]);
    Unit least = roof_ + 1;
    for (std::uint32_t j = 0; j < f.count && life(x[j]).begin < mine.end; ++j)
      if (j != k && meet(life(x[j]), mine)) least = std::min<Unit>(least, x[j].limit + ground_.size[x[j].record]);
    return least <= roof_ && raise(x[k], ground_.aligned(least, x[k].record));
  }
  /// Lifts all that hangs in the air to what can hold it. False if one of them can lie nowhere.
  constexpr bool ground_air(frame const& f) {
    entry* const x = entries_of(f);
    auto const& offsets = hanging_(
        ground_, x, f.count, roof_ + 1, [](entry const& e) { return e.base != e.limit; },
        [&](entry const& a, entry const& b) { return meet(life(a), life(b)); });
    for (std::uint32_t k = 0; k < f.count; ++k)
      if (x[k].limit != offsets[k] && !raise(x[k], offsets[k])) return false;
    return true;
  }
  constexpr bool raise(entry& x, Unit limit) {
    x.limit = limit;
    widen(changed_, life(x));
    return !ground_.is_fixed(x.record) && !overflows(x);
  }
  /// The same for a record and those alike at its limit.
  constexpr bool lift_with_twins(frame const& f, std::uint32_t k) {
    entry* const x = entries_of(f);
    Unit const before = x[k].limit;
    for (std::uint32_t j = 0; j < f.count; ++j) {
      bool const twin = tricks_.twins && ground_.twin[x[j].record] == ground_.twin[x[k].record];
      if ((j == k || (twin && x[j].limit == before)) && !lift(f, j)) return false;
    }
    return true;
  }

  /// The top frame's first visit.
  constexpr bool open() {
    frame& f = frames_.back();
    if (tricks_.remember) {
      f.state = {};
      for (std::uint32_t k = 0; k < f.count; ++k)
        f.state.add(entries_of(f)[k].record, static_cast<std::uint64_t>(entries_of(f)[k].base));
      if (selective_) add_walls(f);
      if (failed_.contains(f.state)) return false;
    }
    changed_ = {}, unmet_ = f.fresh;
    return advance();
  }
  /// What the top frame's placement left has failed.
  constexpr bool refuse_placed() {
    frame& f = frames_.back();
    auto const k = f.placed;
    f.placed = none;
    if (f.forced) return false;
    changed_ = unmet_ = {};
    return lift_with_twins(f, k) && advance();
  }
  /// The two branches of the top frame in turn, until a placement stands; false if none does.
  constexpr bool advance() {
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
  constexpr bool infer(frame const& f) {
    constexpr std::uint32_t many = 8;  // rounds take as long as to lift all that hangs at once
    for (std::uint32_t rounds = 0;; ++rounds) {
      if (tricks_.ground && rounds > many) {
        if (!ground_air(f)) return false;
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
        Unit const left = p.begin == f.begin ? far : at(f, p.begin - 1).floor;
        Unit const right = p.end == f.end ? far : at(f, p.end).floor;
        if (left < p.height || right < p.height) continue;
        p.wall = std::min(left, right);
        while (p.first < f.count && life(entries_of(f)[p.first]).begin < p.begin) ++p.first;
        if (!settle(f, p)) return false;
      }
      if (changed_.begin != changed_.end) continue;
      if (tricks_.meeting && !lift_to_meetings(f)) return false;
      if (changed_.begin == changed_.end) return true;
    }
  }

  /// Lifts what cannot lie on a plateau; if nothing is lifted, looks for the section to branch on.
  constexpr bool settle(frame const& f, plateau const& p) {
    entry* const x = entries_of(f);
    Unit step = p.wall;  // no floor of the plateau comes to lie between its height and this
    bool lifted = false;
    options_.clear();
    for (auto k = p.first; k < f.count && life(x[k]).begin < p.end; ++k) {
      step = std::min<Unit>(step, x[k].limit + ground_.size[x[k].record]);
      if (x[k].limit != p.height) continue;
      if (x[k].base == x[k].limit) {
        auto const i = x[k].record;
        if (!selective_ || may_lie(f, i, p.height)) {
          options_.push_back({k, life(x[k]).begin, life(x[k]).end, now_.allows[i], now_.bit[i]});
          continue;
        }
        lifted = true;
        if (!lift(f, k)) return fails_in(life(x[k]).begin);
      } else {  // nothing placed holds it there, and nothing can come beneath it
        lifted = true;
        if (!lift(f, k)) return fails_in(life(x[k]).begin);
      }
    }
    if (lifted) return true;
    for (auto s = p.begin; s < p.end; ++s) may_waste_[s] = std::min(at(f, s).next, step) + at(f, s).load <= roof_;
    if (!find_tilings(p)) return false;
    for (auto const& o : options_)
      if (!in_tiling(o)) {
        lifted = true;
        if (!lift(f, o.entry)) return fails_in(o.begin);
      }
    if (!lifted) choose(f, p);
    return true;
  }

  /// Whether a record of that frame is placed above it.
  constexpr bool is_placed(frame const& f, std::uint32_t record) const {
    auto const words = static_cast<std::size_t>(&f - frames_.data()) * ground_.record_words();
    return placed_[words + record / 64] >> (record % 64) & 1;
  }
  /// Whether a record at that height would touch those only that may be its neighbours. Across a boundary where the
  /// problem falls apart all may: neither part knows of the other.
  constexpr bool may_lie(frame const& f, std::uint32_t record, Unit height) const {
    auto const beside = [&](std::uint32_t other) {
      return is_placed(f, other) && offsets_[other] < height + ground_.size[record] &&
             height < offsets_[other] + ground_.size[other];
    };
    for (auto other : beginning_at_[ground_.hull[record].end])
      if (!now_.may_touch(record, other) && beside(other)) return false;
    for (auto other : ending_at_[ground_.hull[record].begin])
      if (!now_.may_touch(other, record) && beside(other)) return false;
    return true;
  }
  /// Adds to the state the placed records that others may come to stand beside.
  constexpr void add_walls(frame& f) {
    auto const add = [&](std::vector<std::uint32_t> const& records, Unit floor) {
      for (auto i : records)
        if (is_placed(f, i) && offsets_[i] + ground_.size[i] > floor)
          f.state.add(i + (std::uint64_t{1} << 32), static_cast<std::uint64_t>(offsets_[i]));
    };
    for (auto s = f.begin; s <= f.end; ++s) {
      if (s < f.end) add(ending_at_[s], at(f, s).floor);
      if (s > f.begin) add(beginning_at_[s], at(f, s - 1).floor);
    }
  }
  /// The placed records of the frames that `parent` has opened.
  constexpr void mark_placed(std::uint32_t parent, std::uint32_t record) {
    auto const words = ground_.record_words();
    if (placed_.size() < frames_.size() * words) placed_.resize(2 * frames_.size() * words, 0);
    for (std::size_t k = parent + 1; k < frames_.size(); ++k) {
      for (std::size_t w = 0; w < words; ++w) placed_[k * words + w] = placed_[parent * words + w];
      placed_[k * words + record / 64] |= std::uint64_t{1} << (record % 64);
    }
  }

  /// Which sections of a plateau are reached by records side by side, with waste between them where it may be, from its
  /// begin, and from which its end is reached: as the neighbours that what comes next there may have.
  constexpr bool find_tilings(plateau const& p) {
    for (auto s = p.begin; s <= p.end; ++s) reached_[s] = reaches_end_[s] = 0;
    reached_[p.begin] = reaches_end_[p.end] = all;
    std::uint32_t furthest = p.begin;
    std::size_t k = 0;
    for (auto s = p.begin; s < p.end; ++s) {
      if (reached_[s]) furthest = s;
      if (reached_[s] && may_waste_[s]) reached_[s + 1] = all;
      for (; k < options_.size() && options_[k].begin == s; ++k)
        if (reached_[s] & options_[k].bit) reached_[options_[k].end] |= options_[k].allows;
    }
    if (!reached_[p.end]) return fails_in(furthest);
    for (auto s = p.end; s-- > p.begin;) {
      if (may_waste_[s] && reaches_end_[s + 1]) reaches_end_[s] = all;
      for (; k > 0 && options_[k - 1].begin == s; --k)
        if (reaches_end_[options_[k - 1].end] & options_[k - 1].allows) reaches_end_[s] |= options_[k - 1].bit;
    }
    return true;
  }
  constexpr bool in_tiling(option const& o) const {
    return (reached_[o.begin] & o.bit) != 0 && (reaches_end_[o.end] & o.allows) != 0;
  }

  /// Keeps the section of least choice, and the record preferred for it.
  constexpr void choose(frame const& f, plateau const& p) {
    manner const how = manners[runs_.number() % manners.size()];
    for (auto s = p.begin; s <= p.end; ++s) begun_[s] = 0;
    for (auto const& o : options_) ++begun_[o.begin], --begun_[o.end];
    std::int32_t records = 0;
    for (auto s = p.begin; s < p.end; ++s) {
      records += begun_[s];
      if (records == 0) continue;
      bool const forced = records == 1 && !may_waste_[s];
      double score = (records + (may_waste_[s] ? how.empty : 0)) / static_cast<double>(conflicts_[s]);
      if (how.lowest) score = static_cast<double>(p.height) + 1e-6 * score;
      if (forced) score = -1;
      if (score >= least_score_) continue;
      least_score_ = score, forced_ = forced, chosen_ = none;
      for (auto const& o : options_)
        if (o.begin <= s && s < o.end && (chosen_ == none || prefers(f, o.entry, chosen_))) chosen_ = o.entry;
    }
  }
  constexpr bool prefers(frame const& f, std::uint32_t j, std::uint32_t k) {
    return runs_.preference(entries_of(f)[j].record) < runs_.preference(entries_of(f)[k].record);
  }

  /// Lifts what lives on both sides of a boundary to the least height at which they can meet, where something changed.
  constexpr bool lift_to_meetings(frame const& f) {
    if (unmet_.begin == unmet_.end) return true;
    section_range const where{std::max(unmet_.begin, f.begin + 1), std::min(unmet_.end + 1, f.end)};
    unmet_ = {};
    entry* const x = entries_of(f);
    if (next_ending_.size() < f.count) next_ending_.resize(f.count, none);
    for (auto s = where.begin; s < where.end; ++s) ending_[s] = none;
    for (std::uint32_t k = 0; k < f.count; ++k)
      if (auto const e = life(x[k]).end; where.begin <= e && e < where.end)
        next_ending_[k] = ending_[e], ending_[e] = k;
    std::uint32_t first = 0;  // the first entry that begins at the boundary or later
    for (auto s = where.begin; s < where.end; ++s) {
      while (first < f.count && life(x[first]).begin < s) ++first;
      section const &left = at(f, s - 1), &right = at(f, s);
      if (left.floor <= right.floor + waste(right) && right.floor <= left.floor + waste(left)) continue;
      if (!sum_up(f, s, first)) continue;
      Unit const least =
          least_meeting<Unit>({left.floor, waste(left), left_sums_}, {right.floor, waste(right), right_sums_}, far);
      if (least <= std::max(left.floor, right.floor)) continue;
      for (std::uint32_t k = 0; k < first; ++k)
        if (life(x[k]).end > s && x[k].limit < least && !raise(x[k], ground_.aligned(least, x[k].record)))
          return fails_in(s);
    }
    return true;
  }
  /// The sums of what ends and of what begins at a boundary; false if these are too many.
  constexpr bool sum_up(frame const& f, std::uint32_t boundary, std::uint32_t first) {
    entry const* const x = entries_of(f);
    left_sums_.assign(1, 0), right_sums_.assign(1, 0);
    std::uint32_t count = 0;
    for (auto k = ending_[boundary]; k != none; k = next_ending_[k]) {
      if (++count > most_summed) return false;
      add_to_sums(left_sums_, ground_.size[x[k].record]);
    }
    count = 0;
    for (auto k = first; k < f.count && life(x[k]).begin == boundary; ++k) {
      if (++count > most_summed) return false;
      add_to_sums(right_sums_, ground_.size[x[k].record]);
    }
    return true;
  }

  /// Puts entry k of the top frame at its limit and opens what is left; false if that cannot be.
  constexpr bool place(std::uint32_t k) {
    ++nodes_;
    auto const top = static_cast<std::uint32_t>(frames_.size() - 1);
    frame const f = frames_[top];
    entry const placed = entries_of(f)[k];
    offsets_[placed.record] = placed.limit;
    if (f.count == 1) return true;
    frame rest = frame_behind(f, top, pool_, sections_);
    auto const mine = life(placed);
    changed_ = mine;
    Unit const end = placed.limit + ground_.size[placed.record];
    entry* out = entries_of(rest);
    for (std::uint32_t j = 0; j < f.count; ++j) {
      if (j == k) continue;
      *out = entries_of(f)[j];
      if (meet(life(*out), mine)) {
        out->base = std::max(out->base, ground_.aligned(end, out->record));
        if (out->limit < out->base && !raise(*out, out->base)) return false;
      }
      ++out;
    }
    rest.fresh = changed_;
    for (auto s = f.begin; s < f.end; ++s) at(rest, s) = at(f, s);
    bool splits = mine.begin + 1 == mine.end;
    for (auto s = mine.begin; s < mine.end; ++s) {
      at(rest, s).load -= ground_.size[placed.record];
      if (s + 1 < mine.end) splits |= --at(rest, s).crossing == 0;
    }
    if (!measure_floors(rest, rest.fresh)) return false;
    if (splits && tricks_.decompose) open_parts(rest, top);
    else frames_.push_back(rest);
    if (selective_) mark_placed(top, placed.record);
    return true;
  }

  /// Pushes a frame for each run of sections that unplaced records cross; the smallest is searched first.
  constexpr void open_parts(frame const& whole, std::uint32_t parent) {
    auto k = frames_.size();
    push_parts(
        frames_, whole, parent, [&](std::uint32_t s) { return at(whole, s).crossing > 0; },
        [&](std::uint32_t e) { return life(entries_of(whole)[e]).begin; });
    for (; k < frames_.size(); ++k) frames_[k].fresh = common(whole.fresh, {frames_[k].begin, frames_[k].end});
  }

  search_ground<Unit> const& ground_;
  search_tricks tricks_;
  neighbours likely_, now_;                                           // as given; as they are in this run
  bool selective_ = false, uncertain_ = false;                        // not all may touch; runs differ in which
  std::vector<std::vector<std::uint32_t>> ending_at_, beginning_at_;  // of each boundary, if selective
  std::vector<std::uint64_t> placed_;                                 // of each frame, a bit a record; if selective
  Unit capacity_ = 0, roof_ = 0;  // roof: the capacity rounded up to the grain, for sums of rounded sizes
  std::vector<Unit> offsets_;
  std::vector<std::uint32_t> by_begin_;  // records by the begin of their lives
  search_runs runs_;
  std::vector<std::int64_t> conflicts_;  // of each section: failures, and 1
  failed_states failed_;
  plain_vector<frame> frames_;
  plain_vector<entry> pool_;
  plain_vector<section> sections_;
  section_range changed_{};  // where limits have risen since floors were measured
  section_range unmet_{};    // where floors have risen since meetings were looked at
  // Of the present plateau, by section; begun_: options that begin less options that end there.
  std::vector<std::uint64_t> reached_, reaches_end_;
  std::vector<char> may_waste_;
  std::vector<std::int32_t> begun_;
  plain_vector<option> options_;
  hanging_records<Unit> hanging_;
  // Of the present boundary: entries that end there as a list.
  std::vector<std::uint32_t> ending_, next_ending_;
  std::vector<Unit> left_sums_, right_sums_;
  std::uint32_t chosen_ = none;  // entry to branch on
  bool forced_ = false;
  double least_score_ = 0;
  bool failing_ = false, hopeless_ = false;
};

}  // namespace neap::inline v0::detail
