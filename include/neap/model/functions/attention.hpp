// Attention: fused, where the table of tokens by tokens is never whole, and plain, where it is.
#pragma once

#include <neap/ir/operators/attention.hpp>
#include <neap/model/functions/matrix.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/functions/reduction.hpp>
#include <neap/model/functions/rows.hpp>

#include <cmath>
#include <limits>

namespace neap { inline namespace v0 {

/// softmax(scale q k^T) v by heads: q (b, h, t, d), k (b, n, s, d), v (b, n, s, e) -> (b, h, t, e); n divides h, and each
/// head of keys serves h / n heads of queries. A scale of 0 means 1 / sqrt(d). {.causal = true}: the queries are the last t
/// of the s tokens, and each sees its own key and those before it; where t < s (a cache of keys), by separate products,
/// of bf16 and f16 in f32.
tensor attention(tensor const& q, tensor const& k, tensor const& v, op::attention how = {},
                 std::source_location at = std::source_location::current());

/// The same by separate products and a softmax, for h = n; with dropout of the softmax's results.
tensor plain_attention(tensor const& q, tensor const& k, tensor const& v, op::attention how = {}, double dropped = 0,
                       std::source_location at = std::source_location::current());

/// plain_attention that sees the keys where the mask is true: of booleans, (b, s) for keys that are there and keys that pad,
/// (b, t, s), or (b, h, t, s); extents of 1 stretch. A query that sees no key gets zeros.
tensor masked_attention(tensor const& q, tensor const& k, tensor const& v, tensor const& mask, op::attention how = {},
                        double dropped = 0, std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/attention.ipp>
#endif
