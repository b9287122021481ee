// The facts of a stretch of an order as if it were a graph of its own: a scheduler that reads facts can order the
// stretch, between what runs before it and what runs after.
//
//   order     a b c d e f g h          window [2, 6)          rows     0 1 2 3
//                 -------                                     stand for c d e f
//
// What was made before and is read last in the stretch is there from its first position; what it makes and is needed
// later is kept; what lives through it never changes the count, and is left out. Without transfers the bytes of any order
// of the stretch differ from those in the whole by one constant. Transfers in flight at its ends are not seen.
#pragma once

#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

/// Where the ops of an order stand, and where each of its storages is last read or written.
struct order_places {
  table<op_id, std::uint32_t> at;
  table<storage_id, std::uint32_t> last;  // kept ones: behind the end

  order_places() = default;
  order_places(flow_facts const& facts, schedule const& order) { assign(facts, order); }
  /// O(ops + storages they touch).
  void assign(flow_facts const& facts, schedule const& order) {
    at.resize(facts.op_count());
    last.assign(facts.storage_count(), 0);
    for (std::uint32_t p = 0; p < order.size(); ++p) {
      at[order[p]] = p;
      for (auto s : facts.touches(order[p])) last[s] = p;
    }
    for (auto s : facts.kept_storages()) last[s] = static_cast<std::uint32_t>(order.size());
  }
};

class window_facts : public flow_facts {
 public:
  /// Learns the positions [begin, end) of a valid order; keeps the memory of the tables. O(what stands there, with what it
  /// waits for and touches), and once O(storages of the whole).
  void assign(flow_facts const& whole, schedule const& order, order_places const& places, std::uint32_t begin,
              std::uint32_t end) {
    auto const n = end - begin;
    options_ = whole.options();
    op_count_ = n, absent_ = 0, resident_bytes_ = 0, resident_count_ = 0;
    ops_.clear(), after_begin_.clear(), after_.clear(), touches_.clear(), takeovers_.clear();
    bytes_.clear(), storages_.clear(), kinds_.clear(), kept_.clear(), given_.clear(), workspace_.clear();
    has_transfers_ = false, has_workspace_ = whole.has_workspace();
    row_of_.resize(whole.storage_count(), no_id);

    for (std::uint32_t k = 0; k < n; ++k) {
      auto const o = order[begin + k];
      auto const me = id_at<op_id>(k);
      auto const stream = whole.stream(o);
      has_transfers_ = has_transfers_ || stream != op_stream::compute;
      ops_.push_back(
          {whole.seconds(o), static_cast<std::uint32_t>(touches_.size()),
           static_cast<std::uint32_t>(whole.makes(o).size()) | std::uint32_t{static_cast<std::uint8_t>(stream)} << 24});
      after_begin_.push_back(static_cast<std::uint32_t>(after_.size()));
      for (auto before : whole.after(o))
        if (auto const p = places.at[before]; p >= begin) after_.push_back(id_at<op_id>(p - begin));
      for (auto s : whole.touches(o))
        if (auto const row = learn(whole, places, begin, end, s, me); row != lives_through)
          touches_.push_back(storage_id{row});
      if (has_workspace_) workspace_.push_back(whole.workspace(o));
    }
    ops_.push_back({0, static_cast<std::uint32_t>(touches_.size()), 0});
    after_begin_.push_back(static_cast<std::uint32_t>(after_.size()));
    if (!whole.takeovers().empty())
      for (std::uint32_t k = 0; k < n; ++k)
        for (auto const& c : whole.takeovers(order[begin + k])) {
          auto const from = row_of_[c.from], to = row_of_[c.to];
          if (from < lives_through && to < lives_through && kinds_[storage_id{from}] == kind::plain)
            takeovers_.push_back({storage_id{from}, storage_id{to}});
        }
    for (auto s : known_) row_of_[s] = no_id;
    known_.clear();
  }

 private:
  static constexpr std::uint32_t lives_through = no_id - 1;  // in place of a row

  /// The row of a storage that an op of the window touches; it is given one when it is met first.
  std::uint32_t learn(flow_facts const& whole, order_places const& places, std::uint32_t begin, std::uint32_t end,
                      storage_id s, op_id me) {
    auto& row = row_of_[s];
    if (row != no_id) return row;
    known_.push_back(s);
    auto const maker = whole.maker(s);
    bool const made_here = maker != nothing<op_id> && places.at[maker] >= begin && places.at[maker] < end;
    bool const stays = places.last[s] >= end;
    if (!made_here && stays) return row = lives_through;
    row = static_cast<std::uint32_t>(bytes_.size());
    bytes_.push_back(whole.bytes(s));
    storages_.push_back({made_here ? me : nothing<op_id>, 0});  // its maker is the first to touch it
    kinds_.push_back(stays ? kind::kept : kind::plain);
    if (stays) kept_.push_back(storage_id{row});
    else if (!made_here) given_.push_back(storage_id{row});
    return row;
  }

  table<storage_id, std::uint32_t> row_of_;  // of the whole's storages, while the window is learnt
  plain_vector<storage_id> known_;           // those that have one
};

}}  // namespace neap::v0
