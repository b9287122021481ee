// A transformer in the manner of LLaMA (Touvron et al. 2023): rms norm, rotary positions (Su et al. 2021), attention with
// fewer heads for keys and values than for queries (Ainslie et al. 2023), and a gated perceptron (Shazeer 2020).
#pragma once

#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/embedding.hpp>
#include <neap/model/nn/linear.hpp>
#include <neap/model/nn/norm.hpp>

#include <cmath>
#include <vector>

namespace neap::inline v0::zoo {

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
      throw error(context_access::place(at), "llama: width must divide into heads, and heads into heads of keys, not " +
                                                 std::to_string(width) + " into " + std::to_string(heads) + " and " +
                                                 std::to_string(key_heads));
    return width / heads;
  }
};

/// Rotates pairs of elements of queries and keys by angles that grow with the position.
struct rotary {
  tensor cosine, sine;  // (context, width of a head): constants

  rotary() = default;
  rotary(std::int64_t context, std::int64_t head, double base,
         std::source_location at = std::source_location::current()) {
    if (context < 0)
      throw error(context_access::place(at), "rotary: a context of " + std::to_string(context) + " tokens");
    if (head < 2 || head % 2 != 0)
      throw error(context_access::place(at), "rotary: the width of a head must be even, not " + std::to_string(head));
    std::vector<float> c, s;
    for (std::int64_t t = 0; t < context; ++t)
      for (std::int64_t i = 0; i < head; ++i) {
        double const angle = static_cast<double>(t) *
                             std::pow(base, -2.0 * static_cast<double>(i % (head / 2)) / static_cast<double>(head));
        c.push_back(static_cast<float>(std::cos(angle)));
        s.push_back(static_cast<float>(i < head / 2 ? -std::sin(angle) : std::sin(angle)));
      }
    cosine = neap::constant(tensor::from(c, {context, head}));
    sine = neap::constant(tensor::from(s, {context, head}));
  }
  /// x (b, h, t, d): x * cos + (second half, first half) * (-sin, sin)
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    neap::detail::require_rank(x, 4, "rotary: takes (batch, heads, tokens, width)", at);
    auto const t = x.size(2), half = x.size(3) / 2;
    tensor const swapped = concat({slice(x, 3, half, 2 * half), slice(x, 3, 0, half)}, 3);
    return add(mul(x, slice(cosine, 0, 0, t)), mul(swapped, slice(sine, 0, 0, t)));
  }

  friend auto neap_fields(rotary& self) { return std::tie(self.cosine, self.sine); }
  static constexpr std::array neap_names{"cosine", "sine"};
};

struct llama_block {
  nn::rms_norm norm1, norm2;
  nn::linear query, key, value, out, gate, up, down;
  std::int64_t heads = 1, key_heads = 1;

  llama_block() = default;
  explicit llama_block(llama_config const& c, std::source_location at = std::source_location::current())
      : norm1(c.width, c.epsilon),
        norm2(c.width, c.epsilon),
        query(c.width, c.width, {.bias = false}),
        key(c.width, c.head_width(at) * c.key_heads, {.bias = false}),
        value(c.width, c.head_width(at) * c.key_heads, {.bias = false}),
        out(c.width, c.width, {.bias = false}),
        gate(c.width, c.hidden, {.bias = false}),
        up(c.width, c.hidden, {.bias = false}),
        down(c.hidden, c.width, {.bias = false}),
        heads(c.heads),
        key_heads(c.key_heads) {}

  /// x (b, t, width) -> (b, t, width)
  tensor operator()(tensor const& x, rotary const& turn,
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    neap::detail::require_rank(x, 3, "llama: a block takes (batch, tokens, width)", at);
    auto const b = x.size(0), t = x.size(1), width = x.size(2), d = width / heads;
    auto const by_head = [&](nn::linear const& l, tensor const& v, std::int64_t n) {
      return permute(reshape(l(v), {b, t, n, d}), {0, 2, 1, 3});
    };
    // Each head of keys and values serves heads / key_heads heads of queries.
    auto const repeated = [&](tensor const& v) {
      if (key_heads == heads) return v;
      tensor const wide = broadcast_to(unsqueeze(v, 2), {b, key_heads, heads / key_heads, t, d});
      return reshape(wide, {b, heads, t, d});
    };
    tensor const n = norm1(x);
    tensor const q = turn(by_head(query, n, heads));
    tensor const k = repeated(turn(by_head(key, n, key_heads)));
    tensor const v = repeated(by_head(value, n, key_heads));
    tensor const y = attention(q, k, v, {.causal = true});
    tensor const joined = reshape(permute(y, {0, 2, 1, 3}), {b, t, width});
    tensor const h = add(x, out(joined));
    tensor const m = norm2(h);
    tensor const gated = mul(silu(gate(m)), up(m));
    return add(h, down(gated));
  }

  friend auto neap_fields(llama_block& self) {
    return std::tie(self.norm1, self.query, self.key, self.value, self.out, self.norm2, self.gate, self.up, self.down);
  }
  static constexpr std::array neap_names{"norm1", "query", "key", "value", "out", "norm2", "gate", "up", "down"};
};

struct llama {
  nn::embedding tokens;
  rotary turn;
  std::vector<llama_block> blocks;
  nn::rms_norm norm;
  nn::linear head;
  llama_config config;

  explicit llama(llama_config const& c = {}, std::source_location at = std::source_location::current())
      : llama(c, place_scope(at)) {}
  llama(llama_config const& c, place_scope const&)
      : tokens(c.vocabulary, c.width, 0.02),
        turn(c.context, c.head_width(), c.rotary_base),
        norm(c.width, c.epsilon),
        head(c.width, c.vocabulary, {.bias = false}),
        config(c) {
    for (std::int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(c);
  }

  /// ids (b, t) -> (b, t, vocabulary)
  tensor operator()(tensor const& ids, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    if (ids.rank() != 2 || ids.size(1) > config.context)
      throw error(context_access::place(at), "llama: takes (batch, at most " + std::to_string(config.context) +
                                                 " tokens), was given " + to_string(ids.type()));
    tensor x = tokens(ids);
    for (auto const& b : blocks) x = b(x, turn);
    return head(norm(x));
  }

  friend auto neap_fields(llama& self) { return std::tie(self.tokens, self.turn, self.blocks, self.norm, self.head); }
  static constexpr std::array neap_names{"tokens", "turn", "blocks", "norm", "head"};
};

}  // namespace neap::inline v0::zoo
