// Compressed rows: many short lists in two arrays. Row r is items[begin[r] .. begin[r + 1]).
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace neap { inline namespace v0 {

template <class Row, class Item>
class csr {
 public:
  std::span<Item const> operator[](Row r) const {
    return span_of(items_.data() + begin_[index(r)], begin_[index(r) + 1] - begin_[index(r)]);
  }
  std::size_t row_count() const { return begin_.empty() ? 0 : begin_.size() - 1; }
  std::size_t item_count() const { return items_.size(); }

  /// Fills `rows` rows from a function that calls back with (row, item) pairs; it is called twice and must give the
  /// same pairs both times. Items of a row keep the order of the calls. O(rows + items).
  template <class ForEachPair>
  void build(std::size_t rows, ForEachPair&& for_each_pair) {
    begin_.assign(rows + 1, 0);
    for_each_pair([&](Row r, Item) { ++begin_[index(r) + 1]; });
    for (std::size_t r = 0; r < rows; ++r) begin_[r + 1] += begin_[r];
    items_.resize(begin_[rows]);
    std::uint32_t* at = begin_.data();  // begin_[r] walks to the end of row r, then all are moved back by one row
    for_each_pair([&](Row r, Item x) { items_[at[index(r)]++] = x; });
    for (std::size_t r = rows; r > 0; --r) begin_[r] = begin_[r - 1];
    begin_[0] = 0;
  }

  /// Appends empty rows until there are `rows`.
  void add_rows(std::size_t rows) { begin_.resize(rows + 1, begin_.empty() ? 0 : begin_.back()); }

  /// Writes some rows anew and appends rows until there are `rows`, not fewer than before. `changed` ascends; fill(row,
  /// old items, put) calls put(item) for each item of the new row. In place: what lies between changed rows is moved to
  /// where it belongs. Costs the changed rows and a move of what comes after the first of them.
  template <class Fill>
  void patch(std::size_t rows, std::span<Row const> changed, Fill&& fill) {
    struct stretch {  // what stays as it is between two changed rows
      std::size_t row, end_row;
      std::uint32_t begin, end, to;    // items
      std::uint32_t fresh, fresh_end;  // the new items of the changed row behind it
    };
    add_rows(rows);
    plain_vector<Item> fresh;
    plain_vector<stretch> stretches;
    stretches.reserve(changed.size() + 1);
    std::size_t row = 0;
    std::uint32_t to = 0;
    auto const add = [&](std::size_t end_row, std::uint32_t fresh_begin) {
      auto const fresh_end = static_cast<std::uint32_t>(fresh.size());
      stretches.push_back({row, end_row, begin_[row], begin_[end_row], to, fresh_begin, fresh_end});
      to += begin_[end_row] - begin_[row] + fresh_end - fresh_begin;
    };
    for (auto c : changed) {
      auto const old = static_cast<std::uint32_t>(fresh.size());
      fill(c, (*this)[c], [&](Item x) { fresh.push_back(x); });
      add(index(c), old);
      row = index(c) + 1;
    }
    add(rows, static_cast<std::uint32_t>(fresh.size()));
    if (to > items_.size()) items_.resize(to);
    // Those that move down, from the first on, then those that move up, from the last on: none meets another's items.
    for (auto const& s : stretches)
      if (s.to < s.begin) std::copy(items_.begin() + s.begin, items_.begin() + s.end, items_.begin() + s.to);
    for (std::size_t k = stretches.size(); k-- > 0;)
      if (auto const& s = stretches[k]; s.to > s.begin)
        std::copy_backward(items_.begin() + s.begin, items_.begin() + s.end,
                           items_.begin() + (s.to + (s.end - s.begin)));
    for (auto const& s : stretches) {
      auto const shift = s.to - s.begin;  // modulo 2^32
      for (std::size_t r = s.row; r < s.end_row; ++r) begin_[r] += shift;
      if (s.end_row < rows) begin_[s.end_row] = s.end + shift;
      std::copy(fresh.begin() + s.fresh, fresh.begin() + s.fresh_end, items_.begin() + (s.end + shift));
    }
    begin_[rows] = to;
    items_.resize(to);
  }
  friend bool operator==(csr const&, csr const&) = default;

 private:
  plain_vector<std::uint32_t> begin_;
  plain_vector<Item> items_;
};

}}  // namespace neap::v0
