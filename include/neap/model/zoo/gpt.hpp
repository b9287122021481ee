// GPT-2 (Radford et al. 2019): a causal transformer over tokens, norms first, the last layer tied to the embedding.
#pragma once

#include <neap/model/nn/embedding.hpp>
#include <neap/model/nn/transformer.hpp>

#include <cmath>
#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct gpt_config {
  std::int64_t vocabulary = 50257, context = 1024, width = 768, heads = 12, layers = 12;
  double dropout = 0;
  bool fused_attention = true, tied_head = true;

  static gpt_config gpt2() { return {}; }
  static gpt_config toy() {
    gpt_config c;
    c.vocabulary = 16, c.context = 8, c.width = 16, c.heads = 2, c.layers = 2;
    return c;
  }
};

struct gpt {
  nn::embedding tokens, positions;
  std::vector<nn::transformer_block> blocks;
  nn::layer_norm norm;
  parameter head;  // (vocabulary, width); empty: the tokens' embedding
  gpt_config config;

  explicit gpt(gpt_config const& c = {}, std::source_location at = std::source_location::current()) : config(c) {
    place_scope const here(at);
    tokens = nn::embedding(c.vocabulary, c.width, 0.02);
    positions = nn::embedding(c.context, c.width, 0.02);
    norm = nn::layer_norm(c.width);
    nn::transformer_options o;
    o.dropout = c.dropout;
    o.tanh_form = true;
    o.attention = {.causal = true, .fused = c.fused_attention};
    for (std::int64_t i = 0; i < c.layers; ++i) {
      auto& b = blocks.emplace_back(c.width, c.heads, 4 * c.width, o);
      // GPT-2's initial weights: deviation 0.02, less on what is added to the residual stream, biases 0.
      auto const narrow = 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers));
      for (auto [l, deviation] :
           {std::pair{&b.attention.qkv, 0.02}, {&b.attention.out, narrow}, {&b.mlp.up, 0.02}, {&b.mlp.down, narrow}}) {
        l->weight.restart(initialiser::normal(0, deviation));
        l->bias.restart(initialiser::constant(0));
      }
    }
    if (!c.tied_head) head = parameter({c.vocabulary, c.width}, initialiser::normal(0, 0.02));
  }

  /// ids (b, t) of i64 -> (b, t, vocabulary)
  tensor operator()(tensor const& ids, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    if (ids.rank() != 2 || ids.size(1) > config.context)
      throw_error(context_access::place(at),
                  {"gpt: takes (batch, at most ", config.context, " tokens), got ", ids.type()});
    tensor x = dropout(tokens(ids) + slice(positions.weight, 0, 0, ids.size(1)), config.dropout);
    for (auto const& b : blocks) x = b(x);
    return linear(norm(x), head.is_empty() ? tokens.weight : head, {});
  }

  friend auto neap_fields(gpt& self) {
    return std::tie(self.tokens, self.positions, self.blocks, self.norm, self.head);
  }
  static constexpr std::array neap_names{"tokens", "positions", "blocks", "norm", "head"};
};

}}}  // namespace neap::v0::zoo
