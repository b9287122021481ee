// Attention: fused, where the table of tokens by tokens is never whole, and plain, where it is.
#pragma once

#include <neap/ir/operators/attention.hpp>
#include <neap/model/functions/matrix.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/functions/reduction.hpp>
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

/// plain_attention that sees the keys where the mask is true: of booleans, (b, s) for keys that are there and keys that pad,
/// (b, t, s), or (b, h, t, s); extents of 1 stretch. A query that sees no key gets zeros.
inline tensor masked_attention(tensor const& q, tensor const& k, tensor const& v, tensor const& mask,
                               op::attention how = {}, double dropped = 0,
                               std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  for (auto const* x : {&q, &k, &v})
    detail::require_rank(*x, 4, "masked_attention: takes (batch, heads, tokens, width) of queries, keys and values",
                         at);
  detail::require_booleans("masked_attention", mask, at);
  tensor seen = mask;
  if (mask.rank() == 2) seen = reshape(mask, {mask.size(0), 1, 1, mask.size(1)});
  if (mask.rank() == 3) seen = unsqueeze(mask, 1);
  shape const whole{q.size(0), q.size(1), q.size(2), k.size(2)};
  bool fits = seen.rank() == 4;
  for (int i = 0; fits && i < 4; ++i) fits = seen.size(i) == 1 || seen.size(i) == whole[i];
  if (!fits)
    throw_error(context_access::place(at),
                {"masked_attention: a mask ", mask.type(), " does not fit (batch, heads, queries, keys) = ", whole});
  double const scale = how.scale != 0 ? how.scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  if (how.causal) seen = logical_and(seen, equal(tril(fill({whole[2], whole[3]}, 1, dtype::u8)), 1));
  // Far below any score, but finite: rows that see nothing have a softmax, too.
  tensor const scores = matmul(q, k, {.transpose_b = true}) * scale;
  double const low = scores.element() == dtype::f16 ? -65504. : -1e30;
  tensor const weights = softmax(where(seen, scores, low));
  return where(any(seen, {-1}, true), matmul(dropout(weights, dropped), v), 0);
}

}  // namespace neap::inline v0
