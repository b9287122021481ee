// Launches of kernels on a stream of a GPU: functors on the block abstraction (backend/block.hpp), and kernels with a
// layout of their own.
#pragma once

#include <neap/cuda/backend.hpp>
#include <neap/cuda/block.cuh>
#include <neap/cuda/check.hpp>
#include <neap/cuda/grid.hpp>

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstdint>
#include <source_location>

namespace neap { inline namespace v0 {

namespace detail {

// Two blocks a multiprocessor at least: without that ptxas aims at more, and spills.

/// A thread block a row.
template <class K>
__global__ void __launch_bounds__(cuda_block_threads, 2)
    cuda_rows_by_block(__grid_constant__ K const kernel, std::int64_t rows, std::int64_t rows_at_once) {
  __shared__ alignas(16) char room[cuda_block<cuda_block_threads>::shared_bytes];
  cuda_block<cuda_block_threads> block(room);
  for (block.id = blockIdx.x; block.id < rows; block.id += rows_at_once) {
    kernel(block);
    block.sync();  // the next row uses the same room
  }
}

/// A warp a row.
template <class K>
__global__ void __launch_bounds__(cuda_block_threads, 2)
    cuda_rows_by_warp(__grid_constant__ K const kernel, std::int64_t rows, std::int64_t rows_at_once) {
  cuda_warp warp;
  std::int64_t const first = static_cast<std::int64_t>(blockIdx.x) * (cuda_block_threads / cuda_warp_threads) +
                             threadIdx.x / cuda_warp_threads;
  for (warp.id = first; warp.id < rows; warp.id += rows_at_once) kernel(warp);
}

/// Several thread blocks a row.
template <class K>
__global__ void __launch_bounds__(cuda_block_threads, 2)
    cuda_rows_by_parts(__grid_constant__ K const kernel, std::int64_t rows, std::int64_t rows_at_once,
                       std::int64_t parts) {
  cuda_block_part block(blockIdx.x % parts, parts);
  for (block.id = blockIdx.x / parts; block.id < rows; block.id += rows_at_once) kernel(block);
}

/// A kernel with a layout of its own.
template <class K>
__global__ void __launch_bounds__(K::threads, K::blocks_at_once) cuda_blocks(__grid_constant__ K const kernel) {
  extern __shared__ __align__(128) unsigned char cuda_shared_memory[];
  kernel(cuda_shared_memory);
}

}  // namespace detail

/// A kernel with a layout of its own: operator()(unsigned char* shared) runs on each thread of a grid of one axis. A
/// thread block has K::threads threads and K::shared_bytes of shared memory, aligned to 128 bytes; K::blocks_at_once is
/// how many of them a multiprocessor should hold at least, which bounds the registers of a thread.
template <class K>
concept cuda_block_kernel = requires {
  { K::threads } -> std::convertible_to<int>;
  { K::blocks_at_once } -> std::convertible_to<int>;
  { K::shared_bytes } -> std::convertible_to<int>;
};

/// Runs the kernel on `blocks` thread blocks of the stream. Returns at once. Pointers in the kernel are the device's.
/// Throws neap::error if the launch is refused, or `blocks` exceeds a grid's 2^31 - 1.
template <cuda_block_kernel K>
void launch_blocks_on(cudaStream_t stream, std::int64_t blocks, K const& kernel,
                      std::source_location at = std::source_location::current()) {
  constexpr std::int64_t max_blocks = 2147483647;
  constexpr int always_allowed = 48 << 10, max_on_all = 99 << 10;  // bytes of shared memory
  static_assert(K::shared_bytes <= max_on_all, "more shared memory than devices of compute capability 8.6 have");
  if (blocks <= 0) return;
  if (blocks > max_blocks) throw_error(at, {"cuda: launch of a kernel: ", blocks, " thread blocks, of 2^31 - 1"});
  if constexpr (K::shared_bytes > always_allowed)
    check_cuda(
        cudaFuncSetAttribute(detail::cuda_blocks<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, K::shared_bytes),
        "shared memory of a kernel", at);
  detail::cuda_blocks<K><<<static_cast<unsigned>(blocks), K::threads, K::shared_bytes, stream>>>(kernel);
  check_cuda(cudaGetLastError(), "launch of a kernel", at);
}

/// Runs kernel(block) on the stream for every block.id in [0, rows); `row_work` is about how many indices a row has (0:
/// unknown, taken as many). Returns at once. Pointers in the kernel are the device's. Throws neap::error if the launch is
/// refused.
template <class K>
void launch_on(cudaStream_t stream, std::int64_t rows, K const& kernel, std::int64_t row_work = 0,
               std::source_location at = std::source_location::current()) {
  cuda_grid const g = cuda_grid_of(rows, detail::rows_fill_blocks<K> ? 0 : row_work, detail::rows_split<K>);
  if (g.blocks == 0) return;
  if constexpr (detail::rows_fill_blocks<K>) {
    detail::cuda_rows_by_block<K><<<g.blocks, cuda_block_threads, 0, stream>>>(kernel, rows, g.rows_at_once);
  } else if constexpr (detail::rows_split<K>) {
    if (g.warp_rows)
      detail::cuda_rows_by_warp<K><<<g.blocks, cuda_block_threads, 0, stream>>>(kernel, rows, g.rows_at_once);
    else
      detail::cuda_rows_by_parts<K><<<g.blocks, cuda_block_threads, 0, stream>>>(kernel, rows, g.rows_at_once, g.parts);
  } else if (g.warp_rows) {
    detail::cuda_rows_by_warp<K><<<g.blocks, cuda_block_threads, 0, stream>>>(kernel, rows, g.rows_at_once);
  } else {
    detail::cuda_rows_by_block<K><<<g.blocks, cuda_block_threads, 0, stream>>>(kernel, rows, g.rows_at_once);
  }
  check_cuda(cudaGetLastError(), "launch of a kernel", at);
}

template <class K>
void cuda_backend::launch(std::int64_t rows, K const& kernel, std::int64_t row_work, std::source_location at) {
  launch_on(stream(), rows, kernel, row_work, at);
}

template <class K>
void cuda_backend::launch_blocks(std::int64_t blocks, K const& kernel, std::source_location at) {
  launch_blocks_on(stream(), blocks, kernel, at);
}

}}  // namespace neap::v0
