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
    place_scope const here(at);
    neap::detail::require_rank(x, 3, "multi_head_attention: takes (batch, tokens, width)", at);
    auto const b = x.size(0), t = x.size(1), d = x.size(2);
    // (b, t, 3 h, d / h): three parts of h heads; a part by heads is a view (b, h, t, d / h)
    std::vector<tensor> parts = split(reshape(qkv(x), {b, t, 3 * heads, d / heads}), 3, 2);
    for (auto& part : parts) part = permute(part, {0, 2, 1, 3});
    tensor const y = options.fused
                         ? attention(parts[0], parts[1], parts[2], {.causal = options.causal})
                         : plain_attention(parts[0], parts[1], parts[2], {.causal = options.causal}, options.dropout);
    return out(reshape(permute(y, {0, 2, 1, 3}), {b, t, d}));
  }

  friend auto neap_fields(multi_head_attention& self) { return std::tie(self.qkv, self.out); }
  static constexpr std::array neap_names{"qkv", "out"};
};

}  // namespace neap::inline v0::nn
