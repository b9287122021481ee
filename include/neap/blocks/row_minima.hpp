// Minima of sums of rows of times, in vectors of the machine: the loops that rk-Rotor's time goes to (rotor_table.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// Elements of a vector of the machine.
#if defined(__AVX512F__)
inline constexpr int row_run = 8;
#elif defined(__AVX__)
inline constexpr int row_run = 4;
#else
inline constexpr int row_run = 2;
#endif
inline constexpr int max_row_width = 128;  ///< times of a chunk at most

using chunk_times = std::array<double, max_row_width + 2 * row_run>;
typedef double row_vector __attribute__((vector_size(row_run * sizeof(double)), aligned(sizeof(double)), may_alias));
typedef std::int64_t row_flags __attribute__((vector_size(row_run * sizeof(double))));

inline row_vector load(double const* from) { return *reinterpret_cast<row_vector const*>(from); }
inline void store(double* to, row_vector v) { *reinterpret_cast<row_vector*>(to) = v; }
inline row_flags places() {
  row_flags at{};
  for (int i = 0; i < row_run; ++i) at[i] = i;
  return at;
}

/// What a chunk's elements may come from: extra + tail[i] + head[i], from element `from` on.
struct row_sum {
  double extra;
  double const *tail, *head;
  int from;
  row_vector at(int i) const { return extra + load(tail + i) + load(head + i); }
  /// Infinite before `from`.
  row_vector at_most_at(int i) const { return places() >= from - i ? at(i) : row_vector{} + HUGE_VAL; }
};

/// u = min(u, candidates), up to element `to`: each element is read and written once for all candidates. Up to `row_run`
/// elements before the first and behind the last one are looked at; there u is as low as can be.
inline void take_minima(chunk_times& times, row_sum const* first, row_sum const* last, int to) {
  int some = to, all = 0;
  for (auto* c = first; c != last; ++c) some = std::min(some, c->from), all = std::max(all, c->from);
  auto* const u = times.data();
  auto const one = [&](int i, auto const& of) {
    auto least = load(u + i);
    for (auto* c = first; c != last; ++c) {
      auto const t = of(*c, i);
      least = t < least ? t : least;
    }
    store(u + i, least);
  };
  int i = some / row_run * row_run;
  for (; i < std::min(all, to); i += row_run) one(i, [](row_sum const& c, int at) { return c.at_most_at(at); });
  // Four vectors at once: what is read of a candidate serves them all.
  for (; i + 3 * row_run < to; i += 4 * row_run) {
    auto u0 = load(u + i), u1 = load(u + i + row_run), u2 = load(u + i + 2 * row_run), u3 = load(u + i + 3 * row_run);
    for (auto* c = first; c != last; ++c) {
      auto const t0 = c->at(i), t1 = c->at(i + row_run), t2 = c->at(i + 2 * row_run), t3 = c->at(i + 3 * row_run);
      u0 = t0 < u0 ? t0 : u0;
      u1 = t1 < u1 ? t1 : u1;
      u2 = t2 < u2 ? t2 : u2;
      u3 = t3 < u3 ? t3 : u3;
    }
    store(u + i, u0), store(u + i + row_run, u1), store(u + i + 2 * row_run, u2), store(u + i + 3 * row_run, u3);
  }
  for (; i < to; i += row_run) one(i, [](row_sum const& c, int at) { return c.at(at); });
}
/// Whether a candidate would lower anything.
inline bool lowers(chunk_times const& times, row_sum const& c, int to) {
  constexpr int batch = 32;  // testing a vector for any true element costs more than comparing two
  for (int i = c.from; i < to;) {
    row_flags lower{};
    for (int const end = std::min(i + batch, to); i < end; i += row_run) lower |= c.at(i) < load(times.data() + i);
    std::int64_t some = 0;
    for (int k = 0; k < row_run; ++k) some |= lower[k];
    if (some != 0) return true;
  }
  return false;
}

}}}  // namespace neap::v0::detail
