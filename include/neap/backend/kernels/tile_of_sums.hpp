// Sums of a plane of an image, where many terms may meet at one place: f32 terms are added up in f64, a tile at a time.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// The sums at rows [top, bottom) and columns [left, right) of a plane.
template <class T>
struct tile_of_sums {
  static constexpr std::int64_t most = 2048;  // sums: 16 KiB

  std::int64_t top, bottom, left, right;
  std::array<sum_t<T>, static_cast<std::size_t>(most)> sums;

  /// Row r of the plane, by columns of the plane.
  sum_t<T>* row(std::int64_t r) { return sums.data() + (r - top) * (right - left) - left; }
  bool has(std::int64_t r, std::int64_t c) const { return r >= top && r < bottom && c >= left && c < right; }
  /// The first of `count` spans of ascending ends that reaches the tile: span(i).end is behind its first row or column.
  template <class Span>
  std::int64_t first_row(std::int64_t count, Span const& span) const {
    return first(count, span, top);
  }
  template <class Span>
  std::int64_t first_column(std::int64_t count, Span const& span) const {
    return first(count, span, left);
  }

 private:
  template <class Span>
  static std::int64_t first(std::int64_t count, Span const& span, std::int64_t from) {
    std::int64_t low = 0;
    while (low < count) {
      std::int64_t const middle = low + (count - low) / 2;
      if (span(middle).end > from) count = middle;
      else low = middle + 1;
    }
    return low;
  }
};

/// Calls f(tile_of_sums<T>&) for tiles that make up a plane of `image` that begins at `plane`, each zero before, and
/// writes them, rounded to T. T: f32 or f64.
template <class T, class F>
void each_tile_of_sums(tensor_ref const& image, T* plane, F const& f) {
  std::int64_t const rows = image.dims[2], columns = image.dims[3];
  std::int64_t const width = std::min(columns, tile_of_sums<T>::most);
  std::int64_t const height = std::max<std::int64_t>(1, tile_of_sums<T>::most / std::max<std::int64_t>(width, 1));
  tile_of_sums<T> tile;
  for (tile.top = 0; tile.top < rows; tile.top = tile.bottom) {
    tile.bottom = std::min(rows, tile.top + height);
    for (tile.left = 0; tile.left < columns; tile.left = tile.right) {
      tile.right = std::min(columns, tile.left + width);
      std::fill_n(tile.sums.data(), (tile.bottom - tile.top) * (tile.right - tile.left), sum_t<T>(0));
      f(tile);
      for (std::int64_t r = tile.top; r < tile.bottom; ++r) {
        sum_t<T> const* const from = tile.row(r);
        T* const to = plane + r * image.strides[2];
        if (image.strides[3] == 1)
          for (std::int64_t c = tile.left; c < tile.right; ++c) to[c] = static_cast<T>(from[c]);
        else
          for (std::int64_t c = tile.left; c < tile.right; ++c) to[c * image.strides[3]] = static_cast<T>(from[c]);
      }
    }
  }
}

}}}  // namespace neap::v0::detail
