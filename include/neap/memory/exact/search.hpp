// The decision problem behind the exact planner: do all records fit below a capacity?
//
// Depth-first search over canonical placements: records are put down in order of (offset, rank), each at the lowest
// offset that the records below it leave, which loses no solution (MiniMalloc: Moffitt 2023). A node holds the unplaced
// records of one connected stretch of time, sorted by (limit, rank), the limit being an offset proved to be the least
// still possible. Its head is the only candidate, and a node branches in two: the head lies at its limit, or it does
// not. If not, it must lie on an unplaced record that it meets in time, so its limit is lifted to the lowest top of
// those, and it falls back in the list; heads that hang in the air after such a lift are lifted again without a branch,
// after many such lifts all of them at once.
// Canonical order and MiniMalloc's dominance between candidates follow from this form and need no tests of their own.
//
//   bound          a section whose lowest limit plus unplaced bytes passes the capacity ends the node; tested after each
//                  placement and after each lift
//   decomposition  where no unplaced record crosses a moment, both sides are searched apart; if one fails, both do
//   twins          records alike in life and size are placed in one order only
//   blame          a failure goes back to the last placement that has part in it (memory/exact/limit_proofs.hpp)
//   restarts       where they are asked for: with another order of preference, after ever more nodes, records first whose
//                  sections have failed most (squeaky wheel optimization: Joslin and Clements 1999)
//
// Flat arrays on an explicit stack: depth costs no machine stack.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/frames.hpp>
#include <neap/memory/exact/hanging.hpp>
#include <neap/memory/exact/limit_proofs.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0 {

/// Each trick of the search can be switched off, so that its worth can be measured. Off never changes an answer.
struct search_tricks {
  bool decompose = true;         ///< split nodes at moments that nothing crosses
  bool bound_after_lift = true;  ///< test the bound again when the head has been lifted
  bool lift = true;              ///< lift to the lowest top beneath; else only past the head's own limit
  bool twins = true;             ///< lift the twins of a lifted head with it
  bool blame = true;             ///< go back at once to a placement that has part in the failure
  bool skyline = true;           ///< memory/exact/skyline_search.hpp beside the orders; the rest is of that search
  bool meeting = true;           ///< lift to heights that both sides of a boundary can have
  bool remember = true;          ///< do not search a state again that has failed
  bool likely = true;            ///< that search also among packings that are likely (memory/exact/neighbours.hpp)
  bool fill = true;              ///< memory/exact/fill_search.hpp where many records live in one section only
  bool planar = true;            ///< memory/exact/planar_search.hpp where little is free
  bool ground = true;            ///< after many lifts all that hang in the air are lifted to what holds them, at once
  std::int64_t first_run =
      10;  ///< nodes a record until it begins anew with other preferences, then ever more; 0: never
};

namespace detail {

enum class ruling : std::uint8_t { found, impossible, spent };

/// What a search asks after each step, with the nodes that it has spent: true ends it early. One type for all that may
/// end one, so that each search is compiled once.
struct stop_asked {
  constexpr virtual bool operator()(std::int64_t nodes) = 0;

 protected:
  constexpr ~stop_asked() = default;
};
/// stop(nodes), which must outlive it.
template <class Stop>
struct stop_by final : stop_asked {
  constexpr explicit stop_by(Stop& f) : stop(f) {}
  constexpr bool operator()(std::int64_t nodes) override { return stop(nodes); }
  Stop& stop;
};

/// One decision as decider.hpp drives it: do the records of a ground fit below a capacity? Capacity and offsets in units.
class record_search {
 public:
  constexpr virtual ~record_search() = default;
  /// Begins anew.
  constexpr virtual void start(std::int64_t capacity) = 0;
  /// Goes on from where it stopped; `stop` is asked after each step, true ends this run with `spent`.
  constexpr virtual ruling run(stop_asked& stop) = 0;
  template <class Stop>
    requires(!std::derived_from<Stop, stop_asked>)
  constexpr ruling run(Stop const& stop) {
    stop_by<Stop const> asked(stop);
    return run(asked);
  }
  constexpr virtual std::int64_t offset(std::size_t record) const = 0;
  constexpr std::int64_t nodes() const { return nodes_; }

 protected:
  std::int64_t nodes_ = 0;
};

/// A decision problem, records in order of preference. `Unit` counts bytes divided by their greatest common divisor.
template <class Unit>
struct search_ground {
  std::vector<Unit> size;            // rounded up to the grain
  std::vector<Unit> slack;           // what the rounding added; empty: nothing
  Unit grain = 1;                    // all offsets are multiples of it: the alignment that all records share
  std::vector<Unit> alignment;       // empty: all 1
  std::vector<Unit> fixed;           // empty: none; -1: not fixed
  plain_vector<section_range> hull;  // from the first to the last section alive
  std::vector<std::uint32_t> twin;   // the first record alike
  std::uint32_t sections = 0;
  // Lives with holes, and conflicts that are no intervals at all, are given as bits; empty where lives are their hulls.
  std::vector<std::uint64_t> alive;  // record x section
  std::vector<std::uint64_t> meets;  // record x record
  constexpr std::size_t count() const { return size.size(); }
  constexpr bool plain() const { return alive.empty(); }
  constexpr std::size_t section_words() const { return (sections + 63) / 64; }
  constexpr std::size_t record_words() const { return (count() + 63) / 64; }

  constexpr bool is_fixed(std::uint32_t record) const { return !fixed.empty() && fixed[record] >= 0; }
  /// The least offset from `x` on that a record may have.
  constexpr Unit aligned(Unit x, std::uint32_t record) const {
    if (alignment.empty()) return x;
    Unit const a = alignment[record];
    return a <= 1 ? x : (x + a - 1) / a * a;
  }
  /// Whether a record at an offset ends within the capacity: its own size counts there, not the rounded one.
  constexpr bool ends_within(std::uint32_t record, Unit offset, Unit capacity) const {
    return offset <= capacity - (size[record] - (slack.empty() ? Unit{0} : slack[record]));
  }
};

template <class Unit, bool Plain>
class decision_search final : public record_search {
 public:
  using record_search::run;
  constexpr decision_search(search_ground<Unit> const& ground, search_tricks tricks, bool restarts = false)
      : ground_(ground),
        tricks_(tricks),
        restarts_(restarts),
        filled_(ground.section_words(), 0),
        offsets_(ground.count(), 0),
        runs_(ground.count()),
        conflicts_(ground.sections, 0),
        rank_(ground.count(), 0),
        proofs_(tricks.blame && ground.count() <= most_blamed ? ground.count() : 0) {}

  constexpr void start(std::int64_t capacity) override {
    capacity_ = static_cast<Unit>(capacity), nodes_ = 0;
    roof_ = (capacity_ + ground_.grain - 1) / ground_.grain * ground_.grain;
    conflicts_.assign(ground_.sections, 0);
    runs_.start(restarts_ && proofs_.kept() ? tricks_.first_run * static_cast<std::int64_t>(ground_.count()) : 0);
    begin_run();
  }

  constexpr ruling run(stop_asked& stop) override {
    if (hopeless_) return ruling::impossible;
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
            return ruling::impossible;
          }
          frames_.resize(parent + 1, frame{});
        } while (!proofs_.blamed(pool_[frames_.back().entries].record));
      }
      if (stop(nodes_)) return ruling::spent;
      if (runs_.is_over(nodes_)) {
        runs_.next(nodes_);
        for (auto& x : conflicts_) x /= 2;  // later ones count more
        begin_run();
      }
    }
    return ruling::found;
  }

  constexpr std::int64_t offset(std::size_t record) const override { return offsets_[record]; }
  constexpr std::vector<Unit> const& offsets() const { return offsets_; }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;

  struct entry {
    Unit limit;
    std::uint32_t rank;  // in the order of preference
    std::uint32_t record;
    std::uint32_t air;    // 1: the limit is proved, but nothing placed holds the record there
    std::uint32_t proof;  // of the limit
    friend constexpr bool operator<(entry const& a, entry const& b) {
      return a.limit != b.limit ? a.limit < b.limit : a.rank < b.rank;
    }
  };
  struct frame {
    std::size_t entries = 0, sections_at = 0;         // where its entries and its sections' loads begin in the pools
    std::size_t free_entries = 0, free_sections = 0;  // where the pools are free for what it opens
    std::uint32_t count = 0, begin = 0, end = 0;      // entries; sections [begin, end)
    std::uint32_t parent = none;                      // the frame whose placement made it
    std::uint32_t free_proofs = 0;                    // where the proofs are free for it and what it opens
    bool begun = false;
    section_range untested{};  // where limits have risen since the bound was last tested
  };
  struct section {
    Unit load;               // unplaced bytes
    std::uint32_t crossing;  // unplaced records that live in this section and the next
  };

  constexpr bool meet(std::uint32_t a, std::uint32_t b) const {
    if constexpr (Plain)
      return ground_.hull[a].begin < ground_.hull[b].end && ground_.hull[b].begin < ground_.hull[a].end;
    else return ground_.meets[a * ground_.record_words() + b / 64] >> (b % 64) & 1;
  }
  /// Whether a record at its limit ends beyond the capacity.
  constexpr bool overflows(entry const& x) const { return !ground_.ends_within(x.record, x.limit, capacity_); }

  /// Whether a record lives in a section between its first and its last one.
  constexpr bool is_alive(std::uint32_t record, std::uint32_t s) const {
    return Plain || (ground_.alive[record * ground_.section_words() + s / 64] >> (s % 64) & 1);
  }
  template <class F>
  constexpr void for_each_section(std::uint32_t record, F&& f) const {
    auto const [b, e] = ground_.hull[record];
    for (std::uint32_t s = b; s < e; ++s)
      if (is_alive(record, s)) f(s);
  }

  constexpr void begin_run() {
    double most = 1;
    for (auto x : conflicts_) most = std::max(most, x);
    std::vector<double> late(ground_.count(), 0);
    std::vector<std::uint32_t> order(ground_.count(), 0);
    for (std::uint32_t i = 0; i < ground_.count(); ++i) {
      double failed = 0;
      for_each_section(i, [&](std::uint32_t s) { failed = std::max(failed, conflicts_[s]); });
      late[i] = runs_.preference(i) - static_cast<double>(ground_.count()) / 2 * failed / most;
      order[i] = i;
    }
    detail::sort_list(order, [&](auto a, auto b) { return late[a] != late[b] ? late[a] < late[b] : a < b; });
    for (std::uint32_t k = 0; k < order.size(); ++k) rank_[order[k]] = k;
    frames_.clear();
    hopeless_ = !open_root();
  }

  /// Blames the placements from which it follows that the entry is at `least` or higher.
  constexpr bool fails_by(entry const& x, Unit least) {
    if (!proofs_.kept()) return false;
    proofs_.clear_blame();
    proofs_.blame_proof(x.proof, least);
    return false;
  }
  /// A section whose lowest limit plus unplaced bytes passes the capacity.
  constexpr bool fails_in(frame const& f, std::uint32_t s) {
    ++conflicts_[s];
    if (!proofs_.kept()) return false;
    proofs_.clear_blame();
    Unit const least = roof_ + 1 - loads_[f.sections_at + (s - f.begin)].load;
    for (std::uint32_t k = 0; k < f.count; ++k) {
      entry const& x = pool_[f.entries + k];
      auto const [b, e] = ground_.hull[x.record];
      if (b <= s && s < e && is_alive(x.record, s)) proofs_.blame_proof(x.proof, least);
    }
    return false;
  }
  /// From what is blamed now: the entry's offset is at least so much.
  constexpr void prove(frame& f, entry& x, Unit least) {
    proofs_.prove(f.free_proofs, least, x.proof);
    x.proof = f.free_proofs++;
  }
  /// The entry cannot lie beneath the head that has just been placed, so it lies above.
  constexpr void prove_raise(frame& f, entry& x, entry const& head) {
    if (!proofs_.kept()) return;
    proofs_.clear_blame();
    proofs_.blame_proof(x.proof, head.limit - ground_.size[x.record] + 1);
    proofs_.blame(head.record);
    prove(f, x, x.limit);
  }
  /// The head does not lie at its limit, as its placement there has failed. One in the air does not anyway.
  constexpr void prove_refusal(frame& f, entry& head) {
    if (!proofs_.kept() || head.air != 0) return;
    proofs_.forgive(head.record);
    proofs_.blame_proof(head.proof, head.limit);
    prove(f, head, head.limit + 1);
  }
  /// So it lies on something, and below `least` nothing it meets ends.
  constexpr void prove_lift(frame& f, entry& head, Unit least) {
    if (!proofs_.kept()) return;
    proofs_.clear_blame();
    entry const* const x = pool_.data() + f.entries;
    if (tricks_.lift) {
      proofs_.blame_proof(head.proof, head.limit + 1);
      for (std::uint32_t i = 0; i < ground_.count(); ++i)
        if (i != head.record && ground_.size[i] < least && meet(i, head.record)) proofs_.blame(i);
      for (std::uint32_t k = 1; k < f.count; ++k) proofs_.forgive(x[k].record);
      for (std::uint32_t k = 1; k < f.count; ++k)
        if (meet(x[k].record, head.record)) proofs_.blame_proof(x[k].proof, least - ground_.size[x[k].record]);
    } else {
      blame_placed(f);
    }
    prove(f, head, least);
  }
  /// A twin of the refused head does not lie there either.
  constexpr void prove_twin(frame& f, entry& twin, entry const& refused) {
    if (!proofs_.kept()) return;
    proofs_.clear_blame();
    proofs_.blame_proof(refused.proof, refused.limit + 1);
    proofs_.blame_proof(twin.proof, twin.limit);
    prove(f, twin, twin.limit + 1);
  }
  /// Blames all that is not in the frame.
  constexpr void blame_placed(frame const& f) {
    proofs_.blame_all();
    for (std::uint32_t k = 0; k < f.count; ++k) proofs_.forgive(pool_[f.entries + k].record);
  }

  constexpr bool open_root() {
    auto const n = static_cast<std::uint32_t>(ground_.count());
    frame root;
    root.free_proofs = n;
    root.count = n, root.end = ground_.sections;
    root.free_entries = n, root.free_sections = ground_.sections;
    pool_.assign(n, entry{});
    loads_.assign(ground_.sections, section{});
    for (std::uint32_t i = 0; i < n; ++i) {
      pool_[i] = {ground_.is_fixed(i) ? ground_.fixed[i] : Unit{0}, rank_[i], i, 0, i};
      if (overflows(pool_[i])) return false;
      for_each_section(i, [&](std::uint32_t s) { loads_[s].load += ground_.size[i]; });
      if constexpr (Plain)
        for (auto s = ground_.hull[i].begin; s + 1 < ground_.hull[i].end; ++s) ++loads_[s].crossing;
    }
    proofs_.start(n, [&](std::uint32_t i) { return pool_[i].limit; });
    detail::sort_list(pool_);
    if (n == 0) return true;
    return within_bound(root, {root.begin, root.end}) && open_parts(root, none);
  }

  static constexpr void widen(section_range& a, section_range b) {
    if (a.begin == a.end) a = b;
    else if (b.begin < b.end) a = {std::min(a.begin, b.begin), std::max(a.end, b.end)};
  }

  /// In every section of `where` the lowest limit plus the unplaced bytes stays below the capacity; elsewhere nothing has
  /// changed since the last test. Entries are sorted by limit, so the first that lives in a section gives its lowest;
  /// most sections are settled by the first few.
  constexpr bool within_bound(frame const& f, section_range where) {
    if (where.begin == where.end) return true;
    auto const first = where.begin / 64, last = (where.end - 1) / 64;
    for (auto w = first; w <= last; ++w) filled_[w] = 0;
    filled_[first] |= (std::uint64_t{1} << (where.begin % 64)) - 1;
    if (where.end % 64 != 0) filled_[last] |= ~std::uint64_t{0} << (where.end % 64);
    std::uint32_t left = where.end - where.begin;
    section const* const loads = loads_.data() + f.sections_at;
    for (std::uint32_t k = 0; k < f.count && left > 0; ++k) {
      entry const& x = pool_[f.entries + k];
      auto const hull = ground_.hull[x.record];
      auto const b = std::max(hull.begin, where.begin), e = std::min(hull.end, where.end);
      if (b >= e) continue;
      Unit const room = roof_ - x.limit;
      for (auto w = b / 64; w <= (e - 1) / 64; ++w) {
        std::uint64_t bits = ~filled_[w];
        if constexpr (Plain) {
          if (w == b / 64) bits &= ~std::uint64_t{0} << (b % 64);
          if (w == (e - 1) / 64 && e % 64 != 0) bits &= ~(~std::uint64_t{0} << (e % 64));
        } else {
          bits &= ground_.alive[x.record * ground_.section_words() + w];
        }
        filled_[w] |= bits;
        for (; bits != 0; bits &= bits - 1, --left) {
          auto const s = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
          if (loads[s - f.begin].load > room) return fails_in(f, s);
        }
      }
    }
    return true;
  }

  /// The two branches of a node, in turn, until a placement stands; false if none does.
  constexpr bool advance() {
    constexpr std::uint32_t many = 32;  // lifts take as long as to lift all that hangs at once, where some do
    for (std::uint32_t lifts = 0;; ++lifts) {
      entry const head = pool_[frames_.back().entries];
      if (overflows(head)) return fails_by(head, head.limit);
      if (head.air == 0) {
        if (place_head()) return true;
        if (!proofs_.blamed(head.record)) return false;
      }
      if (tricks_.ground && head.air != 0 && lifts > many) {
        if (!ground_air()) return false;
        lifts = 0;
      } else if (!lift_head()) {
        return false;
      }
    }
  }

  /// Lifts all that hangs in the air to what can hold it. False if one of them can lie nowhere.
  constexpr bool ground_air() {
    frame& f = frames_.back();
    entry* const x = pool_.data() + f.entries;
    auto const& offsets = hanging_(
        ground_, x, f.count, roof_, [](entry const& e) { return e.air != 0; },
        [&](entry const& a, entry const& b) { return meet(a.record, b.record); });
    if (proofs_.kept()) blame_placed(f);
    for (std::uint32_t k = 0; k < f.count; ++k) {
      if (x[k].air == 0) continue;
      if (x[k].limit != offsets[k]) {
        widen(f.untested, ground_.hull[x[k].record]);
        x[k].limit = offsets[k];
        if (proofs_.kept()) prove(f, x[k], x[k].limit);
      }
      if (overflows(x[k])) return fails_by(x[k], x[k].limit);
    }
    detail::sort_range(x, x + f.count);
    auto const where = f.untested;
    f.untested = {};
    return within_bound(f, where);
  }

  /// The second branch: the head of the top frame does not lie at its limit. False if it can lie nowhere.
  constexpr bool lift_head() {
    frame& f = frames_.back();
    entry* const x = pool_.data() + f.entries;
    entry head = x[0];
    prove_refusal(f, head);
    if (ground_.is_fixed(head.record)) return fails_by(head, head.limit + 1);
    entry const refused = head;
    bool const branched = head.air == 0;
    Unit least = roof_ + 1;
    if (tricks_.lift) {
      for (std::uint32_t k = 1; k < f.count; ++k)
        if (meet(head.record, x[k].record)) least = std::min<Unit>(least, x[k].limit + ground_.size[x[k].record]);
    } else if (f.count > 1) {
      least = std::max<Unit>(refused.limit + 1, x[1].limit);
    }
    prove_lift(f, head, least);
    head.limit = ground_.aligned(least, head.record), head.air = 1;
    if (overflows(head)) return fails_by(head, head.limit);
    std::uint32_t k = 1;
    for (; k < f.count && x[k] < head; ++k) {
      x[k - 1] = x[k];
      bool const twin = tricks_.twins && ground_.twin[x[k].record] == ground_.twin[head.record];
      if (!branched || !twin || x[k].limit != refused.limit) continue;
      x[k - 1].air = 1;
      prove_twin(f, x[k - 1], refused);
    }
    x[k - 1] = head;
    widen(f.untested, ground_.hull[head.record]);
    if (!branched || !tricks_.bound_after_lift) return true;
    auto const where = f.untested;
    f.untested = {};
    return within_bound(f, where);
  }

  /// The first branch: puts the top frame's head at its limit and opens what is left; false if that cannot be.
  constexpr bool place_head() {
    ++nodes_;
    auto const at = static_cast<std::uint32_t>(frames_.size() - 1);
    frame const f = frames_.back();
    entry const head = pool_[f.entries];
    offsets_[head.record] = head.limit;
    if (f.count == 1) return true;

    frame rest;
    rest.entries = f.free_entries;
    rest.sections_at = f.free_sections;
    rest.free_entries = rest.entries + f.count - 1;
    rest.free_sections = rest.sections_at + (f.end - f.begin);
    rest.count = f.count - 1, rest.begin = f.begin, rest.end = f.end, rest.free_proofs = f.free_proofs;
    if (pool_.size() < rest.free_entries) pool_.resize(2 * rest.free_entries + 64, entry{});
    // Unchanged entries stay sorted; raised ones are collected behind, sorted, and merged in.
    Unit const top = head.limit + ground_.size[head.record];
    raised_.clear();
    section_range changed = f.untested;
    widen(changed, ground_.hull[head.record]);
    entry* out = pool_.data() + rest.entries;
    std::uint32_t kept = 0;
    for (std::uint32_t k = 1; k < f.count; ++k) {
      entry x = pool_[f.entries + k];
      if (meet(head.record, x.record)) {
        Unit const least = ground_.aligned(top, x.record);
        if (least > x.limit) {
          x.limit = least, x.air = 0;
          prove_raise(rest, x, head);
          if (ground_.is_fixed(x.record) || overflows(x)) return fails_by(x, x.limit);
          raised_.push_back(x);
          widen(changed, ground_.hull[x.record]);
          continue;
        }
        if (least == x.limit) x.air = 0;
      }
      out[kept++] = x;
    }
    detail::sort_list(raised_);
    for (std::size_t i = kept, j = raised_.size(), k = rest.count; j > 0;) {
      if (i > 0 && raised_[j - 1] < out[i - 1]) out[--k] = out[--i];
      else out[--k] = raised_[--j];
    }

    auto const width = f.end - f.begin;
    if (loads_.size() < rest.free_sections) loads_.resize(2 * rest.free_sections + 64, section{});
    section* const loads = loads_.data() + rest.sections_at;
    std::copy(loads_.data() + f.sections_at, loads_.data() + f.sections_at + width, loads);
    Unit const bytes = ground_.size[head.record];
    for_each_section(head.record, [&](std::uint32_t s) { loads[s - f.begin].load -= bytes; });
    if (!within_bound(rest, changed)) return false;
    if constexpr (Plain) {
      auto const [b, e] = ground_.hull[head.record];
      bool cut = b + 1 == e;
      for (auto s = b; s + 1 < e; ++s) cut |= --loads[s - f.begin].crossing == 0;
      if (!cut || !tricks_.decompose) {
        rest.parent = at;
        frames_.push_back(rest);
        return true;
      }
    }
    return open_parts(rest, at);
  }

  /// A frame of these sections of `whole`, without entries yet.
  static constexpr frame new_part(frame const& whole, std::uint32_t parent, section_range where) {
    frame f = whole;
    f.count = 0, f.begin = where.begin, f.end = where.end;
    f.parent = parent, f.begun = false, f.untested = {};
    return f;
  }
  /// Pushes a frame for each connected part of `whole`, whose entries and loads lie at the end of the pools.
  constexpr bool open_parts(frame const& whole, std::uint32_t parent) {
    if (!tricks_.decompose) {
      frames_.push_back(whole);
      frames_.back().parent = parent;
      frames_.back().begun = false;
      return true;
    }
    if constexpr (Plain) {
      // Parts are runs of sections that unplaced records cross; entries are dealt to them in order.
      section const* const loads = loads_.data() + whole.sections_at;
      auto const width = whole.end - whole.begin;
      if (part_of_.size() < width) part_of_.resize(width, 0);
      parts_.clear();
      for (std::uint32_t s = 0; s < width; ++s) {
        if (s == 0 || loads[s - 1].crossing == 0) parts_.push_back(new_part(whole, parent, {whole.begin + s, 0}));
        parts_.back().end = whole.begin + s + 1;
        part_of_[s] = static_cast<std::uint32_t>(parts_.size() - 1);
      }
      for (std::uint32_t k = 0; k < whole.count; ++k)
        ++parts_[part_of_[ground_.hull[pool_[whole.entries + k].record].begin - whole.begin]].count;
    } else {
      split_by_meeting(whole, parent);
    }
    std::size_t const first_new = frames_.size();
    // Deal the entries out: each part's lie together, still sorted. The smallest part is searched first.
    std::size_t at = whole.entries;
    for (auto& part : parts_) part.entries = at, at += part.count, part.count = 0;
    dealt_.clear();
    dealt_.append(pool_.data() + whole.entries, whole.count);
    for (std::uint32_t k = 0; k < whole.count; ++k) {
      auto& part = parts_[Plain ? part_of_[ground_.hull[dealt_[k].record].begin - whole.begin] : part_of_[k]];
      pool_[part.entries + part.count++] = dealt_[k];
    }
    for (auto& part : parts_) {
      if (part.count == 0) continue;
      if (part.count == 1) {  // nothing else in its life is unplaced: its limit is free
        entry const& x = pool_[part.entries];
        if (overflows(x)) return fails_by(x, x.limit);
        offsets_[x.record] = x.limit;
        continue;
      }
      part.sections_at = whole.sections_at + (Plain ? part.begin - whole.begin : 0);
      frames_.push_back(part);
    }
    detail::sort_range(frames_.data() + first_new, frames_.data() + frames_.size(), [](frame const& a, frame const& b) {
      return a.count != b.count ? a.count > b.count : a.begin > b.begin;
    });
    return true;
  }

  constexpr void split_by_meeting(frame const& whole, std::uint32_t parent) {
    part_of_.assign(std::max<std::size_t>(whole.count, part_of_.size()), none);
    parts_.clear();
    std::vector<std::uint32_t> open;
    for (std::uint32_t k = 0; k < whole.count; ++k) {
      if (part_of_[k] != none) continue;
      auto const part = static_cast<std::uint32_t>(parts_.size());
      parts_.push_back(new_part(whole, parent, {whole.begin, whole.end}));
      part_of_[k] = part;
      open.push_back(k);
      while (!open.empty()) {
        auto const x = open.back();
        open.pop_back();
        ++parts_[part].count;
        for (std::uint32_t j = 0; j < whole.count; ++j)
          if (part_of_[j] == none && meet(pool_[whole.entries + x].record, pool_[whole.entries + j].record))
            part_of_[j] = part, open.push_back(j);
      }
    }
  }

  const search_ground<Unit>& ground_;
  search_tricks tricks_;
  bool restarts_;
  Unit capacity_ = 0, roof_ = 0;  // roof: the capacity rounded up to the grain, for sums of rounded sizes
  plain_vector<frame> frames_;
  plain_vector<entry> pool_;
  plain_vector<section> loads_;
  std::vector<std::uint64_t> filled_;
  std::vector<Unit> offsets_;
  search_runs runs_;
  std::vector<double> conflicts_;  // of each section: failures
  std::vector<std::uint32_t> rank_;
  limit_proofs<Unit> proofs_;
  plain_vector<entry> raised_, dealt_;
  hanging_records<Unit> hanging_;
  std::vector<std::uint32_t> part_of_;
  plain_vector<frame> parts_;
  bool hopeless_ = false;
};

}  // namespace detail

}  // namespace neap::inline v0
