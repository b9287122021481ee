// What products of tiles on a GPU share, be they of matrices or of images: tiles in shared memory, copies into them, their
// multiplication, and the ring of tiles along k. gemm.hpp has the sizes, and why they are such.
//
// A copier brings tiles from global to shared memory: next(address) begins the copy of the next one along k. A tile_product
// multiplies tiles: step(shared, place_a, place_b), then for_each gives the sums.
#pragma once

#include <neap/core/element.hpp>
#include <neap/cuda/mma.cuh>

#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

// ---- tensor cores
//
// A tile in shared memory has Lines lines of Length elements, as they lie in global memory, in packs of 8 elements (16
// bytes) whose places in a line are permuted (swizzled, mma.cuh).

/// Where a pack of a line lies, in bytes.
template <int Length>
__device__ inline std::uint32_t pack_place(int line, int pack) {
  return static_cast<std::uint32_t>(swizzled<Length / 8>(line, pack)) * 16;
}

/// Four 8 x 8 matrices as they lie in shared memory, or transposed.
template <bool Transposed>
__device__ inline void load_fragments(std::uint32_t (&r)[4], std::uint32_t line) {
  if constexpr (Transposed) load_transposed(r, line);
  else load_matrices(r, line);
}

/// 16 bytes of registers.
__device__ inline void store_pack(std::uint32_t to, std::uint32_t const (&word)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]),
               "r"(word[3])
               : "memory");
}

/// Copies tiles of a matrix of 16-bit elements to shared memory, along k; what lies beyond the matrix becomes zero.
/// AlongLines: lines are steps of k, else packs are.
template <class T, int Lines, int Length, int Threads, bool AlongLines>
class tile_copier {
 public:
  /// `begin`: the first element of the first tile; `room`: how far the matrix goes on from there across k; `depth`: how far
  /// along k; `packs`: all lines begin at multiples of 16 bytes.
  __device__ tile_copier(T const* begin, std::int64_t ld, std::int64_t room, int depth, bool packs)
      : from_(begin + first_line() * ld + pack() * 8),
        ld_(ld),
        room_(static_cast<int>(min(room, std::int64_t{AlongLines ? Length : Lines}))),
        left_(depth),
        packs_(packs) {}

  /// Begins the copy of the next tile.
  __device__ void next(std::uint32_t to) {
#pragma unroll
    for (int r = 0; r < count; ++r) {
      int const line = first_line() + r * lines_at_once;
      bool const is_inside = AlongLines ? line < left_ : line < room_;
      int const n = is_inside ? min(max((AlongLines ? room_ : left_) - pack() * 8, 0), 8) : 0;
      copy(to + pack_place<Length>(line, pack()), from_ + r * lines_at_once * ld_, n);
    }
    from_ += AlongLines ? Lines * ld_ : Length;
    left_ -= AlongLines ? Lines : Length;
  }

 private:
  static constexpr int per_line = Length / 8, lines_at_once = Threads / per_line, count = Lines / lines_at_once;
  static_assert(Threads % per_line == 0 && Lines % lines_at_once == 0);

  __device__ static int pack() { return static_cast<int>(threadIdx.x) % per_line; }
  __device__ static int first_line() { return static_cast<int>(threadIdx.x) / per_line; }

  /// n elements of a pack.
  __device__ void copy(std::uint32_t to, T const* from, int n) const {
    if (packs_) return copy_async<16>(to, from, n * 2);
    std::uint32_t word[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t const low = 2 * j < n ? from[2 * j].bits : 0, high = 2 * j + 1 < n ? from[2 * j + 1].bits : 0;
      word[j] = low | high << 16;
    }
    store_pack(to, word);
  }

  T const* from_;
  std::int64_t ld_;
  int room_, left_;
  bool packs_;
};

/// A product on tensor cores: of tiles as tile_copier leaves them, [Side, depth] (transposed: [depth, Side]) and
/// [depth, Side] (transposed: [Side, depth]).
template <class T, bool TransposeA, bool TransposeB, int Side>
class tensor_core_product {
 public:
  static constexpr int depth = 32, stages = 3;  // steps of k of a tile; tiles in the ring
  static constexpr int warp_rows = Side == 128 ? 64 : 32, warp_columns = 32;
  static constexpr int threads = Side / warp_rows * (Side / warp_columns) * 32;
  static constexpr int tile_bytes = Side * depth * 2;

  __device__ void step(unsigned char const* shared, int place_a, int place_b) {
    constexpr int length_a = TransposeA ? Side : depth, length_b = TransposeB ? depth : Side;
    std::uint32_t const tile_a = shared_address(shared) + static_cast<std::uint32_t>(place_a),
                        tile_b = shared_address(shared) + static_cast<std::uint32_t>(place_b);
    int const lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int kk = 0; kk < depth; kk += 16) {
      std::uint32_t a[2][4], b[tiles_n / 2][4];  // a: of this row of tiles and the next; b: of two neighbouring tiles
      auto const load_a = [&](int i) {
        int const row = row0() + i * 16;
        load_fragments<TransposeA>(
            a[i % 2],
            tile_a + (TransposeA ? pack_place<length_a>(kk + (lane & 7) + (lane >> 4) * 8, row / 8 + (lane >> 3 & 1))
                                 : pack_place<length_a>(row + (lane & 15), kk / 8 + (lane >> 4))));
      };
#pragma unroll
      for (int j = 0; j < tiles_n / 2; ++j) {
        int const column = column0() + j * 16;
        load_fragments<!TransposeB>(
            b[j],
            tile_b + (TransposeB ? pack_place<length_b>(column + (lane & 7) + (lane >> 4) * 8, kk / 8 + (lane >> 3 & 1))
                                 : pack_place<length_b>(kk + (lane & 15), column / 8 + (lane >> 4))));
      }
      load_a(0);
#pragma unroll
      for (int i = 0; i < tiles_m; ++i) {
        if (i + 1 < tiles_m) load_a(i + 1);
#pragma unroll
        for (int j = 0; j < tiles_n; ++j)
          multiply_16x8x16<T>(sum_[i][j], a[i % 2], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

  /// f(row, column, sums of two neighbours of that row) for this thread's part of the tile.
  template <class F>
  __device__ void for_each(F const& f) const {
    int const lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < tiles_m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < tiles_n; ++j) {
          float const two[2] = {sum_[i][j][half * 2], sum_[i][j][half * 2 + 1]};
          f(row0() + i * 16 + half * 8 + lane / 4, column0() + j * 8 + lane % 4 * 2, two);
        }
  }

 private:
  static constexpr int tiles_m = warp_rows / 16, tiles_n = warp_columns / 8;
  float sum_[tiles_m][tiles_n][4] = {};

  __device__ static int row0() { return static_cast<int>(threadIdx.x) / 32 % (Side / warp_rows) * warp_rows; }
  __device__ static int column0() { return static_cast<int>(threadIdx.x) / 32 / (Side / warp_rows) * warp_columns; }
};

// ---- multiply-adds
//
// A tile in shared memory is [depth][Side], whatever way it lies in global memory: single elements are copied, which
// demands no alignment. Where memory goes along k, a warp copies 8 steps of 4 lines, which have 32 different banks.

/// Copies tiles of a matrix to shared memory as [depth][Side], along k; what lies beyond the matrix becomes zero.
template <class T, int Side, int Depth, int Line, int Threads, bool AlongLines, int LanesOfK = 8>
class element_copier {
 public:
  __device__ element_copier(T const* begin, std::int64_t ld, std::int64_t room, int depth)
      : from_(begin + (AlongLines ? first_k() * ld + first_i() : first_i() * ld + first_k())),
        ld_(ld),
        inside_(static_cast<int>(min(room, std::int64_t{Side}))),
        left_(depth) {}

  __device__ void next(std::uint32_t to) {
#pragma unroll
    for (int r = 0; r < count; ++r) {
      int const more_i = AlongLines ? 0 : r / parts_of_k * lines_at_once,
                more_k = AlongLines ? r * steps_at_once : r % parts_of_k * LanesOfK;
      int const i = first_i() + more_i, k = first_k() + more_k;
      T const* const from = from_ + (AlongLines ? more_k * ld_ : more_i * ld_ + more_k);
      bool const is_inside = i < inside_ && k < left_;
      copy_async<sizeof(T)>(to + static_cast<std::uint32_t>((k * Line + i) * sizeof(T)), from,
                            is_inside ? static_cast<int>(sizeof(T)) : 0);
    }
    from_ += AlongLines ? Depth * ld_ : Depth;
    left_ -= Depth;
  }

 private:
  static constexpr int count = Side * Depth / Threads;
  static constexpr int parts_of_k = Depth / LanesOfK, lines_at_once = Threads / LanesOfK;  // along k
  static constexpr int steps_at_once = Threads / Side;                                     // along lines
  static_assert(Depth % LanesOfK == 0 && Threads % Side == 0);

  __device__ static int first_i() {
    int const thread = static_cast<int>(threadIdx.x);
    return AlongLines ? thread % Side : thread / LanesOfK;
  }
  __device__ static int first_k() {
    int const thread = static_cast<int>(threadIdx.x);
    return AlongLines ? thread / Side : thread % LanesOfK;
  }

  T const* from_;
  std::int64_t ld_;
  int inside_, left_;
};

/// A product by multiply-adds of tiles [depth, Side] as element_copier leaves them. A thread makes Side / 16 rows and as
/// many columns, in packs of 16 bytes.
template <class T, int Side>
class fma_product {
 public:
  static constexpr int depth = 16, stages = 2;
  static constexpr int threads = 256;
  static constexpr int pack = 16 / int{sizeof(T)};
  static constexpr int line = Side + pack;  // elements from a step of k to the next: no banks conflict
  static constexpr int tile_bytes = depth * line * int{sizeof(T)};

  __device__ void step(unsigned char const* shared, int place_a, int place_b) {
    auto const* const tile_a = shared + place_a;
    auto const* const tile_b = shared + place_b;
#pragma unroll(Side == 128 ? 2 : depth)  // more of a large tile would spill registers
    for (int kk = 0; kk < depth; ++kk) {
      vector a[packs], b[packs];
#pragma unroll
      for (int g = 0; g < packs; ++g) {
        int const at = kk * line + g * 16 * pack;
        a[g] = __builtin_bit_cast(vector, *reinterpret_cast<uint4 const*>(tile_a + (at + row0()) * sizeof(T)));
        b[g] = __builtin_bit_cast(vector, *reinterpret_cast<uint4 const*>(tile_b + (at + column0()) * sizeof(T)));
      }
#pragma unroll
      for (int i = 0; i < own; ++i)
#pragma unroll
        for (int j = 0; j < own; ++j) sum_[i][j] = fma(a[i / pack].at[i % pack], b[j / pack].at[j % pack], sum_[i][j]);
    }
  }

  /// f(row, column, sums of a pack of neighbours of that row) for this thread's part of the tile.
  template <class F>
  __device__ void for_each(F const& f) const {
#pragma unroll
    for (int i = 0; i < own; ++i)
#pragma unroll
      for (int g = 0; g < packs; ++g) {
        T neighbours[pack];
#pragma unroll
        for (int j = 0; j < pack; ++j) neighbours[j] = sum_[i][g * pack + j];
        f(i / pack * 16 * pack + row0() + i % pack, g * 16 * pack + column0(), neighbours);
      }
  }

 private:
  static constexpr int own = Side / 16, packs = own / pack;
  struct alignas(16) vector {
    T at[pack];
  };
  T sum_[own][own] = {};

  // A warp has 4 x 8 threads of the 16 x 16: it reads 4 + 8 different packs.
  __device__ static int row0() {
    return (static_cast<int>(threadIdx.x) / 64 * 4 + static_cast<int>(threadIdx.x) % 32 / 8) * pack;
  }
  __device__ static int column0() {
    return (static_cast<int>(threadIdx.x) / 32 % 2 * 8 + static_cast<int>(threadIdx.x) % 8) * pack;
  }
};

/// A product of f32 on tensor cores, with operands rounded to tf32: of tiles [depth, Side] as element_copier leaves them, 4
/// lanes of a warp along k.
template <int Side>
class tf32_product {
 public:
  static constexpr int depth = 16, stages = 2, lanes_of_k = 4;
  static constexpr int warp_rows = Side == 128 ? 64 : 32, warp_columns = 32;
  static constexpr int threads = Side / warp_rows * (Side / warp_columns) * 32;
  static constexpr int line = Side + 8;  // elements from a step of k to the next: no banks conflict
  static constexpr int tile_bytes = depth * line * 4;

  __device__ void step(unsigned char const* shared, int place_a, int place_b) {
    auto const* const tile_a = reinterpret_cast<float const*>(shared + place_a);
    auto const* const tile_b = reinterpret_cast<float const*>(shared + place_b);
    int const group = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int kk = 0; kk < depth; kk += 8) {
      std::uint32_t b[tiles_n][2];
#pragma unroll
      for (int j = 0; j < tiles_n; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          b[j][half] = to_tf32(tile_b[(kk + half * 4 + t) * line + column0() + j * 8 + group]);
#pragma unroll
      for (int i = 0; i < tiles_m; ++i) {
        std::uint32_t a[4];
#pragma unroll
        for (int r = 0; r < 4; ++r)
          a[r] = to_tf32(tile_a[(kk + r / 2 * 4 + t) * line + row0() + i * 16 + r % 2 * 8 + group]);
#pragma unroll
        for (int j = 0; j < tiles_n; ++j) multiply_16x8x8(sum_[i][j], a, b[j][0], b[j][1]);
      }
    }
  }

  /// f(row, column, sums of two neighbours of that row) for this thread's part of the tile.
  template <class F>
  __device__ void for_each(F const& f) const {
    int const group = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int i = 0; i < tiles_m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < tiles_n; ++j) {
          float const two[2] = {sum_[i][j][half * 2], sum_[i][j][half * 2 + 1]};
          f(row0() + i * 16 + half * 8 + group, column0() + j * 8 + t * 2, two);
        }
  }

 private:
  static constexpr int tiles_m = warp_rows / 16, tiles_n = warp_columns / 8;
  float sum_[tiles_m][tiles_n][4] = {};

  __device__ static int row0() { return static_cast<int>(threadIdx.x) / 32 % (Side / warp_rows) * warp_rows; }
  __device__ static int column0() { return static_cast<int>(threadIdx.x) / 32 / (Side / warp_rows) * warp_columns; }
};

/// Multiplies `steps` tiles along k, which pass through a ring of Product::stages pairs in shared memory.
template <class Product, class CopyA, class CopyB>
__device__ void multiply_along_k(Product& product, unsigned char* shared, int steps, CopyA& a, CopyB& b) {
  constexpr int stages = Product::stages, tile_bytes = Product::tile_bytes;
  auto const place_of = [](int step) { return step % stages * 2 * tile_bytes; };
  auto const copy = [&](int step) {
    std::uint32_t const to = shared_address(shared) + static_cast<std::uint32_t>(place_of(step));
    a.next(to);
    b.next(to + tile_bytes);
  };
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) {
    if (i < steps) copy(i);
    commit_copies();
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_copies<stages - 2>();
    __syncthreads();  // this step's tiles are there for all threads, and all are done with those of the last step
    if (step + stages - 1 < steps) copy(step + stages - 1);
    commit_copies();
    product.step(shared, place_of(step), place_of(step) + tile_bytes);
  }
}

}}}  // namespace neap::v0::detail
