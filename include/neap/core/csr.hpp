// Compressed rows: many short lists in two arrays. Row r is items[begin[r] .. begin[r + 1]).
#pragma once

#include <neap/core/id.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace neap::inline v0 {

template <class Row, class Item>
class csr {
 public:
  std::span<Item const> operator[](Row r) const {
    return {items_.data() + begin_[index(r)], items_.data() + begin_[index(r) + 1]};
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
  /// old items, put) calls put(item) for each item of the new row. Costs the changed rows and a copy of the rest.
  template <class Fill>
  void patch(std::size_t rows, std::span<Row const> changed, Fill&& fill) {
    std::vector<std::uint32_t> begin(rows + 1);
    std::vector<Item> items;
    items.reserve(items_.size() + items_.size() / 16 + 16);
    std::size_t const old = row_count();
    std::size_t r = 0;
    auto const copy_until = [&](std::size_t end) {
      if (auto const stop = end < old ? end : old; r < stop) {
        auto const shift = static_cast<std::uint32_t>(items.size()) - begin_[r];
        items.insert(items.end(), items_.data() + begin_[r], items_.data() + begin_[stop]);
        for (; r < stop; ++r) begin[r] = begin_[r] + shift;
      }
      for (; r < end; ++r) begin[r] = static_cast<std::uint32_t>(items.size());
    };
    for (auto c : changed) {
      copy_until(index(c));
      begin[r] = static_cast<std::uint32_t>(items.size());
      fill(c, r < old ? (*this)[c] : std::span<Item const>{}, [&](Item x) { items.push_back(x); });
      ++r;
    }
    copy_until(rows);
    begin[rows] = static_cast<std::uint32_t>(items.size());
    begin_ = std::move(begin);
    items_ = std::move(items);
  }
  friend bool operator==(csr const&, csr const&) = default;

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<Item> items_;
};

}  // namespace neap::inline v0
