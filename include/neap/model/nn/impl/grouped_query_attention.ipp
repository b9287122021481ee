// The bodies of <neap/model/nn/grouped_query_attention.hpp>.
#pragma once

#include <neap/model/nn/grouped_query_attention.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC grouped_query_attention::grouped_query_attention(std::int64_t width, std::int64_t heads_,
                                                           std::int64_t key_heads_, grouped_query_options o,
                                                           std::source_location at)
    : heads(heads_),
      key_heads(key_heads_),
      options(o) {
  place_scope const here(at);
  if (heads < 1 || key_heads < 1 || heads % key_heads != 0 || width % heads != 0)
    throw_error(context_access::place(at),
                {"grouped_query_attention: width must divide into heads, and heads into heads of keys, not ", width,
                 " into ", heads, " and ", key_heads});
  auto const narrow = width / heads * key_heads;
  query = linear(width, width, {.bias = o.bias});
  key = linear(width, narrow, {.bias = o.bias});
  value = linear(width, narrow, {.bias = o.bias});
  out = linear(width, width, {.bias = o.bias});
}

NEAP_FUNC tensor grouped_query_attention::operator()(tensor const& x, rotary const& turn,
                                                     std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  neap::detail::require_rank(x, 3, "grouped_query_attention: takes (batch, tokens, width)", at);
  auto const b = x.size(0), t = x.size(1), width = x.size(2);
  auto const by_head = [&](linear const& project, std::int64_t n) {
    return permute(reshape(project(x), {b, t, n, width / heads}), {0, 2, 1, 3});
  };
  tensor q = by_head(query, heads), k = by_head(key, key_heads);
  tensor const v = by_head(value, key_heads);
  if (!turn.is_empty()) q = turn(q), k = turn(k);
  tensor const y = attention(q, k, v, {.causal = options.causal});
  return out(reshape(permute(y, {0, 2, 1, 3}), {b, t, width}));
}

}}}  // namespace neap::v0::nn
