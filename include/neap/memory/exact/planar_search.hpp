// Packings that leave nothing free, as planar networks: a boundary between two sections is cut by what lives through it
// into stretches, and in each what begins fills what ends left, to the byte. Stretches are the nodes of a network, records
// its arcs, sizes a flow (Brooks, Smith, Stone and Tutte 1940). Records with such stretches can be packed just if the network
// is planar, and no offset is needed to tell: the orders in which the records of a section may lie are a PQ-tree
// (memory/exact/pq_tree.hpp), in which what ends in one stretch must be contiguous and what begins there takes its place.
//
//        |ccccccc|      stretches {a, b} -> {d}, {e} -> {f}; c crosses. Then a and b are neighbours, in either order
//        |aaa|   |
//        |bbb|ddd|
//        |eee|fff|
//
// The search goes from boundary to boundary with the likeliest ways in which the records so far may lie, and deals what ends
// and begins at the next one to stretches.
//
//   blocks    what ends and lies together in all orders left is in one stretch: a packing with more stretches there is
//             one with this one
//   evidence  sums of sizes seldom agree by chance: a stretch tells for a way as much as sums of so many records near its
//             own are rare, and against it as much as it could have been dealt otherwise. Of t records in all there are
//             about 1 / t^3 as many as of one
//   free bytes  what a section leaves free is handed over like what is placed, but lives in one section only; a stretch
//             where free bytes begin has all of the section, or as many as fall or rise there at once, or as many as ended
//             in it; other numbers are less likely
//   beam      of all ways at a boundary the likeliest go on. Wrong ways meet fewer sums that agree, and fall behind (the
//             M-algorithm of sequential decoding: Anderson and Mohan 1984)
//   begin     a search begins in any section, where all that lives may lie in any order, and goes to one end of time; the
//             ways that got there are gone back to where they began, and from there on to the other end:
//
//                       begin |------> end       then       begin <-----|------- end
//                                                                search   retrace
//
//             Two from the ends, six from sections between, then as many with twice as many ways
//   exchange  what lies together in most ways of searches that came to a section from the other side counts against ways
//             in which it cannot (memory/exact/likely_sets.hpp)
//
// It finds packings and proves nothing.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/exact/likely_sets.hpp>
#include <neap/memory/exact/pq_tree.hpp>
#include <neap/memory/exact/search.hpp>
#include <neap/memory/exact/set_sums.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// For lives without holes, offsets that are free and not aligned. Deterministic.
template <class Unit>
class planar_search final : public record_search {
 public:
  using record_search::run;
  static constexpr std::size_t most_items = 31, most_sets = std::size_t{1} << 12;

  constexpr explicit planar_search(search_ground<Unit> const& ground) : ground_(ground), offsets_(ground.count(), 0) {}

  /// Begins anew: do the records fit below `capacity`?
  constexpr void start(std::int64_t limit) override {
    auto const capacity = static_cast<Unit>(limit);
    nodes_ = 0, level_ = 0, hopeless_ = true;
    ways_.clear();
    if (!ground_.plain() || ground_.grain > 1 || !ground_.alignment.empty() || !ground_.fixed.empty()) return;
    if (ground_.sections < 2) return;
    std::vector<Unit> free(ground_.sections, capacity);
    double used = 0, unused = 0;
    for (std::uint32_t i = 0; i < ground_.count(); ++i)
      for (auto s = ground_.hull[i].begin; s < ground_.hull[i].end; ++s)
        free[s] -= ground_.size[i], used += static_cast<double>(ground_.size[i]);
    for (Unit bytes : free) {
      if (bytes < 0) return;
      unused += static_cast<double>(bytes);
    }
    if (least_used * unused > used || !look_at(0, free) || !look_at(1, free)) return;
    for (std::size_t w = 0; w < 2; ++w) list_starts(w), likely_[w].assign(ground_.sections, {});
    start_ = 0, widenings_ = 0;
    hopeless_ = false;
  }

  /// Goes on from where it stopped. A node is a stretch that was tried; `stop(nodes)` is asked for each behind the way or
  /// boundary that it is of, and true ends this run with `spent`.
  constexpr ruling run(stop_asked& stop) override {
    while (!hopeless_) {
      if (next_ == ways_.size()) {
        if (ways_.empty()) begin_search();
        else if (turning_) end_turn();
        else go_on();
        if (!ways_.empty() && at_ == ground_.sections) {
          if (first_section_ == 0 || turned_) {
            put_down();
            return ruling::found;
          }
          begin_turn();
        }
      } else if (turning_) turn(ways_[next_++]);
      else expand(ways_[next_++]);
      bool stopped = false;
      for (; tried_ > 0 && !stopped; --tried_) stopped = stop(++nodes_);
      if (stopped) break;
    }
    return ruling::spent;
  }

  constexpr std::int64_t offset(std::size_t record) const override { return offsets_[record]; }

 private:
  static constexpr std::size_t first_width = 16, most_widenings = 16;
  static constexpr std::size_t searches_of_width = 8;  // two from the ends
  static constexpr std::size_t least_dealt = 12;       // ways on that a way may have
  static constexpr double most_block_sets = 8192;  // that are dealt: all, or as many as there is room for, the smallest
  static constexpr std::size_t most_guesses = 256;    // for the blocks of a way
  static constexpr std::ptrdiff_t most_unknown = 8;   // sets that leave free bytes of which nothing tells
  static constexpr double unknown_chance = 1.0 / 16;  // of such free bytes
  static constexpr double rarest_chance = 1.0 / 256;  // of a deal among those of its way
  static constexpr double least_used = 6;             // times as much as is free
  static constexpr std::uint32_t none = pq_tree::none;

  using sums = plain_vector<set_sum<Unit>>;
  struct moment {  // a boundary and the section behind it
    std::vector<std::uint32_t> ending, beginning;
    set_sums<Unit> sums;                   // of all sets of what begins, or of the smallest, as there is room
    std::vector<set_sums<Unit>> by_count;  // the same by the records in a set
    Unit free = 0;                         // bytes in the section
    Unit falls = 0, rises = 0;             // by so much at its end, at its begin
  };
  struct free_bytes {  // of one section, that lie together
    Unit size;
    std::uint32_t section;
  };
  struct stretch {
    std::uint32_t items, beginning;  // sets: of what ends, records and free bytes; of records
    Unit free;                       // bytes that begin
  };
  struct way {
    std::uint32_t root;   // the orders of what is alive
    double likelihood;    // beside the others
    std::uint32_t story;  // how it came about
  };
  struct story {
    std::uint32_t before, first, count;  // stretches of the boundary
  };
  struct candidate {
    double likelihood, rank;  // rank: with what the other side knows
    state_hash state;
    std::uint32_t from, first, count;  // way, stretches
  };
  struct rest {  // of a boundary, that is not dealt yet
    std::uint32_t blocks = 0, beginning = 0;
    Unit free = 0;
  };
  struct guess {
    std::uint32_t blocks;  // as a set
    stretch put;
    double weight;                                                     // how much likelier than others
    friend constexpr bool operator<(guess const& a, guess const& b) {  // the likelier first
      if (a.weight != b.weight) return a.weight > b.weight;
      if (a.blocks != b.blocks) return a.blocks < b.blocks;
      return a.put.beginning < b.put.beginning;  // which tells the free bytes
    }
  };
  struct guess_list {
    state_hash key;  // of the blocks
    plain_vector<guess> guesses;
  };
  struct dealt {  // for put_down
    std::uint32_t root, by;
    std::vector<std::uint32_t> leaves;
  };

  constexpr std::uint32_t begin_of(std::uint32_t i) const {
    return way_ == 0 ? ground_.hull[i].begin : ground_.sections - ground_.hull[i].end;
  }
  constexpr std::uint32_t end_of(std::uint32_t leaf) const {
    auto const n = ground_.count();
    if (leaf >= n) return free_bytes_[leaf - n].section + 1;
    return way_ == 0 ? ground_.hull[leaf].end : ground_.sections - ground_.hull[leaf].begin;
  }
  constexpr Unit size_of(std::uint32_t leaf) const {
    auto const n = ground_.count();
    return leaf < n ? ground_.size[leaf] : free_bytes_[leaf - n].size;
  }
  constexpr moment& now() { return moments_[way_][at_]; }

  /// The moments forth or back in time; false if that is not for this search.
  constexpr bool look_at(std::size_t which, std::vector<Unit> const& free) {
    way_ = which;
    auto& moments = moments_[which];
    moments.assign(ground_.sections, moment{});
    for (std::uint32_t i = 0; i < ground_.count(); ++i) {
      moments[begin_of(i)].beginning.push_back(i);
      if (end_of(i) < ground_.sections) moments[end_of(i)].ending.push_back(i);
    }
    for (std::uint32_t s = 0; s < ground_.sections; ++s) {
      auto& m = moments[s];
      auto const at = [&](std::uint32_t k) { return free[which == 0 ? k : ground_.sections - 1 - k]; };
      m.free = at(s);
      m.falls = std::max<Unit>(0, s + 1 < ground_.sections ? at(s) - at(s + 1) : 0);
      m.rises = std::max<Unit>(0, s > 0 ? at(s) - at(s - 1) : 0);
      if (m.beginning.size() > most_items || m.ending.size() > most_items) return false;
    }
    return true;
  }

  /// Of all sets of the records, or of as many as there is room for, the smallest.
  constexpr sums sums_of(std::vector<std::uint32_t> const& records) const {
    auto const n = records.size();
    sums of{{0, 0}};
    for (std::size_t k = 1; k <= n && static_cast<double>(of.size()) + choices(n, k) <= most_sets; ++k)
      for_each_set(n, k, [&](std::uint32_t set) {
        Unit sum = 0;
        for (auto more = set; more != 0; more &= more - 1)
          sum += ground_.size[records[static_cast<std::size_t>(std::countr_zero(more))]];
        of.push_back({sum, set});
      });
    return of;
  }
  /// f(set) for each set of k of n things.
  template <class F>
  static constexpr void for_each_set(std::size_t n, std::size_t k, F&& f) {
    for (std::uint64_t set = (std::uint64_t{1} << k) - 1; set >> n == 0;) {
      f(static_cast<std::uint32_t>(set));
      auto const low = set & -set, carried = set + low;
      set = carried | (((carried ^ set) >> 2) / low);
    }
  }
  /// Of n things k.
  static constexpr double choices(std::size_t n, std::size_t k) {
    double ways = 1;
    for (std::size_t i = 0; i < k; ++i) ways = ways * static_cast<double>(n - i) / static_cast<double>(i + 1);
    return ways;
  }
  /// How likely a stretch of t things is before anything is known of sizes.
  static constexpr double rarity(std::size_t t) { return rarities[t]; }
  static constexpr auto rarities = [] {
    std::array<double, 2 * most_items + 2> of{};
    for (std::size_t t = 1; t < of.size(); ++t) of[t] = 1 / static_cast<double>(t * t * t);
    return of;
  }();

  /// The bytes in which one sum of so many records that begin is to be expected, near `sum`.
  constexpr double evidence_of(std::size_t count, Unit sum) {
    auto const& in = now().by_count[count];
    auto const near = in.from(sum + sum / 2 + 1) - in.from(sum - sum / 2);
    return static_cast<double>(sum / 2 * 2 + 1) / static_cast<double>(std::max<std::ptrdiff_t>(near, 1));
  }

  /// Sections to begin at but the first: such without free bytes, then others, the middle, the quarters and so on.
  constexpr void list_starts(std::size_t which) {
    auto const& moments = moments_[which];
    auto& starts = starts_[which];
    starts.clear();
    for (bool full : {true, false})
      for (std::uint32_t step = std::bit_ceil(ground_.sections); step > 1; step /= 2)
        for (std::uint32_t s = step / 2; s + 1 < ground_.sections; s += step)
          if ((moments[s].free == 0) == full) starts.push_back(s);
    if (starts.empty()) starts.push_back(0);
  }
  /// The next search, the other way in time: from an end, from another section, or from an end with more ways.
  constexpr void begin_search() {
    auto const turn = level_ % searches_of_width;
    if (turn == 0 && level_ > 0) ++widenings_;
    ++level_;
    width_ = first_width << std::min(widenings_, most_widenings);
    way_ = turn % 2;
    first_section_ = turn < 2 ? 0 : starts_[way_][start_++ / 2 % starts_[way_].size()];
    turned_ = false, ++tried_;
    tree_.shrink({}), free_bytes_.clear(), stories_.clear(), told_.clear();
    at_ = first_section_ + 1;
    ways_.assign(1, {first_root(), 1, none});
    next_ = 0, known_count_ = 0;
    forget_candidates();
  }
  constexpr std::uint32_t first_root() {
    std::vector<std::uint32_t> parts;
    for (std::uint32_t i = 0; i < ground_.count(); ++i)
      if (begin_of(i) <= first_section_ && first_section_ < end_of(i)) parts.push_back(tree_.leaf(i));
    add_free(first_section_, moments_[way_][first_section_].free, parts);
    return tree_.in_any_order(parts);
  }
  /// Adds leaves of so many free bytes, those that end together apart.
  constexpr void add_free(std::uint32_t section, Unit bytes, std::vector<std::uint32_t>& parts) {
    Unit const falls = moments_[way_][section].falls;
    auto const add = [&](Unit size) {
      if (size == 0) return;
      parts.push_back(tree_.leaf(static_cast<std::uint32_t>(ground_.count() + free_bytes_.size())));
      free_bytes_.push_back({size, section});
    };
    add(std::min(bytes, falls));
    add(bytes - std::min(bytes, falls));
  }

  /// What ends at the boundary in an order of that root: its records, and free bytes.
  constexpr void find_items(std::uint32_t root) {
    items_ = now().ending;
    alive_.clear();
    tree_.add_leaves(root, alive_);
    for (auto leaf : alive_)
      if (leaf >= ground_.count()) items_.push_back(leaf);
    marked_.resize(ground_.count() + free_bytes_.size() + 2 * most_items, 0);  // with what will be put there
    item_of_.resize(marked_.size(), 0);
    for (std::uint32_t k = 0; k < items_.size(); ++k) item_of_[items_[k]] = k;
  }
  /// The root with a stretch put in place of what ends in it; `none` if that cannot be. `by`: what has been put there.
  constexpr std::uint32_t put(std::uint32_t root, stretch const& s, std::uint32_t& by) {
    parts_.clear();
    for (auto left = s.beginning; left != 0; left &= left - 1)
      parts_.push_back(tree_.leaf(now().beginning[static_cast<std::size_t>(std::countr_zero(left))]));
    add_free(at_, s.free, parts_);
    by = tree_.in_any_order(parts_);
    auto const mark = [&](char as) {
      for (auto left = s.items; left != 0; left &= left - 1)
        marked_[items_[static_cast<std::size_t>(std::countr_zero(left))]] = as;
    };
    mark(1);
    tree_.label(root, marked_);
    mark(0);
    ++tried_;
    return tree_.replace(root, by);
  }

  /// The ways on from that one.
  constexpr void expand(way const& from) {
    auto const& m = now();
    find_items(from.root);
    if (items_.size() > most_items) return;
    for (auto leaf : items_) marked_[leaf] = 1;
    tree_.label(from.root, marked_);
    for (auto leaf : items_) marked_[leaf] = 0;
    blocks_.clear();
    tree_.for_each_block(from.root, [&](std::vector<std::uint32_t> const& block) {
      std::uint32_t set = 0;
      for (auto leaf : block) set |= std::uint32_t{1} << item_of_[leaf];
      blocks_.push_back(set);
    });
    // Where there are few ways each has more ways on; wider searches look at rarer ones.
    left_ = std::max(least_dealt, 4 * width_ / ways_.size());
    least_chance_ =
        rarest_chance * static_cast<double>(least_dealt * first_width) / static_cast<double>(left_ * width_);
    detail::sort_list(blocks_);
    guesses_ = guesses_at(blocks_);
    from_ = static_cast<std::uint32_t>(next_ - 1);
    dealing_.clear(), ++tried_;
    open_.resize(guesses_->size());
    for (std::uint32_t k = 0; k < open_.size(); ++k) open_[k] = k;
    rest const all{static_cast<std::uint32_t>((std::uint64_t{1} << blocks_.size()) - 1),
                   static_cast<std::uint32_t>((std::uint64_t{1} << m.beginning.size()) - 1), m.free};
    deal(from.root, all, 0, from.likelihood, 1);
  }
  /// The guesses for what ends in such blocks, the likeliest first.
  constexpr plain_vector<guess> const* guesses_at(std::vector<std::uint32_t> const& blocks) {
    state_hash key;
    for (auto block : blocks) key.add(block, 0);
    for (auto k = now().ending.size(); k < items_.size(); ++k)
      key.add(k, static_cast<std::uint64_t>(size_of(items_[k])));
    for (std::size_t k = 0; k < known_count_; ++k)
      if (known_[k].key == key) return &known_[k].guesses;
    if (known_.size() == known_count_) known_.emplace_back();
    auto& found = known_[known_count_++];
    found.key = key, found.guesses.clear();
    if (blocks.size() > 1) find_guesses(blocks, found.guesses);
    return &found.guesses;
  }
  constexpr void find_guesses(std::vector<std::uint32_t> const& blocks, plain_vector<guess>& out) {
    auto& m = now();
    if (m.sums.empty()) {
      auto all = sums_of(m.beginning);
      std::vector<sums> by_count(m.beginning.size() + 1);
      for (auto const& x : all) by_count[static_cast<std::size_t>(std::popcount(x.set))].push_back(x);
      for (auto& in : by_count) m.by_count.emplace_back(static_cast<sums&&>(in));
      m.sums = set_sums<Unit>(static_cast<sums&&>(all));
    }
    auto const count = blocks.size();
    struct content {
      std::uint32_t items;
      Unit bytes, free;
    };
    std::array<std::array<content, 256>, 4> of_sets;  // of eight blocks each
    for (std::size_t first = 0; first < count; first += 8) {
      auto& of = of_sets[first / 8];
      of[0] = {};
      for (std::uint32_t set = 1; set >> std::min<std::size_t>(8, count - first) == 0; ++set) {
        content c = of[set & (set - 1)];
        auto const block = blocks[first + static_cast<std::size_t>(std::countr_zero(set))];
        c.items |= block;
        for (auto left = block; left != 0; left &= left - 1) {
          auto const leaf = items_[static_cast<std::size_t>(std::countr_zero(left))];
          c.bytes += size_of(leaf);
          if (leaf >= ground_.count()) c.free += size_of(leaf);
        }
        of[set] = c;
      }
    }
    auto const content_of = [&](std::uint32_t set) {
      content c = of_sets[0][set & 255];
      for (std::size_t k = 1; (set >>= 8) != 0; ++k) {
        content const& more = of_sets[k][set & 255];
        c.items |= more.items, c.bytes += more.bytes, c.free += more.free;
      }
      return c;
    };
    // Rarer ones are not tried, nor such as do not belong to the likeliest so far.
    double least = least_chance_ * rarity(count + m.beginning.size() + (m.free != 0)), sets = 0;
    auto const keep = [&](std::size_t room) {
      if (out.size() <= room) return false;
      auto const last = out.begin() + static_cast<std::ptrdiff_t>(most_guesses) - 1;
      std::nth_element(out.begin(), last, out.end());
      least = last->weight;
      out.resize(most_guesses);
      return true;
    };
    for (std::size_t size = 1; size < count && (sets += choices(count, size)) <= most_block_sets; ++size) {
      double const others = choices(count - 1, size - 1);
      double least_evidence = least * others / rarity(size + 1);
      for_each_set(count, size, [&](std::uint32_t set) {
        auto const [items, sum, ends] = content_of(set);
        if (static_cast<double>(sum + 1) < least_evidence) return;  // there is no more of it
        auto const weight = [&](std::size_t b, Unit begins, double evidence) {
          return rarity(size + b + (begins != 0)) * evidence / others;
        };
        auto const add = [&](std::uint32_t beginning, Unit begins, double w) {
          if (w >= least) out.push_back({set, {items, beginning, begins}, w});
        };
        std::array<Unit, 5> const frees{0, m.free, m.falls, m.rises, ends};
        auto const among = [&](std::size_t k, Unit x) {
          return std::find(frees.begin(), frees.begin() + static_cast<std::ptrdiff_t>(k), x) !=
                 frees.begin() + static_cast<std::ptrdiff_t>(k);
        };
        for (std::size_t k = 0; k < frees.size(); ++k) {
          if (frees[k] > std::min(sum, m.free) || among(k, frees[k])) continue;
          Unit const records = sum - frees[k];
          for (auto s = m.sums.from(records); s != m.sums.end() && s->sum == records; ++s) {
            auto const b = static_cast<std::size_t>(std::popcount(s->set));
            if (b == 0) add(0, frees[k], weight(0, frees[k], sum == ends ? 1 : static_cast<double>(sum)));
            else if (weight(b, frees[k], static_cast<double>(records + 1)) >= least)
              add(s->set, frees[k], weight(b, frees[k], evidence_of(b, records)));
          }
        }
        // Free bytes that nothing tells of: as likely as such sets are few.
        for (std::size_t b = 0; m.free != 0 && b < m.by_count.size(); ++b) {
          if (weight(b, 1, unknown_chance) < least) break;
          auto const& in = m.by_count[b];
          auto const begin = in.from(sum - m.free);
          auto end = begin;
          while (end != in.end() && end->sum < sum && end - begin <= most_unknown) ++end;
          if (end - begin > most_unknown) continue;
          for (auto s = begin; s != end; ++s)
            if (!among(frees.size(), sum - s->sum))
              add(s->set, sum - s->sum, weight(b, 1, unknown_chance / static_cast<double>(end - begin)));
        }
        if (keep(4 * most_guesses)) least_evidence = least * others / rarity(size + 1);
      });
    }
    keep(most_guesses);
    detail::sort_list(out);
  }

  /// Deals what is left to stretches, in the likely ways. `first`: of the guesses that are open.
  constexpr void deal(std::uint32_t root, rest const& left, std::size_t first, double likelihood, double chance) {
    std::array<double, most_items> best{}, total{};
    auto const end = open_.size();
    for (auto o = first; o < end; ++o) {
      auto const& g = (*guesses_)[open_[o]];
      for (auto of = g.blocks; of != 0; of &= of - 1) {
        auto const k = static_cast<std::size_t>(std::countr_zero(of));
        best[k] = std::max(best[k], g.weight), total[k] += g.weight;
      }
    }
    double const whole = rarity(static_cast<std::size_t>(std::popcount(left.blocks)) +
                                static_cast<std::size_t>(std::popcount(left.beginning)) + (left.free != 0));
    // At the block of which most is known.
    std::size_t at = 0;
    double most = 0;
    for (auto of = left.blocks; of != 0; of &= of - 1) {
      auto const k = static_cast<std::size_t>(std::countr_zero(of));
      if (double const share = std::max(best[k], whole) / (total[k] + whole); share > most) at = k, most = share;
    }
    double sum = total[at] + whole;
    bool together = false;  // all that is left has been tried as one stretch
    auto const try_together = [&] {
      together = true;
      if (chance * whole < least_chance_ * sum) return;
      std::uint32_t items = 0;
      for (std::size_t k = 0; k < blocks_.size(); ++k)
        if (left.blocks >> k & 1) items |= blocks_[k];
      if (!go_into(root, {items, left.beginning, left.free}, {}, first, likelihood * whole, chance * whole / sum))
        sum -= whole;
    };
    for (auto o = first; o < end && left_ > 0; ++o) {
      auto const g = (*guesses_)[open_[o]];
      if ((g.blocks >> at & 1) == 0) continue;
      if (!together && whole > g.weight) try_together();
      if (chance * g.weight < least_chance_ * sum) break;
      rest const behind{left.blocks & ~g.blocks, left.beginning & ~g.put.beginning, left.free - g.put.free};
      if (!go_into(root, g.put, behind, first, likelihood * g.weight, chance * g.weight / sum)) sum -= g.weight;
    }
    if (!together && left_ > 0) try_together();
  }
  /// Puts the stretch there and deals what is left then; false if what ends in the stretch cannot lie together. `first`: of
  /// the guesses that were open before.
  constexpr bool go_into(std::uint32_t root, stretch const& s, rest const& left, std::size_t first, double likelihood,
                         double chance) {
    auto const nodes = tree_.size();
    auto const free_count = free_bytes_.size();
    std::uint32_t by = none;
    auto const next = put(root, s, by);
    if (next != none) {
      dealing_.push_back(s);
      if (left.blocks == 0) add_candidate(next, likelihood);
      else {
        auto const end = open_.size();
        for (auto o = first; o < end; ++o) {
          auto const& g = (*guesses_)[open_[o]];
          if ((g.blocks & ~left.blocks) == 0 && (g.put.beginning & ~left.beginning) == 0 && g.put.free <= left.free &&
              g.blocks != left.blocks)
            open_.push_back(open_[o]);
        }
        deal(next, left, end, likelihood, chance);
        open_.resize(end);
      }
      dealing_.pop_back();
    }
    tree_.shrink(nodes), free_bytes_.resize(free_count);
    return next != none;
  }
  constexpr void add_candidate(std::uint32_t root, double likelihood) {
    --left_;
    if (ranks_.size() == width_ && likelihood < ranks_.front()) return;  // its rank is no higher
    state_hash state;
    state.add(0, hash_of_orders(root));
    candidates_.push_back({likelihood, likelihood * agreement(root), state, from_,
                           static_cast<std::uint32_t>(pool_.size()), static_cast<std::uint32_t>(dealing_.size())});
    pool_.append(dealing_.data(), dealing_.size());
    if (seen_.contains(state)) return;
    seen_.insert(state);
    ranks_.push_back(candidates_.back().rank);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>{});
    if (ranks_.size() <= width_) return;
    std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>{});
    ranks_.pop_back();
  }
  constexpr void forget_candidates() { candidates_.clear(), pool_.clear(), ranks_.clear(), seen_.clear(); }
  /// Of the orders behind the boundary with what searches the other way in time found likely there.
  constexpr double agreement(std::uint32_t root) const {
    auto const& sets = likely_[1 - way_][ground_.sections - 1 - at_];
    return sets.empty() ? 1 : sets.agreement(tree_, root);
  }
  constexpr std::uint64_t hash_of_orders(std::uint32_t root) {
    return tree_.hash(
        root,
        [&](std::uint32_t leaf) {
          return leaf < ground_.count() ? hash_of(leaf, 0) : hash_of(static_cast<std::uint64_t>(size_of(leaf)), 1);
        },
        hash_of);
  }
  /// Adds a tree of the same orders and its free bytes to others.
  constexpr std::uint32_t copied(std::uint32_t root, pq_tree& trees, plain_vector<free_bytes>& free) const {
    return trees.copy(tree_, root, [&](std::uint32_t leaf) {
      if (leaf < ground_.count()) return leaf;
      free.push_back(free_bytes_[leaf - ground_.count()]);
      return static_cast<std::uint32_t>(ground_.count() + free.size() - 1);
    });
  }

  /// To the next boundary, with the likeliest ways.
  constexpr void go_on() {
    detail::sort_list(candidates_, [](candidate const& a, candidate const& b) { return a.rank > b.rank; });
    seen_.clear();
    plain_vector<way> ways;
    pq_tree trees;
    plain_vector<free_bytes> free;
    for (auto const& c : candidates_) {
      if (ways.size() == width_) break;
      if (seen_.contains(c.state)) continue;
      seen_.insert(c.state);
      auto const nodes = tree_.size();
      auto const free_count = free_bytes_.size();
      auto const& from = ways_[c.from];
      auto root = from.root;
      find_items(root);
      for (std::uint32_t k = 0; k < c.count; ++k) {
        std::uint32_t by = none;
        root = put(root, pool_[c.first + k], by);
      }
      ways.push_back({copied(root, trees, free), c.likelihood / candidates_.front().likelihood,
                      static_cast<std::uint32_t>(stories_.size())});
      stories_.push_back({from.story, static_cast<std::uint32_t>(told_.size()), c.count});
      for (std::uint32_t k = 0; k < c.count; ++k) told_.push_back(pool_[c.first + k]);
      tree_.shrink(nodes), free_bytes_.resize(free_count);
    }
    std::swap(tree_, trees), std::swap(free_bytes_, free), std::swap(ways_, ways);
    forget_candidates();
    next_ = 0, ++at_, known_count_ = 0;
    if (!ways_.empty()) likely_[way_][at_ - 1].learn(tree_, ways_, ground_.count());
  }

  // From ways to the end to ways of the same packings from there to the first section, which go on to the begin.
  constexpr void begin_turn() {
    turning_ = turned_ = true, next_ = 0;
    way_ = 1 - way_, at_ = ground_.sections - first_section_;
    first_story_ = static_cast<std::uint32_t>(stories_.size());
    seen_.clear();
  }
  constexpr void turn(way const& from) {
    std::vector<dealt> path;
    auto const root = retrace(from.story, path);
    state_hash state;
    state.add(0, hash_of_orders(root));
    if (seen_.contains(state)) return;
    seen_.insert(state);
    turned_ways_.push_back({copied(root, turned_tree_, turned_free_), from.likelihood, from.story});
  }
  constexpr void end_turn() {
    std::swap(tree_, turned_tree_), std::swap(free_bytes_, turned_free_), std::swap(ways_, turned_ways_);
    turned_tree_.shrink({}), turned_free_.clear(), turned_ways_.clear(), seen_.clear();
    turning_ = false, next_ = 0, known_count_ = 0;
  }
  /// Goes that way from the end back to the first section; gives the orders there and adds to the path.
  constexpr std::uint32_t retrace(std::uint32_t last, std::vector<dealt>& path) {
    way_ = 1 - way_, at_ = first_section_ + 1;
    tree_.shrink({}), free_bytes_.clear();
    std::vector<dealt> there;
    auto root = follow(last, 0, first_root(), there);
    way_ = 1 - way_, at_ = ground_.sections - first_section_;
    std::vector<std::uint32_t> made, parts;
    tree_.add_leaves(root, made);
    for (auto leaf : made) parts.push_back(tree_.leaf(leaf));
    root = tree_.in_any_order(parts);
    marked_.resize(std::max(marked_.size(), ground_.count() + free_bytes_.size()), 0);
    for (auto k = there.size(); k-- > 0;) {
      made.clear(), parts.clear();
      tree_.add_leaves(there[k].by, made);
      for (auto leaf : there[k].leaves) parts.push_back(tree_.leaf(leaf));
      path.push_back({root, tree_.in_any_order(parts), made});
      for (auto leaf : made) marked_[leaf] = 1;
      tree_.label(root, marked_);
      for (auto leaf : made) marked_[leaf] = 0;
      root = tree_.replace(root, path.back().by);
      ++tried_;
    }
    return root;
  }
  /// Deals from that root what a way dealt, from the story numbered `first` on; adds to the path.
  constexpr std::uint32_t follow(std::uint32_t last, std::uint32_t first, std::uint32_t root,
                                 std::vector<dealt>& path) {
    plain_vector<story> told;
    for (auto k = last; k != none && k >= first; k = stories_[k].before) told.push_back(stories_[k]);
    for (auto t = told.size(); t-- > 0; ++at_) {
      find_items(root);
      auto const items = items_;
      for (std::uint32_t k = 0; k < told[t].count; ++k) {
        auto const& s = told_[told[t].first + k];
        path.push_back({root, none, {}});
        for (auto left = s.items; left != 0; left &= left - 1)
          path.back().leaves.push_back(items[static_cast<std::size_t>(std::countr_zero(left))]);
        root = put(root, s, path.back().by);
      }
    }
    return root;
  }

  /// Offsets from an order of what is alive at the end, and from it one after the other back to the begin.
  constexpr void put_down() {
    std::vector<dealt> path;
    auto const last = ways_.front().story;
    std::uint32_t root = none;
    if (turned_) {
      auto there = last;
      while (there >= first_story_) there = stories_[there].before;
      root = retrace(there, path);
    } else {
      tree_.shrink({}), free_bytes_.clear();
      at_ = 1, first_story_ = 0;
      root = first_root();
    }
    root = follow(last, first_story_, root, path);
    std::vector<std::uint32_t> rank(ground_.count() + free_bytes_.size(), 0), begun;
    auto order = tree_.arranged(root, rank);
    for (auto k = path.size();; --k) {
      Unit top = 0;
      for (auto leaf : order) {
        if (leaf < ground_.count()) offsets_[leaf] = top;
        top += size_of(leaf);
      }
      if (k == 0) return;
      auto const& f = path[k - 1];
      for (std::uint32_t at = 0; at < order.size(); ++at) rank[order[at]] = at;
      begun.clear();
      tree_.add_leaves(f.by, begun);
      std::uint32_t least = none;
      for (auto leaf : begun) least = std::min(least, rank[leaf]);
      for (auto leaf : f.leaves) rank[leaf] = least;
      order = tree_.arranged(f.root, rank);
    }
  }

  search_ground<Unit> const& ground_;
  std::array<std::vector<moment>, 2> moments_;  // forth and back
  std::size_t way_ = 0, level_ = 0, width_ = 0;
  std::uint32_t at_ = 0;  // the boundary
  plain_vector<way> ways_;
  std::size_t next_ = 0;  // of the ways
  // Where the search began; whether it goes on from there to the begin, or is about to, and its stories from then on.
  std::uint32_t first_section_ = 0, first_story_ = 0;
  bool turned_ = false, turning_ = false;
  plain_vector<way> turned_ways_;
  pq_tree turned_tree_;
  plain_vector<free_bytes> turned_free_;
  std::array<std::vector<std::uint32_t>, 2> starts_;  // other sections to begin at, the best first
  std::size_t start_ = 0, widenings_ = 0;
  std::array<std::vector<likely_sets>, 2> likely_;  // by section, forth and back
  plain_vector<candidate> candidates_;
  plain_vector<double> ranks_;                   // a heap: the highest of different states among them, the least first
  plain_vector<stretch> pool_, told_, dealing_;  // of candidates, of stories, of the deal at work
  plain_vector<story> stories_;
  failed_states seen_;
  pq_tree tree_;
  plain_vector<free_bytes> free_bytes_;  // leaves behind those of the records
  std::vector<Unit> offsets_;
  std::vector<std::uint32_t> alive_, parts_, items_, item_of_, blocks_;
  std::vector<char> marked_;
  std::vector<guess_list> known_;  // at the boundary; behind their count: room for more
  std::size_t known_count_ = 0;
  // Of the way that goes on: its guesses; those that can still be, deal by deal; the ways on that it may yet have.
  std::uint32_t from_ = 0;
  plain_vector<guess> const* guesses_ = nullptr;
  std::vector<std::uint32_t> open_;
  std::size_t left_ = 0;
  double least_chance_ = 0;  // rarer deals are left out
  std::int64_t tried_ = 0;   // stretches, since `stop` was asked
  bool hopeless_ = true;
};

}  // namespace neap::inline v0::detail
