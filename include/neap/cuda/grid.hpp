// How the blocks of a kernel (backend/block.hpp), here called rows, are laid out on a GPU: short rows get a warp each and
// several share a thread block, long ones get a thread block; rows whose indices do not depend on one another may be
// spread over several thread blocks. The rule depends on extents alone, never on the device: results repeat.
#pragma once

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

inline constexpr int cuda_warp_threads = 32;
inline constexpr int cuda_block_threads = 256;

/// A launch of thread blocks of cuda_block_threads threads each.
struct cuda_grid {
  std::uint32_t blocks = 0;       // of the launch; 0: there is nothing to do
  bool warp_rows = false;         // a warp a row
  std::int64_t parts = 1;         // thread blocks that share a row
  std::int64_t rows_at_once = 0;  // row r is followed by row r + rows_at_once in the same block

  friend constexpr bool operator==(cuda_grid const&, cuda_grid const&) = default;
};

/// The layout for `rows` rows of about `row_work` indices (0: unknown, taken as many). `splits`: the rows may be shared by
/// several thread blocks, because no index depends on another.
///
/// A row of at most 512 indices is done by one warp: up to 16 a lane. A row's sums are added in an order that depends on
/// row_work alone, hence are the same in a batch of any size.
constexpr cuda_grid cuda_grid_of(std::int64_t rows, std::int64_t row_work, bool splits = false) {
  constexpr std::int64_t max_blocks = 2147483647, longest_of_a_warp = 512;
  constexpr std::int64_t enough_blocks = 1024;  // more would not occupy a device any better
  constexpr std::int64_t part_work = 8 * cuda_block_threads;
  if (rows <= 0) return {};
  cuda_grid g;
  g.warp_rows = row_work > 0 && row_work <= longest_of_a_warp;
  if (g.warp_rows) {
    constexpr std::int64_t rows_of_a_block = cuda_block_threads / cuda_warp_threads;
    g.blocks = static_cast<std::uint32_t>(std::min(max_blocks, (rows - 1) / rows_of_a_block + 1));
    g.rows_at_once = g.blocks * rows_of_a_block;
    return g;
  }
  if (splits)
    g.parts = std::clamp<std::int64_t>(std::min(row_work / part_work, enough_blocks / rows), 1, enough_blocks);
  g.rows_at_once = std::min(max_blocks / g.parts, rows);
  g.blocks = static_cast<std::uint32_t>(g.rows_at_once * g.parts);
  return g;
}

/// Launches a kernel whose blocks do K::chunk of `count` indices each.
template <class Backend, class K>
void launch_in_chunks(Backend& b, std::int64_t count, K const& kernel) {
  b.launch((count + K::chunk - 1) / K::chunk, kernel, K::chunk);
}

namespace detail {
/// Kernels whose rows may be shared by several thread blocks say so: `static constexpr bool splits = true`.
template <class K>
inline constexpr bool rows_split = false;
template <class K>
  requires K::splits
inline constexpr bool rows_split<K> = true;

/// Kernels whose rows are always worth a thread block say so: `static constexpr bool whole_blocks = true`.
template <class K>
inline constexpr bool rows_fill_blocks = false;
template <class K>
  requires K::whole_blocks
inline constexpr bool rows_fill_blocks<K> = true;

}  // namespace detail

}}  // namespace neap::v0
