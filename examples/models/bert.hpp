// BERT (Devlin et al. 2019): a transformer over tokens that sees both ways, norms after the residual sums, with the head
// that predicts masked tokens.
#pragma once

#include <neap/model/nn/embedding.hpp>
#include <neap/model/nn/transformer.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct bert_config {
  std::int64_t vocabulary = 30522, context = 512, segments = 2, width = 768, heads = 12, layers = 12, hidden = 3072;
  double dropout = 0.1;
  bool fused_attention = true;

  static bert_config base() { return {}; }
  static bert_config large() {
    bert_config c;
    c.width = 1024, c.heads = 16, c.layers = 24, c.hidden = 4096;
    return c;
  }
  static bert_config toy() {
    bert_config c;
    c.vocabulary = 16, c.context = 8, c.width = 16, c.heads = 2, c.layers = 2, c.hidden = 32;
    return c;
  }
};

struct bert {
  nn::embedding tokens, positions, segments;
  nn::layer_norm norm;
  std::vector<nn::transformer_block> blocks;
  nn::linear transform;  // the head: gelu, norm, then the tokens' embedding
  nn::layer_norm head_norm;
  parameter head_bias;
  bert_config config;

  explicit bert(bert_config const& c = {}, std::source_location at = std::source_location::current()) : config(c) {
    place_scope const here(at);
    tokens = nn::embedding(c.vocabulary, c.width, 0.02);
    positions = nn::embedding(c.context, c.width, 0.02);
    segments = nn::embedding(c.segments, c.width, 0.02);
    norm = nn::layer_norm(c.width, 1e-12);
    transform = nn::linear(c.width, c.width);
    head_norm = nn::layer_norm(c.width, 1e-12);
    head_bias = parameter({c.vocabulary});
    nn::transformer_options o;
    o.norm_first = false;
    o.dropout = c.dropout;
    o.epsilon = 1e-12;
    o.attention = {.fused = c.fused_attention};
    for (std::int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(c.width, c.heads, c.hidden, o);
  }

  /// ids (b, t) -> (b, t, vocabulary). `segment_ids` (b, t) or empty: all of segment 0.
  tensor operator()(tensor const& ids, tensor const& segment_ids = {},
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    if (ids.rank() != 2 || ids.size(1) > config.context)
      throw_error(context_access::place(at),
                  {"bert: takes (batch, at most ", config.context, " tokens), got ", ids.type()});
    tensor x = tokens(ids) + slice(positions.weight, 0, 0, ids.size(1));
    x = x + (segment_ids.is_empty() ? slice(segments.weight, 0, 0, 1) : segments(segment_ids));
    x = dropout(norm(x), config.dropout);
    for (auto const& b : blocks) x = b(x);
    x = head_norm(gelu(transform(x)));
    return linear(x, tokens.weight, head_bias);
  }

  friend auto neap_fields(bert& self) {
    return std::tie(self.tokens, self.positions, self.segments, self.norm, self.blocks, self.transform, self.head_norm,
                    self.head_bias);
  }
  static constexpr std::array neap_names{"tokens", "positions", "segments",  "norm",
                                         "blocks", "transform", "head_norm", "head_bias"};
};

}}}  // namespace neap::v0::zoo
