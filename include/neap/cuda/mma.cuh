// Products of small matrices by a warp on tensor cores (mma.sync), and what brings their operands: copies from global to
// shared memory without registers (cp.async), and loads of 8x8 matrices (ldmatrix). For sm_80 and newer. Fragments are
// laid out as the PTX manual says; g = lane / 4 and t = lane % 4 below.
//
//   A of m16n8k16 (2-byte elements): a0 rows g, a1 rows g + 8, columns 2t, 2t+1; a2, a3 the same with columns 8 on.
//   B of m16n8k16:                   b0 rows 2t, 2t+1 of column g; b1 the same with rows 8 on.
//   A of m16n8k8 (tf32):             a0 (g, t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4).
//   B of m16n8k8:                    b0 (t, g), b1 (t + 4, g).
//   C of both:                       c0, c1 row g, columns 2t, 2t+1; c2, c3 row g + 8.
#pragma once

#include <neap/core/config.hpp>
#include <neap/core/element.hpp>

#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 {

namespace detail {

/// Where the 16-byte chunk `chunk` of row `row` lies in a tile of shared memory whose rows have Chunks chunks: as a number
/// of chunks from its start. Chunks is a multiple of 4. Eight rows of one chunk, as ldmatrix reads them, lie in all 32
/// banks: the chunks of a row are permuted by the bits of its number.
template <int Chunks>
NEAP_HD constexpr int swizzled(int row, int chunk) {
  static_assert(Chunks % 4 == 0, "a row is a multiple of 64 bytes");
  if constexpr (Chunks % 8 == 0) return row * Chunks + (chunk ^ (row & 7));
  else
    return row * Chunks + (chunk ^ ((row >> 1) & 3));  // rows of an odd multiple of 64 bytes alternate between halves
}

}  // namespace detail

#if defined(__CUDACC__)
namespace detail {

__device__ inline std::uint32_t shared_address(void const* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// ---- cp.async: what is copied may be read after commit_copies, wait_copies and a barrier

/// Bytes (4, 8 or 16; both addresses are multiples of that) from global to shared memory. The first `valid` bytes are
/// copied, the rest become zeros; `from` is not read where valid is 0.
template <int Bytes>
__device__ inline void copy_async(std::uint32_t to, void const* from, int valid = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(valid)
                 : "memory");
}
/// Closes a group of this thread's copies.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most Groups of this thread's groups are unfinished. Others' copies need a barrier behind it.
template <int Groups>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

// ---- ldmatrix: lane 8 i + j has the address of row j (16 bytes) of matrix i; r[i] is the fragment of matrix i

/// Elements (row lane / 4, columns 2 (lane % 4) and the next) of 1, 2 or 4 matrices of 8x8 2-byte elements; of 8x4 4-byte
/// elements it is (row lane / 4, column lane % 4).
__device__ inline void load_matrices(std::uint32_t (&r)[1], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row) : "memory");
}
__device__ inline void load_matrices(std::uint32_t (&r)[2], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row)
               : "memory");
}
__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
/// The same of the transposed matrices: rows 2 (lane % 4) and the next, column lane / 4. 2-byte elements.
__device__ inline void load_transposed(std::uint32_t (&r)[1], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row) : "memory");
}
__device__ inline void load_transposed(std::uint32_t (&r)[2], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row)
               : "memory");
}
__device__ inline void load_transposed(std::uint32_t (&r)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

// ---- mma.sync: c += a b, sums in f32

/// [16, 16] times [16, 8], of bf16 or f16.
template <class T>
__device__ inline void multiply_16x8x16(float (&c)[4], std::uint32_t const (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  if constexpr (std::is_same_v<T, bf16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// [16, 8] times [8, 8], of numbers rounded by to_tf32.
__device__ inline void multiply_16x8x8(float (&c)[4], std::uint32_t const (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// x rounded to tf32 (8 bits of exponent, 10 of mantissa), to nearest.
__device__ inline std::uint32_t to_tf32(float x) {
  std::uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
/// x as the sum of two tf32 numbers: high + low differs from x by at most 2^-22 |x|. The product of two numbers is then
/// high high + high low + low high: three multiplications in tf32 give one with the accuracy of f32.
struct tf32_pair {
  std::uint32_t high, low;
};
__device__ inline tf32_pair split_tf32(float x) {
  std::uint32_t const high = to_tf32(x);
  return {high, to_tf32(x - __uint_as_float(high))};
}

/// Two numbers rounded to bf16 or f16; `first` in the lower half.
template <class T>
__device__ inline std::uint32_t pack_two(float first, float second) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  std::uint32_t r;
  if constexpr (std::is_same_v<T, bf16>) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
}

}  // namespace detail
#endif

}}  // namespace neap::v0
