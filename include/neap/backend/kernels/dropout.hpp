// Dropout. Which elements stay is a function of (key, step, element index), drawn by philox: the backward pass and a
// recomputed copy draw the same mask again, in any order, on any number of threads, and no mask is stored (it may be).
// Element i is decided by word i % 4 of the draw at counter (i / 4, step): it stays if the word's upper 24 bits, as a
// number in [0, 1), are not below the rate.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/philox.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

/// Whether dropout of the given rate keeps element i.
NEAP_HD inline bool dropout_keeps(std::uint64_t key, std::uint64_t step, std::int64_t i, float rate) {
  struct words {
    std::uint32_t at[4];
  };
  auto const four = __builtin_bit_cast(words, philox{key}(static_cast<std::uint64_t>(i) / 4, step));
  return !(unit_float(four.at[i % 4]) < rate);
}

namespace detail {

/// The words that decide elements [4 * first, 4 * (first + 32)): philox on lanes, out[lane * 4 + word].
__attribute__((noinline)) inline void draw_words(std::uint64_t key, std::uint64_t step, std::uint64_t first,
                                                 std::uint32_t* out) {
  constexpr int lanes = host_block::lanes;
  alignas(64) std::uint32_t word[4][lanes];
  NEAP_LANES
  for (int j = 0; j < lanes; ++j) {
    std::uint64_t const counter = first + static_cast<std::uint64_t>(j);
    std::uint32_t c0 = static_cast<std::uint32_t>(counter), c1 = static_cast<std::uint32_t>(counter >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(step), c3 = static_cast<std::uint32_t>(step >> 32);
    std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 10
#elif defined(__clang__)
#pragma clang loop unroll(full)
#endif
    for (int round = 0; round < 10; ++round) {
      std::uint64_t const p0 = std::uint64_t{0xD2511F53u} * c0;
      std::uint64_t const p1 = std::uint64_t{0xCD9E8D57u} * c2;
      std::uint32_t const n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
      std::uint32_t const n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<std::uint32_t>(p1);
      c3 = static_cast<std::uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    word[0][j] = c0;
    word[1][j] = c1;
    word[2][j] = c2;
    word[3][j] = c3;
  }
  for (int j = 0; j < lanes; ++j)
    for (int k = 0; k < 4; ++k) out[4 * j + k] = word[k][j];
}

}  // namespace detail

/// y = x / (1 - rate) where kept, else 0; the gradient is the same function of dy, so this is the backward pass too. x
/// may have any strides and any floating type; y is dense and may be x. `mask`, if it has data, is a dense u8 or boolean
/// tensor that becomes 1 where kept. A rate of 1 gives zeros. `first`: the index of x's first element in what x is a part
/// of. Throws neap::error for a rate outside [0, 1].
template <class Backend>
void dropout(Backend& b, tensor_ref const& y, tensor_ref const& x, std::uint64_t key, std::uint64_t step, double rate,
             tensor_ref const& mask = {}, std::int64_t first = 0) {
  detail::expect(rate >= 0 && rate <= 1, "dropout: the rate must be in [0, 1]");
  detail::expect(y.is_dense(), "dropout: the result must be contiguous");
  detail::expect(!mask.data || (mask.is_dense() && mask.count() == y.count() && size_of(mask.element) == 1),
                 "dropout: the mask must be contiguous bytes, one an element");
  auto const from = detail::view_through(y.dims, x), to = detail::view_through(y.dims, y);
  std::int64_t const n = y.count();
  auto const run = [&](auto tag) {
    using C = typename decltype(tag)::type;
    constexpr std::int64_t drawn = 4 * host_block::lanes;
    // A draw decides four elements: where the first of ours is not the first of four, as many words are passed over.
    std::int64_t const over = first % 4, chunk = over == 0 ? drawn : drawn - 4;
    float const threshold = static_cast<float>(rate);
    C const scale = rate < 1 ? static_cast<C>(1 / (1 - rate)) : C(0);
    auto* const kept = mask.as<std::uint8_t>();
    b.parallel_for(n, 64 * chunk, [=](std::int64_t begin, std::int64_t end) {
      alignas(64) std::uint32_t words[drawn];
      alignas(64) C in_buffer[drawn], factor[drawn], out_buffer[drawn];
      host_block const block;
      for (std::int64_t at = begin; at < end; at += chunk) {
        std::int64_t const m = std::min(chunk, end - at);
        detail::draw_words(key, step, static_cast<std::uint64_t>((first + at) / 4), words);
        C* const f = factor;
        std::uint32_t const* const w = words + over;
        block.each(chunk, [=](std::int64_t i) {
          float const u = static_cast<float>(static_cast<std::int32_t>(w[i] >> 8)) * 0x1p-24f;
          f[i] = u < threshold ? C(0) : C(1);
        });
        if (kept) block.each(m, [=](std::int64_t i) { kept[at + i] = static_cast<std::uint8_t>(f[i]); });
        C const* const p = detail::staged(from, at, m, in_buffer);
        C* q = detail::direct<C>(to, at, m);
        if (!q) q = out_buffer;
        C* const result = q;
        // A kept infinity stays, a dropped one becomes 0: choose, do not multiply by 0.
        block.each(m, [=](std::int64_t i) {
          C const scaled = p[i] * scale;
          result[i] = f[i] != C(0) ? scaled : C(0);
        });
        if (result == out_buffer) detail::scatter(to, at, m, static_cast<C const*>(out_buffer));
      }
    });
  };
  if (x.element == dtype::f64) run(type_tag<double>{});
  else run(type_tag<float>{});
}

}}  // namespace neap::v0
