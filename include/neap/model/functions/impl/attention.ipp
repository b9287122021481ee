// The bodies of <neap/model/functions/attention.hpp>.
#pragma once

#include <neap/model/functions/attention.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

namespace detail {
/// By how many keys the last ones that queries see are ahead of the queries.
NEAP_FUNC std::int64_t keys_before(tensor const& q, tensor const& k, char const* who, std::source_location at) {
  auto const queries = q.size(-2), keys = k.size(-2);
  if (queries > keys)
    throw_error(context_access::place(at), {who, ": causal: there are ", queries, " queries, and ", keys,
                                            " keys: the queries are the last of the keys' tokens"});
  return keys - queries;
}
}  // namespace detail

NEAP_FUNC tensor attention(tensor const& q, tensor const& k, tensor const& v, op::attention how,
                           std::source_location at) {
  place_scope const here(at, "attention");
  bool const by_heads = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  if (how.causal && by_heads && detail::keys_before(q, k, "attention", at) > 0) {
    auto const element = q.element();
    if (is_low(element) && k.element() == element && v.element() == element && !context_access::precision()) {
      auto const wide = [](tensor const& x) { return cast(x, dtype::f32); };
      return cast(attention(wide(q), wide(k), wide(v), how, at), element);
    }
    auto const heads = q.size(1), shared = k.size(1);
    if (heads == shared) return plain_attention(q, k, v, how);
    if (shared > 0 && heads % shared == 0) {
      tensor const grouped = reshape(q, {q.size(0), shared, heads / shared, q.size(2), q.size(3)});
      tensor const y = plain_attention(grouped, unsqueeze(k, 2), unsqueeze(v, 2), how);
      return reshape(y, {q.size(0), heads, q.size(2), v.size(3)});
    }
  }
  return apply(how, {detail::rows(q), detail::rows(k), detail::rows(v)});
}

NEAP_FUNC tensor plain_attention(tensor const& q, tensor const& k, tensor const& v, op::attention how, double dropped,
                                 std::source_location at) {
  place_scope const here(at, "plain_attention");
  double const scale = how.scale != 0 ? how.scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  tensor s = matmul(q * scale, k, {.transpose_b = true});  // unscaled products may be beyond f16
  if (how.causal) {
    auto const t = s.size(-2), n = s.size(-1), before = detail::keys_before(q, k, "plain_attention", at);
    std::vector<float> masked(static_cast<std::size_t>(t * n), 0.f);
    for (std::int64_t i = 0; i < t; ++i)
      for (std::int64_t j = before + i + 1; j < n; ++j)
        masked[static_cast<std::size_t>(i * n + j)] = -std::numeric_limits<float>::infinity();
    s = s + cast(constant(detail::make_copy(masked, {t, n}, at)), s.element());
  }
  return matmul(dropout(softmax(s), dropped), v);
}

NEAP_FUNC tensor masked_attention(tensor const& q, tensor const& k, tensor const& v, tensor const& mask,
                                  op::attention how, double dropped, std::source_location at) {
  place_scope const here(at, "masked_attention");
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
  if (how.causal) {
    auto const before = detail::keys_before(q, k, "masked_attention", at);
    seen = logical_and(seen, equal(tril(fill({whole[2], whole[3]}, 1, dtype::u8), before), 1));
  }
  // Far below any score, but finite: rows that see nothing have a softmax, too.
  tensor const scores = matmul(q * scale, k, {.transpose_b = true});
  double const low = scores.element() == dtype::f16 ? -65504. : -1e30;
  tensor const weights = softmax(where(seen, scores, low));
  return where(any(seen, {-1}, true), matmul(dropout(weights, dropped), v), 0);
}

}}  // namespace neap::v0
