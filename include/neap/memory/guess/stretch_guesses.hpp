// Which stretches a boundary is likely cut into (planar_search.hpp): sets of blocks that end there, the records and free
// bytes that take their place to the byte, and how much likelier each is than others.
//
// Sums of sizes seldom agree by chance: a stretch counts for a way as much as sums of so many records near its own are
// rare, and against it as much as it could have been assigned otherwise. Of t things in all there are about 1 / t^3 as
// many as of one.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/guess/planar_orders.hpp>
#include <neap/memory/guess/planar_problem.hpp>
#include <neap/memory/guess/subsets.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

struct stretch_guess {
  std::uint32_t blocks;  // as a set
  stretch put;
  double weight;                                                           // how much likelier than others
  friend bool operator<(stretch_guess const& a, stretch_guess const& b) {  // the likelier first
    if (a.weight != b.weight) return a.weight > b.weight;
    if (a.blocks != b.blocks) return a.blocks < b.blocks;
    return a.put.beginning < b.put.beginning;  // which fixes the free bytes
  }
};

/// How likely a stretch of t things is before anything is known of sizes.
inline double stretch_rarity(std::size_t t) {
  static constexpr auto rarities = [] {
    std::array<double, 2 * planar_policy::most_items + 2> of{};
    for (std::size_t k = 1; k < of.size(); ++k) of[k] = 1 / static_cast<double>(k * k * k);
    return of;
  }();
  return rarities[t];
}

/// What sets of blocks hold, looked up by eight blocks at once.
class block_contents {
 public:
  struct content {
    std::uint32_t items;
    std::int64_t bytes, free;
  };
  block_contents(planar_orders const& orders, std::vector<std::uint32_t> const& blocks) {
    for (std::size_t first = 0; first < blocks.size(); first += 8) {
      auto& of = of_sets_[first / 8];
      of[0] = {};
      for (std::uint32_t set = 1; set >> std::min<std::size_t>(8, blocks.size() - first) == 0; ++set) {
        content c = of[set & (set - 1)];
        auto const block = blocks[first + static_cast<std::size_t>(std::countr_zero(set))];
        c.items |= block;
        for_each_member(block, [&](std::size_t i) {
          auto const bytes = orders.size_of(orders.items[i]);
          c.bytes += bytes;
          if (!orders.is_record(orders.items[i])) c.free += bytes;
        });
        of[set] = c;
      }
    }
  }
  content operator()(std::uint32_t set) const {
    content c = of_sets_[0][set & 255];
    for (std::size_t k = 1; (set >>= 8) != 0; ++k) {
      content const& more = of_sets_[k][set & 255];
      c.items |= more.items, c.bytes += more.bytes, c.free += more.free;
    }
    return c;
  }

 private:
  std::array<std::array<content, 256>, 4> of_sets_;
};

/// The stretches for sets of some blocks, of weights that are not too small.
class stretch_finder {
 public:
  stretch_finder(planar_boundary const& at, planar_orders const& orders, std::vector<std::uint32_t> const& blocks,
                 double least_chance, plain_vector<stretch_guess>& out)
      : at_(at),
        blocks_(blocks.size()),
        contents_(orders, blocks),
        least_(least_chance * stretch_rarity(blocks_ + at.beginning.size() + (at.free != 0))),
        out_(out) {}

  /// The likeliest first.
  void run() {
    double sets = 0;
    for (std::size_t size = 1; size < blocks_ && (sets += choices(blocks_, size)) <= planar_policy::most_block_sets;
         ++size) {
      size_ = size, others_ = choices(blocks_ - 1, size - 1);
      double least_evidence = evidence_wanted();
      for_each_set(blocks_, size, [&](std::uint32_t set) {
        content_ = contents_(set), set_ = set;
        if (static_cast<double>(content_.bytes + 1) < least_evidence) return;  // there is no more of it
        frees_ = {0, at_.free, at_.falls, at_.rises, content_.free};
        add_known_frees();
        if (at_.free != 0) add_unknown_frees();
        if (keep(4 * planar_policy::most_guesses)) least_evidence = evidence_wanted();
      });
    }
    keep(planar_policy::most_guesses);
    sort_list(out_);
  }

 private:
  double evidence_wanted() const { return least_ * others_ / stretch_rarity(size_ + 1); }
  double weight(std::size_t beginning, bool free, double evidence) const {
    return stretch_rarity(size_ + beginning + free) * evidence / others_;
  }
  void add(std::uint32_t beginning, std::int64_t free, double w) {
    if (w >= least_) out_.push_back({set_, {content_.items, beginning, free}, w});
  }
  /// Whether that number is among the first k of the free bytes that something tells of.
  bool among(std::size_t k, std::int64_t bytes) const {
    auto const end = frees_.begin() + static_cast<std::ptrdiff_t>(k);
    return std::find(frees_.begin(), end, bytes) != end;
  }
  /// Free bytes: none, all of the section, as many as fall or rise there at once, or as many as ended.
  void add_known_frees() {
    auto const sum = content_.bytes;
    for (std::size_t k = 0; k < frees_.size(); ++k) {
      auto const free = frees_[k];
      if (free > std::min(sum, at_.free) || among(k, free)) continue;
      auto const records = sum - free;
      for (auto s = at_.sums.from(records); s != at_.sums.end() && s->sum == records; ++s) {
        auto const b = static_cast<std::size_t>(std::popcount(s->set));
        if (b == 0) add(0, free, weight(0, free != 0, sum == content_.free ? 1 : static_cast<double>(sum)));
        else if (weight(b, free != 0, static_cast<double>(records + 1)) >= least_)
          add(s->set, free, weight(b, free != 0, at_.bytes_a_sum(b, records)));
      }
    }
  }
  /// Other numbers of free bytes: as likely as such sets are few.
  void add_unknown_frees() {
    auto const sum = content_.bytes;
    for (std::size_t b = 0; b < at_.by_count.size(); ++b) {
      if (weight(b, true, planar_policy::unknown_chance) < least_) break;
      auto const& in = at_.by_count[b];
      auto const begin = in.from(sum - at_.free);
      auto end = begin;
      while (end != in.end() && end->sum < sum && end - begin <= planar_policy::most_unknown) ++end;
      if (end - begin > planar_policy::most_unknown) continue;
      for (auto s = begin; s != end; ++s)
        if (!among(frees_.size(), sum - s->sum))
          add(s->set, sum - s->sum, weight(b, true, planar_policy::unknown_chance / static_cast<double>(end - begin)));
    }
  }
  /// Where there are more than `room`, those that do not belong to the likeliest go.
  bool keep(std::size_t room) {
    if (out_.size() <= room) return false;
    auto const last = out_.begin() + static_cast<std::ptrdiff_t>(planar_policy::most_guesses) - 1;
    std::nth_element(out_.begin(), last, out_.end());
    least_ = last->weight;
    out_.resize(planar_policy::most_guesses);
    return true;
  }

  planar_boundary const& at_;
  std::size_t blocks_;
  block_contents contents_;
  double least_;  // rarer ones are not tried
  plain_vector<stretch_guess>& out_;
  // Of the sets at work: their size, how many else there are with one of their blocks; the set, its contents.
  std::size_t size_ = 0;
  double others_ = 1;
  std::uint32_t set_ = 0;
  block_contents::content content_{};
  std::array<std::int64_t, 5> frees_{};
};

/// The guesses at one boundary, found once for the same blocks.
class stretch_guesses {
 public:
  /// To another boundary.
  void clear() { known_count_ = 0; }
  /// For what ends in such blocks of the items listed, the likeliest first. Valid until the next clear().
  plain_vector<stretch_guess> const& at(planar_boundary& at, planar_orders const& orders,
                                        std::vector<std::uint32_t> const& blocks, double least_chance) {
    state_hash key;
    for (auto block : blocks) key.add(block, 0);
    for (auto k = at.ending.size(); k < orders.items.size(); ++k)
      key.add(k, static_cast<std::uint64_t>(orders.size_of(orders.items[k])));
    for (std::size_t k = 0; k < known_count_; ++k)
      if (known_[k].key == key) return known_[k].guesses;
    if (known_.size() == known_count_) known_.emplace_back();
    auto& found = known_[known_count_++];
    found.key = key, found.guesses.clear();
    if (blocks.size() > 1) {
      at.sum_up(orders.problem().records());
      stretch_finder(at, orders, blocks, least_chance, found.guesses).run();
    }
    return found.guesses;
  }

 private:
  struct list {
    state_hash key;  // of the blocks
    plain_vector<stretch_guess> guesses;
  };
  std::vector<list> known_;  // behind their count: room for more
  std::size_t known_count_ = 0;
};

}  // namespace neap::inline v0::detail
