// Kernels of one warp that use each wrapper of cuda/mma.cuh once.
#pragma once

#include <neap/cuda/mma.cuh>

#include <cstdint>

namespace neap::testing {

template <class T>
inline constexpr int mma_depth = sizeof(T) == 4 ? 8 : 16;

/// c [16, 8] = a [16, k] b [k, 8], where k is 16 for T of 2 bytes and 8 for f32, of which a row has `valid` bytes: the rest
/// is taken as zeros. b comes by rows, or for f32 as its transpose [8, k]. f32 is split into pairs of tf32.
template <class T, int Matrices>
struct mma_product {
  static constexpr int threads = 32, blocks_at_once = 1, depth = mma_depth<T>, row_bytes = 32,
                       shared_bytes = 64 * 16 + 64 * 16;
  T const *a, *b;
  float* c;
  int valid;

#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* room) const {
#if defined(__CUDA_ARCH__)
    using namespace detail;
    int const lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
    std::uint32_t const at_a = shared_address(room), at_b = at_a + 64 * 16;
    // 16 rows of 32 bytes, the two chunks of each in a swizzled row of four.
    auto const place = [&](std::uint32_t base, int row, int chunk) {
      return base + 16 * static_cast<std::uint32_t>(swizzled<4>(row, chunk));
    };
    int const row = lane / 2, chunk = lane % 2, left = max(0, min(16, valid - 16 * chunk));
    copy_async<16>(place(at_a, row, chunk), reinterpret_cast<char const*>(a) + row * row_bytes + 16 * chunk, left);
    commit_copies();
    if constexpr (sizeof(T) == 4) {
      if (row < 8) {
        char const* const from = reinterpret_cast<char const*>(b) + row * row_bytes + 16 * chunk;
        for (int part = 0; part < 2; ++part)
          copy_async<8>(place(at_b, row, chunk) + 8 * part, from + 8 * part, max(0, min(8, left - 8 * part)));
      }
    } else {  // rows of 16 bytes
      if (lane < depth)
        for (int part = 0; part < 4; ++part)
          copy_async<4>(place(at_b, lane, 0) + 4 * part, reinterpret_cast<char const*>(b) + lane * 16 + 4 * part);
    }
    commit_copies();
    wait_copies<1>();
    wait_copies<0>();
    __syncthreads();

    std::uint32_t fa[4];
    if constexpr (Matrices == 4) {
      load_matrices(fa, place(at_a, lane % 16, lane / 16));
    } else if constexpr (Matrices == 2) {
      for (int half = 0; half < 2; ++half) {
        std::uint32_t two[2];
        load_matrices(two, place(at_a, lane % 16, half));
        fa[2 * half] = two[0], fa[2 * half + 1] = two[1];
      }
    } else {
      for (int i = 0; i < 4; ++i) {
        std::uint32_t one[1];
        load_matrices(one, place(at_a, lane % 8 + i % 2 * 8, i / 2));
        fa[i] = one[0];
      }
    }
    float sum[4] = {};
    if constexpr (sizeof(T) == 4) {
      std::uint32_t fb[2];
      load_matrices(fb, place(at_b, lane % 8, lane / 8 % 2));
      std::uint32_t high[4], low[4];
      for (int i = 0; i < 4; ++i) {
        tf32_pair const p = split_tf32(__uint_as_float(fa[i]));
        high[i] = p.high, low[i] = p.low;
      }
      tf32_pair const b0 = split_tf32(__uint_as_float(fb[0])), b1 = split_tf32(__uint_as_float(fb[1]));
      multiply_16x8x8(sum, low, b0.high, b1.high);
      multiply_16x8x8(sum, high, b0.low, b1.low);
      multiply_16x8x8(sum, high, b0.high, b1.high);
    } else {
      std::uint32_t fb[2];
      if constexpr (Matrices == 1) {
        for (int i = 0; i < 2; ++i) {
          std::uint32_t one[1];
          load_transposed(one, place(at_b, lane % 8 + 8 * i, 0));
          fb[i] = one[0];
        }
      } else if constexpr (Matrices == 2) {
        load_transposed(fb, place(at_b, lane % 16, 0));
      } else {
        std::uint32_t four[4];  // the same two matrices twice
        load_transposed(four, place(at_b, lane % 16, 0));
        fb[0] = four[2], fb[1] = four[3];
      }
      multiply_16x8x16<T>(sum, fa, fb[0], fb[1]);
    }
    for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
#endif
  }
#endif
};

/// Pairs of x rounded to T.
template <class T>
struct mma_pack {
  static constexpr int threads = 32, blocks_at_once = 1, shared_bytes = 0;
  float const* x;
  std::uint32_t* y;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char*) const {
#if defined(__CUDA_ARCH__)
    y[threadIdx.x] = detail::pack_two<T>(x[2 * threadIdx.x], x[2 * threadIdx.x + 1]);
#endif
  }
#endif
};

}  // namespace neap::testing
