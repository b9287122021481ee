// Entries and frames of the search in an order (canonical_search.hpp), and why their limits are what they are.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/exact/conflict_sets.hpp>
#include <neap/memory/exact/frames.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/exact/policy.hpp>
#include <neap/memory/sections.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

struct limit_entry {
  std::int64_t limit;  // an offset proved to be the least still possible
  std::uint32_t rank;  // in the order of preference
  std::uint32_t record;
  std::uint32_t unsupported;  // 1: nothing placed ends at the limit
  std::uint32_t reason;       // of the limit
  friend bool operator<(limit_entry const& a, limit_entry const& b) {
    return a.limit != b.limit ? a.limit < b.limit : a.rank < b.rank;
  }
};
struct limit_frame : search_frame {
  std::uint32_t free_reasons = 0;  // where reasons are free for it and what it opens
  bool begun = false;
  section_range untested{};  // where limits have risen since the bound was last tested
};

/// Whether others live at some moment with one record.
class meeting {
 public:
  meeting(packing_problem const& p, std::uint32_t record)
      : hulls_(p.hull.data()),
        hull_(p.hull[record]),
        bits_(p.plain() ? nullptr : p.meets.data() + record * p.record_words()) {}
  bool operator()(std::uint32_t other) const {
    return bits_ == nullptr ? meet(hulls_[other], hull_) : (bits_[other / 64] >> (other % 64) & 1) != 0;
  }

 private:
  section_range const* hulls_;
  section_range hull_;
  std::uint64_t const* bits_;
};

/// Keeps a reason for each limit that rises, and makes conflict sets of them. `x`: the frame's entries.
class limit_reasons {
 public:
  limit_reasons(packing_problem const& problem, search_tricks tricks)
      : problem_(problem),
        precise_(tricks.lift),
        sets_(tricks.backjump && problem.count() <= exact_policy::max_explained ? problem.count() : 0) {}

  bool kept() const { return sets_.kept(); }
  /// Whether a placement has part in the last failure.
  bool in_conflict(std::uint32_t record) const { return sets_.contains(record); }
  template <class Least>
  void start(Least const& least) {
    sets_.start(static_cast<std::uint32_t>(problem_.count()), least);
  }

  /// The entry is at `least` or higher. False, for the failure that follows.
  bool fail(limit_entry const& x, std::int64_t least) {
    if (!kept()) return false;
    sets_.clear();
    sets_.add_reason(x.reason, least);
    return false;
  }
  /// All in section s is at `least` or higher, too high for its bytes.
  bool fail_in(limit_frame const& f, limit_entry const* x, std::uint32_t s, std::int64_t least) {
    if (!kept()) return false;
    sets_.clear();
    for (std::uint32_t k = 0; k < f.count; ++k) {
      auto const [b, e] = problem_.hull[x[k].record];
      if (b <= s && s < e && problem_.is_alive(x[k].record, s)) sets_.add_reason(x[k].reason, least);
    }
    return false;
  }

  /// The entry cannot lie beneath the head that has just been placed, so it lies above.
  void raised(limit_frame& f, limit_entry& x, limit_entry const& head) {
    if (!kept()) return;
    sets_.clear();
    sets_.add_reason(x.reason, head.limit - problem_.size[x.record] + 1);
    sets_.add(head.record);
    set(f, x, x.limit);
  }
  /// The head does not lie at its limit, as its placement there has failed. An unsupported one does not anyway.
  void refused(limit_frame& f, limit_entry& head) {
    if (!kept() || head.unsupported != 0) return;
    sets_.remove(head.record);
    sets_.add_reason(head.reason, head.limit);
    set(f, head, head.limit + 1);
  }
  /// So it lies on something, and below `least` nothing it meets ends.
  void lifted(limit_frame& f, limit_entry const* x, limit_entry& head, std::int64_t least);
  /// A twin of the refused head does not lie there either.
  void twin_refused(limit_frame& f, limit_entry& twin, limit_entry const& refused) {
    if (!kept()) return;
    sets_.clear();
    sets_.add_reason(refused.reason, refused.limit + 1);
    sets_.add_reason(twin.reason, twin.limit);
    set(f, twin, twin.limit + 1);
  }
  /// Limits of unsupported entries follow from all placements.
  void begin_lift_of_all(limit_frame const& f, limit_entry const* x) {
    if (kept()) add_placed(f, x);
  }
  void lifted_with_all(limit_frame& f, limit_entry& x) {
    if (kept()) set(f, x, x.limit);
  }

 private:
  void set(limit_frame& f, limit_entry& x, std::int64_t least) {
    sets_.set_reason(f.free_reasons, least, x.reason);
    x.reason = f.free_reasons++;
  }
  /// All that is not in the frame.
  void add_placed(limit_frame const& f, limit_entry const* x) {
    sets_.add_all();
    for (std::uint32_t k = 0; k < f.count; ++k) sets_.remove(x[k].record);
  }

  packing_problem const& problem_;
  bool precise_;
  conflict_sets sets_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/limit_reasons.ipp>
#endif
