// The products of blocks that attention is made of, on the calling thread: operands by operands to sums, and sums (weights,
// slopes) by operands. f32 and f64 have one type for all. Operands of bf16 have f32's sums, on matrix units
// (backend/gemm_amx.hpp): their own products are exact there, and sums go in as two bf16 each, so that what is lost is at
// most 2^-15 of a product, and a result is in effect rounded once.
#pragma once

#include <neap/backend/gemm.hpp>
#include <neap/core/element.hpp>

#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

/// What sums over operands of type T are.
template <class T>
using attention_number = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

/// C = op(A) op(B), or += that. These products are small: OpenBLAS spends most of its time on the way to them.
template <class T>
void product(gemm_shape const& s, T const* a, T const* b, bool add, T* c) {
#if defined(NEAP_GEMM_TILES) && NEAP_VECTORS_OF_16 == 512
  if constexpr (std::is_same_v<T, float>)
    if (s.m > 0 && s.n > 0 && s.k > 0)
      return tiled_product(s, s.m, s.n, {a, s.lda, s.transpose_a}, {b, s.ldb, s.transpose_b}, add, c, s.ldc);
#endif
  gemm_panel<T>(s, T(1), a, b, add ? T(1) : T(0), c);
}

/// A dense block of sums as the left operand of a product with operands of type T: itself.
template <class T>
struct sums_operand {
  static constexpr std::int64_t memory = 0;  // elements of T a sum
  T const* sums;

  sums_operand(T const* block, std::int64_t, T*) : sums(block) {}
};
template <class T>
void product(gemm_shape const& s, sums_operand<T> const& a, T const* b, bool add, T* c) {
  product<T>(s, a.sums, b, add, c);
}

/// Of bf16: in two parts, in memory of the caller's.
template <>
struct sums_operand<bf16> {
  static constexpr std::int64_t memory = 2;
  bf16 const *high, *low;

  sums_operand([[maybe_unused]] float const* block, [[maybe_unused]] std::int64_t count, bf16* parts)
      : high(parts),
        low(parts + count) {
#if defined(NEAP_GEMM_AMX)
    gemm_amx::split16(block, count, parts, parts + count);
#endif
  }
};

#if defined(NEAP_GEMM_AMX)
inline void product(gemm_shape const& s, bf16 const* a, bf16 const* b, bool add, float* c) {
  using operand = gemm_amx::operand16;
  gemm_amx::run(s.m, s.n, s.k, operand{a, s.lda, s.transpose_a}, operand{b, s.ldb, s.transpose_b}, add, c, s.ldc);
}
inline void product(gemm_shape const& s, sums_operand<bf16> const& a, bf16 const* b, bool add, float* c) {
  using operand = gemm_amx::operand16;
  gemm_amx::run(s.m, s.n, s.k, operand{a.high, s.lda, s.transpose_a}, operand{a.low, s.lda, s.transpose_a},
                operand{b, s.ldb, s.transpose_b}, add, c, s.ldc);
}
#endif

}}}  // namespace neap::v0::detail
