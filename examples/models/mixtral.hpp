// A transformer in the manner of Mixtral (Jiang et al. 2024): LLaMA's blocks, each with a mixture of gated perceptrons of
// which every token gets two.
#pragma once

#include <neap/model/nn/embedding.hpp>
#include <neap/model/nn/grouped_query_attention.hpp>
#include <neap/model/nn/mixture_of_experts.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct mixtral_config {
  std::int64_t vocabulary = 32000, context = 4096, width = 4096, heads = 32, key_heads = 8, layers = 32, hidden = 14336,
               experts = 8, chosen = 2;
  double rotary_base = 1e6, epsilon = 1e-5;

  static mixtral_config mixtral8x7b() { return {}; }
  static mixtral_config toy() {
    mixtral_config c;
    c.vocabulary = 16, c.context = 8, c.width = 16, c.heads = 4, c.key_heads = 2, c.layers = 2, c.hidden = 24;
    c.experts = 4;
    return c;
  }
};

struct mixtral_block {
  nn::rms_norm norm1, norm2;
  nn::grouped_query_attention attention;
  nn::mixture_of_experts<> mixture;

  mixtral_block() = default;
  explicit mixtral_block(mixtral_config const& c, std::source_location at = std::source_location::current()) {
    place_scope const here(at);
    norm1 = nn::rms_norm(c.width, c.epsilon);
    norm2 = nn::rms_norm(c.width, c.epsilon);
    attention = nn::grouped_query_attention(c.width, c.heads, c.key_heads, {.causal = true});
    mixture = nn::mixture_of_experts<>(c.width, c.hidden, c.experts, c.chosen);
  }

  /// x (b, t, width) -> (b, t, width)
  tensor operator()(tensor x, nn::rotary const& turn, tensor* balance = nullptr,
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    x = x + attention(norm1(x), turn);
    return x + mixture(norm2(x), balance);
  }

  friend auto neap_fields(mixtral_block& self) {
    return std::tie(self.norm1, self.attention, self.norm2, self.mixture);
  }
  static constexpr std::array neap_names{"norm1", "attention", "norm2", "mixture"};
};

struct mixtral {
  nn::embedding tokens;
  nn::rotary turn;
  std::vector<mixtral_block> blocks;
  nn::rms_norm norm;
  nn::linear head;
  mixtral_config config;

  explicit mixtral(mixtral_config const& c = {}, std::source_location at = std::source_location::current())
      : config(c) {
    place_scope const here(at);
    tokens = nn::embedding(c.vocabulary, c.width, 0.02);
    for (std::int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(c);
    turn = nn::rotary(c.context, c.heads > 0 ? c.width / c.heads : 0, c.rotary_base);
    norm = nn::rms_norm(c.width, c.epsilon);
    head = nn::linear(c.width, c.vocabulary, {.bias = false});
  }

  /// ids (b, t) -> (b, t, vocabulary). Where `balance` is given, the load-balancing losses of all blocks are added to it.
  tensor operator()(tensor const& ids, tensor* balance = nullptr,
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    if (ids.rank() != 2 || ids.size(1) > config.context)
      throw_error(context_access::place(at),
                  {"mixtral: takes (batch, at most ", config.context, " tokens), got ", ids.type()});
    tensor x = tokens(ids);
    for (auto const& b : blocks) x = b(x, turn, balance);
    return head(norm(x));
  }

  friend auto neap_fields(mixtral& self) { return std::tie(self.tokens, self.turn, self.blocks, self.norm, self.head); }
  static constexpr std::array neap_names{"tokens", "turn", "blocks", "norm", "head"};
};

}}}  // namespace neap::v0::zoo
