// The forward pass of attention on tensor cores: a thread block has a tile of queries and meets the keys tile after tile,
// with scores in registers and an online softmax (FlashAttention-2, Dao 2023). Copies of the next tile of keys run while
// values are multiplied, those of values while scores are.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/cuda/kernels/attention_problem.cuh>
#include <neap/cuda/kernels/attention_tiles.cuh>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// y and, if it has data, lse of a tile of 16 * mma_rows * warps queries.
template <class T, int Width>
struct attention_forward {
  using cut = attention_cut<T, Width>;
  static constexpr int M = cut::forward_mma_rows, threads = 32 * cut::forward_warps,
                       queries_of_block = 16 * M * cut::forward_warps, others = cut::forward_others;
  static constexpr int shared_bytes = (queries_of_block + 2 * others) * Width * int{sizeof(T)};
  static constexpr int blocks_at_once = shared_bytes > (80 << 10) ? 1 : 2;
  static constexpr int tiles = others / 8, columns = Width / 8;

  attention_problem p;
  attention_rows<T const> q, k, v;
  attention_rows<T> y;
  attention_sums<float> lse;

  std::int64_t blocks() const { return p.batch * p.heads * p.tiles_of_queries(queries_of_block); }

#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const {
#if defined(__CUDA_ARCH__)
    using tile = attention_tile<T, Width>;
    using fragments = attention_fragments<T>;
    constexpr int steps = Width / fragments::depth;
    constexpr bool keep_queries = M * steps * int{sizeof(typename fragments::left)} <= 32 * 4;
    int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    tile const q_tile{shared_address(shared)}, k_tile{q_tile.base + queries_of_block * tile::row_bytes},
        v_tile{k_tile.base + others * tile::row_bytes};

    // The longest tiles of causal attention, the last ones, come first.
    std::int64_t const of_head = p.tiles_of_queries(queries_of_block), head = blockIdx.x / of_head,
                       nth = blockIdx.x % of_head;
    std::int64_t const first = (p.causal ? of_head - 1 - nth : nth) * queries_of_block;
    std::int64_t const b = head / p.heads, h = head % p.heads, kh = h / (p.heads / p.key_heads);
    std::int64_t const seen = p.causal ? min(p.keys, first + queries_of_block) : p.keys;
    int const count = static_cast<int>((seen + others - 1) / others);

    auto const load = [&](tile to, attention_rows<T const> const& from, int i, std::int64_t width) {
      std::int64_t const key = std::int64_t{i} * others;
      to.template load<others, threads>(from.at(b, kh, key), from.row, p.keys - key, static_cast<int>(width),
                                        from.packs);
    };
    q_tile.template load<queries_of_block, threads>(q.at(b, h, first), q.row, p.queries - first,
                                                    static_cast<int>(p.depth), q.packs);
    load(k_tile, k, 0, p.depth);
    commit_copies();

    float out[M][columns][4] = {};
    row_sums sums;
#pragma unroll
    for (int m = 0; m < M; ++m) sums.most[m][0] = sums.most[m][1] = -INFINITY;
    int const row = warp * 16 * M;  // of the tile
    typename fragments::left kept[keep_queries ? M : 1][keep_queries ? steps : 1];

    for (int i = 0; i < count; ++i) {
      wait_copies<0>();
      __syncthreads();  // the keys have come, and the values before them are used
      load(v_tile, v, i, p.value_depth);
      commit_copies();
      float s[M][tiles][4] = {};
      if constexpr (keep_queries) {
        if (i == 0) {
          std::uint32_t const first_q = fragments::first_rows(q_tile, row, lane);
#pragma unroll
          for (int m = 0; m < M; ++m)
#pragma unroll
            for (int step = 0; step < steps; ++step) kept[m][step] = fragments::rows(q_tile, first_q, 16 * m, step);
        }
        std::uint32_t const first_k = fragments::first_columns_of_rows(k_tile, lane);
#pragma unroll
        for (int step = 0; step < steps; ++step)
#pragma unroll
          for (int n = 0; n < tiles / 2; ++n) {
            auto const x = fragments::columns_of_rows(k_tile, first_k, 16 * n, step);
#pragma unroll
            for (int m = 0; m < M; ++m) {
              fragments::multiply(s[m][2 * n], kept[m][step], x, 0);
              fragments::multiply(s[m][2 * n + 1], kept[m][step], x, 1);
            }
          }
      } else {
        add_products_by_rows(s, q_tile, row, k_tile, lane);
      }
      wait_copies<0>();
      __syncthreads();  // the values have come, and the keys are used
      if (i + 1 < count) load(k_tile, k, i + 1, p.depth);
      commit_copies();

      std::int64_t const key = std::int64_t{i} * others;
      int const keys_left = static_cast<int>(min(p.keys - key, std::int64_t{others})),
                before = p.causal ? static_cast<int>(first - key) + 1 : others;
      weigh(s, out, sums, row, keys_left, before, lane);
      add_products_of_sums(out, s, v_tile, 0, lane);
    }

    store(out, sums, b, h, first + row, lane);
#endif
  }
#endif
 private:
#if defined(__CUDACC__)
  /// Of each row: the largest score so far, and the sum of exp2(score - most).
  struct row_sums {
    float most[M][2], sum[M][2] = {};
  };
#if defined(__CUDA_ARCH__)
  /// Scores become weights by the running maximum, and `out` what it is for that maximum. Row r of the tile sees the
  /// columns below keys_left and below `before` + r.
  __device__ __forceinline__ void weigh(float (&s)[M][tiles][4], float (&out)[M][columns][4], row_sums& sums, int row,
                                        int keys_left, int before, int lane) const {
    bool const partly = keys_left < others || before + row < others;
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // How many of the columns the row sees.
        int const of_tile = row + 16 * m + lane / 4 + 8 * half, visible = min(keys_left, before + of_tile);
        float& top = sums.most[m][half];
        float now = top;
#pragma unroll
        for (int n = 0; n < tiles; ++n)
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& x = s[m][n][2 * half + j];
            x *= p.scale_log2;
            if (partly && 8 * n + 2 * (lane % 4) + j >= visible) x = -INFINITY;
            now = fmaxf(now, x);
          }
        now = over_quad(now, [](float x, float z) { return fmaxf(x, z); });
        float const correction = exp2_of(top - now);
        float part = 0;
#pragma unroll
        for (int n = 0; n < tiles; ++n)
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& x = s[m][n][2 * half + j];
            x = exp2_of(x - now);
            part += x;
          }
        sums.sum[m][half] = sums.sum[m][half] * correction + part;
        top = now;
#pragma unroll
        for (int n = 0; n < columns; ++n) {
          out[m][n][2 * half] *= correction;
          out[m][n][2 * half + 1] *= correction;
        }
      }
  }
  /// The rows from query `first` on, divided by their sums.
  __device__ __forceinline__ void store(float const (&out)[M][columns][4], row_sums const& sums, std::int64_t b,
                                        std::int64_t h, std::int64_t first, int lane) const {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float const total = over_quad(sums.sum[m][half], [](float x, float z) { return x + z; }), inverse = 1 / total;
        std::int64_t const query = first + 16 * m + lane / 4 + 8 * half;
        if (query >= p.queries) continue;
        T* const to = y.at(b, h, query);
#pragma unroll
        for (int n = 0; n < columns; ++n)
          store_two(to, 8 * n + 2 * (lane % 4), static_cast<int>(p.value_depth), out[m][n][2 * half] * inverse,
                    out[m][n][2 * half + 1] * inverse, y.pairs);
        if (lse.data && lane % 4 == 0) *lse.at(b, h, query) = sums.most[m][half] * 0.693147180559945309f + logf(total);
      }
  }
#endif
#endif
};

}}}  // namespace neap::v0::detail
