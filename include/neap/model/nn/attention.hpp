// Multi-head attention (Vaswani et al. 2017) over (batch, tokens, width), with one packed projection for queries, keys
// and values. The products run in one fused operator that never holds the tokens x tokens table, or, on request, as plain
// softmax(q k^T) v, which holds it.
#pragma once

#include <neap/model/nn/linear.hpp>

#include <cmath>

namespace neap { inline namespace v0 { namespace nn {

struct attention_options {
  bool causal = false;  // a token sees itself and those before it
  bool fused = true;
  bool bias = true;
  double dropout = 0;  // of the attention's weights; plain form only, where they exist
};

namespace detail {
/// Attention as the options say; with a mask it is plain.
tensor attend(tensor const& q, tensor const& k, tensor const& v, tensor const& mask, attention_options const& o);
}  // namespace detail

struct multi_head_attention {
  linear qkv, out;
  std::int64_t heads = 1;
  attention_options options;

  multi_head_attention() = default;
  multi_head_attention(std::int64_t width, std::int64_t heads_, attention_options o = {},
                       std::source_location at = std::source_location::current());

  /// x (b, t, d) -> (b, t, d)
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
  /// The same of the tokens that a mask of booleans shows (masked_attention): (b, t) where some tokens are padding. An empty
  /// mask shows all.
  tensor operator()(tensor const& x, tensor const& mask,
                    std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<multi_head_attention> auto& self) {
    return std::tie(self.qkv, self.out, self.heads, self.options);
  }
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
                  std::source_location at = std::source_location::current());

  /// x (b, t, d), memory (b, s, m) -> (b, t, d). The mask of booleans says what is seen (masked_attention): (b, s) where
  /// some of the memory is padding, (b, t, s) or (b, heads, t, s) for others; empty: all is.
  tensor operator()(tensor const& x, tensor const& memory, tensor const& mask = {},
                    std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<cross_attention> auto& self) {
    return std::tie(self.q, self.kv, self.out, self.heads, self.options);
  }
  static constexpr std::array neap_names{"q", "kv", "out", "heads", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/attention.ipp>
#endif
