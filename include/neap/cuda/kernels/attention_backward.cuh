// The backward pass of attention on tensor cores, after FlashAttention-2 (Dao 2023), by one kernel for a tile of queries
// (dq) and one for a tile of keys (dk, dv): sums have one order, none is an atomic addition.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/cuda/kernels/attention_problem.cuh>
#include <neap/cuda/kernels/attention_tiles.cuh>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// dq of a tile of queries, or dk and dv of a tile of keys (OfKeys). With own = (q, dy) or (k, v) and other = (k, v) or
/// (q, dy), both compute s = own.first other.first^T and dp = own.second other.second^T, and add ds other.first and, of
/// keys, p other.second. The tile of keys computes what is transposed, so p and ds are left operands as they are.
template <class T, int Width, bool OfKeys>
struct attention_backward {
  using cut = attention_cut<T, Width>;
  static constexpr int M = cut::backward_mma_rows, threads = 32 * cut::backward_warps,
                       own_rows = 16 * M * cut::backward_warps, others = cut::backward_others,
                       stages = cut::backward_stages;
  static constexpr int columns_of_block = OfKeys ? cut::columns_at_once : Width, parts = Width / columns_of_block;
  static constexpr int numbers_bytes = OfKeys ? others * 8 : 0;  // of a stage: of each query, lse and delta
  static constexpr int shared_bytes =
      2 * (own_rows + stages * others) * Width * int{sizeof(T)} + stages * numbers_bytes;
  static constexpr int blocks_at_once = shared_bytes > (80 << 10) ? 1 : 2;
  static constexpr int tiles = others / 8, columns = columns_of_block / 8;

  attention_problem p;
  attention_rows<T const> q, k, v, dy;
  attention_row_numbers<float> const* numbers;  // [B, H, T], lse in units of log 2
  attention_rows<T> dq, dk, dv;                 // those that this kernel computes

  std::int64_t tiles_of_head() const { return ((OfKeys ? p.keys : p.queries) + own_rows - 1) / own_rows; }
  std::int64_t blocks() const { return p.batch * (OfKeys ? p.key_heads : p.heads) * tiles_of_head() * parts; }

#if defined(__CUDACC__)
  using tile = attention_tile<T, Width>;
  __device__ void operator()(unsigned char* shared) const {
#if defined(__CUDA_ARCH__)
    constexpr int other_bytes = others * tile::row_bytes;
    int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    tile const own_first{shared_address(shared)}, own_second{own_first.base + own_rows * tile::row_bytes};
    std::uint32_t const stage_base = own_second.base + own_rows * tile::row_bytes,
                        numbers_base = stage_base + stages * 2 * other_bytes;
    auto const first_of = [=](int stage) { return tile{stage_base + stage * 2 * other_bytes}; };
    auto const second_of = [=](int stage) { return tile{stage_base + (stage * 2 + 1) * other_bytes}; };

    std::int64_t const of_head = (((OfKeys ? p.keys : p.queries) + own_rows - 1) / own_rows) * parts,
                       nth = blockIdx.x % of_head / parts, own_head = blockIdx.x / of_head;
    int const column = static_cast<int>(blockIdx.x % parts) * columns_of_block;
    // The longest tiles of causal attention come first: the first keys, the last queries.
    std::int64_t const own = (p.causal && !OfKeys ? of_head / parts - 1 - nth : nth) * own_rows;
    std::int64_t const heads_here = OfKeys ? p.key_heads : p.heads, group = p.heads / p.key_heads;
    std::int64_t const b = own_head / heads_here, h = own_head % heads_here;

    // Tiles of the other side, for each head of queries that a head of keys serves.
    int const other_begin = OfKeys && p.causal ? static_cast<int>(own / others) : 0,
              other_end = static_cast<int>(((OfKeys     ? p.queries
                                             : p.causal ? min(p.keys, own + own_rows)
                                                        : p.keys) +
                                            others - 1) /
                                           others);
    // The tile that is computed, and the one that is loaded.
    struct place {
      int tile, head;
    };
    auto const advance = [=](place& at) {
      if (++at.tile == other_end) at.tile = other_begin, ++at.head;
    };
    int const heads_end = other_end <= other_begin ? 0 : OfKeys ? static_cast<int>(group) : 1;

    auto const load = [&](place const& what, int stage) {
      load_other(first_of(stage), second_of(stage), numbers_base + static_cast<std::uint32_t>(stage * numbers_bytes), b,
                 OfKeys ? h * group + what.head : h / group, std::int64_t{what.tile} * others);
    };
    load_own(own_first, own_second, b, h, own);
    place loaded{other_begin, 0};
    if (heads_end > 0) load(loaded, 0);
    commit_copies();

    int const row = warp * 16 * M;  // of the own tile
    float to_first[M][columns][4] = {}, to_second[OfKeys ? M : 1][OfKeys ? columns : 1][4] = {};
    attention_row_numbers<float> of_row[M][2];  // of queries
    if constexpr (!OfKeys) {
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          std::int64_t const query = own + row + 16 * m + lane / 4 + 8 * half;
          if (query < p.queries) of_row[m][half] = numbers[(b * p.heads + h) * p.queries + query];
          else of_row[m][half] = {0, 0};
        }
    }

    int stage = 0;
    for (place now{other_begin, 0}; heads_end > now.head; advance(now)) {
      wait_copies<0>();
      __syncthreads();  // this stage has come, and the other one is used
      advance(loaded);
      if constexpr (stages == 2) {
        if (heads_end > loaded.head) load(loaded, 1 - stage);
        commit_copies();
      }
      std::int64_t const other = std::int64_t{now.tile} * others;
      tile const first = first_of(stage), second = second_of(stage);
      float s[M][tiles][4] = {}, ds[M][tiles][4] = {};
      add_products_by_rows(s, own_first, row, first, lane);
      add_products_by_rows(ds, own_second, row, second, lane);

      // Columns below `left` are there. Causal: column c belongs to row r where the query is not before the key.
      int const left = static_cast<int>(min((OfKeys ? p.queries : p.keys) - other, std::int64_t{others})),
                ahead = static_cast<int>(own - other);
      bool const partly =
          left < others || (p.causal && (OfKeys ? ahead + row + 16 * M - 1 > 0 : ahead + row < others - 1));
#pragma unroll
      for (int n = 0; n < tiles; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          int const c = 8 * n + 2 * (lane % 4) + j;
          attention_row_numbers<float> of_column{0, 0};
          if constexpr (OfKeys)
            asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
                         : "=f"(of_column.lse), "=f"(of_column.delta)
                         : "r"(numbers_base + static_cast<std::uint32_t>(stage * numbers_bytes + 8 * c))
                         : "memory");
#pragma unroll
          for (int m = 0; m < M; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              auto const of = OfKeys ? of_column : of_row[m][half];
              float &x = s[m][n][2 * half + j], &d = ds[m][n][2 * half + j];
              x = exp2_of(x * p.scale_log2 - of.lse);
              d = x * (d - of.delta);
              if (partly) {
                int const r = ahead + row + 16 * m + lane / 4 + 8 * half;
                bool const visible = c < left && (!p.causal || (OfKeys ? r <= c : c <= r));
                x = visible ? x : 0;
                d = visible ? d : 0;
              }
            }
        }
      if constexpr (OfKeys) add_products_of_sums(to_second, s, second, column, lane);
      add_products_of_sums(to_first, ds, first, column, lane);
      if constexpr (stages == 1) {
        __syncthreads();  // this stage is used
        if (heads_end > loaded.head) load(loaded, 0);
        commit_copies();
      } else {
        stage = 1 - stage;
      }
    }
    wait_copies<0>();

    store(to_first, to_second, b, h, own + row, column, lane);
#endif
  }
#endif
 private:
#if defined(__CUDA_ARCH__)
  __device__ __forceinline__ void load_own(tile first, tile second, std::int64_t b, std::int64_t h,
                                           std::int64_t own) const {
    int const depth = static_cast<int>(p.depth), value_depth = static_cast<int>(p.value_depth);
    if constexpr (OfKeys) {
      first.template load<own_rows, threads>(k.at(b, h, own), k.row, p.keys - own, depth, k.packs);
      second.template load<own_rows, threads>(v.at(b, h, own), v.row, p.keys - own, value_depth, v.packs);
    } else {
      first.template load<own_rows, threads>(q.at(b, h, own), q.row, p.queries - own, depth, q.packs);
      second.template load<own_rows, threads>(dy.at(b, h, own), dy.row, p.queries - own, value_depth, dy.packs);
    }
  }
  /// A tile of the other side, from row `other` of head h on.
  __device__ __forceinline__ void load_other(tile first, tile second, std::uint32_t numbers_here, std::int64_t b,
                                             std::int64_t h, std::int64_t other) const {
    int const depth = static_cast<int>(p.depth), value_depth = static_cast<int>(p.value_depth);
    if constexpr (OfKeys) {
      std::int64_t const left = p.queries - other;
      first.template load<others, threads>(q.at(b, h, other), q.row, left, depth, q.packs);
      second.template load<others, threads>(dy.at(b, h, other), dy.row, left, value_depth, dy.packs);
      auto const* const from = numbers + (b * p.heads + h) * p.queries + other;
      int const r = static_cast<int>(threadIdx.x);
      if (r < others)
        copy_async<8>(numbers_here + static_cast<std::uint32_t>(8 * r), r < left ? from + r : from, r < left ? 8 : 0);
    } else {
      std::int64_t const left = p.keys - other;
      first.template load<others, threads>(k.at(b, h, other), k.row, left, depth, k.packs);
      second.template load<others, threads>(v.at(b, h, other), v.row, left, value_depth, v.packs);
    }
  }
  /// The rows of the own side from `from` on.
  __device__ __forceinline__ void store(float const (&to_first)[M][columns][4],
                                        float const (&to_second)[OfKeys ? M : 1][OfKeys ? columns : 1][4],
                                        std::int64_t b, std::int64_t h, std::int64_t from, int column, int lane) const {
    int const depth = static_cast<int>(p.depth), value_depth = static_cast<int>(p.value_depth);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::int64_t const mine = from + 16 * m + lane / 4 + 8 * half;
        if (mine >= (OfKeys ? p.keys : p.queries)) continue;
        attention_rows<T> const& first = OfKeys ? dk : dq;
#pragma unroll
        for (int n = 0; n < columns; ++n) {
          int const c = column + 8 * n + 2 * (lane % 4);
          store_two(first.at(b, h, mine), c, depth, to_first[m][n][2 * half] * p.scale,
                    to_first[m][n][2 * half + 1] * p.scale, first.pairs);
          if constexpr (OfKeys)
            store_two(dv.at(b, h, mine), c, value_depth, to_second[m][n][2 * half], to_second[m][n][2 * half + 1],
                      dv.pairs);
        }
      }
  }
#endif
};

}}}  // namespace neap::v0::detail
