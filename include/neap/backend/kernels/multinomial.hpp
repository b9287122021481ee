// Sampling places by weights. What is drawn is a function of (key, step, place of the row or weight), by philox: the same
// numbers in any order, on any number of threads and when computed again.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/error.hpp>
#include <neap/core/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace neap { inline namespace v0 {

namespace detail {

/// A number in [0, 1) with 53 random bits.
NEAP_HD inline double unit_double(std::uint64_t key, std::uint64_t step, std::uint64_t i) {
  struct words {
    std::uint32_t at[4];
  };
  auto const four = __builtin_bit_cast(words, philox{key}(i, step));
  return static_cast<double>((four.at[0] | std::uint64_t{four.at[1]} << 32) >> 11) * 0x1p-53;
}

/// One row of weights, as doubles. Throws neap::error if they are no weights; how many are above 0.
inline std::int64_t check_weights(double const* w, std::int64_t n, std::int64_t row) {
  std::int64_t positive = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!(w[i] >= 0 && w[i] < std::numeric_limits<double>::infinity()))
      throw_error({"multinomial: weight ", i, " of row ", row, " is ", w[i], ", not a finite number of at least 0"});
    positive += w[i] > 0;
  }
  if (positive == 0) throw_error({"multinomial: no weight of row ", row, " is above 0"});
  return positive;
}

}  // namespace detail

/// Bytes of workspace for weights of these extents: one row's, and its places.
inline bytes_t multinomial_workspace(shape const& weights) {
  return weights.rank() > 0 ? checked_mul(weights[weights.rank() - 1], 16) : 0;
}

/// out[row, j] = a place of x's last axis, drawn with a chance in proportion to its weight: with replacement each by
/// itself, else no place twice, in the order of their drawing (an exponential race: Efraimidis and Spirakis 2006). Both are
/// dense, out is of i64, x of any floating type. `first`: the number of x's first row in what x is a part of. Throws
/// neap::error for weights below 0 or not finite, and where fewer are above 0 than are drawn without replacement.
/// A row takes O(weights + drawn log weights) with replacement, O(weights log drawn) else.
template <class Backend>
void multinomial(Backend&, tensor_ref const& out, tensor_ref const& x, std::uint64_t key, std::uint64_t step,
                 bool replacement, std::int64_t first, void* workspace) {
  detail::expect(out.is_dense() && x.is_dense() && out.element == dtype::i64,
                 "multinomial: weights and places must be contiguous, places i64");
  std::int64_t const classes = x.extent(-1), drawn = out.extent(-1), rows = classes > 0 ? x.count() / classes : 0;
  auto const to_double = detail::conversion_from<double>(x.element);
  auto* const w = static_cast<double*>(workspace);
  auto* const order = reinterpret_cast<std::int64_t*>(w + classes);
  for (std::int64_t row = 0; row < rows; ++row) {
    to_double(w, 1, static_cast<std::byte const*>(x.data) + row * classes * size_of(x.element), 1, classes);
    auto const positive = detail::check_weights(w, classes, first + row);
    auto const draw = [&](std::int64_t each, std::int64_t i) {
      return detail::unit_double(key, step, static_cast<std::uint64_t>((first + row) * each + i));
    };
    std::int64_t* const to = out.as<std::int64_t>() + row * drawn;
    if (replacement) {
      double sum = 0;
      std::int64_t last = 0;  // above 0: for a draw that rounding would take past the end
      for (std::int64_t i = 0; i < classes; ++i) {
        if (w[i] > 0) last = i;
        w[i] = sum += w[i];
      }
      for (std::int64_t j = 0; j < drawn; ++j)
        to[j] = std::min<std::int64_t>(last, std::upper_bound(w, w + classes, draw(drawn, j) * sum) - w);
      continue;
    }
    if (positive < drawn)
      throw_error({"multinomial: ", drawn, " places are drawn without replacement, row ", first + row, " has ",
                   positive, " of a weight above 0"});
    for (std::int64_t i = 0; i < classes; ++i) {
      w[i] = w[i] > 0 ? -std::log1p(-draw(classes, i)) / w[i] : std::numeric_limits<double>::infinity();  // arrival
      order[i] = i;
    }
    std::partial_sort(order, order + drawn, order + classes,
                      [w](std::int64_t a, std::int64_t b) { return w[a] < w[b] || (w[a] == w[b] && a < b); });
    std::copy(order, order + drawn, to);
  }
}

}}  // namespace neap::v0
