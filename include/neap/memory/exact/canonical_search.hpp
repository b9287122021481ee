// Search in an order of preference: do all records fit below a capacity?
//
// Depth-first over canonical placements: records are placed in order of (offset, rank), each at the lowest offset that
// the records below it leave, which loses no solution (MiniMalloc: Moffitt 2023). A node holds the unplaced records of one
// connected range of time, sorted by (limit, rank), the limit being an offset proved to be the least still possible. Its
// head is the only candidate, and a node branches in two: the head lies at its limit, or it does not. If not, it must lie
// on an unplaced record that it meets in time, so its limit is lifted to the lowest top of those, and it falls back in the
// list. Heads that are unsupported after such a lift are lifted again without a branch, after many lifts all at once.
// Canonical order and MiniMalloc's dominance between candidates follow from this form and need no tests of their own.
//
//   bound          a section whose lowest limit plus unplaced bytes passes the capacity ends the node; tested after each
//                  placement and after each lift
//   decomposition  where no unplaced record crosses a moment, both sides are searched apart; if one fails, both do
//   twins          records alike in life and size are placed in one order only
//   backjumping    a failure returns to the last placement in its conflict set (limit_reasons.hpp)
//   restarts       on request: with another order of preference, after ever more nodes, records first whose sections have
//                  failed most (squeaky wheel optimization: Joslin and Clements 1999)
//
// Flat arrays on an explicit stack: depth costs no machine stack.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/frames.hpp>
#include <neap/memory/exact/limit_reasons.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/exact/policy.hpp>
#include <neap/memory/exact/unsupported.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

struct section_load {
  std::int64_t load;       // unplaced bytes
  std::uint32_t crossing;  // unplaced records that live in this section and the next; counted for plain lives
};

/// The bound: in every section the lowest limit plus the unplaced bytes stays below the roof.
class section_bound {
 public:
  explicit section_bound(packing_problem const& problem) : problem_(problem), filled_(problem.section_words(), 0) {}

  /// A section of `where` that breaks it, or `none`. Entries are sorted by limit, so the first that lives in a section
  /// gives its lowest; most sections are settled by the first few.
  std::uint32_t broken(limit_frame const& f, limit_entry const* x, section_load const* loads, section_range where,
                       std::int64_t roof);

 private:
  packing_problem const& problem_;
  std::vector<std::uint64_t> filled_;
};

/// The connected parts of a frame: runs of sections that unplaced records cross; where lives have holes, records that
/// meet one another in turn.
class frame_parts {
 public:
  explicit frame_parts(packing_problem const& problem) : problem_(problem) {}

  /// Parts of `whole`, with the numbers of their entries; `x` and `loads` are the whole's.
  plain_vector<limit_frame>& operator()(limit_frame const& whole, limit_entry const* x, section_load const* loads);
  /// The part of the whole's k-th entry.
  std::uint32_t of(limit_frame const& whole, limit_entry const& x, std::uint32_t k) const {
    return problem_.plain() ? part_of_[problem_.hull[x.record].begin - whole.begin] : part_of_[k];
  }

 private:
  void add(limit_frame const& whole, section_range where) {
    limit_frame f = whole;
    f.count = 0, f.begin = where.begin, f.end = where.end;
    f.begun = false, f.untested = {};
    parts_.push_back(f);
  }
  void split_by_meeting(limit_frame const& whole, limit_entry const* x);

  packing_problem const& problem_;
  std::vector<std::uint32_t> part_of_;  // by section, or by entry
  plain_vector<limit_frame> parts_;
};

class canonical_search final : public placement_search {
 public:
  canonical_search(packing_problem const& problem, search_tricks tricks, bool restarts = false)
      : problem_(problem),
        tricks_(tricks),
        restarts_(restarts),
        offsets_(problem.count(), 0),
        runs_(problem.count()),
        conflicts_(problem.sections, 0),
        rank_(problem.count(), 0),
        bound_(problem),
        reasons_(problem, tricks),
        split_(problem) {}

  void start(std::int64_t capacity) override {
    capacity_ = capacity, roof_ = problem_.roof(capacity), nodes_ = 0;
    conflicts_.assign(problem_.sections, 0);
    runs_.start(restarts_ && reasons_.kept() ? tricks_.first_run * static_cast<std::int64_t>(problem_.count()) : 0);
    begin_run();
  }

  feasibility run(stop_condition const& stop) override;

  std::int64_t offset(std::size_t record) const override { return offsets_[record]; }

 private:
  static constexpr std::uint32_t none = search_frame::none;

  /// Whether a record at its limit ends beyond the capacity.
  bool overflows(limit_entry const& x) const { return !problem_.ends_within(x.record, x.limit, capacity_); }
  template <class F>
  void for_each_section(std::uint32_t record, F&& f) const {
    auto const [b, e] = problem_.hull[record];
    for (std::uint32_t s = b; s < e; ++s)
      if (problem_.is_alive(record, s)) f(s);
  }

  void begin_run();

  bool open_root();

  /// Elsewhere than in `where` nothing has changed since the last test.
  bool within_bound(limit_frame const& f, section_range where) {
    auto const* const x = pool_.data() + f.entries;
    auto const* const loads = loads_.data() + f.sections_at;
    auto const s = bound_.broken(f, x, loads, where, roof_);
    if (s == none) return true;
    ++conflicts_[s];
    return reasons_.fail_in(f, x, s, roof_ + 1 - loads[s - f.begin].load);
  }
  bool test_untested(limit_frame& f) {
    auto const where = f.untested;
    f.untested = {};
    return within_bound(f, where);
  }

  /// The two branches of a node, in turn, until a placement stands; false if none does.
  bool advance();

  /// Lifts all unsupported records to what can hold them. False if one of them can lie nowhere.
  bool lift_unsupported();

  /// The second branch: the head of the top frame does not lie at its limit. False if it can lie nowhere.
  bool lift_head();

  /// The first branch: places the top frame's head at its limit and opens what is left; false if that cannot be.
  bool place_head();
  /// Fills the entries of `rest` from those of `f` behind its head, raised above the head where they meet it. Unchanged
  /// ones stay sorted; raised ones are collected behind, sorted, and merged in.
  bool raise_above(limit_entry const& head, limit_frame const& f, limit_frame& rest, section_range& changed);

  /// Pushes a frame for each connected part of `whole`, each with its entries side by side, still sorted.
  bool open_parts(limit_frame const& whole);

  packing_problem const& problem_;
  search_tricks tricks_;
  bool restarts_;
  std::int64_t capacity_ = 0, roof_ = 0;
  plain_vector<limit_frame> frames_;
  plain_vector<limit_entry> pool_;
  plain_vector<section_load> loads_;
  std::vector<std::int64_t> offsets_;
  search_runs runs_;
  std::vector<double> conflicts_;  // of each section: failures
  std::vector<std::uint32_t> rank_;
  section_bound bound_;
  limit_reasons reasons_;
  frame_parts split_;
  plain_vector<limit_entry> raised_, entries_;
  unsupported_records unsupported_;
  bool hopeless_ = false;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/canonical_search.ipp>
#endif
