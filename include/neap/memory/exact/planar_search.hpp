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
// The search goes from boundary to boundary and guesses one stretch after another.
//
//   blocks    what ends and lies together in all orders left is in one stretch: a packing with more stretches there is
//             one with this one
//   guesses   sums of sizes seldom agree by chance: the fewer pairs of sets as large as these there are, the sooner they
//             are tried; at the stretch for which there are the fewest
//   free bytes  what a section leaves free is handed over like what is placed, but lives in one section only; stretches
//             where no free bytes begin are tried, or all that are left, or as many as fall or rise there at once
//   discrepancies  few guesses are wrong: packings of ever more doubt are tried, forth and back in time in turn; the guess
//             behind r others costs the bits of r (Harvey and Ginsberg 1995)
//
// It finds packings and proves nothing.
#pragma once

#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/exact/pq_tree.hpp>
#include <neap/memory/exact/search.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// For lives without holes, offsets that are free and not aligned. Deterministic.
template <class Unit>
class planar_search final : public record_search {
 public:
  using record_search::run;
  static constexpr std::size_t most_beginning = 31, most_sets = std::size_t{1} << 15;

  constexpr explicit planar_search(search_ground<Unit> const& ground) : ground_(ground), offsets_(ground.count(), 0) {}

  /// Begins anew: do the records fit below `capacity`?
  constexpr void start(std::int64_t limit) override {
    auto const capacity = static_cast<Unit>(limit);
    nodes_ = 0, level_ = 0, depth_ = 0, hopeless_ = true;
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
    hopeless_ = false;
  }

  /// Goes on from where it stopped. `stop(nodes)` is asked after each step; true ends this run with `spent`.
  constexpr ruling run(stop_asked& stop) override {
    while (!hopeless_) {
      if (depth_ == 0) begin_level();
      else if (guess()) {
        if (path_[depth_ - 1].at == ground_.sections) {
          put_down();
          return ruling::found;
        }
      } else {
        if (path_[depth_ - 1].fresh) failed_.insert(path_[depth_ - 1].state);
        --depth_;
      }
      if (stop(nodes_)) break;
    }
    return ruling::spent;
  }

  constexpr std::int64_t offset(std::size_t record) const override { return offsets_[record]; }

 private:
  static constexpr std::size_t most_blocks = 14;
  static constexpr double least_used = 6;  // times as much as is free

  struct summed {
    Unit sum;
    std::uint32_t set;
    friend constexpr bool operator<(summed const& a, summed const& b) {
      return a.sum != b.sum ? a.sum < b.sum : a.set < b.set;
    }
  };
  struct moment {  // a boundary and the section behind it
    std::vector<std::uint32_t> beginning;
    std::vector<summed> sums;   // of all sets of them
    Unit free = 0;              // bytes in the section
    Unit falls = 0, rises = 0;  // by so much at its end, at its begin
  };
  struct free_bytes {  // of one section, that lie together
    Unit size;
    std::uint32_t section;
  };
  struct stretch {                    // guessed
    std::int32_t size;                // of the sets
    std::uint32_t blocks, beginning;  // sets
    Unit free;
  };
  struct step {
    std::uint32_t at = 0;         // the boundary
    std::uint32_t root = 0;       // the orders of what is alive
    std::uint32_t beginning = 0;  // what has not begun yet, as a set
    Unit free = 0;                // as much
    int doubt = 0;                // that is left
    bool fresh = false;           // nothing has been guessed at the boundary yet
    state_hash state{};
    pq_tree::extent nodes{};  // of the tree, and free bytes, before the guess
    std::size_t free_count = 0;
    std::vector<std::uint32_t> leaves;  // that end at the boundary, block by block
    std::vector<std::uint32_t> bounds;  // of the blocks
    std::vector<stretch> guesses;
    std::size_t next = 0, tried = 0;  // guesses that were looked at, and those that could be
    std::uint32_t by = 0;             // what has been put in a stretch's place
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

  /// The moments forth or back in time; false if that is not for this search.
  constexpr bool look_at(std::size_t way, std::vector<Unit> const& free) {
    way_ = way;
    auto& moments = moments_[way];
    moments.assign(ground_.sections, moment{});
    for (std::uint32_t i = 0; i < ground_.count(); ++i) moments[begin_of(i)].beginning.push_back(i);
    for (std::uint32_t s = 0; s < ground_.sections; ++s) {
      auto& m = moments[s];
      auto const at = [&](std::uint32_t k) { return free[way == 0 ? k : ground_.sections - 1 - k]; };
      m.free = at(s);
      m.falls = std::max<Unit>(0, s + 1 < ground_.sections ? at(s) - at(s + 1) : 0);
      m.rises = std::max<Unit>(0, s > 0 ? at(s) - at(s - 1) : 0);
      if (m.beginning.size() > most_beginning) return false;
    }
    return true;
  }

  /// Of all sets of what begins, or of as many as there is room for, the smallest.
  constexpr void list_sums(moment& m) const {
    auto const n = static_cast<unsigned>(m.beginning.size());
    std::uint64_t const end = std::uint64_t{1} << n;
    m.sums.assign(1, summed{0, 0});
    for (unsigned k = 1; k <= std::min(n, static_cast<unsigned>(reach_)) &&
                         m.sums.size() + static_cast<std::size_t>(choices(n, k)) <= most_sets;
         ++k)
      for (std::uint64_t set = (std::uint64_t{1} << k) - 1; set < end;) {
        Unit sum = 0;
        for (auto rest = set; rest != 0; rest &= rest - 1)
          sum += ground_.size[m.beginning[static_cast<std::size_t>(std::countr_zero(rest))]];
        m.sums.push_back({sum, static_cast<std::uint32_t>(set)});
        auto const low = set & -set, carried = set + low;  // the next set of k
        set = carried | (((carried ^ set) >> 2) / low);
      }
    std::sort(m.sums.begin(), m.sums.end());
  }

  /// The next search, of more doubt or the other way in time.
  constexpr void begin_level() {
    way_ = level_ % 2;
    failed_.clear();
    tree_.shrink({}), free_bytes_.clear();
    reach_ = 4 + static_cast<int>(level_ / 2);
    for (auto& m : moments_[way_]) list_sums(m);
    auto const& first = moments_[way_][0];
    std::vector<std::uint32_t> parts;
    for (auto i : first.beginning) parts.push_back(tree_.leaf(i));
    add_free(0, first.free, parts);
    depth_ = 0;
    open(1, tree_.in_any_order(parts), static_cast<int>(level_ / 2));
    ++level_;
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

  /// A step at a boundary where nothing is guessed yet.
  constexpr void open(std::uint32_t at, std::uint32_t root, int doubt) {
    step& f = push(at, root, doubt);
    if (at == ground_.sections) return;
    f.beginning = static_cast<std::uint32_t>((std::uint64_t{1} << moments_[way_][at].beginning.size()) - 1);
    f.free = moments_[way_][at].free;
    f.fresh = true;
    f.state = {};
    f.state.add(at, static_cast<std::uint64_t>(doubt));
    f.state.add(~std::uint64_t{0}, tree_.hash(
                                       root,
                                       [&](std::uint32_t leaf) {
                                         return leaf < ground_.count()
                                                    ? hash_of(leaf, 0)
                                                    : hash_of(static_cast<std::uint64_t>(size_of(leaf)), 1);
                                       },
                                       hash_of));
    if (!failed_.contains(f.state)) find_guesses(f);
  }
  constexpr step& push(std::uint32_t at, std::uint32_t root, int doubt) {
    if (path_.size() == depth_) path_.emplace_back();
    step& f = path_[depth_++];
    f.at = at, f.root = root, f.doubt = doubt, f.fresh = false;
    f.nodes = tree_.size(), f.free_count = free_bytes_.size();
    f.leaves.clear(), f.bounds.clear(), f.guesses.clear();
    f.next = f.tried = 0;
    return f;
  }

  constexpr void find_guesses(step& f) {
    auto const& now = moments_[way_][f.at];
    alive_.clear();
    tree_.add_leaves(f.root, alive_);
    marked_.resize(ground_.count() + free_bytes_.size(), 0);
    for (auto leaf : alive_) marked_[leaf] = end_of(leaf) == f.at;
    tree_.label(f.root, marked_);
    for (auto leaf : alive_) marked_[leaf] = 0;
    std::array<Unit, most_blocks> bytes{};
    f.bounds.push_back(0);
    tree_.for_each_block(f.root, [&](std::vector<std::uint32_t> const& block) {
      for (auto leaf : block) {
        f.leaves.push_back(leaf);
        if (f.bounds.size() <= most_blocks) bytes[f.bounds.size() - 1] += size_of(leaf);
      }
      f.bounds.push_back(static_cast<std::uint32_t>(f.leaves.size()));
    });
    auto const count = f.bounds.size() - 1;
    stretch const whole{64, static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1), f.beginning, f.free};
    if (count > 1 && count <= most_blocks) {
      std::array<Unit, 4> const frees{0, f.free, now.falls, now.rises};
      std::array<std::size_t, most_blocks> found{};
      guesses_.clear();
      for (std::uint32_t set = 1; set < whole.blocks; ++set) {
        if (std::popcount(set) > reach_) continue;
        Unit sum = 0;
        for (auto rest = set; rest != 0; rest &= rest - 1)
          sum += bytes[static_cast<std::size_t>(std::countr_zero(rest))];
        auto const add = [&](std::uint32_t beginning, Unit free) {
          guesses_.push_back(
              {std::popcount(set) + std::popcount(beginning) + (free != 0 && beginning != 0), set, beginning, free});
          for (auto rest = set; rest != 0; rest &= rest - 1) ++found[static_cast<std::size_t>(std::countr_zero(rest))];
        };
        bool alone = sum <= f.free && sum > 0;  // free bytes handed on as they are
        for (std::size_t k = 0; k < frees.size(); ++k) {
          if (frees[k] > std::min(sum, f.free)) continue;
          if (std::find(frees.begin(), frees.begin() + static_cast<std::ptrdiff_t>(k), frees[k]) !=
              frees.begin() + static_cast<std::ptrdiff_t>(k))
            continue;
          alone = alone && sum != frees[k];
          Unit const rest = sum - frees[k];
          for (auto s = std::lower_bound(now.sums.begin(), now.sums.end(), summed{rest, 0});
               s != now.sums.end() && s->sum == rest; ++s)
            if ((s->set & ~f.beginning) == 0) add(s->set, frees[k]);
        }
        if (alone) add(0, sum);
      }
      std::size_t fewest = 0;
      for (std::size_t k = 1; k < count; ++k)
        if (found[k] < found[fewest]) fewest = k;
      for (auto const& g : guesses_)
        if (g.blocks >> fewest & 1) f.guesses.push_back(g);
    }
    f.guesses.push_back(whole);
    std::stable_sort(f.guesses.begin(), f.guesses.end(),
                     [](stretch const& a, stretch const& b) { return a.size < b.size; });
  }
  /// Of n things k.
  static constexpr double choices(std::size_t n, std::size_t k) {
    double ways = 1;
    for (std::size_t i = 0; i < k; ++i) ways = ways * static_cast<double>(n - i) / static_cast<double>(i + 1);
    return ways;
  }

  /// Tries the last step's next guess; false if there is none within the doubt.
  constexpr bool guess() {
    step& f = path_[depth_ - 1];
    int const cost = static_cast<int>(std::bit_width(f.tried + 1)) - 1;
    if (f.next == f.guesses.size() || cost > f.doubt) return false;
    ++nodes_;
    tree_.shrink(f.nodes), free_bytes_.resize(f.free_count);
    stretch const g = f.guesses[f.next++];
    parts_.clear();
    for (auto rest = g.beginning; rest != 0; rest &= rest - 1)
      parts_.push_back(tree_.leaf(moments_[way_][f.at].beginning[static_cast<std::size_t>(std::countr_zero(rest))]));
    add_free(f.at, g.free, parts_);
    f.by = tree_.in_any_order(parts_);
    for_each_leaf(f, g, [&](std::uint32_t leaf) { marked_[leaf] = 1; });
    tree_.label(f.root, marked_);
    for_each_leaf(f, g, [&](std::uint32_t leaf) { marked_[leaf] = 0; });
    auto const root = tree_.replace(f.root, f.by);
    if (root == pq_tree::none) return true;
    ++f.tried;
    bool const last = g.beginning == f.beginning && g.free == f.free;
    auto const at = f.at, beginning = f.beginning & ~g.beginning;
    auto const free = f.free - g.free;
    auto const doubt = f.doubt - cost;
    if (last) open(at + 1, root, doubt);  // f may be no more
    else {
      step& rest = push(at, root, doubt);
      rest.beginning = beginning, rest.free = free;
      find_guesses(rest);
    }
    return true;
  }
  template <class F>
  static constexpr void for_each_leaf(step const& f, stretch const& g, F&& each) {
    for (std::size_t k = 0; k + 1 < f.bounds.size(); ++k)
      if (f.bounds.size() > most_blocks + 1 || (g.blocks >> k & 1))
        for (auto at = f.bounds[k]; at < f.bounds[k + 1]; ++at) each(f.leaves[at]);
  }

  /// Offsets from an order of what is alive at the end, and from it one after the other back to the begin.
  constexpr void put_down() {
    std::vector<std::uint32_t> rank(ground_.count() + free_bytes_.size(), 0), order, put;
    order = tree_.arranged(path_[depth_ - 1].root, rank);
    for (std::size_t k = depth_ - 1;; --k) {
      Unit top = 0;
      for (auto leaf : order) {
        if (leaf < ground_.count()) offsets_[leaf] = top;
        top += size_of(leaf);
      }
      if (k == 0) return;
      step const& f = path_[k - 1];
      for (std::uint32_t at = 0; at < order.size(); ++at) rank[order[at]] = at;
      put.clear();
      tree_.add_leaves(f.by, put);
      std::uint32_t least = pq_tree::none;
      for (auto leaf : put) least = std::min(least, rank[leaf]);
      for_each_leaf(f, f.guesses[f.next - 1], [&](std::uint32_t leaf) { rank[leaf] = least; });
      order = tree_.arranged(f.root, rank);
    }
  }

  search_ground<Unit> const& ground_;
  std::array<std::vector<moment>, 2> moments_;  // forth and back
  std::size_t way_ = 0;
  int reach_ = 0;                      // the largest sets that are guessed
  std::size_t level_ = 0, depth_ = 0;  // of searches; of the path
  std::vector<step> path_;             // behind its depth: room for more
  pq_tree tree_;
  std::vector<free_bytes> free_bytes_;  // leaves behind those of the records
  failed_states failed_;
  std::vector<Unit> offsets_;
  std::vector<std::uint32_t> alive_, parts_;
  std::vector<char> marked_;
  std::vector<stretch> guesses_;
  bool hopeless_ = true;
};

}  // namespace neap::inline v0::detail
