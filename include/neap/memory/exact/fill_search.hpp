// The decision problem once more (memory/exact/search.hpp), for records many of which live in one section only. The
// search places the others; the short ones fill the gaps that these leave, and which of them fills which gap is left open
// to the end (memory/exact/gap_sums.hpp). Where a moment is full a gap is a sum of sizes, to the byte: few offsets are
// left to a record that lives through several such moments. So Cote, Dell'Amico and Iori (2013) place what decides and
// leave the rest to a test; here the test is a look-up at each step.
//
//   direct    the least offset at which a record lies on what is placed: its gap is possible in each of its sections, and
//             filled to the byte in one of them, for else it could be pushed down
//   limit     an offset proved to be the least: the direct one, or the lowest top of an unplaced record that may come
//             beneath, whose limit is told in the same way (shortest ways: Dijkstra 1959)
//   ripe      a record whose limit is direct and beneath which nothing can come any more. A node branches in two: a ripe
//             record lies at its limit, or it does not
//   choice    the section in which the fewest records may come next, those preferred in which the search has failed
//             before; every other run the section with the lowest top
//   memory, restarts  as in memory/exact/skyline_search.hpp: a state is which records are unplaced, and the height and the
//             gaps' sets of each section
//
// Nothing is lost by the offsets that are left out: of all packings of a state one has the least sum of offsets, and in it
// every record lies on a stack that begins at a placed record's top, without waste in one section.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/frames.hpp>
#include <neap/memory/exact/gap_sums.hpp>
#include <neap/memory/exact/search.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace neap::inline v0::detail {

/// Whether the search below is for that ground, and worth it: a quarter of the records fill gaps.
template <class Unit>
constexpr bool many_fill_gaps(search_ground<Unit> const& g) {
  if (!g.plain() || g.grain > 1 || !g.alignment.empty() || !g.fixed.empty()) return false;
  auto const fill = std::count_if(g.hull.begin(), g.hull.end(), [](section_range r) { return r.end == r.begin + 1; });
  return 4 * static_cast<std::size_t>(fill) >= g.count();
}

/// For lives without holes, offsets that are free and not aligned. Deterministic.
template <class Unit>
class fill_search final : public record_search {
 public:
  using record_search::run;
  constexpr fill_search(search_ground<Unit> const& ground, search_tricks tricks)
      : ground_(ground),
        tricks_(tricks),
        gaps_(ground.sections),
        fill_(ground.sections),
        offsets_(ground.count(), 0),
        runs_(ground.count()),
        conflicts_(ground.sections, 1),
        options_(ground.sections, 0),
        lowest_(ground.sections) {
    for (std::uint32_t i = 0; i < ground.count(); ++i) {
      auto const [b, e] = ground.hull[i];
      if (e == b + 1) fill_[b].push_back(i);
      else long_.push_back(i);
    }
    for (auto& in : fill_) {
      detail::sort_list(in, [&](auto a, auto b) { return ground.size[a] > ground.size[b]; });
      for (; in.size() > gap_sums<Unit>::most_records; in.pop_back()) long_.push_back(in.back());
    }
    sort_by_life(long_, ground_.hull);
  }

  /// The records that the search places; the others fill gaps.
  constexpr std::size_t long_count() const { return long_.size(); }

  constexpr void start(std::int64_t capacity) override {
    capacity_ = static_cast<Unit>(capacity), nodes_ = 0, new_states_ = 0;
    conflicts_.assign(ground_.sections, 1);
    failed_.clear();
    std::vector<Unit> load(ground_.sections, 0);
    for (std::uint32_t i = 0; i < ground_.count(); ++i)
      for (auto s = ground_.hull[i].begin; s < ground_.hull[i].end; ++s) load[s] += ground_.size[i];
    hopeless_ = false;
    for (std::uint32_t s = 0; s < ground_.sections; ++s) {
      if (load[s] > capacity_) {
        hopeless_ = true;
        return;
      }
      std::vector<Unit> sizes;
      for (auto i : fill_[s]) sizes.push_back(ground_.size[i]);
      gaps_[s].start(sizes, capacity_ - load[s]);
    }
    runs_.start(tricks_.first_run * static_cast<std::int64_t>(ground_.count()) / 4);
    begin_run();
  }

  constexpr ruling run(stop_asked& stop) override {
    if (hopeless_) return ruling::impossible;
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
          return ruling::impossible;
        }
        frames_.resize(parent + 1, frame{});
      }
      if (stop(nodes_)) return ruling::spent;
      if (runs_.is_over(nodes_) || (runs_.end() && new_states_ > most_new_states)) restart();
    }
    fill_gaps();
    return ruling::found;
  }

  constexpr std::int64_t offset(std::size_t record) const override { return offsets_[record]; }
  constexpr std::vector<Unit> const& offsets() const { return offsets_; }

 private:
  static constexpr std::uint32_t none = search_frame::none;
  static constexpr Unit far = std::numeric_limits<Unit>::max() / 4;

  /// How a run chooses a section: by the fewest records that may come next in it, or by the lowest of their tops.
  enum class manner : std::uint8_t { fewest, lowest };
  static constexpr std::array<manner, 2> manners{manner::fewest, manner::lowest};

  struct entry {
    Unit limit;   // proved
    Unit direct;  // the least offset from the limit on at which it would lie on what is placed; before it: not known
    std::uint32_t record;
    bool ripe = false;  // may lie at its limit, and nothing may come beneath it there
  };
  struct section {
    Unit floor = 0;              // the top of what is placed
    std::uint32_t gaps = 0;      // the state of its gaps
    std::uint32_t crossing = 0;  // unplaced records that live in this section and the next
  };
  struct lowest_tops {  // of what is unplaced in a section
    Unit first, second;
    std::uint32_t owner;  // of the first
  };
  struct open_entry {
    std::uint32_t entry;
    section_range life;
  };
  using frame = search_frame;

  constexpr section_range life(entry const& x) const { return ground_.hull[x.record]; }
  constexpr entry* entries_of(frame const& f) { return pool_.data() + f.entries; }
  constexpr section& at(frame const& f, std::uint32_t s) { return sections_[f.sections_at + (s - f.begin)]; }
  constexpr Unit most(entry const& x) const { return capacity_ - ground_.size[x.record]; }

  constexpr void restart() {
    runs_.next(nodes_);
    begin_run();
  }
  constexpr void begin_run() {
    if (new_states_ > most_new_states) {
      for (auto& in : gaps_) in.clear();
      failed_.clear();
      new_states_ = 0;
    }
    frames_.clear();
    failing_ = false;
    auto const root = root_frame<frame>(long_.size(), ground_.sections);
    if (pool_.size() < root.count) pool_.resize(root.count, entry{});
    sections_.assign(std::max<std::size_t>(sections_.size(), ground_.sections), section{});
    for (std::uint32_t k = 0; k < root.count; ++k) {
      pool_[k] = {0, -1, long_[k]};
      auto const [b, e] = life(pool_[k]);
      for (auto s = b; s + 1 < e; ++s) ++sections_[s].crossing;
    }
    if (root.count > 0) open_parts(root, none);
  }

  constexpr bool open() {
    frame& f = frames_.back();
    if (tricks_.remember) {
      f.state = {};
      for (std::uint32_t k = 0; k < f.count; ++k) f.state.add(entries_of(f)[k].record, 0);
      for (auto s = f.begin; s < f.end; ++s)
        f.state.add((std::uint64_t{1} << 32) + s, static_cast<std::uint64_t>(at(f, s).floor)),
            f.state.add((std::uint64_t{2} << 32) + s, at(f, s).gaps);
      if (failed_.contains(f.state)) return false;
    }
    return advance();
  }
  constexpr bool refuse_placed() {
    frame& f = frames_.back();
    auto const k = f.placed;
    f.placed = none;
    return refuse(f, k) && advance();
  }
  constexpr bool advance() {
    auto const top = frames_.size() - 1;
    while (infer(frames_[top])) {
      auto const k = chosen_;
      if (place(k)) {
        frames_[top].placed = k;
        return true;
      }
      if (!refuse(frames_[top], k)) return false;
    }
    return false;
  }
  /// Entry k, ripe, and those alike at its limit do not lie there.
  constexpr bool refuse(frame const& f, std::uint32_t k) {
    entry* const x = entries_of(f);
    Unit const before = x[k].limit;
    for (std::uint32_t j = 0; j < f.count; ++j)
      if (j == k || (tricks_.twins && ground_.twin[x[j].record] == ground_.twin[x[k].record] && x[j].limit == before))
        if (++x[j].limit > most(x[j])) return false;
    return true;
  }

  /// The least offset from `y` on at which the record would lie directly on what is placed.
  constexpr Unit next_offset(frame const& f, entry const& x, Unit y) {
    auto const [b, e] = life(x);
    for (;;) {
      Unit const before = y;
      for (auto s = b; s < e; ++s) {
        section const& here = at(f, s);
        Unit const gap = gaps_[s].next_gap(here.gaps, std::max<Unit>(0, y - here.floor));
        if (gap < 0) return far;
        y = std::max<Unit>(y, here.floor + gap);
      }
      if (y != before) continue;
      Unit least = far;
      for (auto s = b; s < e && least > y; ++s) {
        section const& here = at(f, s);
        Unit const gap = gaps_[s].next_filled(here.gaps, y - here.floor);
        if (gap >= 0) least = std::min<Unit>(least, here.floor + gap);
      }
      if (least == y || least == far) return least;
      y = least;
    }
  }

  /// Lifts until nothing more follows; then chosen_ is what to branch on. False if nothing fits any more.
  constexpr bool infer(frame const& f) {
    constexpr std::int64_t pairs_a_node = 10'000;  // of many records it counts as several nodes
    nodes_ += static_cast<std::int64_t>(f.count) * f.count / pairs_a_node;
    entry* const x = entries_of(f);
    for (auto s = f.begin; s < f.end; ++s) lowest_[s] = {far, far, none};
    open_.clear(), limits_.clear();
    for (std::uint32_t k = 0; k < f.count; ++k) {
      if (x[k].direct < x[k].limit) x[k].direct = next_offset(f, x[k], x[k].limit);
      open_.push_back({k, life(x[k])}), limits_.push_back(x[k].direct);
    }
    while (!open_.empty()) {
      Unit limit = limits_.front();
      for (Unit other : limits_) limit = std::min(limit, other);
      std::size_t next = 0;
      while (limits_[next] != limit) ++next;
      auto const [k, mine] = open_[next];
      open_[next] = open_.back(), open_.pop_back();
      limits_[next] = limits_.back(), limits_.pop_back();
      if (limit > most(x[k])) return fails_in(mine);
      x[k].limit = limit;
      Unit const top = limit + ground_.size[x[k].record];
      section_range lowered{mine.end, mine.begin};  // where no top was as low
      for (auto s = mine.begin; s < mine.end; ++s) {
        auto& l = lowest_[s];
        if (top >= l.first) l.second = std::min(l.second, top);
        else l = {top, l.first, k}, lowered = {std::min(lowered.begin, s), s + 1};
      }
      if (lowered.begin >= lowered.end) continue;  // the others learn nothing from it
      for (std::size_t o = 0; o < open_.size(); ++o)
        if (top < limits_[o] && meet(open_[o].life, lowered)) limits_[o] = std::max(top, x[open_[o].entry].limit);
    }
    for (std::uint32_t k = 0; k < f.count; ++k) {
      Unit beneath = far;  // the lowest top that may come beneath it
      for (auto s = life(x[k]).begin; s < life(x[k]).end; ++s)
        beneath = std::min(beneath, lowest_[s].owner == k ? lowest_[s].second : lowest_[s].first);
      x[k].ripe = x[k].direct == x[k].limit && x[k].limit < beneath;
    }
    for (auto s = f.begin; s < f.end; ++s) options_[s] = 0;
    for (std::uint32_t k = 0; k < f.count; ++k)
      for (auto s = life(x[k]).begin; s < life(x[k]).end; ++s)
        options_[s] += x[k].limit <= at(f, s).floor + gaps_[s].largest(at(f, s).gaps);
    auto const how = manners[runs_.number() % manners.size()];
    double least = std::numeric_limits<double>::max();
    std::uint32_t tightest = none;
    for (auto s = f.begin; s < f.end; ++s) {
      if (lowest_[s].owner == none) continue;
      if (options_[s] == 0) return ++conflicts_[s], false;
      double const score = how == manner::fewest ? options_[s] / static_cast<double>(conflicts_[s])
                                                 : static_cast<double>(lowest_[s].first);
      if (score < least || (score == least && at(f, s).floor < at(f, tightest).floor)) least = score, tightest = s;
    }
    choose(f, tightest);
    return true;
  }
  constexpr bool fails_in(section_range where) {
    for (auto s = where.begin; s < where.end; ++s) ++conflicts_[s];
    return false;
  }
  /// The preferred record that may be next in that section; if others may come beneath it, the lowest of those.
  constexpr void choose(frame const& f, std::uint32_t s) {
    entry const* const x = entries_of(f);
    Unit const most = at(f, s).floor + gaps_[s].largest(at(f, s).gaps);
    chosen_ = none;
    for (std::uint32_t k = 0; k < f.count; ++k) {
      if (life(x[k]).begin > s || life(x[k]).end <= s || x[k].limit > most) continue;
      if (chosen_ == none || better(x[k], x[chosen_])) chosen_ = k;
    }
    while (!x[chosen_].ripe) {
      std::uint32_t beneath = none;
      for (std::uint32_t k = 0; k < f.count; ++k)
        if (k != chosen_ && meet(life(x[k]), life(x[chosen_])))
          if (beneath == none ||
              x[k].limit + ground_.size[x[k].record] < x[beneath].limit + ground_.size[x[beneath].record])
            beneath = k;
      chosen_ = beneath;
    }
  }
  constexpr bool better(entry const& a, entry const& b) const {
    if (a.ripe != b.ripe) return a.ripe;
    return runs_.preference(a.record) < runs_.preference(b.record);
  }

  constexpr bool place(std::uint32_t k) {
    ++nodes_;
    auto const top = static_cast<std::uint32_t>(frames_.size() - 1);
    frame const f = frames_[top];
    entry const placed = entries_of(f)[k];
    offsets_[placed.record] = placed.limit;
    if (f.count == 1) return true;
    frame rest = frame_behind(f, top, pool_, sections_);
    auto const mine = life(placed);
    Unit const end = placed.limit + ground_.size[placed.record];
    entry* out = entries_of(rest);
    for (std::uint32_t j = 0; j < f.count; ++j) {
      if (j == k) continue;
      *out = entries_of(f)[j];
      if (meet(life(*out), mine)) {
        out->direct = -1;
        out->limit = std::max(out->limit, end);
        if (out->limit > most(*out)) return fails_in(life(*out));
      }
      ++out;
    }
    for (auto s = f.begin; s < f.end; ++s) at(rest, s) = at(f, s);
    bool splits = mine.begin + 1 == mine.end;
    for (auto s = mine.begin; s < mine.end; ++s) {
      section& here = at(rest, s);
      auto const states = gaps_[s].state_count();
      here.gaps = gaps_[s].behind(here.gaps, placed.limit - here.floor);
      new_states_ += gaps_[s].state_count() - states;
      here.floor = end;
      if (s + 1 < mine.end) splits |= --here.crossing == 0;
    }
    if (splits && tricks_.decompose) open_parts(rest, top);
    else frames_.push_back(rest);
    return true;
  }

  constexpr void open_parts(frame const& whole, std::uint32_t parent) {
    push_parts(
        frames_, whole, parent, [&](std::uint32_t s) { return at(whole, s).crossing > 0; },
        [&](std::uint32_t k) { return life(entries_of(whole)[k]).begin; });
  }

  /// Puts the records that fill gaps to their places, where all others have theirs.
  constexpr void fill_gaps() {
    std::vector<std::vector<std::uint32_t>> placed(ground_.sections);
    for (auto i : long_)
      for (auto s = ground_.hull[i].begin; s < ground_.hull[i].end; ++s) placed[s].push_back(i);
    for (std::uint32_t s = 0; s < ground_.sections; ++s) {
      sort_list(placed[s], [&](std::uint32_t a, std::uint32_t b) { return offsets_[a] < offsets_[b]; });
      std::vector<Unit> gaps, floors{0};
      for (auto i : placed[s]) {
        gaps.push_back(offsets_[i] - floors.back());
        floors.push_back(offsets_[i] + ground_.size[i]);
      }
      auto const held = gaps_[s].deal(gaps);
      for (std::uint32_t j = 0; j < fill_[s].size(); ++j) {
        std::size_t k = 0;
        while (k < held.size() && !(held[k] >> j & 1)) ++k;
        offsets_[fill_[s][j]] = floors[k];
        floors[k] += ground_.size[fill_[s][j]];
      }
    }
  }

  static constexpr std::size_t most_new_states = std::size_t{1} << 17;  // a few hundred bytes each

  search_ground<Unit> const& ground_;
  search_tricks tricks_;
  std::vector<gap_sums<Unit>> gaps_;              // of each section
  std::size_t new_states_ = 0;                    // of all of them, since they were last forgotten
  std::vector<std::vector<std::uint32_t>> fill_;  // of each section, the records that fill its gaps
  std::vector<std::uint32_t> long_;               // the others, by the begin of their lives
  Unit capacity_ = 0;
  std::vector<Unit> offsets_;
  search_runs runs_;
  std::vector<std::int64_t> conflicts_;
  std::vector<std::int32_t> options_;
  plain_vector<lowest_tops> lowest_;
  plain_vector<open_entry> open_;
  plain_vector<Unit> limits_;  // of what is open
  failed_states failed_;
  plain_vector<frame> frames_;
  plain_vector<entry> pool_;
  plain_vector<section> sections_;
  std::uint32_t chosen_ = none;
  bool failing_ = false, hopeless_ = false;
};

}  // namespace neap::inline v0::detail
