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

namespace neap { inline namespace v0 { namespace detail {

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
              std::uint32_t first);

  std::vector<std::int64_t> left, right;

 private:
  static constexpr std::uint32_t none = search_frame::none;
  std::vector<std::uint32_t> ending_, next_ending_;  // of each boundary, the entries that end there, as a list
};

/// For lives without holes (packing_problem::plain). Deterministic.
class skyline_search final : public placement_search {
 public:
  skyline_search(packing_problem const& problem, search_tricks tricks);

  void start(std::int64_t capacity) override {
    capacity_ = capacity, roof_ = problem_.roof(capacity), nodes_ = 0;
    conflicts_.assign(problem_.sections, 1);
    failed_.clear();
    runs_.start(tricks_.first_run * static_cast<std::int64_t>(problem_.count()));
    begin_run();
  }

  feasibility run(stop_condition const& stop) override;

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

  bool open_root();

  /// Floors of the sections of `where` from the limits; false if one with its unplaced bytes passes the capacity.
  bool measure_floors(skyline_frame const& f, section_range where);

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
  bool lift_to_contacts(skyline_frame const& f);

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
  bool advance();

  /// Lifts until nothing more follows; then chosen_ is what to branch on. False if nothing fits any more.
  bool infer(skyline_frame const& f);

  /// Lifts what cannot lie on a plateau; if nothing is lifted, looks for the section to branch on.
  bool settle(skyline_frame const& f, plateau const& p);

  /// Keeps the section of least choice, and the record preferred for it.
  void choose(skyline_frame const& f, plateau const& p);
  bool prefers(skyline_frame const& f, std::uint32_t j, std::uint32_t k) {
    return runs_.preference(entries_of(f)[j].record) < runs_.preference(entries_of(f)[k].record);
  }

  /// Puts entry k of the top frame at its limit and opens what is left; false if that cannot be.
  bool place(std::uint32_t k);

  /// Pushes a frame for each run of sections that unplaced records cross.
  void open_parts(skyline_frame const& whole);

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

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/skyline_search.ipp>
#endif
