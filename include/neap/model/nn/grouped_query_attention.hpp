// Attention with fewer heads for keys and values than for queries (Ainslie et al. 2023), over (batch, tokens, width), with
// rotary positions where they are given. One head of keys and values serves heads / key_heads heads of queries.
#pragma once

#include <neap/model/nn/linear.hpp>
#include <neap/model/nn/rotary.hpp>

namespace neap { inline namespace v0 { namespace nn {

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
                          grouped_query_options o = {}, std::source_location at = std::source_location::current());

  /// x (b, t, width) -> (b, t, width). `turn` turns queries and keys by their positions; an empty one does not.
  tensor operator()(tensor const& x, rotary const& turn = {},
                    std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<grouped_query_attention> auto& self) {
    return std::tie(self.query, self.key, self.value, self.out, self.heads, self.key_heads, self.options);
  }
  static constexpr std::array neap_names{"query", "key", "value", "out", "heads", "key_heads", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/grouped_query_attention.ipp>
#endif
