// Attention with fewer heads for keys and values than for queries (Ainslie et al. 2023), over (batch, tokens, width), with
// rotary positions where they are given. One head of keys and values serves heads / key_heads heads of queries.
#pragma once

#include <neap/model/nn/linear.hpp>
#include <neap/model/nn/rotary.hpp>

namespace neap::inline v0::nn {

struct grouped_query_options {
  bool causal = false;  // a token sees itself and those before it
  bool bias = false;
};

struct grouped_query_attention {
  linear query, key, value, out;
  std::int64_t heads = 1, key_heads = 1;
  grouped_query_options options;

  grouped_query_attention() = default;
  grouped_query_attention(std::int64_t width, std::int64_t heads_, std::int64_t key_heads_,
                          grouped_query_options o = {}, std::source_location at = std::source_location::current())
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

  /// x (b, t, width) -> (b, t, width). `turn` turns queries and keys by their positions; an empty one does not.
  tensor operator()(tensor const& x, rotary const& turn = {},
                    std::source_location at = std::source_location::current()) const {
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

  friend auto neap_fields(grouped_query_attention& self) {
    return std::tie(self.query, self.key, self.value, self.out, self.heads, self.key_heads, self.options);
  }
  static constexpr std::array neap_names{"query", "key", "value", "out", "heads", "key_heads", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}  // namespace neap::inline v0::nn
