// A transformer in the manner of LLaMA (Touvron et al. 2023): rms norm, rotary positions (Su et al. 2021), attention with
// fewer heads for keys and values than for queries (Ainslie et al. 2023), and a gated perceptron (Shazeer 2020).
#pragma once

#include <neap/model/nn/embedding.hpp>
#include <neap/model/nn/grouped_query_attention.hpp>
#include <neap/model/nn/transformer.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct llama_config {
  std::int64_t vocabulary = 32000, context = 2048, width = 4096, heads = 32, key_heads = 32, layers = 32,
               hidden = 11008;
  double rotary_base = 10000, epsilon = 1e-5;

  static llama_config llama7b() { return {}; }
  static llama_config toy() {
    llama_config c;
    c.vocabulary = 16, c.context = 8, c.width = 16, c.heads = 4, c.key_heads = 2, c.layers = 2, c.hidden = 24;
    return c;
  }
  /// The width of a head. Throws neap::error if there are no such heads.
  std::int64_t head_width(std::source_location at = std::source_location::current()) const {
    if (heads < 1 || key_heads < 1 || heads % key_heads != 0 || width % heads != 0)
      throw_error(context_access::place(at), {"llama: width must divide into heads, and heads into heads of keys, not ",
                                              width, " into ", heads, " and ", key_heads});
    return width / heads;
  }
};

struct llama_block {
  nn::rms_norm norm1, norm2;
  nn::grouped_query_attention attention;
  nn::gated_mlp mlp;

  llama_block() = default;
  explicit llama_block(llama_config const& c, std::source_location at = std::source_location::current()) {
    place_scope const here(at);
    norm1 = nn::rms_norm(c.width, c.epsilon);
    norm2 = nn::rms_norm(c.width, c.epsilon);
    attention = nn::grouped_query_attention(c.width, c.heads, c.key_heads, {.causal = true});
    mlp = nn::gated_mlp(c.width, c.hidden);
  }

  /// x (b, t, width) -> (b, t, width)
  tensor operator()(tensor x, nn::rotary const& turn, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    x = x + attention(norm1(x), turn);
    return x + mlp(norm2(x));
  }

  friend auto neap_fields(llama_block& self) {
    auto& a = self.attention;
    auto& m = self.mlp;
    return std::tie(self.norm1, a.query, a.key, a.value, a.out, self.norm2, m.gate, m.up, m.down);
  }
  static constexpr std::array neap_names{"norm1", "query", "key", "value", "out", "norm2", "gate", "up", "down"};
};

struct llama {
  nn::embedding tokens;
  nn::rotary turn;
  std::vector<llama_block> blocks;
  nn::rms_norm norm;
  nn::linear head;
  llama_config config;

  explicit llama(llama_config const& c = {}, std::source_location at = std::source_location::current()) : config(c) {
    place_scope const here(at);
    tokens = nn::embedding(c.vocabulary, c.width, 0.02);
    turn = nn::rotary(c.context, c.head_width(), c.rotary_base);
    norm = nn::rms_norm(c.width, c.epsilon);
    head = nn::linear(c.width, c.vocabulary, {.bias = false});
    for (std::int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(c);
  }

  /// ids (b, t) -> (b, t, vocabulary)
  tensor operator()(tensor const& ids, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    if (ids.rank() != 2 || ids.size(1) > config.context)
      throw_error(context_access::place(at),
                  {"llama: takes (batch, at most ", config.context, " tokens), got ", ids.type()});
    tensor x = tokens(ids);
    for (auto const& b : blocks) x = b(x, turn);
    return head(norm(x));
  }

  friend auto neap_fields(llama& self) { return std::tie(self.tokens, self.turn, self.blocks, self.norm, self.head); }
  static constexpr std::array neap_names{"tokens", "turn", "blocks", "norm", "head"};
};

}}}  // namespace neap::v0::zoo
