// Multi-head attention (Vaswani et al. 2017) over (batch, tokens, width), with one packed projection for queries, keys
// and values. The products run in one fused operator that never holds the tokens x tokens table, or, on request, as plain
// softmax(q k^T) v, which holds it.
#pragma once

#include <neap/model/nn/linear.hpp>

#include <cmath>

namespace neap::inline v0::nn {

struct attention_options {
  bool causal = false;  // a token sees itself and those before it
  bool fused = true;
  bool bias = true;
  double dropout = 0;  // of the attention's weights; plain form only, where they exist
};

namespace detail {
/// Attention as the options say; with a mask it is plain.
inline tensor attend(tensor const& q, tensor const& k, tensor const& v, tensor const& mask,
                     attention_options const& o) {
  if (!mask.is_empty()) return masked_attention(q, k, v, mask, {.causal = o.causal}, o.dropout);
  if (o.fused) return attention(q, k, v, {.causal = o.causal});
  return plain_attention(q, k, v, {.causal = o.causal}, o.dropout);
}
}  // namespace detail

struct multi_head_attention {
  linear qkv, out;
  std::int64_t heads = 1;
  attention_options options;

  multi_head_attention() = default;
  multi_head_attention(std::int64_t width, std::int64_t heads_, attention_options o = {},
                       std::source_location at = std::source_location::current())
      : heads(heads_),
        options(o) {
    place_scope const here(at);
    if (heads < 1 || width % heads != 0)
      throw_error(context_access::place(at),
                  {"multi_head_attention: width ", width, " does not divide into ", heads, " heads"});
    qkv = linear(width, 3 * width, {.bias = o.bias});
    out = linear(width, width, {.bias = o.bias});
  }

  /// x (b, t, d) -> (b, t, d)
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return (*this)(x, {}, at);
  }
  /// The same of the tokens that a mask of booleans shows (masked_attention): (b, t) where some tokens are padding. An empty
  /// mask shows all.
  tensor operator()(tensor const& x, tensor const& mask,
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    neap::detail::require_rank(x, 3, "multi_head_attention: takes (batch, tokens, width)", at);
    detail::require_width("multi_head_attention", x, qkv.weight);
    auto const b = x.size(0), t = x.size(1), d = x.size(2);
    // (b, t, 3 h, d / h): three parts of h heads; a part by heads is a view (b, h, t, d / h)
    std::vector<tensor> parts = split(reshape(qkv(x), {b, t, 3 * heads, d / heads}), 3, 2);
    for (auto& part : parts) part = permute(part, {0, 2, 1, 3});
    tensor const y = detail::attend(parts[0], parts[1], parts[2], mask, options);
    return out(reshape(permute(y, {0, 2, 1, 3}), {b, t, d}));
  }

  friend auto neap_fields(multi_head_attention& self) { return std::tie(self.qkv, self.out, self.heads, self.options); }
  static constexpr std::array neap_names{"qkv", "out", "heads", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

/// Attention of one sequence to another one of any length and width: queries are made of the first, keys and values, by one
/// packed projection, of the second.
struct cross_attention {
  linear q, kv, out;
  std::int64_t heads = 1;
  attention_options options;

  cross_attention() = default;
  /// `memory_width` 0: as wide as the queries.
  cross_attention(std::int64_t width, std::int64_t heads_, std::int64_t memory_width = 0, attention_options o = {},
                  std::source_location at = std::source_location::current())
      : heads(heads_),
        options(o) {
    place_scope const here(at);
    if (heads < 1 || width % heads != 0)
      throw_error(context_access::place(at),
                  {"cross_attention: width ", width, " does not divide into ", heads, " heads"});
    q = linear(width, width, {.bias = o.bias});
    kv = linear(memory_width > 0 ? memory_width : width, 2 * width, {.bias = o.bias});
    out = linear(width, width, {.bias = o.bias});
  }

  /// x (b, t, d), memory (b, s, m) -> (b, t, d). The mask of booleans says what is seen (masked_attention): (b, s) where
  /// some of the memory is padding, (b, t, s) or (b, heads, t, s) for others; empty: all is.
  tensor operator()(tensor const& x, tensor const& memory, tensor const& mask = {},
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    neap::detail::require_rank(x, 3, "cross_attention: takes (batch, tokens, width)", at);
    neap::detail::require_rank(memory, 3, "cross_attention: takes a memory (batch, tokens, width)", at);
    detail::require_width("cross_attention", x, q.weight);
    detail::require_width("cross_attention: the memory", memory, kv.weight);
    auto const b = x.size(0), t = x.size(1), d = x.size(2), s = memory.size(1);
    if (memory.size(0) != b)
      throw_error(context_access::place(at), {"cross_attention: batches differ, ", x.type(), " and ", memory.type()});
    auto const by_heads = [](tensor const& part) { return permute(part, {0, 2, 1, 3}); };
    std::vector<tensor> const parts = split(reshape(kv(memory), {b, s, 2 * heads, d / heads}), 2, 2);
    tensor const y = detail::attend(by_heads(reshape(q(x), {b, t, heads, d / heads})), by_heads(parts[0]),
                                    by_heads(parts[1]), mask, options);
    return out(reshape(permute(y, {0, 2, 1, 3}), {b, t, d}));
  }

  friend auto neap_fields(cross_attention& self) {
    return std::tie(self.q, self.kv, self.out, self.heads, self.options);
  }
  static constexpr std::array neap_names{"q", "kv", "out", "heads", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}  // namespace neap::inline v0::nn
