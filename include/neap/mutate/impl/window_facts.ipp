// The bodies of <neap/mutate/window_facts.hpp>.
#pragma once

#include <neap/mutate/window_facts.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

NEAP_FUNC void order_places::assign(flow_facts const& facts, schedule const& order) {
  at.resize(facts.op_count());
  last.assign(facts.storage_count(), 0);
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    at[order[p]] = p;
    for (auto s : facts.touches(order[p])) last[s] = p;
  }
  for (auto s : facts.kept_storages()) last[s] = static_cast<std::uint32_t>(order.size());
}

NEAP_FUNC void window_facts::assign(flow_facts const& whole, schedule const& order, order_places const& places,
                                    std::uint32_t begin, std::uint32_t end) {
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

NEAP_FUNC std::uint32_t window_facts::learn(flow_facts const& whole, order_places const& places, std::uint32_t begin,
                                            std::uint32_t end, storage_id s, op_id me) {
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

}}  // namespace neap::v0
