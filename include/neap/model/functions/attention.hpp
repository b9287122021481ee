// Attention: fused, where the table of tokens by tokens is never whole, and plain, where it is.
#pragma once

#include <neap/ir/operators/attention.hpp>
#include <neap/model/functions/matrix.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/functions/rows.hpp>

#include <cmath>
#include <limits>

namespace neap::inline v0 {

/// softmax(scale q k^T) v by heads: q (b, h, t, d), k (b, n, s, d), v (b, n, s, e) -> (b, h, t, e); n divides h, and each
/// head of keys serves h / n heads of queries. A scale of 0 means 1 / sqrt(d). Options: {.causal = true}.
inline tensor attention(tensor const& q, tensor const& k, tensor const& v, op::attention how = {},
                        std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(how, {detail::rows(q), detail::rows(k), detail::rows(v)});
}

/// The same by separate products and a softmax, for h = n; with dropout of the softmax's results.
inline tensor plain_attention(tensor const& q, tensor const& k, tensor const& v, op::attention how = {},
                              double dropped = 0, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  double const scale = how.scale != 0 ? how.scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  tensor s = matmul(q, k, {.transpose_b = true}) * scale;
  if (how.causal) {
    auto const t = s.size(-2), n = s.size(-1);
    std::vector<float> masked(static_cast<std::size_t>(t * n), 0.f);
    for (std::int64_t i = 0; i < t; ++i)
      for (std::int64_t j = i + 1; j < n; ++j)
        masked[static_cast<std::size_t>(i * n + j)] = -std::numeric_limits<float>::infinity();
    s = s + cast(constant(detail::make_copy(masked, {t, n}, at)), s.element());
  }
  return matmul(dropout(softmax(s), dropped), v);
}

}  // namespace neap::inline v0
