// Instructions of a warp together: shuffles, votes, matches, reductions, ldmatrix, mma. They run once all lanes of
// their mask have arrived.
#pragma once

#include "arithmetic.hpp"
#include "execution.hpp"

#include <cstring>

namespace neap::testing::ptx::together {

using arithmetic::get;
using arithmetic::put;

enum class shuffle_mode : std::uint8_t { up, down, butterfly, index };

/// Operands: d, predicate (or d again, flag_no_result), a, b, c. A source lane that takes no part is a fault.
inline void shuffle(warp& w, instruction const& i, lanes m) {
  auto *const d = w.operand(i, 0), *const p = w.operand(i, 1);
  auto const *const a = w.operand(i, 2), *const b = w.operand(i, 3), *const c = w.operand(i, 4);
  std::uint64_t values[warp_size], results[warp_size];
  bool valid[warp_size];
  for_lanes(m, [&](int l) { values[l] = a[l]; });
  for_lanes(m, [&](int l) {
    int const by = static_cast<int>(b[l] & 31), clamp = static_cast<int>(c[l] & 31),
              segment = static_cast<int>(c[l] >> 8 & 31);
    int const most = (l & segment) | (clamp & ~segment);
    int j = l;
    bool in = true;
    switch (static_cast<shuffle_mode>(i.mode)) {
      case shuffle_mode::up: j = l - by, in = j >= most; break;
      case shuffle_mode::down: j = l + by, in = j <= most; break;
      case shuffle_mode::butterfly: j = l ^ by, in = j <= most; break;
      case shuffle_mode::index: j = (l & segment) | (by & ~segment), in = j <= most; break;
    }
    if (!in) j = l;
    valid[l] = in;
    if (m >> j & 1) {
      results[l] = values[j];
    } else {
      results[l] = 0xcdcdcdcd;
      w.m->fault_at(w, l, i.line, fault_kind::warp,
                    "reads a value of lane " + std::to_string(j) + ", which takes no part");
    }
  });
  for_lanes(m, [&](int l) {
    d[l] = results[l];
    if (!(i.flags & flag_no_result)) p[l] = valid[l];
  });
}

/// mode: 0 ballot, 1 any, 2 all, 3 uniform.
inline void vote(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  lanes set = 0;
  for_lanes(m, [&](int l) { set |= static_cast<lanes>(a[l] != 0) << l; });
  std::uint64_t const r = i.mode == 0 ? set : i.mode == 1 ? set != 0 : i.mode == 2 ? set == m : set == m || set == 0;
  for_lanes(m, [&](int l) { d[l] = r; });
}

/// mode: 0 any, 1 all with a predicate.
template <class T>
void match(warp& w, instruction const& i, lanes m) {
  auto *const d = w.operand(i, 0), *const p = w.operand(i, 1);
  auto const* const a = w.operand(i, 2);
  std::uint64_t results[warp_size];
  for_lanes(m, [&](int l) {
    lanes same = 0;
    for_lanes(m, [&](int o) { same |= static_cast<lanes>(get<T>(a[o]) == get<T>(a[l])) << o; });
    results[l] = same;
  });
  for_lanes(m, [&](int l) {
    if (i.mode == 0) {
      d[l] = results[l];
    } else {
      bool const all = results[l] == m;
      d[l] = all ? m : 0;
      if (!(i.flags & flag_no_result)) p[l] = all;
    }
  });
}

enum class reduction : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor };
template <class T>
void reduce(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  T r = get<T>(a[std::countr_zero(m)]);
  for_lanes(m & (m - 1), [&](int l) {
    T const x = get<T>(a[l]);
    switch (static_cast<reduction>(i.mode)) {
      case reduction::add: r = static_cast<T>(static_cast<std::uint32_t>(r) + static_cast<std::uint32_t>(x)); break;
      case reduction::min: r = std::min(r, x); break;
      case reduction::max: r = std::max(r, x); break;
      case reduction::bit_and: r &= x; break;
      case reduction::bit_or: r |= x; break;
      case reduction::bit_xor: r ^= x; break;
    }
  });
  for_lanes(m, [&](int l) { d[l] = put(r); });
}

inline void barrier(warp& w, instruction const&, lanes m) { w.m->warp_barrier(w, m); }

/// Operands: d, predicate. The first lane is elected.
inline void elect(warp& w, instruction const& i, lanes m) {
  auto *const d = w.operand(i, 0), *const p = w.operand(i, 1);
  int const first = std::countr_zero(m);
  for_lanes(m, [&](int l) {
    d[l] = static_cast<std::uint64_t>(first);
    p[l] = l == first;
  });
}

/// Operands: address, then vector registers. mode 1: transposed. Lanes 8 k to 8 k + 7 give the rows of matrix k.
inline void load_matrix(warp& w, instruction const& i, lanes m) {
  ++w.m->time;
  auto const* const base = w.operand(i, 0);
  std::uint16_t rows[warp_size][8] = {};
  std::uint64_t addresses[warp_size] = {};
  lanes const givers = m & static_cast<lanes>((std::uint64_t{1} << (8 * i.vector)) - 1);
  for_lanes(givers, [&](int l) {
    std::uint64_t a = base[l] + static_cast<std::uint64_t>(i.immediate);
    if (i.where == space::shared) a = static_cast<std::uint32_t>(a);
    addresses[l] = a;
    if (auto const* const p = w.m->access(w, l, i, i.where, a, 16, access_kind::read)) std::memcpy(rows[l], p, 16);
  });
  w.m->count_request(space::shared, addresses, givers, 16);
  for_lanes(m, [&](int l) {
    for (int k = 0; k < i.vector; ++k) {
      int const r = l / 4, c = l % 4 * 2;
      std::uint32_t const low = i.mode ? rows[k * 8 + c][r] : rows[k * 8 + r][c];
      std::uint32_t const high = i.mode ? rows[k * 8 + c + 1][r] : rows[k * 8 + r][c + 1];
      w.operand(i, 1 + k)[l] = low | high << 16;
    }
  });
}

/// stmatrix: operands as of ldmatrix.
inline void store_matrix(warp& w, instruction const& i, lanes m) {
  ++w.m->time;
  auto const* const base = w.operand(i, 0);
  std::uint16_t rows[warp_size][8] = {};
  for_lanes(m, [&](int l) {
    for (int k = 0; k < i.vector; ++k) {
      int const r = l / 4, c = l % 4 * 2;
      std::uint64_t const v = w.operand(i, 1 + k)[l];
      (i.mode ? rows[k * 8 + c][r] : rows[k * 8 + r][c]) = static_cast<std::uint16_t>(v);
      (i.mode ? rows[k * 8 + c + 1][r] : rows[k * 8 + r][c + 1]) = static_cast<std::uint16_t>(v >> 16);
    }
  });
  lanes const givers = m & static_cast<lanes>((std::uint64_t{1} << (8 * i.vector)) - 1);
  for_lanes(givers, [&](int l) {
    std::uint64_t a = base[l] + static_cast<std::uint64_t>(i.immediate);
    if (i.where == space::shared) a = static_cast<std::uint32_t>(a);
    auto const* const bytes = reinterpret_cast<std::uint8_t const*>(rows[l]);
    if (auto* const p = w.m->access(w, l, i, i.where, a, 16, access_kind::write, bytes)) std::memcpy(p, bytes, 16);
  });
}

// ---- mma  -----------------------------------------------------------------------------------------------------------
enum class element : std::uint8_t { f16, bf16, tf32, f32, s8, u8, s32, f64 };

inline double element_of(element e, std::uint64_t word, int part) {
  switch (e) {
    case element::f16: return to_double(get<half>(word >> (16 * part)));
    case element::bf16: return to_double(get<bfloat>(word >> (16 * part)));
    case element::tf32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(word) & 0xffffe000u));
    case element::s8: return static_cast<std::int8_t>(word >> (8 * part));
    case element::u8: return static_cast<std::uint8_t>(word >> (8 * part));
    case element::f64: return get<double>(word);
    default: return static_cast<double>(get<float>(word));
  }
}
inline int elements_in(element e) {
  return e == element::f16 || e == element::bf16 ? 2 : e == element::s8 || e == element::u8 ? 4 : 1;
}

/// m16n8 (m8n8k4 of doubles): d = a b + c, a (m, k) by rows, b (k, n) by columns. Products and sums are made in double
/// and rounded once: a tensor core differs in the last bits.
/// mode: element of a and b; width: of c and d; vector: k; immediate: registers of d, a, b, c (a byte each), then m.
inline void multiply_matrices(warp& w, instruction const& i, lanes m) {
  auto const type_b = static_cast<element>(i.mode >> 4), type_a = static_cast<element>(i.mode & 15),
             result = static_cast<element>(i.width);
  int const k = i.vector, rows = static_cast<int>(i.immediate >> 32);
  auto const registers = [&](int j) { return static_cast<int>(i.immediate >> (8 * j) & 255); };
  int const nd = registers(0), na = registers(1), nb = registers(2), nc = registers(3), per = elements_in(type_a);
  double a[16][32] = {}, b[32][8] = {}, c[16][8] = {};
  // Register r of lane l: group l / 4, and `per` neighbours along k from per * (l % 4); further registers lie 8 rows
  // below (where there are 16), then 4 * per columns on.
  for (int l = 0; l < warp_size; ++l) {
    int const group = l / 4, t = l % 4;
    for (int r = 0; r < na; ++r)
      for (int e = 0; e < per; ++e) {
        int const row = group + (rows == 16 ? r % 2 * 8 : 0), column = t * per + e + (rows == 16 ? r / 2 : r) * 4 * per;
        a[row][column] = element_of(type_a, w.operand(i, nd + r)[l], e);
      }
    for (int r = 0; r < nb; ++r)
      for (int e = 0; e < per; ++e)
        b[t * per + e + r * 4 * per][group] = element_of(type_b, w.operand(i, nd + na + r)[l], e);
    int const in_register = result == element::f16 ? 2 : 1;
    for (int r = 0; r < nc * in_register; ++r) {
      std::uint64_t const word = w.operand(i, nd + na + nb + r / in_register)[l];
      c[group + r / 2 * 8][t * 2 + r % 2] = result == element::f16   ? to_double(get<half>(word >> (16 * (r % 2))))
                                            : result == element::s32 ? get<std::int32_t>(word)
                                                                     : element_of(result, word, 0);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int q = 0; q < 8; ++q) {
      double sum = c[r][q];
      for (int j = 0; j < k; ++j) sum += a[r][j] * b[j][q];
      c[r][q] = sum;
    }
  for_lanes(m, [&](int l) {
    int const group = l / 4, t = l % 4;
    auto const at = [&](int r) { return c[group + r / 2 * 8][t * 2 + r % 2]; };
    for (int r = 0; r < nd; ++r) {
      std::uint64_t& d = w.operand(i, r)[l];
      if (result == element::f16) d = put(from_double<half>(at(2 * r))) | put(from_double<half>(at(2 * r + 1))) << 16;
      else if (result == element::s32) d = put(static_cast<std::int32_t>(static_cast<std::int64_t>(at(r))));
      else if (result == element::f64) d = put(at(r));
      else d = put(static_cast<float>(at(r)));
    }
  });
}

}  // namespace neap::testing::ptx::together
