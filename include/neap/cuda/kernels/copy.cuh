// Copies and fills on a device (backend/kernels/copy.hpp): bits are moved as they are, 16 bytes at once where both sides lie
// that way. Transposes go by tiles, so that the lines of the source that a block reads stay in its cache.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/triangle.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/index_space.cuh>
#include <neap/cuda/kernels/packs.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// Elements of type U moved, or a value written. A block does a chunk.
template <class U>
struct copy_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr int length = 16 / int{sizeof(U)};
  static constexpr std::int64_t chunk = 4 * cuda_block_threads * length;
  index_space<2> x;  // the source (or the destination again), the destination
  bool fills, by_packs, one_value;
  U value;

  copy_kernel(index_space<2> const& operands, bool is_fill, U v)
      : x(operands),
        fills(is_fill),
        by_packs(x.has_packs(1, length) &&
                 (x.has_packs(0, length) || (x.repeats(0) && (x.rank == 1 || x.dims[x.rank - 1] % length == 0)))),
        one_value(is_fill || x.repeats(0)),
        value(v) {}

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = x.count - first, n = left < chunk ? left : chunk;
    copy_kernel const* const self = this;
    std::int64_t const packs = by_packs ? n / length : 0;
    b.each(packs, [self, first](std::int64_t i) {
      std::byte* at[2];
      self->x.place(first + i * length, at);
      std::uint32_t words[4];
      if (self->one_value) {
        U const v = self->fills ? self->value : *reinterpret_cast<U const*>(at[0]);
        std::uint32_t word = static_cast<std::uint32_t>(v);
        if constexpr (sizeof(U) == 1) word *= 0x01010101u;
        if constexpr (sizeof(U) == 2) word *= 0x00010001u;
        words[0] = words[1] = words[2] = words[3] = word;
        if constexpr (sizeof(U) == 8) words[1] = words[3] = static_cast<std::uint32_t>(v >> 32);
      } else {
        load_words<4>(at[0], words);
      }
      store_words<4>(at[1], words);
    });
    std::int64_t const rest = first + packs * length;
    b.each(n - packs * length, [self, rest](std::int64_t i) {
      std::byte* at[2];
      self->x.place(rest + i, at);
      *reinterpret_cast<U*>(at[1]) = self->fills ? self->value : *reinterpret_cast<U const*>(at[0]);
    });
  }
};

/// A transpose: elements follow one another along one axis of the source and along another one of the destination. A block
/// does a tile of both.
template <class U>
struct transpose_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t tile = 32;
  index_space<2> others;                                // the source and the destination along the other axes
  std::int64_t rows, columns, row_tiles, column_tiles;  // rows: along the source's axis, columns: the destination's
  std::int64_t from_column, to_row;                     // strides

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const tiles = row_tiles * column_tiles, place = b.id % tiles;
    std::byte* at[2];
    others.place(b.id / tiles, at);
    std::int64_t const row = place / column_tiles * tile, column = place % column_tiles * tile;
    std::int64_t const down = rows - row < tile ? rows - row : tile, a = from_column, c = to_row;
    std::int64_t const across = columns - column < tile ? columns - column : tile;
    U const* const from = reinterpret_cast<U const*>(at[0]) + row + column * a;
    U* const to = reinterpret_cast<U*>(at[1]) + row * c + column;
    b.each(down * tile, [=](std::int64_t i) {
      std::int64_t const r = i / tile, k = i % tile;
      if (k < across) to[r * c + k] = from[r + k * a];
    });
  }
};

/// Zeros on one side of a diagonal of matrices, the source's elements elsewhere.
template <class U>
struct triangle_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = 8 * cuda_block_threads;
  index_space<2> x;  // the source, the destination
  std::int64_t rows, columns, diagonal;
  bool upper;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = x.count - first, n = left < chunk ? left : chunk;
    triangle_kernel const* const self = this;
    b.each(n, [self, first](std::int64_t k) {
      std::int64_t const line = (first + k) / self->columns;
      std::int64_t const i = line % self->rows, j = first + k - line * self->columns;
      std::byte* at[2];
      self->x.place(first + k, at);
      bool const keeps = self->upper ? j >= i + self->diagonal : j <= i + self->diagonal;
      *reinterpret_cast<U*>(at[1]) = keeps ? *reinterpret_cast<U const*>(at[0]) : U(0);
    });
  }
};

template <class U, class B>
void copy_elements_on_device(B& b, paired p, tensor_ref const& out, tensor_ref const& in) {
  int const last = p.rank - 1;
  int fastest = last;  // the source's fastest axis
  for (int axis = 0; axis < p.rank; ++axis)
    if (p.from[axis] == 1) fastest = axis;
  if (p.rank > 0 && fastest != last && p.from[last] != 0 && p.to[last] == 1) {
    transpose_kernel<U> k{};
    shape others;
    extents from, to;
    for (int axis = 0; axis < last; ++axis)
      if (axis != fastest) others.push_back(p.dims[axis]), from.push_back(p.from[axis]), to.push_back(p.to[axis]);
    tensor_ref const source{in.data, out.element, others, from}, destination{out.data, out.element, others, to};
    k.others = index_space<2>(others, {&source, &destination});
    k.rows = p.dims[fastest], k.columns = p.dims[last];
    k.row_tiles = (k.rows + k.tile - 1) / k.tile, k.column_tiles = (k.columns + k.tile - 1) / k.tile;
    k.from_column = p.from[last], k.to_row = p.to[fastest];
    return b.launch(k.others.count * k.row_tiles * k.column_tiles, k, k.tile * k.tile);
  }
  copy_kernel<U> const k(index_space<2>(out.dims, {&in, &out}), false, 0);
  launch_in_chunks(b, k.x.count, k);
}

}  // namespace detail

/// copy (backend/kernels/copy.hpp) on a device, of elements of one type.
template <device_backend B>
void copy_on_device(B& b, tensor_ref const& out, tensor_ref const& in) {
  auto const p = detail::pair_up(out, in);
  detail::with_element_size(
      out.element, [&](auto tag) { detail::copy_elements_on_device<typename decltype(tag)::type>(b, p, out, in); });
}

/// Every element of out becomes the one with these bits.
template <device_backend B>
void fill_on_device(B& b, tensor_ref const& out, std::uint64_t bits) {
  detail::index_space<2> const x(out.dims, {&out, &out});
  detail::with_element_size(out.element, [&](auto tag) {
    using U = typename decltype(tag)::type;
    detail::copy_kernel<U> const k(x, true, static_cast<U>(bits));
    launch_in_chunks(b, x.count, k);
  });
}

/// triangle (backend/kernels/triangle.hpp) on a device, in one launch.
template <device_backend B>
void triangle_on_device(B& b, tensor_ref const& out, tensor_ref const& in, std::int64_t diagonal, bool upper) {
  if (out.count() == 0) return;
  std::int64_t const rows = out.extent(-2), columns = out.extent(-1);
  std::int64_t const d = std::clamp(diagonal, -rows - 1, columns + 1);
  detail::index_space<2> const x(out.dims, {&in, &out});
  detail::with_element_size(out.element, [&](auto tag) {
    detail::triangle_kernel<typename decltype(tag)::type> const k{x, rows, columns, d, upper};
    launch_in_chunks(b, x.count, k);
  });
}

}}  // namespace neap::v0
